"""What `nnc import` makes of small models: the text, weights, flags, messages; and that every verb takes .onnx.

    texts.py --nnc NNC        reports as TAP
"""

import numpy

from harness import case, expect, main
from write import external, function, graph, model, node, tensor, value

W = numpy.arange(6, dtype="f4").reshape(2, 3)
X = value("x", [1, 2])


@case
def a_dense_layer(t):
    m = model(graph([node("MatMul", ["x", "w"], ["h"]), node("Add", ["h", "b"], ["s"]), node("Softmax", ["s"], ["y"])],
                    [X], [value("y", [1, 3])], [tensor("w", W), tensor("b", numpy.ones(3, "f4"))]))
    expect(t.text(m), "param w: f32[2, 3]", "h = x @ w", "param b: f32[3]", "s = h + b", "y = softmax(s)")


@case
def nodes_come_in_any_order(t):
    """As converters append them, in bodies too, which read of later nodes outside; what is in order stays as it is"""
    then = graph([node("Add", ["late", "x"], ["s"])], [], [value("s", None)])
    other = graph([node("Neg", ["q"], ["r"]), node("Abs", ["x"], ["q"])], [], [value("r", None)])
    m = model(graph([node("Exp", ["b"], ["y"]), node("If", ["c"], ["b"], then_branch=then, else_branch=other), node("Sin", ["u"], ["late"]), node("Cos", ["x"], ["u"])],
                    [X, value("c", [], 9)], [value("y", [1, 2])]), opset=17)
    expect(t.text(m), "u = cos(x)", "late = sin(u)", "b = if (c) {", "    s = late + x", "    yield s", "} else {", "    q = abs(x)", "    r = neg(q)", "    yield r", "}", "y = exp(b)")
    m = model(graph([node("Exp", ["x"], ["b"]), node("Cos", ["x"], ["a"]), node("Add", ["a", "b"], ["y"])], [X], [value("y", [1, 2])]))
    expect(t.text(m), "b = exp(x)", "a = cos(x)", "y = a + b")


@case
def names_that_are_no_identifiers(t):
    m = model(graph([node("Relu", ["input:0"], ["/layer1/conv1/Relu_output_0"]), node("Exp", ["/layer1/conv1/Relu_output_0"], ["12"]),
                     node("Neg", ["/layer1/conv1/Relu_output_0"], ["for"])],
                    [value("input:0", [2])], [value("12", [2]), value("for", [2])]))
    expect(t.text(m), "layer1.conv1.Relu = relu(input.0)", "x12 = exp(layer1.conv1.Relu)", "x_for = neg(layer1.conv1.Relu)")


@case
def a_result_keeps_its_name_whatever_is_called_alike(t):
    m = model(graph([node("Relu", ["x"], ["#y"]), node("Identity", ["#y"], ["y"])], [X], [value("y", [1, 2])]))
    assert "-> (y) {" in (t.write(m), t.run("import", "m.onnx"))[1]


@case
def a_shape_gives_its_symbols_to_other_inputs(t):
    m = model(graph([node("MatMul", ["a", "b"], ["y"])], [value("a", ["n", "k"]), value("b", ["k", "m"])], [value("y", ["n", "m"])]))
    t.write(m)
    assert "b: f32[4, 3]" in t.run("import", "m.onnx", "--shape", "a=2x4", "-D", "m=3")
    assert "a: f32[2, 4]" in t.run("import", "m.onnx", "--shape", "b=4x3", "-D", "n=2")
    error = t.run("import", "m.onnx", "--shape", "a=2x4", "--shape", "b=5x3", status=1)
    assert "--shape b: its extent 0 is called k, which another flag or a file makes 4" in error, error


@case
def an_input_without_a_shape(t):
    t.write(model(graph([node("Neg", ["x"], ["y"])], [value("x", None)], [value("y", None)])))
    for flag, shape in (("x=scalar", "f32[]"), ("x=2x3", "f32[2, 3]")):
        assert f"x: {shape}" in t.run("import", "m.onnx", "--shape", flag)
    numpy.save(t.folder / "x.npy", numpy.float32([[1, 2, 3], [4, 5, 6]]))
    for flag in ("x.npy", "x=x.npy"):
        assert "y: f32[2, 3] = -1 -2" in t.run("run", "m.onnx", "--target", "reference", "--input", flag)
    assert "--shape wants extents such as 1x3x224x224, not 2xscalar" in t.run("import", "m.onnx", "--shape", "x=2xscalar", status=1)


