"""What `nnc export` writes: ops, names, weights, states, files and messages; and that what is imported again computes the
same.  The op table goes through tests/conform/conform.py with again.py.

    exports.py --nnc NNC [--models FOLDER]        reports as TAP; with a folder all of its models as well
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy

import proto
from harness import Tool as Texts

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "emitted"))
import models

CASES = []
AGAIN = pathlib.Path(__file__).resolve().parent / "again.py"
WITHIN = 1e-5  # of the largest element


def case(run):
    CASES.append(run)
    return run


class Tool(Texts):
    def model(self, *lines, name="m"):
        (self.folder / f"{name}.nnc").write_text("nnc 1\n" + "\n".join(lines) + "\n")

    def export(self, *lines, flags=()):
        self.model(*lines)
        self.run("export", "m.nnc", "-o", "m.onnx", *flags)
        return proto.one((self.folder / "m.onnx").read_bytes(), 7)

    def values(self, program, model, inputs, outputs, *flags):
        """Results of `program run model` on the evaluator."""
        for name, array in inputs.items():
            numpy.save(self.folder / f"{name}.npy", array)
        words = [word for name in inputs for word in ("--input", f"{name}={name}.npy")]
        words += [word for name in outputs for word in ("--output", f"{name}={name}.out.npy")]
        done = subprocess.run([*program, "run", model, *flags, "--target", "reference", *words], capture_output=True, text=True,
                              cwd=self.folder, env=dict(os.environ, NNC=str(self.nnc)), timeout=300)
        assert done.returncode == 0, done.stderr
        return [numpy.load(self.folder / f"{name}.out.npy") for name in outputs]

    def imported(self):
        """The graph of the export, read again."""
        text = self.run("import", "m.onnx")
        return text[text.index("graph ") :].splitlines()

    def agrees(self, model, inputs, outputs, *flags):
        """The same results before and after a round trip."""
        want = self.values([self.nnc], model, inputs, outputs, *flags)
        got = self.values([sys.executable, AGAIN], model, inputs, outputs, *flags)
        for name, a, b in zip(outputs, got, want):
            assert a.shape == b.shape and a.dtype == b.dtype, f"{name}: {a.dtype}{a.shape}, not {b.dtype}{b.shape}"
            a, b = (proto.as_f32(v).astype("f8") for v in (a, b))
            difference = numpy.abs(a - b)[~((a == b) | (numpy.isnan(a) & numpy.isnan(b)))].max(initial=0)
            scale = numpy.abs(b[numpy.isfinite(b)]).max(initial=0)
            assert difference <= WITHIN * scale, f"{name}: differs by {difference / max(scale, 1e-9):.2g} of the largest"

    def draw_weights(self):
        """All params of the model, in a file beside it."""
        wanted = json.loads(self.run("params", "m.nnc", "--format", "json"))["tensors"]
        header, data = {}, b""
        for i, tensor in enumerate(wanted):
            values = draw(*tensor["shape"], seed=i).tobytes()
            header[tensor["name"]] = {"dtype": "F32", "shape": tensor["shape"], "data_offsets": [len(data), len(data) + len(values)]}
            data += values
        text = json.dumps(header).encode()
        (self.folder / "m.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)

    def same(self, lines, inputs, *outputs, drawn=False):
        self.model(*lines)
        if drawn:
            self.draw_weights()
        self.agrees("m.nnc", inputs, outputs)


def ops(graph):
    return [proto.text(node, 4) for node in proto.many(graph, 1)]


def names(graph, field):
    return [proto.text(value, 1) for value in proto.many(graph, field)]


def initialisers(graph):
    return {proto.text(t, 8): t for t in proto.many(graph, 5)}


def constants(graph):
    """Elements of nodes that are constants, by what these give."""
    nodes = [n for n in proto.many(graph, 1) if proto.text(n, 4) == "Constant"]
    return {proto.text(n, 2): proto.one(proto.one(n, 5), 5) for n in nodes}


def expect(found, wanted):
    assert found == wanted, f"found {found}, not {wanted}"


def draw(*shape, seed=1):
    return numpy.random.default_rng(seed).normal(size=shape).astype("f4")


@case
def layers_are_single_nodes(t):
    g = t.export('use "nn"', "graph g(x: f32[1, 3, 8, 8]) -> (p) {", "    h = relu(batch_norm@bn(conv@c(x, 4, 3, pad = 1)))",
                 "    p = softmax(dense@fc(global_avg_pool(max_pool(h, window = 2)), 5), axis = 1)", "}")
    expect(ops(g), ["Conv", "BatchNormalization", "Relu", "MaxPool", "GlobalAveragePool", "Flatten", "Gemm", "Softmax"])
    expect(sorted(initialisers(g)), ["bn.bias", "bn.mean", "bn.scale", "bn.variance", "c.bias", "c.weight", "fc.bias", "fc.weight"])
    expect((names(g, 11), names(g, 12)), (["x"], ["p"]))


@case
def attributes_that_are_what_an_op_takes_without_them_are_left_out(t):
    """ONNX Runtime gives them to ops of its own, and its QLinearAveragePool knows no dilations."""
    text = ('use "nn"', "graph g(x: f32[1, 3, 14, 14]) -> (y, s, m) {", "    h = max_pool(avg_pool(conv@a(x, 4, 1), window = 2), window = 3, stride = 1)",
            "    y = conv@b(avg_pool(h, window = 2, stride = 1, pad = 1), 4, 3, dilation = 2)", "    s = cumsum(x, axis = 1)", "    m = reduce_max(x, axes = 1, keep = true)", "}")
    g = t.export(*text)
    found = [(proto.text(n, 4), [proto.text(a, 1) for a in proto.many(n, 5)]) for n in proto.many(g, 1)]
    expect(sorted(found), [("AveragePool", ["kernel_shape", "pads"]), ("AveragePool", ["kernel_shape", "strides"]), ("Conv", []), ("Conv", ["dilations"]),
                           ("CumSum", []), ("MaxPool", ["kernel_shape"]), ("ReduceMax", [])])
    t.same(text, {"x": draw(1, 3, 14, 14)}, "y", "s", "m", drawn=True)


@case
def the_file_says_what_it_is(t):
    t.export("graph g(x: f32[2]) -> (y) { y = exp(x) }")
    data = (t.folder / "m.onnx").read_bytes()
    opset = [(proto.text(o, 1), proto.one(o, 2, 0)) for o in proto.many(data, 8)]
    expect((proto.one(data, 1, 0), proto.text(data, 2), opset), (10, "nnc", [("", 21)]))
    expect(proto.text(proto.one(data, 7), 2), "g")


@case
def values_keep_their_names(t):
    g = t.export("graph g(`x:0`: f32[2]) -> (y) {", "    inner = exp(`x:0`)", "    y = inner * inner + 1", "}")
    expect([proto.text(n, 2) for n in proto.many(g, 1)], ["inner", "mul", "y"])
    expect([proto.text(n, 1) for n in proto.many(g, 1)][:1], ["x:0"])


@case
def bytes_are_the_same_again(t):
    text = ('use "nn"', "graph g(x: f32[2, 4], k: i64[]) -> (y) { y = dropout(dense(layer_norm(x), 3), 0.5, k) }")
    t.export(*text)
    first = (t.folder / "m.onnx").read_bytes()
    t.export(*text)
    assert first == (t.folder / "m.onnx").read_bytes()
    assert not list(t.folder.glob("*.part"))


@case
def states_go_in_and_out(t):
    g = t.export("graph g(x: f32[]) -> (m) {", "    state n: f32[] = 2.0", "    param w: f32[] = 3.0", "    m = x * w + n",
                 "    n <- n + x", "    w <- w * 2", "}")
    expect((names(g, 11), names(g, 12)), (["x", "n", "w"], ["m", "n_next", "w_next"]))
    expect({k: proto.tensor(v).item() for k, v in initialisers(g).items() if k in ("n", "w")}, {"n": 2.0, "w": 3.0})
    results = t.values([t.nnc], "m.onnx", {"x": numpy.array(5, "f4")}, ["m"])
    expect([float(r) for r in results], [17.0])
    expect(t.imported()[1:-1], ["    state n: f32[] = 2.0", "    param w: f32[]", "    mul = x * w", "    m = mul + n", "    n_next = n + x",
                                "    w_next = w * 2.0", "    n <- n_next", "    w <- w_next"])


@case
def updates_in_calls(t):
    t.export("fn push(window, x) -> (y) {", "    y = concat(window[1:], x)", "    window <- y", "}", "graph g(x: f32[1]) -> (sum) {",
             "    state last: f32[3] = 1.0", "    sum = reduce_sum(push(last, x))", "}")
    results = t.values([t.nnc], "m.onnx", {"x": numpy.array([5], "f4")}, ["sum"])
    expect([r.tolist() for r in results], [7.0])
    lines = t.imported()
    expect([lines[1], lines[-2]], ["    state last: f32[3] = 1.0", "    last <- last_next"])


@case
def what_only_updates_comes_back(t):
    t.export("graph g(x: f32[2]) -> () {", "    state a: f32[2] = 1.0", "    state b: f32[2] = 2.0", "    a <- b", "    b <- a + x", "}")
    expect(t.imported(), ["graph g(x: f32[2]) -> () {", "    state a: f32[2] = 1.0", "    state b: f32[2] = 2.0", "    b_next = a + x",
                          "    a <- b", "    b <- b_next", "}"])


@case
def a_training_step_comes_back(t):
    """With its weights and moments: it goes on as the text does."""
    t.export('use "nn"', "graph step(x: f32[4, 3], t: f32[4, 2]) -> (loss) {", "    loss = mean((dense@fc(x, 2) - t) ** 2)",
             "    minimize(loss, with = adam(rate = 0.1))", "}")
    dice = numpy.random.default_rng(3)
    numpy.savez(t.folder / "d.npz", x=dice.normal(size=(16, 3)).astype("f4"), t=dice.normal(size=(16, 2)).astype("f4"))
    words = ["--data", "d.npz", "--epochs", "3", "--in-order", "-o", "w", "--save", "c"]
    losses = [re.findall(r"loss ([\d.]+)", t.run("train", model, *words)) for model in ("m.nnc", "m.onnx")]
    assert len(losses[0]) == 3, losses
    expect(losses[1], losses[0])


@case
def an_output_called_as_an_input(t):
    g = t.export("graph g(x: f32[2]) -> (x) { x <- x + 1 }")
    expect((names(g, 11), names(g, 12)), (["x"], ["x_next"]))


@case
def an_output_that_is_a_weight(t):
    g = t.export("graph g(x: f32[2]) -> (y, w, v) {", "    param w: f32[2] = 3.0", "    y = x * w", "    v = w", "}")
    expect((names(g, 11), names(g, 12), ops(g)), (["x"], ["y", "w", "v"], ["Mul", "Identity"]))
    results = t.values([t.nnc], "m.onnx", {"x": numpy.array([1, 2], "f4")}, ["y", "w", "v"])
    expect([r.tolist() for r in results], [[3.0, 6.0], [3.0, 3.0], [3.0, 3.0]])


@case
def one_value_under_two_names_and_an_input(t):
    g = t.export("graph g(x: f32[2]) -> (a, b, c) {", "    a = exp(x)", "    b = a", "    c = x", "}")
    expect((ops(g), names(g, 12)), (["Exp", "Identity", "Identity"], ["a", "b", "c"]))


@case
def what_nobody_needs_is_left_out(t):
    g = t.export("graph g(x: f32[2]) -> (y) {", "    param w: f32[2] = 1.0", "    unused = sin(x * w) * 7", "    y = exp(x)", "}")
    expect((ops(g), list(initialisers(g))), (["Exp"], []))


@case
def elements_beside_the_model(t):
    flags = ["--external"]
    g = t.export('use "nn"', "graph g(x: f32[1, 300]) -> (y) { y = dense@b(dense@a(x, 20), 3) }", flags=flags)
    found = {}
    for name, tensor in initialisers(g).items():
        entries = {proto.text(e, 1): proto.text(e, 2) for e in proto.many(tensor, 13)}
        if entries:
            expect((entries["location"], int(entries["offset"]) % 4096), ("m.bin", 0))
            found[name] = int(entries["length"])
    expect(found, {"a.weight": 300 * 20 * 4})
    x = draw(1, 300)
    apart = t.values([t.nnc], "m.onnx", {"x": x}, ["y"])[0]
    numpy.testing.assert_array_equal(apart, t.values([t.nnc], "m.nnc", {"x": x}, ["y"])[0])


@case
def files_of_the_model_are_not_written_over(t):
    t.export("graph g(x: f32[2000]) -> (y) {", "    param w: f32[2000] = 1.5", "    y = x + w", "}")
    before = (t.folder / "m.onnx").read_bytes()
    error = t.run("export", "m.onnx", "-o", "m.onnx", status=1)
    assert "m.onnx: error: this file belongs to the model that is read: give another name to write to" in error, error
    t.run("export", "m.onnx", "-o", "n.onnx", "--external")
    os.link(t.folder / "n.bin", t.folder / "k.bin")
    error = t.run("export", "n.onnx", "-o", "k.onnx", "--external", status=1)
    assert "k.bin: error: this file belongs to what is exported" in error, error
    assert not (t.folder / "k.onnx").exists()
    expect((t.folder / "m.onnx").read_bytes(), before)
    assert not list(t.folder.glob("*.part"))


@case
def a_folder_that_is_not_there(t):
    t.model("graph g(x: f32[2]) -> (y) { y = exp(x) }")
    error = t.run("export", "m.nnc", "-o", "no/m.onnx", status=3)
    assert "no/m.onnx: error: cannot write" in error, error


@case
def graphs_are_chosen(t):
    t.model("graph a(x: f32[2]) -> (y) { y = exp(x) }", "graph b(x: f32[2]) -> (y) { y = sin(x) }")
    error = t.run("export", "m.nnc", "-o", "m.onnx", status=1)
    assert "m.nnc: error: an ONNX file has one graph: choose one of a, b with --graph" in error, error
    t.run("export", "m.nnc", "--graph", "b", "-o", "m.onnx")
    expect(ops(proto.one((t.folder / "m.onnx").read_bytes(), 7)), ["Sin"])


@case
def all_that_cannot_be_said_is_listed(t):
    choice = ["case (k) { 0: exp(x) 1: sin(x) 2: cos(x) else:"] * 20
    t.model("graph g(x: f32[2], k: i32[]) -> (y, z) {", "    y = " + " ".join(choice) + " x" + " }" * 20,
            "    z = " + " ".join(choice) + " x" + " }" * 20, "}")
    lines = [line for line in t.run("export", "m.nnc", "-o", "m.onnx", status=1).splitlines() if line.startswith("m.nnc")]
    assert re.fullmatch(r"m.nnc: error: 2 of \d+ nodes cannot be exported", lines[0]), lines
    for place, line in zip(("m.nnc:3:", "m.nnc:4:"), lines[1:]):
        assert line.startswith(place) and ", case: loops and branches nest deeper than readers of ONNX follow" in line, lines
    assert len(lines) == 3 and not (t.folder / "m.onnx").exists(), lines


@case
def bits_of_floats(t):
    x = numpy.array([0, -0.0, 1, -1.5, 3e38, -1e-45, 1e-38, 1.1754944e-38, numpy.inf, -numpy.inf, numpy.nan, 2**-126, 0.1], "f4")
    text = ["graph g(x: f32[13]) -> (i, y, h, b) {", "    i = bitcast(x, to = i32)", "    y = bitcast(i, to = f32)",
            "    h = bitcast(cast(x, to = f16), to = i16)", "    b = -bitcast(bitcast(f64(x), to = u64), to = f64)", "}"]
    t.export(*text)
    i, y, h, b = t.values([t.nnc], "m.onnx", {"x": x}, ["i", "y", "h", "b"])
    numpy.testing.assert_array_equal(i, x.view("i4"))
    numpy.testing.assert_array_equal(y.view("i4"), x.view("i4"))
    with numpy.errstate(over="ignore"):
        numpy.testing.assert_array_equal(h, x.astype("f2").view("i2"))
    numpy.testing.assert_array_equal(b[:10].view("i8"), (-x.astype("f8"))[:10].view("i8"))


@case
def sums_of_narrow_floats_at_one_position(t):
    text = ["graph g(x: f16[3], i: i64[4], u: f16[4]) -> (s, p) {", "    s = scatter_add(x, i, u)", "    p = scatter_mul(x, i, u)", "}"]
    t.export(*text)
    x, u = numpy.array([1, 2, 3], "f2"), numpy.array([0.5, 2, 4, 8], "f2")
    s, p = t.values([t.nnc], "m.onnx", {"x": x, "i": numpy.array([0, 0, -1, 1]), "u": u}, ["s", "p"])
    expect((s.tolist(), p.tolist()), ([3.5, 10, 7], [1, 16, 12]))


@case
def tensors_without_elements(t):
    text = ["graph g(x: f32[0, 2]) -> (p, s, c, m, e) {", "    p = pad(x, before = [1, 0], after = [0, 1], value = 2)",
            "    s = reduce_sum(x, axes = 0)", "    c = concat(x, p[:, :2])", "    m = transpose(x) @ x", "    e = exp(x)", "}"]
    t.same(text, {"x": numpy.zeros((0, 2), "f4")}, *"pscme")
    g = t.export(*text)
    assert "Pad" not in ops(g) and "MatMul" not in ops(g), ops(g)


@case
def tensors_of_no_dimensions(t):
    text = ["graph g(x: f32[]) -> (p, s, y, r, b) {", "    p = pad(x, before = [], after = [])", "    s = reduce_sum(x)",
            "    y = x[...]", "    r = reshape(x, shape = [1, 1])", "    b = broadcast(x, shape = [2, 3])", "}"]
    t.same(text, {"x": numpy.array(1.5, "f4")}, *"psyrb")
    expect(ops(t.export(*text)).count("Pad"), 0)


@case
def loops_and_branches(t):
    text = ["graph g(x: f32[3], n: i32[], k: i32[]) -> (y, z, w) {",
            "    (y, i) = while (i < n) with (y = x, i = 0) max = 4 { h = y * 0.5 + x } next (y <- h, i <- i + 1)",
            "    z = do with (z = x) { h = z * 0.5 } next (z <- h) while (reduce_max(h) > 0.1)",
            "    w = case (k) { 3: exp(x) 1: { a = while (reduce_sum(a) < 9.0) with (a = abs(x)) { } next (a <- a * 2.0)  yield a }",
            "        else: -x }", "}"]
    for n, k in [(0, 3), (2, 1), (9, 0)]:
        t.same(text, {"x": draw(3), "n": numpy.array(n, "i4"), "k": numpy.array(k, "i4")}, "y", "z", "w")


@case
def recurrent_layers(t):
    for bias in ("true", "false"):
        text = ['use "nn"', "graph g(x: f32[5, 2, 3]) -> (ys, h, c, gs, g1, rs, r1) {",
                f"    (ys, h, c) = lstm@l(x, 4, bidirectional = true, with_bias = {bias})",
                f"    (gs, g1) = gru@g(x, 6, with_bias = {bias})", f"    (rs, r1) = rnn@r(x, 4, with_bias = {bias})", "}"]
        found = ops(t.export(*text, flags=["--flat"]))
        expect([found.count(op) for op in ("LSTM", "GRU", "RNN", "Loop")], [2, 1, 1, 0])
        t.same(text, {"x": draw(5, 2, 3)}, "ys", "h", "c", "gs", "g1", "rs", "r1", drawn=True)
        (t.folder / "m.safetensors").unlink()
    text = ['use "nn"', "graph g(x: f32[5, 2, 3]) -> (ys, h, c) { (ys, h, c) = lstm@l(x, 4, peephole = true) }"]
    assert "Loop" in ops(t.export(*text, flags=["--flat"]))
    t.same(text, {"x": draw(5, 2, 3)}, "ys", "h", "c")


@case
def layers_of_what_is_known(t):
    """Nothing but params: the layer has the model's weights, not what its initialisers draw."""
    text = ['use "nn"', "graph g(x: f32[4]) -> (y, h, z) {", "    param p: f32[2, 3, 4] = normal(seed = 5)", "    y = attention@a(p, 2)",
            "    (h, last, _) = lstm@l(p, 4, bidirectional = true)", "    z = x + 1.0", "}"]
    t.same(text, {"x": draw(4)}, "y", "h", "z", drawn=True)


