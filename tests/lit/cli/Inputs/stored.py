"""Writes a .safetensors file: stored.py FILE NAME=DTYPE[DIM,DIM...]...

Elements count up from 0, or all are X where the type ends in `*X`.  NAME may hold `{a..b}`: one tensor for each number.
"""

import json
import re
import struct
import sys

import numpy as np

KINDS = {"F64": "f8", "F32": "f4", "F16": "f2", "BF16": "bf16", "I64": "i8", "I32": "i4", "BOOL": "?"}


def elements(kind, shape, value):
    count = int(np.prod(shape, dtype=np.int64))
    array = np.arange(count) if value is None else np.full(count, float(value))
    if kind == "BF16":  # exact for the numbers used here
        return (array.astype("f4").view("u4") >> 16).astype("u2").tobytes()
    return array.astype(KINDS[kind]).tobytes()


def names(pattern):
    span = re.search(r"\{(\d+)\.\.(\d+)\}", pattern)
    if not span:
        return [pattern]
    return [pattern.replace(span[0], str(i)) for i in range(int(span[1]), int(span[2]))]


header, data = {}, b""
for word in sys.argv[2:]:
    pattern, kind, dims, value = re.fullmatch(r"(.*)=(\w+)\[(.*)\](?:\*(.*))?", word, re.DOTALL).groups()
    shape = [int(dim) for dim in dims.split(",") if dim]
    for name in names(pattern):
        begin = len(data)
        data += elements(kind, shape, value)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [begin, len(data)]}
text = json.dumps(header).encode()
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + data)
