"""Rows picked from tables of few bits, which are as NumPy widens them.

    tables.py --nnc NNC        reports as TAP
"""

import numpy

from harness import case, main
from write import coded, graph, model, node, tensor, value

DICE = numpy.random.default_rng(9)


def bytes_of(x, bits):
    """Packed along the last axis, the lowest bits first"""
    each = 8 // bits
    x = numpy.concatenate([x, numpy.zeros((*x.shape[:-1], -x.shape[-1] % each), x.dtype)], -1)
    parts = x.reshape(*x.shape[:-1], -1, each)
    return sum((parts[..., i] & (2**bits - 1)) << i * bits for i in range(each)).astype("u1")


def halves(name, x, kind):
    """INT4 or UINT4, packed across rows"""
    return coded(name, x.shape, kind, bytes_of(x.reshape(-1), 4).tobytes())


def widened(x, scales, zeros, axis, size):
    count = x.shape[axis]
    spread = [numpy.repeat(z, size, axis).take(range(count), axis) for z in (scales, zeros)]
    return ((x - spread[1]) * spread[0]).astype("f4")


def table(weights, index, kind=7, **attributes):
    operands = ["d", "i", "s", *(["z"] if len(weights) > 2 else [])]
    return model(graph([node("GatherBlockQuantized", operands, ["y"], domain="com.microsoft", **attributes)], [value("i", list(index), kind)],
                       [value("y", None)], weights), domains=["com.microsoft"])


@case
def bytes_of_few_bits_with_zero_points_and_without(t):
    for bits in (2, 4, 8):
        x, scales = DICE.integers(0, 2**bits, (6, 40)), DICE.random((6, 3)).astype("f4")
        index = numpy.array([[5, -1], [0, 2]])
        for zeros in (DICE.integers(0, 2**bits, (6, 3)), None):
            weights = [tensor("d", bytes_of(x, bits)), tensor("s", scales)] + ([tensor("z", bytes_of(zeros, bits))] if zeros is not None else [])
            want = widened(x, scales, numpy.full((6, 3), 2 ** (bits - 1)) if zeros is None else zeros, 1, 16)
            found = t.value(table(weights, index.shape, bits=bits, block_size=16, gather_axis=0, quantize_axis=1), i=index)
            assert numpy.array_equal(found, want[index]), f"{bits} bits"


@case
def halves_along_any_axis(t):
    for kind, low in ((22, -8), (21, 0)):
        for pick, along in ((0, 2), (1, 0), (2, 1), (2, 0)):
            shape = [5, 4, 3]
            shape[along] = 20
            x, blocks = DICE.integers(low, low + 16, shape), [2 if d == along else shape[d] for d in range(3)]
            scales, zeros = DICE.random(blocks).astype("f4"), DICE.integers(low, low + 16, blocks)
            m = table([halves("d", x, kind), tensor("s", scales), halves("z", zeros, kind)], [2], gather_axis=pick, quantize_axis=along, block_size=16)
            want = widened(x, scales, zeros, along, 16)
            assert numpy.array_equal(t.value(m, i=numpy.array([2, 0])), want.take([2, 0], pick)), f"{kind}, {pick}, {along}"


@case
def positions_outside_give_zeros(t):
    x, scales = DICE.integers(0, 16, (6, 32)), DICE.random((6, 2)).astype("f4")
    m = table([tensor("d", bytes_of(x, 4)), tensor("s", scales)], [4], kind=6, block_size=16)
    found = t.value(m, i=numpy.array([6, 5, -7, -6], "i4"))
    want = widened(x, scales, numpy.full((6, 2), 8), 1, 16)
    assert numpy.array_equal(found, numpy.stack([0 * want[0], want[5], 0 * want[0], want[0]]))


@case
def the_table_stays_narrow(t):
    m = table([tensor("d", bytes_of(DICE.integers(0, 16, (20000, 32)), 4)), tensor("s", DICE.random((20000, 2)).astype("f4"))], [1], block_size=16)
    t.write(m)
    t.run("compile", "m.onnx", "-o", ".")
    assert (t.folder / "g.weights").stat().st_size < 20000 * (16 + 8) + 1000


@case
def tables_that_are_refused(t):
    def said(x, scales, zeros=None, **attributes):
        weights = [x, tensor("s", numpy.ones(scales, "f4"))] + ([zeros] if zeros else [])
        t.write(table(weights, [2], **attributes))
        return t.run("import", "m.onnx", status=1)

    d = tensor("d", numpy.zeros((6, 16), "u1"))
    assert "its scales or zero points do not fit its blocks" in said(d, (6, 1), block_size=16)
    assert "its scales or zero points do not fit its blocks" in said(d, (6, 2), tensor("z", numpy.zeros((6, 2), "u1")), block_size=16)
    assert "its blocks lie along the axis that it picks from" in said(d, (6, 2), quantize_axis=0)
    assert "its elements are no integers of 2, 4 or 8 bits" in said(d, (6, 2), bits=3)
    assert "its elements are no integers of 2, 4 or 8 bits" in said(d, (6, 2), bits=2**31)
    assert "its elements are no integers of 2, 4 or 8 bits" in said(tensor("d", numpy.zeros((6, 16), "f4")), (6, 1))
    assert "of bytes it picks along another axis than the first" in said(d, (1, 32), gather_axis=1, quantize_axis=0)
    assert "its scales have other dimensions than its elements" in said(d, (12,))


if __name__ == "__main__":
    main()
