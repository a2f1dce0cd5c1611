"""Writes a text file as a C string: embed.py VARIABLE FILE > header.  The compiler carries such texts in its binary."""

import sys

name, path = sys.argv[1:]
print(f"static const char {name}[] =")
with open(path, encoding="utf-8") as lines:
    for line in lines:
        text = line.rstrip("\n").replace("\\", "\\\\").replace('"', '\\"').replace("??", "?\\?")  # no trigraphs
        print(f'    "{text}\\n"')
print("    ;")
