"""Ops of ONNX on images: what becomes of them, and values beside NumPy.

    images.py --nnc NNC        reports as TAP
"""

import numpy

from harness import case, expect, main
from write import graph, model, node, tensor, value


@case
def images_at_positions(t):
    m = model(graph([node("AffineGrid", ["theta", "size"], ["g"]), node("GridSample", ["x", "g"], ["y"], mode="nearest")],
                    [value("x", [1, 2, 3, 3]), value("theta", [1, 2, 3])], [value("y", None)],
                    [tensor("size", numpy.array([1, 2, 3, 3]))]), opset=20)
    expect(t.text(m), "g = affine_grid(theta, [3, 3])", 'y = grid_sample(x, g, mode = "nearest")')
    x, turned = numpy.arange(18, dtype="f4").reshape(1, 2, 3, 3), numpy.array([[[0, -1, 0], [1, 0, 0]]], "f4")
    numpy.testing.assert_array_equal(t.value(m, x=x, theta=turned), numpy.rot90(x, 1, (2, 3)))


@case
def the_largest_and_back(t):
    m = model(graph([node("MaxPool", ["x"], ["p", "i"], kernel_shape=[2], strides=[2]), node("MaxUnpool", ["p", "i"], ["y"], kernel_shape=[2], strides=[2])],
                    [value("x", [1, 2, 4])], [value("y", None)]))
    x = numpy.array([[[1, 2, 4, 3], [-1, -2, -4, -3]]], "f4")
    numpy.testing.assert_array_equal(t.value(m, x=x), [[[0, 2, 4, 0], [-1, 0, 0, -3]]])


@case
def no_boxes_where_none_are_asked_for(t):
    boxes = numpy.array([[[0, 0, 1, 1], [0, 2, 1, 3]]], "f4")
    for operands, weights in ((["boxes", "scores"], []), (["boxes", "scores", "most"], [tensor("most", numpy.array([0]))])):
        m = model(graph([node("NonMaxSuppression", operands, ["y"])], [value("boxes", [1, 2, 4]), value("scores", [1, 1, 2])], [value("y", None, 7)], weights))
        y = t.value(m, boxes=boxes, scores=numpy.ones((1, 1, 2), "f4"))
        assert y.shape == (0, 3) and y.dtype == numpy.int64, y


@case
def what_nothing_can_be_chosen_from_is_listed(t):
    for op, shape, attributes, told in (("ArgMax", [3, 0], {"axis": 1}, "it chooses from nothing: dimension 1 is empty"),
                                        ("ArgMin", [0, 3], {"axis": 0, "select_last_index": 1}, "it chooses from nothing: dimension 0 is empty"),
                                        ("AveragePool", [1, 1, 0, 4], {"kernel_shape": [1, 1], "pads": [1, 0, 1, 0]}, "its image has no pixels"),
                                        ("MaxPool", [1, 1, 4, 0], {"kernel_shape": [1, 1], "pads": [0, 1, 0, 1]}, "its image has no pixels")):
        t.write(model(graph([node(op, ["x"], ["y"], **attributes)], [value("x", shape)], [value("y", None)]), opset=13))
        error = t.run("import", "m.onnx", status=1)
        assert "1 of 1 nodes is not supported" in error and told in error, error


@case
def positions_that_count_columns_first(t):
    x = numpy.random.default_rng(5).permutation(2 * 2 * 3 * 4 * 5).reshape(2, 2, 3, 4, 5).astype("f4")
    outputs = [value("y", None), value("z", None, 7)]
    m = model(graph([node("MaxPool", ["x"], ["y", "z"], kernel_shape=[2, 2, 3], storage_order=1)], [value("x", list(x.shape))], outputs), opset=12)
    y, z = t.value(m, x=x), t.value(m, "z", x=x)
    by_column = x.transpose(0, 1, 4, 3, 2).ravel()
    numpy.testing.assert_array_equal(by_column[z], y)


