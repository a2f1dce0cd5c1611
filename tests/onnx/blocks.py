"""Blocks that repeat: they come back as functions and loops, under the model's names, with the same values and kernels.

    blocks.py --nnc NNC        reports as TAP
"""

import re

import numpy

from harness import case, main
from write import graph, model, node, tensor, value

DICE = numpy.random.default_rng(5)


class Network:
    def __init__(self, shape):
        self.nodes, self.weights, self.shape = [], [], shape

    def add(self, op, inputs, output, **attributes):
        self.nodes.append(node(op, inputs, [output], **attributes))
        return output

    def weight(self, name, *shape, scale=0.3):
        self.weights.append(tensor(name, DICE.normal(size=shape).astype("f4") * numpy.float32(scale)))
        return name

    def linear(self, x, name, n, m, output, weight=None):
        h = self.add("MatMul", [x, self.weight(weight or f"onnx::MatMul_{len(self.weights)}", n, m)], output.replace("Add", "MatMul"))
        return self.add("Add", [h, self.weight(f"{name}.bias", m)], output)

    def model(self, *outputs):
        return model(graph(self.nodes, [value("x", self.shape)], [value(o, None) for o in outputs], self.weights))


def conv(n, x, name, channels, wide, output, stride=1):
    return n.add("Conv", [x, n.weight(f"{name}.weight", wide, channels, 3, 3), n.weight(f"{name}.bias", wide)], output, pads=[1, 1, 1, 1], strides=[stride, stride])


def lines_of(t, content):
    t.write(content)
    return t.run("import", "m.onnx").splitlines()


def same_values(t, content, results, shape):
    """The file, its text, the evaluator and emitted C agree with a text without functions: its graph, printed flat."""
    t.write(content)
    numpy.save(t.folder / "x.npy", DICE.normal(size=shape).astype("f4"))
    t.run("import", "m.onnx", "-o", "dir", "--overwrite")
    t.run("opt", "m.onnx", "--passes=expand", "-o", "flat.nnc")
    found = {}
    for source, target in (("m.onnx", "reference"), ("dir/m.nnc", "reference"), ("dir/m.nnc", "generic"), ("flat.nnc", "reference")):
        outputs = [word for r in results for word in ("--output", f"{r}={r}.npy")]
        more = [] if target == "reference" else ["--cc", "gcc -O1"]
        t.run("run", source, "--target", target, *more, "--input", "x=x.npy", *outputs)
        found[source, target] = [numpy.load(t.folder / f"{r}.npy") for r in results]
    first = found.pop(("m.onnx", "reference"))
    for key, values in found.items():
        for a, b in zip(first, values):
            numpy.testing.assert_allclose(a, b, 0, 2e-5 * max(numpy.abs(b).max(), 1), err_msg=str(key))
    return first


def transformer(layers, width=8):
    n = Network([2, 3, width])
    x = "x"
    for i in range(layers):
        name = f"encoder.layer.{i}"
        q, k, v = (n.linear(x, f"{name}.attention.{part}", width, width, f"/{name}/{part}/Add") for part in ("query", "key", "value"))
        s = n.add("Softmax", [n.add("MatMul", [q, n.add("Transpose", [k], f"/{name}/T", perm=[0, 2, 1])], f"/{name}/s")], f"/{name}/p", axis=-1)
        a = n.add("Add", [x, n.add("MatMul", [s, v], f"/{name}/a")], f"/{name}/Add_1")
        h = n.add("Relu", [n.linear(a, f"{name}.wide", width, 2 * width, f"/{name}/wide/Add")], f"/{name}/Relu")
        x = n.add("Add", [a, n.linear(h, f"{name}.narrow", 2 * width, width, f"/{name}/narrow/Add")], f"/{name}/Add_2")
    n.add("Tanh", [x], "y")
    return n


@case
def layers_of_a_transformer_are_read_once(t):
    content = transformer(12).model("y")
    lines = lines_of(t, content)
    assert "fn layer(x) -> (y) {" in lines and len(lines) < 25, lines
    assert "    for i in 0..12 carry x_2 {" in lines and "        x_2 = layer@encoder.layer.{i}(x_2)" in lines, lines
    assert any("dense@attention.query(x, 8)" in line for line in lines), lines
    same_values(t, content, ["y"], (2, 3, 8))
    names = t.run("params", "m.onnx")
    assert "encoder.layer.11.attention.query.bias" in names and "encoder.layer.0.narrow.weight" in names, names