@case
def calls_of_several_results_and_words(t):
    text = ['use "nn"', "graph g(x: f32[2, 5, 6], v: f32[3, 6], image: f32[1, 2, 4, 5], grid: f32[1, 3, 2, 2], m: f32[4, 4]) -> (a, ai, b, bi, c, d, e, s, z) {",
            "    (a, ai) = top_k(x, 3)", "    (b, bi) = top_k(x, 2, axis = 1, largest = false)",
            '    c = einsum([x, v], [["batch", "row", "column"], ["out", "column"]], ["batch", "out", "row"])',
            '    d = einsum([m], [["i", "i"]], [])', '    e = einsum([x, v, v], [["n", "t", "k"], ["o", "k"], ["p", "k"]], ["p", "n", "o"])',
            "    s = grid_sample(image, grid)", '    z = grid_sample(image, grid, mode = "nearest", padding = "border", corners = true)', "}"]
    found = ops(t.export(*text))
    expect(sorted(found), ["Einsum"] * 3 + ["GridSample"] * 2 + ["TopK"] * 2)
    t.same(text, {"x": draw(2, 5, 6), "v": draw(3, 6), "image": draw(1, 2, 4, 5), "grid": numpy.tanh(draw(1, 3, 2, 2)), "m": draw(4, 4)},
           "a", "ai", "b", "bi", "c", "d", "e", "s", "z")


