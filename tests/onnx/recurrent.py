"""Recurrent layers: they come back as layers of the library with the same values, where these mean the same; and stay
loops where they do not.

    recurrent.py --nnc NNC        reports as TAP
"""

import numpy

from harness import case, expect, main
from write import graph, model, node, tensor, value

STEPS, BATCH, INPUT, WIDTH = 5, 2, 3, 4
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
X = numpy.random.default_rng(7).normal(size=(STEPS, BATCH, INPUT))


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def rnn(z, h, c, r, b, p):
    return numpy.tanh(z + h @ r.T + b), c


def gru(z, h, c, r, b, p):
    """With the reset behind the product"""
    (zu, zr, zn), (hu, hr, hn) = numpy.split(z, 3, 1), numpy.split(h @ r.T + b, 3, 1)
    u = sigmoid(zu + hu)
    return (1 - u) * numpy.tanh(zn + sigmoid(zr + hr) * hn) + u * h, c


def lstm(z, h, c, r, b, p):
    (i, o, f, g), (pi, po, pf) = numpy.split(z + h @ r.T + b, 4, 1), numpy.split(p, 3)
    c1 = sigmoid(f + pf * c) * c + sigmoid(i + pi * c) * numpy.tanh(g)
    return sigmoid(o + po * c1) * numpy.tanh(c1), c1


class Layer:
    """One node over x, with weights under names that no text has; what it gives as ONNX says."""

    def __init__(self, op, direction="forward", bias=True, peephole=False, dtype="f8", seed=1):
        self.op, self.direction, self.directions = op, direction, 1 + (direction == "bidirectional")
        dice, rows = numpy.random.default_rng(seed), GATES[op] * WIDTH
        draw = lambda *shape: dice.normal(size=(self.directions, *shape)).astype(dtype)
        self.weights = {"#W": draw(rows, INPUT), "#R": draw(rows, WIDTH)}
        if bias:
            self.weights["#B"] = draw(2 * rows)
        if peephole:
            self.weights["#P"] = draw(3 * WIDTH)

    def of_direction(self, x, d):
        w, r = self.weights["#W"][d], self.weights["#R"][d]
        rows = len(w)
        b = self.weights["#B"][d] if "#B" in self.weights else numpy.zeros(2 * rows, x.dtype)
        p = self.weights["#P"][d] if "#P" in self.weights else numpy.zeros(3 * WIDTH, x.dtype)
        h, c, ys = numpy.zeros((BATCH, WIDTH), x.dtype), numpy.zeros((BATCH, WIDTH), x.dtype), []
        for step in x:
            h, c = {"RNN": rnn, "GRU": gru, "LSTM": lstm}[self.op](step @ w.T + b[:rows], h, c, r, b[rows:], p)
            ys.append(h)
        return numpy.stack(ys), h, c

    def results(self, x):
        """Y [steps, directions, batch, width], and the last h and c of each"""
        found = []
        for d in range(self.directions):
            backward = self.direction == "reverse" or d
            ys, h, c = self.of_direction(x[::-1] if backward else x, d)
            found.append((ys[::-1] if backward else ys, h, c))
        ys, h, c = zip(*found)
        return numpy.stack(ys, 1), numpy.stack(h), numpy.stack(c)

    def model(self, *then, outputs=("y",), names=None, more=(), inputs=("", "", ""), **attributes):
        """The node, whose results are /l/Y, /l/H and /l/C, and what follows."""
        kind = {"f4": 1, "f8": 11}[self.weights["#W"].dtype.str[1:]]
        names = names or {name: name for name in self.weights}
        operands = ["x", names["#W"], names["#R"], names.get("#B", ""), *inputs, names.get("#P", "")]
        while not operands[-1]:
            operands.pop()
        if self.op == "GRU":
            attributes.setdefault("linear_before_reset", 1)
        results = ["/l/Y", "/l/H"] + ["/l/C"] * (self.op == "LSTM")
        nodes = [node(self.op, operands, results, hidden_size=WIDTH, direction=self.direction, **attributes), *then]
        weights = [tensor(names[name], array) for name, array in self.weights.items()] + list(more)
        shape = [BATCH, STEPS, INPUT] if attributes.get("layout") else [STEPS, BATCH, INPUT]
        return model(graph(nodes, [value("x", shape, kind)], [value(o, None, kind) for o in outputs], weights), opset=17)