@case
def what_shapes_depend_on_is_named(t):
    """The input that a flag can give, not what is computed of it."""
    m = model(graph([node("Neg", ["k"], ["minus"]), node("Mul", ["two", "minus"], ["ends"]), node("Reshape", ["x", "ends"], ["y"])],
                    [value("x", [1, "n"]), value("k", [2], 7)], [value("y", None)], [tensor("two", numpy.int64([2]))]))
    t.write(m)
    error = t.run("import", "m.onnx", "-D", "n=8", status=1)
    assert "'ends' is known only when running" in error and "becomes a constant with -D k=[...]" in error, error
    assert "shape = [2, 4]" in t.run("import", "m.onnx", "-D", "k=[-1,-2]", "--shape", "x=1x8")


@case
def an_image_is_no_constant(t):
    """Nobody would write it down, as he would the ends of a slice."""
    m = model(graph([node("ReduceMax", ["x"], ["most"], keepdims=0), node("Cast", ["most"], ["n"], to=7),
                     node("Unsqueeze", ["n", "zero"], ["size"]), node("Expand", ["one", "size"], ["y"])],
                    [value("x", [1, 3, 8, 8])], [value("y", ["k"])],
                    [tensor("zero", numpy.array([0])), tensor("one", numpy.ones(1, "f4"))]))
    t.write(m)
    error = t.run("compile", "m.onnx", "-o", "out", status=1)
    assert "it is computed of 'x'; --at-most size=N says how large it can be" in error and "-D" not in error, error


@case
def names_that_are_identifiers_are_kept(t):
    """Those of inputs and results, whatever others before them would become."""
    m = model(graph([node("Add", ["a/b", "a.b"], ["y:0"]), node("Sub", ["y:0", "a:b"], ["y.0"])],
                    [value(n, [2]) for n in ("a/b", "a.b", "a:b")], [value("y.0", [2])]))
    expect(t.text(m), "y.0_2 = a.b_2 + a.b", "y.0 = y.0_2 - a.b_3")


@case
def results_whose_names_values_begin_with(t):
    """They are not those: a value keeps a name for a result that had to be made of the result's own."""
    m = model(graph([node("Relu", ["x"], ["y_raw"]), node("Identity", ["y_raw"], ["y"]), node("Identity", ["xx"], ["x_2"])],
                    [X, value("xx", [1, 2])], [value("y", [1, 2]), value("x_2", [1, 2]), value("y_raw", [1, 2])]))
    expect(t.text(m), "y_raw = relu(x)", "y = y_raw", "x_2 = xx")


@case
def results_that_are_constants(t):
    """They keep their names; a constant that has the same elements is a copy of it."""
    m = model(graph([node("Shape", ["x"], ["extents"]), node("Shape", ["x"], ["again"]), node("Relu", ["x"], ["y"])],
                    [X], [value("extents", [2], 7), value("y", [1, 2]), value("again", [2], 7)]))
    expect(t.text(m), "y = relu(x)", "const extents: i64[2] = [1, 2]", "again = extents")


@case
def what_onnx_runtime_has_fused(t):
    """Layers stay layers; its LayerNormalization stands in files of any opset, batches may stand behind rows."""
    def own(op, operands, weights, opset=14, domain="com.microsoft", shape=(1, 2), **row):
        return t.text(model(graph([node(op, ["x", *operands], ["y"], domain=domain, **row)], [value("x", list(shape))], [value("y", None)],
                                  [tensor(name, array) for name, array in weights.items()]), opset=opset, domains=["com.microsoft"]))
    row, kernel = numpy.ones(2, "f4"), numpy.ones((3, 2, 1, 1), "f4")
    expect(own("LayerNormalization", ["n.g", "n.b"], {"n.g": row, "n.b": row}, domain=""), "y = layer_norm@n(x)")
    expect(own("FusedGemm", ["a.w", "a.b"], {"a.w": W, "a.b": W[0]}, activation="Elu", activation_alpha=0.5), "y = elu(dense@a(x, 3), 0.5)")
    expect(own("FusedConv", ["c.w", "c.b"], {"c.w": kernel, "c.b": W[0]}, shape=(1, 2, 4, 4), activation="HardSigmoid", activation_params=[0.25, 0.5]),
           "y = clip(conv@c(x, 3, 1) * 0.25 + 0.5, 0.0, 1.0)")
    x, z = (numpy.arange(n, dtype="f4") for n in (24, 40))
    m = model(graph([node("FusedMatMul", ["x", "z"], ["y"], domain="com.microsoft", transBatchA=1, transBatchB=1, transB=1)],
                    [value("x", [3, 2, 4]), value("z", [5, 2, 4])], [value("y", None)]), domains=["com.microsoft"])
    numpy.testing.assert_array_equal(t.value(m, x=x.reshape(3, 2, 4), z=z.reshape(5, 2, 4)), numpy.einsum("ibk,jbk->bij", x.reshape(3, 2, 4), z.reshape(5, 2, 4)))