@case
def sums_of_one_image_in_groups(t):
    """As Einstein's sum, whose axes are as many as the result's, but others"""
    text = ["graph g(x: f64[1, 3, 5], w: f64[9, 1, 2], b: f64[9]) -> (y) { y = conv1d(x, w, b, stride = 2, groups = 3) }"]
    assert "Einsum" in ops(t.export(*text))
    at = numpy.random.default_rng(1).normal
    t.same(text, {"x": at(size=(1, 3, 5)), "w": at(size=(9, 1, 2)), "b": at(size=9)}, "y")


@case
def positions_in_order(t):
    dtypes = {"f16": "f2", "f32": "f4", "f64": "f8", "i8": "i1", "i32": "i4", "i64": "i8", "u16": "u2", "u64": "u8"}
    for dtype, numpy_dtype in dtypes.items():
        x = numpy.random.default_rng(3).integers(0 if dtype[0] == "u" else -9, 9, (3, 40)).astype(numpy_dtype)
        x[1, ::7] = numpy.iinfo(x.dtype).max if x.dtype.kind in "iu" else numpy.inf
        text = ['use "nn"', f"graph g(x: {dtype}[3, 40]) -> (a, b, c, v, i) {{", "    a = argsort(x)", "    b = sorted_positions(x, axis = 0, largest = true)",
                "    c = sort(x, largest = true)", "    (v, i) = top_k(x, 4, largest = false)", "}"]
        found = ops(t.export(*text, flags=["--flat"]))
        expect([found.count(op) for op in ("TopK", "Loop")], [4, 0])
        t.same(text, {"x": x}, "a", "b", "c", "v", "i")


