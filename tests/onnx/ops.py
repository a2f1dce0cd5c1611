"""What becomes of single ops of ONNX: the text where it tells, and values beside NumPy.

    ops.py --nnc NNC        reports as TAP
"""

import numpy

from harness import case, expect, main
from write import coded, data, graph, model, node, number, tensor, value

W = numpy.arange(6, dtype="f4").reshape(2, 3)
X = value("x", [1, 2])


@case
def equations_become_names(t):
    m = model(graph([node("Einsum", ["x", "w"], ["y"], equation="...ij,jk->...k")], [value("x", [4, 2, 3]), value("w", [3, 5])],
                    [value("y", None)]))
    expect(t.text(m), 'y = einsum([x, w], [["0", "i", "j"], ["j", "k"]], ["0", "k"])')
    x, w = numpy.arange(24, dtype="f4").reshape(4, 2, 3), numpy.arange(15, dtype="f4").reshape(3, 5)
    numpy.testing.assert_array_equal(t.value(m, x=x, w=w), numpy.einsum("bij,jk->bk", x, w))


@case
def labels_of_one_element_stand_for_many(t):
    for equation, *shapes in (("...ij,...jk->...ik", [1, 2, 3], [4, 3, 2]), ("b...,a...->...ba", [2, 1], [3, 5]), ("ij,jk->ik", [2, 1], [3, 4]),
                              ("...a,...a->...", [1, 2], [3, 2]), ("i,i->i", [1], [3]), ("ii,i->i", [1, 1], [3])):
        x, z = (numpy.random.default_rng(5).normal(size=shape).astype("f4") for shape in shapes)
        m = model(graph([node("Einsum", ["x", "z"], ["y"], equation=equation)], [value("x", shapes[0]), value("z", shapes[1])], [value("y", None)]))
        numpy.testing.assert_allclose(t.value(m, x=x, z=z), numpy.einsum(equation, x, z), 1e-5, 1e-6)
    t.write(model(graph([node("Einsum", ["x"], ["y"], equation="ii->i")], [value("x", [1, 3])], [value("y", None)])))
    assert "extents of one label differ" in t.run("import", "m.onnx", status=1)


@case
def equations_of_plain_products_are_products(t):
    x, w = (numpy.random.default_rng(i).normal(size=s).astype("f4") for i, s in enumerate([(2, 4, 3), (2, 5, 3)]))
    turned = w.transpose(0, 2, 1)
    for equation, y, text in (("bik,bjk->bij", w, "matmul(x, w, transpose_y = true)"),
                              ("bik, bjk -> jbi", w, "transpose(matmul(x, w, transpose_y = true), axes = [2, 0, 1])"),
                              ("bik,bkj->ibj", turned, "transpose(x @ w, axes = [1, 0, 2])"),
                              ("kib,kjb->ikj", w, "transpose(matmul(x, w, transpose_y = true), axes = [1, 0, 2])"),
                              ("kbi,bkj->bij", x.transpose(1, 0, 2), "transpose(x, axes = [1, 2, 0]) @ w")):
        m = model(graph([node("Einsum", ["x", "w"], ["y"], equation=equation)], [value("x", [2, 4, 3]), value("w", list(y.shape))],
                        [value("y", None)]))
        expect(t.text(m), f"y = {text}")
        numpy.testing.assert_allclose(t.value(m, x=x, w=y), numpy.einsum(equation, x, y), 1e-5, 1e-6)


@case
def caches_that_go_round(t):
    m = model(graph([node("TensorScatter", ["x", "u", "at"], ["y"], axis=1, mode="circular")],
                    [value("x", [2, 3, 1]), value("u", [2, 2, 1]), value("at", [2], 7)], [value("y", None)]), opset=24)
    y = t.value(m, x=numpy.zeros((2, 3, 1), "f4"), u=numpy.array([[[1], [2]], [[3], [4]]], "f4"), at=numpy.array([0, 2]))
    numpy.testing.assert_array_equal(y[..., 0], [[1, 2, 0], [4, 0, 3]])


@case
def the_largest_of_nothing(t):
    m = model(graph([node("ReduceMax", ["x"], ["y"], axes=[1]), node("ReduceMin", ["x"], ["z"], axes=[1], keepdims=0)],
                    [value("x", [2, 0])], [value("y", None), value("z", None)]))
    numpy.testing.assert_array_equal(t.value(m, x=numpy.zeros((2, 0), "f4")), [[-numpy.inf], [-numpy.inf]])
    numpy.testing.assert_array_equal(t.value(m, "z", x=numpy.zeros((2, 0), "f4")), [numpy.inf, numpy.inf])
    for dtype, kind in (("u1", 2), ("i1", 3), ("i4", 6), ("i8", 7), ("u8", 13)):
        m = model(graph([node(op, ["x"], [y], axes=[1], keepdims=0) for op, y in (("ReduceMax", "y"), ("ReduceMin", "z"))], [value("x", [1, 0], kind)],
                        [value("y", None), value("z", None)]), opset=13)
        numpy.testing.assert_array_equal(t.value(m, x=numpy.zeros((1, 0), dtype)), [numpy.iinfo(dtype).min])
        numpy.testing.assert_array_equal(t.value(m, "z", x=numpy.zeros((1, 0), dtype)), [numpy.iinfo(dtype).max])


@case
def the_largest_of_none_of_them(t):
    m = model(graph([node("TopK", ["x", "k"], ["y", "z"], axis=1)], [value("x", [2, 3])], [value("y", None), value("z", None, 7)],
                    [tensor("k", numpy.array([0]))]), opset=13)
    x = numpy.zeros((2, 3), "f4")
    assert t.value(m, x=x).shape == (2, 0) and t.value(m, "z", x=x).dtype == numpy.int64


@case
def nothing_is_moved_and_chosen_along_other_axes(t):
    empty = numpy.zeros((0, 3), "f4")
    m = model(graph([node("ArgMax", ["x"], ["y"], axis=1, keepdims=0)], [value("x", [0, 3])], [value("y", None, 7)]), opset=13)
    assert t.value(m, x=empty).shape == (0,)
    m = model(graph([node("GatherND", ["x", "i"], ["y"])], [value("x", [0, 3]), value("i", [0, 1], 7)], [value("y", None)]), opset=13)
    assert t.value(m, x=empty, i=numpy.zeros((0, 1), "i8")).shape == (0, 3)
    m = model(graph([node("AveragePool", ["x"], ["y"], kernel_shape=[2, 2])], [value("x", [0, 1, 4, 4])], [value("y", None)]), opset=13)
    assert t.value(m, x=numpy.zeros((0, 1, 4, 4), "f4")).shape == (0, 1, 3, 3)


