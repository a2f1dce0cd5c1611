#!/usr/bin/python3
"""Contractions of random odd shapes, emitted for several targets and compilers, against the reference evaluator.

    contractions.py --nnc build/nnc [--seed N] [--models N] [--cases N] [--target T ...] [--cc CC ...] [--widened]

Shapes are drawn around the tile's edges: extents of 1, a vector and one more or less, taps beyond the image, strides,
dilation, groups, batches and their broadcast, operands through views and of other dtypes, epilogues.  Each model holds some cases as
outputs of one graph; `nnc run --check` compares.  With --widened weights are of 8 and 16 bits, with scales and zero
points for all, for each slice or for each block along a dimension.  Speaks TAP: one result per target and compiler.
"""

import argparse
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

FLAGS = {"generic": None, "generic --size": None, "cortex-m": None, "cortex-m --size": None, "x86-64-v3": "avx2", "x86-64-v4": "avx512dq"}


class Graph:
    """The text of a graph with many outputs."""

    def __init__(self, draw):
        self.draw, self.inputs, self.outputs, self.body, self.names = draw, [], [], [], 0

    def name(self, stem):
        self.names += 1
        return f"{stem}{self.names}"

    def input(self, *dims, dtype="f32"):
        name = self.name("x")
        self.inputs.append(f"{name}: {dtype}[{', '.join(map(str, dims))}]")
        return name

    def param(self, *dims):
        name = self.name("w")
        self.body.append(f"param {name}: f32[{', '.join(map(str, dims))}] = uniform(low = -1.0, high = 1.0, "
                         f"seed = {self.names})")
        return name

    def let(self, expression):
        name = self.name("t")
        self.body.append(f"{name} = {expression}")
        return name

    def output(self, expression, *dims):
        name = self.name("y")
        self.outputs.append(f"{name}: f32[{', '.join(map(str, dims))}]")
        self.body.append(f"{name} = {expression}")

    def epilogue(self, value, dims, bias):
        """Nothing, a bias, a residual, an activation, or several; one of them with two results."""
        kind = self.draw.randrange(6)
        if kind in (1, 4):
            value = self.let(f"{value} + {self.param(*bias)}")
        if kind in (2, 4):
            value = self.let(f"{value} + {self.input(*dims)}")
        if kind == 5:
            self.output(f"{value} * 0.5", *dims)
        self.output(f"maximum({value}, 0.0)" if kind >= 3 else f"{value} - 0.25", *dims)

    def text(self):
        body = "".join(f"    {line}\n" for line in self.body)
        return (f"nnc 1\ngraph contractions({', '.join(self.inputs)}) -> ({', '.join(self.outputs)}) {{\n{body}}}\n")


