#!/usr/bin/python3
"""Contractions of f32 whose operands are taken apart into bf16: sums have NumPy's bits, added in the order that the tile
registers do, and are near to those in f64.

    parts.py --nnc build/nnc [--cc CC ...]

Speaks TAP.
"""

import sys

import numpy as np

import build
from dots import Sums
from streams import Model, write_safetensors

TARGET = "x86-64-v4-amx"
DRAW = np.random.default_rng(7)
PARTS = 2
BOUND = 3 * 2.0 ** -16  # of the sum of the amounts of all products
FLAGS = ["-O1", "-ffp-contract=fast", "-fno-math-errno"]


def floats(*shape):
    """Of many sizes, and some that are 0."""
    x = DRAW.standard_normal(shape).astype(np.float32) * np.exp2(DRAW.integers(-6, 7, shape)).astype(np.float32)
    return x * (DRAW.random(shape) < 0.95).astype(np.float32)


def nearest(x):
    """The bf16 that is nearest, the even one of two."""
    bits = x.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)).view(np.float32)


def taken_apart(x):
    parts = []
    for _ in range(PARTS):
        parts.append(nearest(x))
        x = x - parts[-1]
    return parts


def sums_of_parts(x, w, pairs):
    """Of each step of so many pairs the products of parts, the largest first: the even ones, the odd ones, then both."""
    x, w, total = taken_apart(x), taken_apart(w), np.zeros((x.shape[0], w.shape[1]), np.float32)
    for k in range(0, x[0].shape[1], 2 * pairs):
        for a, b in ((part, whole - part) for whole in range(PARTS) for part in range(whole + 1)):
            sums = [np.zeros_like(total), np.zeros_like(total)]
            for i in range(2 * pairs):
                sums[i % 2] = sums[i % 2] + x[a][:, k + i:k + i + 1] * w[b][k + i]
            total = total + (sums[0] + sums[1])
    return total


class Parts(Sums):
    dtype, read, draw, kept = "f32", "{}", staticmethod(floats), staticmethod(lambda x: x)

    def in_order(self, a, b, pairs):
        return {"amx": sums_of_parts(a, b, pairs)}


def make():
    cases = Parts()
    for extents in (1, 64, 40), (7, 39, 32), (75, 160, 56), (16, 24, 32), (70, 512, 48):  # 512: pixels are set apart
        cases.product(*extents)
    cases.convolution((2, 16, 6, 13), 24, 3, 1)
    cases.convolution((1, 5, 9, 9), 40, 3, 1, 2)
    cases.convolution((1, 3, 17, 20), 16, 7, 3, 2)
    cases.convolution((3, 24, 5, 7), 32, 1, 0, 2)
    cases.convolution((1, 256, 5, 7), 32, 1)
    return cases


CASES = make()


def library(arguments, folder, cc):
    text = "nnc 1\n" + "".join(CASES.text.values())
    (folder / "sums.nnc").write_text(text.replace("RECIPE", "@kernel(0, amx)"))
    write_safetensors(CASES.arrays, folder / "sums.safetensors")
    error = build.emit(arguments.nnc, folder / "sums.nnc", folder, TARGET, "--precision", "high", "--weights", "c", "--name", "sums")
    error = error or build.compile_source(folder / "sums.c", TARGET, cc, *FLAGS)
    return error or build.command([cc, "-shared", folder / "sums.o", "-lm", "-o", folder / "libsums.so"])


def test_sums(arguments, cc, folder):
    """None, or what is wrong."""
    error = library(arguments, folder, cc)
    if error:
        return error
    stream = Model(folder / "libsums.so", "sums", {}).stream()
    for name, (x, sums, wide, amounts) in CASES.cases.items():
        got = getattr(stream, name)(x)
        off = np.max(abs(got - wide) / amounts)
        assert off <= BOUND, f"{name}: off by {off} of the amounts"
        wrong = np.argwhere(got != sums["amx"])
        assert not len(wrong), f"{name}: {len(wrong)} of {got.size} differ from NumPy; at {wrong[0]}"
    return None


def test_special(arguments, cc, folder):
    """What is no number reaches its row alone, and where it is subnormal it counts as 0."""
    error = library(arguments, folder, cc)
    if error:
        return error
    x, sums, _, _ = CASES.cases["product_75_160_56"]
    x = x.copy()
    x[3, 7], x[5, 9], x[9] = np.nan, np.inf, 1e-40
    got = Model(folder / "libsums.so", "sums", {}).stream().product_75_160_56(x)
    others = np.setdiff1d(np.arange(75), [3, 5, 9])
    assert np.all(got[others] == sums["amx"][others]), "other rows differ"
    assert np.all(np.isnan(got[3])), "a NaN is lost"
    assert not np.any(np.isfinite(got[5])), "an infinity is lost"
    assert np.max(abs(got[9])) < 1e-35, "subnormal numbers are more than they are"
    return None


def main():
    arguments = build.take_arguments(__doc__, [TARGET])
    cases = [(f"sums with {cc}", TARGET, cc, (test_sums, cc)) for cc in arguments.cc]
    cases += [(f"no numbers with {cc}", TARGET, cc, (test_special, cc)) for cc in arguments.cc]

    def go(test, *words):
        return test(arguments, *words)

    return build.report(cases, go)


if __name__ == "__main__":
    sys.exit(main())
