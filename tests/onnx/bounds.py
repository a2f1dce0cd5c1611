"""What is made of tensors that are as large as data say: sums, orders, shapes and parts of them, as NumPy finds them.

    bounds.py --nnc NNC        reports as TAP
"""

import numpy

from harness import case, main
from write import graph, model, node, tensor, value

DICE = numpy.random.default_rng(7)
NUMBERS = {"zero": [0], "one": [1], "three": [3], "last": [-1], "two_columns": [-1, 2], "ends": [99], "halves": [1, 1]}
WEIGHTS = [tensor(name, numpy.array(list)) for name, list in NUMBERS.items()]
WEIGHTS += [tensor("column", numpy.array(0)), tensor("level", numpy.float32(0)), tensor("none", numpy.zeros(0, "i8"))]


def rows_above(name, table):
    """The rows of a table whose first number is above 0"""
    return [node("Gather", [table, "column"], [name + ".score"], axis=1), node("Greater", [name + ".score", "level"], [name + ".good"]),
            node("NonZero", [name + ".good"], [name + ".at"]), node("Transpose", [name + ".at"], [name + ".rows"], perm=[1, 0]),
            node("GatherND", [table, name + ".rows"], [name])]


TABLES = [numpy.array([[1, 2], [-1, 5], [3, 4], [0, 7], [6, -8], [2, 9]], "f4"), -numpy.ones((6, 2), "f4"), numpy.ones((6, 2), "f4")]


class Found:
    """What nodes behind the chosen rows of x, and of z, give: all, or as many entries as the count says"""

    def __init__(self, t, *nodes):
        self.t, self.nodes = t, nodes

    def __call__(self, x, z=None, axis=0, bounded=True):
        nodes = [*rows_above("a", "x"), *(rows_above("b", "z") if z is not None else []), *self.nodes]
        given = {"x": x} if z is None else {"x": x, "z": z}
        m = model(graph(nodes, [value(name, list(array.shape)) for name, array in given.items()], [value("y", None)], WEIGHTS), opset=18)
        y = self.t.value(m, **given)
        return numpy.take(y, range(int(self.t.value(m, "y.count", **given))), axis) if bounded else y


def chosen(x):
    return x[x[:, 0] > 0]


@case
def elements_go_where_positions_say_that_are_there(t):
    rows = [node("Shape", ["a"], ["a.shape"]), node("Mul", ["a.ones", "last"], ["minus"]), node("Equal", ["a.shape", "minus"], ["open"]),
            node("Where", ["open", "a.ones", "a.shape"], ["wide"]), node("Expand", ["a.rows", "wide"], ["at"])]
    weights = WEIGHTS + [tensor("a.ones", numpy.array([1, 1])), tensor("onto", numpy.full((6, 2), 0.5, "f4"))]
    for x in TABLES:
        m = model(graph([*rows_above("a", "x"), *rows, node("ScatterElements", ["onto", "at", "a"], ["y"], axis=0)],
                        [value("x", [6, 2])], [value("y", None)], weights), opset=18)
        numpy.testing.assert_array_equal(t.value(m, x=x), numpy.where(x[:, :1] > 0, x, numpy.float32(0.5)))


@case
def slices_go_where_lists_of_positions_say_that_are_there(t):
    """Added to others, also as single elements, and counted from the end of what is itself as large as data say"""
    weights = WEIGHTS + [tensor("onto", numpy.full((6, 2), 0.5, "f4"))]
    for x in TABLES:
        for nodes, want in (([*rows_above("a", "x"), node("ScatterND", ["onto", "a.rows", "a"], ["y"], reduction="add")], numpy.where(x[:, :1] > 0, x + 0.5, 0.5)),
                            ([*rows_above("a", "x"), node("ScatterND", ["onto", "a.rows", "a"], ["y"])], numpy.where(x[:, :1] > 0, x, 0.5)),
                            ([node("Greater", ["x", "level"], ["good"]), node("NonZero", ["good"], ["at"]), node("Transpose", ["at"], ["lists"], perm=[1, 0]),
                              node("GatherND", ["x", "lists"], ["some"]), node("ScatterND", ["onto", "lists", "some"], ["y"])], numpy.where(x > 0, x, 0.5))):
            m = model(graph(nodes, [value("x", [6, 2])], [value("y", None)], weights), opset=18)
            numpy.testing.assert_array_equal(t.value(m, x=x), want.astype("f4"))
    within = Found(t, node("Constant", [], ["other"], value=numpy.array([1, 0])), node("Gather", ["a", "other"], ["b"], axis=1), *rows_above("c", "b"),
                   node("Shape", ["a"], ["s"]), node("Slice", ["s", "zero", "one"], ["k"]), node("Sub", ["c.rows", "k"], ["from_end"]), node("ScatterND", ["a", "from_end", "c"], ["y"]))
    for x in TABLES:
        rows = chosen(x)
        numpy.testing.assert_array_equal(within(x), numpy.where(rows[:, 1:] > 0, rows[:, ::-1], rows))


@case
def slices_go_to_as_many_places_as_there_are_of_them(t):
    """Where a mask is set: rows that are counted otherwise than its places, as PyTorch exports masked_scatter, or so many as there are"""
    at = [node("NonZero", ["mask"], ["places"]), node("Transpose", ["places"], ["lists"], perm=[1, 0])]
    some = [node("Shape", ["lists"], ["s"]), node("Gather", ["s", "zero"], ["k"]), node("Slice", ["rows", "zero", "k", "zero"], ["some"])]
    onto, mask = numpy.arange(12, dtype="f4").reshape(6, 2), numpy.array([0, 1, 0, 0, 1, 1], bool)
    for extent, nodes, last in ((4, [*at, *some], "some"), (6, [*at, *some], "some"), (9, [*at, *some], "some"), (3, at, "rows")):
        rows = -numpy.arange(2 * extent, dtype="f4").reshape(extent, 2)
        m = model(graph([*nodes, node("ScatterND", ["onto", "lists", last], ["y"])],
                        [value("onto", [6, 2]), value("mask", [6], 9), value("rows", [extent, 2])], [value("y", None)], WEIGHTS), opset=17)
        want = onto.copy()
        want[mask] = rows[:3]
        numpy.testing.assert_array_equal(t.value(m, onto=onto, mask=mask, rows=rows), want)


