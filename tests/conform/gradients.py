"""Gradients of every op and every operand, first and second order, against central differences in f64.

    gradients.py --nnc build/nnc [--target reference|generic|...] [--op NAME] [--keep FOLDER]

A case is a function of some tensors.  Its result, times fixed random weights and summed, is s; its gradients with
respect to all tensors, times a random direction, must be the slope of s along that direction; and the same once more
for t, those gradients times other random numbers, summed.  The model works out both sides: slopes come from four values
of s or t, with an error of the fourth power of the step.  An op of the table fails when it, or one of its operands, is
differentiated by no case, unless it is named as one without a gradient.  Speaks TAP: one result per op.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

from cases import generator
from tensors import Tensor, load, save

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "emitted"))
import build

STEP = 1e-3
NEAR = 1e-6  # relative
PER_MODEL = 12

WITHOUT = """eq ne lt le gt ge and or xor not argmax argmin sorted_positions full iota uniform normal he_normal he_uniform glorot_uniform
    relayout call minimize grad fold_in random_bits random_uniform random_normal stop_gradient
    bit_and bit_or bit_xor bit_not shift_left shift_right bitcast""".split()
DISCRETE = {"select": ["mask"], "gather": ["index"], "scatter_add": ["index"], "scatter": ["index"], "scatter_mul": ["index"], "scatter_max": ["index"],
            "scatter_min": ["index"], "dynamic_slice": ["at"], "dynamic_update": ["at"],
            "pool_spread": ["x", "y"], "pool_collect": ["x", "y"]}  # operands that say only which elements are meant
WRITTEN = ["slice", "while", "case"]  # not as calls


class Case:
    """`y = BODY` of x0, x1, ..., the tensors to differentiate by, and i0, i1, ..., others."""

    def __init__(self, op, body, shapes, low=-2.0, high=2.0, others=(), prelude="", step=STEP):
        self.op, self.body, self.others, self.prelude, self.step = op, body, list(others), prelude, step
        self.tensors = []
        for number, shape in enumerate(shapes):
            # apart from each other by more than a few steps, so that no kink is stepped over
            count = int(np.prod(shape))
            ladder = np.linspace(low, high, count + 2)[1:-1] + 0.0123 * (number + 1)
            self.tensors.append(Tensor("f64", generator(op, body, number).permutation(ladder).reshape(shape)))


def elementwise_cases():
    smooth = {"neg": (), "square": (), "recip": (0.5, 3), "sqrt": (0.5, 4), "rsqrt": (0.5, 4), "exp": (), "expm1": (),
              "log": (0.5, 4), "log1p": (-0.5, 3), "sin": (), "cos": (), "tan": (-1, 1), "asin": (-0.8, 0.8),
              "acos": (-0.8, 0.8), "atan": (), "sinh": (), "cosh": (), "tanh": (), "erf": (), "cbrt": (0.5, 4), "exp2": (),
              "log2": (0.5, 4), "asinh": (), "acosh": (1.3, 4), "atanh": (-0.8, 0.8), "sigmoid": (), "abs": (),
              "relu": ()}
    for op, limits in smooth.items():
        for shape in [(7,), (2, 3)]:
            yield Case(op, f"{op}(x0)", [shape], *limits)
    for op in ["sign", "floor", "ceil", "round", "trunc"]:
        yield Case(op, f"{op}(x0) * x0", [(7,)])
    for op in ["add", "sub", "mul", "maximum", "minimum"]:
        for shapes in [[(3, 4), (3, 4)], [(3, 4), (4,)], [(2, 1, 4), (3, 1)], [(5,), ()]]:
            yield Case(op, f"{op}(x0, x1)", shapes)
        yield Case(op, f"{op}(x0, x0)", [(4,)])
    for op in ["div", "pow", "mod", "fmod"]:
        for shapes in [[(3, 4), (3, 4)], [(3, 4), (1, 4)], [(), (3,)]]:
            yield Case(op, f"{op}(x0, x1)", shapes, 0.7, 2.9)
    for exponent in (3.0, 4.0, -1.0, -2.0, 0.5, -0.5, 1.5):
        yield Case("pow", f"x0 ** {exponent}", [(7,)], 0.7, 2.9)
    mask = Tensor("bool", np.arange(12).reshape(3, 4) % 3 == 0)
    for shapes in [[(3, 4), (3, 4)], [(4,), (3, 1)], [(), (3, 4)]]:
        yield Case("select", "select(i0, x0, x1)", shapes, others=[mask])
    yield Case("pullback", "pullback(x0 * x0 * sin(x1), x2, x0)", [(3, 4), (4,), (3, 4)])
    yield Case("cast", "cast(x0, to = f64) * x0", [(3, 2)])  # of other dtypes: tests/lit/grad/edges.nnc


def reduction_cases():
    for op in ["reduce_sum", "reduce_max", "reduce_min", "reduce_prod"]:
        for attrs in ["", "axes = 1", "axes = [0, -1], keep = true", "axes = [0, 2]"]:
            yield Case(op, f"{op}({', '.join(filter(None, ['x0', attrs]))})", [(2, 3, 2)], 0.6, 2)
        yield Case(op, f"{op}(x0)", [(1,)])
    for attrs in ["axis = 1", "axis = 0, exclusive = true", "axis = -1, reverse = true"]:
        yield Case("cumsum", f"cumsum(x0 * x0, {attrs})", [(3, 4)])
        yield Case("cumprod", f"cumprod(x0, {attrs})", [(3, 4)], 0.6, 2)
        holes = np.array([[1.0, 0, 1, 1], [0, 1, 0, 1], [1, 1, 1, 1]])
        yield Case("cumprod", f"cumprod(x0 * i0, {attrs})", [(3, 4)], 0.6, 2, others=[Tensor("f64", holes)])
    yield Case("reduce_prod", "reduce_prod(x0 * i0, axes = 1)", [(3, 4)], 0.6, 2,
               others=[Tensor("f64", np.array([[1.0, 0, 1, 1], [0, 1, 0, 1], [1, 1, 1, 1]]))])


def contraction_cases():
    for shapes in [[(3, 4), (4, 2)], [(2, 3, 4), (4, 2)], [(2, 3, 4), (2, 4, 2)], [(3, 4), (2, 4, 2)], [(4,), (4,)],
                   [(4,), (4, 3)], [(3, 4), (4,)], [(2, 1, 3, 4), (5, 4, 2)], [(4,), (2, 4, 3)], [(2, 3, 4), (4,)]]:
        yield Case("matmul", "matmul(x0, x1)", shapes)
    for shapes in [[(3, 4), (2, 4)], [(2, 3, 4), (2, 4)], [(2, 3, 4), (2, 2, 4)], [(4,), (3, 4)]]:
        yield Case("matmul", "matmul(x0, x1, transpose_y = true)", shapes)
    for image, weight, attrs in [((1, 2, 5, 6), (3, 2, 3, 3), ""), ((2, 2, 5, 5), (2, 2, 3, 2), "stride = 2, pad = 1"),
                                 ((1, 4, 5, 4), (4, 1, 3, 3), "groups = 4, pad = \"same\""),
                                 ((1, 4, 6, 6), (6, 2, 2, 3), "groups = 2, stride = [2, 1], pad = [1, 0, 0, 2]"),
                                 ((1, 1, 7, 7), (1, 1, 2, 2), "dilation = [3, 2], stride = 3"),
                                 ((1, 3, 4, 4), (2, 3, 1, 1), "stride = 3")]:
        attrs = ", " + attrs if attrs else ""
        yield Case("conv2d", f"conv2d(x0, x1{attrs})", [image, weight])
        yield Case("conv2d", f"conv2d(x0, x1, x2{attrs})", [image, weight, weight[:1]])
    for result, weight, attrs in [((1, 3, 3, 4), (3, 2, 3, 3), ""), ((2, 2, 3, 3), (2, 2, 3, 2), "stride = 2, pad = 1"),
                                  ((1, 4, 3, 2), (4, 1, 3, 3), "groups = 4, stride = 2, size = [8, 5]"),
                                  ((1, 2, 2, 2), (2, 3, 2, 2), "dilation = 2, stride = 3, pad = \"same\"")]:
        attrs = ", " + attrs if attrs else ""
        yield Case("conv2d_transpose", f"conv2d_transpose(x0, x1{attrs})", [result, weight])
    for rank, image, weight, result in [(1, (2, 4, 9), (6, 2, 3), (2, 6, 4)), (3, (1, 2, 4, 3, 5), (4, 1, 2, 3, 2), (1, 4, 2, 1, 2))]:
        attrs = "groups = 2, stride = 2"
        yield Case(f"conv{rank}d", f"conv{rank}d(x0, x1, x2, {attrs})", [image, weight, weight[:1]])
        size = list(image[2:])
        yield Case(f"conv{rank}d_transpose", f"conv{rank}d_transpose(x0, x1, x2, {attrs}, size = {size})", [result, weight, image[1:2]])
        yield Case(f"conv{rank}d_weight_gradient", f"conv{rank}d_weight_gradient(x0, x1, {attrs}, size = {list(weight[2:])})",
                   [image, result])
    yield Case("conv2d_transpose", "conv2d_transpose(x0, x1, x2)", [(1, 2, 3, 3), (2, 3, 2, 2), (3,)])
    yield Case("conv2d_weight_gradient", "conv2d_weight_gradient(x0, x1, size = [3, 2], stride = 2, pad = [1, 0])",
               [(2, 4, 5, 6), (2, 2, 3, 3)][:1] + [(2, 4, 3, 3)])
    yield Case("conv2d_weight_gradient", "conv2d_weight_gradient(x0, x1, size = 3, groups = 2)", [(1, 4, 4, 5), (1, 2, 2, 3)])


def pool_cases():
    for attrs in ["window = 2", "window = 3, stride = 2", "window = [3, 2], stride = 1, pad = 1",
                  "window = 2, stride = 2, dilation = [2, 1]", "window = 3, stride = 2, pad = 1, ceil = true",
                  "window = 3, stride = 3, pad = [0, 1, 1, 2]"]:
        yield Case("max_pool", f"max_pool(x0, {attrs})", [(1, 2, 6, 7)])
        yield Case("avg_pool", f"avg_pool(x0, {attrs})", [(1, 2, 6, 7)])
        yield Case("avg_pool", f"avg_pool(x0, {attrs}, count_pad = true)", [(1, 2, 6, 7)])
        pooled = f"max_pool(i0, {attrs})"
        image = Tensor("f64", np.arange(42.0).reshape(1, 1, 6, 7) % 5)
        yield Case("pool_collect", f"pool_collect(i0, {pooled}, x0, {attrs})", [(1, 1, 6, 7)], others=[image])
        yield Case("pool_spread", f"pool_spread(i0, {pooled}, max_pool(x0, {attrs}), {attrs})", [(1, 1, 6, 7)], others=[image])
    yield Case("max_pool", "max_pool(x0, window = 3, stride = 2)", [(2, 1, 8)])
    yield Case("avg_pool", "avg_pool(x0, window = 2, pad = 1)", [(1, 1, 3, 4, 3)])


def view_cases():
    yield Case("reshape", "reshape(x0, shape = [3, 4])", [(2, 6)])
    yield Case("transpose", "transpose(x0)", [(2, 3, 4)])
    yield Case("transpose", "transpose(x0, axes = [1, 2, 0])", [(2, 3, 4)])
    yield Case("broadcast", "broadcast(x0, shape = [2, 3, 4])", [(3, 1)])
    yield Case("broadcast", "broadcast(x0, shape = [2, 3])", [()])
    for pick in ["1:4", ":, ::2", "::-1", "4:0:-2, 1:", "1:1", "-3:, ::3", "0:5:3, 3::-2"]:
        yield Case("slice", f"x0[{pick}] * x0[{pick}]", [(5, 4)])
    yield Case("slice", "concat(x0[:2, :2], x0[2:, :2] * 2.0, x0[:2, 2:] * 3.0, x0[2:, 2:] * 4.0, axis = 0)", [(4, 4)])
    yield Case("slice", "x0[:3] * x0[1:4] * x0[2:] + x0[4]", [(5,)])
    yield Case("slice", "concat(x0[0:2], x0[4:5], x0[0:2], axis = 0) * x0", [(5, 2)])
    yield Case("split", "a0 * a2", [(6, 2)], prelude="(a0, a1, a2) = split(x0, axis = 0, sizes = [2, 2, 2])")
    yield Case("split", "a0", [(5,)], prelude="(a0, a1) = split(x0, sizes = [2, 3])")
    for shape, told in [((7,), "size = 3"), ((3, 8, 2), "axis = 1, size = 4, step = 3"), ((2, 9), "size = 5, step = -2"),
                        ((11,), "size = 3, dilation = 4"), ((2, 9), "size = 3, step = -1, dilation = 2"), ((40,), "size = 20"),
                        ((9, 2), "axis = 0, size = 2, step = 4"), ((5,), "size = 5")]:
        yield Case("windows", f"windows(x0, {told}) * windows(x0 * x0, {told})", [shape])
    yield Case("after", "after(x0 * x0, all = [x1, x1 * 2.0]) * x0", [(2, 3), (4,)])
    yield Case("concat", "concat(x0, x1, x0, axis = 1)", [(2, 3), (2, 1)])
    yield Case("stack", "stack(x0, x1, x0, axis = 1)", [(2, 3), (2, 3)])
    yield Case("pad", "pad(x0, before = [1, 0], after = [0, 2], value = 3.0)", [(2, 3)])
    index = Tensor("i64", np.array([[0, 2, -1], [2, 2, 9]]))
    yield Case("gather", "gather(x0, i0)", [(4, 3)], others=[index])
    yield Case("gather", "gather(x0 * x0, i0, axis = 1)", [(2, 4, 2)], others=[index])
    yield Case("scatter_add", "scatter_add(x0, i0, x1) * x0", [(4, 3), (2, 3, 3)], others=[index])
    yield Case("scatter_add", "scatter_add(x0, i0, x1 * x1, axis = -1)", [(2, 4), (2, 2, 3)], others=[index])
    for op in ["scatter", "scatter_mul", "scatter_max", "scatter_min"]:
        yield Case(op, f"{op}(x0, i0, x1) * x0", [(4, 3), (2, 3, 3)], others=[index])
        yield Case(op, f"{op}(x0, i0, x1 * x1, axis = -1)", [(2, 4), (2, 2, 3)], others=[index])
        yield Case(op, f"{op}(x0, i0, x1)", [(4,), (2, 3)], others=[index])
    holes = Tensor("f64", np.array([[1.0, 0, 0], [1, 1, 0]]))
    yield Case("scatter_mul", "scatter_mul(x0, i0, x1 * i1)", [(4,), (2, 3)], others=[index, holes])
    at = Tensor("i32", np.array([1, 5]))
    yield Case("dynamic_slice", "dynamic_slice(x0, i0, [2, 3])", [(4, 6)], others=[at])
    yield Case("dynamic_update", "dynamic_update(x0, i0, x1) * x0", [(4, 6), (2, 3)], others=[at])


def loop(results, rounds, first, body, after, bound=""):
    return f"({results}, count) = while (i < {rounds}) with ({first}, i = 0){bound} {{ {body} }} next ({after}, i <- i + 1)"


def control_cases():
    three = Tensor("i32", np.array(3))
    yield Case("while", "h", [(4,), (4,)], -1, 1, prelude=loop("h", 5, "h = x0", "", "h <- tanh(h * x1) + x0"))
    yield Case("while", "h", [(4,), (4,)], -1, 1, [three],
               loop("h", "i0", "h = x0", "", "h <- sin(h) * x1", " max = 7"))
    yield Case("while", "h", [(4,), (4,)], -1, 1, [Tensor("i32", np.array(0))],
               loop("h", "i0", "h = x0", "", "h <- sin(h) * x1", " max = 7"))
    yield Case("while", "a * b", [(3,), (3,)], -1, 1, prelude=loop("a, b", 4, "a = x0, b = x1", "", "a <- b, b <- sin(a) + b"))
    yield Case("while", "h", [(2, 3), (3, 3)], -1, 1, prelude="(h, count) = do with (h = x0, i = 0) { j = i + 1 } "
               "next (h <- tanh(h @ x1), i <- j) while (j < 4)")
    inner = "(g, c) = while (k < 3) with (g = h, k = 0) { } next (g <- cos(g * x1), k <- k + 1)"
    yield Case("while", "h", [(3,), (3,)], -1, 1, prelude=loop("h", 3, "h = x0", inner, "h <- g * x0 + h"))
    counted = "(g, c) = while (k <= i) with (g = h, k = 0) max = 9 { } next (g <- cos(g * x1), k <- k + 1)"
    yield Case("while", "h", [(3,), (3,)], -1, 1, prelude=loop("h", 3, "h = x0", counted, "h <- g * x0 + h"))
    # what leaves the loop may be derived inside of it
    yield Case("while", "h", [(3,)], -1, 1, prelude=loop("h", 3, "h = x0", "d = grad(reduce_sum(sin(h) * x0), wrt = h)", "h <- h + d"))
    yield Case("while", "h * hs", [(5, 3), (3,)], -1, 1,
               prelude="(h, hs) = scan (x in x0) with (h = x1) { g = tanh(x * h + x1) } next (h <- g) stack (g)")
    # products whose sums are kept on a tape, and whose weights' gradients are made after all rounds
    recurrent = "(h, hs) = scan (z in x0) with (h = x2) { g = tanh(z + h @ x1) } next (h <- g) stack (g)"
    yield Case("while", "h * hs", [(3, 2, 3), (3, 3), (2, 3)], -1, 1, prelude=recurrent)
    twice = "(h, hs) = scan (z in x0) with (h = x1) { g = sin(z + h @ x2) * z + h @ x2 } next (h <- g) stack (g @ x2)"
    yield Case("while", "h * hs", [(3, 1, 2), (1, 2), (2, 2)], -1, 1, prelude=twice)
    # tables that rounds fill, and read a little of, or all; what they read goes on the tape
    rows = "p = dynamic_slice(t, i, 1, axis = 0); q = dynamic_slice(t, i + 1, 1, axis = 0)"
    fills = "u = dynamic_update(t, i + 1, tanh(p @ x1) + q * p, axis = 0)"
    for after in ("u", "dynamic_update(u, i // 2, q * p, axis = 0)", "dynamic_update(t, 0, sin(p * q), axis = 0)", "u * 0.5 + t"):
        yield Case("while", "t", [(12, 2), (2, 2)], -1, 1, prelude=loop("t", 5, "t = x0", f"{rows}; {fills}", f"t <- {after}"))
    yield Case("while", "t", [(12, 2), (2, 2)], -1, 1, [three], loop("t", "i0", "t = x0", f"{rows}; {fills}", "t <- u", " max = 7"))
    # what counts the rounds may be of one element, and begin anywhere
    counted = "z = dynamic_slice(x0, concat(i, iota(axis = 0, shape = [1]) * 0, axis = 0), sizes = [1, 2])"
    yield Case("while", "h", [(4, 2), (2, 2), (1, 2)], -1, 1,
               prelude=f"(h, i) = while (reshape(i, shape = []) < 4) with (h = x2, i: i64[1] = 1) max = 9 {{ {counted} }} "
               "next (h <- tanh(h @ x1 + z), i <- i + 1)")
    for chosen in range(4):
        which = Tensor("i32", np.array(chosen))
        yield Case("case", "c", [(3,), (3,)], 0.5, 2, [which],
                   "c = case (i0) { 0: { yield exp(x0) } 1: { yield x0 * x1 } 2: { yield log(x1) } else: x0 }")
    pick = "c = case (i) { 0: { yield exp(h) } 1: { yield log(h + x0) } 2: { yield recip(h) } else: h * 1.1 }"
    yield Case("case", "h", [(3,)], 0.5, 2, prelude=loop("h", 5, "h = x0", pick, "h <- c"))
    mask = Tensor("bool", np.array(True))
    yield Case("case", "c", [(3,)], 0.5, 2, [mask], "c = if (i0) { (g, n) = while (k < 3) with (g = x0, k = 0) "
               "{ } next (g <- sin(g * x0), k <- k + 1)\n yield g } else { yield x0 * 2.0 }")


def loss_cases():
    """Functions of the library whose gradients go through what is above, all at once."""
    label, weight = Tensor("i64", np.array([2, -1, 0])), Tensor("f64", np.array([0.5, 2.0, 1.5]))
    yield Case("gather", "mean_cross_entropy(x0, i0, i1, ignore = -1, smoothing = 0.1)", [(3, 3)], others=[label, weight])
    words, heard, lengths = np.array([[1, 2], [1, 1], [2, -1]]), np.array([4, 4, 3]), np.array([2, 2, 1])
    yield Case("while", "ctc(x0, i0, i1, i2)", [(4, 3, 3)], others=[Tensor("i64", a) for a in (words, heard, lengths)])


def array_cases():
    """Functions of the library that are made of gathers, scatters, matrices and loops."""
    for mode in ["edge", "reflect", "symmetric", "wrap"]:
        yield Case("gather", f'pad_mode(x0, [1, 2], 1, "{mode}")', [(3, 4)])
    for options in ['mode = "linear"', 'mode = "cubic", coordinates = "align_corners"', 'mode = "linear", antialias = true',
                    'mode = "nearest"']:
        yield Case("gather", f"resize(x0, [3, 9], axes = [1, 2], {options})", [(2, 4, 5)])
    for mode in ["linear", "cubic"]:
        yield Case("gather", f'grid_sample(x0, x1, "{mode}", "border")', [(1, 2, 3, 4), (1, 2, 2, 2)], -0.7, 0.7, step=1e-4)
    boxes, images = Tensor("f64", np.array([[0.3, 0.2, 2.9, 2.4]])), Tensor("i64", np.array([0]))
    yield Case("gather", "roi_align(x0, i0, i1, 2, 2, 2)", [(1, 2, 4, 4)], others=[boxes, images])
    yield Case("slice", "y0", [(1, 2, 5, 4)], prelude="(y0, at) = max_pool_indices(x0, 3, 2, pad = 1)")
    yield Case("avg_pool", "lp_pool(x0, 2, 3)", [(1, 2, 4, 4)], 0.5, 2)
    yield Case("gather", "adaptive_avg_pool(x0, [2, 3])", [(1, 2, 5, 4)])
    yield Case("gather", "sort(x0, 0) * x0", [(5, 2)])
    yield Case("gather", "y0", [(2, 70)], prelude="(y0, at) = top_k(x0, 3)")
    yield Case("matmul", 'einsum([x0, x1, x0], [["i", "i"], ["i", "j"], ["k", "i"]], ["j", "k"])', [(3, 3), (3, 2)])
    yield Case("matmul", "dft(x0, 1, onesided = true)", [(2, 6, 1)])
    definite = "x0 @ transpose(x0) + eye(3, dtype = f64) * 2.0"
    yield Case("while", "solve(x0 + eye(3, dtype = f64) * 4.0, x1)", [(3, 3), (3, 2)], -1, 1)
    yield Case("while", "solve(x0 + eye(3, dtype = f64) * 4.0, x1)", [(2, 3, 3), (2, 3, 4)], -1, 1)
    yield Case("while", "solve(x0 + eye(35, dtype = f64) * 9.0, x1)", [(35, 35), (35, 1)], -1, 1)
    yield Case("while", "inverse(x0 + eye(3, dtype = f64) * 3.0)", [(2, 3, 3)], -1, 1)
    yield Case("while", "determinant(x0 + eye(3, dtype = f64) * 2.0)", [(3, 3)], -1, 1)
    yield Case("while", "determinant(x0 + eye(9, dtype = f64) * 2.0)", [(2, 9, 9)], -1, 1)  # by the inverse
    yield Case("while", "log_determinant(x0 + eye(3, dtype = f64) * 2.0)", [(2, 3, 3)], -1, 1)
    yield Case("while", "pairwise_coupling(x0)", [(2, 3, 3)], 0.1, 0.9)
    yield Case("while", f"cholesky({definite})", [(3, 3)], -1, 1)
    yield Case("while", "cholesky(x0 + eye(3, dtype = f64) * 4.0)", [(2, 3, 3)], -1, 1)
    yield Case("while", "cholesky(x0 * 0.1 + eye(35, dtype = f64) * 2.0)", [(35, 35)], -1, 1)
    yield Case("log", "lgamma(x0)", [(5,)], 0.3, 9)
    yield Case("while", "triangular_solve(x0 + eye(3, dtype = f64) * 4.0, x1, lower = false)", [(3, 3), (3, 2)], -1, 1)
    yield Case("while", "triangular_solve(x0 + eye(3, dtype = f64) * 4.0, x1, unit = true)", [(2, 3, 3), (2, 3, 4)], -1, 1)
    yield Case("while", "triangular_solve(x0 * 0.1 + eye(35, dtype = f64) * 2.0, x1)", [(35, 35), (35, 2)], -1, 1)


def all_cases():
    yield from loss_cases()
    yield from array_cases()
    yield from elementwise_cases()
    yield from reduction_cases()
    yield from contraction_cases()
    yield from pool_cases()
    yield from view_cases()
    yield from control_cases()


# Models

def names(letter, count):
    return [f"{letter}{n}" for n in range(count)]


def sum_of_products(left, right):
    return " + ".join(f"reduce_sum({a} * {b})" for a, b in zip(left, right))


def slope(function, plain, moved, arguments, step):
    """Statements that leave the slope of `function` along the direction u in n."""
    lines = []
    for at, factor in enumerate([1, -1, 2, -2]):
        shifted = [f"{x} + {u} * {factor * step}" if x in plain else x for x, u in zip(arguments, moved)]
        lines.append(f"v{at} = {function}({', '.join(shifted)})")
    return lines + [f"n = ((v0 - v1) * 8.0 - (v2 - v3)) / {12 * step}"]


def functions(case, number):
    x, i = names("x", len(case.tensors)), names("i", len(case.others))
    u, v, g = names("u", len(x)), names("z", len(x)), names("g", len(x))
    arguments, free = x + i + ["w"] + v, x + i + ["w"]
    gradients = f"({', '.join(g)}) = grad(s, wrt = [{', '.join(x)}])"
    first, second = f"first{number}", f"second{number}"
    blocks = [
        (first, free, ["s"], [case.prelude, f"y = {case.body}", "s = reduce_sum(y * w)"]),
        (second, arguments, ["t"], [f"s = {first}({', '.join(free)})", gradients, f"t = {sum_of_products(g, v)}"]),
        (f"check_first{number}", free + u, ["a", "n"],
         [f"s = {first}({', '.join(free)})", gradients, f"a = {sum_of_products(g, u)}"]
         + slope(first, x, u + i + ["w"], free, case.step)),
        (f"check_second{number}", arguments + u, ["a", "n"],
         [f"s = {second}({', '.join(arguments)})", gradients, f"a = {sum_of_products(g, u)}"]
         + slope(second, x, u + i + ["w"] + v, arguments, case.step)),
    ]
    text = ""
    for name, takes, gives, lines in blocks:
        body = "\n".join("    " + line for line in lines if line)
        text += f"fn {name}({', '.join(takes)}) -> ({', '.join(gives)}) {{\n{body}\n}}\n"
    return text


def result_shape(nnc, case, folder, library):
    """Of y, which the weights must have."""
    takes = [f"x{n}: {t.type()}" for n, t in enumerate(case.tensors)] + [f"i{n}: {t.type()}" for n, t in enumerate(case.others)]
    path = folder / "shape.nnc"
    prelude = f"    {case.prelude}\n" if case.prelude else ""
    path.write_text(f"{library}graph g({', '.join(takes)}) -> (y) {{\n{prelude}    y = {case.body}\n}}\n")
    text = subprocess.check_output([nnc, "opt", path, "--passes="], text=True)
    shape = re.search(r"-> \(y: f64\[([\d, ]*)\]\)", text)[1]
    return tuple(int(extent) for extent in shape.split(",") if extent.strip())


def run(arguments, cases, folder, functions_used=""):
    """What is wrong, for each case; their bodies may call the functions given as text."""
    library = f'nnc 1\nuse "nn"\n{functions_used}'
    inputs, lines, outputs, text = {}, [], [], library
    for number, case in enumerate(cases):
        draw = generator(case.op, case.body, "directions")
        like = lambda letter: {f"c{number}_{letter}{n}": Tensor("f64", draw.uniform(-1, 1, t.values.shape))
                               for n, t in enumerate(case.tensors)}
        x = {f"c{number}_x{n}": t for n, t in enumerate(case.tensors)}
        i = {f"c{number}_i{n}": t for n, t in enumerate(case.others)}
        w = {f"c{number}_w": Tensor("f64", draw.uniform(0.5, 1.5, result_shape(arguments.nnc, case, folder, library)))}
        u, v = like("u"), like("z")
        text += functions(case, number)
        for order, given in [("first", {**x, **i, **w, **u}), ("second", {**x, **i, **w, **v, **u})]:
            r = [f"c{number}_{order}_a", f"c{number}_{order}_n"]
            lines.append(f"    ({', '.join(r)}) = check_{order}{number}({', '.join(given)})")
            outputs += r
            inputs.update(given)
    takes = ", ".join(f"{name}: {t.type()}" for name, t in inputs.items())
    gives = ", ".join(f"{name}: f64[]" for name in outputs)
    path = folder / "model.nnc"
    path.write_text(text + f"graph gradients({takes}) -> ({gives}) {{\n" + "\n".join(lines) + "\n}\n")
    words = [arguments.nnc, "run", str(path), "--target", arguments.target, "--cc", arguments.cc]
    for name, tensor in inputs.items():
        save(folder / f"{name}.npy", tensor)
        words += ["--input", f"{name}={folder}/{name}.npy"]
    for name in outputs:
        words += ["--output", f"{name}={folder}/{name}.npy"]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        return [done.stderr] * len(cases)
    value = {name: float(load(folder / f"{name}.npy", "f64")) for name in outputs}
    wrong = []
    for number in range(len(cases)):
        found = ""
        for order in ["first", "second"]:
            a, n = value[f"c{number}_{order}_a"], value[f"c{number}_{order}_n"]
            if not abs(a - n) <= NEAR * max(abs(a), abs(n), 1e-2):
                found += f"{order} order: {a!r}, by differences {n!r}; "
        wrong.append(found)
    return wrong


# What the table has

def operands_of(table):
    """Of each op the names of its operands, which stand before the attributes."""
    rows = re.findall(r"^  (\w+)\(([^)]*)\)", table, re.MULTILINE)
    return {op: [word.strip("*?") for word in re.split(r",\s*", text) if re.fullmatch(r"\w+[*?]*", word)] for op, text in rows}


def arguments_of(op, text):
    """What stands between the brackets and commas of each call."""
    for call in re.finditer(rf"\b{op}\(", text):
        depth, given = 1, [""]
        for letter in text[call.end():]:
            depth += (letter in "([{") - (letter in ")]}")
            if depth == 0:
                break
            if letter == "," and depth == 1:
                given.append("")
            else:
                given[-1] += letter
        yield given


def uncovered(op, operands, cases):
    """The operands by which no case differentiates."""
    calls = [given for case in cases if case.op == op for given in arguments_of(op, case.prelude + case.body)]
    return [name for at, name in enumerate(operands) if name not in DISCRETE.get(op, []) and op not in WRITTEN
            and not any(re.search(r"\bx\d", given[at]) for given in calls if at < len(given))]


def skips(arguments):
    """Is the machine another than the target?  Then TAP says so."""
    cannot = arguments.target != "reference" and not build.available(arguments.target, arguments.cc.split()[0])
    if cannot:
        print(f"1..0 # SKIP no {arguments.cc}, or the machine is no {arguments.target}")
    return cannot


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True)
    parser.add_argument("--target", default="reference")
    parser.add_argument("--op", help="only this one")
    parser.add_argument("--cc", default="clang")
    parser.add_argument("--keep", help="leave the last model and its files in this folder")
    arguments = parser.parse_args()
    if skips(arguments):
        return 0
    cases = [case for case in all_cases() if arguments.op in (None, case.op)]
    table = subprocess.run([arguments.nnc, "ops"], capture_output=True, text=True, check=True).stdout.split("\nThe library")[0]
    ops = {op: names for op, names in operands_of(table).items() if op not in WITHOUT and arguments.op in (None, op)}
    wrong = {op: [f"operand {name} is in no case" for name in uncovered(op, names, cases)] for op, names in ops.items()}
    for op in ops.keys() - {case.op for case in cases}:
        wrong[op].append("no case")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(arguments.keep or temporary)
        folder.mkdir(exist_ok=True)
        for at in range(0, len(cases), PER_MODEL):
            part = cases[at:at + PER_MODEL]
            for case, found in zip(part, run(arguments, part, folder)):
                wrong[case.op].extend([f"{case.prelude} {case.body}: {found}"] if found else [])
    print(f"1..{len(ops)}")
    failed = False
    for number, op in enumerate(ops, 1):
        bad = wrong[op]
        failed |= bool(bad)
        print(f"{'not ok' if bad else 'ok'} {number} - {op}")
        for line in "\n".join(bad).splitlines():
            print(f"# {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
