"""Formulas over several nodes: they come back as calls of the library with the same values, and only where they mean the
same.

    patterns.py --nnc NNC        reports as TAP
"""

import math

import numpy

from harness import case, expect, main
from write import graph, model, node, tensor, value

DICE = numpy.random.default_rng(3)
X = DICE.normal(size=(2, 3, 8)).astype("f4")
ERF = numpy.vectorize(math.erf)


class Build:
    """Nodes of a model over x, whose result is y; numbers become initialisers."""

    def __init__(self, x=X, opset=17):
        self.nodes, self.weights, self.x, self.opset = [], [], x, opset

    def weight(self, name, array):
        self.weights.append(tensor(name, array))
        return name

    def __getattr__(self, op):
        def add(*operands, to=None, **attributes):
            names = []
            for operand in operands:
                known = not isinstance(operand, str)
                names.append(self.weight(f"c{len(self.weights)}", numpy.asarray(operand, None if isinstance(operand, (list, numpy.ndarray)) else self.x.dtype)) if known else operand)
            to = to or f"/n{len(self.nodes)}"
            self.nodes.append(node(op, names, [to], **attributes))
            return to

        return add

    def model(self, outputs=("y",)):
        kind = {"float32": 1, "float16": 10, "float64": 11}[self.x.dtype.name]
        return model(graph(self.nodes, [value("x", list(self.x.shape), kind)], [value(o, None, kind) for o in outputs], self.weights), opset=self.opset)


def check(t, b, text, want, within=1e-5):
    """The graph is this text, and the evaluator and what it is written to find these values."""
    expect(t.text(b.model()), *([text] if isinstance(text, str) else text))
    got = t.value(b.model(), x=b.x)
    numpy.testing.assert_allclose(got.astype("f8"), want, within, within)
    t.run("import", "m.onnx", "-o", "dir", "--overwrite")
    t.run("run", "dir/m.nnc", "--cc", "gcc -O1", "--input", "x=x.npy", "--output", "y=again.npy")
    numpy.testing.assert_allclose(numpy.load(t.folder / "again.npy").astype("f8"), want, within, within)