@case
def a_sum_of_truths_is_as_many_as_are_found(t):
    """An extent that is their number, as exports have it, whatever shape they are summed in: a bias for each row that is there"""
    for truths in ([node("Cast", ["a.good"], ["ones"], to=7)], [node("Reshape", ["a.good", "halves_of"], ["m"]), node("Cast", ["m"], ["ones"], to=7)]):
        found = Found(t, node("Constant", [], ["halves_of"], value=numpy.array([2, -1])), *truths, node("ReduceSum", ["ones"], ["k"], keepdims=0),
                      node("Reshape", ["k", "last"], ["list"]), node("Constant", [], ["two"], value=numpy.array([2])), node("Concat", ["list", "two"], ["s"], axis=0),
                      node("Constant", [], ["bias"], value=numpy.array([3, 5], "f4")), node("Expand", ["bias", "s"], ["e"]), node("Add", ["a", "e"], ["y"]))
        for x in TABLES:
            numpy.testing.assert_array_equal(found(x), chosen(x) + numpy.array([3, 5], "f4"))
    for dtype in (7, 6):  # summed before they are looked for, as where a mask says which rows become one that was learnt
        nodes = [node("Cast", ["mask"], ["ones"], to=dtype), node("ReduceSum", ["ones"], ["k"]), node("Cast", ["k"], ["list"], to=7), node("Concat", ["list", "pair"], ["s"], axis=0),
                 node("Expand", ["bias", "s"], ["rows"]), node("NonZero", ["mask"], ["at"]), node("Transpose", ["at"], ["lists"], perm=[1, 0]), node("ScatterND", ["x", "lists", "rows"], ["y"])]
        weights = [tensor("pair", numpy.array([2])), tensor("bias", numpy.array([3, 5], "f4"))]
        m = model(graph(nodes, [value("x", [6, 2]), value("mask", [6], 9)], [value("y", None)], weights), opset=18)
        for x in TABLES:
            mask = x[:, 0] > 0
            numpy.testing.assert_array_equal(t.value(m, x=x, mask=mask), numpy.where(mask[:, None], numpy.array([3, 5], "f4"), x))


@case
def reductions_take_what_is_there(t):
    for op, of in (("Sum", numpy.sum), ("Prod", numpy.prod), ("Max", numpy.max), ("Min", numpy.min),
                   ("SumSquare", lambda x, axis: (x * x).sum(axis)), ("L1", lambda x, axis: abs(x).sum(axis)),
                   ("LogSumExp", lambda x, axis: numpy.log(numpy.exp(x).sum(axis))), ("Mean", numpy.mean)):
        found = Found(t, node("Reduce" + op, ["a", "zero"], ["y"], keepdims=0))
        for x in TABLES[::2]:
            numpy.testing.assert_allclose(found(x, bounded=False), of(chosen(x), axis=0), 1e-5, 1e-6)
        across = Found(t, node("Reduce" + op, ["a", "one"], ["y"], keepdims=0))
        numpy.testing.assert_allclose(across(TABLES[0]), of(chosen(TABLES[0]), axis=1), 1e-5, 1e-6)
    places = Found(t, node("ReduceSum", ["a.at"], ["y"], keepdims=0))
    assert [places(x, bounded=False) for x in TABLES] == [numpy.nonzero(x[:, 0] > 0)[0].sum() for x in TABLES]
    for op, wanted in (("ReduceMax", 5), ("ReduceMin", 0)):
        assert Found(t, node(op, ["a.at"], ["y"], keepdims=0))(TABLES[0], bounded=False) == wanted
    for op, of in (("ArgMax", numpy.argmax), ("ArgMin", numpy.argmin)):
        numpy.testing.assert_array_equal(Found(t, node(op, ["a"], ["y"], axis=0, keepdims=0))(TABLES[0], bounded=False), of(chosen(TABLES[0]), 0))


@case
def positions_are_found_again(t):
    """A position from the end is one of what is there; what is chosen may be chosen from again."""
    last = Found(t, node("Shape", ["a"], ["s"]), node("Slice", ["s", "zero", "one"], ["k"]), node("Sub", ["zero", "k"], ["from_end"]),
                 node("Gather", ["a", "from_end"], ["y"]))
    numpy.testing.assert_array_equal(last(TABLES[0], bounded=False), chosen(TABLES[0])[:1])
    t.write(model(graph([*rows_above("a", "x"), node("Gather", ["a", "last"], ["y"])], [value("x", [6, 2])], [value("y", None)], WEIGHTS), opset=18))
    assert "is as large as data say" in t.run("import", "m.onnx", status=1)
    rows = [node("ArgMax", ["a"], ["at"], axis=1, keepdims=0), node("Gather", ["a", "at"], ["y"], axis=1)]
    t.write(model(graph([*rows_above("a", "x"), *rows], [value("x", [6, 2])], [value("y", None)], WEIGHTS), opset=18))
    assert "is as large as data say" in t.run("import", "m.onnx", status=1)  # along two axes
    again = Found(t, *rows_above("c", "a"))
    again.nodes += (node("Neg", ["c"], ["y"]),)
    for x in TABLES:
        numpy.testing.assert_array_equal(again(x), -chosen(x))


@case
def the_best_of_what_is_there(t):
    """As detectors write it: min(3, how many there are), which is known only when running"""
    best = Found(t, node("Gather", ["a", "column"], ["s"], axis=1), node("Shape", ["s"], ["k"]), node("Concat", ["three", "k"], ["both"], axis=0),
                 node("ReduceMin", ["both"], ["least"], keepdims=0), node("Reshape", ["least", "last"], ["few"]),
                 node("TopK", ["s", "few"], ["v", "i"], axis=0), node("Gather", ["a", "i"], ["y"]))
    for x in TABLES:
        rows = chosen(x)
        numpy.testing.assert_array_equal(best(x), rows[numpy.argsort(-rows[:, 0], kind="stable")][:3])


@case
def parts_of_all_sizes_follow_each_other(t):
    """Rows of two tables, and beside them a column of each, which are as many"""
    both = Found(t, node("Concat", ["a", "b", "x"], ["rows"], axis=0), node("Neg", ["a"], ["c"]), node("Neg", ["b"], ["d"]), node("Neg", ["x"], ["e"]),
                 node("Concat", ["c", "d", "e"], ["others"], axis=0), node("Sub", ["rows", "others"], ["y"]))
    for x in TABLES:
        for z in TABLES:
            numpy.testing.assert_array_equal(both(x, z), 2 * numpy.concatenate([chosen(x), chosen(z), x]))


