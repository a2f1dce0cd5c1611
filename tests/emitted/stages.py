#!/usr/bin/python3
"""What gradients go through on their way to the optimiser, and averages of params, against the same steps in NumPy.

    stages.py --nnc build/nnc [--target T ...] [--cc CC]

The perceptron of training.py in f64, 24 steps with a fresh batch each: clipping, accumulation, scales of the loss, lists of
these, averages (all of them for the first target, lists of stages for the others); then accumulation, and optimisers of
parts, against the same written by hand, to the bit, gradients that f16 rounds to 0, and averages of what is not trained.
Speaks TAP: one result per case and target.
"""

import argparse
import pathlib
import sys

import numpy as np

import build
from streams import Model, close, draw_weights, softmax, write_safetensors
from training import adamw, perceptron, perceptron_gradients

STEPS = 24
BROKEN = (5, 6, 17)  # steps whose batch is not finite

MODEL = """nnc 1
use "nn"
fn net(x) -> (y) {{
    y = dense@out(tanh(dense@hidden(x, 16)), 5)
}}
graph run(x: f64[8, 7]) -> (p) {{ p = softmax(net@net(x)) }}
graph mean(x: f64[8, 7]) -> (p) {{ p = softmax(net@{average}(x)) }}
graph step(x: f64[8, 7], label: i64[8]) -> (loss) {{
    state scale: f32[] = 1024.0
    loss = mean(cross_entropy(net@net(x), label))
    minimize({loss}, with = {optimiser}{more})
}}
"""


# ---- Stages: gradients by name, and what lasts, to gradients and whether a step is made ----

def norm(arrays):
    return np.sqrt(sum((a * a).sum() for a in arrays))


def clip_by_value(limit):
    return lambda gs, m: ({n: np.clip(g, -limit, limit) for n, g in gs.items()}, True)


def clip_by_norm(limit):
    return lambda gs, m: ({n: g * limit / max(norm(gs.values()), limit) for n, g in gs.items()}, True)


def clip_each(limit):
    return lambda gs, m: ({n: g * limit / max(norm([g]), limit) for n, g in gs.items()}, True)


def accumulate(every):
    def stage(gs, m):
        seen = m.setdefault("accumulate", [])
        seen.append(gs)
        if len(seen) < every:
            return None, False
        m["accumulate"] = []
        return {n: sum(s[n] for s in seen) / every for n in gs}, True
    return stage


def unscale(scale):
    return lambda gs, m: (gs, all(np.isfinite(g).all() for g in gs.values()))


def adapt_scale(after):
    def stage(gs, m):
        _, go = unscale(0)(gs, m)
        m["good"] = m.get("good", 0) + 1 if go else 0
        grown = m["good"] >= after
        m["scale"] = m.get("scale", 1024.0) * (2 if grown else 1 if go else 0.5)
        m["good"] = 0 if grown else m["good"]
        return gs, go
    return stage


def adamw_at(rate):
    return lambda p, g, t, m: adamw(p, g, t, m, rate)


def sgd_at(rate):
    return lambda p, g, t, m: p - rate(t) * g