def gelu(x):
    return 0.5 * x * (1 + ERF(x / numpy.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + numpy.tanh(numpy.sqrt(2 / numpy.pi) * (x + 0.044715 * x**3)))


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def standardized(x, axes=-1, eps=1e-5):
    d = x - x.mean(axes, keepdims=True)
    return d / numpy.sqrt((d * d).mean(axes, keepdims=True) + eps)


@case
def gelu_of_pytorch(t):
    b = Build()
    b.Mul(b.Mul("x", b.Add(b.Erf(b.Div("x", math.sqrt(2))), 1.0)), 0.5, to="y")
    check(t, b, "y = gelu(x)", gelu(X))


@case
def gelu_of_tensorflow(t):
    b = Build()
    b.Mul(b.Mul(0.5, "x"), b.Add(1.0, b.Erf(b.Mul("x", math.sqrt(0.5)))), to="y")
    check(t, b, "y = gelu(x)", gelu(X))


@case
def gelu_of_keras(t):
    b = Build()
    b.Mul("x", b.Add(b.Mul(b.Erf(b.Div("x", math.sqrt(2))), 0.5), 0.5), to="y")
    check(t, b, "y = gelu(x)", gelu(X))


@case
def gelu_by_tanh(t):
    for cube in (lambda b: b.Pow("x", 3.0), lambda b: b.Mul(b.Mul("x", "x"), "x"), lambda b: b.Mul("x", b.Pow("x", 2.0))):
        b = Build()
        inner = b.Mul(b.Add("x", b.Mul(cube(b), 0.044715)), math.sqrt(2 / math.pi))
        b.Mul(b.Mul("x", 0.5), b.Add(b.Tanh(inner), 1.0), to="y")
        check(t, b, "y = gelu_tanh(x)", gelu_tanh(X))


@case
def gelu_by_tanh_of_a_factor(t):
    b = Build()
    inner = b.Mul(b.Mul("x", math.sqrt(2 / math.pi)), b.Add(b.Mul(b.Mul("x", "x"), 0.044715), 1.0))
    b.Mul(0.5, b.Mul("x", b.Add(1.0, b.Tanh(inner))), to="y")
    check(t, b, "y = gelu_tanh(x)", gelu_tanh(X))


@case
def other_numbers_are_no_gelu(t):
    b = Build()
    b.Mul(b.Mul("x", b.Add(b.Erf(b.Div("x", 1.4143)), 1.0)), 0.5, to="y")
    lines = t.text(b.model())
    assert not any("gelu" in line for line in lines), lines
    numpy.testing.assert_allclose(t.value(b.model(), x=X), 0.5 * X * (1 + ERF(X / 1.4143)), 1e-5, 1e-6)


@case
def a_value_that_something_else_reads_stays(t):
    b = Build()
    inner = b.Erf(b.Div("x", math.sqrt(2)), to="e")
    b.Mul(b.Mul("x", b.Add(inner, 1.0)), 0.5, to="y")
    lines = t.text(b.model(("y", "e")))
    assert not any("gelu" in line for line in lines), lines
    expect(lines[:1], "e = erf(x / 1.4142135)")


@case
def a_number_of_more_dimensions_is_no_part(t):
    b = Build(X[0, 0])
    b.Mul(b.Mul("x", b.Add(b.Erf(b.Div("x", math.sqrt(2))), 1.0)), b.weight("half", numpy.full((1, 1), 0.5, "f4")), to="y")
    assert t.value(b.model(), x=X[0, 0]).shape == (1, 8)


@case
def gelu_of_half_floats_and_doubles(t):
    for dtype, within in (("f2", 5e-3), ("f8", 1e-12)):
        b = Build(X.astype(dtype))
        b.Mul(b.Mul("x", b.Add(b.Erf(b.Div("x", math.sqrt(2))), 1.0)), 0.5, to="y")
        check(t, b, "y = gelu(x)", gelu(X.astype(dtype).astype("f8")), within)
    b = Build(X.astype("f8"))
    b.Mul(b.Mul("x", b.Add(b.Erf(b.Div("x", 1.4142135)), 1.0)), 0.5, to="y")  # as many digits as f32 has
    assert not any("gelu" in line for line in t.text(b.model()))


@case
def silu_swish_mish_and_their_parts(t):
    for build, text, want in (
        (lambda b: b.Mul("x", b.Sigmoid("x"), to="y"), "silu(x)", X * sigmoid(X)),
        (lambda b: b.Mul(b.Sigmoid(b.Mul("x", 1.702)), "x", to="y"), "swish(x, 1.702)", X * sigmoid(1.702 * X)),
        (lambda b: b.Mul("x", b.Tanh(b.Softplus("x")), to="y"), "mish(x)", X * numpy.tanh(numpy.log1p(numpy.exp(X)))),
        (lambda b: b.Mul("x", b.Tanh(b.Log(b.Add(b.Exp("x"), 1.0))), to="y"), "mish(x)", X * numpy.tanh(numpy.log1p(numpy.exp(X)))),
        (lambda b: b.Log(b.Add(b.Exp("x"), 1.0), to="y"), "softplus(x)", numpy.log1p(numpy.exp(X))),
        (lambda b: b.Div(b.Mul("x", b.Clip(b.Add("x", 3.0), 0.0, 6.0)), 6.0, to="y"), "hard_swish(x)", X * numpy.clip(X + 3, 0, 6) / 6),
        (lambda b: b.Div(b.Clip(b.Add("x", 3.0), 0.0, 6.0), 6.0, to="y"), "hard_sigmoid(x)", numpy.clip(X + 3, 0, 6) / 6),
        (lambda b: b.Clip("x", 0.0, 6.0, to="y"), "relu6(x)", numpy.clip(X, 0, 6)),
    ):
        b = Build()
        build(b)
        check(t, b, f"y = {text}", want)


@case
def softmax_and_its_logarithm(t):
    e = numpy.exp(X - X.max(1, keepdims=True))
    b = Build()
    shifted = b.Exp(b.Sub("x", b.ReduceMax("x", axes=[1], keepdims=1)))
    b.Div(shifted, b.ReduceSum(shifted, [1], keepdims=1), to="y")
    check(t, b, "y = softmax(x, axis = 1)", e / e.sum(1, keepdims=True))
    b = Build()
    d = b.Sub("x", b.ReduceMax("x", axes=[-1], keepdims=1))
    b.Sub(d, b.Log(b.ReduceSum(b.Exp(d), [2], keepdims=1)), to="y")
    e = X - X.max(2, keepdims=True)
    check(t, b, "y = log_softmax(x)", e - numpy.log(numpy.exp(e).sum(2, keepdims=True)))


@case
def each_axis_is_its_own(t):
    b = Build()
    shifted = b.Exp(b.Sub("x", b.ReduceMax("x", axes=[1], keepdims=1)))
    b.Div(shifted, b.ReduceSum(shifted, [2], keepdims=1), to="y")
    e = numpy.exp(X - X.max(1, keepdims=True))
    check(t, b, "y = softmax(x - reduce_max(x, axes = [1], keep = true))", e / e.sum(2, keepdims=True))
    b = Build()
    d = b.Sub("x", b.ReduceMean("x", axes=[1], keepdims=1))
    b.Div(d, b.Sqrt(b.Add(b.ReduceMean(b.Mul(d, d), axes=[2], keepdims=1), 1e-3)), to="y")
    assert not any("standardize" in line for line in t.text(b.model()))


@case
def layer_norm_in_all_spellings(t):
    g, z = DICE.normal(size=8).astype("f4"), DICE.normal(size=8).astype("f4")
    for square in ("Pow", "Mul"):
        for root in ("Div", "Reciprocal", "Pow"):
            b = Build()
            d = b.Sub("x", b.ReduceMean("x", axes=[-1], keepdims=1))
            v = b.Add(b.ReduceMean(b.Pow(d, 2.0) if square == "Pow" else b.Mul(d, d), axes=[-1], keepdims=1), 1e-5)
            n = {"Div": lambda: b.Div(d, b.Sqrt(v)), "Reciprocal": lambda: b.Mul(d, b.Reciprocal(b.Sqrt(v))), "Pow": lambda: b.Mul(d, b.Pow(v, -0.5))}[root]()
            b.Add(b.Mul(n, b.weight("ln.weight", g)), b.weight("ln.bias", z), to="y")
            check(t, b, "y = layer_norm@ln(x)", standardized(X) * g + z)


@case
def normalisation_without_weights(t):
    b = Build()
    d = b.Sub("x", b.ReduceMean("x", axes=[0, 1], keepdims=1))
    b.Div(d, b.Sqrt(b.Add(b.ReduceMean(b.Mul(d, d), axes=[0, 1], keepdims=1), 1e-3)), to="y")
    check(t, b, "y = standardize(x, axes = [0, 1], eps = 0.001)", standardized(X, (0, 1), 1e-3))


@case
def a_scale_that_is_no_row_is_no_layer_norm(t):
    b = Build()
    d = b.Sub("x", b.ReduceMean("x", axes=[-1], keepdims=1))
    n = b.Div(d, b.Sqrt(b.Add(b.ReduceMean(b.Mul(d, d), axes=[-1], keepdims=1), 1e-5)))
    column, z = DICE.normal(size=(3, 1)).astype("f4"), DICE.normal(size=8).astype("f4")
    b.Add(b.Mul(n, b.weight("w", column)), b.weight("v", z), to="y")
    assert not any("layer_norm" in line for line in t.text(b.model()))
    numpy.testing.assert_allclose(t.value(b.model(), x=X), standardized(X) * column + z, 1e-4, 1e-5)


@case
def rms_norm(t):
    g = DICE.normal(size=8).astype("f4")
    b = Build()
    root = b.Sqrt(b.Add(b.ReduceMean(b.Pow("x", 2.0), axes=[-1], keepdims=1), 1e-6))
    b.Mul(b.weight("n.weight", g), b.Mul("x", b.Div(1.0, root)), to="y")
    check(t, b, "y = rms_norm@n(x)", X / numpy.sqrt((X * X).mean(-1, keepdims=True) + 1e-6) * g)


@case
def group_norm_of_pytorch(t):
    x = DICE.normal(size=(2, 4, 3, 3)).astype("f4")
    g, z = DICE.normal(size=(4, 1, 1)).astype("f4"), DICE.normal(size=(4, 1, 1)).astype("f4")
    b = Build(x)
    rows = b.InstanceNormalization(b.Reshape("x", [0, 2, -1]), b.weight("one", numpy.ones(2, "f4")), b.weight("zero", numpy.zeros(2, "f4")), epsilon=1e-5)
    b.Add(b.Mul(b.Reshape(rows, [2, 4, 3, 3]), b.weight("gn.weight", g)), b.weight("gn.bias", z), to="y")
    want = standardized(x.reshape(2, 2, -1)).reshape(x.shape) * g + z
    check(t, b, "y = group_norm@gn(x, 2)", want, 1e-4)


@case
def a_product_and_its_bias_are_dense(t):
    w, z = DICE.normal(size=(8, 5)).astype("f4"), DICE.normal(size=5).astype("f4")
    b = Build()
    b.Add(b.weight("fc.bias", z), b.MatMul("x", b.weight("onnx::MatMul_12", w)), to="y")
    check(t, b, "y = dense@fc(x, 5)", X @ w + z)
    b = Build()
    b.Add(b.MatMul("x", b.weight("val_12", w)), b.weight("fc.bias", z), to="y")  # a number that PyTorch gives is no name
    check(t, b, "y = dense@fc(x, 5)", X @ w + z)
    b = Build()
    b.Add(b.MatMul("x", b.weight("w", w)), b.weight("fc.bias", z), to="y")  # w would lose its name
    expect(t.text(b.model()), "param w: f32[8, 5]", "n0 = x @ w", "param fc.bias: f32[5]", "y = n0 + fc.bias")


def heads(x, n):
    return x.reshape(x.shape[0], x.shape[1], n, -1).transpose(0, 2, 1, 3)


def attention(q, k, v, scale, mask=0):
    s = q @ k.swapaxes(-1, -2) * scale + mask
    e = numpy.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


def split(b, x, n, perm=(0, 2, 1, 3)):
    return b.Transpose(b.Reshape(x, [0, 0, n, -1]), perm=list(perm))


@case
def attention_of_bert(t):
    mask = numpy.array([0, 0, -1e4], "f4")
    for masked in (False, True):
        b = Build()
        q, k, v = split(b, "x", 2), split(b, b.Neg("x"), 2, (0, 2, 3, 1)), split(b, b.Exp("x"), 2)
        s = b.Div(b.MatMul(q, k), 2.0)
        p = b.MatMul(b.Softmax(b.Add(s, b.weight("mask", mask)) if masked else s, axis=-1), v)
        b.Reshape(b.Transpose(p, perm=[0, 2, 1, 3]), [0, 0, 8], to="y")
        want = attention(heads(X, 2), heads(-X, 2), heads(numpy.exp(X), 2), 0.5, mask if masked else 0)
        text = "\n".join(t.text(b.model()))
        assert text.count("scaled_dot_product(") == 1 and text.count("split_heads(") == 3 and "merge_heads(" in text, text
        assert "softmax" not in text and "transpose" not in text, text
        numpy.testing.assert_allclose(t.value(b.model(), x=X), want.transpose(0, 2, 1, 3).reshape(X.shape), 1e-4, 1e-5)


@case
def attention_that_scales_both_factors(t):
    b = Build(X[:, None])
    root = 0.5**0.5
    k = b.Transpose("x", perm=[0, 1, 3, 2])
    p = b.Softmax(b.MatMul(b.Mul("x", root), b.Mul(k, root)), axis=-1)
    b.MatMul(p, "x", to="y")
    x = X[:, None]
    scale = numpy.float32(float(numpy.float32(root)) ** 2)
    check(t, b, f"y = scaled_dot_product(x, x, x, scale = {scale!s})", attention(x, x, x, 0.5), 1e-4)


@case
def attention_of_pytorch_over_joined_heads(t):
    """k with batch and heads as one while it is transposed, and k that comes so."""
    for flat in (True, False):
        b = Build(X[None])
        k = b.Reshape("x", [2, 3, 8])
        k = b.Reshape(b.Transpose(k if flat else b.Exp(k), perm=[0, 2, 1]), [1, 2, 8, 3])
        p = b.Softmax(b.MatMul(b.Mul("x", 8**-0.25), b.Mul(k, 8**-0.25)), axis=-1)
        b.MatMul(p, "x", to="y")
        x = X[None]
        text = "y = scaled_dot_product(x, x, x)" if flat else "y = scaled_dot_product(x, reshape(exp(reshape(x, shape = [2, 3, 8])), shape = [1, 2, 3, 8]), x)"
        check(t, b, text, attention(x, x if flat else numpy.exp(x), x, 8**-0.5), 1e-4)


@case
def scores_that_are_read_elsewhere_are_no_attention(t):
    b = Build(X[:, None])
    p = b.Softmax(b.MatMul("x", b.Transpose("x", perm=[0, 1, 3, 2])), axis=-1, to="p")
    b.MatMul(p, "x", to="y")
    assert not any("scaled_dot_product" in line for line in t.text(b.model(("y", "p"))))


@case
def a_mask_with_more_dimensions_is_no_attention(t):
    b = Build(X)
    s = b.MatMul("x", b.Transpose("x", perm=[0, 2, 1]))
    p = b.Softmax(b.Add(s, b.weight("mask", numpy.zeros((4, 1, 3, 3), "f4"))), axis=-1)
    b.MatMul(p, "x", to="y")
    assert not any("scaled_dot_product" in line for line in t.text(b.model()))
    assert t.value(b.model(), x=X).shape == (4, 2, 3, 8)


@case
def attention_of_pytorch_whose_rows_may_be_empty(t):
    """Shares that are no numbers, where a mask of -inf leaves nothing, are 0."""
    b, x = Build(X[:, None]), X[:, None]
    mask = numpy.zeros((3, 3), "f4")
    mask[1] = -numpy.inf
    p = b.Softmax(b.Add(b.MatMul(b.Mul("x", 8**-0.25), b.Mul(b.Transpose("x", perm=[0, 1, 3, 2]), 8**-0.25)), b.weight("mask", mask)), axis=-1)
    b.MatMul(b.Where(b.IsNaN(p), 0.0, p), "x", to="y")
    want = attention(x, x, x, 8**-0.5)
    want[:, :, 1] = 0
    check(t, b, ["param mask: f32[3, 3]", "y = scaled_dot_product(x, x, x, mask, safe = true)"], want, 1e-4)


@case
def keys_that_queries_share(t):
    """[n, h, t, d] with one dimension more, broadcast and put together: also in the middle of keys with joined heads."""
    b, x = Build(X[None]), X[None]
    b.Reshape(b.Expand(b.Unsqueeze("x", [2]), [1, 2, 3, 3, 8]), [1, 6, 3, 8], to="y", allowzero=1)
    check(t, b, "y = repeat(x, 3, 1)", x.repeat(3, 1), 0)
    b = Build(x)
    k = b.Expand(b.Reshape("x", [1, 2, 1, 3, 8]), [1, 2, 2, 3, 8])
    k = b.Reshape(b.Transpose(b.Reshape(k, [4, 3, 8]), perm=[0, 2, 1]), [1, 4, 8, 3])
    q = b.weight("q", DICE.normal(size=(1, 4, 3, 8)).astype("f4"))
    v = b.Reshape(b.Expand(b.Reshape("x", [1, 2, 1, 3, 8]), [1, 2, 2, 3, 8]), [1, 4, 3, 8])
    b.MatMul(b.Softmax(b.Mul(b.MatMul(q, k), 8**-0.5), axis=-1), v, to="y")
    text = "\n".join(t.text(b.model()))
    assert "scaled_dot_product(q, repeat(x, 2, 1), repeat(x, 2, 1))" in text and "broadcast" not in text, text


@case
def what_is_repeated_otherwise_is_no_repeat(t):
    b = Build(X[None])
    b.Reshape(b.Expand(b.Unsqueeze("x", [2]), [1, 2, 3, 3, 8]), [1, 2, 9, 8], to="y")
    assert not any("repeat" in line for line in t.text(b.model()))
    numpy.testing.assert_array_equal(t.value(b.model(), x=X[None]), numpy.tile(X[None], (1, 1, 3, 1)))


def halves_turned(x):
    return numpy.concatenate([-x[..., 4:], x[..., :4]], -1)


@case
def rotary_positions(t):
    c, s = numpy.cos(DICE.normal(size=(3, 8))).astype("f4"), numpy.sin(DICE.normal(size=(3, 8))).astype("f4")
    for swapped in (False, True):
        b = Build()
        first, second = b.Slice("x", [0], [4], [-1], [1]), b.Slice("x", [4], [2**62], [2], [1])
        turned = b.Mul(b.Concat(b.Neg(second), first, axis=-1), b.weight("s", s))
        kept = b.Mul(b.weight("c", c), "x") if swapped else b.Mul("x", b.weight("c", c))
        b.Add(*((turned, kept) if swapped else (kept, turned)), to="y")
        text = t.text(b.model())
        assert text[-1] == "y = rotary(x, c, s)" and len(text) == 3, text
        numpy.testing.assert_allclose(t.value(b.model(), x=X), X * c + halves_turned(X) * s, 1e-6, 1e-6)


@case
def halves_the_other_way_are_no_rotary(t):
    b = Build()
    first, second = b.Slice("x", [0], [4], [2], [1]), b.Slice("x", [4], [8], [2], [1])
    b.Add(b.Mul("x", "x"), b.Mul(b.Concat(b.Neg(first), second, axis=2), "x"), to="y")
    assert not any("rotary" in line for line in t.text(b.model()))


@case
def nodes_that_give_what_they_are_given(t):
    true = numpy.ones((2, 3, 8), bool)
    positions = numpy.stack(numpy.meshgrid(range(2), range(3), indexing="ij"), -1).reshape(1, 6, 2)
    for write, text, want in (
        (lambda b: b.Neg(b.Mul("x", 1.0), to="y"), "y = neg(x)", -X),
        (lambda b: b.Neg(b.Div("x", 1.0), to="y"), "y = neg(x)", -X),
        (lambda b: b.Neg(b.Where(b.weight("m", true), "x", -1e9), to="y"), "y = neg(x)", -X),
        (lambda b: b.Neg(b.Where(b.weight("m", ~true), -1e9, "x"), to="y"), "y = neg(x)", -X),
        (lambda b: b.Where(b.And(b.weight("m", true), b.Less("x", 0.5)), "x", 0.5, to="y"), "y = select(x < 0.5, x, 0.5)", numpy.minimum(X, 0.5)),
        (lambda b: b.Neg(b.Reshape("x", [2, -1, 8]), to="y"), "y = neg(x)", -X),
        (lambda b: b.Neg(b.Gather("x", numpy.arange(3), axis=1), to="y"), "y = neg(x)", -X),
        (lambda b: b.GatherND("x", b.weight("at", positions), to="y"), "y = reshape(x, shape = [1, 6, 8])", X.reshape(1, 6, 8)),
    ):
        b = Build()
        write(b)
        check(t, b, text, want, 1e-6)


@case
def factors_that_may_be_trained_and_shapes_that_change_stay(t):
    b = Build()
    b.Neg(b.Mul("x", b.weight("gain", numpy.ones(8, "f4"))), to="y")
    assert any("gain" in line for line in t.text(b.model()))
    b = Build()
    b.Where(b.weight("m", numpy.ones((4, 2, 3, 8), bool)), "x", 0.0, to="y")
    assert t.value(b.model(), x=X).shape == (4, 2, 3, 8)
    b = Build()
    b.Gather("x", numpy.array([0, 2, 1]), axis=1, to="y")
    numpy.testing.assert_array_equal(t.value(b.model(), x=X), X[:, [0, 2, 1]])


def quantise(x, scale, zero, low, high):
    return numpy.clip(numpy.round(x / numpy.float32(scale)) + zero, low, high)


@case
def numbers_that_become_integers_and_floats_again(t):
    b = Build()
    scale, zero = b.weight("s", numpy.float32(0.05)), b.weight("z", numpy.uint8(7))
    q = b.QuantizeLinear("x", scale, zero, to="x_QuantizeLinear_Output")
    b.Neg(b.DequantizeLinear(q, scale, zero, to="x_DequantizeLinear_Output"), to="y")
    want = (quantise(X, 0.05, 7, 0, 255) - 7) * numpy.float32(0.05)
    check(t, b, "y = neg(fake_quantize(x, scale = 0.05, zero = 7, to = u8))", -want, 1e-6)
    b.nodes.append(node("Cast", [q], ["seen"], to=1))  # the integers are read, too
    text = t.text(b.model(("y", "seen")))
    assert text[0] == "x_q = quantize(x, scale = 0.05, zero = 7, to = u8)" and "y = neg(dequantize(x_q, scale = 0.05, zero = 7))" in text, text


@case
def other_scales_are_no_pair(t):
    b = Build()
    zero = b.weight("z", numpy.int8(0))
    b.DequantizeLinear(b.QuantizeLinear("x", b.weight("s", numpy.float32(0.05)), zero), b.weight("r", numpy.float32(0.06)), zero, to="y")
    check(t, b, "y = dequantize(quantize(x, scale = 0.05, zero = 0, to = i8), scale = 0.06, zero = 0)", quantise(X, 0.05, 0, -128, 127) * numpy.float32(0.06), 1e-6)


@case
def quantised_weights_of_channels(t):
    """Zero points of 0 are left out, others stay; each weight stands where it is read."""
    scales = numpy.linspace(0.01, 0.02, 64, dtype="f4")
    for zeros in (numpy.zeros(64, "i1"), numpy.arange(64, dtype="i1")):
        b = Build()
        w = DICE.integers(-50, 50, (8, 64)).astype("i1")
        wide = b.DequantizeLinear(b.weight("w", w), b.weight("s", scales), b.weight("z", zeros), axis=1, to="w_DequantizeLinear_Output")
        b.MatMul(b.Neg(b.Abs("x")), wide, to="y")
        text = t.text(b.model())
        behind = ", z" if zeros.any() else ""
        assert text[-1] == f"y = neg(abs(x)) @ dequantize(w, s{behind}, axis = 1)", text
        want = -abs(X) @ ((w.astype("f4") - zeros) * scales)
        numpy.testing.assert_allclose(t.value(b.model(), x=X), want, 1e-4, 1e-4)


if __name__ == "__main__":
    main()
