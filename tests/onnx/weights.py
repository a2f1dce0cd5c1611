"""Which initialisers are params, and that what is computed of them stays in the text: they can be trained.

    weights.py --nnc NNC        reports as TAP
"""

import numpy

from harness import case, expect, main
from write import data, graph, model, node, tensor, value

DICE = numpy.random.default_rng(11)
X = DICE.normal(size=(4, 8)).astype("f4")
W = DICE.normal(size=(5, 8)).astype("f4")
GIVEN = value("x", [4, 8])


def build(nodes, weights, opset=17, kinds=(), x=GIVEN):
    content = graph(nodes, [x], [value("y", None)], [tensor(k, v) for k, v in weights.items()])
    key = "pkg.torch.export.graph_signature.InputSpec.kind"
    content += b"".join(data(13, data(1, name) + data(4, data(1, key) + data(2, kind))) for name, kind in dict(kinds).items())
    return model(content, opset=opset)


def one(number):
    return numpy.full([1], number, "f4")


def params(text):
    return [line.split()[1].rstrip(":") for line in text if line.startswith("param ")]


@case
def weights_behind_views_are_params_of_whatever_size(t):
    m = build([node("Transpose", ["w"], ["/t"], perm=[1, 0]), node("MatMul", ["x", "/t"], ["y"])], {"w": W})
    expect(t.text(m), "param w: f32[5, 8]", "y = x @ transpose(w, axes = [1, 0])")
    numpy.testing.assert_allclose(t.value(m, x=X), X @ W.T, 1e-5)
    nodes = [node("Unsqueeze", ["g", "axes"], ["/u"]), node("Expand", ["/u", "shape"], ["/e"]), node("Concat", ["/e", "x"], ["/c"], axis=0),
             node("Slice", ["/c", "begin", "end"], ["y"])]
    weights = {"g": W[0], "axes": numpy.array([0]), "shape": numpy.array([3, 8]), "begin": numpy.array([1]), "end": numpy.array([6])}
    expect(t.text(build(nodes, weights)), "param g: f32[8]", "c = concat(broadcast(reshape(g, shape = [1, 8]), shape = [3, 8]), x, axis = 0)",
           "y = slice(c, axes = [0], begin = [1], end = [6])")


@case
def a_table_that_scores_words_too_stays_one(t):
    nodes = [node("Gather", ["e", "x"], ["/h"]), node("Transpose", ["e"], ["/t"], perm=[1, 0]), node("MatMul", ["/h", "/t"], ["y"])]
    expect(t.text(build(nodes, {"e": W}, x=value("x", [3], 7))), "param e: f32[5, 8]", "y = gather(e, x) @ transpose(e, axes = [1, 0])")


@case
def formulas_of_weights_train_and_are_worked_out_for_inference(t):
    nodes = [node("Mul", ["v", "v"], ["/s"]), node("ReduceSum", ["/s", "axis"], ["/r"]), node("Sqrt", ["/r"], ["/n"]), node("Div", ["v", "/n"], ["/d"]),
             node("Mul", ["/d", "g"], ["/w"]), node("Transpose", ["/w"], ["/t"], perm=[1, 0]), node("MatMul", ["x", "/t"], ["y"])]
    g = DICE.normal(size=(5, 1)).astype("f4")
    m = build(nodes, {"v": W, "g": g, "axis": numpy.array([1])})
    expect(params(t.text(m)), "v", "g")
    numpy.testing.assert_allclose(t.value(m, x=X), X @ (W / numpy.linalg.norm(W, axis=1, keepdims=True) * g).T, 1e-4, 1e-6)
    t.run("import", "m.onnx", "-o", "dir", "--overwrite")
    t.run("compile", "dir/m.nnc", "-o", "out")
    text = "".join(p.read_text() for p in (t.folder / "out").glob("*.c"))
    assert "sqrt" not in text, text


@case
def quantised_weights_that_are_made_of_floats_stay_these(t):
    scale, zero = numpy.float32(0.05), numpy.int8(0)
    nodes = [node("QuantizeLinear", ["w", "scale", "zero"], ["/q"]), node("DequantizeLinear", ["/q", "scale", "zero"], ["/d"]),
             node("Transpose", ["/d"], ["/t"], perm=[1, 0]), node("MatMul", ["x", "/t"], ["y"])]
    text = t.text(build(nodes, {"w": W, "scale": scale, "zero": zero}))
    expect(params(text), "w")
    assert any("fake_quantize(w, scale = 0.05, " in line for line in text), text