def check(t, content, x, **wanted):
    """Values by the evaluator, and by C of what it is written to."""
    within = 1e-5 if x.dtype == "f4" else 1e-12
    t.write(content)
    t.run("import", "m.onnx", "-o", "dir", "--overwrite")
    for name, want in wanted.items():
        numpy.testing.assert_allclose(t.value(content, name, x=x), want, within, within)
        t.run("run", "dir/m.nnc", "--cc", "gcc -O1", "--input", "x=x.npy", "--output", f"{name}=again.npy")
        numpy.testing.assert_allclose(numpy.load(t.folder / "again.npy"), want, within, within)


SQUEEZED = [tensor("#one", numpy.array([1]))], node("Squeeze", ["/l/Y", "#one"], ["y"])
MERGED = ([tensor("#rows", numpy.array([0, 0, -1]))], node("Transpose", ["/l/Y"], ["/t"], perm=[0, 2, 1, 3]),
          node("Reshape", ["/t", "#rows"], ["y"]))


def merged(y):
    return y.transpose(0, 2, 1, 3).reshape(STEPS, BATCH, -1)


@case
def steps_of_one_direction(t):
    for op, results in (("RNN", "y, l.Y.last"), ("GRU", "y, l.Y.last"), ("LSTM", "y, l.Y.last, l.Y.cell")):
        for bias in (True, False):
            layer = Layer(op, bias=bias)
            more, squeeze = SQUEEZED
            content = layer.model(squeeze, more=more)
            expect(t.text(content), f"({results}) = {op.lower()}@l(x, 4{'' if bias else ', with_bias = false'})")
            check(t, content, X, y=merged(layer.results(X)[0]))


@case
def steps_of_both_directions(t):
    for op in GATES:
        layer = Layer(op, "bidirectional", dtype="f4")
        more, *then = MERGED
        content = layer.model(*then, more=more)
        text = t.text(content)
        assert len(text) == 1 and text[0].startswith("(y, ") and text[0].endswith(f"= {op.lower()}@l(x, 4, bidirectional = true)"), text
        check(t, content, X.astype("f4"), y=merged(layer.results(X.astype("f4"))[0]))


@case
def weights_that_nodes_put_together(t):
    """Gates in another order, sliced and concatenated, as PyTorch's newer exporter has them; of any size."""
    wide, rows = 144, 4 * 144
    dice = numpy.random.default_rng(3)
    w, r, b = (0.1 * dice.normal(size=shape).astype("f4") for shape in ((rows, INPUT), (rows, wide), (2 * rows,)))
    order, nodes, weights = (0, 3, 1, 2), [], [tensor("enc.weight_ih", w), tensor("enc.weight_hh", r), tensor("#b", b[None])]
    weights += [tensor("#zero", numpy.array([0]))] + [tensor(f"#{k}", numpy.array([k * wide])) for k in range(5)]
    for name in ("ih", "hh"):
        nodes += [node("Slice", [f"enc.weight_{name}", f"#{k}", f"#{k + 1}", "#zero"], [f"#{name}{k}"]) for k in range(4)]
        nodes += [node("Concat", [f"#{name}{k}" for k in order], [f"#{name}"], axis=0),
                  node("Unsqueeze", [f"#{name}", "#zero"], ["val_1" if name == "ih" else "val_2"])]
    nodes += [node("LSTM", ["x", "val_1", "val_2", "#b"], ["/enc/y", "/enc/h"], hidden_size=wide),
              node("Squeeze", ["/enc/h", "#zero"], ["y"])]
    content = model(graph(nodes, [value("x", [STEPS, BATCH, INPUT])], [value("y", None)], weights), opset=17)
    text = t.text(content)
    assert any("= lstm@" in line for line in text) and len(text) < 4, text
    x = X.astype("f4")
    ordered = [numpy.concatenate([m[k * wide : (k + 1) * wide] for k in order]) for m in (w, r)]
    h = c = numpy.zeros((BATCH, wide), "f4")
    for step in x:
        h, c = lstm(step @ ordered[0].T + b[:rows], h, c, ordered[1], b[rows:], numpy.zeros(3 * wide, "f4"))
    check(t, content, x, y=h)