@case
def elements_that_are_moved(t):
    at = numpy.random.default_rng(2).integers
    boxes = numpy.array([[0, 1, 5, 7], [2, 2, 2.5, 3], [-3, 0, 20, 9]], "f4")
    given = {"x": draw(2, 8, 3, 4), "k": at(-6, 6, (2, 8, 3, 2)), "n": at(-9, 9, (5, 2)).astype("i4"), "m": at(-4, 5, (2, 3, 2)),
             "b": boxes, "i": numpy.array([1, 0, 1])}
    text = ['use "nn"', "graph g(x: f32[2, 8, 3, 4], k: i64[2, 8, 3, 2], n: i32[5, 2], m: i64[2, 3, 2], b: f32[3, 4], i: i64[3]) -> (c, d, e, t, p, q, r, s) {",
            "    c = gather_elements(x, k, 3)", "    d = gather_nd(x, n)", "    e = gather_nd(x, m, batch = 1)", "    t = tile(x, [1, 2, 1, 3])",
            '    p = depth_to_space(x, 2, mode = "CRD")', "    q = depth_to_space(prelu@a(x), 2)", "    r = roi_align(x, b, i, 2, 3, 2, scale = 1, half_pixel = false)",
            "    s = space_to_depth(p, 2)", "}"]
    found = ops(t.export(*text))
    for op, count in (("GatherElements", 1), ("GatherND", 2), ("Tile", 1), ("DepthToSpace", 2), ("PRelu", 1), ("RoiAlign", 1), ("SpaceToDepth", 1), ("Gather", 0), ("Transpose", 0)):
        expect((op, found.count(op)), (op, count))
    t.same(text, given, "c", "d", "e", "t", "p", "q", "r", "s")
    walked = ops(t.export('use "nn"', "graph g(x: f32[2, 2, 3, 4], b: f32[3, 4], i: i64[3]) -> (r, s) {", '    r = roi_align(x, b, i, 2, 3, 2, mode = "max")',
                          '    s = space_to_depth(x[:, :, :2], 2, mode = "CRD")', "}"))
    assert "RoiAlign" not in walked and "SpaceToDepth" not in walked, walked


