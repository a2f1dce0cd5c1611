"""Cases of transposed convolutions and of the gradient of a convolution's weight, from their definition: what each tap
gives to, or takes from, the padded image.  And of convolutions of 1 and 3 dimensions, of all three kinds."""

import itertools
import math

import numpy as np

from cases import numbers
from tensors import FLOATS, Sum, Tensor, widen


class Geometry:
    def __init__(self, size, stride=(1, 1), pad=(0, 0, 0, 0), dilation=(1, 1), groups=1, attrs=""):
        self.size, self.stride, self.pad, self.dilation, self.groups, self.attrs = size, stride, pad, dilation, groups, attrs

    def seen(self, padded, i, j, windows):
        """The pixels that tap i, j of all windows sees."""
        (sh, sw), (dh, dw), (h, w) = self.stride, self.dilation, windows
        return padded[:, :, i * dh:i * dh + sh * (h - 1) + 1:sh, j * dw:j * dw + sw * (w - 1) + 1:sw]

    def grouped(self, x, axis):
        return x.reshape(x.shape[:axis] + (self.groups, x.shape[axis] // self.groups) + x.shape[axis + 1:])

    def to_image(self, x, weight):
        top, left, bottom, right = self.pad
        image = np.zeros((x.shape[0], weight.shape[1] * self.groups, self.size[0] + top + bottom, self.size[1] + left + right))
        for i in range(weight.shape[2]):
            for j in range(weight.shape[3]):
                given = np.einsum("ngohw,goc->ngchw", self.grouped(x, 1), self.grouped(weight[:, :, i, j], 0))
                self.seen(image, i, j, x.shape[2:])[...] += given.reshape(image.shape[:2] + x.shape[2:])
        return image[:, :, top:top + self.size[0], left:left + self.size[1]]

    def to_weight(self, x, d, taps):
        top, left, bottom, right = self.pad
        x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
        weight = np.zeros((d.shape[1], x.shape[1] // self.groups) + taps)
        for i in range(taps[0]):
            for j in range(taps[1]):
                taken = self.grouped(self.seen(x, i, j, d.shape[2:]), 1)
                taken = np.einsum("ngchw,ngohw->goc", taken, self.grouped(d, 1))
                weight[:, :, i, j] = taken.reshape(weight.shape[:2])
        return weight


def transpose_case(cases, x, weight, geometry, bias=False, dtype="f32"):
    tensors = [numbers(dtype, x, weight, geometry.attrs, "x"), numbers(dtype, weight, x, "w")]
    tensors += [numbers(dtype, (weight[1] * geometry.groups,), "b")] if bias else []
    wide = [widen(t.values) for t in tensors]
    want = geometry.to_image(*wide[:2]) + (wide[2][:, None, None] if bias else 0)
    size = geometry.to_image(*map(np.abs, wide[:2])) + (np.abs(wide[2])[:, None, None] if bias else 0)
    cases.add("conv2d_transpose", tensors, Tensor(dtype, want), geometry.attrs, Sum(weight[0] * weight[2] * weight[3], size))


def transpose_cases(cases):
    for dtype in FLOATS + ["i32"]:
        transpose_case(cases, (1, 3, 4, 5), (3, 2, 3, 3), Geometry((6, 7)), dtype=dtype)
    transpose_case(cases, (2, 3, 4, 5), (3, 4, 2, 3), Geometry((8, 11), (2, 2), attrs="stride = 2"), bias=True)
    transpose_case(cases, (1, 2, 4, 4), (2, 3, 4, 4), Geometry((8, 8), (2, 2), (1, 1, 1, 1), attrs="stride = 2, pad = 1"))
    transpose_case(cases, (1, 2, 4, 4), (2, 3, 3, 3), Geometry((8, 8), (2, 2), (0, 0, 1, 1), attrs='stride = 2, pad = "same"'))
    transpose_case(cases, (1, 4, 3, 3), (4, 1, 3, 3), Geometry((7, 8), (2, 3), (0, 1, 0, 0), groups=4,
                   attrs="stride = [2, 3], pad = [0, 1, 0, 0], groups = 4, size = [7, 8]"), bias=True)
    transpose_case(cases, (1, 6, 3, 2), (6, 2, 2, 2), Geometry((6, 7), (1, 3), dilation=(3, 2), groups=3,
                   attrs="stride = [1, 3], dilation = [3, 2], groups = 3, size = [6, 7]"))
    transpose_case(cases, (1, 17, 9, 9), (17, 33, 1, 1), Geometry((9, 9)))
    transpose_case(cases, (1, 1, 1, 1), (1, 1, 5, 4), Geometry((5, 4)))
    transpose_case(cases, (0, 2, 4, 4), (2, 3, 3, 3), Geometry((6, 6)))
    wide_transpose_cases(cases)


def wide_transpose_cases(cases):
    """Channels that fill vectors: a phase of its own for each remainder of the strides, some without a tap."""
    transpose_case(cases, (2, 16, 7, 9), (16, 48, 3, 3), Geometry((7, 9), pad=(1, 1, 1, 1), attrs="pad = 1"), bias=True)
    transpose_case(cases, (2, 18, 6, 5), (18, 33, 3, 3), Geometry((12, 10), (2, 2), (0, 0, 1, 1), attrs='stride = 2, pad = "same"'))
    transpose_case(cases, (1, 32, 8, 20), (32, 16, 3, 3), Geometry((15, 40), (2, 2), (1, 1, 1, 0),
                   attrs="stride = 2, pad = [1, 1, 1, 0], size = [15, 40]"), bias=True)
    transpose_case(cases, (3, 16, 5, 4), (16, 32, 1, 1), Geometry((10, 7), (2, 2), attrs="stride = 2, size = [10, 7]"), bias=True)
    transpose_case(cases, (1, 16, 4, 5), (16, 20, 2, 2), Geometry((11, 10), (3, 2), attrs="stride = [3, 2]"))
    transpose_case(cases, (1, 16, 6, 7), (16, 16, 4, 3), Geometry((17, 9), (2, 1), (0, 1, 0, 1), (2, 2),
                   attrs="stride = [2, 1], dilation = 2, pad = [0, 1, 0, 1]"))
    transpose_case(cases, (1, 16, 3, 3), (16, 16, 3, 4), Geometry((15, 24), (4, 6), dilation=(3, 3),
                   attrs="stride = [4, 6], dilation = 3, size = [15, 24]"))
    transpose_case(cases, (1, 40, 3, 2), (40, 16, 5, 5), Geometry((7, 4), (3, 2), (2, 2, 2, 1),
                   attrs="stride = [3, 2], pad = [2, 2, 2, 1], size = [7, 4]"))
    transpose_case(cases, (1, 16, 1, 1), (16, 16, 3, 3), Geometry((1, 1), (2, 2), (1, 1, 1, 1), attrs="stride = 2, pad = 1"))


def weight_case(cases, x, d, taps, geometry, dtype="f32"):
    tensors = [numbers(dtype, x, d, geometry.attrs, "x"), numbers(dtype, d, x, "d")]
    wide = [widen(t.values) for t in tensors]
    attrs = ", ".join(filter(None, [f"size = {list(taps)}", geometry.attrs]))
    size = geometry.to_weight(*map(np.abs, wide), taps)
    cases.add("conv2d_weight_gradient", tensors, Tensor(dtype, geometry.to_weight(*wide, taps)), attrs,
              Sum(d[0] * d[2] * d[3], size))


def weight_cases(cases):
    for dtype in FLOATS + ["i32"]:
        weight_case(cases, (2, 3, 6, 5), (2, 4, 4, 3), (3, 3), Geometry(None), dtype)
    weight_case(cases, (1, 3, 9, 8), (1, 5, 4, 4), (3, 2), Geometry(None, (2, 2), attrs="stride = 2"))
    weight_case(cases, (3, 2, 5, 5), (3, 2, 5, 5), (3, 3), Geometry(None, pad=(1, 1, 1, 1), attrs="pad = 1"))
    weight_case(cases, (1, 4, 7, 7), (1, 4, 3, 3), (3, 3), Geometry(None, (2, 2), groups=4, attrs="stride = 2, groups = 4"))
    weight_case(cases, (2, 6, 8, 9), (2, 4, 4, 5), (3, 3), Geometry(None, (1, 1), dilation=(2, 2), groups=2,
                attrs="dilation = 2, groups = 2"))
    weight_case(cases, (1, 33, 4, 4), (1, 17, 4, 4), (1, 1), Geometry(None))
    weight_case(cases, (0, 3, 4, 4), (0, 2, 2, 2), (3, 3), Geometry(None))
    wide_weight_cases(cases)


def wide_weight_cases(cases):
    """Outputs and channels that fill vectors or leave a rest, rows that are channels or taps, chunks of lines or images."""
    same = Geometry(None, pad=(1, 1, 1, 1), attrs="pad = 1")
    weight_case(cases, (2, 32, 7, 9), (2, 48, 7, 9), (3, 3), same)
    weight_case(cases, (6, 16, 4, 5), (6, 32, 4, 5), (3, 3), same)
    weight_case(cases, (1, 16, 40, 33), (1, 16, 40, 33), (3, 3), same)
    weight_case(cases, (2, 3, 12, 12), (2, 32, 12, 12), (5, 5), Geometry(None, pad=(2, 2, 2, 2), attrs="pad = 2"))
    weight_case(cases, (2, 1, 28, 28), (2, 20, 24, 24), (5, 5), Geometry(None))
    weight_case(cases, (1, 3, 21, 22), (1, 64, 11, 11), (7, 7), Geometry(None, (2, 2), (3, 3, 3, 3), attrs="stride = 2, pad = 3"))
    weight_case(cases, (3, 13, 6, 7), (3, 17, 6, 7), (1, 1), Geometry(None))
    weight_case(cases, (2, 24, 10, 9), (2, 33, 3, 3), (3, 2), Geometry(None, (2, 3), dilation=(2, 2), attrs="stride = [2, 3], dilation = 2"))
    weight_case(cases, (2, 16, 9, 8), (2, 16, 5, 4), (3, 3), Geometry(None, (2, 2), (1, 0, 1, 1), attrs="stride = 2, pad = [1, 0, 1, 1]"))
    weight_case(cases, (1, 2, 3, 40), (1, 16, 3, 30), (1, 11), Geometry(None))
    weight_case(cases, (1, 16, 3, 3), (1, 16, 5, 5), (3, 3), Geometry(None, pad=(2, 2, 2, 2), attrs="pad = 2"))


# What windows give to the elements that equal theirs, and take from them

def match_case(cases, shape, size, stride, before, after, attrs, dtype="f32"):
    """Along one dimension after [n, c]; few distinct numbers, so that several are the largest."""
    x = np.floor(np.abs(numbers(dtype, shape, attrs, "x").values.astype(np.float64)))
    windows = (shape[2] + before + after - size) // stride + 1
    inside = [[i for i in range(w * stride - before, w * stride - before + size) if 0 <= i < shape[2]] for w in range(windows)]
    y = np.stack([x[:, :, i].max(axis=2) for i in inside], axis=2)
    given, taken = numbers(dtype, y.shape, attrs, "given"), numbers(dtype, shape, attrs, "taken")
    spread, collected = np.zeros(shape), np.zeros(y.shape)
    for w, seen in enumerate(inside):
        for i in seen:
            match = x[:, :, i] == y[:, :, w]
            spread[:, :, i] += match * widen(given.values)[:, :, w]
            collected[:, :, w] += match * widen(taken.values)[:, :, i]
    x, y = Tensor(dtype, x), Tensor(dtype, y)
    cases.add("pool_spread", [x, y, given], Tensor(dtype, spread), attrs, Sum(size, 4 * size))
    cases.add("pool_collect", [x, y, taken], Tensor(dtype, collected), attrs, Sum(size, 4 * size))


def match_cases(cases):
    for dtype in FLOATS:
        match_case(cases, (2, 3, 17), 3, 2, 0, 0, "window = 3, stride = 2", dtype)
    match_case(cases, (1, 33, 9), 2, 2, 0, 0, "window = 2")
    match_case(cases, (1, 2, 10), 5, 1, 2, 2, "window = 5, stride = 1, pad = 2")
    match_case(cases, (1, 2, 10), 3, 4, 1, 0, "window = 3, stride = 4, pad = [1, 0]")


# 1 and 3 dimensions

class Spatial:
    """The same for any number of dimensions: all three kinds of op as sums over taps of slices of the padded image."""

    def __init__(self, image, taps, stride=1, pad=0, dilation=1, groups=1):
        every = lambda v: [v] * len(image) if isinstance(v, int) else list(v)
        self.image, self.taps, self.groups = image, taps, groups
        self.stride, self.dilation = every(stride), every(dilation)
        ends = every(pad)
        self.pad = list(zip(ends, ends[len(image):] or ends))
        spans = [d * (k - 1) + 1 for d, k in zip(self.dilation, taps)]
        self.windows = [(n + a + b - k) // s + 1 for n, (a, b), k, s in zip(image, self.pad, spans, self.stride)]
        numbers_ = {"stride": stride, "pad": pad, "dilation": dilation, "groups": groups}
        self.attrs = [f"{name} = {v}" for name, v in numbers_.items() if v != (0 if name == "pad" else 1)]

    def seen(self, padded, tap):
        return padded[(..., *(slice(t * d, t * d + s * (n - 1) + 1, s)
                              for t, d, s, n in zip(tap, self.dilation, self.stride, self.windows)))]

    def padded(self, x):
        return np.pad(x, [(0, 0), (0, 0), *self.pad])

    def split(self, x, axis):
        return x.reshape(x.shape[:axis] + (self.groups, x.shape[axis] // self.groups) + x.shape[axis + 1:])

    def each(self):
        return itertools.product(*map(range, self.taps))

    def to_result(self, x, weight):
        total = 0
        for tap in self.each():
            seen, w = self.split(self.seen(self.padded(x), tap), 1), self.split(weight[(..., *tap)], 0)
            total = total + np.einsum("ngc...,goc->ngo...", seen, w)
        return total.reshape(x.shape[0], weight.shape[0], *self.windows)

    def to_image(self, d, weight):
        image = self.padded(np.zeros((d.shape[0], weight.shape[1] * self.groups, *self.image)))
        for tap in self.each():
            given = np.einsum("ngo...,goc->ngc...", self.split(d, 1), self.split(weight[(..., *tap)], 0))
            self.seen(image, tap)[...] += given.reshape(*image.shape[:2], *self.windows)
        return image[(..., *(slice(a, a + n) for (a, _), n in zip(self.pad, self.image)))]

    def to_weight(self, x, d):
        weight = np.zeros((d.shape[1], x.shape[1] // self.groups, *self.taps))
        letters = "xyz"[:len(self.taps)]
        for tap in self.each():
            seen = self.split(self.seen(self.padded(x), tap), 1)
            part = np.einsum(f"ngc{letters},ngo{letters}->goc", seen, self.split(d, 1))
            weight[(..., *tap)] = part.reshape(weight.shape[:2])
        return weight


def spatial_case(cases, n, channels, outputs, geometry, dtype="f32"):
    rank = len(geometry.image)
    x = numbers(dtype, (n, channels, *geometry.image), rank, "x")
    weight = numbers(dtype, (outputs, channels // geometry.groups, *geometry.taps), rank, "w")
    d, bias = numbers(dtype, (n, outputs, *geometry.windows), rank, "d"), numbers(dtype, (outputs,), rank, "b")

    def case(op, function, operands, terms, *attrs, bias=None):
        wide = [widen(t.values) for t in operands]
        column = 0 if bias is None else widen(bias.values).reshape(-1, *[1] * rank)
        size = function(*map(np.abs, wide)) + np.abs(column)
        cases.add(op, operands + ([] if bias is None else [bias]), Tensor(dtype, function(*wide) + column),
                  ", ".join([*attrs, *geometry.attrs]), Sum(terms, size))

    taps = math.prod(geometry.taps)
    case(f"conv{rank}d", geometry.to_result, [x, weight], channels * taps)
    case(f"conv{rank}d", geometry.to_result, [x, weight], channels * taps, bias=bias)
    case(f"conv{rank}d_transpose", geometry.to_image, [d, weight], outputs * taps, f"size = {list(geometry.image)}")
    case(f"conv{rank}d_weight_gradient", geometry.to_weight, [x, d], n * math.prod(geometry.windows), f"size = {list(geometry.taps)}")


def spatial_cases(cases):
    for dtype in FLOATS + ["i32"]:
        spatial_case(cases, 2, 3, 4, Spatial((9,), (3,), 2, 1), dtype)
        spatial_case(cases, 1, 2, 3, Spatial((4, 5, 6), (2, 3, 2), 1, 1), dtype)
    for n, channels, outputs, geometry in [
            (1, 16, 32, Spatial((50,), (5,), 1, 2)), (2, 17, 33, Spatial((31,), (4,), 3, [1, 2], 2)), (1, 8, 8, Spatial((20,), (3,), groups=8)),
            (3, 12, 18, Spatial((13,), (2,), 2, 0, 3, groups=3)), (1, 64, 16, Spatial((7,), (1,))), (1, 1, 1, Spatial((1,), (1,))),
            (0, 2, 3, Spatial((5,), (3,))), (1, 4, 20, Spatial((400,), (11,), 4, 5)), (2, 32, 32, Spatial((24,), (3,), 1, 1, groups=32)),
            (1, 16, 16, Spatial((5, 6, 7), (3, 3, 3), 1, 1)), (2, 3, 17, Spatial((6, 5, 9), (2, 3, 1), [1, 2, 3], [1, 0, 0, 0, 1, 2])),
            (1, 6, 6, Spatial((5, 5, 5), (3, 2, 3), 2, 1, [1, 2, 1], groups=6)), (1, 4, 8, Spatial((4, 4, 4), (2, 2, 2), 2, groups=2)),
            (1, 32, 16, Spatial((3, 4, 5), (1, 1, 1))), (1, 2, 2, Spatial((1, 1, 1), (1, 1, 1)))]:
        spatial_case(cases, n, channels, outputs, geometry)
    x, weight = numbers("f32", (1, 2, 7), "least", "x"), numbers("f32", (2, 3, 4), "least", "w")
    geometry = Spatial((16,), (4,), 2)
    want = Tensor("f32", geometry.to_image(widen(x.values), widen(weight.values)))
    cases.add("conv1d_transpose", [x, weight], want, "stride = 2", Sum(8, geometry.to_image(np.abs(x.values), np.abs(weight.values))))


def add_cases(cases):
    spatial_cases(cases)
    match_cases(cases)
    transpose_cases(cases)
    weight_cases(cases)
