"""As much of protobuf and ONNX as the tests need, so that they run without the package onnx."""

import numpy

DTYPES = {1: "f4", 2: "u1", 3: "i1", 4: "u2", 5: "i2", 6: "i4", 7: "i8", 9: "?", 10: "f2", 11: "f8", 12: "u4", 13: "u8"}


# Types that NumPy has not, as values of one that it has: bits of an element, of its fraction, bias; 0 of integers.
NARROW = {17: ("f2", 8, 3, 7), 18: ("f2", 8, 3, 8), 19: ("f2", 8, 2, 15), 20: ("f2", 8, 2, 16), 21: ("u1", 4, 0, 0), 22: ("i1", 4, 0, 0),
          23: ("f2", 4, 1, 1), 24: ("f4", 8, 0, 127), 25: ("u1", 2, 0, 0), 26: ("i1", 2, 0, 0)}


def narrow_values(kind):
    """What each pattern of bits stands for."""
    dtype, bits, digits, bias = NARROW[kind]
    codes = numpy.arange(1 << bits)
    if bias == 0:
        return numpy.where((codes >= 1 << bits - 1) & (dtype == "i1"), codes - (1 << bits), codes).astype(dtype)
    if kind == 24:
        return numpy.where(codes == 255, numpy.nan, 2.0 ** (codes - 127.0)).astype(dtype)
    exponents, fractions = codes >> digits & (1 << bits - 1 - digits) - 1, codes & (1 << digits) - 1
    sizes = numpy.where(exponents, (fractions + (1 << digits)) * 2.0 ** (exponents - bias - digits), fractions * 2.0 ** (1 - bias - digits))
    values = numpy.where(codes >> bits - 1, -sizes, sizes)
    special = {17: {127: numpy.nan}, 19: {124: numpy.inf, 125: numpy.nan, 126: numpy.nan, 127: numpy.nan}}.get(kind, {})
    for code, value in special.items():
        values[code], values[code + 128] = value, -value
    if kind in (18, 20):
        values[128] = numpy.nan
    return values.astype(dtype)


def narrow(data, kind, dims):
    bits = NARROW[kind][1]
    packed_bytes = numpy.frombuffer(one(data, 9), "u1") if many(data, 9) else numpy.array(list(packed(many(data, 5))), "u1")
    codes = numpy.stack([packed_bytes >> shift & (1 << bits) - 1 for shift in range(0, 8, bits)], 1).ravel()
    return narrow_values(kind)[codes[: int(numpy.prod(dims))]].reshape(dims)


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def fields(data):
    """Numbers and values: integers, or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        else:
            size = 8 if kind == 1 else 4
            value, at = data[at : at + size], at + size
        yield key >> 3, value


def many(data, number):
    return [value for field, value in fields(data) if field == number]


def one(data, number, default=b""):
    return (many(data, number) or [default])[-1]


def packed(values):
    for value in values:
        if isinstance(value, int):
            yield signed(value)
            continue
        at = 0
        while at < len(value):
            number, at = varint(value, at)
            yield signed(number)


def tensor(data):
    """A TensorProto as an array; None where NumPy has no such dtype."""
    dims = list(packed(many(data, 1)))
    kind = one(data, 2, 0)
    if kind == 16:
        bits = numpy.frombuffer(one(data, 9), "u2") if many(data, 9) else numpy.array(list(packed(many(data, 5))), "u2")
        return bits.reshape(-1).view("V2").reshape(dims)  # as NumPy has no such dtype
    if kind in NARROW:
        return narrow(data, kind, dims)
    if kind not in DTYPES:
        return None
    dtype = numpy.dtype(DTYPES[kind])
    if many(data, 9):
        return numpy.frombuffer(one(data, 9), dtype).reshape(dims)
    if kind in (1, 11):
        return numpy.frombuffer(b"".join(many(data, 4 if kind == 1 else 10)), dtype).reshape(dims)
    numbers = list(packed(many(data, {7: 7, 12: 11, 13: 11}.get(kind, 5))))
    if kind == 10:
        return numpy.array(numbers, "u2").view("f2").reshape(dims)
    return numpy.array(numbers, dtype).reshape(dims)


ABSENT = "none"  # an optional without a value


def kind_of(info):
    """Of a TypeProto: tensor, sequence or optional, or text."""
    for number, kind in ((4, "sequence"), (9, "optional")):
        if many(info, number):
            return kind
    return "text" if one(one(info, 1), 1, 0) == 8 else "tensor"


def held(data, kind):
    """What a file holds: an array, a list of them, or ABSENT; None where NumPy has no such dtype."""
    if kind == "sequence":
        return [tensor(item) for item in many(data, 3)]
    if kind == "optional":
        return tensor(one(data, 3)) if many(data, 3) else held(one(data, 5), "sequence") if many(data, 5) else ABSENT
    return tensor(data)


def as_f32(array):
    """Of bf16 in two bytes; others as they are."""
    if array.dtype.kind != "V":
        return array
    return (array.reshape(-1).view("u2").astype("u4") << 16).view("f4").reshape(array.shape)


def text(data, number):
    return one(data, number).decode()


class Model:
    """Names of inputs and outputs, ops and opset of a file."""

    def __init__(self, path):
        data = path.read_bytes()
        graph = one(data, 7)
        weights = {text(t, 8) for t in many(graph, 5)}
        self.inputs = [text(v, 1) for v in many(graph, 11) if text(v, 1) not in weights]
        self.all_inputs = [text(v, 1) for v in many(graph, 11)]
        self.input_kinds = [kind_of(one(v, 2)) for v in many(graph, 11)]
        self.output_kinds = [kind_of(one(v, 2)) for v in many(graph, 12)]
        self.outputs = [text(v, 1) for v in many(graph, 12)]
        self.ops = [text(n, 4) for n in many(graph, 1)]
        self.opset = max([one(o, 2, 0) for o in many(data, 8) if not text(o, 1)] or [0])