@case
def images_of_another_size(t):
    images = [("f32[1, 2, 4, 5]", "[7, 3], axes = [2, 3]"), ("f32[1, 2, 6]", "[4], axes = [-1]"), ("f32[1, 1, 3, 4, 5]", "[6, 3, 5], axes = [2, 3, 4]")]
    modes = ['mode = "linear"', 'coordinates = "asymmetric", rounding = "floor"', 'mode = "linear", coordinates = "align_corners"',
             'coordinates = "pytorch_half_pixel", rounding = "ceil"', 'mode = "linear", antialias = true']
    calls = [(image, f"{to}, {mode}") for image, to in images for mode in modes]
    calls += [(images[0][0], f'{images[0][1]}, mode = "cubic", {more}') for more in ("exclude_outside = true, a = -0.5", "antialias = true")]
    calls += [(images[0][0], "[6, 7], axes = [2, 3], scales = [1.6, 1.5], " + mode) for mode in modes[:2]]
    calls += [("u8[1, 2, 4, 5]", "[8, 10], axes = [2, 3]")]
    for image, call in calls:
        text = ['use "nn"', f"graph g(x: {image}) -> (y) {{ y = resize(x, {call}) }}"]
        g = t.export(*text)
        expect([op for op in ops(g) if op != "Constant"], ["Resize"])
        expect([bool(name) for name in proto.many(proto.many(g, 1)[-1], 1)], [True, False, "scales" in call] + [True] * ("scales" not in call))
        shape = [int(d) for d in image[image.index("[") + 1:-1].split(",")]
        t.same(text, {"x": draw(*shape) if image[0] == "f" else integers(*shape, low=0, high=255).astype("u1")}, "y")
    # 5 by the f32 next to 1.4 are 6, so the next one is written
    g = t.export('use "nn"', 'graph g(x: f32[1, 2, 5, 6]) -> (y) { y = resize(x, [7, 8], axes = [2, 3], mode = "linear", scales = [1.4, 1.4]) }')
    assert numpy.floor(proto.tensor(constants(g)["y.scales"]).astype("f8") * [1, 2, 5, 6]).tolist() == [1, 2, 7, 8]
    walked = ['scales = [1.7, 1.5], mode = "linear", coordinates = "align_corners"', 'scales = [1.9, 1.5]', 'coordinates = "half_pixel_symmetric"',
              'coordinates = "tf_half_pixel_for_nn"', 'coordinates = "tf_crop_and_resize", roi = [[0.1, 0.9], [0.0, 0.5]]']
    for call in walked: # what ONNX Runtime computes otherwise, or nobody
        text = ['use "nn"', f"graph g(x: f32[1, 2, 4, 5]) -> (y) {{ y = resize(x, [6, 7], axes = [2, 3], {call}) }}"]
        assert "Resize" not in ops(t.export(*text)), call
        t.same(text, {"x": draw(1, 2, 4, 5)}, "y")


