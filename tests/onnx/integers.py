"""Integers that f64 does not have, beyond 2 to the 53: the text where it tells, and values beside NumPy.

    integers.py --nnc NNC        reports as TAP
"""

import numpy

from harness import case, expect, main
from write import KINDS, graph, model, node, tensor, value

LARGEST, SMALLEST = 2 ** 63 - 1, -2 ** 63


def wide(numbers, dtype="i8"):
    return numpy.array(numbers, dtype)


def known(op, inputs, shape, kind=7, opset=21, **rest):
    """Of the operand x, and of constants"""
    constants = [tensor(f"c{i}", array) for i, array in enumerate(inputs) if not isinstance(array, str)]
    names = [array if isinstance(array, str) else f"c{i}" for i, array in enumerate(inputs)]
    return model(graph([node(op, names, ["y"], **rest)], [value("x", shape, kind)], [value("y", None, kind)], constants), opset=opset)


@case
def ranges_step_exactly(t):
    odd = 2 ** 53 + 1
    for first, limit, step in ((odd, odd + 5, 1), (odd, odd + 5, 2), (-2 ** 60 - 4, -2 ** 60 - 1, 1), (-2 ** 60, -2 ** 60 - 5, -2), (0, 2 ** 62, 2 ** 60 + 3),
                               (SMALLEST, LARGEST, LARGEST), (LARGEST, SMALLEST, SMALLEST), (odd, odd - 1, 1), (odd, odd, 1), (5, 0, -2), (LARGEST - 3, LARGEST, 2)):
        ends = [tensor(name, wide(v)) for name, v in (("a", first), ("b", limit), ("c", step))]
        m = model(graph([node("Range", ["a", "b", "c"], ["r"]), node("Add", ["r", "x"], ["y"])], [value("x", [1], 7)], [value("y", None, 7)], ends))
        numpy.testing.assert_array_equal(t.value(m, x=wide([0])), wide(list(range(first, limit, step))), str((first, limit, step)))


@case
def long_ranges_are_not_in_the_text(t):
    first, step = 2 ** 60 + 1, 2 ** 40 + 1
    ends = [tensor(name, wide(v)) for name, v in (("a", first), ("b", first + 70000 * step), ("c", step))]
    m = model(graph([node("Range", ["a", "b", "c"], ["r"]), node("Add", ["r", "x"], ["y"])], [value("x", [1], 7)], [value("y", None, 7)], ends))
    expect(t.text(m), f"r = iota(shape = [70000], dtype = i64) * i64({step}) + i64({first})", "y = r + x")
    numpy.testing.assert_array_equal(t.value(m, x=wide([0])), first + step * numpy.arange(70000))
    ends[1] = tensor("b", wide(LARGEST))
    ends[2] = tensor("c", wide(1))
    t.write(model(graph([node("Range", ["a", "b", "c"], ["r"]), node("Add", ["r", "x"], ["y"])], [value("x", [1], 7)], [value("y", None, 7)], ends)))
    assert "it has too many steps" in t.run("import", "m.onnx", status=1)


@case
def constants_fill_shapes(t):
    for number, dtype in ((LARGEST, "i8"), (SMALLEST, "i8"), (2 ** 60 + 1, "i8"), (2 ** 64 - 1, "u8"), (2 ** 53, "i8")):
        for extent in (3, 70000):
            m = model(graph([node("ConstantOfShape", ["s"], ["c"], value=wide([number], dtype)), node("BitwiseXor", ["x", "c"], ["y"])],
                            [value("x", [1], KINDS[numpy.dtype(dtype).name])], [value("y", None)], [tensor("s", wide([extent]))]), opset=18)
            numpy.testing.assert_array_equal(t.value(m, x=wide([0], dtype)), numpy.full(extent, number, dtype))