@case
def groups_of_channels_without_positions(t):
    x, scale, bias = numpy.array([[1, 3, 5, 4], [0, 2, -6, 2]], "f4"), numpy.array([1, 2, 3, 4], "f4"), numpy.array([0, 1, 2, 3], "f4")
    sides = numpy.array([[-1, 1, 1, -1], [-1, 1, -1, 1]], "f4")
    m = model(graph([node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=2)], [value("x", [2, 4])], [value("y", None)],
                    [tensor("s", scale), tensor("b", bias)]), opset=21)
    numpy.testing.assert_allclose(t.value(m, x=x), sides * scale + bias, 1e-3)
    m = model(graph([node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=2)], [value("x", [2, 4])], [value("y", None)],
                    [tensor("s", scale[:2]), tensor("b", bias[:2])]), opset=18)
    numpy.testing.assert_allclose(t.value(m, x=x), sides * scale[:2].repeat(2) + bias[:2].repeat(2), 1e-3)


@case
def convolutions_of_three_dimensions(t):
    m = model(graph([node("Conv", ["x", "w"], ["y"], pads=[0, 0, 0, 0, 0, 1], strides=[1, 1, 2])],
                    [value("x", [1, 1, 2, 2, 3]), value("w", [1, 1, 2, 2, 2])], [value("y", None)]))
    expect(t.text(m), "y = conv3d(x, w, stride = [1, 1, 2], pad = [0, 0, 0, 0, 0, 1])")
    x = numpy.arange(12, dtype="f4").reshape(1, 1, 2, 2, 3)
    y = t.value(m, x=x, w=numpy.ones((1, 1, 2, 2, 2), "f4"))
    numpy.testing.assert_array_equal(y.ravel(), [x[..., :2].sum(), x[..., 2].sum()])