@case
def kernels_are_those_of_the_flat_text(t):
    t.write(transformer(4).model("y"))
    t.run("opt", "m.onnx", "--passes=expand", "-o", "flat.nnc")
    count = lambda text: re.search(r"arena (.*), weights (.*), (\d+) kernels", text).groups()
    assert count(t.run("compile", "m.onnx", "-o", "a")) == count(t.run("compile", "flat.nnc", "-o", "b"))


@case
def blocks_of_other_widths_are_calls_with_arguments(t):
    n = Network([1, 4, 8, 8])
    x, channels = "x", 4
    for i, (wide, stride) in enumerate([(4, 1), (4, 1), (8, 2), (8, 1), (16, 2), (16, 1)]):
        name = f"stage{i}"
        h = n.add("Relu", [conv(n, x, f"{name}.conv1", channels, wide, f"/{name}/c", stride)], f"/{name}/Relu")
        h = conv(n, h, f"{name}.conv2", wide, wide, f"/{name}/d")
        if wide == channels:
            h = n.add("Add", [h, x], f"/{name}/Add")
        x, channels = n.add("Relu", [h], f"/{name}/out"), wide
    n.add("Neg", [x], "y")
    content = n.model("y")
    lines = lines_of(t, content)
    assert any(re.match(r"fn \w+\(x, channels\) -> \(y\)", line) for line in lines), lines
    assert "@stage1(" in "\n".join(lines) and ", 16)" in "\n".join(lines), lines
    same_values(t, content, ["y"], (1, 4, 8, 8))
    t.run("params", "m.onnx")


@case
def several_values_go_round(t):
    n = Network([2, 4])
    a, b = "x", n.add("Exp", ["x"], "/b")
    for i in range(4):
        h = n.linear(a, f"cell.{i}.a", 4, 4, f"/{i}/h/Add")
        g = n.linear(b, f"cell.{i}.b", 4, 4, f"/{i}/g/Add")
        a, b = n.add("Tanh", [n.add("Mul", [h, g], f"/{i}/m")], f"/{i}/t"), n.add("Sigmoid", [n.add("Sub", [h, g], f"/{i}/s")], f"/{i}/u")
    n.add("Add", [a, b], "y")
    content = n.model("y")
    lines = lines_of(t, content)
    assert any(re.match(r"    for i in 0\.\.4 carry \w+, \w+ \{", line) for line in lines), lines
    same_values(t, content, ["y"], (2, 4))


@case
def values_of_each_round_that_are_read_keep_it_calls(t):
    n = transformer(5)
    for i in range(5):
        n.add("Exp", [f"/encoder.layer.{i}/Add_2"], f"e{i}")
    results = ["y"] + [f"e{i}" for i in range(5)]
    content = n.model(*results)
    lines = lines_of(t, content)
    assert sum("layer@encoder.layer." in line for line in lines) == 5 and not any("for i" in line for line in lines), lines
    same_values(t, content, results, (2, 3, 8))


@case
def a_weight_of_all_layers_is_an_argument(t):
    n = Network([2, 4])
    w, x = n.weight("shared", 4, 4), "x"
    for i in range(6):
        h = n.linear(x, f"l.{i}.fc", 4, 4, f"/{i}/Add")
        x = n.add("Tanh", [n.add("MatMul", [h, w], f"/{i}/mm")], f"/{i}/t")
    n.add("Neg", [x], "y")
    content = n.model("y")
    lines = lines_of(t, content)
    assert sum(line.strip().startswith("param shared") for line in lines) == 1 and any("for i in 0..6" in line for line in lines), lines
    same_values(t, content, ["y"], (2, 4))


@case
def names_that_have_no_number_are_labels_one_by_one(t):
    n = Network([2, 4])
    x = "x"
    for name in ("left", "right", "top", "under"):
        h = n.add("Relu", [n.linear(x, f"{name}.a", 4, 4, f"/{name}/a/Add")], f"/{name}/r")
        h = n.add("Tanh", [n.linear(h, f"{name}.b", 4, 4, f"/{name}/b/Add")], f"/{name}/t")
        x = n.add("Mul", [n.add("Exp", [h], f"/{name}/e"), x], f"/{name}/o")
    n.add("Neg", [x], "y")
    content = n.model("y")
    text = "\n".join(lines_of(t, content))
    assert all(f"@{name}(" in text for name in ("left", "right", "top", "under")), text
    same_values(t, content, ["y"], (2, 4))


