"""Ops of com.microsoft by themselves, beside NumPy: images, products of few bits, norms, positions, routers, tables.
contrib.py compares them with ONNX Runtime.

    microsoft.py --nnc NNC        reports as TAP
"""

import numpy

from harness import case, main
from single import HALF, floats, found, near, said, sigmoid

DICE = numpy.random.default_rng(9)


def codes(*shape):
    return DICE.integers(0, 256, shape).astype("u1")


# Images


def largest(x, size, strides, pads):
    """[n, h, w, c]; padding wins nowhere"""
    x = numpy.pad(x.astype("f8"), [(0, 0), (pads[0], pads[2]), (pads[1], pads[3]), (0, 0)], constant_values=-numpy.inf)
    windows = numpy.lib.stride_tricks.sliding_window_view(x, size, (1, 2))
    return windows[:, :: strides[0], :: strides[1]].max((-2, -1))


@case
def pools_of_bytes_whose_channels_come_last(t):
    for kind in ("u1", "i1"):
        x = codes(2, 7, 6, 3).astype(kind)
        for size, strides, pads in (((3, 3), (1, 1), (0, 0, 0, 0)), ((3, 2), (2, 1), (1, 1, 1, 0))):
            y = found(t, "NhwcMaxPool", [x], kernel_shape=size, strides=strides, pads=pads)
            assert y.dtype == kind
            near(y, largest(x, size, strides, pads), 0)
    line = codes(1, 9, 2)
    near(found(t, "NhwcMaxPool", [line], kernel_shape=[4], strides=[5]), numpy.stack([line[:, :4].max(1), line[:, 5:9].max(1)], 1), 0)
    assert "no image of bytes" in said(t, "NhwcMaxPool", [floats(1, 4, 4, 2)], kernel_shape=[2, 2])


@case
def padding_of_a_transposed_convolution_is_an_operand(t):
    x, w, b = floats(1, 4, 5, 6), floats(4, 3, 3, 3), floats(3)
    whole = found(t, "ConvTransposeWithDynamicPads", [x, w, None, b], strides=[2, 2])
    for pads in ([1, 0, 1, 1], [2, 1, 0, 2]):
        y = found(t, "ConvTransposeWithDynamicPads", [x, w, numpy.array(pads), b], (2,), strides=[2, 2])
        near(y, whole[:, :, pads[0] : whole.shape[2] - pads[2], pads[1] : whole.shape[3] - pads[3]])
    assert "'i2' is known only when running" in said(t, "ConvTransposeWithDynamicPads", [x, w, numpy.array(pads), b])
    assert "pads has 3 entries" in said(t, "ConvTransposeWithDynamicPads", [x, w, numpy.array([1, 1, 1]), b], (2,))


def places(low, high, extent, count):
    if count == 1:
        return [(low + high) / 2 * (extent - 1)]
    return low * (extent - 1) + numpy.arange(count) * (high - low) * (extent - 1) / (count - 1)


def cropped(x, regions, image, size, nearest, outside):
    y = numpy.full((len(regions), x.shape[1], *size), outside)
    for r, (top, left, bottom, right) in enumerate(regions.astype("f8")):
        for i, v in enumerate(places(top, bottom, x.shape[2], size[0])):
            for j, u in enumerate(places(left, right, x.shape[3], size[1])):
                if 0 <= v <= x.shape[2] - 1 and 0 <= u <= x.shape[3] - 1:
                    y[r, :, i, j] = pixel(x[image[r]], v, u, nearest)
    return y


def pixel(x, v, u, nearest):
    if nearest:
        return x[:, int(v + 0.5), int(u + 0.5)]
    a, b = int(v), int(u)
    part = x[:, [a, min(a + 1, x.shape[1] - 1)]][:, :, [b, min(b + 1, x.shape[2] - 1)]]
    return numpy.array([1 - v + a, v - a]) @ part @ numpy.array([1 - u + b, u - b])


