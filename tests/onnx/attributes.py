"""Attributes of nodes: those that an op does not take are told, those that tell nothing are passed over.

    attributes.py --nnc NNC        reports as TAP
"""

import numpy

from harness import case, main
from write import graph, model, node, value


@case
def attributes_that_an_op_does_not_take_are_listed(t):
    """All that ONNX Runtime refuses, too: of another kind or opset, texts without a meaning, missing and unknown ones"""
    wrong = ((17, node("LeakyRelu", ["x"], ["y"], alpha=2), "alpha is an int; the op takes a float"),
             (17, node("Softmax", ["x"], ["y"], axis=1.0), "axis is a float; the op takes an int"),
             (17, node("Softmax", ["x"], ["y"], axis=[1]), "axis is ints; the op takes an int"),
             (17, node("ReduceMax", ["x"], ["y"], axes=1), "axes is an int; the op takes ints"),
             (18, node("ReduceMax", ["x"], ["y"], axes=[1]), "it has an attribute axes, which the op does not know"),
             (17, node("Transpose", ["x"], ["y"], perm=[1.0, 0.0]), "perm is floats; the op takes ints"),
             (17, node("Flatten", ["x"], ["y"], axis="1"), "axis is a string; the op takes an int"),
             (17, node("MaxPool", ["x"], ["y"], kernel_shape=[2], auto_pad="SAME"), "auto_pad is 'SAME', and none of NOTSET|SAME_UPPER|SAME_LOWER|VALID"),
             (20, node("Gelu", ["x"], ["y"], approximate="foo"), "approximate is 'foo', and none of none|tanh"),
             (17, node("DepthToSpace", ["x"], ["y"], blocksize=2, mode="FOO"), "mode is 'FOO', and none of DCR|CRD"),
             (16, node("GridSample", ["x", "x"], ["y"], mode="linear"), "mode is 'linear', and none of bilinear|nearest|bicubic"),
             (20, node("GridSample", ["x", "x"], ["y"], mode="bilinear"), "mode is 'bilinear', and none of linear|nearest|cubic"),
             (17, node("Concat", ["x", "x"], ["y"]), "its attribute axis is missing"),
             (17, node("Softmax", ["x"], ["y"], axes=0), "it has an attribute axes, which the op does not know"))
    for opset, refused, told in wrong:
        t.write(model(graph([refused], [value("x", [2, 2])], [value("y", None)]), opset=opset))
        error = t.run("import", "m.onnx", status=1)
        assert "1 of 1 nodes is not supported" in error and told in error, error


@case
def ops_of_the_first_opsets(t):
    """`consumed_inputs` tells a runtime that is no more which operand it may write over"""
    x = numpy.array([[-2, -0.5, 0, 0.5, 2]], "f4")
    for op, want, row in (("Relu", numpy.maximum(x, 0), {}), ("Neg", -x, {}), ("Tanh", numpy.tanh(x), {}), ("Sigmoid", 1 / (1 + numpy.exp(-x)), {}),
                          ("Clip", numpy.clip(x, -1, 1), {"min": -1.0, "max": 1.0}), ("LeakyRelu", numpy.where(x < 0, 0.5 * x, x), {"alpha": 0.5}),
                          ("Selu", 1.0507 * numpy.where(x < 0, 1.6732 * numpy.expm1(x), x), {})):
        m = model(graph([node(op, ["x"], ["y"], consumed_inputs=[0], **row)], [value("x", [1, 5])], [value("y", None)]), opset=1)
        numpy.testing.assert_allclose(t.value(m, x=x), want, 2e-6, 1e-7)


@case
def notes_and_attributes_of_other_domains_are_passed_over(t):
    m = model(graph([node("Relu", ["x"], ["r"], _made_by="us"), node("QuickGelu", ["r"], ["q"], domain="com.microsoft", alpha=1.0, more=3),
                     node("SimplifiedLayerNormalization", ["q", "w"], ["y"], axis=-1, epsilon=1e-5)],
                    [value("x", [1, 2]), value("w", [2])], [value("y", None)]), domains=["com.microsoft"])
    assert t.text(m)


if __name__ == "__main__":
    main()
