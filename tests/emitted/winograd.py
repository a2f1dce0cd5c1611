#!/usr/bin/python3
"""Convolutions by Winograd's algorithm: what each form gives for many shapes, and how far off it is on hard data.

    winograd.py --nnc build/nnc [--target T ...] [--cc CC ...]

Results are compared with NumPy's, in f64.  They may be off by 1e-5 of the largest result; by as much of the largest sum
of absolute values where results are what is left of sums that cancel.  Speaks TAP.
"""

import sys

import numpy as np

import build
from streams import Model, write_safetensors

BOUND = 1e-5
FORMS = ["results = 2", "results = 4", "results = 2, height = 3", "results = 4, height = 2", "results = 4, height = 1, pixels = 3, vectors = 1"]
TARGETS = ["generic", "x86-64-v3", "x86-64-v4"]


def conv(x, w, pad=(0, 0, 0, 0)):
    top, left, bottom, right = pad
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    h, wide = x.shape[2] - w.shape[2] + 1, x.shape[3] - w.shape[3] + 1
    return sum(np.einsum("nchw,oc->nohw", x[:, :, i:i + h, j:j + wide], w[:, :, i, j])
               for i in range(w.shape[2]) for j in range(w.shape[3]))


def normal(draw, shape):
    return draw.normal(size=shape)


def positive(draw, shape):
    return np.abs(draw.normal(size=shape))


def spread(draw, shape):
    return draw.normal(size=shape) * 10.0 ** draw.uniform(-4, 4, shape)


def spikes(draw, shape):
    return draw.normal(size=shape) * np.where(draw.random(shape) < 0.01, 1e3, 1e-3)


def alternating(draw, shape):
    return positive(draw, shape) * (-1.0) ** np.add.outer(np.arange(shape[2]), np.arange(shape[3]))


def constant(_, shape):
    return np.full(shape, 3.0)


class Case:
    def __init__(self, image, outputs, pad=(1, 1, 1, 1), rest="relu({c} + b)", data=normal, blocks=False, cancels=False, weights=normal):
        self.image, self.outputs, self.pad, self.rest, self.data, self.weights = image, outputs, pad, rest, data, weights
        self.blocks, self.cancels = blocks, cancels  # channels in blocks, made by a convolution before it

    def text(self, form):
        n, c, h, w = self.image
        top, left, bottom, right = self.pad
        shape = f"[{n}, {self.outputs}, {h + top + bottom - 2}, {w + left + right - 2}]"
        made = "conv2d(x, u)" if self.blocks else "x"
        pad = ", ".join(map(str, self.pad))
        y = self.rest.format(c="c").replace("b", "reshape(b, shape = [1, -1, 1, 1])") if "b" in self.rest else self.rest.format(c="c")
        return (f"nnc 1\ngraph w(x: f32[{n}, {c}, {h}, {w}], z: f32{shape}) -> (y: f32{shape}) {{\n"
                f"    param u: f32[{c}, {c}, 1, 1]\n    param v: f32[{self.outputs}, {c}, 3, 3]\n    param b: f32[{self.outputs}]\n"
                f"    i = {made}\n    c = conv2d(i, v, pad = [{pad}]) @kernel(9, winograd, {form})\n    y = {y}\n}}\n")

    def arrays(self):
        draw, (_, c, _, _) = np.random.default_rng(1), self.image
        v = self.weights(draw, (self.outputs, c, 3, 3)) / np.sqrt(9 * c)
        if self.cancels:
            v -= v.mean(axis=(1, 2, 3), keepdims=True)
        return {"u": np.eye(c).reshape(c, c, 1, 1).astype(np.float32), "v": v.astype(np.float32),
                "b": draw.normal(size=self.outputs).astype(np.float32)}

    def check(self, run, arrays):
        draw, v, b = np.random.default_rng(2), arrays["v"].astype(np.float64), arrays["b"].astype(np.float64)[None, :, None, None]
        x = self.data(draw, self.image).astype(np.float32)
        c = conv(x.astype(np.float64), v, self.pad)
        z = draw.normal(size=c.shape).astype(np.float32)
        want = eval(self.rest.format(c="c"), {"c": c, "b": b, "z": z.astype(np.float64), "relu": lambda t: np.maximum(t, 0)})
        largest = conv(np.abs(x.astype(np.float64)), np.abs(v), self.pad).max() if self.cancels else np.abs(c).max()
        error = np.abs(run(x, z).reshape(want.shape) - want).max() / largest
        assert error <= BOUND, f"off by {error:.2e} of the largest"


CASES = {
    "a vector of channels": Case((1, 16, 12, 12), 32),
    "odd extents": Case((2, 24, 13, 7), 40, blocks=True),
    "channels that fill no vector": Case((1, 19, 9, 10), 21),
    "one channel": Case((1, 1, 6, 5), 3, rest="{c}"),
    "no padding": Case((1, 16, 11, 9), 16, (0, 0, 0, 0), "{c} + z", blocks=True),
    "uneven padding": Case((1, 32, 7, 14), 48, (2, 0, 1, 3), "relu({c} + z)", blocks=True),
    "one result": Case((3, 16, 1, 1), 16, blocks=True),
    "a row": Case((1, 16, 1, 33), 16, (1, 0, 1, 1)),
    "deep": Case((1, 256, 6, 6), 32, rest="{c}", blocks=True),
    "after relu": Case((1, 64, 12, 12), 32, rest="{c}", data=positive),
    "one sign": Case((1, 64, 12, 12), 32, rest="{c}", data=positive, weights=positive),
    "alternating signs": Case((1, 64, 12, 12), 32, rest="{c}", data=alternating),
    "eight orders of magnitude": Case((1, 64, 12, 12), 32, rest="{c}", data=spread),
    "spikes": Case((1, 64, 12, 12), 32, rest="{c}", data=spikes),
    "sums that cancel": Case((1, 64, 12, 12), 32, (0, 0, 0, 0), rest="{c}", data=constant, cancels=True),
}


def test(arguments, case, form, target, cc, folder):
    """None, or what is wrong."""
    source, arrays = folder / "w.nnc", case.arrays()
    source.write_text(case.text(form))
    write_safetensors(arrays, folder / "w.safetensors")
    error = build.library(arguments.nnc, source, folder, target, f"{cc} -O0")
    if error:
        return error
    case.check(Model(folder / "libw.so", "w", {}).stream().run, arrays)
    return None


def run(doc, targets, cases, forms):
    """Each case on every target with every compiler, by the forms in turns; the exit status."""
    arguments = build.take_arguments(doc, targets)
    turns = [(label, target, cc, forms[(i + t + k) % len(forms)]) for i, label in enumerate(cases) for t, target in enumerate(arguments.target)
             for k, cc in enumerate(arguments.cc)]
    return build.report([(f"{label}, {form}, {target} with {cc}", target, cc, (arguments, cases[label], form, target, cc))
                         for label, target, cc, form in turns], test)


if __name__ == "__main__":
    sys.exit(run(__doc__, TARGETS, CASES, FORMS))
