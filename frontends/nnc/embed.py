#!/usr/bin/env python3
"""Writes the library's files as one text in a C array: embed.py nn.nnc ... library.c.  The first keeps its version line."""
import sys

parts = [open(path, "rb").read() for path in sys.argv[1:-1]]
data = parts[0] + b"".join(part.replace(b"nnc 1\n", b"", 1) for part in parts[1:])
with open(sys.argv[-1], "w", encoding="ascii") as out:
    out.write('#include "frontends/nnc/library.h"\n\nconst unsigned char nnc_library_bytes[] = {\n')
    for i in range(0, len(data), 20):
        out.write("    " + " ".join(f"{byte}," for byte in data[i : i + 20]) + "\n")
    out.write(f"}};\nconst uint32_t nnc_library_size = {len(data)};\n")
