"""What is said of a model: warnings, and errors with what to do about them.

    told.py --nnc NNC        reports as TAP
"""

import subprocess

import numpy

from harness import case, main
from write import function, graph, model, node, tensor, value

W = numpy.arange(6, dtype="f4").reshape(2, 3)
X = value("x", [1, 2])


@case
def scales_that_runtimes_read_otherwise(t):
    """Are told of the first node that has one, with aligned corners"""
    for scale, mode, told in ((1.7, "align_corners", True), (1.5, "align_corners", False), (1.7, "half_pixel", False)):
        resizes = [node("Resize", [x, "", "s"], [y], f"r{y}", mode="linear", coordinate_transformation_mode=mode) for x, y in ("xy", "yz")]
        t.write(model(graph(resizes, [value("x", [1, 1, 4, 4])], [value("z", None)], [tensor("s", numpy.array([1, 1, 2, scale], "f4"))])))
        done = subprocess.run([t.nnc, "import", "m.onnx"], capture_output=True, text=True, cwd=t.folder, timeout=60)
        assert done.returncode == 0 and done.stderr.count("warning") == told, done.stderr
        assert not told or "warning: node 0 Resize 'ry': with align_corners its scale makes 4 elements 6.8, as ONNX has it; ONNX Runtime and PyTorch go by 6," in done.stderr, done.stderr


@case
def graphs_saved_for_one_processor(t):
    t.write(model(graph([node("Conv", ["x", "w"], ["y"], domain="com.microsoft.nchwc")], [value("x", [1, 8, 4, 4])], [value("y", None)], [tensor("w", numpy.ones((8, 8, 1, 1), "f4"))]),
                  domains=["com.microsoft.nchwc"]))
    error = t.run("import", "m.onnx", status=1)
    assert "the op is not known; ONNX Runtime has saved the graph for one kind of processor (ORT_ENABLE_ALL); have it saved at ORT_ENABLE_EXTENDED" in error, error


@case
def a_default_that_is_given_as_an_input(t):
    t.write(model(graph([node("MatMul", ["x", "w"], ["y"])], [X, value("w", [2, 3])], [value("y", None)], [tensor("w", W)])))
    error = t.run("run", "m.onnx", "--target", "reference", "--input", "x=zeros", "--input", "w=zeros", status=2)
    assert "--input w=zeros: this is a param, whose value the model has, and no input; the model's: x" in error, error


@case
def numbers_behind_extents_are_named(t):
    """Of which --at-most can say how large they are, as repeat_interleave by an input makes them"""
    steps = [node("Split", ["r"], ["a", "b"], axis=0), node("Concat", ["one", "a", "four"], ["list"], axis=0), node("Equal", ["list", "minus"], ["e"]),
             node("Where", ["e", "ones", "list"], ["shape"]), node("Expand", ["x", "shape"], ["y"])]
    known = [tensor(n, numpy.array(v, "i8")) for n, v in (("one", [1]), ("four", [4]), ("minus", [-1, -1, -1]), ("ones", [1, 1, 1]))]
    t.write(model(graph(steps, [value("x", [1, 1, 4]), value("r", [2], 7)], [value("y", None)], known), opset=13))
    error = t.run("import", "m.onnx", status=1)
    assert "becomes a constant with -D r=[...]; --at-most a=N says how large it can be" in error, error
    t.run("import", "m.onnx", "--at-most", "a=5")


@case
def what_changes_its_size_says_what_to_do(t):
    masked = [node("NonZero", ["x"], ["at"]), node("Transpose", ["at"], ["turned"]), node("Less", ["at", "turned"], ["y"])]
    t.write(model(graph(masked, [value("x", [1, 3])], [value("y", None)])))
    error = t.run("import", "m.onnx", status=1)
    assert "each entry by itself; of a known size is what a mask leaves out by Where, or the first k entries of a TopK" in error, error
    body = graph([node("Concat", ["v", "v"], ["next"], axis=0), node("ReduceMax", ["v"], ["m"], keepdims=0), node("Less", ["m", "four"], ["on"])],
                 [value("i", [], 7), value("go", [], 9), value("v", None)], [value("on", [], 9), value("next", None)])
    t.write(model(graph([node("Loop", ["rounds", "", "x"], ["y"], body=body)], [X], [value("y", None)], [tensor("rounds", numpy.array(1 << 40, "i8")), tensor("four", numpy.array(4, "f4"))])))
    error = t.run("import", "m.onnx", status=1)
    assert "from round to round; it can be as large as it gets from the first round on" in error, error


@case
def nodes_of_functions_are_told_with_their_call(t):
    inner = function("inner", "own", ["a"], ["b"], [node("Nope", ["a"], ["b"])])
    outer = function("outer", "own", ["a"], ["b"], [node("inner", ["a"], ["b"], domain="own")])
    calls = [node("inner", ["x"], ["h"], "first", domain="own"), node("outer", ["x"], ["y"], domain="own")]
    t.write(model(graph(calls, [X], [value("h", None), value("y", None)]), functions=[inner, outer], domains=["own"]))
    error = t.run("import", "m.onnx", status=1)
    assert "the op is not known; in the function inner, which node 'first' calls\n" in error, error
    assert "the op is not known; in the function inner, which gives 'b'\n" in error, error


if __name__ == "__main__":
    main()
