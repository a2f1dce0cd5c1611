#!/usr/bin/python3
"""Contractions by OpenBLAS: products of matrices as they lie in memory, of copies, of batches and of what windows see.

    openblas.py --nnc build/nnc [--target T ...] [--cc CC ...]

Results are compared with NumPy's.  Every graph is checked to call the library.  Speaks TAP; all is skipped where there is
no libopenblas.
"""

import ctypes.util
import os
import pathlib
import re
import subprocess
import sys

import numpy as np

import build

TARGETS = ["generic", "x86-64-v3", "x86-64-v4"]
os.environ["OPENBLAS_NUM_THREADS"] = "1"


def conv(x, w, stride=1, dilation=1, pad=0, groups=1):
    """Of any number of dimensions."""
    rank = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0)] + [(pad, pad)] * rank)
    size = [(x.shape[2 + d] - dilation * (w.shape[2 + d] - 1) - 1) // stride + 1 for d in range(rank)]
    parts = []
    for part, weight in zip(np.split(x, groups, 1), np.split(w, groups, 0)):
        result = 0
        for tap in np.ndindex(*w.shape[2:]):
            seen = tuple(slice(t * dilation, t * dilation + (n - 1) * stride + 1, stride) for t, n in zip(tap, size))
            result = result + np.einsum("nc...,oc->no...", part[(slice(None), slice(None), *seen)], weight[(slice(None), slice(None), *tap)])
        parts.append(result)
    return np.concatenate(parts, 1)


def spread(x, w, stride, pad):
    """A transposed convolution of one dimension, tap by tap."""
    n, _, wide = x.shape
    y = np.zeros((n, w.shape[1], (wide - 1) * stride + w.shape[2]))
    for tap in range(w.shape[2]):
        y[:, :, tap:tap + (wide - 1) * stride + 1:stride] += np.einsum("ncw,co->now", x, w[:, :, tap])
    return y[:, :, pad:y.shape[2] - pad]


def relu(x):
    return np.maximum(x, 0)


# What it is: inputs, the result's type, what it is in .nnc, and in NumPy.
CASES = {
    "rows": ("x: f32[9, 40], w: f32[40, 17]", "f32[9, 17]", "x @ w", lambda x, w: x @ w),
    "many_rows": ("x: f32[600, 40], w: f32[40, 17], b: f32[17]", "f32[600, 17]", "relu(x @ w + b)", lambda x, w, b: relu(x @ w + b)),
    "prime_rows": ("x: f32[1009, 20], w: f32[20, 8]", "f32[1009, 8]", "x @ w", lambda x, w: x @ w),
    "doubles": ("x: f64[33, 70], w: f64[70, 50]", "f64[33, 50]", "exp(x @ w * 0.1)", lambda x, w: np.exp(x @ w * 0.1)),
    "halves": ("x: f16[33, 70], w: f16[70, 50]", "f16[33, 50]", "x @ w", lambda x, w: x @ w),
    "right_transposed": ("x: f32[9, 40], w: f32[17, 40]", "f32[9, 17]", "matmul(x, w, transpose_y = true)", lambda x, w: x @ w.T),
    "left_transposed": ("x: f32[40, 9], w: f32[40, 17]", "f32[9, 17]", "matmul(transpose(x), w)", lambda x, w: x.T @ w),
    "made_transposed": ("x: f32[9, 40], w: f32[40, 17]", "f32[17, 9]", "transpose(x @ w) * 1.0", lambda x, w: (x @ w).T),
    "batches": ("x: f32[3, 9, 40], w: f32[3, 40, 17]", "f32[3, 9, 17]", "x @ w", lambda x, w: x @ w),
    "batches_as_rows": ("x: f32[3, 2, 9, 40], w: f32[40, 17]", "f32[3, 2, 9, 17]", "tanh(x @ w)", lambda x, w: np.tanh(x @ w)),
    "batches_repeated": ("x: f32[2, 1, 9, 40], w: f32[5, 40, 17]", "f32[2, 5, 9, 17]", "x @ w", lambda x, w: x @ w),
    "heads": ("x: f32[2, 9, 4, 8], w: f32[2, 11, 4, 8]", "f32[2, 4, 9, 11]",
              "transpose(x, axes = [0, 2, 1, 3]) @ transpose(w, axes = [0, 2, 3, 1])",
              lambda x, w: np.einsum("bihd,bjhd->bhij", x, w)),
    "vector": ("x: f32[40], w: f32[40, 17]", "f32[17]", "x @ w", lambda x, w: x @ w),
    "one_row": ("x: f32[1, 40], w: f32[40, 17]", "f32[1, 17]", "x @ w + 1.0", lambda x, w: x @ w + 1),
    "parts": ("x: f32[9, 80], w: f32[80, 34]", "f32[9, 17]", "x[:, 20:60] @ w[20:60, 3:20]", lambda x, w: x[:, 20:60] @ w[20:60, 3:20]),
    "backwards": ("x: f32[9, 40], w: f32[40, 17]", "f32[9, 17]", "flip(x, axes = 1) @ w", lambda x, w: x[:, ::-1] @ w),
    "square": ("x: f32[24, 24]", "f32[24, 24]", "x @ x", lambda x: x @ x),
    "over_itself": ("x: f32[24, 24], w: f32[24, 24]", "f32[24, 24]", "exp(x) + exp(x) @ w", lambda x, w: np.exp(x) + np.exp(x) @ w),
    "joined": ("x: f32[9, 40], w: f32[40, 17]", "f32[9, 57]", "concat(x @ w, x, axis = 1)", lambda x, w: np.concatenate([x @ w, x], 1)),
    "pixels": ("x: f32[2, 24, 5, 7], w: f32[10, 24, 1, 1], b: f32[10]", "f32[2, 10, 5, 7]", "relu(conv2d(x, w, b))",
               lambda x, w, b: relu(conv(x, w) + b[:, None, None])),
    "windows": ("x: f32[2, 5, 11, 13], w: f32[10, 5, 3, 3], b: f32[10]", "f32[2, 10, 11, 13]", "conv2d(x, w, b, pad = 1)",
                lambda x, w, b: conv(x, w, pad=1) + b[:, None, None]),
    "strides": ("x: f32[1, 5, 21, 18], w: f32[10, 5, 5, 5], z: f32[1, 10, 11, 9]", "f32[1, 10, 11, 9]", "conv2d(x, w, pad = 2, stride = 2) + z",
                lambda x, w, z: conv(x, w, stride=2, pad=2) + z),
    "holes": ("x: f32[1, 5, 21, 18], w: f32[10, 5, 3, 3]", "f32[1, 10, 19, 16]", "conv2d(x, w, pad = 2, dilation = 3)[:, :, 0:19, 0:16]",
              lambda x, w: conv(x, w, dilation=3, pad=2)),
    "groups": ("x: f32[2, 12, 9, 9], w: f32[15, 4, 3, 3]", "f32[2, 15, 9, 9]", "conv2d(x, w, pad = 1, groups = 3)",
               lambda x, w: conv(x, w, pad=1, groups=3)),
    "large": ("x: f32[1, 32, 64, 66], w: f32[24, 32, 3, 3]", "f32[1, 24, 64, 66]", "conv2d(x, w, pad = 1)", lambda x, w: conv(x, w, pad=1)),
    "padding_alone": ("x: f32[1, 4, 1, 2], w: f32[6, 4, 3, 3]", "f32[1, 6, 7, 8]", "conv2d(x, w, pad = 4)", lambda x, w: conv(x, w, pad=4)),
    "windows_of_view": ("x: f32[2, 5, 9, 8], w: f32[10, 5, 3, 3]", "f32[2, 10, 8, 9]", "conv2d(reshape(transpose(x, axes = [0, 1, 3, 2]), shape = [2, 5, 8, 9]), w, pad = 1)",
                        lambda x, w: conv(x.swapaxes(2, 3), w, pad=1)),
    "windows_of_cut": ("x: f32[18, 5, 8], w: f32[10, 5, 3, 3]", "f32[4, 10, 9, 2]", "conv2d(reshape(transpose(x, axes = [2, 1, 0])[::2], shape = [4, 5, 9, 2]), w, pad = 1)",
                       lambda x, w: conv(x.transpose(2, 1, 0)[::2].reshape(4, 5, 9, 2), w, pad=1)),
    "volume": ("x: f32[1, 3, 4, 5, 6], w: f32[8, 3, 3, 3, 3]", "f32[1, 8, 4, 5, 6]", "conv3d(x, w, pad = 1)", lambda x, w: conv(x, w, pad=1)),
    "line": ("x: f64[2, 6, 30], w: f64[7, 6, 5]", "f64[2, 7, 15]", "conv1d(x, w, stride = 2, pad = 2)", lambda x, w: conv(x, w, stride=2, pad=2)),
    "line_transposed": ("x: f32[2, 6, 10], w: f32[6, 7, 4]", "f32[2, 7, 20]", "conv1d_transpose(x, w, stride = 2, pad = 1)",
                        lambda x, w: spread(x, w, 2, 1)),
    "weights_gradient": ("x: f32[2, 6, 9, 9], w: f32[8, 6, 3, 3], z: f32[2, 8, 9, 9]", "f32[8, 6, 3, 3]",
                         "grad(reduce_sum(conv2d(x, w, pad = 1) * z), wrt = [w])",
                         lambda x, w, z: conv(x.swapaxes(0, 1), z.swapaxes(0, 1), pad=1).swapaxes(0, 1)),
    "image_gradient": ("x: f32[2, 6, 9, 9], w: f32[8, 6, 3, 3], z: f32[2, 8, 9, 9]", "f32[2, 6, 9, 9]",
                       "grad(reduce_sum(conv2d(x, w, pad = 1) * z), wrt = [x])",
                       lambda x, w, z: conv(z, w[:, :, ::-1, ::-1].swapaxes(0, 1), pad=1)),
}


def text(label):
    inputs, result, formula, _ = CASES[label]
    return f"graph {label}({inputs}) -> (y: {result}) {{\n    y = {formula}\n}}\n"


def arrays(label):
    draw = np.random.default_rng(len(label))
    for dtype, shape in re.findall(r": (f\d+)\[([\d, ]*)\]", CASES[label][0]):
        yield draw.uniform(-1, 1, [int(n) for n in shape.split(",")]).astype({"f16": np.float16, "f32": np.float32, "f64": np.float64}[dtype])


def check(label, run):
    """None, or what is wrong."""
    inputs = list(arrays(label))
    want = CASES[label][3](*(a.astype(np.float64) for a in inputs))
    got = run(*inputs)
    bound = {np.dtype(np.float16): 2e-3, np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-13}[got.dtype]
    error = np.abs(got.reshape(want.shape) - want).max() / np.abs(want).max()
    return None if error <= bound else f"{label} is off by {error:.2e} of the largest"


def test(arguments, target, cc, flags, folder):
    from streams import Model
    source = folder / "w.nnc"
    source.write_text("nnc 1\nuse \"nn\"\n" + "".join(map(text, CASES)))
    error = build.library(arguments.nnc, source, folder, target, f"{cc} -O1", "--backend", "openblas", *flags)
    if error:
        return error
    shown = subprocess.run([arguments.nnc, "opt", source, "--target", target, "--backend", "openblas"], capture_output=True, text=True, check=True)
    for graph in shown.stdout.split("\ngraph ")[1:]:
        if ", openblas" not in graph:
            return f"no call of the library:\n{graph}"
    stream = Model(folder / "libw.so", "w", {}).stream()
    return next(filter(None, (check(label, getattr(stream, label)) for label in CASES)), None)


def main():
    arguments = build.take_arguments(__doc__, TARGETS)
    if not ctypes.util.find_library("openblas"):
        print("1..0 # SKIP no libopenblas")
        return 0
    cases = [(f"{target} with {cc}{' '.join(['', *flags])}", target, cc, (arguments, target, cc, flags))
             for target in arguments.target for cc in arguments.cc for flags in ([], ["--threads", "3"])]
    return build.report(cases, test)


if __name__ == "__main__":
    sys.exit(main())