@case
def sums_of_exponentials_of_integers(t):
    x = numpy.array([[3, 3, 3], [-2, 0, -9], [700, 700, 0]], "i4")
    m = model(graph([node("ReduceLogSumExp", ["x"], ["y"], axes=[1], keepdims=0)], [value("x", [3, 3], 6)], [value("y", None, 6)]), opset=13)
    numpy.testing.assert_array_equal(t.value(m, x=x), [4, 0, 700])


@case
def triangles_from_a_diagonal_that_moves(t):
    x = numpy.arange(1, 25, dtype="f4").reshape(2, 3, 4)
    for upper, of in ((0, numpy.tril), (1, numpy.triu)):
        m = model(graph([node("Trilu", ["x", "k"], ["y"], upper=upper)], [value("x", [2, 3, 4]), value("k", [], 7)], [value("y", None)]))
        for k in (-9, -1, 0, 2, 9):
            numpy.testing.assert_array_equal(t.value(m, x=x, k=numpy.array(k)), of(x, k))


@case
def loops_of_one_round_and_of_none(t):
    """What the condition says behind the last round does not matter; no round gives no slices, of the shape that the body says."""
    body = graph([node("Add", ["v", "x"], ["w"]), node("ReduceSum", ["w"], ["s"], keepdims=0), node("Less", ["s", "ten"], ["on"])],
                 [value("i", [], 7), value("go", [], 9), value("v", [2])], [value("on", [], 9), value("w", [2]), value("w", [2])], name="body")
    x = numpy.array([1, 2], "f4")
    for rounds, y, z in ((1, 2 * x, 2 * x[None]), (0, x, x[None][:0])):
        m = model(graph([node("Loop", ["n", "", "x"], ["y", "z"], body=body)], [value("x", [2])], [value("y", None), value("z", None)],
                        [tensor("n", numpy.array(rounds)), tensor("ten", numpy.float32(10))]))
        numpy.testing.assert_array_equal(t.value(m, x=x), y)
        numpy.testing.assert_array_equal(t.value(m, "z", x=x), z)


@case
def slices_that_nobody_reads_are_not_made(t):
    """So how many there would be may be known only when running; also where a node that nobody reads reads them"""
    body = graph([node("Add", ["v", "x"], ["w"]), node("Identity", ["go"], ["on"]), node("Neg", ["w"], ["s"])],
                 [value("i", [], 7), value("go", [], 9), value("v", [2])], [value("on", [], 9), value("w", [2]), value("s", [2])], name="body")
    x = numpy.array([1, 2], "f4")
    for name, others in (("", []), ("z", []), ("z", [node("Neg", ["z"], ["u"])])):
        m = model(graph([node("Loop", ["n", "", "x"], ["y", name], body=body), *others], [value("x", [2]), value("n", [], 7)], [value("y", None)]))
        numpy.testing.assert_array_equal(t.value(m, x=x, n=numpy.array(3)), 4 * x)
    late = graph([node("Neg", ["u"], ["y"]), node("Neg", ["z"], ["u"]), node("Loop", ["n", "", "x"], ["", "z"], body=body)],
                 [value("x", [2]), value("n", [], 7)], [value("y", None)], [])
    numpy.testing.assert_array_equal(t.value(model(late), flags=["-D", "n=2"], x=x), [-2 * x, -3 * x])
    t.write(model(graph([node("Loop", ["n", "", "x"], ["y", "z"], body=body), node("Shape", ["z"], ["s"])], [value("x", [2]), value("n", [], 7)], [value("s", None, 7)])))
    assert "'n' is known only when running" in t.run("import", "m.onnx", status=1)


@case
def branches_that_nobody_reads_are_not_there(t):
    """Nor what only they would have read: a loop in one of them, as exporters leave it behind"""
    body = graph([node("Add", ["v", "v"], ["w"])], [value("i", [], 7), value("go", [], 9), value("v", [2])], [value("go", [], 9), value("w", [2])], name="body")
    loop = graph([node("Loop", ["n", "", "x"], ["b"], body=body)], [], [value("b", [2])], name="loop")
    other = graph([node("Neg", ["x"], ["q"])], [], [value("q", [2])], name="other")
    m = model(graph([node("If", ["c"], ["u"], then_branch=loop, else_branch=other), node("Tanh", ["x"], ["y"])], [value("x", [2]), value("c", [], 9)], [value("y", None)],
                    [tensor("n", numpy.array(3))]))
    x = numpy.array([1, 2], "f4")
    numpy.testing.assert_allclose(t.value(m, x=x, c=numpy.array(True)), numpy.tanh(x), rtol=1e-6)
    assert "if (" not in t.text(m) and "while" not in t.text(m)


@case
def no_rounds_whatever_the_condition_says(t):
    body = graph([node("Add", ["v", "x"], ["w"]), node("Identity", ["go"], ["on"])],
                 [value("i", [], 7), value("go", [], 9), value("v", [2])], [value("on", [], 9), value("w", [2]), value("w", [2])], name="body")
    m = model(graph([node("Loop", ["n", "c", "x"], ["y", "z"], body=body)], [value("x", [2]), value("c", [], 9)], [value("y", None), value("z", None)],
                    [tensor("n", numpy.array(0))]))
    x = numpy.array([1, 2], "f4")
    numpy.testing.assert_array_equal(t.value(m, x=x, c=numpy.array(True)), x)
    assert t.value(m, "z", x=x, c=numpy.array(True)).shape == (0, 2)


@case
def first_states_that_do_not_fit_are_refused(t):
    shapes = {"x": [2, 1, 3], "w": [1, 8, 3], "r": [1, 8, 2]}
    for more, why in (({"b": None, "l": None, "h": [1, 1, 3]}, "its first states or peepholes do not fit"),
                      ({"b": None, "l": None, "h": None, "c": [1, 2, 2]}, "its first states or peepholes do not fit"),
                      ({"b": None, "l": None, "h": None, "c": None, "p": [1, 4]}, "its first states or peepholes do not fit"),
                      ({"x": [2, 1, 4]}, "its operands do not fit each other")):
        given = {**shapes, **more}
        nodes = [node("LSTM", [name if given[name] else "" for name in given], ["y"], hidden_size=2), node("Frobnicate", ["x"], ["z"])]
        t.write(model(graph(nodes, [value(name, shape) for name, shape in given.items() if shape], [value("y", None)])))
        told = t.run("import", "m.onnx", status=1)
        assert "2 of 2 nodes are not supported" in told and why in told, told


@case
def scatters_that_combine(t):
    m = model(graph([node("ScatterND", ["x", "i", "u"], ["y"], reduction="mul")],
                    [value("x", [4]), value("i", [3, 1], 7), value("u", [3])], [value("y", None)]), opset=18)
    expect(t.text(m), 'y = scatter_nd(x, i, u, mode = "mul")')
    y = t.value(m, x=numpy.array([1, 2, 3, 4], "f4"), i=numpy.array([[1], [1], [-1]]), u=numpy.array([3, 5, 7], "f4"))
    numpy.testing.assert_array_equal(y, [1, 30, 3, 28])