@case
def a_text_that_was_changed_stays(t):
    m = model(graph([node("Relu", ["x"], ["y"])], [value("x", [2])], [value("y", [2])]))
    t.write(m)
    for _ in range(2):
        t.run("import", "m.onnx", "-o", "dir")
    text = t.folder / "dir" / "m.nnc"
    changed = text.read_text().replace("relu(x)", "relu(x) + 1")
    text.write_text(changed)
    error = t.run("import", "m.onnx", "-o", "dir", status=1)
    assert "dir/m.nnc: error: another text is there already" in error, error
    assert text.read_text() == changed and {path.name for path in text.parent.iterdir()} == {"m.nnc"}
    t.run("import", "m.onnx", "-o", "dir", "--overwrite")
    assert "relu(x) + 1" not in text.read_text()


@case
def weights_that_were_trained_stay(t):
    m = lambda w: model(graph([node("Mul", ["x", "w"], ["y"])], [value("x", [2])], [value("y", [2])], [tensor("w", numpy.float32(w))]))
    t.write(m([1, 2]))
    for _ in range(2):
        t.run("import", "m.onnx", "-o", "dir")
    weights = t.folder / "dir" / "m.safetensors"
    before = weights.read_bytes()
    t.write(m([1, 3]))
    error = t.run("import", "m.onnx", "-o", "dir", status=1)
    assert "dir/m.safetensors: error: other weights are there already, such as w" in error and weights.read_bytes() == before, error
    t.run("import", "m.onnx", "-o", "dir", "--overwrite")
    assert weights.read_bytes() != before


@case
def powers_of_integers_are_cut_off(t):
    """As conversions are; powers that are whole are not one less, by whatever pow there is."""
    x, y = numpy.array([2, 3, 4, 7, -3]), numpy.array([2.75, 1.5, 0.5, 2.0, 3.0], "f4")
    for kind, exponent in ((1, y), (7, y.astype("i8"))):
        m = model(graph([node("Pow", ["x", "y"], ["z"])], [value("x", [5], 7), value("y", [5], kind)], [value("z", [5], 7)]), opset=13)
        numpy.testing.assert_array_equal(t.value(m, "z", x=x, y=exponent), numpy.trunc(numpy.power(x.astype("f8"), exponent)))


@case
def what_only_the_next_statement_reads_stands_in_it(t):
    m = model(graph([node("Add", ["x", "x"], ["/a"]), node("Relu", ["/a"], ["/b"]), node("Mul", ["/b", "x"], ["/c"]),
                     node("Exp", ["/c"], ["kept"]), node("Neg", ["kept"], ["/d"]), node("Mul", ["/d", "/d"], ["y"])], [X], [value("y", None)]))
    expect(t.text(m), "kept = exp(relu(x + x) * x)", "d = neg(kept)", "y = d * d")


@case
def arithmetic_on_shapes_disappears(t):
    one = numpy.array([1], "i8")
    m = model(graph([node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["n"], axis=0),
                     node("Mul", ["n", "two"], ["twice"]), node("Concat", ["twice", "rest"], ["shape"], axis=0),
                     node("Reshape", ["x", "shape"], ["y"])],
                    [value("x", [4, 6])], [value("y", [8, 3])],
                    [tensor("zero", one * 0), tensor("two", one * 2), tensor("rest", -one)]))
    expect(t.text(m), "y = reshape(x, shape = [8, 3])")


