"""Cases of everything that is not elementwise: reductions, contractions, pools, and those of views.py and generators.py."""

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import generators
import views
from cases import generator, lst, numbers
from tensors import EVERY, FLOATS, NUMBERS, Sum, Tensor, is_float, widen


# Reductions

AXES = [None, [0], [1], [2], [-1], [0, 2], [-1, 0], [1, 2], [0, 1, 2]]


def reduce_cases(cases):
    functions = {"reduce_sum": np.sum, "reduce_prod": np.prod, "reduce_max": np.max, "reduce_min": np.min}
    for op, function in functions.items():
        def case(x, axes, keep=False):
            axis = None if axes is None else tuple(axes)
            wide = widen(x.values)
            with np.errstate(all="ignore"):
                want = Tensor(x.dtype, function(wide, axis=axis, keepdims=keep))
                size = np.abs(wide) if op == "reduce_sum" else np.zeros(wide.shape)
                terms = max(1, x.values.size // max(1, want.values.size))
                if op == "reduce_sum":
                    tolerance = Sum(terms, np.sum(np.abs(np.nan_to_num(size, posinf=0)), axis=axis, keepdims=keep))
                else:
                    tolerance = Sum(terms, np.abs(want.values.astype(np.float64)) * math.sqrt(terms))
            attrs = ([f"axes = {lst(axes)}"] if axes is not None else []) + (["keep = true"] if keep else [])
            exact = {} if op in ("reduce_max", "reduce_min") else {"tolerance": tolerance}
            cases.add(op, [x], want, ", ".join(attrs), **exact)

        narrow = {"low": 0.9, "high": 1.1} if op == "reduce_prod" else {}
        for axes in AXES:
            for keep in (False, True):
                case(numbers("f32", (3, 5, 7), op, **narrow), axes, keep)
        for dtype in NUMBERS:
            small = {"low": -1, "high": 1.2} if op == "reduce_prod" else {}
            case(numbers(dtype, (4, 9), op, **small), [1])
        special = Tensor("f32", [[1, np.nan, 2], [np.inf, 1, 2], [-np.inf, np.inf, 1], [0, -np.inf, 3]])
        case(special, [1])
        case(special, [0])
        case(numbers("f32", (), op), None)
        case(numbers("f32", (1,), op), None)
        for shape in [(1000,), (13, 77), (77, 13), (2, 3, 4, 5, 6), (1, 20, 7, 7)]:
            case(numbers("f32", shape, op, **narrow), [-1])
            case(numbers("f32", shape, op, **narrow), [0])
            case(numbers("f32", shape, op, **narrow), None)
        case(numbers("f32", (2, 20, 7, 7), op, **narrow), [2, 3], True)
        case(Tensor("f32", np.zeros((0, 3))), [1])
        if op in ("reduce_sum", "reduce_prod"):
            case(Tensor("f32", np.zeros((0, 3))), [0])
    for op, function in {"argmax": np.argmax, "argmin": np.argmin}.items():
        for dtype in NUMBERS:
            for axis in (0, 1, -1):
                x = Tensor(dtype, generator(op, dtype, axis).integers(0, 5, (6, 7)))  # with ties
                cases.add(op, [x], Tensor("i64", function(x.values, axis=axis)), f"axis = {axis}")
        x = numbers("f32", (3, 4, 5), op)
        for keep in ("false", "true"):
            want = function(x.values, axis=1, keepdims=keep == "true")
            cases.add(op, [x], Tensor("i64", want), f"axis = 1, keep = {keep}")
        x = Tensor("f32", [[1, np.nan, 3, np.nan], [np.inf, -np.inf, np.inf, -np.inf]])
        cases.add(op, [x], Tensor("i64", function(x.values, axis=-1)))
        for dtype in ("f32", "f16", "i8", "f64"):
            for length in (64, 77, 333):  # long rows, with ties, of one number, and with NaN in several places
                rows = generator(op, dtype, length).integers(0, 100, (9, length)).astype(np.float64)
                rows[1] = rows[1] // 50
                rows[2], rows[3, 5:], rows[4, :-1] = 7, 7, 7
                if is_float(dtype):
                    rows[5] = np.inf
                    rows[6] = -np.inf
                    rows[7, length // 2 :: 3], rows[8, -1] = np.nan, np.nan
                x = Tensor(dtype, rows)
                cases.add(op, [x], Tensor("i64", function(x.values, axis=-1)))


# Contractions

def matmul_case(cases, dtype, a, b, transposed=False):
    x, y = numbers(dtype, a, "matmul", b, "x"), numbers(dtype, b, "matmul", a, "y")
    wide_x, wide_y = widen(x.values), widen(y.values)
    if transposed:
        wide_y = np.swapaxes(wide_y, -1, -2)
    tolerance = Sum(a[-1], np.matmul(np.abs(wide_x), np.abs(wide_y)))
    cases.add("matmul", [x, y], Tensor(dtype, np.matmul(wide_x, wide_y)), "transpose_y = true" if transposed else "",
              tolerance)


def matmul_cases(cases):
    for a, b in [((3, 4), (4, 5)), ((1, 1), (1, 1)), ((17, 33), (33, 9)), ((64, 65), (65, 66)), ((1, 300), (300, 7)),
                 ((5, 300), (300, 1)), ((4,), (4,)), ((4,), (4, 5)), ((3, 4), (4,)), ((2, 3, 4), (4, 5)),
                 ((2, 3, 4), (2, 4, 5)), ((5, 1, 3, 4), (2, 4, 6)), ((4,), (2, 4, 5)), ((2, 3, 4), (4,)),
                 ((3, 4), (2, 2, 4, 5)), ((130, 20), (20, 150)), ((0, 4), (4, 5)), ((3, 0), (0, 5))]:
        matmul_case(cases, "f32", a, b)
    for a, b in [((3, 4), (5, 4)), ((17, 33), (9, 33)), ((2, 3, 4), (2, 5, 4)), ((4,), (5, 4)), ((31, 64), (47, 64)),
                 ((2, 2, 7, 8), (7, 8))]:
        matmul_case(cases, "f32", a, b, True)
    for dtype in NUMBERS:
        matmul_case(cases, dtype, (7, 19), (19, 21))


def conv2d_reference(x, weight, bias, stride, pad, dilation, groups):
    """Straight from the definition: windows of the padded image, times the weight, summed."""
    top, left, bottom, right = pad
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    n, c, _, _ = x.shape
    o, _, kh, kw = weight.shape
    span = (dilation[0] * (kh - 1) + 1, dilation[1] * (kw - 1) + 1)
    windows = sliding_window_view(x, span, axis=(2, 3))  # [n, c, oh, ow, span...]
    windows = windows[:, :, ::stride[0], ::stride[1], ::dilation[0], ::dilation[1]]
    windows = windows.reshape(n, groups, c // groups, *windows.shape[2:])
    grouped = weight.reshape(groups, o // groups, c // groups, kh, kw)
    result = np.einsum("ngchwij,gocij->ngohw", windows, grouped)
    result = result.reshape(n, o, *result.shape[3:])
    return result if bias is None else result + bias[:, None, None]


def conv2d_case(cases, x, weight, bias=True, stride=(1, 1), pad=(0, 0, 0, 0), dilation=(1, 1), groups=1, attrs="",
                dtype="f32"):
    tensors = [numbers(dtype, x, weight, attrs, "x"), numbers(dtype, weight, x, "w")]
    tensors += [numbers(dtype, weight[:1], "b")] if bias else []
    wide = [widen(t.values) for t in tensors] + ([] if bias else [None])
    want = conv2d_reference(*wide, stride, pad, dilation, groups)
    size = conv2d_reference(*(w if w is None else np.abs(w) for w in wide), stride, pad, dilation, groups)
    cases.add("conv2d", tensors, Tensor(dtype, want), attrs, Sum(math.prod(weight[1:]), size))


def conv2d_cases(cases):
    conv2d_case(cases, (1, 3, 8, 8), (4, 3, 3, 3))
    conv2d_case(cases, (1, 3, 8, 8), (4, 3, 3, 3), bias=False)
    conv2d_case(cases, (2, 3, 9, 7), (5, 3, 3, 3), pad=(1, 1, 1, 1), attrs="pad = 1")
    conv2d_case(cases, (2, 3, 9, 7), (5, 3, 3, 3), pad=(2, 1, 2, 1), attrs="pad = [2, 1]")
    conv2d_case(cases, (2, 3, 9, 7), (5, 3, 3, 3), pad=(0, 1, 2, 3), attrs="pad = [0, 1, 2, 3]")
    conv2d_case(cases, (1, 4, 11, 10), (6, 4, 3, 3), stride=(2, 2), attrs="stride = 2")
    conv2d_case(cases, (1, 4, 11, 10), (6, 4, 3, 3), stride=(2, 3), pad=(1, 1, 1, 1), attrs="stride = [2, 3], pad = 1")
    conv2d_case(cases, (1, 4, 11, 10), (6, 4, 3, 3), dilation=(2, 2), attrs="dilation = 2")
    conv2d_case(cases, (1, 4, 11, 10), (6, 4, 3, 2), dilation=(3, 2), pad=(2, 2, 2, 2), attrs="dilation = [3, 2], pad = 2")
    conv2d_case(cases, (1, 6, 8, 8), (4, 3, 3, 3), groups=2, attrs="groups = 2")
    conv2d_case(cases, (2, 9, 8, 8), (9, 1, 3, 3), groups=9, pad=(1, 1, 1, 1), attrs="groups = 9, pad = 1")
    conv2d_case(cases, (1, 4, 8, 8), (8, 1, 3, 3), groups=4, stride=(2, 2), pad=(1, 1, 1, 1),
                attrs="groups = 4, stride = 2, pad = 1")
    conv2d_case(cases, (1, 32, 9, 9), (32, 1, 5, 5), groups=32, pad=(2, 2, 2, 2), attrs="groups = 32, pad = 2")
    for k in (1, 2, 4, 5, 7):
        conv2d_case(cases, (1, 3, 9, 9), (4, 3, k, k))
    conv2d_case(cases, (1, 3, 9, 9), (4, 3, 1, 7), pad=(0, 3, 0, 3), attrs="pad = [0, 3]")
    conv2d_case(cases, (1, 3, 9, 9), (4, 3, 7, 1), pad=(3, 0, 3, 0), attrs="pad = [3, 0]")
    conv2d_case(cases, (1, 32, 14, 14), (33, 32, 3, 3), pad=(1, 1, 1, 1), attrs="pad = 1")
    conv2d_case(cases, (1, 64, 7, 7), (130, 64, 1, 1))
    conv2d_case(cases, (1, 64, 7, 7), (64, 64, 1, 1), stride=(2, 2), attrs="stride = 2")
    conv2d_case(cases, (3, 1, 1, 1), (1, 1, 1, 1))
    conv2d_case(cases, (1, 3, 29, 29), (16, 3, 7, 7), stride=(2, 2), pad=(3, 3, 3, 3), attrs="stride = 2, pad = 3")
    conv2d_case(cases, (0, 3, 8, 8), (4, 3, 3, 3))
    conv2d_case(cases, (1, 3, 9, 7), (4, 3, 3, 3), pad=(0, 0, 0, 0), attrs='pad = "valid"')
    conv2d_case(cases, (1, 3, 9, 7), (4, 3, 3, 3), pad=(1, 1, 1, 1), attrs='pad = "same"')
    conv2d_case(cases, (1, 3, 9, 8), (4, 3, 2, 4), pad=(0, 1, 1, 2), attrs='pad = "same"')
    conv2d_case(cases, (1, 3, 9, 8), (4, 3, 3, 3), stride=(2, 2), pad=(1, 0, 1, 1), attrs='pad = "same", stride = 2')
    conv2d_case(cases, (1, 3, 9, 8), (4, 3, 3, 2), dilation=(2, 3), pad=(2, 1, 2, 2), attrs='pad = "same", dilation = [2, 3]')
    conv2d_case(cases, (1, 3, 9, 8), (4, 3, 1, 1), stride=(3, 3), attrs='pad = "same", stride = 3')
    for dtype in NUMBERS:
        conv2d_case(cases, (1, 5, 6, 7), (3, 5, 3, 2), dtype=dtype)


# Pools, of images of any number of dimensions

def pool_count(extent, size, stride, before, after, dilation, ceil):
    """Windows along a dimension, by PyTorch's rule: none begins behind the image and the padding before it."""
    room = extent + before + after - (dilation * (size - 1) + 1)
    count = (-(-room // stride) if ceil else room // stride) + 1
    return count - 1 if ceil and (count - 1) * stride >= extent + before else count


def pool_windows(x, w, fill, border=None):
    """[n, c, windows..., taps...]: the padding is `border`, what sticks out beyond it is `fill`."""
    extents = x.shape[2:]
    x = np.pad(x, [(0, 0), (0, 0)] + w.pad, constant_values=fill if border is None else border)
    for d in reversed(range(w.rank)):
        size, stride, dilation = w.window[d], w.stride[d], w.dilation[d]
        count = pool_count(extents[d], size, stride, *w.pad[d], dilation, w.ceil)
        at = np.arange(count)[:, None] * stride + np.arange(size) * dilation
        beyond = [(0, 0)] * x.ndim
        beyond[2 + d] = (0, max(0, int(at.max()) + 1 - x.shape[2 + d]))
        x = np.take(np.pad(x, beyond, constant_values=fill), at, axis=2 + d)
    return x.transpose(0, 1, *range(2, 2 + 2 * w.rank, 2), *range(3, 3 + 2 * w.rank, 2))


class Pool:
    """A window with what moves it, and the same as attributes."""

    def __init__(self, window, stride=None, pad=0, dilation=1, ceil=False):
        every = lambda v: [v] * self.rank if isinstance(v, int) else list(v)
        self.rank = len(window)
        self.window, self.dilation, self.ceil = list(window), every(dilation), ceil
        self.stride = every(stride or window)
        self.pad = [(pad, pad)] * self.rank if isinstance(pad, int) else pad
        ends = [p[0] for p in self.pad] + [p[1] for p in self.pad]
        self.attrs = f"window = {lst(window)}"
        self.attrs += f", stride = {lst(self.stride)}" if stride else ""
        self.attrs += f", pad = {lst(ends)}" if pad else ""
        self.attrs += f", dilation = {lst(self.dilation)}" if dilation != 1 else ""
        self.attrs += ", ceil = true" if ceil else ""

    def same(self, shape):
        """With the padding of "same": ceil(extent / stride) windows, an odd pixel at the end."""
        totals = [max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
                  for n, k, s, d in zip(shape[2:], self.window, self.stride, self.dilation)]
        self.pad = [(t // 2, t - t // 2) for t in totals]
        self.attrs += ', pad = "same"'
        return self


def max_pool_case(cases, x, w):
    lowest = -np.inf if is_float(x.dtype) else np.iinfo(x.values.dtype).min
    taps = tuple(range(-w.rank, 0))
    cases.add("max_pool", [x], Tensor(x.dtype, pool_windows(x.values, w, lowest).max(axis=taps)), w.attrs)


def avg_pool_case(cases, x, w, count_pad=False):
    wide, taps = widen(x.values), tuple(range(-w.rank, 0))
    count = pool_windows(np.ones_like(wide), w, 0, int(count_pad)).sum(axis=taps)
    mean, size = (pool_windows(v, w, 0).sum(axis=taps) / count for v in (wide, np.abs(wide)))
    attrs = w.attrs + (", count_pad = true" if count_pad else "")
    cases.add("avg_pool", [x], Tensor(x.dtype, mean), attrs, Sum(math.prod(w.window), size))


def pool_variant(cases, shape, *words, **named):
    w = Pool(*words, **named)
    x = numbers("f32", shape, "pool", w.attrs)
    max_pool_case(cases, x, w)
    avg_pool_case(cases, x, w)
    avg_pool_case(cases, x, w, count_pad=True)


def same_cases(cases):
    for shape, window, stride in [((1, 2, 7, 9), (2, 2), 2), ((1, 2, 8, 8), (3, 3), 2), ((1, 2, 5, 6), (2, 3), 1),
                                  ((1, 2, 3, 3), (7, 5), 2), ((1, 2, 6, 7), (1, 1), 3), ((1, 2, 11), (4,), 3)]:
        for dilation in (1, 2):
            w = Pool(window, stride, dilation=dilation).same(shape)
            x = numbers("f32", shape, "pool", w.attrs)
            max_pool_case(cases, x, w)
            avg_pool_case(cases, x, w)
    cases.add("max_pool", [x], Tensor("f32", pool_windows(x.values, Pool((4,)), 0).max(axis=-1)), 'window = 4, pad = "valid"')


def pool_cases(cases):
    for shape in [(1, 3, 7, 9), (2, 17, 8, 8)]:
        pool_variant(cases, shape, (2, 2), 2)
        pool_variant(cases, shape, (2, 2), 1)
        pool_variant(cases, shape, (3, 2))
        pool_variant(cases, shape, (3, 3), 2, 1)
        pool_variant(cases, shape, (3, 2), (1, 2), [(1, 1), (0, 0)])
        pool_variant(cases, shape, (3, 3), 2, [(0, 2), (1, 1)])
        pool_variant(cases, shape, (1, 1), 1)
        pool_variant(cases, shape, (7, 7), 1)
        pool_variant(cases, shape, (5, 5), 3, 2)
        pool_variant(cases, shape, (3, 2), 1, dilation=(2, 3))
        pool_variant(cases, shape, (3, 3), 2, 2, dilation=2)
        pool_variant(cases, shape, (2, 3), ceil=True)
        pool_variant(cases, shape, (3, 3), 2, 1, ceil=True)  # on 8 pixels the last window sticks out
        pool_variant(cases, shape, (2, 2), 3, [(0, 1), (1, 1)], ceil=True)  # on 9 the last one would be padding alone
        pool_variant(cases, shape, (9, 10), 3, ceil=True)  # wider than the image
        pool_variant(cases, shape, (3, 2), (2, 3), 1, dilation=(2, 3), ceil=True)
    pool_variant(cases, (2, 3, 11), (3,), 2, 1, ceil=True)
    pool_variant(cases, (2, 3, 11), (4,), dilation=2)
    pool_variant(cases, (1, 2, 5, 6, 7), (2, 3, 2), ceil=True)
    pool_variant(cases, (1, 2, 5, 6, 7), (3, 3, 3), 2, 1, dilation=(1, 2, 1))
    pool_variant(cases, (1, 16, 5, 6, 7), (2, 2, 2))
    pool_variant(cases, (2, 2, 3, 2, 3, 2, 3, 2), (2, 1, 2, 1, 2, 2), 1)
    same_cases(cases)
    common = Pool((3, 3), 2, 1)
    for dtype in NUMBERS:
        max_pool_case(cases, numbers(dtype, (1, 3, 6, 6), "pool", low=-5, high=-1), common)
        max_pool_case(cases, numbers(dtype, (1, 3, 6, 7), "pool", low=-5, high=-1), Pool((2, 2), 2, 1, 2, ceil=True))
    for dtype in FLOATS:
        avg_pool_case(cases, numbers(dtype, (1, 3, 6, 6), "pool"), common)
    x = numbers("f32", (1, 1, 6, 6), "pool", "nan").values.copy()
    x[0, 0, 1, 1], x[0, 0, 4, 4], x[0, 0, 0, 5] = np.nan, -np.inf, np.inf
    max_pool_case(cases, Tensor("f32", x), Pool((2, 2)))


# Running sums and products

def cumulated(values, axis, exclusive, reverse):
    values = np.flip(values, axis) if reverse else values
    sums = np.cumsum(values, axis=axis)
    if exclusive:
        sums = np.roll(sums, 1, axis=axis)
        sums[tuple(slice(0, 1) if d == axis % values.ndim else slice(None) for d in range(values.ndim))] = 0
    return np.flip(sums, axis) if reverse else sums


def multiplied(values, axis, exclusive, reverse):
    values = np.flip(values, axis) if reverse else values
    products = np.cumprod(values, axis=axis)
    if exclusive:
        products = np.roll(products, 1, axis=axis)
        products[tuple(slice(0, 1) if d == axis % values.ndim else slice(None) for d in range(values.ndim))] = 1
    return np.flip(products, axis) if reverse else products


def cumprod_cases(cases):
    def case(x, axis):
        for exclusive in (False, True):
            for reverse in (False, True):
                with np.errstate(all="ignore"):
                    want = Tensor(x.dtype, multiplied(widen(x.values), axis, exclusive, reverse))
                flags = ", ".join([f"axis = {axis}"] + ["exclusive = true"] * exclusive + ["reverse = true"] * reverse)
                size = np.abs(np.nan_to_num(want.values.astype(np.float64), posinf=0, neginf=0)) * x.shape[axis] / 4
                cases.add("cumprod", [x], want, flags, tolerance=Sum(1, size))

    for dtype in NUMBERS:
        small = {"low": 0.6, "high": 1.5} if is_float(dtype) else {"low": -0.4, "high": 0.6}
        case(numbers(dtype, (4, 9), "cumprod", **small), 1)
        case(numbers(dtype, (9, 5), "cumprod", **small), 0)
        case(numbers(dtype, (2, 4, 70), "cumprod", **small), 1)
    for shape in [(1,), (0,), (3, 0), (0, 3), (1, 1), (1, 40), (40, 1), (70,), (30, 33), (7, 64), (3, 300), (2, 3, 5, 60)]:
        for axis in range(len(shape)):
            case(numbers("f32", shape, "cumprod", low=0.9, high=1.1), axis)
    case(Tensor("f32", [[1, np.inf, 2], [3, 0, np.nan], [4, -5, -0.0]]), 0)


def cumsum_cases(cases):
    def case(x, axis, body=None, scale=1):
        for exclusive in (False, True):
            for reverse in (False, True):
                with np.errstate(all="ignore"):
                    want = Tensor(x.dtype, cumulated(widen(x.values) * scale, axis, exclusive, reverse))
                    size = cumulated(np.abs(np.nan_to_num(widen(x.values) * scale)).astype(np.float64), axis, exclusive, reverse)
                flags = ", ".join([f"axis = {axis}"] + ["exclusive = true"] * exclusive + ["reverse = true"] * reverse)
                cases.add("cumsum", [x], want, flags, tolerance=Sum(x.shape[axis], size),
                          body=body and body.replace("FLAGS", flags))

    for dtype in NUMBERS:
        case(numbers(dtype, (4, 9), "cumsum"), 1)
        case(numbers(dtype, (9, 5), "cumsum"), 0)
        case(numbers(dtype, (37,), "cumsum"), 0)
        case(numbers(dtype, (2, 4, 70), "cumsum"), 1)
    x = numbers("f32", (3, 5, 4, 9), "cumsum")
    for axis in (0, 1, 2, 3, -1, -3):
        case(x, axis)
    for shape in [(1,), (0,), (3, 0), (0, 3), (1, 1), (1, 40), (40, 1), (1000,), (300, 33), (7, 64), (3, 300), (1, 515),
                  (2, 3, 5, 60)]:
        for axis in range(len(shape)):
            case(numbers("f32", shape, "cumsum"), axis)
    case(Tensor("f32", [[1, np.inf, 2], [3, -np.inf, np.nan], [4, 5, 6]]), 0)
    # What dies here is written over; what is made of the sums is one kernel with them; a view is read through.
    case(numbers("f32", (6, 20), "cumsum"), 0, scale=2, body="{id} = {x[0]} * 2.0\n    {r[0]} = cumsum({id}, FLAGS)")
    case(numbers("f32", (6, 20), "cumsum"), 1, scale=-1, body="{r[0]} = -cumsum({x[0]}, FLAGS)")
    case(numbers("f32", (6, 20), "cumsum"), 1,
         body="{id} = reshape(transpose({x[0]}), shape = [4, 5, 6])\n"
              "    {r[0]} = cumsum(transpose(reshape({id}, shape = [20, 6])), FLAGS)")


# Layout and control

def other_cases(cases):
    for shape in [(1, 16, 3, 3), (2, 20, 5, 4), (1, 3, 7, 7), (1, 1, 1, 1)]:
        x = numbers("f32", shape, "relayout")
        for block in (8, 16):
            body = f"{{id}} = relayout({{x[0]}}, block = {block})\n    {{r[0]}} = relayout({{id}})"
            cases.add("relayout", [x], x, body=body)
        body = "{id}b = relayout({x[0]}, block = 16)\n    {id}r = relu({id}b)\n    {r[0]} = relayout({id}r)"
        cases.add("relayout", [x], Tensor("f32", np.maximum(x.values, 0)), body=body)
    function = "fn twice_and_square(x) -> (y, z) {\n    y = x + x\n    z = square(y)\n}\n"
    x = numbers("f32", (3, 5), "call")
    cases.add("call", [x], [Tensor("f32", x.values * 2), Tensor("f32", (x.values * 2) ** 2)],
              body="({r[0]}, {r[1]}) = twice_and_square({x[0]})", prelude=function)


def gradient_cases(cases):
    """Every rule has differences to pass in gradients.py; here are those that can be written down."""
    x, y = numbers("f32", (3, 5), "left"), numbers("f32", (5,), "right")
    want = [Tensor("f32", np.broadcast_to(y.values, (3, 5))), Tensor("f32", widen(x.values).sum(axis=0))]
    cases.add("grad", [x, y], want, body="({r[0]}, {r[1]}) = grad({x[0]} * {x[1]}, wrt = [{x[0]}, {x[1]}])", tolerance=Sum(3, 12))
    cases.add("pullback", [x, y, numbers("f32", (3, 5), "cotangent")],
              [Tensor("f32", widen(y.values) * widen(numbers("f32", (3, 5), "cotangent").values)),
               Tensor("f32", (widen(x.values) * widen(numbers("f32", (3, 5), "cotangent").values)).sum(axis=0))], tolerance=Sum(3, 12),
              body="({r[0]}, {r[1]}) = pullback({x[0]} * {x[1]}, {x[2]}, wrt = [{x[0]}, {x[1]}])")
    cube = "{id}g = grad({x[0]} * {x[0]} * {x[0]}, {x[0]})\n    {r[0]} = grad({id}g, wrt = {x[0]})"
    cases.add("grad", [x], Tensor("f32", 6 * widen(x.values)), body=cube, tolerance=Sum(4, 24))
    own = "fn through(x) -> (y) { y = round(x) } gradient (dy) -> (dx) { dx = dy * y }\n"
    cases.add("grad", [x], Tensor("f32", np.rint(widen(x.values)) * 2), tolerance=Sum(1, 8), prelude=own,
              body="{r[0]} = grad(through({x[0]}) * 2.0, wrt = {x[0]})")
    for dtype in EVERY:
        z = numbers(dtype, (3, 5), "stop")
        cases.add("stop_gradient", [z], z)


def add_cases(cases):
    gradient_cases(cases)
    reduce_cases(cases)
    matmul_cases(cases)
    conv2d_cases(cases)
    pool_cases(cases)
    views.add_cases(cases)
    cumsum_cases(cases)
    cumprod_cases(cases)
    generators.add_cases(cases)
    other_cases(cases)
