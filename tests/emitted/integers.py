#!/usr/bin/python3
"""Contractions of integers, whose sums f32 may hold, requantised or not: every bit is NumPy's, in i64.

    integers.py --nnc build/nnc [--target T ...] [--cc CC ...]

The operands reach the ends of their types.  One program has all cases, for each target and compiler.  Speaks TAP.
"""

import sys

import numpy as np

import build
from streams import Model, write_safetensors

DRAW = np.random.default_rng(3)
ENDS = {"i8": (-128, 127), "u8": (0, 255), "i16": (-32768, 32767), "u16": (0, 65535), "i32": (-2**31, 2**31 - 1)}
NUMPY = {"i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "i32": np.int32, "f32": np.float32}
FLAGS = ["-O0", "-ffp-contract=fast", "-fno-math-errno"]


def whole(dtype, *shape):
    """Some of the ends of the type, some between."""
    low, high = ENDS[dtype]
    return np.where(DRAW.random(shape) < 0.1, DRAW.choice([low, high], shape), DRAW.integers(low, high + 1, shape)).astype(NUMPY[dtype])


def text(array):
    return "[" + ", ".join(map(text, array)) + "]" if array.ndim else str(array)


def typed(array):
    names = {np.dtype(t): n for n, t in NUMPY.items()}
    return f"{names[array.dtype]}[{', '.join(map(str, array.shape))}]"


def convolve(x, w, pad=0, stride=1, groups=1, dilation=1):
    """In i64; outside is 0."""
    x = np.pad(x.astype(np.int64), [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    spans = [(n - 1) * dilation + 1 for n in w.shape[2:]]
    windows = np.lib.stride_tricks.sliding_window_view(x, spans, axis=(2, 3))[:, :, ::stride, ::stride, ::dilation, ::dilation]
    return np.concatenate([np.einsum("nchwij,ocij->nohw", part, weight) for part, weight in
                           zip(np.split(windows, groups, axis=1), np.split(w.astype(np.int64), groups))], axis=1)


def requantise(total, scale, dtype):
    """As the text says it, in f32, each operation rounded."""
    y = np.round(total.astype(np.float32) * scale) + np.float32(3)
    return np.clip(y, *map(np.float32, ENDS[dtype])).astype(NUMPY[dtype])


def cut(x, dtype):
    """A cast of floats: NaN is 0, and what is beyond an end is that."""
    low, high = ENDS[dtype]
    return np.clip(np.trunc(np.nan_to_num(x.astype(np.float64), posinf=1e30, neginf=-1e30)), low, high).astype(NUMPY[dtype])


class Cases:
    """Graphs of one text, with the inputs and outputs of each."""

    def __init__(self):
        self.text, self.arrays, self.inputs, self.expected = "nnc 1\n", {}, {}, {}

    def add(self, name, inputs, expected, body, consts=(), params=()):
        names = "xyz"[:len(inputs)]
        signature = ", ".join(f"{n}: {typed(a)}" for n, a in zip(names, inputs))
        lines = [f"const {n}: {typed(a)} = {text(a)}" for n, a in dict(consts).items()]
        lines += [f"param {n}: {typed(a)}" for n, a in dict(params).items()]
        self.text += f"graph {name}({signature}) -> (r: {typed(expected)}) {{\n    " + "\n    ".join([*lines, body]) + "\n}\n"
        self.arrays |= dict(params)
        self.inputs[name], self.expected[name] = inputs, expected


def products(cases):
    x, w = whole("u8", 7, 600), whole("i8", 600, 24)
    cases.add("constant", [x], ((x.astype(np.int64) - 120) @ w).astype(np.int32), "r = (i32(x) - 120) @ i32(w)", {"w": w})
    scale = DRAW.uniform(0.0005, 0.002, 24).astype(np.float32)
    bias = DRAW.integers(-5000, 5000, 24).astype(np.int32)
    for dtype in "u8", "i8", "i16":
        low, high = ENDS[dtype]
        cases.add(f"requantised_{dtype}", [x], requantise((x.astype(np.int64) - 120) @ w + bias, scale, dtype),
                  f"r = {dtype}(minimum(maximum(round(f32((i32(x) - 120) @ i32(w) + b) * s) + 3.0, {low}.0), {high}.0))",
                  {"w": w, "b": bias, "s": scale})
    for depth in 514, 515:  # the last that f32 sums up, of whatever i8 and u8; 515 are five parts
        x, p = np.full((3, depth), 255, np.uint8), np.full((depth, 17), -128, np.int8)
        p[:, 1::2] = whole("i8", depth, 8)
        x[1:] = whole("u8", 2, depth)
        cases.add(f"deep{depth}", [x], (x.astype(np.int64) @ p).astype(np.int32), f"r = i32(x) @ i32(p{depth})", (), {f"p{depth}": p})
    x, w = np.full((3, 800), 255, np.uint8), np.full((800, 17), 127, np.uint8)  # 127 - 128 is 255
    cases.add("wrapped", [x], (x.astype(np.int64) @ (w.astype(np.int64) + 128)).astype(np.int32), "r = i32(x) @ i32(w - 128)", {"w": w})
    x, y, z = whole("i8", 2, 5, 300), whole("i8", 2, 19, 300), np.array(7, np.int8)
    cases.add("both_given", [x, y, z], ((x.astype(np.int64) - 7) @ y.astype(np.int64).transpose(0, 2, 1)).astype(np.int32),
              "r = matmul(i32(x) - i32(z), i32(y), transpose_y = true)")
    x, w = whole("i16", 3, 70), whole("i16", 70, 9)
    with np.errstate(over="ignore"):
        cases.add("too_large", [x], x.astype(np.int32) @ w.astype(np.int32), "r = i32(x) @ i32(w)", {"w": w})
    x, w = whole("u8", 3, 40), whole("i8", 40, 20)
    bias = np.full(20, 2**24 + 1, np.int32)
    cases.add("large_bias", [x], (x.astype(np.int64) @ w + bias).astype(np.float32), "r = f32(i32(x) @ i32(w) + b)", {"w": w, "b": bias})


def convolutions(cases):
    x = whole("u8", 1, 24, 9, 11)
    for name, w, zero, attributes in [("dense", whole("i8", 40, 24, 3, 3), 0, {"pad": 1}), ("pointwise", whole("u8", 16, 24, 1, 1), 127, {}),
                                      ("strided", whole("i8", 16, 24, 3, 3), 0, {"pad": 1, "stride": 2}), ("odd", whole("i8", 5, 24, 2, 3), 0, {}),
                                      ("depthwise", whole("i8", 24, 1, 3, 3), 0, {"pad": 1, "groups": 24}),
                                      ("grouped", whole("u8", 12, 8, 3, 3), 100, {"groups": 3})]:
        said = "".join(f", {k} = {v}" for k, v in attributes.items())
        total = convolve(x.astype(np.int64) - 130, w.astype(np.int64) - zero, **attributes)
        sums = f"conv2d(i32(x) - 130, i32(w) - {zero}{said})"
        cases.add(name, [x], total.astype(np.int32), f"r = {sums}", {"w": w})
        scale = DRAW.uniform(0.0005, 0.002, (w.shape[0], 1, 1)).astype(np.float32)
        cases.add(f"{name}_u8", [x], requantise(total, scale, "u8"),
                  f"r = u8(minimum(maximum(round(f32({sums}) * s) + 3.0, 0.0), 255.0))", {"w": w, "s": scale})
    w, zero = whole("u8", 32, 24, 3, 3), whole("u8", 32)
    cases.add("zero_points", [x], convolve(x, w.astype(np.int64) - zero.astype(np.int64)[:, None, None, None], 1).astype(np.int32),
              "r = conv2d(i32(x), i32(w) - reshape(i32(z), shape = [32, 1, 1, 1]), pad = 1)", {"w": w, "z": zero})


def pairs(cases):
    """Depths that are odd or 1, few columns, all signs, zero points at the ends of the types; what is requantised is kept as bytes."""
    number = 0
    for a, b in ("u8", "i8"), ("u8", "u8"), ("i8", "i8"), ("i8", "u8"):
        for m, k, n in (1, 64, 40), (7, 33, 19), (13, 1, 300), (25, 90, 4):
            x, w, zx, zw = whole(a, m, k), whole(b, k, n), DRAW.choice(ENDS[a]), DRAW.choice((0, *ENDS[b]))
            total = (x.astype(np.int64) - zx) @ (w.astype(np.int64) - zw)
            cases.add(f"pairs_product{number}", [x], total.astype(np.int32), f"r = (i32(x) - ({zx})) @ (i32(w) - ({zw}))", {"w": w})
            number += 1
    for images, c, o, groups, k, size, attributes in [(2, 16, 24, 1, 3, (6, 13), {"pad": 1}), (1, 5, 40, 1, 3, (9, 9), {"stride": 2, "pad": 1}),
                                                      (1, 3, 16, 1, 7, (17, 20), {"stride": 2, "pad": 3}), (1, 32, 32, 2, 3, (8, 7), {"pad": 2, "dilation": 2}),
                                                      (3, 24, 32, 1, 1, (5, 7), {"stride": 2}), (1, 27, 33, 3, 1, (4, 6), {}), (1, 8, 72, 1, 2, (2, 2), {})]:
        x, w, zx, zw = whole("u8", images, c, *size), whole("i8", o, c // groups, k, k), DRAW.integers(0, 256), DRAW.choice((0, 0, -128))
        said = "".join(f", {n} = {v}" for n, v in {**attributes, "groups": groups}.items())
        total = convolve(x.astype(np.int64) - zx, w.astype(np.int64) - zw, **attributes, groups=groups)
        sums = f"conv2d(i32(x) - {zx}, i32(w) - ({zw}){said})"
        cases.add(f"pairs_image{number}", [x], total.astype(np.int32), f"r = {sums}", {"w": w})
        v = whole("i8", 16, o, 1, 1) if o * 16 >= 256 else None
        hidden = requantise(total, np.float32(0.001), "u8")
        cases.add(f"pairs_chain{number}", [x], convolve(hidden.astype(np.int64) - 3, v).astype(np.int32),
                  f"h = u8(minimum(maximum(round(f32({sums}) * 0.001) + 3.0, 0.0), 255.0))\n    r = conv2d(i32(h) - 3, i32(v))", {"w": w, "v": v})
        number += 1


def layers(cases):
    """Weights of i32 become f32: fewer products, by Winograd's algorithm, would be other sums."""
    x, u, w = whole("u8", 1, 16, 20, 20), whole("i8", 64, 16, 1, 1), DRAW.integers(-3, 4, (64, 64, 3, 3)).astype(np.int32)
    hidden = requantise(convolve(x, u), np.float32(0.002), "u8")
    cases.add("layers", [x], convolve(hidden, w, 1).astype(np.int32),
              "h = u8(minimum(maximum(round(f32(conv2d(i32(x), i32(u))) * 0.002) + 3.0, 0.0), 255.0))\n    "
              "r = conv2d(i32(h), w, pad = 1)", {"u": u, "w": w})


def sequence(cases):
    """Sums just below 2^24, of rows that Strassen's algorithm would take: those of quarters would be beyond it."""
    x, w = whole("u8", 1, 128, 512) | 249, DRAW.integers(120, 128, (512, 512)).astype(np.int32)
    cases.add("sequence", [x], (x[0].astype(np.int64) @ w).astype(np.int32)[None], "r = i32(x) @ w", {"w": w})


def casts(cases):
    ends = [e + d for low, high in ENDS.values() for e in (low, high) for d in (-1.5, -1, -0.5, 0, 0.5, 1, 1.5)]
    x = np.array([*ends, np.nan, np.inf, -np.inf, 1e20, -1e20, -0.0, 2147483520, 2147483648], np.float32)
    for dtype in ENDS:
        cases.add(f"cast_{dtype}", [x], cut(x, dtype), f"r = {dtype}(x)")


def make():
    cases = Cases()
    products(cases)
    convolutions(cases)
    pairs(cases)
    layers(cases)
    sequence(cases)
    casts(cases)
    return cases


CASES = make()


def test(arguments, target, cc, folder):
    """None, or what is wrong."""
    (folder / "integers.nnc").write_text(CASES.text)
    write_safetensors(CASES.arrays, folder / "integers.safetensors")
    error = build.emit(arguments.nnc, folder / "integers.nnc", folder, target, "--weights", "c", "--name", "integers")
    error = error or build.compile_source(folder / "integers.c", target, cc, *FLAGS)
    error = error or build.command([cc, "-shared", folder / "integers.o", "-lm", "-o", folder / "libintegers.so"])
    if error:
        return error
    stream = Model(folder / "libintegers.so", "integers", {}).stream()
    for name, expected in CASES.expected.items():
        got = getattr(stream, name)(*CASES.inputs[name])
        wrong = np.argwhere(got != expected)
        assert not len(wrong), f"{name}: {len(wrong)} of {expected.size} differ; at {wrong[0]}: {got[tuple(wrong[0])]}, not {expected[tuple(wrong[0])]}"
    return None


def main():
    arguments = build.take_arguments(__doc__, list(build.FEATURES))
    return build.report([(f"{target} with {cc}", target, cc, (arguments, target, cc)) for target in arguments.target
                         for cc in arguments.cc], test)


if __name__ == "__main__":
    sys.exit(main())
