"""Calls as functions of an exported file, and what is made of them when it is read again."""

import numpy

import proto
from exports import Tool as Exports
from exports import draw, initialisers, names, ops
from harness import case, main
from write import function, graph, model, node, tensor, value


class Tool(Exports):
    def functions(self):
        """Of the exported file, by domain and name."""
        found = proto.many((self.folder / "m.onnx").read_bytes(), 25)
        return {f"{proto.text(f, 10)}.{proto.text(f, 1)}": f for f in found}

    def again(self, *flags):
        """The text of the exported file."""
        return self.run("import", "m.onnx", *flags)


def expect(found, wanted):
    assert found == wanted, f"found {found}, not {wanted}"


def body_ops(f):
    return [proto.text(n, 4) for n in proto.many(f, 7)]


def listed(message, field):
    return [text.decode() for text in proto.many(message, field)]


def sets(message, field):
    return [(proto.text(o, 1), proto.one(o, 2, 0)) for o in proto.many(message, field)]


MLP = ["fn part(x, n) -> (y) { y = relu(dense@inner(x, n)) + x }", "graph g(x: f32[2, 4]) -> (y) {",
       "    h = part@a(x, 4)", "    y = part@b(h, 4) * 2.0", "}"]


@case
def equal_calls_share_a_function(t):
    g = t.export('use "nn"', *MLP)
    expect(ops(g), ["part", "part", "Mul"])
    calls = proto.many(g, 1)
    expect([(proto.text(c, 7), listed(c, 1), listed(c, 2)) for c in calls[:2]],
           [("local", ["x", "a.inner.weight", "a.inner.bias"], ["h"]), ("local", ["h", "b.inner.weight", "b.inner.bias"], ["part"])])
    f = t.functions()
    expect(list(f), ["local.part"])
    part = f["local.part"]
    expect((listed(part, 4), listed(part, 5), body_ops(part)), (["x", "inner.weight", "inner.bias"], ["y"], ["Gemm", "Relu", "Add"]))
    expect((sets(part, 9), sets((t.folder / "m.onnx").read_bytes(), 8)), ([("", 21)], [("", 21), ("local", 1)]))


@case
def values_are_those_of_the_text(t):
    t.export('use "nn"', *MLP)
    x, w = draw(2, 4), {k: proto.tensor(v) for k, v in initialisers(proto.one((t.folder / "m.onnx").read_bytes(), 7)).items()}
    want = x
    for label in "ab":
        want = numpy.maximum(want @ w[f"{label}.inner.weight"] + w[f"{label}.inner.bias"], 0) + want
    numpy.testing.assert_allclose(t.values([t.nnc], "m.onnx", {"x": x}, ["y"])[0], want * 2, rtol=1e-5, atol=1e-6)


@case
def flat_files_have_none(t):
    g = t.export('use "nn"', *MLP, flags=["--flat"])
    expect((ops(g), t.functions()), (["Gemm", "Relu", "Add", "Gemm", "Relu", "Add", "Mul"], {}))
    expect(sets((t.folder / "m.onnx").read_bytes(), 8), [("", 21)])


@case
def a_call_of_one_node_is_that(t):
    g = t.export('use "nn"', "fn plain(x) -> (y) { y = exp(x) }", "fn through(x) -> (y) { y = x }",
                 "graph g(x: f32[2, 3]) -> (y) { y = plain(through(flatten(plain(x)))) }")
    expect((ops(g), t.functions()), (["Exp", "Flatten", "Exp"], {}))


@case
def other_shapes_are_other_functions(t):
    text = ["fn rows(x) -> (y) { y = exp(reshape(x, shape = [-1])) }",
            "graph g(a: f32[2, 3], b: f32[3, 2], c: f32[4]) -> (x, y, z) {", "    x = rows(a)", "    y = rows(b)", "    z = rows(c)", "}"]
    g = t.export(*text)
    expect((ops(g), list(t.functions())), (["rows", "rows", "rows_2"], ["local.rows", "local.rows_2"]))
    t.same(text, {"a": draw(2, 3), "b": draw(3, 2), "c": draw(4)}, "x", "y", "z")