@case
def batch_norm_gelu_and_layer_norm(t):
    m = model(graph([node("LayerNormalization", ["x", "g", "b"], ["n"]), node("Gelu", ["n"], ["y"])],
                    [X], [value("y", [1, 2])], [tensor("g", W[0, :2]), tensor("b", W[1, :2])]), opset=20)
    expect(t.text(m), "n = layer_norm@n(x)", "y = gelu(n)")


@case
def weights_of_one_node_are_those_of_a_layer(t):
    w, b, x = (numpy.random.default_rng(i).normal(size=s).astype("f4") for i, s in enumerate([(2, 3, 3, 3), (2,), (1, 3, 5, 5)]))
    bn = [tensor(f"bn1_{k}", numpy.array(v, "f4")) for k, v in (("gamma", [1, 2]), ("beta", [3, 4]), ("mean", [0, 1]), ("var", [1, 4]))]
    m = model(graph([node("Conv", ["x", "conv1.weight", "conv1.bias"], ["h"], pads=[1, 1, 1, 1]),
                     node("BatchNormalization", ["h", "bn1_gamma", "bn1_beta", "bn1_mean", "bn1_var"], ["n"], epsilon=1e-3),
                     node("Gemm", ["f", "fc.w", "fc.b"], ["g"])],
                    [value("x", [1, 3, 5, 5]), value("f", [1, 2])], [value("n", None), value("g", None)],
                    [tensor("conv1.weight", w), tensor("conv1.bias", b), tensor("fc.w", W), tensor("fc.b", W[0])] + bn))
    expect(t.text(m), "h = conv@conv1(x, 2, 3, pad = 1)", "n = batch_norm@bn1(h, eps = 0.001)", "g = dense@fc(f, 3)")
    f = numpy.array([[2, 5]], "f4")
    numpy.testing.assert_allclose(t.value(m, "g", x=x, f=f), f @ W + W[0], 1e-6)
    got = t.value(m, "n", x=x, f=f)
    padded = numpy.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    at = sum(padded[0, :, i : i + 5, j : j + 5].T @ w[:, :, i, j].T for i in range(3) for j in range(3)).T + b[:, None, None]
    want = (at - numpy.array([0, 1])[:, None, None]) / numpy.sqrt(numpy.array([1, 4]) + 1e-3)[:, None, None]
    numpy.testing.assert_allclose(got[0], want * numpy.array([1, 2])[:, None, None] + numpy.array([3, 4])[:, None, None], 1e-3, 1e-4)
    t.write(m)
    t.run("import", "m.onnx", "-o", "dir")
    t.run("run", "dir/m.nnc", "--target", "reference", "--input", "x=x.npy", "--input", "f=f.npy", "--output", "n=again.npy")
    numpy.testing.assert_array_equal(numpy.load(t.folder / "again.npy"), got)


@case
def a_weight_that_two_nodes_read_is_one_param(t):
    m = model(graph([node("Gemm", ["x", "w", "b"], ["h"]), node("Gemm", ["x", "w", "b"], ["y"])], [X], [value("y", None), value("h", None)],
                    [tensor("w", W), tensor("b", W[0])]))
    expect(t.text(m), "param w: f32[2, 3]", "param b: f32[3]", "h = x @ w + b", "y = x @ w + b")


@case
def an_initialiser_that_is_an_input(t):
    m = model(graph([node("Add", ["x", "w"], ["y"])], [value("x", [2, 3]), value("w", [2, 3])], [value("y", [2, 3])], [tensor("w", W)]))
    expect(t.text(m), "param w: f32[2, 3]", "y = x + w")


@case
def symbols_by_name_by_position_and_by_shape(t):
    m = model(graph([node("Relu", ["x"], ["y"])], [value("x", ["batch", 3, None or "k"])], [value("y", None)]))
    t.write(m)
    for flags in (["-D", "batch=2", "-D", "k=5"], ["-D", "x.0=2", "-D", "x.2=5"], ["--shape", "x=2x3x5"]):
        assert "x: f32[2, 3, 5]" in t.run("import", "m.onnx", *flags)
    error = t.run("import", "m.onnx", "-D", "k=1", status=1)
    assert "input 'x': its extent 0 is called batch; give it with -D batch=N" in error, error
    t.text(m, "--shape", "x=2x3x5", "-D", "k=5")
    error = t.run("import", "m.onnx", "--shape", "x=2x3x5", "-D", "k=6", status=1)
    assert "its extent 2 is called k, which another flag or a file makes 6" in error, error
    error = t.run("import", "m.onnx", "--shape", "x=2x4x5", status=1)
    assert "--shape x=2x4x5: its extent 1 is 3" in error, error
    error = t.run("import", "m.onnx", "--shape", "x=2x3x5", "-D", "n=1", status=1)
    assert "-D n: no input has an open extent of this name" in error, error
    error = t.run("import", "m.onnx", "--shape", "x=2x3x5", "--shape", "X=7", status=1)
    assert "--shape X=7: no input has this name; the input is 'x'" in error, error