@case
def images_of_another_size(t):
    given = lambda name, list: [tensor(name, numpy.array(list, "f4"))]
    def resized(operands, weights, **row):
        return t.text(model(graph([node("Resize", ["x", *operands], ["y"], **row)], [value("x", [1, 2, 4, 6])], [value("y", None)], weights), opset=19))
    expect(resized(["", "s"], given("s", [1, 1, 2, 0.5]), mode="linear"), 'y = resize(x, [8, 3], axes = [2, 3], mode = "linear")')
    expect(resized(["", "s"], given("s", [1, 1, 1.6, 1]), coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
           'y = resize(x, [6], axes = [2], coordinates = "asymmetric", rounding = "floor", scales = [1.600000023841858])')
    expect(resized(["r", "", "n"], given("r", [0, 0, 0.25, 0.5, 1, 1, 0.75, 1]) + [tensor("n", numpy.array([1, 2, 3, 3]))], mode="cubic", cubic_coeff_a=-0.5,
                   coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=2.0),
           'y = resize(x, [3, 3], axes = [2, 3], mode = "cubic", coordinates = "tf_crop_and_resize", a = -0.5, extrapolation = 2.0, '
           "roi = [[0.25, 0.75], [0.5, 1.0]])")
    wide = graph([node("Resize", ["x", "", "s"], ["y"], mode="linear", antialias=1)], [value("x", [1, 1, 1, 4000])], [value("y", None)], given("s", [1, 1, 1, 0.001]))
    t.write(model(wide, opset=19))
    assert "it shrinks too much" in t.run("import", "m.onnx", status=1)
    t.write(model(graph([node("Resize", ["x", "", "s"], ["y"], mode='linear", a = 1')], [value("x", [4])], [value("y", None)], given("s", [2])), opset=19))
    assert "node 0 Resize, opset 19: its mode is not known" in t.run("import", "m.onnx", status=1)


@case
def integers_that_are_filtered(t):
    """Axis by axis, the last one first, and rounded after each; what is half goes up, as ONNX Runtime has it."""
    for x, size, want in (([[2, 3]], [1, 1], [[3]]), ([[4, 5, 8, 9]], [1, 2], [[5, 8]]), ([[0, 1], [0, 0]], [1, 1], [[1]])):
        x = numpy.array(x, "u1")
        m = model(graph([node("Resize", ["x", "", "", "n"], ["y"], mode="linear", antialias=1)], [value("x", list(x.shape), 2)], [value("y", None, 2)],
                        [tensor("n", numpy.array(size))]), opset=18)
        numpy.testing.assert_array_equal(t.value(m, x=x), want)


@case
def padding_with_a_number_of_an_input(t):
    x, number = numpy.arange(6, dtype="f4").reshape(2, 3), numpy.array([1.5], "f4")
    weights = [tensor("p", numpy.array([1, -1, 0, 2]))]
    m = model(graph([node("Pad", ["x", "p", "z"], ["y"])], [value("x", [2, 3]), value("z", [1])], [value("y", None)], weights), opset=13)
    numpy.testing.assert_array_equal(t.value(m, x=x, z=number), numpy.pad(x[:, 1:], ((1, 0), (0, 2)), constant_values=1.5))


@case
def images_of_another_size_in_opset_10(t):
    """The element before where an axis grows, the one behind where it shrinks"""
    def resized(x, scales, opset, op):
        weights = [tensor("s", numpy.array(scales, "f4"))]
        return t.value(model(graph([node(op, ["x", "s"], ["y"])], [value("x", list(x.shape))], [value("y", None)], weights), opset=opset), x=x)
    x = numpy.arange(1, 9, dtype="f4").reshape(2, 4)
    numpy.testing.assert_array_equal(resized(x, [0.6, 0.6], 10, "Resize"), [[1, 3]])
    numpy.testing.assert_array_equal(resized(x, [1.5, 0.75], 10, "Resize"), [[1, 3, 4], [1, 3, 4], [5, 7, 8]])
    numpy.testing.assert_array_equal(resized(x, [1, 1.5], 10, "Resize"), [[1, 1, 2, 3, 3, 4], [5, 5, 6, 7, 7, 8]])
    numpy.testing.assert_array_equal(resized(x, [1, 1.5], 9, "Upsample"), [[1, 1, 2, 3, 3, 4], [5, 5, 6, 7, 7, 8]])


@case
def images_of_one_element_and_between_two(t):
    """By pytorch_half_pixel the only element is the first; the middle of two is what f32 misses it by, too."""
    def resized(n, mode, size=None, scale=None, **row):
        operands, weight = (["x", "", "s"], numpy.array([1, 1, scale], "f4")) if scale else (["x", "", "", "s"], numpy.array([1, 1, size]))
        m = model(graph([node("Resize", operands, ["y"], mode=mode, **row)], [value("x", [1, 1, n])], [value("y", None)], [tensor("s", weight)]), opset=19)
        return t.value(m, x=numpy.arange(n, dtype="f4").reshape(1, 1, n) ** 2).ravel().tolist()
    first = {"coordinate_transformation_mode": "pytorch_half_pixel"}
    for n, mode, by in ((5, "nearest", {"scale": 1 / 3}), (3, "linear", {"scale": 0.5}), (6, "cubic", {"size": 1})):
        assert resized(n, mode, **by, **first) == [0], (n, mode)
    assert resized(7, "nearest", 2, coordinate_transformation_mode="asymmetric", nearest_mode="round_prefer_ceil") == [0, 16]
    assert resized(23, "nearest", 14, coordinate_transformation_mode="asymmetric", nearest_mode="round_prefer_floor")[7] == 121


@case
def windows_wider_than_the_image(t):
    """They are the same error with positions and without; with ceil_mode a window may stick out."""
    for results in (["y"], ["y", "i"]):
        for shape, side, size in (([1, 2, 4], "wide", [5]), ([1, 2, 4, 9], "high", [5, 5]), ([1, 2, 4, 9, 9], "deep", [5, 5, 5])):
            pool = lambda **row: model(graph([node("MaxPool", ["x"], results, kernel_shape=size, **row)], [value("x", shape)],
                                             [value(r, None, 7 if r == "i" else 1) for r in results]))
            for strides in ([1], [2]):
                t.write(pool(strides=strides * len(size)))
                assert f"the window is 5 {side}, the padded image only 4" in t.run("import", "m.onnx", status=1)
            x = numpy.arange(numpy.prod(shape), dtype="f4").reshape(shape)
            assert t.value(pool(strides=[2] * len(size), ceil_mode=1), x=x).shape[:3] == (1, 2, 1)


@case
def images_of_integers_of_another_size(t):
    """Means are cut off, but for what is whole: between equal pixels there is no smaller one."""
    def resized(x, scale, kind, **row):
        m = model(graph([node("Resize", ["x", "", "s"], ["y"], **row)], [value("x", list(x.shape), kind)], [value("y", None, kind)],
                        [tensor("s", numpy.array([1, 1, 1, scale], "f4"))]), opset=19)
        return t.value(m, x=x)
    for kind, dtype in ((2, "u1"), (3, "i1"), (6, "i4"), (5, "i2")):
        x = numpy.array([[[[8, 5, 100, 3]]]], dtype)
        numpy.testing.assert_array_equal(resized(x, 2, kind, mode="linear")[0, 0, 0], [8, 7, 5, 28, 76, 75, 27, 3])
        numpy.testing.assert_array_equal(resized(x, 0.5, kind, mode="linear", antialias=1)[0, 0, 0], [18, 40])
        sevens = numpy.full((1, 1, 4, 9), 7, dtype)
        for scale in (2.5, 1.25, 0.6, 3, 2.3):
            assert (resized(sevens, scale, kind, mode="linear") == 7).all()
        if dtype[0] == "i":
            numpy.testing.assert_array_equal(resized(-x, 2, kind, mode="linear")[0, 0, 0], [-8, -7, -5, -28, -76, -75, -27, -3])
    edge = numpy.array([[[[0, 0, 0, 255, 255, 255]]]], "u1")
    y = resized(edge, 4, 2, mode="cubic")[0, 0, 0]
    assert y[7] == 0 and y[16] == 255 and (numpy.diff(y.astype("i4")) >= 0).all(), y
    t.write(model(graph([node("Resize", ["x", "", "s"], ["y"], mode="linear")], [value("x", [4], 9)], [value("y", None, 9)], [tensor("s", numpy.array([2], "f4"))]), opset=19))
    assert "it interpolates truths" in t.run("import", "m.onnx", status=1)


@case
def extents_are_scaled_in_f32(t):
    """5 * 2.6 is 13 there, and a little less in f64"""
    x = numpy.arange(5, dtype="f4")
    for opset, op, operands in ((19, "Resize", ["x", "", "s"]), (9, "Upsample", ["x", "s"])):
        m = model(graph([node(op, operands, ["y"])], [value("x", [5])], [value("y", None)], [tensor("s", numpy.array([2.6], "f4"))]), opset=opset)
        assert t.value(m, x=x).shape == (13,)


@case
def whole_coordinates_about_the_middle_stay_whole(t):
    for extent, scale, mode, want in ((3, 1.5, "floor", [0, 0, 1, 2]), (3, 1.5, "ceil", [0, 1, 2, 2]), (3, 2.6, "floor", [0, 0, 0, 1, 1, 1, 2]),
                                      (7, 1.5, "floor", [0, 0, 1, 2, 2, 3, 4, 4, 5, 6])):
        m = model(graph([node("Resize", ["x", "", "s"], ["y"], coordinate_transformation_mode="half_pixel_symmetric", nearest_mode=mode)],
                        [value("x", [extent])], [value("y", None)], [tensor("s", numpy.array([scale], "f4"))]), opset=19)
        numpy.testing.assert_array_equal(t.value(m, x=numpy.arange(extent, dtype="f4")), want)


if __name__ == "__main__":
    main()