@case
def shapes_of_it_are_those_of_others(t):
    size = Found(t, node("Size", ["a"], ["y"]))
    assert [size(x, bounded=False) for x in TABLES] == [chosen(x).size for x in TABLES]
    ones = Found(t, node("Shape", ["a"], ["s"]), node("ConstantOfShape", ["s"], ["y"], value=numpy.ones(1, "f4")))
    assert [ones(x).shape for x in TABLES] == [chosen(x).shape for x in TABLES]
    folded = Found(t, node("Shape", ["a"], ["s"]), node("Gather", ["s", "zero"], ["n"]), node("Concat", ["n", "halves", "last"], ["extents"], axis=0),
                   node("Reshape", ["a", "extents"], ["y"]))
    numpy.testing.assert_array_equal(folded(TABLES[0]), chosen(TABLES[0])[:, None, None])
    parts = Found(t, node("Split", ["a", "halves"], ["y", "rest"], axis=1))
    numpy.testing.assert_array_equal(parts(TABLES[0]), chosen(TABLES[0])[:, :1])


@case
def numbers_up_to_how_many_there_are(t):
    """As torch.arange of an extent, which picks what is there, too"""
    extent = [node("Shape", ["a"], ["s"]), node("Gather", ["s", "column"], ["n"]), node("Constant", [], ["unit"], value=numpy.array(1)), node("Constant", [], ["k"], value=numpy.array(2))]
    for first, start in (("column", 0), ("k", 2)):
        found = Found(t, *extent, node("Range", [first, "n", "unit"], ["y"]))
        for x in TABLES:
            numpy.testing.assert_array_equal(found(x), numpy.arange(start, len(chosen(x))))
    size = [node("Gather", ["a", "column"], ["first"], axis=1), node("Size", ["first"], ["size"]), node("Range", ["column", "size", "unit"], ["y"])]
    numpy.testing.assert_array_equal(Found(t, *extent, *size)(TABLES[0]), numpy.arange(len(chosen(TABLES[0]))))
    beside = [node("Range", ["column", "n", "unit"], ["i"]), node("Cast", ["i"], ["f"], to=1), node("Unsqueeze", ["f", "one"], ["g"]), node("Add", ["a", "g"], ["y"])]
    numpy.testing.assert_array_equal(Found(t, *extent, *beside)(TABLES[0]), chosen(TABLES[0]) + numpy.arange(len(chosen(TABLES[0])))[:, None])
    again = Found(t, *extent, node("Range", ["column", "n", "unit"], ["i"]), node("Gather", ["a", "i"], ["y"]))
    numpy.testing.assert_array_equal(again(TABLES[0]), chosen(TABLES[0]))


@case
def slices_between_computed_positions(t):
    nodes = [node("Gather", ["ends", "zero"], ["from"]), node("Gather", ["ends", "one"], ["to"]),
             node("Slice", ["x", "from", "to", "one", "one"], ["y"]), node("ReduceSum", ["y", "one"], ["sum"], keepdims=0), node("ReduceMean", ["y"], ["mean"], axes=[1])]
    weights = [w for name, w in zip(NUMBERS, WEIGHTS) if name != "ends"]
    m = model(graph(nodes, [value("x", [2, 5]), value("ends", [2], 7)], [value(n, None) for n in ("y", "sum", "mean")], weights), opset=13)
    x = DICE.normal(size=(2, 5)).astype("f4")
    for begin, end in ((1, 4), (0, 5), (-2, 9), (-9, -1), (3, 3), (4, 2)):
        given = {"x": x, "ends": numpy.array([begin, end])}
        want = x[:, begin:end]
        y, count, sums, mean = (t.value(m, name, **given) for name in ("y", "y.count", "sum", "mean"))
        numpy.testing.assert_array_equal(y[:, :int(count)], want)
        numpy.testing.assert_allclose(sums, want.sum(1), 1e-5, 1e-6)
        numpy.testing.assert_allclose(mean, want.mean(1, keepdims=True) if want.size else numpy.zeros((2, 1)), 1e-5, 1e-6)


class Chosen:
    """What nodes make of the entries of x that m chooses, along an axis of the result; None: the result is whole"""

    def __init__(self, t, *nodes, axis=0, **weights):
        self.t, self.nodes, self.axis, self.weights = t, nodes, axis, [tensor(k, numpy.asarray(v)) for k, v in weights.items()]

    def __call__(self, x, m):
        content = model(graph([node("Compress", ["x", "m"], ["a"], axis=0), *self.nodes], [value("x", list(x.shape)), value("m", [len(x)], 9)],
                              [value("y", None)], self.weights), opset=17)
        y = self.t.value(content, x=x, m=m)
        return y if self.axis is None else numpy.take(y, range(int(self.t.value(content, "y.count", x=x, m=m))), self.axis)


MASKS = [numpy.array(list_, bool) for list_ in ([1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1])]


@case
def images_of_a_batch_are_looked_at_one_by_one(t):
    images, four = DICE.normal(size=(4, 4, 4, 4)).astype("f4"), numpy.ones(4, "f4")
    for nodes, weights in (([node("Conv", ["a", "w"], ["y"])], {"w": DICE.normal(size=(3, 4, 2, 2)).astype("f4")}),
                           ([node("MaxPool", ["a"], ["p", "at"], kernel_shape=[2, 2]), node("Cast", ["at"], ["y"], to=1)], {}),
                           ([node("GlobalAveragePool", ["a"], ["y"])], {}), ([node("DepthToSpace", ["a"], ["y"], blocksize=2)], {}),
                           ([node("BatchNormalization", ["a", "w", "w", "w", "w"], ["y"])], {"w": four}),
                           ([node("InstanceNormalization", ["a", "w", "w"], ["y"])], {"w": four}), ([node("LayerNormalization", ["a", "w"], ["y"])], {"w": four}),
                           ([node("Resize", ["a", "", "w"], ["y"], mode="linear")], {"w": numpy.array([1, 1, 2, 1.5], "f4")}),
                           ([node("Pad", ["a", "w"], ["y"], mode="reflect")], {"w": [0, 0, 1, 1, 0, 0, 2, 0]}), ([node("Tile", ["a", "w"], ["y"])], {"w": [1, 2, 1, 1]})):
        found, whole = (Chosen(t, *nodes, **weights) for _ in range(2))
        every = whole(images, MASKS[2])
        assert len(every) == 4
        for mask in MASKS[:2]:
            here = every[mask] if nodes[0].find(b"MaxPool") < 0 else whole(numpy.concatenate([images[mask], images[~mask]]), MASKS[2])[: mask.sum()]
            numpy.testing.assert_allclose(found(images, mask), here, 1e-5, 1e-5)