# name: loss, optimiser, what else minimize is given, the optimiser and the stages in NumPy, the decay of the average
CASES = {
    "values": ("loss", "sgd(rate = 0.5)", ", through = clip_by_value(0.01)", sgd_at(lambda t: 0.5), [clip_by_value(0.01)], None),
    "norm": ("loss", "adamw(rate = 0.02)", ", through = clip_by_norm(0.1)", adamw_at(0.02), [clip_by_norm(0.1)], None),
    "norm not reached": ("loss", "sgd(rate = 0.5)", ", through = clip_by_norm(100.0)", sgd_at(lambda t: 0.5), [], None),
    "each norm": ("loss", "sgd(rate = 0.5)", ", through = clip_by_norm(0.05, each = true)", sgd_at(lambda t: 0.5),
                  [clip_each(0.05)], None),
    "accumulated": ("loss", "adamw(rate = 0.02)", ", through = accumulate(3)", adamw_at(0.02), [accumulate(3)], None),
    "accumulated, each run": ("loss", "adamw(rate = 0.02)", ", through = accumulate(1)", adamw_at(0.02), [], None),
    "accumulated, then clipped": ("loss", "adamw(rate = 0.02)", ", through = [accumulate(5), clip_by_norm(0.1)]",
                                  adamw_at(0.02), [accumulate(5), clip_by_norm(0.1)], None),
    "clipped, then accumulated": ("loss", "adamw(rate = 0.02)", ", through = [clip_by_norm(0.1), accumulate(2)]",
                                  adamw_at(0.02), [clip_by_norm(0.1), accumulate(2)], None),
    "accumulated twice": ("loss", "adamw(rate = 0.02)", ", through = [accumulate(2), accumulate@more(3)]", adamw_at(0.02),
                          [accumulate(6)], None),
    "a schedule counts the runs": ("loss", "sgd(rate = linear(0.5, steps = 20))", ", through = accumulate(3)",
                                   sgd_at(lambda t: 0.5 * (1 - min((3 * t - 1) / 20, 1))), [accumulate(3)], None),
    "averaged": ("loss", "adamw(rate = 0.02)", ", average = ema(0.8)", adamw_at(0.02), [], 0.8),
    "averaged under a label": ("loss", "adamw(rate = 0.02)", ", average = ema@slow(0.9)", adamw_at(0.02), [], 0.9),
    "accumulated and averaged": ("loss", "adamw(rate = 0.02)", ", through = accumulate(2), average = ema(0.7)",
                                 adamw_at(0.02), [accumulate(2)], 0.7),
    "scaled": ("loss * 1024.0", "adamw(rate = 0.02)", ", through = unscale(1024.0)", adamw_at(0.02), [unscale(1024)], None),
    "scale that adapts": ("loss * f64(scale)", "adamw(rate = 0.02)", ", through = adapt_scale(scale, after = 4)",
                          adamw_at(0.02), [adapt_scale(4)], None),
    "scale that adapts, accumulated": ("loss * f64(scale)", "adamw(rate = 0.02)",
                                       ", through = [adapt_scale(scale, after = 4), accumulate(3)], average = ema(0.7)",
                                       adamw_at(0.02), [adapt_scale(4), accumulate(3)], 0.7),
}


def library(arguments, text, target, folder, *flags):
    """None or the error; libmodel.so lies in the folder."""
    (folder / "model.nnc").write_text(text)
    return build.command([arguments.nnc, "compile", folder / "model.nnc", "-o", folder, "--target", target, "--emit", "shared",
                          "--cc", arguments.cc, "--weights", "c", *flags])


def compare(name, stream, x, w, average, m):
    run, mean = (softmax(perceptron(weights, x)[0]) for weights in (w, average))
    near = 1e-6 if "schedule" in name or CASES[name][5] else 1e-9  # rates and decays are f32
    close("inference", stream.run(x), run, near)
    close("inference by averages", stream.mean(x), mean, near)
    if "scale" in m:
        scale = next(a for n, a in stream.listed(stream.model.of.state, stream.state) if n == "scale")
        assert scale == m["scale"], f"the scale is {scale}, not {m['scale']}"


def train(name, stream, w, average, chance):
    loss, _, _, optimiser, stages, decay = CASES[name]
    kept, m, steps = {key: {} for key in w}, {}, 0
    for t in range(1, STEPS + 1):
        x, label = chance.normal(size=(8, 7)), chance.integers(0, 5, 8)
        if "scale" in loss and t in BROKEN:
            x[3, 2] = np.inf
        with np.errstate(invalid="ignore"):
            value, g = perceptron_gradients(w, x, label)
        ours, go = stream.step(x, label), True
        for stage in stages:
            if go:
                g, go = stage(g, m)
        if np.isfinite(value):
            close(f"loss of step {t}", ours, value, 1e-6)
        if go:
            steps += 1
            w = {key: optimiser(w[key], g[key], steps, kept[key]) for key in w}
            d = min((steps - 1) / steps, decay) if decay else 0
            average = {key: average[key] * d + w[key] * (1 - d) for key in w}
        compare(name, stream, chance.normal(size=(8, 7)), w, average, m)
    assert steps, "no step was made"


def test(arguments, name, target, folder):
    """None, or what is wrong."""
    loss, optimiser, more, _, _, decay = CASES[name]
    chance = np.random.default_rng(3)
    prefix = "" if not decay else "slow." if "@slow" in more else "ema."
    text = MODEL.format(loss=loss, optimiser=optimiser, more=more, average=f"{prefix}net")
    (folder / "model.nnc").write_text(text)
    weights = draw_weights(arguments.nnc, folder / "model.nnc", chance)
    write_safetensors(weights, folder / "drawn.safetensors")
    error = library(arguments, text, target, folder, "--weights-from", folder / "drawn.safetensors", "--convert-weights")
    if error:
        return error
    w, average = ({key: weights[start + key].astype(np.float64) for key in weights if key.startswith("net.")}
                  for start in ("", prefix))
    train(name, Model(folder / "libmodel.so", "model", w).stream(), w, average, chance)
    return None


# ---- Without NumPy ----

