#!/usr/bin/python3
"""Floats of 16 bits: every one of them is read, and floats of 32 bits are rounded, as NumPy does; in vectors and one by one.

    halves.py --nnc build/nnc [--target T ...] [--cc CC ...]

Speaks TAP.
"""

import pathlib
import sys

import numpy as np

import build
from streams import Model

TARGETS = ["generic", "x86-64-v2", "x86-64-v3", "x86-64-v4"]
COUNT = 1 << 17
TEXT = f"""nnc 1
graph rounds(x: f32[{COUNT}]) -> (f: f16[{COUNT}], b: bf16[{COUNT}], g: f32[{COUNT}]) {{
    f = f16(x)
    b = bf16(x)
    g = f32(f16(x)) * 1.0 + f32(bf16(x)) * 0.0
}}
graph reads(f: f16[65536], b: bf16[65536]) -> (x: f32[65536], y: f32[65536], z: f16[65536]) {{
    x = f32(f) * 1.0
    y = f32(b) * 1.0
    z = relu(f) + f
}}
"""


def bits_to_round():
    """Any bits, and around each f16 and each bf16 those of it, of what is halfway to the next, and their neighbours."""
    draw = np.random.default_rng(1)
    near = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32).view(np.uint32)
    near = draw.choice(near, 3000)
    step = np.array([0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF, 0x7FFF, 0x8000, 0x8001], np.uint32)
    around = (near[:, None] + step).ravel()
    tiny = draw.integers(0, 0x38800001, 4000, dtype=np.uint32)
    edges = np.array([0, 1, 0x33000000, 0x33000001, 0x38800000, 0x387FFFFF, 0x477FEFFF, 0x477FF000, 0x7F7F8000, 0x7F7F7FFF,
                      0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF], np.uint32)
    bits = np.concatenate([around, tiny, edges, draw.integers(0, 2**31, COUNT, dtype=np.uint32)])[:COUNT]
    return np.where(np.arange(COUNT) % 3 == 0, bits | np.uint32(1 << 31), bits).astype(np.uint32)


def nearest_bf16(x):
    """As f32, by f64: of the two neighbours the nearer, of a tie the even one."""
    low = (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    high = ((x.view(np.uint32) & np.uint32(0xFFFF0000)) + np.uint32(0x10000)).view(np.float32)
    above = np.where(np.isinf(high), np.sign(high) * 2.0**128, high.astype(np.float64))
    to_low, to_high = abs(x - low.astype(np.float64)), abs(above - x)
    odd = (low.view(np.uint32) >> 16) & 1 == 1
    return np.where(np.isfinite(x), np.where((to_high < to_low) | ((to_high == to_low) & odd), high, low), x)


def same(what, got, want):
    wrong = np.flatnonzero(~((got.view(got.dtype) == want) & (np.signbit(got) == np.signbit(want)) | (np.isnan(got) & np.isnan(want))))
    assert not wrong.size, f"{what}: {wrong.size} are wrong, the first at {wrong[0]}: {got[wrong[0]]} for {want[wrong[0]]}"


def wide(bf16):
    return (bf16.astype(np.uint32) << 16).view(np.float32)


def test(arguments, target, cc, folder):
    """None, or what is wrong."""
    (folder / "h.nnc").write_text(TEXT)
    error = build.library(arguments.nnc, folder / "h.nnc", folder, target, f"{cc} -O2")
    if error:
        return error
    stream = Model(folder / "libh.so", "h", {}).stream()
    x = bits_to_round().view(np.float32)
    all_of_16 = np.arange(1 << 16, dtype=np.uint16)
    with np.errstate(all="ignore"):
        f, b, g = stream.rounds(x)
        same("to f16", f.view(np.float16).ravel(), x.astype(np.float16))
        same("to bf16", wide(b.view(np.uint16).ravel()), nearest_bf16(x))
        finite = np.isfinite(x) & np.isfinite(nearest_bf16(x))
        same("to f16 and back", g.ravel()[finite], x.astype(np.float16).astype(np.float32)[finite])
        x, y, z = stream.reads(all_of_16.view(np.float16), all_of_16)
        h = all_of_16.view(np.float16)
        same("from f16", x.ravel(), h.astype(np.float32))
        same("from bf16", y.ravel(), wide(all_of_16))
        same("in f16", z.view(np.float16).ravel()[h != 0], (np.maximum(h, np.float16(0)) + h)[h != 0])
    return None


def main():
    arguments = build.take_arguments(__doc__, TARGETS)
    cases = [(f"{target} with {cc}{flags}", target, cc, (arguments, target, cc + flags)) for target in arguments.target for cc in arguments.cc
             for flags in (["", " -DNNC_NO_VECTORS", " -march=x86-64-v3"] if target == "generic" and build.available("x86-64-v3", cc) else [""])]
    return build.report(cases, test)


if __name__ == "__main__":
    sys.exit(main())