@case
def sums_and_products_see_what_is_there(t):
    rows, w = DICE.normal(size=(4, 3)).astype("f4"), DICE.normal(size=(3, 2)).astype("f4")
    flip = node("Transpose", ["a"], ["f"], perm=[1, 0])
    for m in MASKS:
        a = rows[m]
        numpy.testing.assert_allclose(Chosen(t, node("CumSum", ["a", "k"], ["y"], reverse=1), k=numpy.array(0))(rows, m), a[::-1].cumsum(0)[::-1], 1e-5, 1e-5)
        numpy.testing.assert_allclose(Chosen(t, node("CumSum", ["a", "k"], ["y"], exclusive=1), k=numpy.array(0))(rows, m), a.cumsum(0) - a, 1e-5, 1e-5)
        numpy.testing.assert_allclose(Chosen(t, flip, node("MatMul", ["f", "a"], ["y"]), axis=None)(rows, m), a.T @ a, 1e-5, 1e-5)
        numpy.testing.assert_allclose(Chosen(t, flip, node("MatMul", ["w", "f"], ["y"]), axis=1, w=w.T)(rows, m), w.T @ a.T, 1e-5, 1e-5)
        again = Chosen(t, node("ReduceMax", ["a"], ["r"], axes=[1], keepdims=0), node("Greater", ["r", "w"], ["c"]), node("Compress", ["a", "c"], ["y"], axis=0), w=numpy.float32(0.5))
        numpy.testing.assert_array_equal(again(rows, m), a[a.max(1) > 0.5])
    places = numpy.array([2, 0, 1, 3], "f4")
    hot = Chosen(t, node("Cast", ["a"], ["i"], to=7), node("OneHot", ["i", "d", "v"], ["y"], axis=0), axis=1, d=numpy.array(4), v=numpy.array([0, 1], "f4"))
    numpy.testing.assert_array_equal(hot(places, MASKS[0]), numpy.eye(4)[:, [2, 1, 3]])


@case
def products_of_batches_of_what_is_there(t):
    """The batch is counted, in one operand or in both, or rows, columns, what is summed over; vectors, too"""
    x = DICE.normal(size=(4, 3, 2)).astype("f4")
    w, one, v = DICE.normal(size=(2, 5)).astype("f4"), DICE.normal(size=(1, 2, 5)).astype("f4"), DICE.normal(size=2).astype("f4")
    turn = [node("Transpose", ["a"], [name], perm=perm) for name, perm in (("f", [0, 2, 1]), ("r", [1, 0, 2]), ("k", [1, 2, 0]))]
    for m in MASKS:
        a = x[m]
        f, r, k = (a.transpose(perm) for perm in ((0, 2, 1), (1, 0, 2), (1, 2, 0)))
        for operands, want, axis in ((["a", "f"], a @ f, 0), (["a", "w"], a @ w, 0), (["a", "one"], a @ one, 0), (["a", "v"], a @ v, 0), (["v", "f"], v @ f, 0),
                                     (["r", "one"], r @ one, 1), (["v", "k"], v @ k, 1), (["r", "v"], r @ v, 1), (["k", "r"], k @ r, None)):
            found = Chosen(t, *turn, node("MatMul", operands, ["y"]), axis=axis, w=w, one=one, v=v)
            numpy.testing.assert_allclose(found(x, m), want, 1e-5, 1e-5)
    t.write(model(graph([node("Compress", ["x", "m"], ["a"], axis=0), node("MatMul", ["a", "w"], ["y"])],
                        [value("x", [4, 3, 2]), value("m", [4], 9)], [value("y", None)], [tensor("w", numpy.zeros((4, 2, 5), "f4"))]), opset=17))
    assert "'a' is as large as data say" in t.run("import", "m.onnx", status=1)


@case
def padding_stands_behind_what_is_there(t):
    x = DICE.normal(size=(4, 2)).astype("f4")
    for given, number in ({}, 0), ({"c": numpy.float32(7)}, 7):
        found = Chosen(t, node("Pad", ["a", "p", *given], ["y"]), p=[2, 0, 1, 1], **given)
        for m in MASKS:
            numpy.testing.assert_array_equal(found(x, m), numpy.pad(x[m], ((2, 1), (0, 1)), constant_values=number))


@case
def copies_of_what_is_there_follow_each_other(t):
    x = DICE.normal(size=(4, 2)).astype("f4")
    for times in ([3, 1], [2, 2], [1, 2]):
        found = Chosen(t, node("Tile", ["a", "k"], ["y"]), k=numpy.array(times))
        for m in MASKS:
            numpy.testing.assert_array_equal(found(x, m), numpy.tile(x[m], times))


@case
def extents_around_entries_are_folded(t):
    """What stands before the axis of entries, what stands behind it, and what is folded into it"""
    x = DICE.normal(size=(4, 2, 6)).astype("f4")
    back = node("Transpose", ["a"], ["b"], perm=[1, 0, 2])
    for axis, of, shape in ((0, "a", (1, -1)), (1, "a", (-1, 12)), (2, "a", (-1, 6)), (1, "b", (2, -1)), (-2, "b", (2, -1))):
        found = Chosen(t, back, node("Flatten", [of], ["y"], axis=axis), axis=shape.index(-1))
        for m in MASKS[::2]:
            numpy.testing.assert_array_equal(found(x, m), (x[m] if of == "a" else x[m].transpose(1, 0, 2)).reshape(shape))
    for shape, axis in ([2, -1, 2, 3], 1), ([1, 2, -1, 6], 2), ([2, -1], 1), ([2, -1, 3], 1), ([2, 1, -1, 6], 2):
        found = Chosen(t, back, node("Reshape", ["b", "k"], ["y"]), axis=axis, k=shape)
        for m in MASKS[::2]:
            numpy.testing.assert_array_equal(found(x, m), x[m].transpose(1, 0, 2).reshape(shape))
    t.write(model(graph([node("Compress", ["x", "m"], ["a"], axis=0), back, node("Reshape", ["b", "k"], ["y"])],
                        [value("x", [4, 2, 6]), value("m", [4], 9)], [value("y", None)], [tensor("k", numpy.array([-1, 6]))]), opset=17))
    assert "'b' is as large as data say" in t.run("import", "m.onnx", status=1)