@case
def calls_of_the_library_say_what_they_are(t):
    text = ['use "nn"', "graph g(x: f32[1, 5, 8], m: f32[5, 5]) -> (y) { y = attention@att(x, 2, mask = m) }"]
    g = t.export(*text)
    call = proto.many(g, 1)[0]
    said = {proto.text(a, 1): proto.text(a, 4) for a in proto.many(call, 5)}
    expect((proto.text(call, 7), said), ("nnc", {"call": "attention(_, mask = _, heads = 2)"}))
    f = t.functions()
    expect(sorted(f), ["nnc.attention", "nnc.merge_heads", "nnc.scaled_dot_product", "nnc.split_heads"])
    expect(listed(f["nnc.attention"], 6), ["call"])
    expect(listed(f["nnc.attention"], 4)[:4], ["x", "mask", "query.weight", "query.bias"])
    t.same(text, {"x": draw(1, 5, 8), "m": draw(5, 5)}, "y")


@case
def calls_come_back(t):
    text = ['use "nn"', "fn block(x) -> (y) { y = x + attention@att(layer_norm@norm(x), 2) }",
            "graph g(x: f32[1, 5, 8]) -> (y, at, n) {", "    h = x", "    for i in 0..3 carry h { h = block@layer{i}(h) }",
            "    y = swish(h, 1.5)", "    (at, n) = nonzero(y > 0.1)", "}"]
    t.export(*text)
    again = t.again()
    for line in ("fn block(x) -> (y) {", "attention@att(", "heads = 2)", "block@layer{i}(", "swish(", "beta = 1.5)", ") = nonzero("):
        assert line in again, f"no {line} in {again}"
    t.same(text, {"x": draw(1, 5, 8)}, "y", "at", "n", drawn=True)


@case
def functions_end_where_the_model_says(t):
    """A block that repeats could begin at any of its statements."""
    t.export('use "nn"', "fn unit(x) -> (y) { y = relu(dense@b(tanh(dense@a(x, 4)), 4) + x) }", "graph g(x: f32[2, 4]) -> (y) {",
             "    y = unit@u2(unit@u1(unit@u0(relu(x))))", "}")
    again = t.again()
    assert "fn unit(x) -> (y) {" in again and "for i in 0..3" in again and "unit@u{i}(" in again, again


@case
def what_calls_hand_through(t):
    """Params, operands and constants among results are no outputs of the function."""
    text = ["fn words(x) -> (y, table, same, two) {", "    param table: f32[3, 4] = normal(seed = 1, std = 1.0)", "    same = x",
            "    two = f32(2)", "    y = exp(x @ table)", "}", "graph g(x: f32[2, 3]) -> (y, z) {",
            "    (h, table, same, two) = words@w(x)", "    y = h * two", "    z = same @ table", "}"]
    t.export(*text)
    expect(listed(t.functions()["local.words"], 5), ["y"])
    t.same(text, {"x": draw(2, 3)}, "y", "z")


@case
def one_value_twice(t):
    text = ["fn both(x) -> (a, b) {", "    a = exp(x) * 2.0", "    b = a", "}",
            "graph g(x: f32[2]) -> (y) {", "    (a, b) = both(x)", "    y = a + b", "}"]
    t.export(*text)
    t.same(text, {"x": draw(2)}, "y")


@case
def constants_in_functions(t):
    """Small ones are nodes; large ones are inputs, as no function has initialisers."""
    text = ["const SMALL: f32[4] = [1.0, 2.0, 3.0, 4.0]", "const LARGE: f32[2, 400] = 0.5",
            "fn use_all(x) -> (y) { y = x @ LARGE + concat(SMALL, LARGE[0, :396]) }", "graph g(x: f32[3, 2]) -> (y) { y = use_all(use_all(x)[:, :2]) }"]
    g = t.export(*text)
    f = t.functions()
    expect(len(f), 1)
    expect([len(listed(b, 4)) for b in f.values()], [2])
    assert "Constant" in body_ops(f["local.use_all"]) and len(initialisers(g)) >= 2
    t.same(text, {"x": draw(3, 2)}, "y")


@case
def loops_and_branches_in_functions(t):
    """Their bodies see what is around them in the function, and nothing else."""
    text = ["fn halve(x, k) -> (y) {", "    param w: f32[3] = 1.5",
            "    (a, i) = while (i < k) with (a = x, i = 0) max = 4 { h = a * w + 0.25 } next (a <- h, i <- i + 1)",
            "    y = case (k) { 1: a * 2.0 else: a * w * 2.0 }", "}",
            "graph g(x: f32[3], k: i32[]) -> (y) { y = halve@second(halve@first(x, k), k) }"]
    t.export(*text)
    expect(list(t.functions()), ["local.halve"])
    for k in (0, 1, 3):
        t.same(text, {"x": draw(3), "k": numpy.array(k, "i4")}, "y")


