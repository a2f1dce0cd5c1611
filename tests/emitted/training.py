#!/usr/bin/python3
"""Training steps of emitted libraries against the same steps in NumPy: losses, and what `run` then infers.

    training.py --nnc build/nnc [--target T ...] [--cc CC]

A perceptron in f64 for every optimiser and schedule of the library, and a small convolutional network; 50 steps each, a
fresh batch every time.  Gradients in NumPy are written by hand.  The arena is filled with NaN before every call.  Speaks
TAP: one result per network and target.
"""

import argparse
import math
import pathlib
import sys

import numpy as np

import build
from streams import Model, close, draw_weights, softmax, write_safetensors

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "conform"))
from convolutions import Geometry

STEPS = 50

PERCEPTRON = """nnc 1
use "nn"
fn net(x) -> (y) {{
    y = dense@out(tanh(dense@hidden(x, 16)), 5)
}}
graph run(x: f64[8, 7]) -> (p) {{ p = softmax(net@net(x)) }}
graph step(x: f64[8, 7], label: i64[8]) -> (loss) {{
    loss = mean(cross_entropy(net@net(x), label))
    minimize(loss, with = {0})
}}
"""

CONVOLUTIONAL = """nnc 1
use "nn"
fn net(x) -> (y) {
    h = max_pool(relu(conv@first(x, 6, 3, pad = 1)), window = 3, stride = 2, pad = 1)
    h = relu(conv@second(h, 8, 3, stride = 2, groups = 2))
    y = dense@out(flatten(avg_pool(h, window = 2, stride = 1)), 4)
}
graph run(x: f64[3, 2, 13, 12]) -> (p) { p = softmax(net@net(x)) }
graph step(x: f64[3, 2, 13, 12], label: i64[3]) -> (loss) {
    loss = mean(cross_entropy(net@net(x), label))
    minimize(loss, with = momentum(rate = 0.05))
}
""".replace("    h = relu(conv@second", "    g = relu(conv@second").replace("flatten(avg_pool(h,", "flatten(avg_pool(g,")


# ---- Optimisers: a step of one param; `t` counts from 1, `m` keeps what lasts ----

def momentum(p, g, t, m, rate=0.01, mass=0.9, nesterov=False):
    m["v"] = m.get("v", 0) * mass + g
    return p - rate * (g + mass * m["v"] if nesterov else m["v"])


def adagrad(p, g, t, m, rate=0.01):
    m["sum"] = m.get("sum", 0) + g * g
    return p - rate * g / (np.sqrt(m["sum"]) + 1e-10)


def rmsprop(p, g, t, m, rate=0.01, mass=0.99):
    m["v"] = m.get("v", 0) * mass + g * g * (1 - mass)
    return p - rate * g / (np.sqrt(m["v"]) + 1e-8)


def adam_step(g, t, m, eps=1e-8):
    m["m"] = m.get("m", 0) * 0.9 + g * 0.1
    m["v"] = m.get("v", 0) * 0.999 + g * g * 0.001
    return m["m"] / (1 - 0.9**t) / (np.sqrt(m["v"] / (1 - 0.999**t)) + eps)


def adam(p, g, t, m, rate=1e-3, decay=0.0):
    return p - rate * adam_step(g + p * decay, t, m)


def adamw(p, g, t, m, rate=1e-3, decay=0.01):
    return p - rate * (adam_step(g, t, m) + decay * p)


def lamb(p, g, t, m, rate=1e-3, decay=0.01):
    d = adam_step(g, t, m, 1e-6) + decay * p
    long, short = np.linalg.norm(p), np.linalg.norm(d)
    return p - rate * (long / short if long and short else 1) * d


def lion(p, g, t, m, rate=1e-4):
    s = np.sign(m.get("m", 0) * 0.9 + g * 0.1)
    m["m"] = m.get("m", 0) * 0.99 + g * 0.01
    return p - rate * s


