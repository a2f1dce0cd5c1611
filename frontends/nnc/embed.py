#!/usr/bin/env python3
"""Writes a text file as a C array: embed.py nn.nnc library.c"""
import sys

data = open(sys.argv[1], "rb").read()
with open(sys.argv[2], "w", encoding="ascii") as out:
    out.write('#include "frontends/nnc/library.h"\n\nconst unsigned char nnc_library_bytes[] = {\n')
    for i in range(0, len(data), 20):
        out.write("    " + " ".join(f"{byte}," for byte in data[i : i + 20]) + "\n")
    out.write(f"}};\nconst uint32_t nnc_library_size = {len(data)};\n")
