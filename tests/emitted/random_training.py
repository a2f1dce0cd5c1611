#!/usr/bin/python3
"""Random networks that train: every library that a model can become learns the same.

    random_training.py --nnc build/nnc [--first N] [--count N] [--cc CC]

Layers, losses and optimisers of the library, for vectors, images, sequences and tokens.  Three steps in each of: generic
code, code of a vector target whose inference reads packed params, and the least memory that a step can be made to take.
Losses, outputs between the steps, and params in the end must agree.  Optimisers are those whose steps are as long as
gradients are: what Adam makes of a gradient of 0 is the sign of its rounding.  Speaks TAP: one result per network.
"""

import argparse
import pathlib
import random
import re
import subprocess
import sys

import numpy as np

import build
from streams import Model

TARGETS = ["x86-64-v2", "x86-64-v3", "x86-64-v4"]
WORST = {"f64": 1e-9, "f32": 2e-3}  # of the largest value; batches of one and norms make little of much
STEPS = 3
VOCABULARY = 20
ACTIVATIONS = """relu tanh gelu silu sigmoid leaky_relu elu mish hard_swish softplus hard_tanh softsign selu relu6""".split()
OPTIMISERS = ["sgd(rate = 0.01)", "sgd(rate = warm_up(0.02, 3), decay = 0.01)", "momentum(rate = 0.01)",
              "momentum(rate = stepwise(0.02, 2), nesterov = true, decay = 0.001)"]
LOSSES = ["cross_entropy(y, label)", "cross_entropy(y, label, smoothing = 0.1)", "mse(y, target)", "huber(y, target)",
          "binary_cross_entropy(y, sigmoid(target))", "kl_divergence(log_softmax(y), softmax(target))"]


