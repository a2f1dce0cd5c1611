#!/usr/bin/env python3
"""Writes the library's files as one text in a C array, and where each of them stands: embed.py nn.nnc ... library.c"""
import pathlib
import sys

parts = [(pathlib.Path(path).stem, pathlib.Path(path).read_bytes()) for path in sys.argv[1:-1]]
data = b"".join(text for _, text in parts)
with open(sys.argv[-1], "w", encoding="ascii") as out:
    out.write('#include "frontends/nnc/library.h"\n\nconst unsigned char nnc_library_bytes[] = {\n')
    for i in range(0, len(data), 20):
        out.write("    " + " ".join(f"{byte}," for byte in data[i : i + 20]) + "\n")
    out.write(f"}};\nconst uint32_t nnc_library_size = {len(data)};\nconst LibraryPart nnc_library_part[] = {{\n")
    for i, (name, text) in enumerate(parts):
        begin = sum(len(earlier) for _, earlier in parts[:i])
        out.write(f'    {{"{name if name == "nn" else "nn/" + name}", {begin}, {len(text)}}},\n')
    out.write("    {0, 0, 0},\n};\n")