@case
def different_ones_of_what_is_there(t):
    x = numpy.array([3, 1, 3, 1], "f4")
    for m in [*MASKS, numpy.array([0, 1, 0, 1], bool)]:
        content = model(graph([node("Compress", ["x", "m"], ["a"], axis=0), node("Unique", ["a"], ["y", "at", "which", "times"])], [value("x", [4]), value("m", [4], 9)],
                              [value(name, None, 1 if name == "y" else 7) for name in ("y", "at", "which", "times")]), opset=17)
        for name, want in zip(("y", "at", "which", "times"), numpy.unique(x[m], return_index=True, return_inverse=True, return_counts=True)):
            found, count = (t.value(content, result, x=x, m=m) for result in (name, name + ".count"))
            numpy.testing.assert_array_equal(found[:count], want, name)


@case
def elements_by_their_places(t):
    """Of triangles, of the unit matrix; at positions, from the end, too; slices of each entry of a batch"""
    x, m = DICE.normal(size=(4, 3)).astype("f4"), MASKS[0]
    a = x[m]
    numpy.testing.assert_array_equal(Chosen(t, node("Trilu", ["a"], ["y"], upper=0))(x, m), numpy.tril(a))
    numpy.testing.assert_array_equal(Chosen(t, node("EyeLike", ["a"], ["y"], k=1))(x, m), numpy.eye(3, k=1))
    p = numpy.array([[1, 0, 2], [2, 2, 1]])
    end = [node("Shape", ["a"], ["s"]), node("Slice", ["s", "zero", "one"], ["n"]), node("Sub", ["p", "n"], ["at"])]
    weights = {"p": p, "zero": numpy.array([0]), "one": numpy.array([1])}
    numpy.testing.assert_array_equal(Chosen(t, *end, node("GatherElements", ["a", "at"], ["y"], axis=0), axis=None, **weights)(x, m), numpy.take_along_axis(a, p, 0))
    largest = [node("ArgMax", ["a"], ["i"], axis=1), node("GatherElements", ["a", "i"], ["y"], axis=1)]
    numpy.testing.assert_array_equal(Chosen(t, *largest)(x, m), a.max(1, keepdims=True))
    batch = [node("ArgMax", ["a"], ["i"], axis=1), node("GatherND", ["a", "i"], ["y"], batch_dims=1)]
    numpy.testing.assert_array_equal(Chosen(t, *batch)(x, m), a.max(1))
    flat = [node("Transpose", ["a"], ["b"], perm=[1, 0]), node("GatherND", ["b", "k"], ["y"])]
    numpy.testing.assert_array_equal(Chosen(t, *flat, axis=2, k=numpy.array([[[2], [0]]]))(x, m), a.T[[[2, 0]]])
    each = [*flat[:1], node("GatherND", ["b", "k"], ["y"], batch_dims=1)]
    numpy.testing.assert_array_equal(Chosen(t, *each, axis=None, k=numpy.array([[2], [0], [1]]))(x, m), a.T[[0, 1, 2], [2, 0, 1]])


@case
def parts_that_are_as_large_as_data_say(t):
    """In equal lengths, the last one less; by lengths that are known, computed from how many there are, or given"""
    x = DICE.normal(size=(6, 2)).astype("f4")
    rows = [node("Compress", ["x", "m"], ["a"], axis=0)]
    rest = [node("Shape", ["a"], ["s"], end=1), node("Sub", ["s", "two"], ["r"]), node("Concat", ["two", "r"], ["l"], axis=0)]
    weights = [tensor("two", numpy.array([2])), tensor("known", numpy.array([1, 3]))]
    for mask in ([1, 1, 0, 1, 1, 0], [1, 1, 1, 0, 1, 1], [1] * 6):
        m = numpy.array(mask, bool)
        a = x[m]
        for nodes, parts in (([node("Split", ["a"], ["y", "z"], num_outputs=2)], numpy.array_split(a, 2)),
                             ([*rest, node("Split", ["a", "l"], ["y", "z"])], [a[:2], a[2:]]), ([node("Split", ["a", "known"], ["y", "z"])], [a[:1], a[1:4]])):
            content = model(graph(rows + nodes, [value("x", [6, 2]), value("m", [6], 9)], [value("y", None), value("z", None)], weights), opset=18)
            for name, want in zip("yz", parts):
                y, count = (t.value(content, result, x=x, m=m) for result in (name, name + ".count"))
                numpy.testing.assert_array_equal(y[:count], want)
    given = model(graph([node("Abs", ["l"], ["q"]), node("Split", ["x", "q"], ["y", "z"], axis=0), node("ReduceSum", ["z", "k"], ["sum"], keepdims=0)],
                        [value("x", [6, 2]), value("l", [2], 7)], [value("y", None), value("sum", None)], [tensor("k", numpy.array([0]))]), opset=18)
    for first in (0, 2, 6):
        lengths = numpy.array([first, 6 - first])
        y, count, sums = (t.value(given, result, x=x, l=lengths) for result in ("y", "y.count", "sum"))
        numpy.testing.assert_array_equal(y[:count], x[:first])
        numpy.testing.assert_allclose(sums, x[first:].sum(0), 1e-5, 1e-6)


@case
def extents_are_found_in_parts_of_shapes(t):
    shape = [node("Shape", ["x"], ["s"]), node("Split", ["s"], ["p", "q"], num_outputs=2), node("Concat", ["q", "p"], ["r"], axis=0)]
    x = numpy.arange(6, dtype="f4").reshape(2, 3)
    m = model(graph([*shape, node("Reshape", ["x", "r"], ["y"])], [value("x", [2, 3])], [value("y", None)]), opset=18)
    numpy.testing.assert_array_equal(t.value(m, x=x), x.reshape(3, 2))
    counted = [node("Compress", ["x", "m"], ["a"], axis=0), node("Shape", ["a"], ["s"]), node("Split", ["s"], ["p", "q"], num_outputs=2),
               node("Concat", ["p", "q", "one"], ["r"], axis=0), node("Reshape", ["a", "r"], ["y"])]
    m = model(graph(counted, [value("x", [2, 3]), value("m", [2], 9)], [value("y", None)], WEIGHTS), opset=18)
    given = {"x": x, "m": numpy.array([False, True])}
    numpy.testing.assert_array_equal(t.value(m, **given)[: t.value(m, "y.count", **given)], x[1:, :, None])


