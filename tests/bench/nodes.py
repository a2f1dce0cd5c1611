#!/usr/bin/python3
"""How long `nnc` takes over ONNX graphs of many nodes: medians of processor time.

    nodes.py NNC [OTHER_NNC] [--nodes 15000 ...] [--kind KIND ...] [--target T] [--runs N]

Columns: `nnc import` of the ONNX file, `nnc compile` of it, `nnc compile` of the imported text, megabytes of the
second.  With another nnc its figures stand behind, taken in turns, and medians of the ratios, the second by the first.
Several counts of nodes show whether time grows as they do.  The extents are small: what is measured is what nodes cost.
"""

import argparse
import multiprocessing
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile

import numpy

from bench import measure

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "onnx"))
from write import graph, model, node, tensor, value  # noqa: E402


class Network:
    """A graph as it grows, under names as exporters give them."""

    def __init__(self, **inputs):
        self.inputs, self.nodes, self.weights = inputs, [], []
        self.dice = numpy.random.default_rng(5)

    def add(self, op, inputs, path="", outputs=1, **attributes):
        count = len(self.nodes)
        names = [f"{path}/{op}_{count}_output_{i}" for i in range(outputs)]
        self.nodes.append(node(op, inputs, names, f"{path}/{op}_{count}", **attributes))
        return names[0] if outputs == 1 else names

    def weight(self, name, *shape):
        self.weights.append(tensor(name, self.dice.normal(size=shape).astype("f4") * numpy.float32(0.2)))
        return name

    def constant(self, value):
        """As exporters write it, a node."""
        return self.add("Constant", [], value=numpy.asarray(value))

    def content(self, *results):
        for i, result in enumerate(results):
            self.nodes.append(node("Identity", [result], [f"y{i}"]))
        values = [value(f"y{i}", None) for i in range(len(results))]
        return model(graph(self.nodes, [value(n, s) for n, s in self.inputs.items()], values, self.weights))


def chain(nodes):
    """Elementwise ops, one after the other"""
    n = Network(x=[1, 64])
    h = "x"
    while len(n.nodes) < nodes:
        h = n.add(["Relu", "Exp", "Neg", "Tanh", "Abs"][len(n.nodes) ** 2 % 5], [h])
    return n.content(h)


def residual(nodes):
    """Residual blocks of convolutions, all alike"""
    n = Network(x=[1, 8, 6, 6])
    h = "x"
    while len(n.nodes) < nodes:
        name = f"/layers/layers.{len(n.nodes) // 5}"
        weights = [[n.weight(f"{name}.conv{i}.weight", 8, 8, 3, 3), n.weight(f"{name}.conv{i}.bias", 8)] for i in (1, 2)]
        a = n.add("Relu", [n.add("Conv", [h, *weights[0]], name, pads=[1] * 4)], name)
        h = n.add("Relu", [n.add("Add", [n.add("Conv", [a, *weights[1]], name, pads=[1] * 4), h], name)], name)
    return n.content(h)