@case
def padding_of_any_number(t):
    for number, dtype in ((LARGEST, "i8"), (SMALLEST, "i8"), (2 ** 60 + 1, "i8"), (2 ** 64 - 1, "u8"), (-2 ** 53 - 1, "i8"), (7, "i8")):
        x = wide([[1, 2, 3], [4, 5, 6]], dtype)
        m = known("Pad", ["x", wide([1, 0, 0, 2]), wide(number, dtype)], [2, 3], KINDS[x.dtype.name])
        numpy.testing.assert_array_equal(t.value(m, x=x), numpy.pad(x, ((1, 0), (0, 2)), constant_values=number))
        m = known("Pad", ["x", wide([1, -1, 0, 2]), wide(number, dtype)], [2, 3], KINDS[x.dtype.name])
        numpy.testing.assert_array_equal(t.value(m, x=x), numpy.pad(x[:, 1:], ((1, 0), (0, 2)), constant_values=number))


@case
def small_powers_are_products(t):
    x = wide([2 ** 30 + 1, -2 ** 29 - 1, 94906267, LARGEST, SMALLEST, -1, 0, 3])
    for exponent in (0, 1, 2, 3, 4, 7, 10, 39, 63, 64, 65, 1000):
        for kind in ("i8", "i4", "f4"):
            y = t.value(known("Pow", ["x", wide(exponent, kind)], [8], opset=15), x=x)
            if kind != "f4" or 1 <= exponent <= 64:
                numpy.testing.assert_array_equal(y, x ** exponent, f"{exponent} {kind}")
    for exponent, text in ((1, "y = x"), (2, "y = x * x"), (3, "y = x * x * x"), (9, "y = y.square_2 * y.square_2 * x")):
        expect(t.text(known("Pow", ["x", wide(exponent)], [8], opset=15))[-1:], text)
    expect(t.text(known("Pow", ["x", wide(65)], [8], opset=15)), "y = integer_power(x, i64(65))")
    y = t.value(known("Pow", ["x", wide(5, "i4")], [2], kind=6, opset=15), x=wide([3, -70001], "i4"))
    numpy.testing.assert_array_equal(y, wide([3, -70001], "i4") ** 5)


@case
def powers_known_when_running(t):
    x, n = wide([3, -7, 208065, -1, 2, 2, 5, 0, LARGEST]), wide([39, 22, 3, LARGEST, 63, 64, LARGEST, 0, 2])
    for base, exponent in (("i8", "i8"), ("i8", "i4"), ("i4", "i8"), ("i8", "u8")):
        a, b = x.astype(base), n.astype(exponent)
        m = model(graph([node("Pow", ["x", "n"], ["y"])], [value("x", [9], KINDS[a.dtype.name]), value("n", [9], KINDS[b.dtype.name])], [value("y", None)]), opset=15)
        kept = b >= 0
        wanted = numpy.array([pow(int(v), int(e), 1 << 64) for v, e in zip(a[kept], b[kept])], "u8").astype("i8").astype(base)
        numpy.testing.assert_array_equal(t.value(m, x=a, n=b)[kept], wanted, f"{base} {exponent}")


@case
def negative_powers_are_cut_off(t):
    x = wide([1, -1, -1, 2, -3, 2 ** 60])
    for n in (-1, -2, wide([5, -2, -3, -1, -1, -1])):
        m = model(graph([node("Pow", ["x", "n"], ["y"])], [value("x", [6], 7), value("n", [6], 7)], [value("y", None)]), opset=15)
        exponents = n + 0 * x
        wanted = [pow(int(v), int(abs(e))) if abs(v) == 1 else 0 for v, e in zip(x, exponents)]
        numpy.testing.assert_array_equal(t.value(m, x=x, n=exponents), wide(wanted))
        if isinstance(n, int):
            numpy.testing.assert_array_equal(t.value(known("Pow", ["x", wide(n)], [6], opset=15), x=x), wide(wanted))


if __name__ == "__main__":
    main()