@case
def all_results(t):
    for op in GATES:
        for direction in ("forward", "reverse", "bidirectional"):
            layer = Layer(op, direction, peephole=op == "LSTM")
            y, h, c = layer.results(X)
            names = ["y", "h", "c"][: 2 + (op == "LSTM")]
            then = [node("Identity", ["/l/" + name.upper()], [name]) for name in names]
            content = layer.model(*then, outputs=names)
            assert any(f"{op.lower()}@" in line for line in t.text(content)), t.text(content)
            check(t, content, X, **dict(zip(names, (y, h, c))))
            content = layer.model(*then, outputs=names, layout=1)
            wanted = [y.transpose(2, 0, 1, 3), h.swapaxes(0, 1), c.swapaxes(0, 1)]
            check(t, content, numpy.ascontiguousarray(X.swapaxes(0, 1)), **dict(zip(names, wanted)))


@case
def zeros_to_begin_with_are_the_layers_own(t):
    layer, zero = Layer("LSTM"), numpy.zeros((1, BATCH, WIDTH))
    for start in (zero, zero + 0.5):
        content = layer.model(node("Identity", ["/l/H"], ["y"]), inputs=("", "#0", "#0"), more=[tensor("#0", start)])
        assert any("lstm@" in line for line in t.text(content)) == (start is zero)
    assert not numpy.allclose(t.value(content, x=X), layer.results(X)[1])


@case
def others_stay_loops(t):
    dim = numpy.full(BATCH, STEPS - 1, "i4")
    unusual = [
        Layer("LSTM").model(node("Identity", ["/l/H"], ["y"]), clip=0.5),
        Layer("LSTM").model(node("Identity", ["/l/H"], ["y"]), input_forget=1),
        Layer("LSTM").model(node("Identity", ["/l/H"], ["y"]), activations=["Sigmoid", "Relu", "Tanh"]),
        Layer("GRU").model(node("Identity", ["/l/H"], ["y"]), linear_before_reset=0),
        Layer("RNN").model(node("Identity", ["/l/H"], ["y"]), activations=["Relu"]),
        Layer("RNN").model(node("Identity", ["/l/H"], ["y"]), inputs=("#lengths", "", ""), more=[tensor("#lengths", dim)]),
    ]
    for content in unusual:
        text = t.text(content)
        assert any("scan" in line for line in text) and not any("@l(" in line for line in text), text
    usual = Layer("LSTM").model(node("Identity", ["/l/H"], ["y"]), activations=["sigmoid", "TANH", "Tanh"])
    assert any("lstm@" in line for line in t.text(usual))


@case
def numbers_go_to_the_activations_that_take_some(t):
    """In their order, through both directions: alpha here to Elu and HardSigmoid, and to LeakyRelu of the way back"""
    elu, hard = lambda a: lambda x: numpy.where(x < 0, a * numpy.expm1(x), x), lambda a, b: lambda x: numpy.clip(a * x + b, 0, 1)
    leaky = lambda a: lambda x: numpy.where(x < 0, a * x, x)
    names = ["Sigmoid", "Tanh", "Elu", "HardSigmoid", "LeakyRelu", "Tanh"]
    kinds = [(sigmoid, numpy.tanh, elu(0.5)), (hard(0.25, 0.625), leaky(0.125), numpy.tanh)]
    layer, found = Layer("LSTM", "bidirectional", bias=False), []
    for d, (f, g, h) in enumerate(kinds):
        w, r, ht, ct = layer.weights["#W"][d], layer.weights["#R"][d], numpy.zeros((BATCH, WIDTH)), numpy.zeros((BATCH, WIDTH))
        for step in X[::-1] if d else X:
            zi, zo, zf, zc = numpy.split(step @ w.T + ht @ r.T, 4, 1)
            ct = f(zf) * ct + f(zi) * g(zc)
            ht = f(zo) * h(ct)
        found.append(ht)
    content = layer.model(node("Identity", ["/l/H"], ["y"]), activations=names, activation_alpha=[0.5, 0.25, 0.125], activation_beta=[0.625])
    check(t, content, X, y=numpy.stack(found))


@case
def weights_with_names_keep_them(t):
    names = {"#W": "input_weight", "#R": "#R", "#B": "#B"}
    text = t.text(Layer("GRU").model(node("Identity", ["/l/H"], ["y"]), names=names))
    assert any(line.startswith("param input_weight") for line in text) and any("scan" in line for line in text), text


@case
def weights_of_two_stay_loops(t):
    layer = Layer("GRU")
    again = node("GRU", ["x", "#W", "#R", "#B"], ["", "#h2"], hidden_size=WIDTH, linear_before_reset=1)
    content = layer.model(again, node("Add", ["/l/H", "#h2"], ["y"]))
    assert not any("gru@" in line for line in t.text(content)), t.text(content)
    check(t, content, X, y=2 * layer.results(X)[1])


if __name__ == "__main__":
    main()