@case
def names_that_say_nothing_are_made_up(t):
    n = Network([2, 4])
    x = "x"
    for i in range(8):
        h = n.add("MatMul", [x, n.weight(f"onnx::MatMul_{i}", 4, 4)], f"{10 * i}")
        h = n.add("Tanh", [n.add("Exp", [h], f"{10 * i + 1}")], f"{10 * i + 2}")
        x = n.add("Div", [h, n.add("Abs", [x], f"{10 * i + 3}")], f"{10 * i + 4}")
    n.add("Neg", [x], "y")
    content = n.model("y")
    lines = lines_of(t, content)
    assert any("for i in 0..8" in line for line in lines), lines
    same_values(t, content, ["y"], (2, 4))


@case
def names_of_the_model_that_do_not_fit_keep_blocks_apart(t):
    n = Network([2, 4])
    x = "x"
    for i in range(6):
        h = n.add("MatMul", [x, n.weight(f"w{i}", 4, 4)], f"/{i}/m")
        x = n.add("Mul", [n.add("Tanh", [n.add("Exp", [h], f"/{i}/e")], f"/{i}/t"), x], f"/{i}/o")
    n.add("Neg", [x], "y")
    content = n.model("y")
    assert all(f"param w{i}: f32[4, 4]" in "\n".join(lines_of(t, content)) for i in range(6))
    same_values(t, content, ["y"], (2, 4))


@case
def a_result_of_the_graph_in_the_middle(t):
    n = transformer(6)
    content = n.model("y", "/encoder.layer.2/Add_2")
    t.write(content)
    line = next(line for line in t.run("import", "m.onnx").splitlines() if line.startswith("graph "))
    results = re.search(r"-> \((.*)\) \{", line)[1].split(", ")
    same_values(t, content, results, (2, 3, 8))


@case
def many_nodes_take_no_time(t):
    n = Network([4])
    x = "x"
    for i in range(15000):
        x = n.add(["Relu", "Exp", "Neg", "Tanh", "Abs"][(i * i) % 5], [x], f"/{i}")
    n.add("Neg", [x], "y")
    t.write(n.model("y"))
    t.run("import", "m.onnx")


@case
def a_constant_inside_of_the_first_block_comes_before_its_call(t):
    n = Network([2, 4])
    w, x, first = n.weight("shared", 4, 4), "x", []
    for i in range(5):
        first.append(n.add("Reshape", [x, "shape"], f"/{i}/first"))  # a result of the block, made in front of the constant
        h = n.add("Tanh", [n.add("MatMul", [first[-1], w], f"/{i}/mm")], f"/{i}/t")
        for op in "Exp", "Abs", "Sqrt", "Sin", "Cos":
            h = n.add(op, [h], f"/{i}/{op}")
        x = n.linear(h, f"l.{i}.fc", 4, 4, f"/{i}/Add")
    n.weights.append(tensor("shape", numpy.array([2, 4])))
    for i in range(5):
        n.add("Neg", [first[i]], f"e{i}")
    n.add("Neg", [x], "y")
    results = ["y", *(f"e{i}" for i in range(5))]
    content = n.model(*results)
    assert any(line.startswith("fn ") for line in lines_of(t, content))
    same_values(t, content, results, (2, 4))


@case
def numbers_of_an_exporter_are_no_names(t):
    n = Network([2, 8])
    x = "x"
    for i in range(4):
        h = n.add("MatMul", [x, n.weight(f"val_{9 * i + 5}", 8, 8)], f"val_{9 * i + 6}")
        h = n.add("Mul", [h, n.weight(f"layer.{i}.scale", 8)], f"mul_{i}")
        x = n.add("Add", [h, n.weight(f"layer.{i}.shift", 8)], f"add_{i}")
    n.add("Tanh", [x], "y")
    text = lines_of(t, n.model("y"))
    assert not any("param val_" in line for line in text), text
    assert any("for i in 0..4 carry" in line for line in text) and any("layer@layer.{i}(" in line for line in text), text
    same_values(t, n.model("y"), ["y"], [2, 8])


@case
def layers_that_share_their_weights(t):
    """As many arguments as it takes, where that saves so much; no name of one is a number."""
    n, width, ops = Network([3, 8]), 8, "Relu Tanh Sigmoid Neg Abs Sin Cos Erf Softsign Atan".split()
    weights = [n.weight(f"shared.{p}", width, width) for p in range(len(ops))]
    x = "x"
    for i in range(6):
        h = x
        for p, (op, weight) in enumerate(zip(ops, weights)):
            h = n.add(op, [n.add("MatMul", [h, weight], f"/{i}/{p}/MatMul")], f"/{i}/{p}/act")
        x = n.add("Add", [x, h], f"/{i}/Add")
    n.add("Tanh", [x], "y")
    text = lines_of(t, n.model("y"))
    assert "fn block(x, shared_0, shared_1, shared_2, shared_3, shared_4, shared_5, shared_6, shared_7, shared_8, shared_9) -> (y) {" in text, text
    assert any(line.startswith("    for i in 0..6 carry ") for line in text) and len(text) < 40, text
    same_values(t, n.model("y"), ["y"], n.shape)


