"""Random ops of ONNX: what is drawn, how often, and what hangs on it.

    draws.py --nnc NNC        reports as TAP
"""

import numpy

from harness import case, expect, main
from write import graph, model, node, tensor, value


@case
def draws_follow_their_distribution(t):
    n = 40000
    def draw(op, x=None, flags=(), **attributes):
        inputs = [value("x", list(x.shape))] if x is not None else []
        m = model(graph([node(op, ["x"] if inputs else [], ["y"], **attributes)], inputs, [value("y", None)]), opset=17)
        return t.value(m, **({"x": x} if inputs else {}))
    y = draw("RandomNormal", shape=[n], mean=2.0, scale=3.0, seed=1.0)
    assert abs(y.mean() - 2) < 0.1 and abs(y.std() - 3) < 0.1 and abs((y > 5).mean() - 0.1587) < 0.01
    assert not numpy.array_equal(y, draw("RandomNormal", shape=[n], mean=2.0, scale=3.0, seed=0.5))
    numpy.testing.assert_array_equal(y, draw("RandomNormal", shape=[n], mean=2.0, scale=3.0, seed=1.0))
    y = draw("RandomUniformLike", numpy.zeros((200, 200), "f4"), low=-1.0, high=3.0)
    assert y.shape == (200, 200) and y.min() >= -1 and y.max() < 3 and abs(y.mean() - 1) < 0.05
    y = draw("Bernoulli", numpy.full(n, 0.3, "f4"), dtype=9)
    assert y.dtype == bool and abs(y.mean() - 0.3) < 0.02
    y = draw("Multinomial", numpy.log(numpy.array([[0.1, 0.2, 0.7]], "f4")), sample_size=n)
    assert y.shape == (1, n) and y.dtype == numpy.int32
    numpy.testing.assert_allclose([(y == i).mean() for i in range(3)], [0.1, 0.2, 0.7], 0, 0.02)


@case
def draws_of_a_model_differ_from_each_other_and_from_run_to_run(t):
    draws = [node("RandomUniform", [], [name], shape=[4]) for name in ("a", "b")]
    m = model(graph(draws, [], [value("a", None), value("b", None)]))
    lines = t.text(m)
    expect(lines[:2], "state runs: i64[] = 0", "runs <- runs + 1")
    assert not numpy.array_equal(t.value(m, "a"), t.value(m, "b"))


@case
def draws_like_what_is_known_are_no_constants(t):
    """As PyTorch exports torch.rand"""
    p = tensor("p", numpy.full(400, 0.25, "f4"))
    for nodes in ([node("ConstantOfShape", ["s"], ["zeros"]), node("RandomUniformLike", ["zeros"], ["y"])], [node("Bernoulli", ["p"], ["y"])]):
        y = t.value(model(graph(nodes, [], [value("y", None)], [tensor("s", numpy.array([400])), p])))
        assert y.shape == (400,) and 0.15 < y.mean() < 0.65 and len(numpy.unique(y)) > 1


@case
def draws_in_bodies_differ_from_round_to_round(t):
    """Sums of numbers from 0 to 1: each round's own, of one seed or none"""
    def steps(y):
        assert (y > 0).all() and (y < 1).all() and abs(y.mean() - 0.5) < 0.05
        assert len(numpy.unique(y)) > 0.99 * y.size
    for seed in ({}, {"seed": 3.0}):
        draw = node("RandomUniformLike", ["v"], ["r"], **seed)
        rest = [node("Add", ["v", "r"], ["w"]), node("Identity", ["go"], ["on"]), node("Identity", ["r"], ["s"])]
        ins, outs = [value("i", [], 7), value("go", [], 9), value("v", [50])], [value("on", [], 9), value("w", [50]), value("s", [50])]
        x, rounds = numpy.zeros(50, "f4"), numpy.array(9)
        # as a scan, which stacks, and as a loop of so many rounds as data say
        m = model(graph([node("Loop", ["n", "", "x"], ["z", "y"], body=graph([draw, *rest], ins, outs))], [value("x", [50])],
                        [value("z", None), value("y", None)], [tensor("n", rounds)]))
        steps(t.value(m, x=x))
        numpy.testing.assert_allclose(t.value(m, "z", x=x), t.value(m, x=x).sum(0), 1e-5)
        m = model(graph([node("Loop", ["n", "", "x"], ["y"], body=graph([draw, *rest[:2]], ins, outs[:2]))],
                        [value("x", [50]), value("n", [], 7)], [value("y", None)]))
        y = [t.value(m, x=x, n=numpy.array(k)) for k in range(4)]
        steps(numpy.stack([b - a for a, b in zip(y, y[1:])]))
        m = model(graph([node("Scan", ["x", "q"], ["z", "y"], num_scan_inputs=1, body=graph(
            [draw, node("Add", ["v", "r"], ["w"]), node("Identity", ["r"], ["s"])], [value("v", [50]), value("k", [2])], outs[1:]))],
            [value("x", [50]), value("q", [7, 2])], [value("z", None), value("y", None)]))
        steps(t.value(m, x=x, q=numpy.zeros((7, 2), "f4")))
    grows = graph([node("RandomUniform", [], ["r"], shape=[5], seed=1.0), node("Concat", ["v", "r"], ["w"], axis=0), node("Identity", ["go"], ["on"])],
                  [value("i", [], 7), value("go", [], 9), value("v", None)], [value("on", [], 9), value("w", None)])
    m = model(graph([node("Loop", ["n", "", "x"], ["y"], body=grows)], [value("x", [1])], [value("y", None)], [tensor("n", numpy.array(6))]))
    y = t.value(m, x=numpy.zeros(1, "f4"))
    assert y.shape == (31,) and len(numpy.unique(y)) == 31
    branch = [graph([node(op, ["x"], ["b"])], [], [value("b", None)]) for op in ("RandomUniformLike", "Neg")]
    m = model(graph([node("If", ["c"], ["y"], then_branch=branch[0], else_branch=branch[1])], [value("x", [50]), value("c", [], 9)], [value("y", None)]))
    steps(t.value(m, x=x + 7, c=numpy.array(True)))
    numpy.testing.assert_array_equal(t.value(m, x=x + 7, c=numpy.array(False)), -x - 7)


@case
def dropout_that_trains(t):
    m = model(graph([node("Dropout", ["x", "ratio", "trains"], ["y", "mask"])], [value("x", [20000])], [value("y", None), value("mask", None, 9)],
                    [tensor("ratio", numpy.array(0.25, "f4")), tensor("trains", numpy.array(True))]))
    x = numpy.arange(1, 20001, dtype="f4")
    y, mask = t.value(m, x=x), t.value(m, "mask", x=x)
    assert abs(mask.mean() - 0.75) < 0.02
    numpy.testing.assert_allclose(y, numpy.where(mask, x / 0.75, 0), 1e-6)


if __name__ == "__main__":
    main()