@case
def integers_that_stand_for_weights_are_constants_with_their_scales(t):
    q, scale = DICE.integers(-100, 100, (5, 4096), "i1"), numpy.abs(W[:, 0])
    bias, all_scale = (W[:, 0] * 1000).astype("i4"), (scale * 0.05).astype("f4")
    nodes = [node("DequantizeLinear", ["q", "s", "z"], ["/w"], axis=0), node("DequantizeLinear", ["b", "t", "zb"], ["/b"], axis=0),
             node("Gemm", ["x", "/w", "/b"], ["y"], transB=1)]
    text = t.text(build(nodes, {"q": q, "s": scale, "z": numpy.zeros(5, "i1"), "b": bias, "t": all_scale, "zb": numpy.zeros(5, "i4")}, x=value("x", [4, 4096])))
    expect(params(text), "s")
    assert any(line.startswith("const b: f32[5] = ") for line in text), text


@case
def what_must_be_known_is_although_it_is_made_of_weights(t):
    nodes = [node("Mul", ["a", "a"], ["/fill"]), node("Pad", ["x", "pads", "/fill"], ["y"])]
    weights = {"a": numpy.float32(0.5), "pads": numpy.array([0, 1, 0, 1])}
    expect(t.text(build(nodes, weights)), "y = pad(x, before = [0, 1], after = [0, 1], value = 0.25)")


@case
def numbers_are_params_by_their_names(t):
    for name in ("gate", "fc.bias", "layers.0.alpha", "dense/BiasAdd/ReadVariableOp:0"):
        expect([len(params(t.text(build([node("Add", ["x", name], ["y"])], {name: one(0)}))))], 1)
    for name in ("/fc/Constant_output_0", "onnx::Mul_12", "val_13", "_val_1", "const_fold_opt__12", "Const__7:0", "layer.Constant_2", "f32_0.25", "c1", "12"):
        expect(t.text(build([node("Add", ["x", name], ["y"])], {name: one(0.25)})), "y = x + 0.25")


@case
def numbers_that_steps_and_bounds_are_read_as_stay_numbers(t):
    weights = {"low": numpy.float32(-1), "high": numpy.float32(2)}
    expect(t.text(build([node("Clip", ["x", "low", "high"], ["y"])], weights)), "y = clip(x, -1.0, 2.0)")
    expect(t.text(build([node("Pow", ["x", "exponent"], ["y"])], {"exponent": numpy.float32(3)})), "y = x ** 3.0")
    expect(t.text(build([node("QuantizeLinear", ["x", "x.scale"], ["y"])], {"x.scale": numpy.float32(0.5)})), "y = quantize(x, scale = 0.5, to = u8)")


@case
def a_bias_of_one_element_is_that_of_dense(t):
    nodes = [node("MatMul", ["x", "onnx::MatMul_7"], ["/h"]), node("Add", ["/h", "fc.bias"], ["y"])]
    expect(t.text(build(nodes, {"onnx::MatMul_7": W[:1].T.copy(), "fc.bias": one(0.5)})), "y = dense@fc(x, 1)")


@case
def the_file_says_which_are_parameters(t):
    kinds = {"c1": "PARAMETER", "mask": "BUFFER", "fc.weight": "PARAMETER"}
    weights = {"c1": one(0), "mask": W[0], "start": numpy.zeros((4, 5), "f4"), "val_3": W.T.copy(), "fc.scale": W[:, 1]}
    nodes = [node("Mul", ["x", "c1"], ["/a"]), node("Add", ["/a", "mask"], ["/b"]), node("MatMul", ["/b", "val_3"], ["/c"]),
             node("Add", ["/c", "start"], ["/d"]), node("Mul", ["/d", "fc.scale"], ["y"])]
    text = t.text(build(nodes, weights, kinds=kinds))
    expect(params(text), "c1", "val_3", "fc.scale")
    assert "const start: f32[4, 5] = 0.0" in text and any(line.startswith("const mask: f32[8] = [") for line in text), text


@case
def running_statistics_are_buffers_and_no_filter_is(t):
    vector = {f"bn.{k}": numpy.abs(W[:3, i]) for i, k in enumerate(("weight", "bias", "running_mean", "running_var"))}
    kinds = {k: "BUFFER" if "running" in k else "PARAMETER" for k in vector}
    blur = DICE.normal(size=(3, 3, 3, 3)).astype("f4")
    nodes = [node("BatchNormalization", ["x", *vector], ["/b"]), node("Conv", ["/b", "blur"], ["y"])]
    text = t.text(build(nodes, {**vector, "blur": blur}, kinds={**kinds, "blur": "BUFFER"}, x=value("x", [2, 3, 5, 5])))
    expect(text, "const blur: f32[3, 3, 3, 3]", "y = conv2d(batch_norm@bn(x), blur)")