@case
def random_numbers_keep_their_bits(t):
    text = ["graph g(k: i64[]) -> (a, b, c, d) {", "    a = random_bits(k, shape = [3, 7])",
            "    b = random_uniform(fold_in(k, -5), shape = [9], low = -2, high = 3)",
            "    c = random_normal(fold_in(k, 7), shape = [1001])", "    d = normal(seed = 4, shape = [6])", "}"]
    t.model(*text)
    for key in (0, -1, 1 << 40):
        given = {"k": numpy.array(key, "i8")}
        want = t.values([t.nnc], "m.nnc", given, "abcd")
        for a, b in zip(t.values([sys.executable, AGAIN], "m.nnc", given, "abcd"), want):
            numpy.testing.assert_array_equal(a, b)


@case
def quantised_values(t):
    text = ['use "nn"', "graph g(x: f32[4, 6]) -> (q, y) {",
            "    q = cast(clip(round(x / 0.05) + cast(i8(3), to = f32), -128.0, 127.0), to = i8)",
            "    y = cast(cast(q, to = i32) - cast(i8(3), to = i32), to = f32) * 0.05", "}"]
    expect(ops(t.export(*text)), ["QuantizeLinear", "DequantizeLinear"])
    t.same(text, {"x": draw(4, 6)}, "q", "y")


@case
def scales_known_when_running(t):
    text = ['use "nn"', "graph g(x: f32[2, 3, 4], s: f32[3], z: u8[3], k: f32[1], m: i8[]) -> (q, y, p, v) {",
            "    q = cast(clip(round(x / reshape(s, shape = [3, 1])) + reshape(cast(z, to = f32), shape = [3, 1]), 0.0, 255.0), to = u8)",
            "    y = (cast(q, to = f32) - cast(reshape(z, shape = [1, 3, 1]), to = f32)) * reshape(s, shape = [1, 3, 1])",
            "    p = cast(clip(round(x / reshape(k, shape = [])) + cast(m, to = f32), -128.0, 127.0), to = i8)",
            "    v = cast(cast(p, to = i32) - cast(m, to = i32), to = f32) * reshape(k, shape = [])", "}"]
    g = t.export(*text)
    expect(ops(g), ["QuantizeLinear", "DequantizeLinear", "QuantizeLinear", "DequantizeLinear"])
    expect([proto.one(a, 3, 0) for n in proto.many(g, 1) for a in proto.many(n, 5)], [1, 1])
    t.same(text, {"x": draw(2, 3, 4), "s": numpy.array([0.1, 0.02, 0.5], "f4"), "z": numpy.array([3, 128, 0], "u1"),
                  "k": numpy.array([0.03], "f4"), "m": numpy.array(-5, "i1")}, "q", "y", "p", "v")