@case
def slices_of_what_is_there(t):
    """Without the first, the last one, all but it: the end is that of what is there."""
    x = DICE.normal(size=(4, 2)).astype("f4")
    far = 2**63 - 1
    for begin, end in ((1, far), (-1, far), (-2, -1), (0, -1), (1, 3), (-far, 2), (2, -1), (3, 1)):
        found = Chosen(t, node("Slice", ["a", "b", "e", "k"], ["y"]), b=numpy.array([begin]), e=numpy.array([end]), k=numpy.array([0]))
        for m in MASKS:
            numpy.testing.assert_array_equal(found(x, m), x[m][begin:end])


@case
def exponents_of_early_opsets_see_what_is_there(t):
    """Over all axes from one on"""
    x = DICE.normal(size=(4, 3)).astype("f4")
    for axis in (0, 1):
        m = model(graph([node("Compress", ["x", "m"], ["a"], axis=0), node("Softmax", ["a"], ["y"], axis=axis)], [value("x", [4, 3]), value("m", [4], 9)], [value("y", None)]), opset=11)
        given = {"x": x, "m": MASKS[0]}
        e = numpy.exp(x[MASKS[0]])
        numpy.testing.assert_allclose(t.value(m, **given)[: t.value(m, "y.count", **given)], e / (e.sum(1, keepdims=True) if axis else e.sum()), 1e-5)


@case
def slices_from_a_computed_position_on(t):
    """x[n:], whose end is the largest number that there is"""
    x = numpy.arange(12, dtype="f4").reshape(6, 2)
    m = model(graph([node("Add", ["a", "one"], ["n"]), node("Slice", ["x", "n", "far", "zero"], ["y"])], [value("x", [6, 2]), value("a", [1], 7)],
                    [value("y", None)], WEIGHTS + [tensor("far", numpy.array([2**63 - 1]))]), opset=17)
    for n in (-9, -6, -1, 0, 2, 6, 9):
        y, count = (t.value(m, result, x=x, a=numpy.array([n - 1])) for result in ("y", "y.count"))
        numpy.testing.assert_array_equal(y[:count], x[n:])


@case
def slices_as_long_as_a_number(t):
    """table[p:p + 3], in several ways to say it: beside what has three entries, as a result of three, or as many as are left"""
    table, x, w4 = (DICE.normal(size=shape).astype("f4") for shape in ((9, 4), (1, 3, 4), (4, 4)))
    ways = [[node("Add", ["p", "three"], ["q"]), node("Identity", ["p"], ["b"])],
            [node("Cast", ["p"], ["w"], to=6), node("Sub", ["w", "less"], ["u"]), node("Cast", ["u"], ["q"], to=7), node("Identity", ["p"], ["b"])],
            [node("Concat", ["p", "three"], ["l"], axis=0), node("Gather", ["l", "zero"], ["b"]), node("Add", ["three", "b"], ["q"])]]
    weights = [tensor("table", table), tensor("three", numpy.array([3])), tensor("less", numpy.array([-3], "i4")), tensor("zero", numpy.array([0])),
               tensor("w4", w4)]
    for way in ways:
        rows = [*way, node("Slice", ["table", "b", "q", "zero"], ["rows"])]
        m = model(graph([*rows, node("Add", ["x", "rows"], ["y"]), node("Sqrt", ["y"], ["r"])], [value("x", [1, 3, 4]), value("p", [1], 7)], [value("y", None)], weights), opset=17)
        for p in (0, 2, 6):
            numpy.testing.assert_allclose(t.value(m, x=x, p=numpy.array([p])), x + table[p:p + 3], 1e-6)
        more = [*rows, node("Concat", ["rows", "w4"], ["seven"], axis=0), node("Add", ["seven", "sevens"], ["y"])]
        m = model(graph(more, [value("p", [1], 7)], [value("y", [7, 4])], [*weights, tensor("sevens", numpy.full((7, 4), 7, "f4"))]), opset=17)
        numpy.testing.assert_allclose(t.value(m, p=numpy.array([6])), numpy.concatenate([table[6:], w4]) + 7, 1e-6)
        m = model(graph(rows, [value("p", [1], 7)], [value("rows", [3, 4])], weights), opset=17)
        numpy.testing.assert_array_equal(t.value(m, "rows", p=numpy.array([5])), table[5:8])
        assert "rows.count" not in t.text(m)
        m = model(graph(rows, [value("p", [1], 7)], [value("rows", None)], weights), opset=17)
        for p in (4, 7, 9, 12):
            got, count = (t.value(m, name, p=numpy.array([p])) for name in ("rows", "rows.count"))
            assert got.shape == (3, 4)
            numpy.testing.assert_array_equal(got[:count], table[p:p + 3])


@case
def slices_of_several_axes_as_long_as_numbers(t):
    """x[2 * i : 2 * (i + 1), j : j + 4], as XLA's dynamic slices are exported; and what sums over them sees what is there"""
    nodes = [node("Mul", ["i", "two"], ["a"]), node("Add", ["i", "one"], ["n"]), node("Mul", ["n", "two"], ["b"]), node("Concat", ["a", "j"], ["from"], axis=0),
             node("Add", ["j", "four"], ["k"]), node("Concat", ["b", "k"], ["to"], axis=0), node("Slice", ["x", "from", "to", "axes"], ["y"])]
    weights = [tensor(name, numpy.array(v)) for name, v in (("two", [2]), ("one", [1]), ("four", [4]), ("axes", [1, 0]), ("zero", [0]))]
    x = DICE.normal(size=(9, 8)).astype("f4")
    given = [value("x", [9, 8]), value("i", [1], 7), value("j", [1], 7)]
    m = model(graph(nodes, given, [value("y", [4, 2])], weights), opset=17)
    for i, j in ((0, 0), (3, 5), (1, 2)):
        numpy.testing.assert_array_equal(t.value(m, x=x, i=numpy.array([i]), j=numpy.array([j])), x[j:j + 4, 2 * i:2 * (i + 1)])
    rows = [*nodes[:3], node("Slice", ["x", "a", "b", "one"], ["y"]), node("ReduceSum", ["y", "one"], ["sum"], keepdims=0)]
    m = model(graph(rows, given[:2], [value("sum", [9])], weights), opset=17)
    for i in (0, 2, 3, 4, 7):
        numpy.testing.assert_allclose(t.value(m, "sum", x=x, i=numpy.array([i])), x[:, 2 * i:2 * (i + 1)].sum(1), 1e-5, 1e-6)