@case
def negative_extents_are_open(t):
    t.write(model(graph([node("Relu", ["x"], ["y"])], [value("x", [-1, 3])], [value("y", None)])))
    for flags in (["--shape", "x=2x3"], ["-D", "x.0=2"]):
        assert "x: f32[2, 3]" in t.run("import", "m.onnx", *flags)
    assert "its extent 0 is open; give it with -D x.0=N" in t.run("import", "m.onnx", status=1)


@case
def flags_name_inputs_as_the_file_or_the_text(t):
    t.write(model(graph([node("Relu", ["x:0"], ["y"])], [value("x:0", [-1, 3])], [value("y", None)])))
    for flags in (["--shape", "x:0=2x3"], ["--shape", "x.0=2x3"], ["-D", "x:0.0=2"], ["-D", "x.0.0=2"]):
        assert "x.0: f32[2, 3]" in t.run("import", "m.onnx", *flags)
    for shape in ("2x3x", "x2x3", "2xx3", "2x3y"):
        assert "--shape wants extents" in t.run("import", "m.onnx", "--shape", f"x:0={shape}", status=1)


@case
def an_extent_that_is_called_as_an_input(t):
    """-D of a number is the extent, of a list the input; of a number that is an input both"""
    t.write(model(graph([node("Add", ["x", "z"], ["y"])], [value("x", ["x"]), value("z", ["x"])], [value("y", None)])))
    assert "x: f32[2], z: f32[2]" in t.run("import", "m.onnx", "-D", "x=2")
    assert "(z: f32[2])" in t.run("import", "m.onnx", "-D", "x=[1,2]", "--shape", "z=2")
    t.write(model(graph([node("Add", ["x", "z"], ["y"])], [value("x", []), value("z", ["x"])], [value("y", None)])))
    assert "(z: f32[2])" in t.run("import", "m.onnx", "-D", "x=2")


@case
def elements_lie_in_the_folder_however_that_is_said(t):
    (t.folder / "sub").mkdir()
    (t.folder / "w.bin").write_bytes(numpy.array([1, 2], "f4").tobytes())
    m = model(graph([node("Add", ["x", "w"], ["y"])], [value("x", [2])], [value("y", None)], [external("w", [2], "./sub/../w.bin")]))
    numpy.testing.assert_array_equal(t.value(m, x=numpy.zeros(2, "f4")), [1, 2])


@case
def open_extents_are_those_of_files(t):
    """Of the input's own file, and of another's where both have one name; a flag goes before."""
    t.write(model(graph([node("MatMul", ["a:0", "b:0"], ["y:0"])], [value("a:0", ["n", "k"]), value("b:0", ["k", "m"])], [value("y:0", None)])))
    a, b = (numpy.arange(n, dtype="f4").reshape(shape) for n, shape in ((6, (2, 3)), (12, (3, 4))))
    numpy.save(t.folder / "a.npy", a)
    numpy.save(t.folder / "b.npy", b)
    numpy.savez(t.folder / "ab.npz", **{"a:0": a, "b:0": b})
    run = ("run", "m.onnx", "--target", "reference", "--output", "y:0=y.npy")
    for words in (("a:0=a.npy", "b:0=b.npy"), ("a.0=a.npy", "b.0=b.npy"), ("a:0=ab.npz", "b:0=ab.npz"), ("a:0=ab.npz:a:0", "b.0=ab.npz:b:0")):
        assert "y.0: f32[2, 4]" in t.run(*run, *(x for word in words for x in ("--input", word)))
        numpy.testing.assert_array_equal(numpy.load(t.folder / "y.npy"), a @ b)
    run = (*run, "--input", "b:0=zeros")
    assert "y.0: f32[2, 5] = 0 0" in t.run(*run, "--input", "a:0=a.npy", "-D", "b:0.1=5")
    error = t.run(*run, "--input", "a:0=a.npy", status=1)
    assert "input 'b:0': its extent 1 is called m" in error, error
    error = t.run(*run, "--input", "a:0=a.npy", "-D", "b:0.1=5", "-D", "n=3", status=1)
    assert "a.npy: error: input a.0 is f32[3, 3], the file holds f32[2, 3]" in error, error
    error = t.run(*run, "--input", "a:0=nowhere.npy", status=1)
    assert "nowhere.npy: error: cannot open" in error, error