def adadelta(p, g, t, m, rate=1.0):
    m["v"] = m.get("v", 0) * 0.9 + g * g * 0.1
    s = np.sqrt(m.get("s", 0) + 1e-6) / np.sqrt(m["v"] + 1e-6) * g
    m["s"] = m.get("s", 0) * 0.9 + s * s * 0.1
    return p - rate * s


def adamax(p, g, t, m, rate=2e-3):
    m["m"] = m.get("m", 0) * 0.9 + g * 0.1
    m["u"] = np.maximum(m.get("u", 0) * 0.999, np.abs(g) + 1e-8)
    return p - rate / (1 - 0.9**t) * m["m"] / m["u"]


def nadam(p, g, t, m, rate=2e-3):
    m["m"] = m.get("m", 0) * 0.9 + g * 0.1
    m["v"] = m.get("v", 0) * 0.999 + g * g * 0.001
    now, then = (0.9 * (1 - 0.5 * 0.96 ** (i * 4e-3)) for i in (t, t + 1))
    m["all"] = m.get("all", 1) * now
    s = g * (1 - now) / (1 - m["all"]) + m["m"] * then / (1 - m["all"] * then)
    return p - rate * s / (np.sqrt(m["v"] / (1 - 0.999**t)) + 1e-8)


def radam(p, g, t, m, rate=1e-3):
    m["m"] = m.get("m", 0) * 0.9 + g * 0.1
    m["v"] = m.get("v", 0) * 0.999 + g * g * 0.001
    most = 2 / 0.001 - 1
    length = most - 2 * t * 0.999**t / (1 - 0.999**t)
    trust = 1
    if length > 5:
        trust = math.sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length))
        trust = trust * math.sqrt(1 - 0.999**t) / (np.sqrt(m["v"]) + 1e-8)
    return p - rate * m["m"] / (1 - 0.9**t) * trust


def adafactor(p, g, t, m, rate=0.01):
    tiny, new = np.finfo(p.dtype).eps, t**-0.8
    mix = lambda name, value: m.update({name: m.get(name, 0) + (value - m.get(name, 0)) * new})
    if p.ndim > 1:
        mix("rows", (g * g).mean(-1, keepdims=True))
        mix("columns", (g * g).mean(-2, keepdims=True))
        v = m["rows"] * m["columns"] / max(m["rows"].mean(), tiny)
    else:
        mix("all", g * g)
        v = m["all"]
    s = g / np.sqrt(np.maximum(v, tiny * tiny))
    pace = max(np.sqrt((p * p).mean()), 1e-3) * min(rate, t**-0.5) / max(np.sqrt((s * s).mean()), 1)
    return p - pace * s


def at_rate(rate):
    """Plain descent at a rate that depends on the step."""
    return lambda p, g, t, m: p - rate(t) * g