BY_HAND = ["""nnc 1
use "nn"
graph step(x: f32[6, 5], target: f32[6, 3]) -> (loss) {
    param weight: f32[5, 3] = he_normal(seed = 1)
    loss = mse(tanh(x @ weight), target)
    minimize(loss, with = momentum(rate = 0.1), through = accumulate(3))
}
""", """nnc 1
use "nn"
graph step(x: f32[6, 5], target: f32[6, 3]) -> (loss) {
    param weight: f32[5, 3] = he_normal(seed = 1)
    state sum: f32[5, 3] = 0.0
    state v: f32[5, 3] = 0.0
    state count: i64[] = 0
    loss = mse(tanh(x @ weight), target)
    total = sum + grad(loss, wrt = [weight])
    go = count == 2
    v1 = v * 0.9 + total / 3.0
    count <- select(go, 0, count + 1)
    sum <- select(go, 0.0, total)
    v <- select(go, v1, v)
    weight <- select(go, weight - v1 * 0.1, weight)
}
"""]


def streams_of(arguments, texts, target, folder):
    """One for each, or the error."""
    streams = []
    for number, text in enumerate(texts):
        (folder / str(number)).mkdir()
        error = library(arguments, text, target, folder / str(number), "--init-missing")
        if error:
            return error
        streams.append(Model(folder / str(number) / "libstep.so", "step", {}).stream())
    return streams


def by_hand(arguments, target, folder):
    streams, chance = streams_of(arguments, BY_HAND, target, folder), np.random.default_rng(4)
    if isinstance(streams, str):
        return streams
    first = streams[0].param("weight").copy()
    for t in range(1, 11):
        x, y = chance.normal(size=(6, 5)), chance.normal(size=(6, 3))
        losses = [stream.run(x, y).tobytes() for stream in streams]
        weights = [stream.param("weight").tobytes() for stream in streams]
        if losses[0] != losses[1] or weights[0] != weights[1]:
            return f"other bits in run {t}"
        if (t < 3) != (weights[0] == first.tobytes()):
            return f"the first step is not made in run 3, as seen in run {t}"
    return None


# Parts of a network with optimisers of their own, one of which looks at the norm of its gradients alone, and one that stands
# still; the weight in the loop has a gradient from all rounds.
PARTS = """nnc 1
use "nn"
graph step(xs: f32[6, 4, 5], target: f32[4, 3]) -> (loss) {
    param first.weight: f32[5, 5] = he_normal(seed = 1)
    param first.bias: f32[5] = 0.1
    param first2.weight: f32[5, 5] = he_normal(seed = 2)
    param last.weight: f32[5, 3] = he_normal(seed = 3)
    (h) = scan (x in xs) with (h = zeros([4, 5])) {
        h1 = tanh(x @ first.weight + h @ first2.weight + first.bias)
    } next (h <- h1)
    loss = mse(h @ last.weight, target)
"""
PARTS = [PARTS + """
    minimize(loss, with = momentum(rate = 0.1), params = "first", through = clip_by_norm(0.01))
    minimize(loss, with = adamw(rate = 0.02), params = ["last.weight"])
}
""", PARTS + """
    (g1, g2, g3) = grad(loss, wrt = [first.weight, first.bias, last.weight])
    (h1, h2) = clip_by_norm([g1, g2], 0.01)
    first.weight <- momentum@a(first.weight, h1, rate = 0.1)
    first.bias <- momentum@b(first.bias, h2, rate = 0.1)
    last.weight <- adamw(last.weight, g3, rate = 0.02)
}
"""]


def parts(arguments, target, folder):
    streams, chance = streams_of(arguments, PARTS, target, folder), np.random.default_rng(6)
    if isinstance(streams, str):
        return streams
    names = ["first.weight", "first.bias", "last.weight"]
    for t in range(1, 7):
        before = [streams[0].param(name).copy() for name in names]
        x, y = chance.normal(size=(6, 4, 5)), chance.normal(size=(4, 3))
        if streams[0].run(x, y).tobytes() != streams[1].run(x, y).tobytes():
            return f"another loss in run {t}"
        for name, old in zip(names, before):
            if streams[0].param(name).tobytes() != streams[1].param(name).tobytes():
                return f"other bits of {name} in run {t}"
            if (streams[0].param(name) == old).all():
                return f"{name} does not move in run {t}"
    kept = [n for n, _ in streams[0].listed(streams[0].model.of.params, streams[0].params)]
    return None if sorted(kept) == sorted(names) else f"kept are {kept}: what stands still is a weight"