class Network:
    """Draws the text of a file: `step`, which trains, and `run`, for another batch."""

    def __init__(self, seed):
        self.chance, self.names, self.lines, self.x = random.Random(seed), 0, [], "x"
        choice = self.chance.choice
        kind = choice([self.vector, self.image, self.sequence, self.tokens])
        self.dtype = "f32" if kind == self.tokens else choice(["f32", "f64"])
        self.batch, self.other, self.classes = choice([1, 2, 3, 4, 7, 8, 16]), choice([1, 5]), choice([2, 3, 5, 10])
        self.shape, self.integers = [], kind == self.tokens
        width = kind()
        for _ in range(choice([0, 0, 1])):
            width = self.dense(width)
        self.loss, self.optimiser = choice(LOSSES), choice(OPTIMISERS)
        self.through = choice(["", "", ", through = [clip_by_norm(0.5)]", ", through = [accumulate(2)]"])
        self.average = choice(["", "", ", average = ema(0.9)"])

    def label(self):
        self.names += 1
        return f"l{self.names}"

    def then(self, text, others=""):
        """In the text, x is what has been made so far."""
        made = f"x{len(self.lines)}"
        text = re.sub(r"\bx\b", self.x, text)
        self.lines.append(f"    ({made}{others}) = {text}" if others else f"    {made} = {text}")
        self.x = made

    def activated(self, text):
        return f"{self.chance.choice(ACTIVATIONS)}({text})"

    def dense(self, width):
        width = self.chance.choice([1, 5, 8, 16, 17, 24, 33, width])
        self.then(self.activated(f"dense@{self.label()}(x, {width})"))
        return width

    def vector(self):
        width = self.chance.choice([1, 3, 8, 16, 31])
        self.shape = [width]
        for _ in range(self.chance.randint(1, 5)):
            other = self.chance.choice(["layer_norm@{}(x)", "rms_norm@{}(x)", "batch_norm@{}(x, training = training)",
                                        "x + dense@{}(tanh(x), x.shape[-1])", "dropout(x, 0.5, key) if training else x", ""])
            if other:
                self.then(other.format(self.label()))
            else:
                width = self.dense(width)
        return width

    def convolution(self, channels, extent):
        chance = self.chance
        taps, stride, dilation = chance.choice([1, 2, 3, 3, 5]), chance.choice([1, 1, 2]), chance.choice([1, 1, 2])
        pad, span = chance.choice([0, taps // 2]), (taps - 1) * dilation + 1
        if min(extent) + 2 * pad < span:
            return channels, extent
        outputs = chance.choice([1, 4, 8, 16, 20, 32])
        self.then(self.activated(f"conv@{self.label()}(x, {outputs}, {taps}, stride = {stride}, pad = {pad}, dilation = {dilation})"))
        return outputs, [(e + 2 * pad - span) // stride + 1 for e in extent]

    def image(self):
        choice = self.chance.choice
        channels, extent = choice([1, 3, 4, 16]), [choice([4, 7, 8, 12]), choice([4, 6, 8, 13])]
        self.shape = [channels, *extent]
        for _ in range(self.chance.randint(1, 5)):
            kind = choice(["conv", "conv", "max_pool(x, window = 2, stride = 2)", "avg_pool(x, window = 2, stride = 2)",
                           "depthwise_conv@{}(x, 3, pad = 1)", "batch_norm@{}(x, training = training)",
                           f"residual@{{}}(x, {channels}, training = training)", "squeeze_excite@{}(x, ratio = 1)",
                           f"conv@{{}}(x, {channels}, 3, pad = 1, groups = {2 if channels % 2 == 0 else 1})"])
            if kind == "conv":
                channels, extent = self.convolution(channels, extent)
            elif "pool" not in kind or min(extent) > 1:
                self.then(kind.format(self.label()))
                extent = [e // 2 for e in extent] if "pool" in kind else extent
        end = choice(["global_avg_pool(x)", "flatten(x)", "reduce_max(x, axes = [2, 3])"])
        self.then(end)
        return channels * extent[0] * extent[1] if "flatten" in end else channels

    def sequence(self):
        self.shape = [self.chance.choice([1, 2, 5, 9]), self.chance.choice([4, 8])]
        return self.over_time(self.shape[1])

    def tokens(self):
        self.shape, width = [self.chance.choice([2, 5, 8])], self.chance.choice([4, 12])
        self.then(f"embedding@{self.label()}(x, {VOCABULARY}, {width})")
        return self.over_time(width)

    def over_time(self, width):
        for _ in range(self.chance.randint(1, 4)):
            cell, here = self.chance.choice(["rnn", "gru", "lstm"]), self.label()
            kind = self.chance.choice(["cell", f"x + attention@{here}(layer_norm@{self.label()}(x), 2)", f"layer_norm@{here}(x)",
                                       f"x + dense@{here}({self.activated('x')}, {width})"])
            if kind == "cell":
                width = self.chance.choice([4, 6, 8])
                others = [f", {here}_{name}" for name in ["last", "cell"]][:2 if cell == "lstm" else 1]
                self.then(f"{cell}@{here}(transpose(x, axes = [1, 0, 2]), {width})", "".join(others))
                kind = "transpose(x, axes = [1, 0, 2])"
            self.then(kind)
        end = self.chance.choice(["mean(x, axes = 1)", "flatten(x)", "reduce_max(x, axes = 1)"])
        self.then(end)
        return width * self.shape[0] if "flatten" in end else width

    def text(self):
        kind, shape = "i64" if self.integers else self.dtype, ", ".join(map(str, self.shape))
        wanted = f"label: i64[{self.batch}]" if "label" in self.loss else f"target: {self.dtype}[{self.batch}, {self.classes}]"
        return "\n".join(["nnc 1", 'use "nn"', "fn net(x, key, training = false) -> (y) {", *self.lines,
                          f"    y = dense@out({self.x}, {self.classes})", "}",
                          f"graph step(x: {kind}[{self.batch}, {shape}], {wanted}) -> (loss) {{",
                          "    state seed: i64[] = 7", "    seed <- seed + 1", "    y = net@net(x, seed, training = true)",
                          f"    loss = mean({self.loss})",
                          f"    minimize(loss, with = {self.optimiser}{self.through}{self.average})", "}",
                          f"graph run(x: {kind}[{self.other}, {shape}]) -> (y) {{ y = net@net(x, 0) }}", ""])

    def draw(self, rng, batch):
        shape = [batch, *self.shape]
        return rng.integers(0, VOCABULARY, shape) if self.integers else rng.standard_normal(shape)

    def draw_wanted(self, rng):
        return rng.integers(0, self.classes, self.batch) if "label" in self.loss else rng.standard_normal([self.batch, self.classes])


def library(arguments, source, folder, target, *flags):
    error = build.command([arguments.nnc, "compile", source, "-o", folder, "--emit", "c,shared", "--name", "model", "--target", target,
                           "--cc", arguments.cc, *flags])
    assert not error, error
    return Model(folder / "libmodel.so", "model", {}).stream()


def least_memory(arguments, source, folder, target):
    """Of a step alone, whose entry has the library's name for it."""
    words = [arguments.nnc, "compile", source, "-o", folder, "--graph", "step", "--target", target, "--memory-limit"]
    said = subprocess.run([*words, "1"], capture_output=True, text=True, check=False).stderr
    least = re.search(r"arena of ([\d,]+) bytes at least", said)
    assert least, said
    return library(arguments, source, folder, target, "--graph", "step", "--memory-limit", least[1].replace(",", ""))


def test(arguments, seed, target, folder):
    network, rng = Network(seed), np.random.default_rng(seed)
    source = folder / "net.nnc"
    source.write_text(network.text())

    def agree(what, ours, theirs):
        ours, theirs = np.float64(ours), np.float64(theirs)
        apart = np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-2)
        assert apart < WORST[network.dtype], f"{what}: {apart:.1e} of the largest value apart"

    plain = library(arguments, source, folder / "plain", "generic")
    packs = library(arguments, source, folder / "packs", target, "--pack", "--threads", "2")
    small = least_memory(arguments, source, folder / "small", target)
    (step_small,) = small.model.entry
    for number in range(STEPS):
        x, wanted, other = network.draw(rng, network.batch), network.draw_wanted(rng), network.draw(rng, network.other)
        loss = plain.step(x, wanted)
        agree(f"loss {number} packed", packs.step(x, wanted), loss)
        agree(f"loss {number} in the least memory", getattr(small, step_small)(x, wanted), loss)
        agree(f"outputs {number}", packs.run(other), plain.run(other))
    for name, array in plain.listed(plain.model.of.params, plain.params):
        agree(name, packs.param(name), array)
        agree(f"{name} in the least memory", small.param(name), array)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--cc", default="gcc -O0")
    arguments = parser.parse_args()
    arguments.nnc = arguments.nnc.resolve()  # Meson says ./nnc
    here = [t for t in TARGETS if build.available(t, arguments.cc)] or ["generic"]
    seeds = range(arguments.first, arguments.first + arguments.count)
    return build.report([(f"{seed} for {here[seed % len(here)]}", here[seed % len(here)], arguments.cc,
                          (arguments, seed, here[seed % len(here)])) for seed in seeds], test)


if __name__ == "__main__":
    sys.exit(main())
