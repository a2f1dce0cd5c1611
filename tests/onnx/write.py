"""Models of ONNX as bytes, also such as no other tool would write."""

import struct

import numpy

KINDS = {"uint64": 13, "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11}


def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def data(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def floating(field, value):
    return varint(field << 3 | 5) + struct.pack("<f", value)


def tensor(name, array, raw=True):
    array = numpy.asarray(array)
    out = b"".join(number(1, d) for d in array.shape) + number(2, KINDS[array.dtype.name]) + data(8, name)
    return out + (data(9, array.tobytes()) if raw else data(4, array.astype("<f4").tobytes()))


def coded(name, shape, kind, content, listed=False):
    """Elements as bytes, or as numbers of int32_data."""
    out = b"".join(number(1, d) for d in shape) + number(2, kind) + data(8, name)
    return out + (b"".join(number(5, byte) for byte in content) if listed else data(9, content))


def external(name, shape, location, offset=None, length=None, kind=1):
    entries = [("location", location)] + [(k, str(v)) for k, v in (("offset", offset), ("length", length)) if v is not None]
    out = b"".join(number(1, d) for d in shape) + number(2, kind) + data(8, name) + number(14, 1)
    return out + b"".join(data(13, data(1, k) + data(2, v)) for k, v in entries)


def attribute(name, value):
    if isinstance(value, tuple) and value and value[0] == "ref":
        return data(1, name) + data(21, value[1]) + number(20, 1)
    if isinstance(value, bool) or isinstance(value, int):
        return data(1, name) + number(3, value) + number(20, 2)
    if isinstance(value, float):
        return data(1, name) + floating(2, value) + number(20, 1)
    if isinstance(value, str):
        return data(1, name) + data(4, value) + number(20, 3)
    if isinstance(value, numpy.ndarray):
        return data(1, name) + data(5, tensor("", value)) + number(20, 4)
    if isinstance(value, bytes):
        return data(1, name) + data(6, value) + number(20, 5)
    if value and isinstance(value[0], float):
        return data(1, name) + b"".join(floating(7, v) for v in value) + number(20, 6)
    if value and isinstance(value[0], str):
        return data(1, name) + b"".join(data(9, v) for v in value) + number(20, 8)
    return data(1, name) + b"".join(number(8, v) for v in value) + number(20, 7)


def node(op, inputs, outputs, name="", domain="", **attributes):
    out = b"".join(data(1, i) for i in inputs) + b"".join(data(2, o) for o in outputs)
    out += data(3, name) + data(4, op) + data(7, domain)
    return out + b"".join(data(5, attribute(k, v)) for k, v in attributes.items())


def value(name, shape, kind=1):
    """Extents that are texts are symbols; shape None: none is said."""
    dims = b"".join(data(1, data(2, d) if isinstance(d, str) else number(1, d)) for d in shape or [])
    return data(1, name) + data(2, data(1, number(1, kind) + (data(2, dims) if shape is not None else b"")))


def graph(nodes, inputs, outputs, initializers=(), name="g"):
    out = b"".join(data(1, n) for n in nodes) + data(2, name) + b"".join(data(5, t) for t in initializers)
    return out + b"".join(data(11, v) for v in inputs) + b"".join(data(12, v) for v in outputs)


def function(name, domain, inputs, outputs, nodes, attributes=(), opset=17):
    out = data(1, name) + data(10, domain) + b"".join(data(4, i) for i in inputs) + b"".join(data(5, o) for o in outputs)
    out += b"".join(data(6, a) for a in attributes) + b"".join(data(7, n) for n in nodes)
    return out + data(9, data(1, "") + number(2, opset))


def model(content, opset=17, functions=(), domains=()):
    out = number(1, 8) + data(7, content) + data(8, data(1, "") + number(2, opset))
    versions = [d if isinstance(d, tuple) else (d, 3 if d == "ai.onnx.ml" else 1) for d in domains]
    out += b"".join(data(8, data(1, d) + number(2, v)) for d, v in versions)
    return out + b"".join(data(25, f) for f in functions)
