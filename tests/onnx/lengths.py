"""Numbers that shapes depend on, of which --at-most says the most, and windows over what is as wide as they say, as NumPy finds them.

    lengths.py --nnc NNC        reports as TAP
"""

import numpy
from numpy.lib.stride_tricks import sliding_window_view

from harness import case, main
from write import graph, model, node, tensor, value

DICE = numpy.random.default_rng(11)
NUMBERS = [tensor("zero", numpy.array(0)), tensor("one", numpy.array(1)), tensor("begin", numpy.array([0])), tensor("last", numpy.array([2])),
           tensor("all", numpy.array([-1]))]
CUT = [node("Range", ["zero", "n", "one"], ["at"]), node("Gather", ["x", "at"], ["part"], axis=2)]  # x[:, :, :n]
WIDE = 14


class Part:
    """What nodes make of x[:, :, :n], by the bound's width, and by how much of it there is"""

    def __init__(self, t, *nodes, weights=(), axis=2):
        self.t, self.axis = t, axis
        self.content = model(graph([*CUT, *nodes], [value("x", [1, 4, WIDE]), value("n", [], 7)], [value("y", None)], NUMBERS + list(weights)), opset=18)

    def __call__(self, x, n, bounded=True):
        given = {"flags": ("--at-most", f"n={WIDE}"), "x": x, "n": numpy.array(n)}
        y = self.t.value(self.content, **given)
        return numpy.take(y, range(int(self.t.value(self.content, "y.count", **given))), self.axis) if bounded else y


def sound():
    return DICE.normal(size=(1, 4, WIDE)).astype("f4")


def windows(x, size, stride=1, dilation=1, before=0, after=0, fill=0):
    """[1, channels, windows, size]"""
    x = numpy.pad(x, ((0, 0), (0, 0), (before, after)), constant_values=fill)
    return sliding_window_view(x, (size - 1) * dilation + 1, 2)[:, :, ::stride, ::dilation]


@case
def convolutions_see_their_padding_behind_the_end(t):
    for size, stride, dilation, before, after in ((3, 1, 1, 1, 1), (4, 2, 1, 0, 3), (3, 1, 2, 2, 2), (2, 3, 1, 0, 0), (1, 1, 1, 0, 0)):
        w, b = DICE.normal(size=(5, 4, size)).astype("f4"), DICE.normal(size=5).astype("f4")
        found = Part(t, node("Conv", ["part", "w", "b"], ["y"], kernel_shape=[size], strides=[stride], dilations=[dilation], pads=[before, after]),
                     weights=[tensor("w", w), tensor("b", b)])
        for n in (5, 11, WIDE):
            x = sound()
            want = numpy.einsum("ncwk,ock->now", windows(x[:, :, :n], size, stride, dilation, before, after), w) + b[:, None]
            numpy.testing.assert_allclose(found(x, n), want, 1e-5, 1e-5)


@case
def sums_with_what_went_in_have_as_many(t):
    """A residual block, by padding that is stated or worked out: convolutions that keep the width keep the count"""
    for padding in ({"pads": [1, 1]}, {"auto_pad": "SAME_UPPER"}):
        w = DICE.normal(size=(4, 4, 3)).astype("f4")
        found = Part(t, node("Conv", ["part", "w"], ["c"], kernel_shape=[3], **padding), node("Add", ["c", "part"], ["y"]), weights=[tensor("w", w)])
        for n in (1, 6, WIDE):
            x = sound()
            part = x[:, :, :n]
            numpy.testing.assert_allclose(found(x, n), numpy.einsum("ncwk,ock->now", windows(part, 3, 1, 1, 1, 1), w) + part, 1e-5, 1e-5)


@case
def two_ways_that_are_alike_have_as_many(t):
    """Two strided convolutions of the same: their counts are one"""
    v, w = (DICE.normal(size=(2, 4, 3)).astype("f4") for _ in range(2))
    strided = {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}
    found = Part(t, node("Conv", ["part", "v"], ["a"], **strided), node("Conv", ["part", "w"], ["b"], **strided), node("Mul", ["a", "b"], ["y"]),
                 weights=[tensor("v", v), tensor("w", w)])
    for n in (4, 9, WIDE):
        x = sound()
        seen = windows(x[:, :, :n], 3, 2, 1, 1, 1)
        numpy.testing.assert_allclose(found(x, n), numpy.einsum("ncwk,ock->now", seen, v) * numpy.einsum("ncwk,ock->now", seen, w), 1e-5, 1e-5)