@case
def labels_are_no_words_of_the_language(t):
    n = Network([1, 4, 6, 6])
    x = "x"
    for i in range(4):
        h = n.add("Conv", [x, n.weight(f"#{i}", 4, 4, 3, 3)], f"const.{i}", pads=[1, 1, 1, 1])
        x = n.add("Add", [n.add("Relu", [h], f"/{i}/Relu"), x], f"/{i}/Add")
    n.add("Tanh", [x], "y")
    text = lines_of(t, n.model("y"))
    assert any("conv@const2(" in line for line in text), text
    same_values(t, n.model("y"), ["y"], n.shape)


def named_by_ops(n, opset_nodes):
    """Nodes as PyTorch's exporter by torch.export calls them: after their results."""
    for op, inputs, output, attributes in opset_nodes:
        n.nodes.append(node(op, inputs, [output], name=f"node_{output}", **attributes))


@case
def results_that_are_called_after_ops_have_no_names(t):
    n = Network([2, 8])
    named_by_ops(n, [("Tanh", ["x"], "tanh", {}), ("Relu", ["tanh"], "relu", {}), ("Sqrt", ["relu"], "y", {})])
    assert "    y = sqrt(relu(tanh(x)))" in lines_of(t, n.model("y"))
    same_values(t, n.model("y"), ["y"], n.shape)


@case
def constants_that_an_exporter_has_worked_out_take_the_names_of_the_block(t):
    n = Network([2, 8])
    x = "x"
    for i in range(4):
        named_by_ops(n, [("Mul", [x, n.weight(f"layer.{i}.scale", 8)], f"mul_{i}", {}),
                         ("Add", [f"mul_{i}", n.weight(f"unsqueeze_{4 * i + 3}", 8)], f"add_{i}", {}),
                         ("Tanh", [f"add_{i}"], f"tanh_{i}", {})])
        x = f"tanh_{i}"
    n.add("Neg", [x], "y")
    text = lines_of(t, n.model("y"))
    assert not any("param unsqueeze" in line for line in text) and any("layer@layer.{i}(" in line for line in text), text
    same_values(t, n.model("y"), ["y"], n.shape)


@case
def what_blocks_share_stands_before_them(t):
    """The first layer computes what all of them read, of an input."""
    n = Network([2, 8])
    x = n.add("Neg", ["x"], "/embed/Neg")
    for i in range(4):
        h = n.add("MatMul", [x, n.weight(f"layer.{i}.weight", 8, 8)], f"/layer.{i}/MatMul")
        if i == 0:
            n.add("Exp", [n.add("Abs", ["x"], "/layer.0/Abs")], "/layer.0/Exp")
        for op in "Tanh Sin Cos Erf Sigmoid Softsign".split():
            h = n.add(op, [h], f"/layer.{i}/{op}")
        h = n.add("Mul", [h, "/layer.0/Exp"], f"/layer.{i}/Mul")
        for op in "Atan Relu Sqrt Sin Cos".split():
            h = n.add(op, [h], f"/layer.{i}/{op}_2")
        x = n.add("Add", [h, n.weight(f"layer.{i}.bias", 8)], f"/layer.{i}/Add")
    n.add("Tanh", [x], "y")
    text = lines_of(t, n.model("y"))
    assert any("for i in 0..4 carry" in line for line in text) and any("exp(abs(x))" in line for line in text), text
    same_values(t, n.model("y"), ["y"], n.shape)


@case
def a_name_of_another_scope_leaves_that_of_the_block(t):
    n, outputs = Network([2, 8]), []
    x = "x"
    for i in range(3):
        h = n.add("Tanh", [n.add("MatMul", [x, n.weight(f"net.{i}.weight", 8, 8)], f"/net/{i}/MatMul")], f"/net/{i}/Tanh")
        h = n.add("Sin", [n.add("Mul", [h, h], f"/net/{i}/Mul")], f"/net/{i}/Sin")
        outputs.append(n.add("Cos", [h], f"key.{2 * i + 4}"))
        x = n.add("Add", [h, n.weight(f"net.{i}.bias", 8)], f"/net/{i}/Add")
    n.add("Tanh", [x], "y")
    text = lines_of(t, n.model("y", *outputs))
    assert not any(line.startswith("    net.0.") for line in text), text
    same_values(t, n.model("y", *outputs), ["y", *outputs], n.shape)


if __name__ == "__main__":
    main()