@case
def bytes_by_their_range(t):
    text = ['use "nn"', "graph g(x: f32[4, 3]) -> (y, scale, zero, n) {", "    low = minimum(reduce_min(x), 0.0)",
            "    scale = (maximum(reduce_max(x), 0.0) - low) / 255.0", "    middle = round(clip(-low / scale, 0.0, 255.0))",
            "    zero = cast(middle, to = u8)", "    y = cast(clip(round(x / scale) + middle, 0.0, 255.0), to = u8)",
            "    n = reduce_max(cast(y, to = f32) * scale)", "}"]
    g = t.export(*text)
    expect(ops(g)[0], "DynamicQuantizeLinear")
    expect([name.decode() for name in proto.many(proto.many(g, 1)[0], 2)], ["y", "scale", "zero"])
    assert "Div" not in ops(g) and "Round" not in ops(g), ops(g)
    for x in (draw(4, 3), numpy.abs(draw(4, 3)) + 1):
        t.same(text, {"x": x}, "y", "scale", "zero", "n")


def integers(*shape, low, high, seed=1):
    return numpy.random.default_rng(seed).choice([low, high, high - 1, 3], size=shape)


@case
def sums_of_bytes(t):
    for a, b, lifted in (("u8", "u8", False), ("u8", "i8", True), ("i8", "u8", False), ("i8", "i8", False)):
        low, high = (numpy.iinfo(NUMPY[b]).min, numpy.iinfo(NUMPY[b]).max)
        w, k = integers(8, 5, low=low, high=high), integers(3, 2, 2, 2, low=low, high=high)
        text = ['use "nn"', f"graph g(x: {a}[4, 8], z: {a}[], i: {a}[1, 2, 5, 4]) -> (p, c) {{",
                f"    const w: {b}[8, 5] = {w.tolist()}", f"    const k: {b}[3, 2, 2, 2] = {k.tolist()}", f"    const v: {b}[5] = [1, 2, 3, 4, 5]",
                "    p = (cast(x, to = i32) - cast(z, to = i32)) @ (cast(w, to = i32) - cast(v, to = i32))",
                "    c = conv2d((cast(i, to = i32) - cast(z, to = i32)), cast(k, to = i32), pad = 1, stride = 2)", "}"]
        g = t.export(*text)
        found = ops(g)
        expect([found.count(op) for op in ("MatMulInteger", "ConvInteger", "Einsum", "MatMul")], [1, 1, 0, 0])
        weight = initialisers(g)["w.lifted" if lifted else "w"]
        expect(proto.one(weight, 2, 0), 2 if lifted or b == "u8" else 3)
        limits = {"low": numpy.iinfo(NUMPY[a]).min, "high": numpy.iinfo(NUMPY[a]).max}
        t.same(text, {"x": integers(4, 8, **limits).astype(NUMPY[a]), "z": numpy.array(7, NUMPY[a]),
                      "i": integers(1, 2, 5, 4, **limits).astype(NUMPY[a])}, "p", "c")


@case
def scaled_sums_of_bytes(t):
    w, k = integers(8, 5, low=-128, high=127), integers(3, 2, 2, 2, low=-128, high=127)
    for a in ("u8", "i8"):
        low, high = numpy.iinfo(NUMPY[a]).min, numpy.iinfo(NUMPY[a]).max
        cut = f"cast(zero, to = f32), {low}.0, {high}.0), to = {a})"
        text = ['use "nn"', f"graph g(x: {a}[4, 8], i: {a}[1, 2, 5, 4], s: f32[5], r: f32[3], zero: {a}[]) -> (p, c) {{",
                f"    const w: i8[8, 5] = {w.tolist()}", f"    const k: i8[3, 2, 2, 2] = {k.tolist()}", "    const b: i32[3] = [100, -2000, 30]",
                "    n = (cast(x, to = i32) - cast(zero, to = i32)) @ cast(w, to = i32)",
                f"    p = cast(clip(round(cast(n, to = f32) * (0.5 * s / 3.0)) + {cut}",
                "    m = conv2d((cast(i, to = i32) - cast(zero, to = i32)), cast(k, to = i32), pad = 1) + reshape(b, shape = [3, 1, 1])",
                f"    c = cast(clip(round(cast(m, to = f32) * reshape(r, shape = [3, 1, 1])) + {cut}", "}"]
        found = ops(t.export(*text))
        expect([found.count(op) for op in ("QLinearMatMul", "QLinearConv", "Round", "Einsum")], [1, 1, 0, 0])
        limits = {"low": low, "high": high}
        t.same(text, {"x": integers(4, 8, **limits).astype(NUMPY[a]), "i": integers(1, 2, 5, 4, **limits).astype(NUMPY[a]),
                      "s": numpy.array([0.01, 0.002, 0.03, 0.02, 0.001], "f4"), "r": numpy.array([0.001, 0.002, 0.0005], "f4"),
                      "zero": numpy.array(high - 120, NUMPY[a])}, "p", "c")


@case
def bytes_that_are_floats_for_a_while(t):
    pooled = "cast(max_pool(reshape(cast(x, to = f32), shape = [1, 1, 4, 4]), window = 2, pad = 1), to = {})"
    text = ["graph g(x: u8[16]) -> (y) { y = " + pooled.format("u8") + " }"]
    expect(ops(t.export(*text)), ["Cast", "Reshape", "MaxPool", "Cast"])
    t.same(text, {"x": integers(16, low=0, high=255).astype("u1")}, "y")
    for otherwise in (pooled.format("i8"), pooled.format("u8").replace("pad = 1", "pad = 1, dilation = 2")):
        text = ["graph g(x: u8[16]) -> (y) { y = " + otherwise + " }"]
        assert "Clip" in ops(t.export(*text)), otherwise
        t.same(text, {"x": integers(16, low=0, high=255).astype("u1")}, "y")