@case
def shapes_of_inputs_that_are_weights_or_none(t):
    two = model(graph([node("Add", ["x", "z"], ["a"]), node("Add", ["a", "w"], ["y"])], [value("x", ["n"]), value("z", ["n"]), value("w", [1])], [value("y", None)],
                      [tensor("w", numpy.ones(1, "f4"))]))
    t.write(two)
    for flag in ("w=1", "y=3", "x", "=3", "xx=3"):
        error = t.run("import", "m.onnx", "--shape", "x=3", "--shape", flag, status=1)
        assert f"--shape {flag}: no input has this name\n" in error, error
    assert "x: f32[3], z: f32[3]" in t.run("import", "m.onnx", "--shape", "z=3")


@case
def an_input_becomes_a_constant(t):
    m = model(graph([node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)], [value("x", [2, 3]), value("axes", [1], 7)], [value("y", None)]))
    t.write(m)
    error = t.run("import", "m.onnx", status=1)
    assert "'axes' is known only when running" in error and "-D axes=[...]" in error, error
    expect(t.text(m, "-D", "axes=[1]"), "y = reduce_sum(x, axes = [1])")


@case
def all_that_is_not_supported_is_listed(t):
    m = model(graph([node("Relu", ["x"], ["a"]), node("Frobnicate", ["a"], ["b"], name="first"), node("Exp", ["b"], ["c"]),
                     node("StringNormalizer", ["c"], ["d"], name="second"), node("Gadget", ["d"], ["y"], domain="com.example")],
                    [X], [value("y", None)]), domains=["com.example"])
    t.write(m)
    lines = t.run("import", "m.onnx", status=1).splitlines()
    assert lines[0] == "m.onnx: error: 3 of 5 nodes are not supported", lines
    expect(lines[1:], "note: node 1 Frobnicate 'first', opset 17: the op is not known",
           "note: node 3 StringNormalizer 'second', opset 17: the op is not known",
           "note: node 4 com.example.Gadget, opset 1: the op is not known")


@case
def nodes_that_misfit_are_all_listed(t):
    """Those whose statements have types or shapes that do not go together, too, also in bodies"""
    branch = lambda *nodes: graph(list(nodes), [], [value("b", None)])
    m = model(graph([node("Relu", ["x"], ["h"]), node("MatMul", ["h", "h"], ["m"], name="/mm"), node("Nope", ["x"], ["n"]), node("Add", ["x", "i"], ["a"]), node("Neg", ["a"], ["k"]),
                     node("If", ["c"], ["y"], then_branch=branch(node("Add", ["x", "i"], ["b"])), else_branch=branch(node("None", ["x"], ["b"])))],
                    [value("x", [2, 3]), value("i", [3], 7), value("c", [], 9)], [value("y", None)]))
    t.write(m)
    expect(t.run("import", "m.onnx", status=1).splitlines(),
           "m.onnx: error: 5 of 8 nodes are not supported", "note: node 1 MatMul '/mm', opset 17: matmul: inner extents differ: h is f32[2, 3], h is f32[2, 3]",
           "note: node 2 Nope, opset 17: the op is not known", "note: node 3 Add, opset 17: add: dtypes differ (cast one): x is f32[2, 3], i is i64[3]",
           "note: node 5 Add, opset 17: add: dtypes differ (cast one): x is f32[2, 3], i is i64[3]", "note: node 6 None, opset 17: the op is not known")