@case
def transposed_convolutions_end_where_the_last_window_does(t):
    for size, stride, before, after, more in ((4, 2, 1, 1, 0), (8, 4, 2, 2, 0), (3, 3, 0, 1, 1), (5, 1, 2, 2, 0)):
        w = DICE.normal(size=(4, 3, size)).astype("f4")
        found = Part(t, node("ConvTranspose", ["part", "w"], ["y"], kernel_shape=[size], strides=[stride], pads=[before, after], output_padding=[more]),
                     weights=[tensor("w", w)])
        for n in (1, 6, WIDE):
            x = sound()
            whole = numpy.zeros((1, 3, (n - 1) * stride + size + more))
            for i in range(n):
                whole[:, :, i * stride:i * stride + size] += numpy.einsum("nc,cok->nok", x[:, :, i], w)
            numpy.testing.assert_allclose(found(x, n), whole[:, :, before:whole.shape[2] - after], 1e-5, 1e-5)


@case
def pools_take_what_is_there(t):
    for op, attributes, of in (("MaxPool", {"pads": [1, 1]}, lambda x: windows(x, 3, 2, 1, 1, 1, -numpy.inf).max(3)),
                               ("AveragePool", {}, lambda x: windows(x, 3, 2).mean(3)),
                               ("AveragePool", {"pads": [1, 1], "count_include_pad": 1}, lambda x: windows(x, 3, 2, 1, 1, 1).mean(3))):
        found = Part(t, node(op, ["part"], ["y"], kernel_shape=[3], strides=[2], **attributes))
        for n in (4, 9, WIDE):
            x = -2 - abs(sound())  # a zero would be the largest
            numpy.testing.assert_allclose(found(x, n), of(x[:, :, :n]), 1e-5)
    for op, of in (("GlobalMaxPool", numpy.max), ("GlobalAveragePool", numpy.mean), ("GlobalLpPool", lambda x, axis, keepdims: (x * x).sum(axis, keepdims=keepdims) ** 0.5)):
        found = Part(t, node(op, ["part"], ["y"]))
        for n in (1, 9, WIDE):
            x = -2 - abs(sound())
            numpy.testing.assert_allclose(found(x, n, bounded=False), of(x[:, :, :n], axis=2, keepdims=True), 1e-5)


@case
def a_mean_that_leaves_out_its_padding_is_refused(t):
    t.write(Part(t, node("AveragePool", ["part"], ["y"], kernel_shape=[3], pads=[1, 1])).content)
    assert "'part' is as large as data say" in t.run("import", "m.onnx", "--at-most", "n=9", status=1)


@case
def pixels_and_pads_by_themselves(t):
    a, b, c, d = (array for array in DICE.normal(size=(4, 4)).astype("f4"))
    weights = [tensor(name, array) for name, array in (("a", a), ("b", b), ("c", c), ("d", abs(d) + 1))]
    weights += [tensor("scales", numpy.array([1, 1, 3], "f4")), tensor("pads", numpy.array([0, 0, 2, 0, 0, 3])), tensor("half", numpy.float32(0.5))]
    norm = Part(t, node("BatchNormalization", ["part", *"abcd"], ["y"], epsilon=0.0), weights=weights)
    wide = Part(t, node("Resize", ["part", "", "scales"], ["y"], mode="nearest"), weights=weights)
    padded = Part(t, node("Pad", ["part", "pads", "half"], ["p"]), node("Resize", ["p", "", "scales"], ["y"], mode="nearest"), weights=weights)
    for n in (3, WIDE):
        x = sound()
        part = x[:, :, :n]
        column = [array[:, None] for array in (a, b, c, abs(d) + 1)]
        numpy.testing.assert_allclose(norm(x, n), (part - column[2]) / numpy.sqrt(column[3]) * column[0] + column[1], 1e-4, 1e-5)
        numpy.testing.assert_array_equal(wide(x, n), part.repeat(3, 2))
        numpy.testing.assert_array_equal(padded(x, n), numpy.pad(part, ((0, 0), (0, 0), (2, 3)), constant_values=0.5).repeat(3, 2))


@case
def numbers_that_are_computed(t):
    """As a voice has its durations: their sum is how long the sound will be, as integers or as floats"""
    for dtype, kind in (([], "i8"), ([node("Cast", ["sum"], ["f"], to=1)], "f4")):
        nodes = [node("ReduceSum", ["d"], ["sum"], keepdims=0), *dtype, node("Range", ["from", dtype and "f" or "sum", "by"], ["at"]), node("Mul", ["at", "by"], ["y"])]
        weights = [tensor("from", numpy.zeros((), kind)), tensor("by", numpy.ones((), kind))]
        m = model(graph(nodes, [value("d", [3], 7)], [value("y", None)], weights), opset=17)
        for name in ("sum", *(dtype and ["f"])):
            for d in ([1, 2, 3], [4, 4, 2], [5, 5, 5]):
                given = {"flags": ("--at-most", f"{name}=10"), "d": numpy.array(d)}
                y, many = t.value(m, **given), int(t.value(m, "y.count", **given))
                assert y.dtype == kind and y.shape == (10,) and many == min(sum(d), 10), (y, many)
                numpy.testing.assert_array_equal(y, numpy.arange(10))
    error = t.run("import", "m.onnx", status=1)
    assert "-D d=[...]; --at-most f=N says how large it can be" not in error and "-D d=[...]" in error, error