OPTIMISERS = {
    "sgd(rate = 0.5)": at_rate(lambda t: 0.5),
    "sgd": at_rate(lambda t: 0.01),
    "sgd(rate = 0.5, decay = 0.1)": lambda p, g, t, m: p - 0.5 * (g + 0.1 * p),
    "sgd(rate = 0.5, l1 = 0.01)": lambda p, g, t, m: p - 0.5 * (g + 0.01 * np.sign(p)),
    "momentum(rate = 0.1)": lambda p, g, t, m: momentum(p, g, t, m, 0.1),
    "momentum(rate = 0.1, mass = 0.8, nesterov = true)": lambda p, g, t, m: momentum(p, g, t, m, 0.1, 0.8, True),
    "adagrad(rate = 0.1)": lambda p, g, t, m: adagrad(p, g, t, m, 0.1),
    "rmsprop": rmsprop,
    "adam(rate = 0.02)": lambda p, g, t, m: adam(p, g, t, m, 0.02),
    "adam@other(decay = 0.1)": lambda p, g, t, m: adam(p, g, t, m, decay=0.1),
    "adamw(rate = 0.02)": lambda p, g, t, m: adamw(p, g, t, m, 0.02),
    "lamb": lamb,
    "adadelta": adadelta,
    "adamax(rate = 0.02)": lambda p, g, t, m: adamax(p, g, t, m, 0.02),
    "nadam(rate = 0.02)": lambda p, g, t, m: nadam(p, g, t, m, 0.02),
    "radam(rate = 0.02)": lambda p, g, t, m: radam(p, g, t, m, 0.02),
    "adafactor(rate = 0.05)": lambda p, g, t, m: adafactor(p, g, t, m, 0.05),
    "lion(rate = 0.003)": lambda p, g, t, m: lion(p, g, t, m, 0.003),
    "sgd(rate = cosine(0.5, steps = 30, least = 0.1))":
        at_rate(lambda t: 0.1 + 0.4 * (0.5 + 0.5 * np.cos(np.pi * min((t - 1) / 30, 1)))),
    "sgd(rate = warm_up(linear(0.5, steps = 40, last = 0.1), steps = 10))":
        at_rate(lambda t: min(t / 10, 1) * (0.5 - 0.4 * min((t - 1) / 40, 1))),
    "sgd(rate = stepwise(0.5, every = 20, factor = 0.5))": at_rate(lambda t: 0.5 * 0.5**((t - 1) // 20)),
    "sgd(rate = exponential(0.5, steps = 25))": at_rate(lambda t: 0.5 * 0.1**((t - 1) / 25)),
}


# ---- Networks: the loss and the gradients of `w` by hand ----

def cross_entropy(logits, label):
    """The mean loss, and its gradient."""
    p, rows = softmax(logits), np.arange(len(label))
    d = p.copy()
    d[rows, label] -= 1
    return -np.log(p[rows, label]).mean(), d / len(label)


def perceptron(w, x):
    h = np.tanh(x @ w["net.hidden.weight"] + w["net.hidden.bias"])
    return h @ w["net.out.weight"] + w["net.out.bias"], h


def perceptron_gradients(w, x, label):
    logits, h = perceptron(w, x)
    loss, d = cross_entropy(logits, label)
    dh = d @ w["net.out.weight"].T * (1 - h * h)
    return loss, {"net.out.weight": h.T @ d, "net.out.bias": d.sum(axis=0), "net.hidden.weight": x.T @ dh,
                  "net.hidden.bias": dh.sum(axis=0)}


FIRST = Geometry((13, 12), pad=(1, 1, 1, 1))
SECOND = Geometry((7, 6), stride=(2, 2), groups=2)


def convolve(geometry, x, weight, bias, out):
    top, left, bottom, right = geometry.pad
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    y = np.zeros((len(x), len(weight)) + out)
    for i in range(3):
        for j in range(3):
            seen = geometry.grouped(geometry.seen(padded, i, j, out), 1)
            y += np.einsum("ngchw,goc->ngohw", seen, geometry.grouped(weight[:, :, i, j], 0)).reshape(y.shape)
    return y + bias[:, None, None]


def windows_of(size, stride, pad, extent):
    count = (extent + 2 * pad - size) // stride + 1
    return [slice(max(i * stride - pad, 0), i * stride - pad + size) for i in range(count)]


def each_window(x, size, stride, pad):
    for i, rows in enumerate(windows_of(size, stride, pad, x.shape[2])):
        for j, columns in enumerate(windows_of(size, stride, pad, x.shape[3])):
            yield i, j, (slice(None), slice(None), rows, columns)


def convolutional(w, x):
    kept = {"x": x, "a": np.maximum(convolve(FIRST, x, w["net.first.weight"], w["net.first.bias"], (13, 12)), 0)}
    kept["p"] = np.zeros((len(x), 6, 7, 6))
    for i, j, at in each_window(kept["a"], 3, 2, 1):
        kept["p"][:, :, i, j] = kept["a"][at].max(axis=(2, 3))
    kept["b"] = np.maximum(convolve(SECOND, kept["p"], w["net.second.weight"], w["net.second.bias"], (3, 2)), 0)
    kept["m"] = np.zeros((len(x), 8, 2, 1))
    for i, j, at in each_window(kept["b"], 2, 1, 0):
        kept["m"][:, :, i, j] = kept["b"][at].mean(axis=(2, 3))
    kept["f"] = kept["m"].reshape(len(x), -1)
    return kept["f"] @ w["net.out.weight"] + w["net.out.bias"], kept


def convolutional_gradients(w, x, label):
    logits, kept = convolutional(w, x)
    loss, d = cross_entropy(logits, label)
    g = {"net.out.weight": kept["f"].T @ d, "net.out.bias": d.sum(axis=0)}
    dm = (d @ w["net.out.weight"].T).reshape(kept["m"].shape)
    db = np.zeros_like(kept["b"])
    for i, j, at in each_window(kept["b"], 2, 1, 0):
        db[at] += dm[:, :, i, j, None, None] / 4
    db *= kept["b"] > 0
    g["net.second.weight"] = SECOND.to_weight(kept["p"], db, (3, 3))
    g["net.second.bias"] = db.sum(axis=(0, 2, 3))
    dp, da = SECOND.to_image(db, w["net.second.weight"]), np.zeros_like(kept["a"])
    for i, j, at in each_window(kept["a"], 3, 2, 1):
        match = kept["a"][at] == kept["p"][:, :, i, j, None, None]
        da[at] += match * (dp[:, :, i, j] / match.sum(axis=(2, 3)))[:, :, None, None]
    da *= kept["a"] > 0
    g["net.first.weight"], g["net.first.bias"] = FIRST.to_weight(x, da, (3, 3)), da.sum(axis=(0, 2, 3))
    return loss, g


NETWORKS = {f"perceptron, {optimiser}": (PERCEPTRON.format(optimiser), (8, 7), 5, perceptron, perceptron_gradients, step)
            for optimiser, step in OPTIMISERS.items()}
NETWORKS["convolutional"] = (CONVOLUTIONAL, (3, 2, 13, 12), 4, convolutional, convolutional_gradients,
                             lambda p, g, t, m: momentum(p, g, t, m, 0.05))


def test(arguments, name, target, folder):
    """None, or what is wrong."""
    text, shape, classes, forward, gradients, step = NETWORKS[name]
    chance = np.random.default_rng(3)
    source = folder / "model.nnc"
    source.write_text(text)
    weights = draw_weights(arguments.nnc, source, chance)
    write_safetensors(weights, folder / "drawn.safetensors")
    error = build.command([arguments.nnc, "compile", source, "-o", folder, "--target", target, "--emit", "shared", "--cc",
                           arguments.cc, "--weights", "c", "--weights-from", folder / "drawn.safetensors",
                           "--convert-weights"])
    if error:
        return error
    w = {key: array.astype(np.float64) for key, array in weights.items()}
    kept = {key: {} for key in w}
    near = 1e-6 if "rate = " in name and "steps" in name else 1e-9  # schedules are f32
    stream = Model(folder / "libmodel.so", "model", w).stream()
    for t in range(1, STEPS + 1):
        x, label = chance.normal(size=shape), chance.integers(0, classes, shape[0])
        loss, g = gradients(w, x, label)
        close(f"loss of step {t}", stream.step(x, label), loss, near)
        w = {key: step(w[key], g[key], t, kept[key]) for key in w}
    close("inference afterwards", stream.run(x), softmax(forward(w, x)[0]), 10 * near)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--target", nargs="*", default=["generic", "x86-64-v4"])
    parser.add_argument("--cc", default="gcc -O1")
    arguments = parser.parse_args()
    arguments.nnc = arguments.nnc.resolve()  # Meson says ./nnc
    return build.report([(f"{name} for {target}", target, arguments.cc, (arguments, name, target))
                         for name in NETWORKS for target in arguments.target], test)


if __name__ == "__main__":
    sys.exit(main())
