#!/usr/bin/python3
"""Training steps with calls that are checkpointed, and without: the same bits in the evaluator and in emitted C, and a
smaller arena where there is something to save.

A kernel of other nodes may add up a sum in other lanes: the cases where that is so say it, and are close in C.

    recompute.py --nnc build/nnc [--target T ...] [--cc CC]

Each case is a model in which CHECKPOINT stands before calls.  Three steps follow one another; what `step` gives, and
what `run` then infers, are compared by their bits.  The arena is filled with NaN before every call.  Speaks TAP: one
result per case and target.
"""

import argparse
import json
import pathlib
import subprocess
import sys

import numpy as np

import build
from streams import Model

STEPS = 3


class Case:
    """The body of a function net(x, key), of which `run` and `step` are made; `shrinks`: the arena does; `lanes`: sums are
    added up in others."""

    def __init__(self, functions, net, shape="f32[16, 48]", shrinks=True, lanes=False,
                 loss="mean(square(net@net(x, key, true)))"):
        self.shrinks, self.lanes = shrinks, lanes
        self.text = f"""nnc 1
use "nn"
{functions}
fn net(x, key, training = false) -> (y) {{
{net}
}}
graph run(x: {shape}) -> (y) {{ y = net@net(x, i64(7)) }}
graph step(x: {shape}, key: i64[]) -> (loss) {{
    loss = {loss}
    minimize(loss, with = adam(rate = 0.01))
}}
"""

    def written(self, checkpointed):
        return self.text.replace("CHECKPOINT", "checkpoint" if checkpointed else "")


LAYER = "fn layer(x) -> (y) { y = gelu(dense(x, 48)) }"
DEEP = """    h = x
    for i in 0..6 carry h { h = CHECKPOINT layer@layer{i}(h) }
    y = h"""
BLOCK = """fn block(x) -> (y) {
    a = x + attention(layer_norm@norm1(x), 4)
    y = a + dense@outer(gelu_tanh(dense@inner(layer_norm@norm2(a), 64)), 16)
}"""
CONVOLUTIONS = """fn stage(x, training) -> (y) {
    h = relu(batch_norm@norm1(conv@first(x, 16, 3, pad = 1), training = training))
    y = max_pool(relu(batch_norm@norm2(conv@second(h, 16, 3, pad = 1), training = training)), window = 3, stride = 1, pad = 1)
}"""