@case
def regions_are_cut_out_and_stretched(t):
    x, image = floats(2, 3, 6, 5), numpy.array([0, 1, 1], "i4")
    regions = numpy.array([[0.12, 0.21, 0.83, 0.94], [-0.17, 0.16, 1.33, 0.61], [0.91, 0.82, 0.13, 0.24]], "f4")
    for size in ((4, 3), (1, 4), (7, 1)):
        for mode in ("bilinear", "nearest"):
            y = found(t, "CropAndResize", [x, regions, image, numpy.array(size, "i4")], (3,), mode=mode, extrapolation_value=-2.5)
            near(y, cropped(x, regions, image, size, mode == "nearest", -2.5))
    size = numpy.array([2, 2], "i4")
    assert "its mode is cubic" in said(t, "CropAndResize", [x, regions, image, size], (3,), mode="cubic")
    assert "its regions do not fit its images" in said(t, "CropAndResize", [x, regions, image[:2], size], (3,))
    assert "its crop_size is impossible" in said(t, "CropAndResize", [x, regions, image, 0 * size], (3,))
    assert "'i3' is known only when running" in said(t, "CropAndResize", [x, regions, image, size])


# Products

FP4 = numpy.array([0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4])
NF4 = [-1, -0.6961928, -0.52507305, -0.39491749, -0.28444138, -0.18477343, -0.09105004, 0, 0.0795803, 0.1609302, 0.2461123, 0.33791524, 0.44070983, 0.562617,
       0.72295684, 1]
TABLES = [numpy.concatenate([FP4, -FP4]), numpy.array(NF4)]