@case
def slices_as_long_as_something_else(t):
    size = [node("Shape", ["a"], ["s"]), node("Gather", ["s", "zero"], ["n"]), node("Add", ["zero", "n"], ["end"])]
    whole = Found(t, *size, node("Slice", ["a", "zero", "end", "zero"], ["y"]))
    other = Found(t, *size, node("Constant", [], ["c"], value=numpy.arange(12, dtype="f4").reshape(6, 2)), node("Slice", ["c", "zero", "end", "zero"], ["y"]))
    few = Found(t, *size, node("Constant", [], ["c"], value=numpy.arange(6, dtype="f4").reshape(3, 2)), node("Slice", ["c", "zero", "end", "zero"], ["y"]))
    for x in TABLES:
        numpy.testing.assert_array_equal(whole(x), chosen(x))
        numpy.testing.assert_array_equal(other(x), numpy.arange(12).reshape(6, 2)[:len(chosen(x))])
        numpy.testing.assert_array_equal(few(x), numpy.arange(6).reshape(3, 2)[:len(chosen(x))])


@case
def bags_between_offsets(t):
    """As PyTorch exports an EmbeddingBag: in each round the sum of the rows between two offsets"""
    body = graph([node("Gather", ["offsets", "i"], ["b"], axis=0), node("Add", ["i", "unit"], ["j"]), node("Gather", ["offsets", "j"], ["e"], axis=0),
                  node("Unsqueeze", ["b"], ["b1"], axes=[0]), node("Unsqueeze", ["e"], ["e1"], axes=[0]), node("Slice", ["at", "b1", "e1", "zero"], ["own"]),
                  node("Gather", ["table", "own"], ["rows"]), node("ReduceSum", ["rows"], ["bag"], axes=[0], keepdims=0), node("Identity", ["go"], ["on"])],
                 [value("i", [], 7), value("go", [], 9)], [value("on", [], 9), value("bag", [4])], [tensor("unit", numpy.array(1))])
    table = DICE.normal(size=(9, 4)).astype("f4")
    m = model(graph([node("Loop", ["rounds", "yes"], ["y"], body=body)], [value("at", [7], 7), value("offsets", [4], 7)], [value("y", None)],
                    [tensor("table", table), tensor("rounds", numpy.array(3)), tensor("yes", numpy.array(True)), tensor("zero", numpy.array([0]))]), opset=12)
    at = numpy.array([8, 1, 1, 0, 5, 7, 2])
    for offsets in ([0, 2, 2, 7], [1, 4, 5, 6]):
        want = [table[at[b:e]].sum(0) for b, e in zip(offsets, offsets[1:])]
        numpy.testing.assert_allclose(t.value(m, at=at, offsets=numpy.array(offsets)), want, 1e-5, 1e-6)


@case
def branches_give_what_is_as_large_as_data_say(t):
    """By the same count, by one that a branch finds itself, or beside one that gives all; loops give no such thing"""
    def branch(*nodes):
        return graph(list(nodes), [], [value("h", None)])
    inside = node("Compress", ["x", "good"], ["h"], axis=0)
    every = branch(node("Neg", ["x"], ["h"]))
    good = [node("Gather", ["x", "column"], ["score"], axis=1), node("Greater", ["score", "level"], ["good"])]
    for yes, no, wants in ((branch(node("Exp", ["a"], ["h"])), branch(node("Neg", ["a"], ["h"])), (lambda x: numpy.exp(chosen(x)), lambda x: -chosen(x))),
                           (branch(inside), every, (chosen, lambda x: -x)), (every, branch(node("Neg", ["a"], ["h"])), (lambda x: -x, lambda x: -chosen(x)))):
        m = model(graph([*rows_above("a", "x"), *good, node("If", ["c"], ["y"], then_branch=yes, else_branch=no)],
                        [value("x", [6, 2]), value("c", [], 9)], [value("y", None)], WEIGHTS), opset=18)
        for x in TABLES:
            for c, want in zip((True, False), wants):
                given = {"x": x, "c": numpy.array(c)}
                y, count = (t.value(m, name, **given) for name in ("y", "y.count"))
                numpy.testing.assert_allclose(y[:count], want(x), 1e-5)
    body = graph([node("Compress", ["x", "good"], ["h"], axis=0), node("Identity", ["g"], ["on"])], [value("i", [], 7), value("g", [], 9)], [value("on", None), value("h", None)])
    t.write(model(graph([*good, node("Loop", ["n", ""], ["y"], body=body)], [value("x", [6, 2])], [value("y", None)], WEIGHTS + [tensor("n", numpy.array(300))]), opset=18))
    error = t.run("import", "m.onnx", status=1)
    assert "Loop, opset 18: its body gives what is as large as data say" in error, error


@case
def rows_of_rows(t):
    """Folded together, beside numbers of an extent that is known of such a shape"""
    numbers = [node("Shape", ["a"], ["s"]), node("Constant", [], ["k"], value=numpy.array(1)), node("Gather", ["s", "k"], ["n"]),
               node("Constant", [], ["unit"], value=numpy.array(1)), node("Range", ["column", "n", "unit"], ["r"]), node("Cast", ["r"], ["rf"], to=1),
               node("Add", ["a", "rf"], ["b"]), node("Reshape", ["b", "flat"], ["y"])]
    for weights, shape in ((numpy.array([-1]), (-1,)), (numpy.array([-1, 1]), (-1, 1)), (numpy.array([12, 1]), (-1, 1))):
        found = Found(t, node("Constant", [], ["flat"], value=weights), *numbers)
        for x in TABLES:
            numpy.testing.assert_array_equal(found(x), (chosen(x) + numpy.arange(2, dtype="f4")).reshape(shape))