@case
def calls_in_loops(t):
    text = ["fn step(x, w) -> (y) { y = tanh(x * w) + 0.5 }", "graph g(x: f32[3]) -> (y) {", "    param w: f32[3] = 0.75",
            "    (y, i) = while (i < 3) with (y = x, i = 0) { h = step(y, w) } next (y <- h, i <- i + 1)", "}"]
    t.export(*text)
    expect(list(t.functions()), ["local.step"])
    t.same(text, {"x": draw(3)}, "y")


@case
def draws_in_functions(t):
    text = ['use "nn"', "fn noisy(x, key) -> (y) { y = dropout(x, 0.5, key) + random_normal(key, shape = [2, 3]) }",
            "graph g(x: f32[2, 3], k: i64[]) -> (y) { y = noisy(noisy(x, k), k + 1) }"]
    t.export(*text)
    assert {"local.noisy", "nnc.dropout", "nnc.Philox", "nnc.Gauss"} <= set(t.functions()), t.functions().keys()
    t.same(text, {"x": draw(2, 3), "k": numpy.array(7)}, "y")


@case
def an_own_function_called_as_one_of_ours(t):
    text = ["fn Philox(x) -> (y) { y = exp(x) + 1.0 }", "graph g(x: f32[4], k: i64[]) -> (y) { y = Philox(x) + random_uniform(k, shape = [4]) }"]
    t.export(*text)
    expect(sorted(t.functions()), ["local.Philox", "nnc.Philox"])
    t.same(text, {"x": draw(4), "k": numpy.array(3)}, "y")


@case
def weights_that_calls_share(t):
    """They are one tensor of the file, and one param of the text."""
    text = ['use "nn"', "fn tied(x, w) -> (y) { y = relu(x @ w) + x @ w }", "graph g(x: f32[2, 2]) -> (y) {",
            "    param w: f32[2, 2] = normal(seed = 1, std = 1.0)", "    y = tied(tied(x, w), w)", "}"]
    g = t.export(*text)
    expect(list(initialisers(g)), ["w"])
    expect(t.again().count("param "), 1)
    t.same(text, {"x": draw(2, 2)}, "y")


@case
def what_nobody_needs_of_functions(t):
    g = t.export("fn some(x) -> (a, b) {", "    param w: f32[2] = 2.0", "    param unused: f32[2] = 3.0", "    a = exp(x) * w",
                 "    b = a + 1.0", "    c = sin(x) * unused", "}", "fn idle(x) -> (y) { y = sin(x) * 2.0 }",
                 "graph g(x: f32[2]) -> (y) {", "    (y, b) = some@s(x)", "    z = idle(x)", "}")
    expect((ops(g), list(initialisers(g)), list(t.functions())), (["some"], ["s.w"], ["local.some"]))
    assert "Sin" not in body_ops(t.functions()["local.some"])


@case
def calls_nest_no_deeper_than_readers_go(t):
    depth = 20
    text = ["fn call0(x) -> (y) { y = exp(x) * 0.5 }"]
    text += [f"fn call{i}(x) -> (y) {{ y = call{i - 1}(x) * 0.5 + x }}" for i in range(1, depth)]
    text += [f"graph g(x: f32[2]) -> (y) {{ y = call{depth - 1}(x) }}"]
    t.export(*text)
    assert 1 < len(t.functions()) < depth
    t.same(text, {"x": draw(2)}, "y")


@case
def small_calls_inside_each_other_are_quick(t):
    """Each is one node, or two; nothing is written twice over on the way."""
    text = ["fn call0(x) -> (y) { y = exp(x) }"] + [f"fn call{i}(x) -> (y) {{ y = call{i - 1}(x) }}" for i in range(1, 60)]
    expect(ops(t.export(*text, "graph g(x: f32[2]) -> (y) { y = call59(x) }")), ["Exp"])


# Files of others

BODY = [node("Exp", ["a"], ["e"]), node("Add", ["e", "e"], ["b"])]


def said(call, operands=("x",), inputs=("a",), domain="nnc", initials=()):
    body = function("F", domain, inputs, ["b"], BODY, ["call"], opset=11)
    content = graph([node("F", operands, ["y"], domain=domain, call=call)], [value("x", [2, 3])], [value("y", [2, 3])], initials)
    return model(content, opset=11, functions=[body], domains=[domain])