@case
def unsigned_integers(t):
    big = numpy.array([2**64 - 1, 2**63], "u8")
    m = model(graph([node("Add", ["x", "w"], ["y"]), node("Div", ["x", "w"], ["q"]), node("BitwiseXor", ["x", "w"], ["z"])],
                    [value("x", [2], 13)], [value(name, None) for name in "yqz"], [tensor("w", big)]), opset=18)
    x = numpy.array([3, 2**64 - 1], "u8")
    numpy.testing.assert_array_equal(t.value(m, x=x), x + big)
    numpy.testing.assert_array_equal(t.value(m, "q", x=x), x // big)
    numpy.testing.assert_array_equal(t.value(m, "z", x=x), x ^ big)


@case
def bits_keep_their_size(t):
    m = model(graph([node("BitCast", ["x"], ["y"], to=6)], [value("x", [2])], [value("y", None)]), opset=26)
    x = numpy.array([1, -0.0], "f4")
    expect(t.text(m), "y = bitcast(x, to = i32)")
    numpy.testing.assert_array_equal(t.value(m, x=x), x.view("i4"))


@case
def narrow_types_are_carried_by_wider_ones(t):
    for listed in (False, True):
        for kind, content, wanted in ((22, b"\x21\xf8", [1, 2, -8]), (21, b"\x21\xf8", [1, 2, 8]), (26, b"\x1e", [-2, -1, 1]),
                                      (17, b"\x38\x7e\x01", [1, 448, 2.0**-9]), (18, b"\x40\x7f\x80", [1, 240, numpy.nan]),
                                      (19, b"\x3c\x7c\xfb", [1, numpy.inf, -57344]), (20, b"\x40\x7f\x80", [1, 57344, numpy.nan]),
                                      (23, b"\x72\x0b", [1, 6, -1.5]), (24, b"\x7f\x00\xff", [1, 2.0**-127, numpy.nan])):
            m = model(graph([node("Cast", ["w"], ["h"], to=1), node("Add", ["x", "h"], ["y"])], [value("x", [3])], [value("y", None)],
                            [coded("w", [3], kind, content, listed)]), opset=25)
            numpy.testing.assert_array_equal(t.value(m, x=numpy.zeros(3, "f4")), numpy.array(wanted, "f4"))
    t.write(model(graph([node("Neg", ["w"], ["y"])], [], [value("y", None)], [coded("w", [5], 22, b"\x21\xf8")])))
    assert "'w': it has not as many elements as its shape asks for" in t.run("import", "m.onnx", status=1)


@case
def conversions_to_narrow_types_round_and_wrap(t):
    x = numpy.array([0.3, -9, 15.6, 500, -numpy.inf, numpy.nan, 0.0196], "f4")
    for to, wanted in ((17, [0.3125, -9, 16, 448, -448, numpy.nan, 0.01953125]), (19, [0.3125, -8, 16, 512, -57344, numpy.nan, 0.01953125]),
                       (23, [0.5, -6, 6, 6, -6, 0, 0])):
        m = model(graph([node("Cast", ["x"], ["y"], to=to)], [value("x", [7])], [value("y", None)]), opset=25)
        numpy.testing.assert_array_equal(t.value(m, x=x), numpy.array(wanted, "f2"))
    m = model(graph([node("Cast", ["x"], ["y"], to=22)], [value("x", [3], 7)], [value("y", None)]), opset=25)
    numpy.testing.assert_array_equal(t.value(m, x=numpy.array([7, 8, -9], "i8")), numpy.array([7, -8, 7], "i1"))


@case
def sparse_weights_become_whole_ones(t):
    x, w = numpy.ones((2, 3), "f4"), numpy.array([[0, 5, 0], [0, 0, -7]], "f4")
    for positions in (numpy.array([1, 5]), numpy.array([[0, 1], [1, 2]])):
        sparse = data(1, tensor("w", numpy.array([5, -7], "f4"))) + data(2, tensor("", positions)) + number(3, 2) + number(3, 3)
        held = graph([node("Add", ["x", "w"], ["y"])], [value("x", [2, 3])], [value("y", None)]) + data(15, sparse)
        constant = data(2, "w") + data(4, "Constant") + data(5, data(1, "sparse_value") + data(22, sparse) + number(20, 11))
        given = graph([constant, node("Add", ["x", "w"], ["y"])], [value("x", [2, 3])], [value("y", None)])
        for content in (held, given):
            numpy.testing.assert_array_equal(t.value(model(content), x=x), x + w)


@case
def what_is_as_large_as_data_say_has_a_count(t):
    x = numpy.array([[3, 0, 1], [0, 0, 2]], "f4")
    m = model(graph([node("NonZero", ["x"], ["at"]), node("Transpose", ["at"], ["rows"], perm=[1, 0]), node("Cast", ["rows"], ["y"], to=6)],
                    [value("x", [2, 3])], [value("y", None)]))
    assert any("y.count" in line.split(" = ")[0] for line in t.text(m))
    count = t.value(m, "y.count", x=x)
    y = t.value(m, x=x)
    assert count == 3 and y.shape == (6, 2) and y.dtype == numpy.int32
    numpy.testing.assert_array_equal(y[:3], numpy.argwhere(x))
    m = model(graph([node("NonZero", ["x"], ["at"]), node("Pad", ["at", "k"], ["y"], mode="reflect")], [value("x", [2, 3])], [value("y", None)],
                    [tensor("k", numpy.array([0, 1, 0, 1]))]))
    t.write(m)
    assert "'at' is as large as data say" in t.run("import", "m.onnx", status=1)
    m = model(graph([node("TopK", ["x", "k"], ["y", "i"], axis=1)], [value("x", [2, 3]), value("k", [1], 7)], [value("y", None), value("i", None, 7)]))
    y = t.value(m, x=x, k=numpy.array([2]))
    numpy.testing.assert_array_equal(y[:, : int(t.value(m, "y.count", x=x, k=numpy.array([2])))], [[3, 1], [2, 0]])


@case
def what_data_bound_goes_on_entry_by_entry(t):
    """The rows of a table whose first number is above 0, as a detector chooses its boxes"""
    table = numpy.array([[1, 2], [-1, 5], [3, 4], [0, 7], [6, -8], [2, 9]], "f4")
    ints = {"column": [1], "ends": [3], "zero": [0], "one": [1], "flat": [-1, 2], "first": [0, 0]}
    weights = [tensor(k, numpy.array(v)) for k, v in ints.items()] + [tensor("zeros", numpy.zeros((), "f4")), tensor("two", numpy.float32(2))]
    chosen = [node("Gather", ["x", "zero0"], ["score"], axis=1), node("Greater", ["score", "zeros"], ["good"]), node("NonZero", ["good"], ["at"]),
              node("Transpose", ["at"], ["rows"], perm=[1, 0]), node("Squeeze", ["rows", "column"], ["places"]), node("Gather", ["x", "places"], ["boxes"])]
    weights.append(tensor("zero0", numpy.array(0)))
    inputs, want = [value("x", [6, 2])], table[table[:, 0] > 0]

    def found(*nodes):
        m = model(graph([*chosen, *nodes], inputs, [value("y", None)], weights), opset=17)
        y, count = t.value(m, x=table), int(t.value(m, "y.count", x=table))
        return y, count

    y, count = found(node("Mul", ["boxes", "two"], ["y"]))
    assert count == 4
    numpy.testing.assert_array_equal(y[:4], want * 2)
    y, count = found(node("Slice", ["boxes", "zero", "ends", "zero"], ["y"]))
    assert count == 3 and y.shape == (3, 2)
    numpy.testing.assert_array_equal(y, want[:3])
    y, count = found(node("Slice", ["boxes", "column", "ends", "column"], ["y"]))
    assert count == 4
    numpy.testing.assert_array_equal(y[:4], want[:, 1:])
    y, count = found(node("Unsqueeze", ["places", "column"], ["p"]), node("Cast", ["p"], ["f"], to=1), node("Concat", ["boxes", "f"], ["y"], axis=1))
    assert count == 4
    numpy.testing.assert_array_equal(y[:4], numpy.concatenate([want, numpy.argwhere(table[:, 0] > 0)], 1))
    y, count = found(node("Unsqueeze", ["boxes", "zero"], ["u"]), node("Squeeze", ["u", "zero"], ["s"]), node("Reshape", ["s", "flat"], ["y"]))
    assert count == 4
    numpy.testing.assert_array_equal(y[:4], want)
    for refused in ([node("Add", ["boxes", "x"], ["y"])],
                    [node("Concat", ["boxes", "x"], ["y"], axis=1)]):
        t.write(model(graph([*chosen, *refused], inputs, [value("y", None)], weights), opset=17))
        assert "is as large as data say" in t.run("import", "m.onnx", status=1)


@case
def maps_of_scores_stay_scores(t):
    m = model(graph([node("Softmax", ["x"], ["scores"], axis=1), node("ZipMap", ["scores"], ["y"], domain="ai.onnx.ml", classlabels_int64s=[3, 5, 7])],
                    [value("x", [2, 3])], [value("y", None)]), domains=["ai.onnx.ml"])
    numpy.testing.assert_allclose(t.value(m, x=W).sum(1), [1, 1], 1e-6)
    expect(t.text(m), "y = softmax(x)")


@case
def classes_by_support_vectors_win_pairs(t):
    dice = numpy.random.default_rng(4)
    x, vectors, weights = dice.normal(size=(9, 2)).astype("f4"), dice.normal(size=(4, 2)), dice.normal(size=(2, 4))
    rho, of_class = [0.1, -0.2, 0.3], [0, 1, 1, 2]
    row = {"classlabels_ints": [7, 5, 9], "vectors_per_class": [1, 2, 1], "support_vectors": vectors.ravel().tolist(), "coefficients": weights.ravel().tolist(),
           "rho": rho, "kernel_type": "RBF", "kernel_params": [0.5, 0.0, 3.0]}
    m = model(graph([node("SVMClassifier", ["x"], ["y", "z"], domain="ai.onnx.ml", **row)], [value("x", [9, 2])], [value("y", None, 7), value("z", None)]), domains=["ai.onnx.ml"])
    kernel = numpy.exp(-0.5 * ((x[:, None] - vectors.astype("f4")) ** 2).sum(-1))
    scores, votes = [], numpy.zeros((9, 3))
    for (i, j), shift in zip([(0, 1), (0, 2), (1, 2)], rho):
        chosen = [weights[j - 1, v] if c == i else weights[i, v] if c == j else 0 for v, c in enumerate(of_class)]
        scores.append(kernel @ chosen + shift)
        votes[range(9), numpy.where(scores[-1] > 0, i, j)] += 1
    numpy.testing.assert_allclose(t.value(m, "z", x=x), numpy.stack(scores, 1), 1e-5, 1e-5)
    numpy.testing.assert_array_equal(t.value(m, "y", x=x), numpy.array([7, 5, 9])[votes.argmax(1)])


@case
def sequences_and_optionals_are_tensors_one_by_one(t):
    from write import data
    def listed(name):
        return data(1, name) + data(2, data(4, data(1, data(1, number(1, 1)))))
    m = model(graph([node("SequenceInsert", ["s", "x"], ["y"])], [listed("s"), X], [listed("y")]))
    t.write(m)
    assert "--shape s=[2x3,4]" in t.run("import", "m.onnx", status=1)
    text = t.run("import", "m.onnx", "--shape", "s=[2x3,4]")
    assert "(s.0: f32[2, 3], s.1: f32[4], x: f32[1, 2]) -> (y.0, y.1, y.2)" in text, text
    for wrong in ("s=2x3", "s=[2x3,q]", "s=[2x3", "s=none"):
        assert "m.onnx: error" in t.run("import", "m.onnx", "--shape", wrong, status=1)


@case
def weights_of_four_bits(t):
    """In three blocks of 16, the last one of 8, with zero points of two to a byte, known or not"""
    dice = numpy.random.default_rng(4)
    packed, scale, zero = dice.integers(0, 256, (3, 3, 8), "u1"), dice.normal(size=(3, 3)).astype("f4"), dice.integers(0, 256, (3, 2), "u1")
    halves = lambda bytes: numpy.stack([bytes & 15, bytes >> 4], -1).reshape(3, -1).astype("f4")
    w = ((halves(packed).reshape(3, 3, 16) - halves(zero)[:, :3, None]) * scale[:, :, None]).reshape(3, 48)[:, :40]
    x = dice.normal(size=(2, 40)).astype("f4")
    for known in (True, False):
        weights = [tensor("w", packed), tensor("s", scale)] + [tensor("z", zero)] * known
        m = model(graph([node("MatMulNBits", ["x", "w", "s", "z"], ["y"], domain="com.microsoft", K=40, N=3, bits=4, block_size=16)],
                        [value("x", [2, 40])] + [value("z", [3, 2], 2)] * (not known), [value("y", None)], weights), domains=["com.microsoft"])
        numpy.testing.assert_allclose(t.value(m, x=x, **({} if known else {"z": zero})), x @ w.T, 1e-4, 1e-4)
        assert ("y.zeros: u8[3, 3] = [[" in t.run("import", "m.onnx")) == known

    """Zero points of the scales' type, one for each block"""
    zero = dice.normal(8, 3, (3, 3)).astype("f4")
    w = ((halves(packed).reshape(3, 3, 16) - zero[:, :, None]) * scale[:, :, None]).reshape(3, 48)[:, :40]
    m = lambda zero: model(graph([node("MatMulNBits", ["x", "w", "s", "z"], ["y"], domain="com.microsoft", K=40, N=3, bits=4, block_size=16)],
                                 [value("x", [2, 40])], [value("y", None)], [tensor("w", packed), tensor("s", scale), tensor("z", zero)]),
                           domains=["com.microsoft"])
    numpy.testing.assert_allclose(t.value(m(zero), x=x), x @ w.T, 1e-4, 1e-4)
    t.write(m(zero.astype("f2")))
    assert "its zero points are neither packed integers nor of the scales' type" in t.run("compile", "m.onnx", status=1)
    t.write(m(zero[:2]))
    assert "its zero points have other extents" in t.run("compile", "m.onnx", status=1)


@case
def known_operands_of_ops_that_are_written_in_steps(t):
    """What such a node has written itself is read by the op that it stands for, and is not known."""
    x, table = numpy.array([[[1, 2], [3, 4]]], "f4"), numpy.array([[1], [0.5], [0]], "f4")
    weights = [tensor(name, array) for name, array in (("x", x), ("p", numpy.array([0])), ("c", table), ("s", 1 - table))]
    m = model(graph([node("RotaryEmbedding", ["x", "p", "c", "s"], ["y"], domain="com.microsoft")], [value("z", [1])], [value("y", None)], weights),
              domains=["com.microsoft"])
    numpy.testing.assert_allclose(t.value(m, z=numpy.zeros(1, "f4")), [[[1, 2], [-0.5, 3.5]]])


@case
def integers_that_shrink_by_fractions(t):
    for kind, code, x, want in (("i4", 6, [-3, -1, 0, 1, 2], [-2, 0, 0, 0, 1]), ("u1", 2, [0, 1, 2, 200], [0, 0, 1, 199])):
        m = model(graph([node("Shrink", ["x"], ["y"], lambd=0.5, bias=0.75)], [value("x", [len(x)], code)], [value("y", None, code)]), opset=9)
        numpy.testing.assert_array_equal(t.value(m, x=numpy.array(x, kind)), want)
    m = model(graph([node("Shrink", ["x"], ["y"], lambd=1.0, bias=2.0)], [value("x", [4], 2)], [value("y", None, 2)]), opset=9)
    numpy.testing.assert_array_equal(t.value(m, x=numpy.array([0, 1, 2, 9], "u1")), [0, 0, 0, 7])


@case
def gradients_by_what_y_was_computed_of(t):
    """By inputs and by what lies between; zs stay as they are; other operands than those that are named are refused."""
    steps = [node("Mul", ["a", "b"], ["h"]), node("Mul", ["h", "h"], ["y"])]
    def given(operands, results, **row):
        nodes = [*steps, node("Gradient", operands, results, domain="ai.onnx.preview.training", y="y", **row)]
        return model(graph(nodes, [value("a", [2]), value("b", [2])], [value(r, None) for r in results]), domains=["ai.onnx.preview.training"])
    a, b = numpy.array([1, 2], "f4"), numpy.array([3, -1], "f4")
    numpy.testing.assert_allclose(t.value(given(["a", "b"], ["d"], xs=["a"], zs=["b"]), "d", a=a, b=b), 2 * a * b * b)
    numpy.testing.assert_allclose(t.value(given(["h"], ["d"], xs=["h"]), "d", a=a, b=b), 2 * a * b)
    numpy.testing.assert_allclose(t.value(given(["b", "a"], ["d", "e"], xs=["b", "a"]), "e", a=a, b=b), 2 * a * b * b)
    t.write(given(["b"], ["d"], xs=["a"]))
    assert "operand 0 is not 'a', of which y was computed" in t.run("import", "m.onnx", status=1)
    t.write(given(["a", "a"], ["d"], xs=["a"], zs=["b"]))
    assert "operand 1 is not 'b', of which y was computed" in t.run("import", "m.onnx", status=1)


@case
def ops_of_onnx_runtime_that_onnx_has_too(t):
    def own(op, operands, x=numpy.array([[1, 2], [3, 5]], "f4"), **row):
        weights = [tensor(f"w{i}", w) for i, w in enumerate(operands)]
        kind = {"float32": 1, "uint16": 4}[x.dtype.name]
        return t.value(model(graph([node(op, ["x", *(f"w{i}" for i in range(len(operands)))], ["y"], domain="com.microsoft", **row)],
                                   [value("x", list(x.shape), kind)], [value("y", None)], weights), opset=17, domains=["com.microsoft"]), x=x)
    x = numpy.array([[1, 2], [3, 5]], "f4")
    quarter, zero = numpy.array(0.25, "f4"), numpy.array(100, "u2")
    for found, want in ((own("QuantizeLinear", [quarter, zero]), (x * 4 + 100).astype("u2")),
                        (own("DequantizeLinear", [quarter, zero], x=numpy.array([99, 104], "u2")), [-0.25, 1]),
                        (own("Pad", [numpy.array([0, 1, 0, 0]), numpy.array([7], "f4")]), [[7, 1, 2], [7, 3, 5]]),
                        (own("Trilu", [numpy.array(1)]), [[0, 2], [0, 0]]), (own("GatherND", [numpy.array([[1, 0], [-1, -1]])]), [3, 5]),
                        (own("ExpandDims", [numpy.array(-1, "i4")]), x[..., None]), (own("ExpandDims", [numpy.array(0, "i4")]), x[None]),
                        (own("Inverse", []), [[-5, 2], [3, -1]]), (own("CDist", [x[::-1].copy()], metric="sqeuclidean"), [[13, 0], [0, 13]]),
                        (own("TransposeMatMul", [x], transA=1, alpha=2.0), 2 * x.T @ x),
                        (own("UnfoldTensor", [], x=x.reshape(1, 4, 1), dim=-2, size=2, step=2), [[[[1, 2]], [[3, 5]]]]),
                        (own("UnfoldTensor", [], dim=0, size=1), x[..., None])):
        numpy.testing.assert_allclose(found, want, 1e-5, 1e-6)


@case
def statistics_of_a_layer_norm(t):
    """They are f32, also of f64, unless stash_type says otherwise; what they serve is f64."""
    x = numpy.arange(8, dtype="f8").reshape(2, 4) ** 2 / 3
    weights = [tensor("g", numpy.ones(4, "f8")), tensor("b", numpy.zeros(4, "f8"))]
    for row, dtype in (({}, "f4"), ({"stash_type": 1}, "f4"), ({"stash_type": 11}, "f8")):
        m = model(graph([node("LayerNormalization", ["x", "g", "b"], ["y", "mean", "inverse"], **row)], [value("x", [2, 4], 11)],
                        [value("y", None, 11), value("mean", None), value("inverse", None)], weights), opset=17)
        mean, deviation = x.mean(1, keepdims=True), numpy.sqrt(x.var(1, keepdims=True) + float(numpy.float32(1e-5)))
        numpy.testing.assert_allclose(t.value(m, x=x), (x - mean) / deviation, 1e-13, 1e-13)
        for name, want in (("mean", mean), ("inverse", 1 / deviation)):
            found = t.value(m, name, x=x)
            assert found.dtype == dtype
            numpy.testing.assert_allclose(found, want, 1e-6)


@case
def norms_of_sums_of_halves(t):
    """They are computed in f32, and only results are rounded."""
    x, z = (numpy.array(list, "f2") for list in ([[1000, 1001, 1003, 1004.5]], [[0.25, 0.25, 0.25, 0.25]]))
    weights = [tensor("z", z), tensor("g", numpy.full(4, 2, "f2"))]
    wide = x.astype("f4") + z.astype("f4")
    for op, middle in (("SkipLayerNormalization", wide.mean()), ("SkipSimplifiedLayerNormalization", 0)):
        m = model(graph([node(op, ["x", "z", "g"], ["y", "", "", "sum"], domain="com.microsoft", epsilon=1e-5)], [value("x", [1, 4], 10)],
                        [value("y", None, 10), value("sum", None, 10)], weights), domains=["com.microsoft"])
        want = 2 * (wide - middle) / numpy.sqrt(((wide - middle) ** 2).mean() + 1e-5)
        y, sum_ = t.value(m, x=x), t.value(m, "sum", x=x)
        assert y.dtype == sum_.dtype == "f2"
        numpy.testing.assert_allclose(y, want, 1e-3)
        numpy.testing.assert_array_equal(sum_, wide.astype("f2"))


@case
def slices_that_begin_before_the_first(t):
    def sliced(begin, end, step, n=4):
        weights = [tensor(name, numpy.array([v])) for name, v in (("b", begin), ("e", end), ("a", 0), ("s", step))]
        m = model(graph([node("Slice", ["x", "b", "e", "a", "s"], ["y"])], [value("x", [n])], [value("y", None)], weights))
        return t.value(m, x=numpy.arange(n, dtype="f4")).tolist()
    assert sliced(-6, -2**63 + 1, -1) == sliced(-6, -9, -2) == sliced(-5, -9, -1) == sliced(-4, -100, -1) == [0]
    assert sliced(-6, 0, -1) == sliced(-6, 3, -1) == sliced(-6, -9, -1, n=0) == []
    assert sliced(9, -9, -2) == [3, 1] and sliced(-6, 9, 2) == [0, 2]


@case
def softmax_of_nothing(t):
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        for axis in (0, 1):
            m = model(graph([node(op, ["x"], ["y"], axis=axis)], [value("x", [3, 0])], [value("y", None)]))
            assert t.value(m, x=numpy.zeros((3, 0), "f4")).shape == (3, 0)


@case
def reductions_of_integers_are_cut_off(t):
    x = numpy.array([[3, 4, 5, -7, 9], [1, 1, 2, 0, -5], [-3, -4, -4, 0, 0], [1, 0, 0, 0, 1], [7, 8, 8, 6, 4]])
    want = {"Mean": [2, 0, -2, 0, 6], "L1": [28, 9, 11, 2, 33], "L2": [13, 5, 6, 1, 15], "SumSquare": [180, 31, 41, 2, 229]}
    def reduced(op, x, kind):
        m = model(graph([node("Reduce" + op, ["x"], ["y"], axes=[1], keepdims=0)], [value("x", list(x.shape), kind)], [value("y", None, kind)]), opset=13)
        return t.value(m, x=x)
    for kind, dtype in ((6, "i4"), (7, "i8"), (12, "u4"), (13, "u8")):
        for op, wanted in want.items() if dtype[0] == "i" else ():
            numpy.testing.assert_array_equal(reduced(op, x.astype(dtype), kind), wanted)
        numpy.testing.assert_array_equal(reduced("Mean", abs(x).astype(dtype), kind), [5, 1, 2, 0, 6])
        numpy.testing.assert_array_equal(reduced("LogSum", abs(x).astype(dtype), kind), [3, 2, 2, 0, 3])
    for op, kind, why in (("Mean", 3, "its operand is i8"), ("L2", 9, "its operand is bool")):
        t.write(model(graph([node("Reduce" + op, ["x"], ["y"], axes=[1])], [value("x", [2, 3], kind)], [value("y", None, kind)]), opset=13))
        assert why in t.run("import", "m.onnx", status=1)


@case
def integers_are_divided_towards_zero(t):
    m = model(graph([node("Div", ["a", "b"], ["y"]), node("Mod", ["a", "b"], ["r"], fmod=1)], [value("a", [6], 6), value("b", [6], 6)],
                    [value("y", None), value("r", None)]))
    a, b = numpy.array([7, -7, 7, -7, -(1 << 31), -8], "i4"), numpy.array([2, 2, -2, -2, 2, 4], "i4")
    numpy.testing.assert_array_equal(t.value(m, a=a, b=b), [3, -3, -3, 3, -(1 << 30), -2])
    numpy.testing.assert_array_equal(t.value(m, "r", a=a, b=b), [1, -1, 1, -1, 0, 0])


@case
def labels_that_stand_twice_in_an_operand_are_summed(t):
    """Without an arrow the result has those that stand once in all operands together."""
    a = numpy.arange(36, dtype="f4").reshape(3, 3, 4) - 7
    for equation, shape in (("iij", (3, 3, 4)), ("...ii", (4, 3, 3)), ("ii", (3, 3))):
        x = a.reshape(-1)[:numpy.prod(shape)].reshape(shape)
        m = model(graph([node("Einsum", ["x"], ["y"], equation=equation)], [value("x", list(shape))], [value("y", None)]))
        found = t.value(m, x=x)
        numpy.testing.assert_allclose(found, numpy.einsum(equation, x))
        assert found.shape == numpy.einsum(equation, x).shape


@case
def quantised_from_and_to_halves(t):
    """Divided as the scale's type, or as the one that `precision` says; the result is of the dtype that is asked for."""
    x = (numpy.arange(24).reshape(4, 6) * 13.7 - 160).astype("f2")
    scale = numpy.array(1.37, "f2")

    def quantise(scale, **row):
        m = model(graph([node("QuantizeLinear", ["x", "s", "z"], ["y"], **row)], [value("x", [4, 6], 10)], [value("y", None, 3)],
                        [tensor("s", scale), tensor("z", numpy.array(3, "i1"))]), opset=23)
        return t.value(m, x=x)

    def wanted(ratio):
        return numpy.clip(numpy.rint(ratio.astype("f4")) + 3, -128, 127)

    numpy.testing.assert_array_equal(quantise(scale), wanted(x / scale))
    numpy.testing.assert_array_equal(quantise(scale.astype("f4")), wanted(x.astype("f4") / scale.astype("f4")))
    numpy.testing.assert_array_equal(quantise(scale, precision=1), wanted(x.astype("f4") / scale.astype("f4")))
    codes = numpy.arange(-6, 6, dtype="i1").reshape(3, 4)
    m = model(graph([node("DequantizeLinear", ["x", "s"], ["y"], output_dtype=10)], [value("x", [3, 4], 3)], [value("y", None, 10)],
                    [tensor("s", numpy.array(0.3, "f4"))]), opset=23)
    found = t.value(m, x=codes)
    assert found.dtype == numpy.float16
    numpy.testing.assert_array_equal(found, (codes * numpy.float32(0.3)).astype("f2"))


@case
def wide_integers_of_half_scales(t):
    """f16 holds neither 100000 nor 2049: they are scaled in f32."""
    scale, codes = numpy.array(0.001, "f2"), numpy.array([100000, -70000, 2049], "i4")
    for row, dtype in (({}, "f2"), ({"output_dtype": 1}, "f4")):
        m = model(graph([node("DequantizeLinear", ["x", "s"], ["y"], **row)], [value("x", [3], 6)], [value("y", None, 10)], [tensor("s", scale)]), opset=23)
        found = t.value(m, x=codes)
        assert found.dtype == dtype
        numpy.testing.assert_array_equal(found, (codes.astype("f4") * scale.astype("f4")).astype(dtype))


@case
def halves_are_computed_as_f32(t):
    """What lies between, as sums, squares and products, may be beyond f16 where the result is not."""
    def value_of(op, x, operands=(), **row):
        domain = row.get("domain", "")
        m = model(graph([node(op, ["x", *(f"w{i}" for i in range(len(operands)))], ["y"], **row)], [value("x", list(x.shape), 10)], [value("y", None, 10)],
                        [tensor(f"w{i}", w) for i, w in enumerate(operands)]), opset=17, domains=[domain] if domain else [])
        found = t.value(m, x=x)
        assert found.dtype == numpy.float16
        return found

    x = numpy.random.default_rng(1).uniform(500, 2000, (2, 4, 6, 6)).astype("f2")
    w, rows = x.astype("f4"), x.reshape(2, 144)
    squares = sum(numpy.pad(w * w, ((0, 0), (1, 1), (0, 0), (0, 0)))[:, i:i + 4] for i in range(3))
    for name, found, wanted in (
            ("LRN", value_of("LRN", x, size=3, alpha=0.01), w / (1 + 0.01 / 3 * squares) ** 0.75),
            ("GlobalLpPool", value_of("GlobalLpPool", x), numpy.sqrt((w * w).sum((2, 3), keepdims=True))),
            ("LpPool", value_of("LpPool", x, kernel_shape=[6, 6]), numpy.sqrt((w * w).sum((2, 3), keepdims=True))),
            ("LpNormalization", value_of("LpNormalization", rows, p=1), rows.astype("f4") / rows.astype("f4").sum(1, keepdims=True)),
            ("LpNormalization of squares", value_of("LpNormalization", rows * 16), rows / numpy.sqrt((rows.astype("f4") ** 2).sum(1, keepdims=True))),
            ("ReduceLogSum", value_of("ReduceLogSum", rows, axes=[1], keepdims=0), numpy.log(rows.astype("f4").sum(1))),
            ("Mean", value_of("Mean", rows * 16, [rows * 16, rows * 16]), rows * 16),
            ("Gemm", value_of("Gemm", rows, [rows, rows[:, 0]], transB=1, alpha=1e-5), 1e-5 * rows.astype("f4") @ rows.astype("f4").T + rows[:, 0]),
            ("FusedMatMul", value_of("FusedMatMul", rows, [rows.T.copy()], alpha=1e-5, domain="com.microsoft"), 1e-5 * rows.astype("f4") @ rows.astype("f4").T)):
        numpy.testing.assert_allclose(found.astype("f4"), wanted.astype("f4"), 1e-3, err_msg=name)


@case
def products_of_integers_with_half_scales(t):
    """They are of the scales' type, and rounded to it at the end."""
    x, w = numpy.array([[250, 3, 200]], "u1"), numpy.array([[100, -7], [1, 20], [127, -90]], "i1")
    scales, bias = numpy.array([0.013, 0.021], "f2"), numpy.array([-0.5, 0.25], "f2")
    weights = [tensor("w", w), tensor("a", numpy.array(0.017, "f2")), tensor("b", scales), tensor("c", bias)]
    m = model(graph([node("MatMulIntegerToFloat", ["x", "w", "a", "b", "", "", "c"], ["y"], domain="com.microsoft")], [value("x", [1, 3], 2)],
                    [value("y", None, 10)], weights), opset=21, domains=["com.microsoft"])
    found = t.value(m, x=x)
    assert found.dtype == numpy.float16
    numpy.testing.assert_array_equal(found, (x.astype("i4") @ w * (numpy.float32(numpy.float16(0.017)) * scales.astype("f4")) + bias).astype("f2"))


@case
def reductions_over_no_axes(t):
    x = numpy.array([[1, 2, -3], [0.5, -1, 4]], "f4")
    for op, wanted in {"Sum": x, "Max": x, "Mean": x, "LogSumExp": x, "L1": abs(x), "L2": abs(x), "SumSquare": x * x}.items():
        m = model(graph([node("Reduce" + op, ["x"], ["y"], noop_with_empty_axes=1)], [value("x", [2, 3])], [value("y", None)]), opset=18)
        numpy.testing.assert_allclose(t.value(m, x=x), wanted, err_msg=op)
    m = model(graph([node("ReduceLogSum", ["x"], ["y"], noop_with_empty_axes=1)], [value("x", [3], 6)], [value("y", None, 6)]), opset=18)
    numpy.testing.assert_array_equal(t.value(m, x=numpy.array([1, 8, 1000], "i4")), [0, 2, 6])


@case
def learned_models(t):
    def learned(op, x, kind=1, version=3, result="y", **row):
        m = model(graph([node(op, ["x"], ["y"] if result == "y" else ["l", "y"], domain="ai.onnx.ml", **row)], [value("x", list(x.shape), kind)],
                        [value("y", None)]), domains=[("ai.onnx.ml", version)])
        return t.value(m, x=x)

    nan = float("nan")
    found = learned("LabelEncoder", numpy.array([1, 2, nan, 9], "f4"), version=4, keys_floats=[1.0, nan, 2.0], values_floats=[10.0, 30.0, 20.0], default_float=-1.0)
    numpy.testing.assert_array_equal(found, [10, 20, 30, -1])
    found = learned("LabelEncoder", numpy.array([0.1, nan, 0.3]), kind=11, version=4, keys_tensor=numpy.array([0.3, 0.1, nan]),
                    values_tensor=numpy.array([3, 1, 7]), default_tensor=numpy.array([-5]))
    numpy.testing.assert_array_equal(found, [1, 7, 3])
    tree = {"nodes_treeids": [0] * 3, "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0] * 3, "nodes_values": [0.0] * 3, "nodes_truenodeids": [1, 0, 0],
            "nodes_falsenodeids": [2, 0, 0], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"]}
    def leaves(side):
        return {f"{side}_treeids": [0, 0], f"{side}_nodeids": [1, 2], f"{side}_ids": [0, 0], f"{side}_weights": [0.25, 2.0]}
    x = numpy.array([[-1], [1]], "f4")
    s = numpy.array([[0.25], [2.0]])
    found = learned("TreeEnsembleClassifier", x, result="z", **tree, **leaves("class"), classlabels_int64s=[5, 7], post_transform="LOGISTIC")
    numpy.testing.assert_allclose(found, 1 / (1 + numpy.exp(numpy.concatenate([s, -s], 1))), rtol=1e-5)
    found = learned("TreeEnsembleRegressor", x.astype("f8"), kind=11, **tree, **leaves("target"), n_targets=1, base_values_as_tensor=numpy.array([10.0]))
    numpy.testing.assert_allclose(found, s + 10)
    x = numpy.array([[1, 2], [-3, 0.5], [0.5, 1.25]], "f4")
    s = x @ [[0.5], [-0.25]] + 0.125
    row = {"coefficients": [0.5, -0.25], "intercepts": [0.125], "classlabels_ints": [7, 9]}
    numpy.testing.assert_allclose(learned("LinearClassifier", x, result="z", **row), numpy.concatenate([1 - s, s], 1), rtol=1e-6)
    found = learned("LinearClassifier", x, result="z", post_transform="LOGISTIC", **row)
    numpy.testing.assert_allclose(found, 1 / (1 + numpy.exp(numpy.concatenate([s, -s], 1))), rtol=1e-5)

@case
def what_is_found_in_constants_is_exact(t):
    x, boxes = numpy.array([[3, 1, 3], [7, 1, 3]]), numpy.array([[[0, 0, 1, 1], [0, 0, 1, 1.1], [0, 2, 1, 3]]], "f4")
    weights = [tensor("x", x), tensor("rows", x[[1, 0, 1]]), tensor("boxes", boxes), tensor("scores", numpy.array([[[0.5, 0.75, 0.25]]], "f4")),
               tensor("most", numpy.array([3])), tensor("overlap", numpy.array([0.5], "f4"))]
    for made, results in ((node("Unique", ["x"], ["y", "at", "which", "times"]), numpy.unique(x, True, True, True)),
                          (node("Unique", ["rows"], ["y"], axis=0), [x]),
                          (node("NonMaxSuppression", ["boxes", "scores", "most", "overlap"], ["y"]), [numpy.array([[0, 0, 1], [0, 0, 2]])])):
        names = ["y", "at", "which", "times"][:len(results)]
        nodes = [made, *(node("Add", [name, "z"], [name + "z"]) for name in names)]
        m = model(graph(nodes, [value("z", [1], 7)], [value(name + "z", None, 7) for name in names], weights))
        assert not any(".count" in line for line in t.text(m))
        for name, want in zip(names, results):
            numpy.testing.assert_array_equal(t.value(m, name + "z", z=numpy.array([0])), want)


@case
def norms_of_old_opsets_train(t):
    """Where more is asked of them than y, as PyTorch writes it for norms without running statistics"""
    x = numpy.random.default_rng(1).normal(size=(4, 2, 3)).astype("f4")
    mean, variance = x.mean((0, 2)), x.var((0, 2))
    two = [tensor(n, numpy.array(v, "f4")) for n, v in (("s", [1, 2]), ("b", [0, 1]), ("m", [0.5, 1]), ("v", [2, 3]))]
    wanted = {"y": (x - mean[:, None]) / numpy.sqrt(variance[:, None] + 1e-5) * numpy.array([[1], [2]]) + numpy.array([[0], [1]]),
              "new_m": 0.75 * numpy.array([0.5, 1]) + 0.25 * mean, "new_v": 0.75 * numpy.array([2, 3]) + 0.25 * variance, "saved_m": mean, "saved_v": variance}
    for opset in (6, 7, 9, 13):
        m = model(graph([node("BatchNormalization", ["x", "s", "b", "m", "v"], list(wanted), momentum=0.75)], [value("x", [4, 2, 3])],
                        [value(name, None) for name in wanted], two), opset=opset)
        for name, array in wanted.items():
            numpy.testing.assert_allclose(t.value(m, name, x=x), array, 1e-5, 1e-5)
    m = model(graph([node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y", "", "", "", "saved"])], [value("x", [4, 2, 3])], [value("y", None)], two), opset=9)
    numpy.testing.assert_allclose(t.value(m, x=x), wanted["y"], 1e-5, 1e-5)
    t.write(model(graph([node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y", "z"])], [value("x", [4, 2, 3])], [value("y", None), value("z", None)], two), opset=14))
    assert "it does not train" in t.run("import", "m.onnx", status=1)


def leaves_of(weights, targets, **more):
    """Of a tree with two leaves, each of which has the weights of its list for the targets"""
    attributes = dict(nodes_treeids=[0] * 3, nodes_nodeids=[0, 1, 2], nodes_featureids=[0] * 3, nodes_values=[0.0] * 3, nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
                      nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0], target_treeids=[0] * 2 * len(targets), target_ids=targets * 2,
                      target_nodeids=[leaf for leaf in (1, 2) for _ in targets], target_weights=[float(w) for leaf in weights for w in leaf])
    ensemble = node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", **attributes, **more)
    return model(graph([ensemble], [value("x", [2, 1])], [value("y", None)]), domains=[("ai.onnx.ml", 3)])


@case
def leaves_with_several_weights_for_a_target(t):
    x = numpy.array([[-1], [1]], "f4")
    for aggregate in ("SUM", "AVERAGE", "MIN", "MAX"):
        y = t.value(leaves_of([[6, 5, 4], [2, 9, 7]], [0, 0, 0], n_targets=1, aggregate_function=aggregate), x=x)
        numpy.testing.assert_array_equal(y, [[6], [2]])
    for aggregate, first in (("SUM", [11, 11]), ("MIN", [5, 2]), ("MAX", [6, 9])):
        y = t.value(leaves_of([[6, 5, 4], [2, 9, 7]], [0, 0, 1], n_targets=2, aggregate_function=aggregate), x=x)
        numpy.testing.assert_array_equal(y, numpy.transpose([first, [4, 7]]))


if __name__ == "__main__":
    main()
