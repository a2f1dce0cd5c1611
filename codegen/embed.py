"""Writes text files as a C string: embed.py VARIABLE FILE... > header.  The compiler carries such texts in its binary.

A header comes behind those of its folder that it includes, which are left out of it."""

import sys

name, *paths = sys.argv[1:]
print(f"static const char {name}[] =")
for path in paths:
    with open(path, encoding="utf-8") as file:
        lines = [line for line in file if len(paths) == 1 or not line.startswith('#include "')]
    for line in lines:
        text = line.rstrip("\n").replace("\\", "\\\\").replace('"', '\\"').replace("??", "?\\?")  # no trigraphs
        print(f'    "{text}\\n"')
print("    ;")
