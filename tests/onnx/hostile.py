"""Files that are made to break the reader: an error in under a second, in bounded memory, never a crash.

    hostile.py --nnc NNC [--count N] [--first SEED] [--all]     reports as TAP

By hand what could hurt, then N copies of valid models damaged at random: a seed always damages in the same way.
"""

import argparse
import os
import pathlib
import random
import resource
import subprocess
import tempfile
import time

import numpy

import proto
from write import attribute, coded, data, external, function, graph, model, node, number, tensor, value, varint

MEMORY = 2 << 30
SECONDS = 5  # on a machine that is busy; a second otherwise
W = numpy.arange(6, dtype="f4").reshape(2, 3)
X, Y = value("x", [2, 3]), value("y", None)


def simple(initializers=(), nodes=(node("Relu", ["x"], ["y"]),), inputs=(X,), outputs=(Y,), **rest):
    return model(graph(list(nodes), list(inputs), list(outputs), list(initializers)), **rest)


# Two nodes that ask for one of a set of values, of which there is one set, and three leaves
FOREST = {"nodes_featureids": [0, 0], "nodes_truenodeids": [1, 0], "nodes_falsenodeids": [2, 1], "nodes_trueleafs": [0, 1],
          "nodes_falseleafs": [1, 1], "nodes_splits": numpy.zeros(2, "f4"), "nodes_modes": numpy.array([6, 6], "u1"), "tree_roots": [0],
          "leaf_targetids": [0, 0, 0], "leaf_weights": numpy.ones(3, "f4"), "membership_values": numpy.array([1, 2, numpy.nan], "f4"), "n_targets": 1}


def nested(depth):
    """A branch in a branch in a branch"""
    content = graph([node("Relu", ["x"], ["y"])], [], [Y])
    for _ in range(depth):
        content = graph([node("If", ["c"], ["y"], then_branch=content, else_branch=graph([node("Relu", ["x"], ["y"])], [], [Y]))], [], [Y])
    return content


def deep(levels):
    """Messages in messages, in the field of a sequence's element type"""
    out = b""
    for _ in range(levels):
        out = data(4, data(1, out))
        if len(out) > 1 << 20:
            break
    return out


def calls_itself():
    again = function("F", "mine", ["a"], ["b"], [node("F", ["a"], ["b"], domain="mine")])
    return simple(nodes=[node("F", ["x"], ["y"], domain="mine")], functions=[again], domains=["mine"])


def nested_in(op, depth):
    """The body of a loop in that of a loop, and so on"""
    ins, outs = [value("i", [], 7), value("g", [], 9), value("v", None)], [value("g", None), value("w", None)]
    content = graph([node("Relu", ["v"], ["w"])], ins, outs)
    for _ in range(depth):
        content = graph([node(op, ["i", "g", "v"], ["w"], body=content)], ins, outs)
    return content


def calls_through_body():
    then = graph([node("F", ["a"], ["p"], domain="mine")], [], [value("p", None)])
    again = function("F", "mine", ["a"], ["b"], [node("ReduceMax", ["a"], ["m"], keepdims=0), node("Cast", ["m"], ["c"], to=9),
                                                 node("If", ["c"], ["b"], then_branch=then, else_branch=then)])
    return simple(nodes=[node("F", ["x"], ["y"], domain="mine")], functions=[again], domains=["mine"])


def calls_each_other():
    pair = [function(a, "mine", ["a"], ["b"], [node(b, ["a"], ["b"], domain="mine")]) for a, b in ("FG", "GF")]
    return simple(nodes=[node("F", ["x"], ["y"], domain="mine")], functions=pair, domains=["mine"])


def branches(then, otherwise):
    return simple(nodes=[node("If", ["c"], ["y"], then_branch=then, else_branch=otherwise)], inputs=[X, value("c", [], 9)])


NOTHING = graph([node("Constant", [], ["q"], value=numpy.zeros((0, 3), "f4"))], [], [value("q", None)])
A_LIST = graph([node("SequenceConstruct", ["x"], ["s"])], [], [value("s", None)])