# Gradients of 1e-8, which f16 rounds to 0.
TINY = """nnc 1
use "nn"
graph step(x: f32[4]) -> (loss) {{
    param weight: f32[4] = 1.0
    loss = reduce_sum(f32(f16(x) * f16(weight))) * 1e-8
    minimize(loss * {0}, with = sgd(rate = 1e8), through = unscale({0}))
}}
"""


def tiny(arguments, target, folder):
    x = np.array([0.5, -1.0, 2.0, 0.25])
    for scale, wanted in ((65536.0, 1 - x), (1.0, np.ones(4))):
        (folder / str(scale)).mkdir()
        error = library(arguments, TINY.format(scale), target, folder / str(scale), "--init-missing")
        if error:
            return error
        stream = Model(folder / str(scale) / "libstep.so", "step", {}).stream()
        stream.run(x)
        close(f"weights with a scale of {scale}", stream.param("weight"), wanted, 1e-2)
    return None


# A thousandth of what the param has moved is less than f16 has digits for.
NARROW = """nnc 1
use "nn"
graph step(x: f16[3]) -> (loss) {
    param weight: f16[3] = 1.0
    loss = reduce_sum(x * weight)
    minimize(loss, with = sgd(rate = 1.0), average = ema)
}
"""


def narrow(arguments, target, folder):
    error = library(arguments, NARROW, target, folder, "--init-missing")
    if error:
        return error
    stream = Model(folder / "libstep.so", "step", {}).stream()
    wanted, moves, still = np.ones(3), np.array([0.25, -0.125, 0.5]), np.zeros(3)
    for t in range(1, 1501):
        stream.run(moves if t == 1100 else still)
        wanted += (stream.param("weight") - wanted) * max(1 / t, 0.001)
    close("averages of a param in f16", stream.param("ema.weight"), wanted, 1e-3)
    return None


# A network with running means and a frozen layer, and a teacher: the same with the averages.
TEACHER = """nnc 1
use "nn"
fn net(x, training = false) -> (y) {
    y = batch_norm(dense(stop_gradient(dense@frozen(x, 4)), 3), training = training)
}
graph step(x: f64[6, 5]) -> (loss) {
    loss = mse(net@net(x, training = true), stop_gradient(net@ema.net(x)))
    minimize(loss, with = sgd(rate = 0.1), average = ema(0.6))
}
graph infer(x: f64[6, 5]) -> (y) { y = net@ema.net(x) }
"""


def teacher(arguments, target, folder):
    error = library(arguments, TEACHER, target, folder, "--init-missing")
    if error:
        return error
    chance = np.random.default_rng(5)
    stream = Model(folder / "libmodel.so", "model", {}).stream()
    names = [n for n, _ in stream.listed(stream.model.of.params, stream.params) if n.startswith("net.")]
    frozen = ["net.frozen.weight", "net.frozen.bias"]  # kept with the averages, not with what is trained
    if sorted(names) != sorted(f"net.{n}" for n in ("dense.weight", "dense.bias", "batch_norm.scale", "batch_norm.bias",
                                                    "batch_norm.mean", "batch_norm.variance")):
        return f"trained and running are {names}"
    for t in range(1, 7):
        old = {n: stream.param(n).copy() for n in names}
        averages = {n: stream.param(f"ema.{n}").copy() for n in names + frozen}
        stream.step(chance.normal(size=(6, 5)))
        d = min((t - 1) / t, 0.6)
        for n in names:  # running means are averaged as the run finds them
            new = old[n] if n.endswith((".mean", ".variance")) else stream.param(n)
            if not np.allclose(stream.param(f"ema.{n}"), new + (averages[n] - new) * d, 1e-6, 1e-9):
                return f"ema.{n} after {t} runs"
        if t > 1 and any((stream.param(f"ema.{n}") != averages[n]).any() for n in frozen):
            return f"averages of frozen params change in run {t}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--target", nargs="*", default=["generic", "x86-64-v4"])
    parser.add_argument("--cc", default="gcc -O1")
    arguments = parser.parse_args()
    arguments.nnc = arguments.nnc.resolve()  # Meson says ./nnc
    cases = [(f"{name} for {target}", target, arguments.cc, (test, arguments, name, target))
             for name in CASES for target in arguments.target if target == arguments.target[0] or "," in name]
    for function, label in ((by_hand, "accumulated as by hand, to the bit"), (parts, "parts as by hand, to the bit"), (tiny, "gradients that f16 rounds to 0"), (narrow, "averages of f16"),
                            (teacher, "a teacher by averages, with running means")):
        cases += [(f"{label} for {target}", target, arguments.cc, (function, arguments, target)) for target in arguments.target]
    return build.report(cases, lambda function, *words: function(*words))


if __name__ == "__main__":
    sys.exit(main())