NORM = {f"bn.{k}": numpy.abs(W[:3, i]) for i, k in enumerate(("weight", "bias", "running_mean", "running_var"))}


@case
def batch_norm_keeps_its_momentum(t):
    for momentum, text in ((0.9, ""), (0.99, ", momentum = 0.01"), (0.5, ", momentum = 0.5"), (1.0, ", momentum = 0.0"), (0.0, ", momentum = 1.0")):
        m = build([node("BatchNormalization", ["x", *NORM], ["y"], momentum=momentum)], NORM, x=value("x", [2, 3, 5]))
        expect(t.text(m), f"y = batch_norm@bn(x{text})")


@case
def batch_norm_that_trains_keeps_running_statistics(t):
    x = DICE.normal(size=(2, 3, 5)).astype("f4")
    n = node("BatchNormalization", ["x", *NORM], ["y", "m", "v"], momentum=0.8, epsilon=1e-3, training_mode=1)
    m = build([n], NORM, x=value("x", [2, 3, 5]))
    expect(t.text(m), "y = batch_norm@bn(x, eps = 0.001, training = true, momentum = 0.2)")
    shape = (1, 3, 1)
    mean, variance, gain, shift = (v.reshape(shape) for v in (x.mean((0, 2)), x.var((0, 2)), NORM["bn.weight"], NORM["bn.bias"]))
    numpy.testing.assert_allclose(t.value(m, x=x), (x - mean) / numpy.sqrt(variance + 1e-3) * gain + shift, 1e-4, 1e-5)
    more = model(graph([n], [value("x", [2, 3, 5])], [value("y", None), value("m", None)], [tensor(k, v) for k, v in NORM.items()]))
    assert not any("batch_norm" in line for line in t.text(more))  # what the model gives is as ONNX has it


@case
def channels_of_group_norm_behind_views_are_its_params(t):
    vector = {"n.weight": W[0, :6], "n.bias": W[1, :6], "rows": numpy.array([2, 2, -1]), "back": numpy.array([2, 6, 4, 4]), "axes": numpy.array([1, 2])}
    nodes = [node("Constant", [], ["/o"], value=numpy.ones(2, "f4")), node("Constant", [], ["/z"], value=numpy.zeros(2, "f4")),
             node("Reshape", ["x", "rows"], ["/r"]), node("InstanceNormalization", ["/r", "/o", "/z"], ["/n"]), node("Reshape", ["/n", "back"], ["/s"]),
             node("Unsqueeze", ["n.weight", "axes"], ["/g"]), node("Mul", ["/s", "/g"], ["/m"]), node("Unsqueeze", ["n.bias", "axes"], ["/b"]),
             node("Add", ["/m", "/b"], ["y"])]
    expect(t.text(build(nodes, vector, x=value("x", [2, 6, 4, 4]))), "y = group_norm@n(x, 2)")


@case
def an_imported_text_trains_all_of_it(t):
    nodes = [node("Transpose", ["fc.weight"], ["/t"], perm=[1, 0]), node("MatMul", ["x", "/t"], ["/h"]), node("Mul", ["/h", "gate"], ["y"])]
    t.write(build(nodes, {"fc.weight": W, "gate": one(0.5)}))
    t.run("import", "m.onnx", "-o", "dir", "--overwrite")
    text = (t.folder / "dir/m.nnc").read_text()
    head, body = text.rsplit("}", 1)[0].split(") -> (y) {")
    (t.folder / "t.nnc").write_text(f"{head}, want: f32[4, 5]) -> (y, loss) {{{body}    loss = mse(y, want)\n    minimize(loss, with = sgd(rate = 0.1))\n}}\n")
    numpy.savez(t.folder / "d.npz", x=X, want=numpy.zeros((4, 5), "f4"))
    t.run("train", "t.nnc", "--weights-from", "dir/m.safetensors", "--data", "d.npz", "--epochs", "1", "-o", "after.safetensors")
    t.run("params", "t.nnc", "--weights-from", "after.safetensors")
    before, after = ((t.folder / f).read_bytes() for f in ("dir/m.safetensors", "after.safetensors"))
    assert W.tobytes() in before and W.tobytes() not in after and one(0.5).tobytes() not in after[-200:], after


if __name__ == "__main__":
    main()