@case
def weights_stand_for_numbers_of_a_table(t):
    for rows, columns, block in ((5, 40, 16), (3, 11, 32)):  # blocks end within rows, and the last is short
        count = rows * columns
        w, scale = codes((count + 1) // 2), abs(floats(-(-count // block)))
        both = numpy.stack([w >> 4, w & 15], 1).reshape(-1)[:count]
        for kind, table in enumerate(TABLES):
            wide = (table[both] * numpy.repeat(scale, block)[:count]).reshape(rows, columns)
            attributes = {"K": columns, "N": rows, "block_size": block, "quant_type": kind}
            for flip, x in ((1, floats(2, 3, columns)), (0, floats(4, rows))):
                near(found(t, "MatMulBnb4", [x, w, scale], (1, 2), transB=flip, **attributes), x @ (wide.T if flip else wide), 1e-4)
        near(found(t, "MatMulBnb4", [x, w, scale], transB=0, **attributes), x @ wide, 1e-4)
    good = {"K": 40, "N": 5, "block_size": 16, "quant_type": 1}
    operands = [floats(2, 40), codes(100), floats(13)]
    assert "its block_size is 24" in said(t, "MatMulBnb4", operands, **good | {"block_size": 24})
    assert "its quant_type is 2" in said(t, "MatMulBnb4", operands, **good | {"quant_type": 2})
    assert "its weights do not fit its operand" in said(t, "MatMulBnb4", operands, transB=0, **good)
    assert "other extents than N and K" in said(t, "MatMulBnb4", operands, **good | {"N": 6})


@case
def products_of_integers_of_16_bits(t):
    x, y = (DICE.integers(-(2**15), 2**15, s).astype("i2") for s in ((2, 3, 4), (4, 5)))
    wide = (x.astype("i8") @ y.astype("i8")).astype("i4")  # which wraps
    z = found(t, "MatMulInteger16", [x, y], kind="i4")
    assert z.dtype == numpy.int32 and (z == wide).all()


# Activations and norms


@case
def a_scale_before_silu(t):
    x = floats(2, 3)
    for scale in (1.7, 0.3):
        want = scale * x * sigmoid(scale * x)
        near(found(t, "ScaledSiLU", [x], alpha=scale), want)
        near(found(t, "ScaledSiLU", [x, numpy.array(scale, "f2")], alpha=9.0), want, 2e-3)
        y = found(t, "ScaledSiLU", [x.astype(HALF), numpy.array(scale, "f4")])
        assert y.dtype == HALF
        near(y, want, 4e-3)
    assert "its scale is no scalar" in said(t, "ScaledSiLU", [x, floats(1)])


@case
def branches_are_normalised_by_themselves(t):
    x = floats(2, 3, 4)
    normed = x / numpy.sqrt((x * x).mean(-1, keepdims=True) + 0.1)
    for scale in (None, floats(4), floats(3, 4), floats(12)):
        want = normed * (1 if scale is None else scale.reshape(-1, 4))
        near(found(t, "BranchwiseRMSNorm", [x, scale], epsilon=0.1), want)
        near(found(t, "BranchwiseRMSNorm", [x.reshape(2, 12), scale], epsilon=0.1, num_branches=3), want.reshape(2, 12))
        y = found(t, "BranchwiseRMSNorm", [x.astype(HALF), scale], epsilon=0.1)
        assert y.dtype == HALF
        near(y, want, 4e-3)
    assert "its scale does not fit its branches" in said(t, "BranchwiseRMSNorm", [x, floats(3)])
    assert "its num_branches, 5, do not fit" in said(t, "BranchwiseRMSNorm", [x, None], num_branches=5)
    assert "its operand has no branches" in said(t, "BranchwiseRMSNorm", [floats(4)])


# Positions


def streams(section, layout):
    """Which position each column is read at"""
    if not layout:
        return [i for i, count in enumerate(section) for _ in range(count)]
    return [d % 3 if d < 3 * section[d % 3] else 0 for d in range(sum(section))]


def turned(x, c, s, neighbours):
    """[batch, heads, steps, width] by [batch, steps, columns], as much of the width as these turn"""
    count, c, s = c.shape[-1], c[:, None], s[:, None]
    part = x[..., : 2 * count]
    a, b = (part[..., ::2], part[..., 1::2]) if neighbours else (part[..., :count], part[..., count:])
    pair = [a * c - b * s, a * s + b * c]
    part = numpy.stack(pair, -1).reshape(part.shape) if neighbours else numpy.concatenate(pair, -1)
    return numpy.concatenate([part, x[..., 2 * count :]], -1)


@case
def words_have_three_positions(t):
    at, table, other = DICE.integers(0, 9, (3, 2, 4)), floats(9, 6), floats(9, 6)
    for section, layout in (([1, 2, 3], 0), ([0, 6, 0], 0), ([2, 2, 2], 1), ([1, 4, 1], 1)):
        which = streams(section, layout)
        c, s = (numpy.stack([v[at[i], d] for d, i in enumerate(which)], -1) for v in (table, other))
        for width, neighbours, scale in ((12, 0, 1.0), (16, 1, 2.5)):
            x = floats(2, 3, 4, width)
            want = turned(x, scale * c, scale * s, neighbours)
            attributes = {"mrope_section": section, "mrope_layout": layout, "num_heads": 3, "rotary_embedding_dim": 12, "interleaved": neighbours, "scale": scale}
            near(found(t, "MRotaryEmbedding", [x, at, table, other], (2, 3), **attributes), want)
            flat = x.transpose(0, 2, 1, 3).reshape(2, 4, -1)
            near(found(t, "MRotaryEmbedding", [flat, at, table, other], **attributes), want.transpose(0, 2, 1, 3).reshape(flat.shape))

    def refused(x=floats(2, 4, 24), at=at, table=table, **attributes):
        return said(t, "MRotaryEmbedding", [x, at, table, other], **{"num_heads": 2, "mrope_section": [1, 2, 3]} | attributes)

    assert "its mrope_section does not fit its tables" in refused(mrope_section=[1, 2, 4])
    assert "its mrope_section does not fit its tables" in refused(mrope_section=[-1, 4, 3])
    assert "its mrope_section is no list of three" in refused(mrope_section=[3, 3])
    assert "its mrope_layout is 2" in refused(mrope_layout=2)
    assert "shared out to num_heads, 0" in refused(num_heads=0)
    assert "it has not three positions for each word" in refused(at=at[:2])
    assert "its tables do not fit what it rotates" in refused(table=floats(9, 5))


# Routers


def chosen(scores, bias, groups, kept, count, best):
    """Which experts are: of the groups whose best come to most, the best"""
    is_ = numpy.zeros(scores.shape, bool)
    for row, s in enumerate(sigmoid(scores) + bias):
        apart = s.reshape(groups, -1)
        sums = -numpy.sort(-apart, 1)[:, :best].sum(1)
        within = numpy.argsort(-sums, kind="stable")[:kept]
        apart = numpy.where(numpy.isin(numpy.arange(groups), within)[:, None], apart, -numpy.inf).reshape(-1)
        is_[row, numpy.argsort(-apart, kind="stable")[: min(count, kept * (len(s) // groups))]] = True
    return is_


@case
def routers_choose_groups_before_experts(t):
    scores, bias = floats(5, 12), floats(12)
    scores[0] = bias[:] = 0  # all alike: the first
    for groups, kept, count, best in ((1, 1, 3, 2), (3, 2, 3, 2), (4, 2, 5, 1), (4, 3, 4, 9), (3, 1, 7, 2)):
        is_ = chosen(scores, bias, groups, kept, count, best)
        attributes = {"top_k": count, "n_group": groups, "topk_group": kept, "group_topk": best}
        want = numpy.where(is_, numpy.log(sigmoid(scores)), -7.5)
        near(found(t, "MoEGroupRouter", [scores, bias], router_sentinel=-7.5, **attributes), want)
        near(found(t, "MoEGroupRouter", [scores.reshape(1, 5, 12), bias], router_sentinel=-7.5, **attributes), want)
    far = numpy.full((1, 4), -200, "f4")
    near(found(t, "MoEGroupRouter", [far, floats(4)], top_k=4), numpy.full((1, 4), numpy.log(1e-20)))


@case
def routers_that_give_all_scores(t):
    scores, bias, x, w = floats(5, 4), floats(4), floats(3, 8), floats(4, 8)
    for operands, rates in (([scores, bias], sigmoid(scores)), ([x, bias, w], sigmoid(x @ w.T))):
        m = {"results": ("", "s", "w"), "top_k": 2}
        near(found(t, "MoEGroupRouter", operands, result="s", **m), rates + bias)
        near(found(t, "MoEGroupRouter", operands, result="w", **m), rates)
    assert "it gives all scores, and chooses some" in said(t, "MoEGroupRouter", [scores, bias], results=("y", "s", "w"), top_k=2)
    assert "its projection does not fit its tokens" in said(t, "MoEGroupRouter", [x, bias, w], top_k=2)
    assert "its top_k is 5, of 4 experts" in said(t, "MoEGroupRouter", [scores, bias], top_k=5)
    assert "its topk_group, 1 of 3 groups" in said(t, "MoEGroupRouter", [scores, bias], top_k=1, n_group=3)
    assert "its group_topk is 0" in said(t, "MoEGroupRouter", [scores, bias], top_k=1, group_topk=0)
    assert "its bias does not fit its experts" in said(t, "MoEGroupRouter", [scores, floats(3)], top_k=1)


# Tables


@case
def words_of_tables_of_bytes(t):
    words, segments, mask = DICE.integers(0, 6, (2, 3)).astype("i4"), DICE.integers(0, 2, (2, 3)).astype("i4"), numpy.array([[1, 1, 0], [1, 1, 1]], "i4")
    for kind in ("u1", "i1"):
        tables = [codes(*s).astype(kind) for s in ((6, 8), (5, 8), (2, 8), (8,), (8,))]
        scales = [numpy.array(v, "f4") for v in (0.01, 0.02, 0.03, 0.04, 0.05)]
        zeros = [numpy.array(v, kind) for v in (12, 110, 100, 20, 13)]
        word, place, part, gain, bias = (s * (v.astype("f8") - z) for v, s, z in zip(tables, scales, zeros))
        for parts in (True, False):
            sum_ = word[words] + place[:3] + (part[segments] if parts else 0)
            normed = (sum_ - sum_.mean(-1, keepdims=True)) / numpy.sqrt(sum_.var(-1, keepdims=True) + 1e-3)
            lists = [[v if parts or i != 2 else None for i, v in enumerate(w)] for w in (tables, scales, zeros)]
            operands = [words, segments if parts else None, *lists[0], mask if parts else None, *lists[1], *lists[2]]
            known = [i for i, v in enumerate(operands) if v is not None and i not in (0, 1, 7)]
            m = {"results": ("y", "count"), "kind": "f4", "epsilon": 1e-3}
            near(found(t, "QEmbedLayerNormalization", operands, known, **m), normed * gain + bias, 1e-4)


if __name__ == "__main__":
    main()