def rounds(nodes, goes_on, weights=()):
    """A loop whose body says of the next round what is called so"""
    body = graph(nodes, [value("i", [], 7), value("g", [], 9), value("v", None)], [value(goes_on, None), value("w", None)])
    return simple(weights, [node("Loop", ["n", "c", "x"], ["y"], body=body)], inputs=[X] + [value(n, [], k) for n, k in (("n", 7), ("c", 9)) if not weights])


def shadows(op):
    return simple(nodes=[node(op, ["x"], ["y"])], functions=[function(op, "", ["a"], ["b"], [node(op, ["a"], ["b"])])])


def calls_double(levels):
    """Each function calls the next one twice."""
    list_ = [function(f"F{i}", "mine", ["a"], ["b"], [node(f"F{i + 1}", ["a"], ["h"], domain="mine"), node(f"F{i + 1}", ["h"], ["b"], domain="mine")])
             for i in range(levels)]
    last = function(f"F{levels}", "mine", ["a"], ["b"], [node("Relu", ["a"], ["b"])])
    return simple(nodes=[node("F0", ["x"], ["y"], domain="mine")], functions=list_ + [last], domains=["mine"])


WEIGHT = [node("Add", ["x", "w"], ["y"])]
GOOD = simple([tensor("w", W)], WEIGHT)
INT = lambda *list_: numpy.array(list_, "i8")