def varied(nodes):
    """Convolutions of many widths, windows and activations, with batch normalisation and skips"""
    n, dice = Network(x=[1, 8, 6, 6]), random.Random(5)
    h, channels = "x", 8
    while len(n.nodes) < nodes:
        name = f"/blocks/blocks.{len(n.nodes)}"
        wide, window = dice.choice([channels, 8, 12, 16, 24, 32]), dice.choice([1, 3, 5])
        c = n.add("Conv", [h, n.weight(f"{name}.weight", wide, channels, window, window)], name, pads=[window // 2] * 4)
        moments = [n.weight(f"{name}.bn.{part}", wide) for part in ("weight", "bias", "mean")]
        n.weights.append(tensor(f"{name}.bn.var", numpy.ones(wide, "f4")))
        b = n.add("BatchNormalization", [c, *moments, f"{name}.bn.var"], name)
        a = n.add(dice.choice(["Relu", "Sigmoid", "HardSwish", "Tanh"]), [b], name)
        h, channels = n.add("Add", [a, h], name) if wide == channels else a, wide
    return n.content(h)


def normal(n, h, name, width):
    """A layer norm in nine nodes"""
    d = n.add("Sub", [h, n.add("ReduceMean", [h], name, axes=[-1])], name)
    v = n.add("ReduceMean", [n.add("Pow", [d, "two"], name)], name, axes=[-1])
    q = n.add("Div", [d, n.add("Sqrt", [n.add("Add", [v, "epsilon"], name)], name)], name)
    return n.add("Add", [n.add("Mul", [q, n.weight(f"{name}.weight", width)], name), n.weight(f"{name}.bias", width)], name)


def dense(n, h, name, inputs, outputs):
    return n.add("Add", [n.weight(f"{name}.bias", outputs), n.add("MatMul", [h, n.weight(f"{name}.weight", inputs, outputs)], name)], name)


def heads_of(n, h, name, shape, perm):
    return n.add("Transpose", [n.add("Reshape", [h, shape(h)], name)], name, perm=perm)


def layers(n, nodes, split, merge):
    """Layers of a transformer; where the shapes come from, the caller says."""
    h, width = "x", 16
    for name, content in ("two", 2.0), ("epsilon", 1e-5), ("root", 2.8284271), ("sqrt2", 1.4142135), ("one", 1.0), ("half", 0.5):
        n.weights.append(tensor(name, numpy.float32(content)))
    for i in range(nodes):
        if len(n.nodes) >= nodes:
            return h
        name = f"/encoder/layer.{i}"
        q, k, v = (dense(n, h, f"{name}/attention/{part}", width, width) for part in ("query", "key", "value"))
        q, k, v = (heads_of(n, part, name, split, perm) for part, perm in ((q, [0, 2, 1, 3]), (k, [0, 2, 3, 1]), (v, [0, 2, 1, 3])))
        s = n.add("Softmax", [n.add("Div", [n.add("MatMul", [q, k], name), "root"], name)], name, axis=-1)
        c = n.add("Transpose", [n.add("MatMul", [s, v], name)], name, perm=[0, 2, 1, 3])
        a = dense(n, n.add("Reshape", [c, merge(c)], name), f"{name}/output", width, width)
        a = normal(n, n.add("Add", [a, h], name), f"{name}/norm1", width)
        w = dense(n, a, f"{name}/wide", width, 2 * width)
        e = n.add("Add", [n.add("Erf", [n.add("Div", [w, "sqrt2"], name)], name), "one"], name)
        g = n.add("Mul", [n.add("Mul", [w, e], name), "half"], name)
        h = normal(n, n.add("Add", [dense(n, g, f"{name}/narrow", 2 * width, width), a], name), f"{name}/norm2", width)


def transformer(nodes):
    """Layers of a transformer, norms and GELU in single ops"""
    n = Network(x=[1, 8, 16])
    for name, shape in ("split", [1, 8, 2, 8]), ("merge", [1, 8, 16]):
        n.weights.append(tensor(name, numpy.array(shape)))
    return n.content(layers(n, nodes, lambda h: "split", lambda h: "merge"))


def shapes(nodes):
    """The same with shapes computed in the graph, from those of tensors"""
    n = Network(x=[1, 8, 16])

    def computed(*last):
        def shape(h):
            s, zero = n.add("Shape", [h]), n.constant(numpy.array([0]))
            extents = [n.add("Unsqueeze", [n.add("Gather", [s, n.constant(numpy.array(axis))]), zero]) for axis in (0, 1)]
            return n.add("Concat", [*extents, *(n.constant(numpy.array([extent])) for extent in last)], axis=0)

        return shape

    def merged(h):  # h is [batch, place, head, channel]
        s = n.add("Shape", [h])
        extents = [n.add("Gather", [s, n.constant(numpy.array([axis]))]) for axis in range(4)]
        return n.add("Concat", [*extents[:2], n.add("Mul", extents[2:])], axis=0)

    return n.content(layers(n, nodes, computed(2, 8), merged))


def lstm(nodes):
    """An LSTM, its steps one after the other"""
    n = Network(x=[1024 * 64, 8], h0=[1, 8], c0=[1, 8])
    n.inputs["x"][0] = nodes // 15 + 1
    h, c = "h0", "c0"
    weights = n.weight("weight_ih", 8, 32), n.weight("weight_hh", 8, 32), n.weight("bias", 32)
    for step in range(nodes // 15 + 1):
        x = n.add("Gather", ["x", n.constant(numpy.array([step]))], axis=0)
        gates = n.add("Add", [n.add("Add", [n.add("MatMul", [x, weights[0]]), n.add("MatMul", [h, weights[1]])]), weights[2]])
        i, f, o, g = n.add("Split", [gates], outputs=4, axis=1)
        kept = n.add("Mul", [n.add("Sigmoid", [f]), c])
        c = n.add("Add", [kept, n.add("Mul", [n.add("Sigmoid", [i]), n.add("Tanh", [g])])])
        h = n.add("Mul", [n.add("Sigmoid", [o]), n.add("Tanh", [c])])
    return n.content(h, c)


def woven(nodes):
    """Ops that read whatever came a little before, no two places alike"""
    n, dice = Network(x=[8, 8]), random.Random(5)
    n.weight("w", 8, 8)
    recent = ["x"]
    while len(n.nodes) < nodes:
        op, read = dice.choice([("Add", 2), ("Mul", 2), ("Sub", 2), ("Tanh", 1), ("Sigmoid", 1), ("MatMul", 1), ("Softmax", 1), ("Transpose", 1)])
        operands = [dice.choice(recent) for _ in range(read)]
        recent = (recent + [n.add(op, [*operands, "w"] if op == "MatMul" else operands)])[-24:]
    return n.content(*recent)


def perceptron(nodes):
    """Gemm and an activation, by turns, of several widths"""
    n, dice = Network(x=[4, 16]), random.Random(5)
    h, width = "x", 16
    while len(n.nodes) < nodes:
        name, wide = f"/net/net.{len(n.nodes)}", dice.choice([8, 12, 16, 24])
        weights = n.weight(f"{name}.weight", wide, width), n.weight(f"{name}.bias", wide)
        h, width = n.add("Gemm", [h, *weights], name, transB=1), wide
        h = n.add(dice.choice(["Relu", "Sigmoid", "Tanh"]), [h], name)
    return n.content(h)


def quantised(nodes):
    """Convolutions between QuantizeLinear and DequantizeLinear, as quantisers write them"""
    n = Network(x=[1, 8, 6, 6])
    n.weights += [tensor("zero", numpy.int8(0)), tensor("zeros", numpy.zeros(8, "i1"))]
    h = "x"

    def rounded(h, name):
        n.weights.append(tensor(f"{name}.scale", numpy.float32(n.dice.uniform(0.02, 0.05))))
        q = n.add("QuantizeLinear", [h, f"{name}.scale", "zero"], name)
        return n.add("DequantizeLinear", [q, f"{name}.scale", "zero"], name)

    while len(n.nodes) < nodes:
        name = f"/layers/layers.{len(n.nodes) // 7}"
        n.weights += [tensor(f"{name}.weight", n.dice.integers(-127, 128, (8, 8, 3, 3)).astype("i1")),
                      tensor(f"{name}.weight.scale", n.dice.uniform(0.001, 0.01, 8).astype("f4"))]
        w = n.add("DequantizeLinear", [f"{name}.weight", f"{name}.weight.scale", "zeros"], name, axis=0)
        c = n.add("Conv", [rounded(h, f"{name}.in"), w, n.weight(f"{name}.bias", 8)], name, pads=[1] * 4)
        h = n.add("Add", [rounded(n.add("Relu", [c], name), f"{name}.out"), h], name)
    return n.content(h)


def branches(nodes):
    """Four small branches side by side, put behind each other, and a convolution back to few channels"""
    n = Network(x=[1, 8, 6, 6])
    h = "x"
    while len(n.nodes) < nodes:
        name = f"/mixed/mixed.{len(n.nodes)}"
        parts = []
        for i in range(4):
            w = n.weight(f"{name}.branch{i}.weight", 4, 8, 1, 1)
            parts.append(n.add("Relu", [n.add("Conv", [h, w], f"{name}/branch{i}")], f"{name}/branch{i}"))
        c = n.add("Concat", parts, name, axis=1)
        h = n.add("Conv", [c, n.weight(f"{name}.project.weight", 8, 16, 1, 1)], name)
    return n.content(h)


MADE = (chain, residual, varied, transformer, shapes, lstm, woven, perceptron, quantised, branches)
KINDS = {f.__name__: f for f in MADE}


def write(path, kind, nodes):
    """In a process of its own: this one's memory would stand in what is measured."""
    process = multiprocessing.get_context("fork").Process(target=lambda: path.write_bytes(KINDS[kind](nodes)))
    process.start()
    process.join()
    assert process.exitcode == 0


def figures(nnc, folder, target, runs):
    """Of each command the seconds and megabytes of every run."""
    compiled = ["--target", target, "--weights", "file", "-o", folder / "out"]
    commands = [["import", folder / "m.onnx"], ["compile", folder / "m.onnx", *compiled], ["compile", folder / "text/m.nnc", *compiled]]
    subprocess.run([nnc[0], "import", folder / "m.onnx", "-o", folder / "text", "--overwrite"], check=True, stdout=subprocess.DEVNULL)
    found = {n: [[] for _ in commands] for n in nnc}
    for turn in range(runs):
        for n in nnc if turn % 2 else nnc[::-1]:
            for row, words in zip(found[n], commands):
                row.append(measure([n, *words]))
    return found


def kernels(nnc, folder, target):
    said = subprocess.check_output([nnc, "compile", folder / "m.onnx", "--target", target, "-o", folder / "out"], text=True)
    return re.search(r"(\d+) kernel", said)[1]


def show(nnc, kind, nodes, target, runs):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write(folder / "m.onnx", kind, nodes)
        found = figures(nnc, folder, target, runs)
        count = kernels(nnc[-1], folder, target)
    columns = []
    for rows in found.values():
        seconds = [statistics.median(s for s, _ in row) for row in rows]
        columns.append("".join(f"{s:9.3f}" for s in seconds) + f"{statistics.median(m for _, m in rows[1]):9.0f}")
    if len(nnc) == 2:
        ratios = [statistics.median(b[0] / a[0] for a, b in zip(*rows)) for rows in zip(*found.values())]
        columns.append("".join(f"{ratio:9.3f}" for ratio in ratios))
    print(f"{kind:12}{nodes:8}{count:>8}" + "  |".join(columns), flush=True)


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("nnc", nargs="+", type=pathlib.Path)
    words.add_argument("--nodes", nargs="*", type=int, default=[15000])
    words.add_argument("--kind", nargs="*", choices=KINDS, default=list(KINDS))
    words.add_argument("--target", default="x86-64-v3")
    words.add_argument("--runs", type=int, default=5)
    given = words.parse_args()
    head = f"{'import':>9}{'compile':>9}{'of text':>9}{'MB':>9}"
    print(f"{'kind':12}{'nodes':>8}{'kernels':>8}" + "  |".join([head] * len(given.nnc)))
    for kind in given.kind:
        for nodes in given.nodes:
            show([nnc.resolve() for nnc in given.nnc], kind, nodes, given.target, given.runs)


if __name__ == "__main__":
    main()