@case
def boxes_that_are_there_are_suppressed(t):
    """Unless there are none, which a branch asks"""
    boxes = DICE.uniform(0, 1, (8, 5)).astype("f4")
    boxes[:, 3:] += boxes[:, 1:3] + 0.5
    boxes[::3, 0] *= -1
    nodes = [node("Slice", ["a", "one", "ends", "one"], ["corners"]), node("Unsqueeze", ["corners", "zero"], ["wide"]),
             node("Gather", ["a", "column"], ["s"], axis=1), node("Unsqueeze", ["s", "zero"], ["row"]), node("Unsqueeze", ["row", "zero"], ["scores"]),
             node("NonMaxSuppression", ["wide", "scores", "ends", "overlap"], ["kept"]), node("Gather", ["kept", "three_less"], ["places"], axis=1),
             node("Squeeze", ["places", "one"], ["some"])]
    nothing = graph([node("Constant", [], ["nothing"], value=numpy.zeros(0, "i8"))], [], [value("nothing", [0], 7)])
    something = graph(nodes, [], [value("some", None, 7)], [tensor("overlap", numpy.array([0.4], "f4")), tensor("three_less", numpy.array([2]))])
    found = Found(t, node("Size", ["a"], ["size"]), node("Equal", ["size", "column"], ["empty"]),
                  node("If", ["empty"], ["keep"], then_branch=nothing, else_branch=something), node("Gather", ["a", "keep"], ["y"]))

    def overlaps(a, b):
        sides = numpy.maximum(0, numpy.minimum(a[3:], b[3:]) - numpy.maximum(a[1:3], b[1:3]))
        both = sides.prod()
        return both / ((a[3:] - a[1:3]).prod() + (b[3:] - b[1:3]).prod() - both)

    for x in (boxes, -abs(boxes)):
        rows, kept = chosen(x), []
        for row in rows[numpy.argsort(-rows[:, 0], kind="stable")]:
            if all(overlaps(row, other) <= 0.4 for other in kept):
                kept.append(row)
        numpy.testing.assert_array_equal(found(x), numpy.array(kept, "f4").reshape(-1, 5))


@case
def layers_on_what_is_there(t):
    w = DICE.normal(size=(2, 3)).astype("f4")
    dense = Found(t, node("Constant", [], ["w"], value=w), node("Gemm", ["a", "w"], ["h"]), node("Softmax", ["h"], ["y"], axis=1))
    h = numpy.exp(chosen(TABLES[0]) @ w)
    numpy.testing.assert_allclose(dense(TABLES[0]), h / h.sum(1, keepdims=True), 1e-5)
    down = Found(t, node("Softmax", ["a"], ["y"], axis=0))
    e = numpy.exp(chosen(TABLES[0]))
    numpy.testing.assert_allclose(down(TABLES[0]), e / e.sum(0), 1e-5)


@case
def branches_of_several_lengths(t):
    def branch(*nodes):
        return graph(nodes, [], [value(name, None) for name in ("r", "s")])

    doubled = branch(node("Concat", ["x", "x"], ["r"], axis=1), node("Transpose", ["r"], ["s"], perm=[1, 0]))
    once = branch(node("Neg", ["x"], ["r"]), node("Transpose", ["x"], ["s"], perm=[1, 0]))
    total = node("ReduceSum", ["y", "one"], ["sum"], keepdims=0)
    inputs = [value("x", [2, 3]), value("c", [], 9)]
    x = numpy.arange(1, 7, dtype="f4").reshape(2, 3)
    for branches in ((doubled, once), (once, doubled)):
        m = model(graph([node("If", ["c"], ["y", "z"], then_branch=branches[0], else_branch=branches[1]), total], inputs,
                        [value(name, None) for name in ("y", "z", "sum")], WEIGHTS), opset=17)
        for c in (False, True):
            given = {"x": x, "c": numpy.array(c)}
            wanted = numpy.concatenate([x, x], 1) if c == (branches[0] is doubled) else -x
            count = int(t.value(m, "y.count", **given))
            assert count == wanted.shape[1], count
            numpy.testing.assert_array_equal(t.value(m, **given)[:, :count], wanted)
            numpy.testing.assert_array_equal(t.value(m, "z", **given)[:count], abs(wanted).T)
            numpy.testing.assert_array_equal(t.value(m, "sum", **given), wanted.sum(1))
    for other in (branch(node("Exp", ["x"], ["r"]), node("Concat", ["x", "x"], ["s"], axis=1)), branch(node("Shape", ["x"], ["r"]), node("Exp", ["x"], ["s"]))):
        t.write(model(graph([node("If", ["c"], ["y", "z"], then_branch=doubled, else_branch=other)], inputs, [value("y", None), value("z", None)], WEIGHTS), opset=17))
        error = t.run("import", "m.onnx", status=1)
        assert "1 of" in error and "its branches give" in error, error


@case
def slices_of_rounds_that_may_end(t):
    """Doubled until it is above 20, nine times at most; a condition that is known in each round is worked out"""
    nodes = [node("Add", ["a", "a"], ["b"]), node("ReduceMax", ["b"], ["top"], keepdims=0), node("Less", ["top", "limit"], ["d"]), node("Identity", ["b"], ["o"])]
    carried = [value("i", [], 7), value("c", [], 9), value("a", [2])]
    weights = [tensor("most", numpy.array(9)), tensor("limit", numpy.float32(20))]
    outputs = [value("y", None), value("all", None), value("sum", None)]
    body = graph(nodes, carried, [value("d", [], 9), value("b", None), value("o", None)])
    loop = [node("Loop", ["most", "start", "x"], ["y", "all"], body=body), node("ReduceSum", ["all", "zero"], ["sum"], keepdims=0)]
    m = model(graph(loop, [value("x", [2]), value("start", [], 9)], outputs, WEIGHTS + weights), opset=17)
    for x in ([1, 2], [30, 1], [0.001, 0.002]):
        for start in (True, False):
            a, rows = numpy.array(x, "f4"), []
            while len(rows) < 9 and (a.max() < 20 if rows else start):
                a = a + a
                rows.append(a)
            given = {"x": numpy.array(x, "f4"), "start": numpy.array(start)}
            count = int(t.value(m, "all.count", **given))
            assert count == len(rows), (count, len(rows))
            numpy.testing.assert_array_equal(t.value(m, "all", **given)[:count], numpy.array(rows, "f4").reshape(-1, 2))
            numpy.testing.assert_array_equal(t.value(m, **given), a)
            numpy.testing.assert_allclose(t.value(m, "sum", **given), numpy.array(rows, "f4").reshape(-1, 2).sum(0), 1e-6)
    known = [node("Less", ["i", "three"], ["d"]), *nodes[:1], nodes[3]]
    body = graph(known, carried, [value("d", None, 9), value("b", None), value("o", None)])
    m = model(graph([node("Loop", ["most", "", "x"], ["y", "all"], body=body)], [value("x", [2])], outputs[:2],
                    [weights[0], tensor("three", numpy.array(3))]), opset=17)
    assert t.value(m, "all", x=numpy.ones(2, "f4")).shape == (4, 2)


if __name__ == "__main__":
    main()