@case
def the_hint_names_the_number(t):
    t.write(Part(t, node("Neg", ["part"], ["y"])).content)
    assert "-D n=[...]; --at-most n=N says how large it can be" in t.run("import", "m.onnx", status=1)


@case
def slices_and_zeros_of_a_number(t):
    nodes = [node("Reshape", ["n", "all"], ["list"]), node("Slice", ["x", "begin", "list", "last"], ["part"]), node("Shape", ["part"], ["s"]),
             node("ConstantOfShape", ["s"], ["zeros"]), node("Add", ["part", "zeros"], ["y"])]
    m = model(graph(nodes, [value("x", [1, 4, WIDE]), value("n", [], 7)], [value("y", None)], NUMBERS), opset=17)
    for n in (1, 9, WIDE):
        x, given = sound(), {"flags": ("--at-most", f"n={WIDE}"), "n": numpy.array(n)}
        assert int(t.value(m, "y.count", x=x, **given)) == n
        numpy.testing.assert_array_equal(t.value(m, x=x, **given)[:, :, :n], x[:, :, :n])


@case
def padding_beyond_all_measure_is_refused(t):
    w = tensor("w", numpy.ones((4, 4, 2), "f4"))
    for op, attributes, message in (("Conv", {"pads": [0, 2**63 - 1]}, "its padding is 9223372036854775807"), ("ConvTranspose", {"pads": [2**31, 0]}, "its padding is 2147483648"),
                                    ("ConvTranspose", {"output_padding": [-2**63]}, "'part' is as large as data say")):
        t.write(Part(t, node(op, ["part", "w"], ["y"], **attributes), weights=[w]).content)
        error = t.run("import", "m.onnx", "--at-most", "n=9", status=1)
        assert message in error, error


@case
def flags_that_say_nothing(t):
    t.write(Part(t, node("Neg", ["part"], ["y"])).content)
    for flag, message in (("m=4", "--at-most m: no value of the model is called so"), ("n", "--at-most wants NAME=N"), ("n=", "--at-most wants NAME=N"),
                          ("n=0", "--at-most wants NAME=N"), ("n=4x", "--at-most wants NAME=N"), ("=4", "--at-most wants NAME=N"),
                          ("n=99999999999999999999", "--at-most wants NAME=N"), ("x=4", "--at-most x: it is no single number")):
        error = t.run("import", "m.onnx", "--at-most", flag, status=1)
        assert message in error, (flag, error)
    (t.folder / "m.nnc").write_text("nnc 1\nfn f(x: f32[4]) -> (y: f32[4]) {\n    y = -x\n}\n")
    assert "--at-most is for ONNX models" in t.run("run", "m.nnc", "--at-most", "x=4", status=2)


@case
def what_is_found_twice_is_counted_once(t):
    """Rows that two NonZero of one mask find, and a Compress by it, are as many"""
    nodes = [node("Greater", ["v", "level"], ["mask"]), *(node("NonZero", ["mask"], [f"at{i}"]) for i in (1, 2)),
             *(node("Transpose", [f"at{i}"], [f"list{i}"], perm=[1, 0]) for i in (1, 2)), *(node("GatherND", [table, f"list{i}"], [f"rows{i}"]) for i, table in ((1, "v"), (2, "u"))),
             node("Compress", ["u", "mask"], ["rows3"], axis=0), node("Sub", ["rows1", "rows2"], ["d"]), node("Div", ["d", "rows3"], ["y"])]
    m = model(graph(nodes, [value("v", [9]), value("u", [9])], [value("y", None)], [tensor("level", numpy.float32(0))]), opset=17)
    v, u = DICE.normal(size=9).astype("f4"), DICE.normal(size=9).astype("f4")
    many = int(t.value(m, "y.count", v=v, u=u))
    numpy.testing.assert_allclose(t.value(m, v=v, u=u)[:many], ((v - u) / u)[v > 0], 1e-6)


@case
def truths_that_stand_behind_the_end_choose_nothing(t):
    """A mask longer than what it chooses from: NonZero counts all of it, Compress those that have an entry, whichever comes first"""
    mask, x = numpy.array([1, 0, 1, 0, 1, 1], bool), DICE.normal(size=4).astype("f4")
    nodes = [node("NonZero", ["mask"], ["at"]), node("Compress", ["x", "mask"], ["y"], axis=0)]
    for order in (nodes, nodes[::-1]):
        m = model(graph(order, [value("x", [4]), value("mask", [6], 9)], [value("y", None), value("at", None)]), opset=17)
        assert int(t.value(m, "y.count", x=x, mask=mask)) == 2 and int(t.value(m, "at.count", x=x, mask=mask)) == 4
        numpy.testing.assert_array_equal(t.value(m, x=x, mask=mask)[:2], x[mask[:4]])


if __name__ == "__main__":
    main()