CASES = {
    "layers": Case(LAYER, DEEP, shrinks=False),  # without, their GELUs are computed again as well
    "layers in f64": Case(LAYER, DEEP, "f64[16, 48]"),
    "odd extents": Case(LAYER.replace("48", "13"), DEEP, "f32[7, 13]", lanes=True),
    "nested": Case(LAYER + "\nfn pair(x) -> (y) { y = CHECKPOINT layer@two(CHECKPOINT layer@one(x)) }",
                   "    y = CHECKPOINT pair@c(CHECKPOINT pair@b(CHECKPOINT pair@a(x)))"),
    "in two levels": Case(LAYER + """
fn three(x) -> (y) {
    h = x
    for i in 0..3 carry h { h = CHECKPOINT layer@layer{i}(h) }
    y = h
}""", "    y = CHECKPOINT three@c(CHECKPOINT three@b(CHECKPOINT three@a(x)))"),
    "dropout": Case("fn layer(x, key) -> (y) { y = dropout(gelu(dense(x, 48)), 0.3, key) }", """    h = x
    for i in 0..5 carry h { h = CHECKPOINT layer@layer{i}(h, fold_in(key, i64(i))) }
    y = h""", lanes=True),
    "attention": Case(BLOCK, """    h = x
    for i in 0..3 carry h { h = CHECKPOINT block@block{i}(h) }
    y = h""", "f32[2, 12, 16]"),
    "convolutions, batch norm that trains": Case(CONVOLUTIONS, """    h = x
    for i in 0..3 carry h { h = CHECKPOINT stage@stage{i}(h, training) }
    y = h""", "f32[2, 3, 16, 16]"),
    "in a scan": Case("fn cell(x, h) -> (y) { y = tanh(dense@x(x, 32) + dense@h(h, 32)) }", """
    (h, ys) = scan (t in x) with (h = full(0.0, shape = [4, 32])) { n = CHECKPOINT cell@cell(t, h) } next (h <- n) stack (n)
    y = ys""", "f32[9, 4, 16]", shrinks=False),
    "in a long scan": Case("""fn cell(x, h, c) -> (m, d) {
    d = c * sigmoid(dense@f(h, 8) + dense@x(x, 8)) + tanh(dense@g(h, 8) + dense@i(x, 8))
    m = tanh(d)
}""", """
    zero = full(0.0, shape = [2, 8])
    (h, c, ys) = scan (t in x) with (h = zero, c = zero) { (m, d) = CHECKPOINT cell@cell(t, h, c) } next (h <- m, c <- d) stack (m + d)
    y = ys * h""", "f32[29, 2, 4]", shrinks=False),
    "in a loop that ends by what it computes": Case(LAYER.replace("48", "16"), """
    (h, n) = while (n < 11 and mean(square(h)) < 100.0) with (h = x, n = 0) max = 17 {
        g = dropout(CHECKPOINT layer@layer(h), 0.25, fold_in(key, i64(n)))
    } next (h <- g + h * 0.5, n <- n + 1)
    y = h""", "f32[4, 16]", shrinks=False),
    "in a loop that never ends by itself": Case(LAYER.replace("48", "16"), """
    (h, k) = while (mean(square(k)) < 1.0e9) with (h = x, k = x * 0.5) max = 41 {
        g = CHECKPOINT layer@layer(h)
    } next (h <- g + k, k <- k * 0.9)
    y = h""", "f32[4, 16]", shrinks=False),
    "in branches of a loop": Case(LAYER.replace("48", "16"), """
    (h, n) = while (n < 9) with (h = x, n = 0) {
        g = if (mean(h) > 0.0) { yield CHECKPOINT layer@one(h) } else { yield tanh(layer@two(h)) * 0.5 }
    } next (h <- g, n <- n + 1)
    y = h""", "f32[4, 16]", shrinks=False),
    "in scans of a scan": Case("fn cell(x, h) -> (y) { y = tanh(dense@x(x, 8) + dense@h(h, 8)) }", """
    (o, zs) = scan (row in x) with (o = full(0.0, shape = [2, 8])) {
        (h, ys) = scan (t in row) with (h = o) { n = CHECKPOINT cell@cell(t, h) } next (h <- n) stack (n)
    } next (o <- h) stack (mean(ys, 0))
    y = zs""", "f32[16, 9, 2, 4]", shrinks=False),
    "around a scan": Case("""fn sweep(x) -> (y) {
    (h, ys) = scan (t in x) with (h = full(0.0, shape = [4, 16])) {
        n = tanh(dense@x(t, 16) + dense@h(h, 16))
    } next (h <- n) stack (n)
    y = ys
}""", "    y = CHECKPOINT sweep@c(CHECKPOINT sweep@b(CHECKPOINT sweep@a(x)))", "f32[9, 4, 16]"),
    "around a loop and a branch": Case("""fn walk(x) -> (y) {
    (h, n) = while (n < 4) with (h = x, n = 0) {
        g = tanh(dense(h, 16))
    } next (h <- g, n <- n + 1)
    y = if (mean(x) > 0.0) { yield gelu(h) } else { yield h * h }
}""", "    y = CHECKPOINT walk@b(CHECKPOINT walk@a(x))", "f32[5, 16]"),
    "second order": Case(LAYER, DEEP, shrinks=False, lanes=True, loss="mean(square(grad(mean(square(net@net(x, key))), wrt = x)))"),
    "states": Case("""fn layer(x) -> (y) {
    state last: f32[16, 48] = 0.5
    y = tanh(dense(x + last, 48)) * last
    last <- y * 0.5 + 0.25
}""", "    y = CHECKPOINT layer@b(CHECKPOINT layer@a(x))", shrinks=False),
    "several results": Case("""fn fork(x) -> (a, b) {
    h = gelu(dense(x, 48))
    a = tanh(dense@a(h, 48))
    b = exp(-square(dense@b(h, 48)))
}""", """    (a, b) = CHECKPOINT fork@one(x)
    (c, d) = CHECKPOINT fork@two(a)
    (e, f) = CHECKPOINT fork@three(c * b)
    y = e * a + f * d"""),
    "shared params": Case("fn layer(x, w) -> (y) { y = gelu(x @ w) }", """
    param w: f32[48, 48] = glorot_uniform(seed = 1)
    y = CHECKPOINT layer(CHECKPOINT layer(CHECKPOINT layer(x, w), w), w)""", shrinks=False),
    "a gradient of its own": Case("""fn cube(x) -> (y) { y = x * x * x } gradient (d) -> (dx) { dx = d * y / x * 3.0 }
fn layer(x) -> (y) { y = CHECKPOINT cube(tanh(dense(x, 48)) + 2.0) }""", DEEP.replace("0..6", "0..3")),
    "in f16": Case("fn layer(x) -> (y) { y = f32(gelu(f16(dense(x, 48)))) }", DEEP),
    "the last call alone": Case(LAYER, "    y = CHECKPOINT layer@two(layer@one(x))", shrinks=False),
}