class WidenedGraph(Graph):
    """The same with weights that stay narrow."""

    def constant(self, dtype, *dims):
        drawn = super().param(*dims)
        reach = {"i8": 120, "u8": 120, "i16": 300, "u16": 300}.get(dtype)
        return self.let(f"cast(round({drawn} * {reach}.0){' + 120.0' if dtype[0] == 'u' else ''}, to = {dtype})"
                        if reach else f"cast({drawn}, to = {dtype})")

    def repeated(self, dtype, dims, axis, block):
        """One number for each block of the axis."""
        blocks = -(-dims[axis] // block)
        shape = [blocks if d == axis else 1 for d in range(len(dims))]
        number = self.constant(dtype, *shape) if dtype != "f32" else super().param(*shape)
        if block == 1 or blocks == 1:
            return number
        unit, wide = shape[:axis + 1] + [1] + shape[axis + 1:], shape[:axis + 1] + [block] + shape[axis + 1:]
        merged = shape[:axis] + [blocks * block] + shape[axis + 1:]
        number = self.let(f"broadcast(reshape({number}, shape = {unit}), shape = {wide})")
        cut = ", ".join([":"] * axis + [f":{dims[axis]}"])
        return self.let(f"reshape({number}, shape = {merged})[{cut}]")

    def spread(self, dtype, dims):
        axis = self.draw.randrange(len(dims))
        kind = self.draw.randrange(4)
        if kind == 0:
            return super().param(1) if dtype == "f32" else self.constant(dtype, 1)
        if kind == 1 and dims[axis] > 8:
            return self.repeated(dtype, dims, axis, self.draw.choice([4, 8, 16, 32, 64]))
        return self.repeated(dtype, dims, axis if kind == 2 else (0 if len(dims) > 2 else -1 % len(dims)), 1)

    def param(self, *dims):
        dtype = self.draw.choice(["i8", "i8", "u8", "i16", "u16", "bf16", "f16"])
        weight = self.constant(dtype, *dims)
        if dtype[-1] == "8" and self.draw.random() < 0.3:
            weight = self.let(f"cast(cast({weight}, to = i32) - cast({self.spread(dtype, dims)}, to = i32), to = f32)")
        else:
            weight = self.let(f"cast({weight}, to = f32)")
            if self.draw.random() < 0.2:
                weight = self.let(f"{weight} - {self.spread('f32', dims)}")
        return self.let(f"{weight} * {self.spread('f32', dims)}") if self.draw.random() < 0.7 else weight


def channels(draw, lanes):
    """Channels, outputs and groups: one filter for each channel, several, or groups of some channels."""
    kind = draw.randrange(9)
    if kind > 5:  # groups that fill vectors, or that do so together
        width = draw.choice([max(lanes // 8, 1), lanes // 4, lanes // 2, lanes // 2, lanes, lanes + lanes // 2, 3])
        groups = draw.choice([2, 4, 8, 8, 16, 6])
        return groups * width * draw.choice([1, 1, 1, 2]), groups * width, groups
    if kind < 3:
        return (draw.choice([1, 2, 3, lanes, 2 * lanes, lanes + 3]), draw.choice([1, 3, lanes, 3 * lanes, 2 * lanes + 5]),
                1)
    groups = draw.choice([2, 3, lanes // 2, lanes, lanes, 2 * lanes, 2 * lanes + 1])
    if kind < 5:
        return groups, groups * draw.choice([1, 1, 1, 2, 3]), groups
    return groups * draw.choice([2, 3]), groups * draw.choice([1, 2, 5, 8]), groups


def add_conv(graph, lanes):
    draw = graph.draw
    c, o, groups = channels(draw, lanes)
    h, w = draw.choice([1, 2, 5, 7, 9, 14, 17, 28]), draw.choice([1, 3, 7, 8, 13, 14, 15, 28, 30, 56])
    kh, kw = draw.choice([(1, 1), (1, 1), (3, 3), (3, 3), (5, 5), (1, 3), (3, 1), (7, 7), (2, 2), (1, 9)])
    stride, dilation = draw.choice([(1, 1), (1, 1), (2, 2), (1, 2), (3, 3)]), draw.choice([(1, 1)] * 4 + [(2, 2), (3, 1)])
    pad = draw.choice([(0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (0, 1, 1, 0), (4, 0, 0, 4)])
    out_h = (h + pad[0] + pad[2] - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    out_w = (w + pad[1] + pad[3] - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    if out_h < 1 or out_w < 1:
        return
    n = draw.choice([1, 1, 2])
    weight = graph.input if draw.random() < 0.2 else graph.param
    bias = f", {graph.param(o)}" if draw.random() < 0.5 else ""
    x = graph.input(n, c, h, w)
    if c % lanes == 0 and draw.random() < 0.7:  # made by a convolution: in channel blocks
        x = graph.let(f"conv2d({graph.input(n, 2, h, w)}, {graph.param(c, 2, 1, 1)})")
    y = graph.let(f"conv2d({x}, {weight(o, c // groups, kh, kw)}{bias}, stride = [{stride[0]}, {stride[1]}], "
                  f"pad = [{', '.join(map(str, pad))}], dilation = [{dilation[0]}, {dilation[1]}], groups = {groups})")
    graph.epilogue(y, (n, o, out_h, out_w), (o, 1, 1))


def add_transpose(graph, lanes):
    """A transposed convolution, of groups or not."""
    draw = graph.draw
    c, o, groups = channels(draw, lanes)
    h, w, k, stride = draw.choice([3, 7]), draw.choice([4, 9, 16]), draw.choice([1, 2, 3, 4]), draw.choice([1, 2])
    pad = draw.choice([0, 0, k // 2])
    size = [stride * (e - 1) + k - 2 * pad for e in (h, w)]
    if min(size) < 1:
        return
    weight = graph.input if draw.random() < 0.2 else graph.param
    bias = f", {graph.param(o)}" if draw.random() < 0.5 else ""
    y = graph.let(f"conv2d_transpose({graph.input(1, c, h, w)}, {weight(c, o // groups, k, k)}{bias}, stride = {stride}, "
                  f"pad = {pad}, groups = {groups})")
    graph.epilogue(y, (1, o, *size), (o, 1, 1))


def add_matmul(graph, lanes):
    """Operands plain, batched, broadcast, transposed, split in heads and merged from them."""
    draw = graph.draw
    b, m = draw.choice([1, 2, 3]), draw.choice([1, 2, 3, 4, 5, 6, 7, 9, 13, 14, 15, 29, 43])
    k = draw.choice([1, 2, 3, 7, lanes, 2 * lanes, 64, lanes + 1, 100, 800])
    n = draw.choice([1, 3, lanes - 1, lanes, lanes + 1, 2 * lanes, 5 * lanes, 7 * lanes + 3])
    kind = draw.randrange(10)
    x, w, flag, dims = graph.input, graph.param, "", (b, m, n)
    if kind == 0:
        x, w = x(b, m, k), w(k, n)
    elif kind == 1:
        x, w, dims = x(m, k), w(k, n), (m, n)
    elif kind == 2:
        x, w = x(b, m, k), x(b, k, n)
    elif kind == 3:
        x, w, flag = x(b, m, k), x(b, n, k), ", transpose_y = true"
    elif kind == 4:
        x, w = (graph.let(f"transpose({x(s, b, k)}, axes = [1, 0, 2])") for s in (m, n))
        flag = ", transpose_y = true"
    elif kind == 5:
        heads = graph.let(f"transpose({x(b, m, k)}, axes = [1, 0, 2])")
        x, w, dims = graph.let(f"reshape({heads}, shape = [{m}, {b * k}])"), w(b * k, n), (m, n)
    elif kind == 6:
        x, w, dims = x(k), w(k, n), (n,)
    elif kind == 7:
        x, w = x(b, m, k), x(1, k, n)
    elif kind == 8:
        x, w, dims, flag = x(m, k), w(n, k), (m, n), ", transpose_y = true"
    else:
        x, w = x(1, m, k), graph.let(f"transpose({x(k, b, n)}, axes = [1, 0, 2])")
    graph.epilogue(graph.let(f"matmul({x}, {w}{flag})"), dims, (n,))


def add_heads(graph, lanes):
    """The second operand has heads side by side as its columns, that lie apart in memory: of a vector, more or less."""
    draw = graph.draw
    b, m, t = draw.choice([1, 2, 3]), draw.choice([5, 24, 33]), draw.choice([1, 7, lanes])
    width, count = draw.choice([lanes // 2, lanes, 2 * lanes]), draw.choice([2, 3, 4])
    heads = graph.let(f"transpose({graph.input(b, count, t, width)}, axes = [0, 2, 1, 3])")
    w = graph.let(f"reshape({heads}, shape = [{b * t}, {count * width}])")
    x = graph.let(f"transpose({graph.input(b * t, m)})")
    graph.epilogue(graph.let(f"matmul({x}, {w})"), (m, count * width), (count * width,))


def add_converted(graph, lanes):
    """An image of another dtype, scaled and shifted on its way: the border is 0 after that.  Weights of f16, too."""
    draw = graph.draw
    n, c, o = draw.choice([1, 2]), draw.choice([1, 3, 5, lanes + 1]), draw.choice([lanes, 2 * lanes])
    h, w = draw.choice([7, 16]), draw.choice([5, 14, 31])
    (kh, kw), stride, dilation = draw.choice([(3, 3), (2, 5), (3, 1), (1, 1)]), draw.choice([1, 2]), draw.choice([1, 1, 2])
    pad = draw.choice([(1, 1, 1, 1), (2, 0, 1, 3), (0, 0, 0, 0)])
    size = [(e + a + b - dilation * (k - 1) - 1) // stride + 1 for e, a, b, k in zip((h, w), pad, pad[2:], (kh, kw))]
    if min(size) < 1:
        return
    x, dtype = "f32({})", draw.choice(["u8", "i8", "f16", "bf16", "f32"])
    plain, first = draw.random() < 0.5, draw.random() < 0.5
    x = x.format(graph.input(n, c, h, w, dtype=dtype) if plain else graph.input(n, h, w, c, dtype=dtype))
    scaled = draw.choice(["{x} / 127.0 - 1.0", "({x} - {m}) * 0.5", "abs({x}) + 1.0", "{x}"])
    means = graph.param(c) if not plain and not first else graph.param(c, 1, 1)
    if plain:
        x = scaled.format(x=x, m=means)
    elif first:
        x = scaled.format(x=f"transpose({x}, axes = [0, 3, 1, 2])", m=means)
    else:
        x = f"transpose({scaled.format(x=x, m=means)}, axes = [0, 3, 1, 2])"
    weight = f"f32({graph.input(o, c, kh, kw, dtype='f16')})" if draw.random() < 0.4 else graph.param(o, c, kh, kw)
    y = graph.let(f"conv2d({x}, {weight}, {graph.param(o)}, stride = {stride}, pad = [{', '.join(map(str, pad))}], "
                  f"dilation = {dilation})")
    if draw.random() < 0.3 and min(size) > 1:
        size = [e // 2 for e in size]
        y = graph.let(f"max_pool(maximum({y}, 0.0), window = [2, 2], stride = [2, 2])")
    graph.output(y, n, o, *size)
    rows, depth = draw.choice([1, 6, 40]), draw.choice([3, 64, 100])
    weight = f"f32({graph.input(depth, 3 * lanes, dtype=draw.choice(['f16', 'i8']))})"
    weight = draw.choice(["{w}", "{w} * {s}"]).format(w=weight, s=graph.param(3 * lanes))
    graph.output(f"{graph.input(rows, depth)} @ ({weight})", rows, 3 * lanes)


def check(words, folder, target, cc, seeds):
    """What is wrong, in words."""
    lanes = {"x86-64-v3": 8, "x86-64-v4": 16}.get(target, 4)
    if target.startswith("cortex-m"):  # in the form without vectors, as there
        cc += " -DNNC_NO_VECTORS"
    for seed in seeds:
        graph = (WidenedGraph if words.widened else Graph)(random.Random(f"{target} {seed}"))
        add_heads(graph, lanes)
        if not words.widened:
            add_converted(graph, lanes)
            add_converted(graph, lanes)
        for _ in range(words.cases):
            graph.draw.choice([add_conv] * 4 + [add_matmul] * 4 + [add_transpose])(graph, lanes)
        model = folder / f"contractions_{target.replace(' ', '_')}_{seed}.nnc"
        model.write_text(graph.text())
        command = [words.nnc, "run", model, "--check", "--target", *target.split(), "--cc", cc]
        for line in graph.inputs:
            command += ["--input", f"{line.split(':')[0]}=random:{seed}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = [line for line in (done.stdout + done.stderr).splitlines() if "agrees" not in line and " = " not in line]
            return [f"{' '.join(map(str, command[:7]))}: status {done.returncode}"] + lines[:8]
    return []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nnc", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--models", type=int, default=2)
    parser.add_argument("--cases", type=int, default=8)
    parser.add_argument("--target", nargs="*", default=list(FLAGS))
    parser.add_argument("--cc", nargs="*", default=["clang", "gcc"])
    parser.add_argument("--widened", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the models")
    words = parser.parse_args()
    cpu = pathlib.Path("/proc/cpuinfo").read_text() if pathlib.Path("/proc/cpuinfo").exists() else ""
    seeds, number, bad = range(words.seed, words.seed + words.models), 0, False

    with tempfile.TemporaryDirectory() as temporary:
        folder = words.keep or pathlib.Path(temporary)
        print(f"TAP version 13\n1..{len(words.target) * len(words.cc)}")
        for target in words.target:
            for cc in words.cc:
                number += 1
                if not shutil.which(cc) or (FLAGS[target] and FLAGS[target] not in cpu):
                    print(f"ok {number} - {target} {cc} # SKIP not on this machine")
                    continue
                wrong = check(words, folder, target, cc, seeds)
                bad |= bool(wrong)
                print(f"{'not ok' if wrong else 'ok'} {number} - {target} {cc}", *(f"# {w}" for w in wrong), sep="\n",
                      flush=True)
    sys.exit(bad)


if __name__ == "__main__":
    main()