@case
def every_verb_takes_onnx(t):
    m = model(graph([node("MatMul", ["x", "w"], ["h"]), node("Relu", ["h"], ["y"])], [value("x", ["n", 2])], [value("y", None)], [tensor("w", W)]))
    t.write(m)
    flags = ["m.onnx", "-D", "n=4"]
    assert "x: f32[4, 2]" in t.run("opt", "--passes=", *flags)
    assert "digraph" in t.run("graph", *flags)
    assert "in the model" in t.run("params", *flags)
    t.run("bench", *flags, "--seconds", "0", "--cc", "gcc -O1")
    t.run("tune", *flags, "--target", "generic", "--time-limit", "1", "--milliseconds", "1", "--cc", "gcc -O1")
    assert (t.folder / "m.generic.tune").exists()
    (t.folder / "m.generic.tune").unlink()
    t.run("plan", *flags)
    t.run("compile", *flags, "-o", "out")
    assert (t.folder / "out" / "g.c").exists()
    assert "agrees" in t.run("run", *flags, "--input", "random:1", "--check", "--cc", "gcc -O1")


@case
def import_writes_text_and_weights(t):
    big = numpy.arange(100, dtype="f4").reshape(2, 50)
    m = model(graph([node("MatMul", ["x", "w"], ["y"])], [X], [value("y", None)], [tensor("w", big)]), opset=18)
    t.write(m)
    t.run("import", "m.onnx", "-o", "dir")
    assert {p.name for p in (t.folder / "dir").iterdir()} == {"m.nnc", "m.safetensors"}
    numpy.save(t.folder / "x.npy", numpy.ones((1, 2), "f4"))
    t.run("run", "dir/m.nnc", "--target", "reference", "--input", "x.npy", "--output", "out.npy")
    numpy.testing.assert_array_equal(numpy.load(t.folder / "out.npy"), big.sum(0, keepdims=True))


@case
def weights_in_another_file(t):
    (t.folder / "w.bin").write_bytes(b"junk" + W.tobytes())
    m = model(graph([node("Add", ["x", "w"], ["y"])], [value("x", [2, 3])], [value("y", None)],
                    [external("w", [2, 3], "w.bin", 4, 24)]))
    numpy.testing.assert_array_equal(t.value(m, x=W), 2 * W)


@case
def functions_of_the_model_are_written_out(t):
    twice = function("Twice", "mine", ["a"], ["b"], [node("LeakyRelu", ["a"], ["h"], alpha=("ref", "slope")), node("Add", ["h", "h"], ["b"])], ["slope"])
    m = model(graph([node("Twice", ["x"], ["y"], domain="mine", slope=0.5)], [X], [value("y", None)]), functions=[twice], domains=["mine"])
    numpy.testing.assert_array_equal(t.value(m, x=numpy.array([[-2, 3]], "f4")), [[-2, 6]])


@case
def branches_and_loops(t):
    then = graph([node("Exp", ["x"], ["p"])], [], [value("p", None)], name="then")
    other = graph([node("Neg", ["x"], ["q"])], [], [value("q", None)], name="else")
    choice = node("If", ["c"], ["h"], then_branch=then, else_branch=other)
    body = graph([node("Add", ["v", "x"], ["w"]), node("Identity", ["go"], ["on"])],
                 [value("i", [], 7), value("go", [], 9), value("v", [2])], [value("on", [], 9), value("w", [2])], name="body")
    loop = node("Loop", ["n", "", "h"], ["y"], body=body)
    m = model(graph([choice, loop], [value("x", [2]), value("c", [], 9), value("n", [], 7)], [value("y", None)]))
    lines = t.text(m)
    assert any(line.startswith("h = if (c) {") for line in lines) and any(" = while (" in line for line in lines), lines
    x = numpy.array([1, 2], "f4")
    numpy.testing.assert_array_equal(t.value(m, x=x, c=numpy.array(False), n=numpy.array(3, "i8")), 2 * x)


@case
def a_condition_that_is_known_leaves_one_branch(t):
    then = graph([node("Exp", ["x"], ["p"])], [], [value("p", None)], name="then")
    other = graph([node("Frobnicate", ["x"], ["q"])], [], [value("q", None)], name="else")
    m = model(graph([node("If", ["c"], ["y"], then_branch=then, else_branch=other)], [value("x", [2])], [value("y", None)],
                    [tensor("c", numpy.array(True))]))
    expect(t.text(m), "y = exp(x)")


if __name__ == "__main__":
    main()