def emitted(arguments, source, target, *flags):
    """The outputs of three steps and a run, and the bytes of the arena; or what went wrong."""
    folder = source.parent / "out"
    error = build.command([arguments.nnc, "compile", source, "-o", folder, "--target", target, "--emit", "shared", "--cc",
                           arguments.cc, "--name", source.stem, *flags])
    if error:
        raise AssertionError(error)
    model = Model(folder / f"lib{source.stem}.so", source.stem, {})
    stream, chance, results = model.stream(), np.random.default_rng(1), []
    of = model.entry["step"].input[0]
    shape = of.shape[:of.rank]
    for step in range(STEPS):
        results.append(stream.step(chance.normal(size=shape), step))
    results.append(stream.run(chance.normal(size=shape)))
    return results


def peak(arguments, source, target):
    said = subprocess.check_output([str(arguments.nnc), "plan", str(source), "--graph", "step", "--target", target,
                                    "--format", "json"], stderr=subprocess.DEVNULL)
    return json.loads(said)["peak"]


def compare(a, b, lanes):
    """None, or what is wrong."""
    apart = np.abs(a - b).max() / np.abs(a).max()
    if not apart <= 1e-5:  # NaN is not
        return f"{apart:.1e} of the largest value apart"
    return None if lanes or a.tobytes() == b.tobytes() else f"other bits, {apart:.1e} of the largest value apart"


def evaluated(arguments, source):
    out = source.with_suffix(".npy")
    error = build.command([arguments.nnc, "run", source, "--graph", "step", "--target", "reference", "--input",
                           "x=random:3", "--input", "key=random:4", "--output", f"loss={out}"])
    if error:
        raise AssertionError(error)
    return np.load(out)


def test(arguments, case, target, folder):
    """None, or what is wrong."""
    sources = {False: folder / "kept.nnc", True: folder / "again.nnc"}
    for checkpointed, source in sources.items():
        source.write_text(case.written(checkpointed))
    if target == "reference":
        kept, again = (evaluated(arguments, source) for source in sources.values())
        return None if kept.tobytes() == again.tobytes() else "the evaluator's losses differ"
    kept, again = (emitted(arguments, source, target) for source in sources.values())
    for number, (a, b) in enumerate(zip(kept, again)):
        error = compare(a, b, case.lanes)
        if error:
            return f"result {number}: {error}"
    before, after = (peak(arguments, source, target) for source in sources.values())
    if case.shrinks and after >= before:
        return f"the arena went from {before} to {after} bytes"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--target", nargs="*", default=["reference", "generic", "x86-64-v4"])
    parser.add_argument("--cc", default="gcc -O0")  # the quickest; how well C is compiled is not the question
    parser.add_argument("--case")
    arguments = parser.parse_args()
    arguments.nnc = arguments.nnc.resolve()  # Meson says ./nnc
    compiler = {"reference": None}
    return build.report([(f"{name} for {target}", target, compiler.get(target, arguments.cc.split()[0]), (arguments, CASES[name], target))
                         for name in CASES for target in arguments.target if arguments.case in (None, name)], test)


if __name__ == "__main__":
    sys.exit(main())
