#!/usr/bin/python3
"""Products by Strassen's algorithm: what they give for many shapes, and how far off it is on hard data.

    strassen.py --nnc build/nnc [--target T ...] [--cc CC ...]

Results are compared with NumPy's, in f64.  They may be off by 1e-5 of the largest result; by as much of the largest sum
of absolute values where results are what is left of sums that cancel.  Speaks TAP.
"""

import sys

import numpy as np

from winograd import BOUND, constant, normal, positive, run, spikes, spread

FORMS = [(5, ""), (16, ", pixels = 3"), (64, ""), (7, ", pixels = 2")]  # rows of half a block at most, and what else is asked for
TARGETS = ["x86-64-v3", "x86-64-v4"]


class Image(tuple):
    """A shape of one."""


class Case:
    """y of rows [..., rows, depth], or of an image [n, depth, h, w], which a convolution before it leaves in blocks."""

    def __init__(self, x, columns, rest="relu({c} + b)", data=normal, weights=normal, cancels=False):
        self.x, self.columns, self.rest, self.data, self.weights, self.cancels = x, columns, rest, data, weights, cancels
        self.image = isinstance(x, Image)
        self.depth = self.x[1] if self.image else self.x[-1]
        self.y = (self.x[0], columns, *self.x[2:]) if self.image else (*self.x[:-1], columns)

    def text(self, form):
        rows = int(np.prod(self.x[2:])) if self.image else self.x[-2]
        mark = f"@kernel(9, strassen, half = {min(form[0], (rows + 1) // 2)}{form[1]})"
        x, y = (", ".join(map(str, shape)) for shape in (self.x, self.y))
        if self.image:
            bias, params = "reshape(b, shape = [1, -1, 1, 1])", f"u: f32[{self.depth}, {self.depth}, 1, 1]\n    param v: f32[{self.columns}, {self.depth}, 1, 1]"
            made = f"i = conv2d(x, u)\n    c = conv2d(i, v) {mark}"
        else:
            bias, params, made = "b", f"v: f32[{self.depth}, {self.columns}]", f"c = matmul(x, v) {mark}"
        return (f"nnc 1\ngraph w(x: f32[{x}], z: f32[{y}]) -> (y: f32[{y}]) {{\n    param {params}\n    param b: f32[{self.columns}]\n"
                f"    {made}\n    y = {self.rest.format(c='c').replace('b)', bias + ')')}\n}}\n")

    def arrays(self):
        draw = np.random.default_rng(1)
        v = self.weights(draw, (self.depth, self.columns)) / np.sqrt(self.depth)
        if self.cancels:
            v -= v.mean(axis=0, keepdims=True)
        arrays = {"v": v.astype(np.float32), "b": draw.normal(size=self.columns).astype(np.float32)}
        if self.image:
            arrays["v"] = np.ascontiguousarray(arrays["v"].T)[:, :, None, None]
            arrays["u"] = np.eye(self.depth, dtype=np.float32)[:, :, None, None]
        return arrays

    def product(self, x, v):
        return np.einsum("nc...,oc->no...", x, v[:, :, 0, 0]) if self.image else x @ v

    def check(self, run, arrays):
        draw, v, b = np.random.default_rng(2), arrays["v"].astype(np.float64), arrays["b"].astype(np.float64)
        b = b[None, :, None, None] if self.image else b
        x = self.data(draw, self.x).astype(np.float32)
        c = self.product(x.astype(np.float64), v)
        z = draw.normal(size=c.shape).astype(np.float32)
        want = eval(self.rest.format(c="c"), {"c": c, "b": b, "z": z.astype(np.float64), "relu": lambda t: np.maximum(t, 0), "tanh": np.tanh})
        largest = self.product(np.abs(x.astype(np.float64)), np.abs(v)).max() if self.cancels else np.abs(c).max()
        error = np.abs(run(x, z).reshape(want.shape) - want).max() / largest
        assert error <= BOUND, f"off by {error:.2e} of the largest"


CASES = {
    "rows that fill all blocks": Case((1, 40, 64), 192),
    "an odd row": Case((1, 37, 64), 192, rest="{c} + z"),
    "two rows": Case((1, 2, 32), 192),
    "sequences of a batch": Case((3, 19, 64), 192, rest="relu({c} + z)"),
    "sequences of two batches": Case((2, 3, 11, 32), 192, rest="{c}"),
    "panels of two vectors": Case((1, 33, 96), 128, rest="tanh({c})"),
    "panels of three vectors": Case((1, 21, 64), 96),
    "an image in blocks": Case(Image((1, 64, 7, 7)), 192, rest="relu({c} + z)"),
    "images of a batch": Case(Image((2, 32, 5, 9)), 192, rest="relu({c} + b)"),
    "a row of an image": Case(Image((1, 32, 1, 13)), 192, rest="{c}"),
    "deep": Case((1, 30, 2048), 192, rest="{c}"),
    "as deep as it goes, of one sign": Case((1, 128, 4096), 192, rest="{c}", data=positive, weights=positive),
    "rows whole pages apart": Case((1, 30, 1024), 192, rest="{c}"),
    "after relu": Case((1, 50, 256), 192, rest="{c}", data=positive),
    "one sign": Case((1, 50, 256), 192, rest="{c}", data=positive, weights=positive),
    "eight orders of magnitude": Case((1, 50, 256), 192, rest="{c}", data=spread),
    "spikes": Case((1, 50, 256), 192, rest="{c}", data=spikes),
    "sums that cancel": Case((1, 50, 256), 192, rest="{c}", data=constant, cancels=True),
}


if __name__ == "__main__":
    sys.exit(run(__doc__, TARGETS, CASES, FORMS))