@case
def weights_of_four_bits(t):
    packed, scale = integers(5, 3, 8, low=0, high=255), [[0.5, 0.25, 1.5]] * 5
    for k, zeros in ((48, ""), (41, ""), (48, ", cast(z, to = f32)")):
        text = ['use "nn"', f"graph g(x: f32[2, {k}]) -> (y) {{", f"    const w: u8[5, 3, 8] = {packed.tolist()}", f"    const z: u8[5, 3] = {[[0, 15, 7]] * 5}",
                f"    const s: f32[5, 3] = {scale}", f"    y = matmul_nibbles(x, w, s{zeros})", "}"]
        g = t.export(*text)
        expect([op for op in ops(g) if op not in ("Slice", "Constant")], ["Transpose", "DequantizeLinear", "MatMul"])
        expect([(proto.one(w, 2, 0), list(proto.packed(proto.many(w, 1))), len(proto.one(w, 9))) for name, w in initialisers(g).items() if name == "w.turned"], [(21, [48, 5], 120)])
        t.same(text, {"x": draw(2, k)}, "y")
    t.export('use "nn"', "graph g(x: f32[2, 48], w: u8[5, 3, 8], s: f32[5, 3]) -> (y) { y = matmul_nibbles(x, w, s) }") # known when running


@case
def training_steps(t):
    t.same(['use "nn"', "graph step(x: f32[4, 3], label: i64[4]) -> (loss) {",
            "    loss = mean(cross_entropy(dense@l(x, 5), label))", "    minimize(loss, with = adam(rate = 0.1))", "}"],
           {"x": draw(4, 3), "label": numpy.array([0, 3, 1, 4])}, "loss")


@case
def weights_from_onnx_and_back(t):
    t.export('use "nn"', "graph g(x: f32[1, 3, 9, 9]) -> (y) { y = gelu(layer_norm@n(flatten(conv@c(x, 2, 3, stride = 2)))) }")
    x = draw(1, 3, 9, 9)
    first = t.values([t.nnc], "m.onnx", {"x": x}, ["y"])[0]
    t.run("export", "m.onnx", "-o", "n.onnx")
    numpy.testing.assert_array_equal(t.values([t.nnc], "n.onnx", {"x": x}, ["y"])[0], first)
    expect(ops(proto.one((t.folder / "n.onnx").read_bytes(), 7)), ["Conv", "Flatten", "LayerNormalization", "Gelu"])


@case
def constants_of_the_command_line(t):
    t.model("const N = 2", "graph g(x: f32[N, ?]) -> (y) { y = x * N }")
    t.run("export", "m.nnc", "-D", "N=3", "-D", "x.1=4", "-o", "m.onnx")
    assert "x: f32[3, 4]" in t.run("import", "m.onnx")


# Models

DRAWN = {"f": lambda r, s: r.uniform(-1, 1, s), "i": lambda r, s: r.integers(0, 10, s), "u": lambda r, s: r.integers(0, 10, s),
         "b": lambda r, s: r.integers(0, 2, s)}
NUMPY = {"f32": "f4", "f64": "f8", "f16": "f2", "i64": "i8", "i32": "i4", "i16": "i2", "i8": "i1", "u8": "u1", "bool": "?"}


def graphs_of(t, model, reduced):
    """Name, inputs and outputs of each graph."""
    text = t.run("opt", "--passes=", model, *reduced)
    for name, given, made in re.findall(r"^graph ([\w.]+)\((.*?)\) -> \((.*?)\) {$", text, re.MULTILINE | re.DOTALL):
        typed = re.findall(r"([\w.]+): (\w+)\[([^\]]*)\]", given)
        yield name, typed, re.findall(r"[\w.]+(?=: \w+\[)", made)


def round_trip(t, model):
    reduced = models.words(model, False)
    for name, given, outputs in graphs_of(t, model, reduced):
        random = numpy.random.default_rng(3)
        inputs = {i: DRAWN[d[0]](random, [int(n) for n in dims.split(",") if n.strip()]) for i, d, dims in given}
        inputs = {i: numpy.asarray(inputs[i]).astype(NUMPY[d]) for i, d, _ in given}
        t.agrees(model, inputs, outputs, "--graph", name, *reduced)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--models", type=pathlib.Path)
    options = parser.parse_args()
    jobs = [(run.__name__, run) for run in CASES] if not options.models else []
    for path in sorted(options.models.resolve().glob("*.nnc")) if options.models else []:
        jobs.append((path.stem, lambda t, path=path: round_trip(t, path)))
    print(f"1..{len(jobs)}")
    failed = 0
    for i, (name, run) in enumerate(jobs, 1):
        with tempfile.TemporaryDirectory() as folder:
            try:
                run(Tool(options.nnc.resolve(), pathlib.Path(folder)))
                print(f"ok {i} - {name}", flush=True)
            except (AssertionError, OSError) as error:
                failed += 1
                print("\n".join("# " + line for line in str(error).splitlines()[:12]))
                print(f"not ok {i} - {name}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