@case
def calls_that_are_none_are_written_out(t):
    x = draw(2, 3)
    assert "softmax(x, axis = 1)" in "\n".join(t.text(said("softmax(_, axis = 1)")))
    for call in ("", "softmax", "softmax(", "softmax(_", "softmax(_)\ny = x", "softmax(_); z = 1", "softmax(_, axis = (1))", "nothing(_)",
                 "softmax(_, _)", 'softmax(_, "', "softmax(_, axis = {1})", "top_k(_, k = 1)", "soft max(_)", "exp(_)", "_(_)",
                 "softmax(_ # )"):
        text = "\n".join(t.text(said(call)))
        assert "exp(" in text and "softmax" not in text, f"{call}: {text}"
        numpy.testing.assert_allclose(t.value(said(call), x=x), 2 * numpy.exp(x), rtol=1e-5)
    text = "\n".join(t.text(said("softmax(_)", domain="others")))
    assert "softmax" not in text, text


@case
def calls_with_arguments_that_the_library_has_not(t):
    t.write(said("softmax(_, nothing = 1)"))
    error = t.run("import", "m.onnx", status=1)
    assert "node 0 nnc.F" in error and "nothing" in error, error


@case
def layers_in_functions_of_others(t):
    """A weight that only one call reads is that layer's; one that two read is a param of the graph."""
    body = function("Layer", "mine", ["a", "w", "c"], ["b"], [node("MatMul", ["a", "w"], ["m"]), node("Add", ["m", "c"], ["b"])])
    w = {"fc1.weight": draw(3, 3), "fc1.bias": draw(3), "fc2.weight": draw(3, 3, seed=2), "fc2.bias": draw(3, seed=3)}

    def file(second):
        nodes = [node("Layer", ["x", "fc1.weight", "fc1.bias"], ["h"], domain="mine"),
                 node("Layer", ["h", f"{second}.weight", f"{second}.bias"], ["y"], domain="mine")]
        content = graph(nodes, [value("x", [2, 3])], [value("y", [2, 3])], [tensor(k, v) for k, v in w.items()])
        return model(content, functions=[body], domains=["mine"])

    x = draw(2, 3, seed=5)
    for second, found in (("fc2", ["dense@fc1(", "dense@fc2("]), ("fc1", ["param fc1.weight"])):
        text = "\n".join(t.text(file(second)))
        assert all(word in text for word in found), text
        want = (x @ w["fc1.weight"] + w["fc1.bias"]) @ w[f"{second}.weight"] + w[f"{second}.bias"]
        numpy.testing.assert_allclose(t.value(file(second), x=x), want, rtol=1e-5)


@case
def operands_that_a_call_leaves_out(t):
    """They are left out of the function's nodes, too."""
    clip = function("Clipped", "mine", ["a", "low", "high"], ["b"], [node("Clip", ["a", "low", "high"], ["b"])])
    x = draw(2, 3)
    for operands in (["x", "", "h"], ["x", "h"]):
        content = graph([node("Clipped", operands, ["y"], domain="mine")], [value("x", [2, 3])], [value("y", [2, 3])], [tensor("h", numpy.float32(0.5))])
        want = numpy.minimum(x, 0.5) if operands[1] == "" else numpy.maximum(x, 0.5)
        numpy.testing.assert_array_equal(t.value(model(content, functions=[clip], domains=["mine"]), x=x), want)


@case
def functions_that_do_not_fit_their_calls(t):
    body = function("F", "mine", ["a"], ["b"], [node("Relu", ["a"], ["b"])])
    empty = function("F", "mine", ["a"], ["b"], [node("Relu", ["a"], ["c"])])
    for f, operands, results, why in ((body, ["x"], ["y", "z"], "more operands or results"), (body, ["x", "x"], ["y"], "more operands or results"),
                                      (empty, ["x"], ["y"], "no node of its function gives 'b'")):
        content = graph([node("F", operands, results, domain="mine")], [value("x", [2, 3])], [value("y", [2, 3])])
        t.write(model(content, functions=[f], domains=["mine"]))
        for command in (["import", "m.onnx"], ["import", "m.onnx", "-o", "out"], ["compile", "m.onnx", "-o", "out"], ["plan", "m.onnx"]):
            error = t.run(*command, status=1)
            assert why in error, error
        assert not list(t.folder.glob("out/*")), "something is left"


if __name__ == "__main__":
    main(Tool)