# name: file, and a part of the message; None: it may be fine
CASES = {
    "empty": (b"", "it has no graph"),
    "text": (b"hello, I am no model\n" * 9, "no ONNX model"),
    "a number without end": (b"\xff" * 40, "a number too long"),
    "a length beyond the file": (varint(7 << 3 | 2) + varint(1 << 40), "longer than what it is in"),
    "a length of 2^64 - 1": (varint(7 << 3 | 2) + b"\xff" * 9 + b"\x01", "longer than what it is in"),
    "a field without number": (b"\x00\x00", "a field without a number"),
    "groups": (b"\x0b" * 100, "a field of unknown kind"),
    "types nested deep": (model(graph([], [data(1, "x") + data(2, deep(5000))], [Y])), "nested deeper"),
    "branches nested deep": (model(nested(60), 17), "nested deeper"),
    "branches nested": (model(graph([node("If", ["c"], ["y"], then_branch=nested(14), else_branch=nested(1))], [X, value("c", [], 9)], [Y])), "deep"),
    "a cycle": (simple(nodes=[node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["y"])]), "reads 'b', which nothing before it gives"),
    "a node that reads itself": (simple(nodes=[node("Add", ["x", "y"], ["y"])]), "which nothing before it gives"),
    "two nodes of one name": (simple(nodes=[node("Relu", ["x"], ["y"]), node("Exp", ["x"], ["y"])]), "two nodes give 'y'"),
    "a function that calls itself": (calls_itself(), "call themselves"),
    "functions that double": (calls_double(11), None),
    "functions that double too often": (calls_double(40), "deep"),
    "an output that nothing gives": (simple(nodes=[]), "no node gives it"),
    "no outputs": (simple(outputs=[]), "it has no outputs"),
    "a negative extent": (simple(inputs=[value("x", [-2, 3])]), "its extent 0 is open"),
    "a huge extent": (simple(inputs=[value("x", [1 << 40, 1 << 40])]), "is no shape"),
    "nine dimensions": (simple(inputs=[value("x", [1] * 9)]), "at most 8"),
    "a weight with a negative extent": (simple([external("w", [-1, 3], "w.bin")], WEIGHT), "its shape is no shape"),
    "a weight of 2^80 elements": (simple([number(1, 1 << 40) * 2 + number(2, 1) + data(8, "w") + data(9, b"")], WEIGHT), "its shape is no shape"),
    "a weight with too few bytes": (simple([number(1, 6) + number(2, 1) + data(8, "w") + data(9, b"1234")], WEIGHT), "has not as many elements"),
    "a weight with too many bytes": (simple([number(1, 1) + number(2, 1) + data(8, "w") + data(9, b"12345678")], WEIGHT), "has not as many elements"),
    "a weight in the folder above": (simple([external("w", [2, 3], "../w.bin")], WEIGHT), "outside of the model's folder"),
    "a weight in an absolute path": (simple([external("w", [2, 3], "/etc/passwd")], WEIGHT), "outside of the model's folder"),
    "a weight behind a link": (simple([external("w", [2, 3], "link.bin")], WEIGHT), "outside of the model's folder"),
    "a weight in a hidden way up": (simple([external("w", [2, 3], "a/../../w.bin")], WEIGHT), "outside of the model's folder"),
    "a weight in no file": (simple([external("w", [2, 3], "")], WEIGHT), "outside of the model's folder"),
    "a weight in a file that is not there": (simple([external("w", [2, 3], "none.bin")], WEIGHT), "cannot be read"),
    "a weight in a folder": (simple([external("w", [2, 3], "folder")], WEIGHT), "cannot be read"),
    "a weight behind the end of its file": (simple([external("w", [2, 3], "w.bin", 20)], WEIGHT), "lie outside the file"),
    "an offset of 2^64 - 8": (simple([external("w", [2, 3], "w.bin", (1 << 64) - 8)], WEIGHT), "lie outside the file"),
    "a negative offset": (simple([external("w", [2, 3], "w.bin", -8)], WEIGHT), "are no numbers"),
    "a negative length": (simple([external("w", [2, 3], "w.bin", 0, -24)], WEIGHT), "are no numbers"),
    "an unknown dtype": (simple(inputs=[value("x", [2], 99)]), "of unknown type"),
    "a shape of 2^60": (simple([tensor("s", INT(1 << 60))], [node("ConstantOfShape", ["s"], ["y"])]), None),
    "a range of 2^60": (simple([tensor("a", INT(0)[0]), tensor("b", INT(1 << 60)[0]), tensor("c", INT(1)[0])], [node("Range", ["a", "b", "c"], ["y"])]), "too many steps"),
    "tiles of 2^40": (simple([tensor("t", INT(1 << 40, 1 << 40))], [node("Tile", ["x", "t"], ["y"])]), None),
    "padding of 2^62": (simple([tensor("p", INT(1 << 62, 0, 1 << 62, 0))], [node("Pad", ["x", "p"], ["y"])]), "impossible"),
    "padding of -2^63": (simple([tensor("p", INT(-(1 << 63), 0, 0, 0))], [node("Pad", ["x", "p"], ["y"])]), "impossible"),
    "a slice of -2^63": (simple([tensor("b", INT(-(1 << 63))), tensor("e", INT((1 << 63) - 1)), tensor("a", INT(0)), tensor("s", INT(-(1 << 63)))],
                                [node("Slice", ["x", "b", "e", "a", "s"], ["y"])]), None),
    "a slice between lists of two dimensions": (simple(nodes=[node("Neg", ["x"], ["m"]), node("Cast", ["m"], ["k"], to=7), node("Slice", ["x", "k", "k"], ["y"])]),
                                                "its lists have not as many entries as each other"),
    "a gather without positions": (simple(nodes=[node("Gather", ["x"], ["y"])]), "operand 1 is missing"),
    "a crop of -2^63": (simple([tensor("s", INT(-(1 << 63), 1 << 62))], [node("CenterCropPad", ["x", "s"], ["y"])], opset=18), "impossible"),
    "an output padding of 2^62": (simple(nodes=[node("ConvTranspose", ["x", "w"], ["y"], output_padding=[1 << 62, 0])], inputs=[value("x", [1, 1, 4, 4]), value("w", [1, 1, 3, 3])]), "impossible"),
    "a transposed convolution that crops all": (simple(nodes=[node("ConvTranspose", ["x", "w"], ["y"], pads=[2, 0, 1, 0])], inputs=[value("x", [1, 1, 3, 3]), value("w", [1, 1, 1, 1])]), "an extent of 0"),
    "a spectrum of 2^60": (simple([tensor("n", INT(1 << 60)[0])], [node("DFT", ["x", "n"], ["y"])], inputs=[value("x", [1, 4, 1])]), "too large"),
    "mel weights of 2^32": (simple([tensor(n, INT(65536)[0]) for n in "abc"] + [tensor("d", W[0, 0]), tensor("e", W[0, 2])], [node("MelWeightMatrix", list("abcde"), ["y"])]), "impossible"),
    "the 2^40 largest": (simple([tensor("k", INT(1 << 40))], [node("TopK", ["x", "k"], ["y", "i"])]), "it chooses 1099511627776 of 3"),
    "pieces of 2^62": (simple([tensor("s", INT(1 << 62, 1 << 62))], [node("SplitToSequence", ["x", "s"], ["s2"]), node("SequenceAt", ["s2", "s"], ["y"])]), "impossible pieces"),
    "a result that is twice one label": (simple(nodes=[node("Einsum", ["x"], ["y"], equation="ij->ii")]), "has a label twice"),
    "an image of 2^62": (simple([tensor("i", INT(0)[0]), tensor("s", INT(1 << 62, 1, 1))], [node("MaxUnpool", ["x", "x", "s"], ["y"], kernel_shape=[2], strides=[1 << 62])], inputs=[value("x", [1, 1, 4])]), "strides is"),
    "a grid of 2^62": (simple([tensor("s", INT(1, 1, 1 << 62, 1))], [node("AffineGrid", ["x", "s"], ["y"])], inputs=[value("x", [1, 2, 3])], opset=20), "impossible"),
    "2^40 samples": (simple([tensor("b", INT(0))], [node("RoiAlign", ["x", "r", "b"], ["y"], sampling_ratio=1 << 40)], inputs=[value("x", [1, 1, 4, 4]), value("r", [1, 4])]), "impossible"),
    "trees that go round in a circle": (simple(nodes=[node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", nodes_treeids=[0, 0], nodes_nodeids=[0, 1], nodes_featureids=[0, 0], nodes_values=[0.0, 0.0], nodes_truenodeids=[1, 0], nodes_falsenodeids=[1, 0], nodes_modes=["BRANCH_LEQ", "BRANCH_LEQ"], target_treeids=[0], target_nodeids=[1], target_ids=[0], target_weights=[1.0])]), "circle"),
    "trees without an end": (simple(nodes=[node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", nodes_treeids=[0], nodes_nodeids=[0], nodes_featureids=[1 << 40], nodes_values=[0.0], nodes_truenodeids=[7], nodes_falsenodeids=[1 << 62], nodes_modes=["BRANCH_LEQ"], target_treeids=[0], target_nodeids=[0], target_ids=[0], target_weights=[1.0])]), "no such child"),
    "2^40 samples of a class": (simple(nodes=[node("Multinomial", ["x"], ["y"], sample_size=1 << 40)], inputs=[value("x", [1, 2])]), "impossible"),
    "columns of 2^40": (simple([tensor("i", INT(1 << 40, 4)), tensor("b", INT(1, 1))], [node("Col2Im", ["x", "i", "b"], ["y"])], inputs=[value("x", [1, 1, 4])], opset=18), "do not fit"),
    "n-grams beyond the pool": (simple(nodes=[node("TfIdfVectorizer", ["x"], ["y"], pool_int64s=[1, 2], ngram_counts=[0, 9], ngram_indexes=[0, 1], mode="TF", max_gram_length=2, min_gram_length=1, max_skip_count=0)], inputs=[value("x", [4], 7)]), "impossible parts"),
    "a place of 2^62 for an n-gram": (simple(nodes=[node("TfIdfVectorizer", ["x"], ["y"], pool_int64s=[1], ngram_counts=[0], ngram_indexes=[1 << 62], mode="TF", max_gram_length=1, min_gram_length=1, max_skip_count=0)], inputs=[value("x", [4], 7)]), "too large"),
    "heads of nothing": (simple(nodes=[node("LinearAttention", ["x", "x", "x"], ["y"], q_num_heads=0, kv_num_heads=0)], inputs=[value("x", [1, 2, 4])], opset=28), "cannot be shared out"),
    "boxes that only data selects": (simple(nodes=[node("NonMaxSuppression", ["x", "x"], ["y"])], inputs=[value("x", [1, 1, 4])]), "do not fit its scores"),
    "bits that a shift does not name": (simple(nodes=[node("BitShift", ["x", "x"], ["y"])]), "its attribute direction is missing"),
    "an axis of 2^62": (simple(nodes=[node("Softmax", ["x"], ["y"], axis=1 << 62)]), "axis is"),
    "a stride of 0": (simple(nodes=[node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], strides=[0, 1])], inputs=[value("x", [1, 1, 4, 4])]), "strides is 0"),
    "a kernel of -1": (simple(nodes=[node("MaxPool", ["x"], ["y"], kernel_shape=[-1, 2])], inputs=[value("x", [1, 1, 4, 4])]), "kernel_shape is -1"),
    "no operands": (simple(nodes=[node("Add", [], ["y"])]), "operand"),
    "one operand of two": (simple(nodes=[node("Add", ["x"], ["y"])]), "operand"),
    "an operand left out": (simple(nodes=[node("Add", ["", "x"], ["y"])]), "operand"),
    "no results": (simple(nodes=[node("Relu", ["x"], [])]), "it gives no results"),
    "a split into nothing": (simple(nodes=[node("Split", ["x"], [])]), "it gives no results"),
    "the shape of nothing": (simple(nodes=[node("Shape", [], ["y"])]), "operand 0 is missing"),
    "the size of nothing": (simple(nodes=[node("Size", [""], ["y"])]), "operand 0 is missing"),
    "a sequence of nothing": (simple(nodes=[node("SequenceConstruct", [""], ["s"]), node("SequenceAt", ["s", "x"], ["y"])]), "operand 0 is missing"),
    "nothing put into a sequence": (simple(nodes=[node("SequenceConstruct", ["x"], ["s"]), node("SequenceInsert", ["s"], ["y"])]), "operand 1 is missing"),
    "a scaler of integers": (simple(nodes=[node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=[1], scale=[1.0])]), "offset is ints; the op takes floats"),
    "no map": (simple(nodes=[node("ZipMap", [], ["y"], domain="ai.onnx.ml")]), "lacks an operand"),
    "trees for very many targets": (simple(nodes=[node("TreeEnsemble", ["x"], ["y"], domain="ai.onnx.ml", **FOREST | {"n_targets": 1 << 62})], domains=[("ai.onnx.ml", 5)]), "too large"),
    "trees that lack sets of values": (simple(nodes=[node("TreeEnsemble", ["x"], ["y"], domain="ai.onnx.ml", **FOREST)], domains=[("ai.onnx.ml", 5)]), "fewer sets of values"),
    "a node without an op": (simple(nodes=[data(1, "x") + data(2, "y")]), "not known"),
    "a product with nothing of what is counted": (simple(nodes=[node("NonZero", ["x"], ["n"]), node("MatMul", ["", "n"], ["y"])]), "operand"),
    "a branch of a node without an op": (branches(graph([data(1, "x") + data(2, "q")], [], [value("q", None)]), NOTHING), "not known"),
    "a branch of no nodes": (branches(graph([], [], [value("x", None)]), NOTHING), None),
    "a branch that gives a sequence": (branches(A_LIST, NOTHING), "other shapes"),
    "rounds that end by a sequence": (rounds([node("SequenceConstruct", ["v"], ["s"]), node("Neg", ["v"], ["w"])], "s"), "no scalar"),
    "rounds that end by nothing": (rounds([node("Concat", ["v", "v"], ["w"], axis=0)], "e", [tensor("n", numpy.array(3)), tensor("c", numpy.array(True)), tensor("e", numpy.zeros(0, bool))]), "no scalar"),
    "a loop without a body": (simple(nodes=[node("Loop", ["", "", "x"], ["y"])]), "its attribute body is missing"),
    "a text with everything": (simple(nodes=[node("Relu", ["x"], ["\x1b[31m\n\"y`{z}"])], outputs=[value("\x1b[31m\n\"y`{z}", None)]), None),
    "an old opset": (simple(opset=0), "opset 0"),
    "an opset to come": (simple(opset=1000), "opset 1000"),
    "an equation of nonsense": (simple(nodes=[node("Einsum", ["x"], ["y"], equation="ij,->..->")]), None),
    "a length of 2^63 - 1 in a tensor": (simple([number(1, 2) + number(2, 1) + data(8, "w") + varint(9 << 3 | 2) + varint((1 << 63) - 1)], WEIGHT), "longer than what it is in"),
    "packed numbers beyond their message": (simple([varint(1 << 3 | 2) + varint(1 << 62) + number(2, 1) + data(8, "w")], WEIGHT), "longer than what it is in"),
    "packed numbers cut in the middle": (simple([data(1, b"\x80\x80\x80") + number(2, 1) + data(8, "w") + data(9, b"")], WEIGHT), None),
    "loops in loops": (model(nested_in("Loop", 60), 17), "nested deeper"),
    "loops in loops, to what is allowed": (simple(nodes=[node("Loop", ["n", "c", "x"], ["y"], body=nested_in("Loop", 13))], inputs=[X, value("n", [], 7), value("c", [], 9)]), None),
    "a cycle between a body and a function": (calls_through_body(), "call themselves"),
    "two functions that call each other": (calls_each_other(), "call themselves"),
    "a function of the name of an op that calls that op": (shadows("Relu"), None),
    "eight extents of 2^32": (simple(inputs=[value("x", [1 << 32] * 8)]), "is no shape"),
    "an extent of 0 among those of 2^62": (simple([number(1, 0) + number(1, 1 << 62) * 3 + number(2, 1) + data(8, "w") + data(9, b"")], WEIGHT), None),
    "an offset and a length whose sum overflows": (simple([external("w", [2, 3], "w.bin", (1 << 64) - 24, 24)], WEIGHT), "lie outside the file"),
    "a length that is another": (simple([external("w", [2, 3], "w.bin", 0, 25)], WEIGHT), "lie outside the file"),
    "an offset that is no number": (simple([external("w", [2, 3], "w.bin", "0x0")], WEIGHT), "are no numbers"),
    "a location of a megabyte": (simple([external("w", [2, 3], "a/" * (1 << 19))], WEIGHT), "cannot be read"),
    "a location with a byte of 0": (simple([external("w", [2, 3], "w.bin\0x")], WEIGHT), None),
    "a weight in a link to a link": (simple([external("w", [2, 3], "links/a")], WEIGHT), None),
    "a weight in a device": (simple([external("w", [2, 3], "zero")], WEIGHT), "outside of the model's folder"),
    "a weight in a pipe": (simple([external("w", [2, 3], "pipe")], WEIGHT), "cannot be read"),
    "4 bits of an odd number with too few bytes": (simple([coded("w", [5], 22, b"12")], WEIGHT), "has not as many elements"),
    "4 bits of an odd number with too many bytes": (simple([coded("w", [5], 21, b"1234")], WEIGHT), "has not as many elements"),
    "4 bits in numbers of which one lacks": (simple([coded("w", [2, 3], 22, [17, 34], True)], WEIGHT), "has not as many elements"),
    "2^62 elements of 2 bits": (simple([coded("w", [1 << 62], 25, b"1")], WEIGHT), None),
    "a sparse weight": (model(graph(WEIGHT, [X], [Y]) + data(15, data(1, tensor("w", W[0])) + data(2, tensor("", INT(0, 99, -7))) + number(3, 2) + number(3, 3))), "do not ascend inside its shape"),
    "a sparse weight of 2^62": (model(graph(WEIGHT, [X], [Y]) + data(15, data(1, tensor("w", W[0])) + data(2, tensor("", INT(0, 1, 2))) + number(3, 1 << 62))), "is no shape"),
    "a sparse weight of 2^40": (model(graph(WEIGHT, [X], [Y]) + data(15, data(1, tensor("w", W[0])) + data(2, tensor("", INT(0, 1, 2))) + number(3, 1 << 40))), "larger than 256 MiB"),
    "a sparse weight without positions": (model(graph(WEIGHT, [X], [Y]) + data(15, data(1, tensor("w", W[0])) + number(3, 6))), "lacks values or positions"),
    "a sparse weight whose positions are floats": (model(graph(WEIGHT, [X], [Y]) + data(15, data(1, tensor("w", W[0])) + data(2, tensor("", W[0])) + number(3, 6))), "do not fit its values"),
    "a constant that is sparse": (simple(nodes=[data(2, "k") + data(4, "Constant") + data(5, data(1, "sparse_value") + data(22, data(1, tensor("", W[0])) + data(2, tensor("", INT(9, 9, 9))) + number(3, 2)) + number(20, 11)), node("Add", ["x", "k"], ["y"])]), "do not ascend inside its shape"),
    "blocks of 2^62": (simple([coded("w", [4], 22, b"12"), tensor("s", W[0])], [node("DequantizeLinear", ["w", "s"], ["y"], block_size=1 << 62, axis=0)], opset=21), "impossible"),
    "an equation of a million labels": (simple(nodes=[node("Einsum", ["x"], ["y"], equation="i" * (1 << 20) + "->")]), "labels"),
    "a name of 16 megabytes": (simple(nodes=[node("Relu", ["x"], ["y"], name="n" * (1 << 24))]), None),
    "100,000 inputs": (simple(nodes=[node("Concat", ["x"] * 100000, ["y"], axis=0)]), None),
}


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def attempt(nnc, folder, content):
    """The error, empty when there was none; raises what no file may cause."""
    (folder / "m.onnx").write_bytes(content)
    begin = time.monotonic()
    done = subprocess.run([nnc, "import", "m.onnx"], cwd=folder, capture_output=True, timeout=60, preexec_fn=limit)
    seconds = time.monotonic() - begin
    error = done.stderr.decode(errors="replace")
    assert done.returncode in (0, 1), f"exit status {done.returncode}: {error[-300:]}"
    assert done.returncode == 0 or error, "an error without a word"
    assert seconds < SECONDS, f"{seconds:.1f} s"
    return error if done.returncode else ""


def valid_models():
    then = graph([node("Exp", ["x"], ["p"])], [], [value("p", None)])
    other = graph([node("Neg", ["x"], ["q"])], [], [value("q", None)])
    yield GOOD
    yield simple(nodes=[node("If", ["c"], ["y"], then_branch=then, else_branch=other)], inputs=[X, value("c", [], 9)])
    yield simple([tensor("s", INT(3, -1)), tensor("w", W)],
                 [node("Reshape", ["x", "s"], ["r"]), node("Conv", ["i", "k"], ["c"]), node("Concat", ["r", "r"], ["y"], axis=0)],
                 inputs=[X, value("i", [1, 1, 5, 5]), value("k", [1, 1, 3, 3])])
    yield simple([tensor("w", W)], [node("Constant", [], ["k"], value=INT(0, 1)), node("Gather", ["w", "k"], ["g"]), node("Add", ["x", "g"], ["y"])])


def damage(content, dice):
    content = bytearray(content)
    for _ in range(dice.randrange(1, 4)):
        at = dice.randrange(len(content))
        kind = dice.randrange(5)
        if kind == 0:
            content[at] = dice.randrange(256)
        elif kind == 1:
            content[at] ^= 1 << dice.randrange(8)
        elif kind == 2:
            del content[at : at + dice.randrange(1, 9)]
        elif kind == 3:
            content[at:at] = bytes(dice.choice([0, 1, 127, 128, 255]) for _ in range(dice.randrange(1, 6)))
        else:
            other = dice.randrange(len(content))
            content[at : at + 8] = content[other : other + 8]
        if not content:
            content = bytearray(b"\0")
    return bytes(content)


def prepare(folder):
    (folder / "w.bin").write_bytes(W.tobytes())
    (folder / "folder").mkdir()
    (folder.parent / (folder.name + ".bin")).write_bytes(W.tobytes())
    (folder / "link.bin").symlink_to(folder.parent / (folder.name + ".bin"))
    (folder / "links").mkdir()
    (folder / "links/a").symlink_to("b")
    (folder / "links/b").symlink_to("a")
    (folder / "zero").symlink_to("/dev/zero")
    os.mkfifo(folder / "pipe")


NODES = pathlib.Path("/usr/share/libonnx-testdata/data/node")  # of the package libonnx-testdata


def rebuilt(message, change):
    """The message, its fields changed: each becomes those that `change` gives for it."""
    pairs = [pair for field, content in proto.fields(message) for pair in change(field, content)]
    return b"".join(number(f, c) if isinstance(c, int) else data(f, c) for f, c in pairs)


def with_node(content, node):
    """The model of one node, with another in its place."""
    def graph_field(field, c):
        return [(1, node)] if field == 1 else [(field, c)]

    return rebuilt(content, lambda f, c: [(7, rebuilt(c, graph_field))] if f == 7 else [(f, c)])


def lacking(node):
    """The node without results, without some operands or attributes, and with attributes of other kinds."""
    parts = list(proto.fields(node))
    inputs, outputs, attributes = ([c for f, c in parts if f == field] for field in (1, 2, 5))
    rest = [(f, c) for f, c in parts if f not in (1, 2, 5)]

    def put(inputs=inputs, outputs=outputs, attributes=attributes):
        return b"".join(data(f, c) for f, c in [*((1, i) for i in inputs), *((2, o) for o in outputs), *rest, *((5, a) for a in attributes)])

    yield put(outputs=[])
    for i in range(len(inputs)):
        yield put(inputs=inputs[:i])
        yield put(inputs=[b"" if k == i else x for k, x in enumerate(inputs)])
    for i, a in enumerate(attributes):
        yield put(attributes=attributes[:i] + attributes[i + 1 :])
        for kind in ([1, 2], [1.5], 3, 0.5, "text", 1 << 62, -1):
            yield put(attributes=[attribute(proto.text(a, 1), kind) if k == i else x for k, x in enumerate(attributes)])


def one_node_models():
    """One of each op, by name"""
    found = {}
    for path in sorted(NODES.glob("*/model.onnx")):
        content = path.read_bytes()
        nodes = proto.many(proto.one(content, 7), 1)
        if len(nodes) == 1:
            found.setdefault(proto.text(nodes[0], 4), (content, nodes[0]))
    return found


def checks(nnc, folder, options):
    for name, (content, message) in CASES.items():
        def run(content=content, message=message):
            error = attempt(nnc, folder, content)
            assert message is None or message in error, f"it says: {error or 'nothing'}"
        yield name, run

    def truncated():
        for size in range(len(GOOD)):
            attempt(nnc, folder, GOOD[:size])
    yield "a valid file cut at each byte", truncated

    def damaged():
        models = list(valid_models())
        for seed in range(options.first, options.first + options.count):
            dice = random.Random(seed)
            try:
                attempt(nnc, folder, damage(dice.choice(models), dice))
            except AssertionError as error:
                raise AssertionError(f"seed {seed}: {error}") from None
    yield f"{options.count} damaged files", damaged

    def incomplete():
        dice = random.Random(options.first)
        for op, (content, node) in one_node_models().items():
            variants = list(lacking(node))
            for other in variants if options.all else dice.sample(variants, min(4, len(variants))):
                try:
                    attempt(nnc, folder, with_node(content, other))
                except AssertionError as error:
                    (folder / f"{op}.onnx").write_bytes(with_node(content, other))
                    raise AssertionError(f"{op}, {other}: {error}") from None
    yield "nodes that lack something", incomplete if one_node_models() else None

    def fine():
        for content in valid_models():
            assert not attempt(nnc, folder, content) or b"Conv" in content, attempt(nnc, folder, content)
    yield "the files that are damaged are fine", fine


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--all", action="store_true", help="of nodes that lack something, all, not four of each op")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "in"
        folder.mkdir()
        prepare(folder)
        list_ = list(checks(options.nnc.resolve(), folder, options))
        print(f"1..{len(list_)}")
        for i, (what, run) in enumerate(list_, 1):
            if run is None:
                print(f"ok {i} - {what} # SKIP the package libonnx-testdata is not here")
                continue
            try:
                run()
                print(f"ok {i} - {what}")
            except (AssertionError, subprocess.TimeoutExpired) as error:
                print("\n".join("# " + line for line in str(error).splitlines()))
                print(f"not ok {i} - {what}")


if __name__ == "__main__":
    main()
