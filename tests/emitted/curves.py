#!/usr/bin/python3
"""Training curves of the networks of tests/bench/training and of Owl's digits, reduced, against the same 50 steps in NumPy.

    curves.py --nnc build/nnc --root . [--target T ...] [--cc CC] [--network NAME]

The models are the files themselves with smaller extents, in f64 and in f32; NumPy has the tape of tape.py, in f64.  Each
loss and, at the end, each param is compared.  Two trainings go side by side on one library, with other rubbish in the
arena: they must come to the same bits.  Speaks TAP: one result per network, dtype and target.
"""

import argparse
import pathlib
import sys

import numpy as np

import build
from streams import Model, close, draw_weights, write_safetensors
from tape import Value, convolve, cross_entropy, max_pool, relu, sigmoid, softmax, tanh
from training import adagrad, adam, adamw, momentum

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "conform"))
from generators import unit

STEPS = 50
SEED = 9  # of batches: with it no operand of a ReLU comes so near to 0 that f32 may be on the other side


# ---- Networks: the loss of a batch, by the params `w`, which are values; `running` gets what is kept of the batch ----

def dense(w, label, x):
    y = x @ w[label + ".weight"]
    return y + w[label + ".bias"] if label + ".bias" in w else y


def channels(v):
    return v.reshape(-1, 1, 1)


def mnist(w, running, image, label, seed):
    h = convolve(Value(image / 256), w["net.conv1.weight"], pad=2) + channels(w["net.conv1.bias"])
    h = max_pool(relu(h))
    keep = unit(int(seed), h.array.size)[:h.array.size].reshape(h.array.shape) >= np.float32(0.1)
    f = relu(dense(w, "net.hidden", (h * (keep / 0.9)).reshape(len(image), -1)))
    return cross_entropy(dense(w, "net.out", f), label)


def resnet8(w, running, image, label):
    def unit_of(conv, norm, x, stride=1):
        """A convolution, normalised by its batch, of which the running means are kept."""
        x = convolve(x, w[conv + ".weight"], stride, pad=1) + channels(w[conv + ".bias"])
        m = x.mean((0, 2, 3))
        v = ((x - m)**2).mean((0, 2, 3))
        count = x.array.size / m.array.size
        running[norm + ".norm.mean"] = m.array.reshape(-1)
        running[norm + ".norm.variance"] = v.array.reshape(-1) * count / (count - 1)
        return (x - m) * (v + 1e-5)**-0.5 * channels(w[norm + ".norm.scale"]) + channels(w[norm + ".norm.bias"])

    x = relu(unit_of("conv1", "bn1", Value(image)))
    for stack, stride in ("stack1", 1), ("stack2", 2), ("stack3", 2):
        h = relu(unit_of(f"{stack}.conv1", f"{stack}.bn1", x, stride))
        short = f"{stack}.shortcut"
        s = convolve(x, w[short + ".weight"], stride) + channels(w[short + ".bias"]) if stride > 1 else x
        x = relu(unit_of(f"{stack}.conv2", f"{stack}.bn2", h) + s)
    return cross_entropy(dense(w, "out", x.mean((2, 3)).reshape(len(image), -1)), label)


def lstm(w, running, xs, target):
    h = c = Value(np.zeros(target.shape))
    width = target.shape[1]
    for x in xs:
        z = dense(w, "lstm.input", Value(x)) + dense(w, "lstm.hidden", h)
        i, f, g, o = (z[:, k * width:(k + 1) * width] for k in range(4))
        c = sigmoid(f) * c + sigmoid(i) * tanh(g)
        h = sigmoid(o) * tanh(c)
    return ((h - target)**2).mean()


def layer_norm(w, label, x):
    d = x - x.mean(-1)
    return d * ((d * d).mean(-1) + 1e-5)**-0.5 * w[label + ".scale"] + w[label + ".bias"]


def gpt(w, running, token, after, heads=2, layers=2):
    n, t = token.shape
    x = w["token.table"][token] + w["position.table"][np.arange(t)]
    width = x.array.shape[2]

    def split(part):
        return part.reshape(n, t, heads, width // heads).transpose(0, 2, 1, 3)

    for i in range(layers):
        norm = layer_norm(w, f"layer{i}.norm1", x)
        q, k, v = (split(dense(w, f"layer{i}.attention.{part}", norm)) for part in ("query", "key", "value"))
        scores = q @ k.transpose(0, 1, 3, 2) * (width // heads)**-0.5 + np.triu(np.full((t, t), -1e9), 1)
        seen = (softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(n, t, width)
        x = x + dense(w, f"layer{i}.attention.output", seen)
        f = dense(w, f"layer{i}.inner", layer_norm(w, f"layer{i}.norm2", x))
        f = f * 0.5 * (tanh((f + f**3 * 0.044715) * np.sqrt(2 / np.pi)) + 1.0)
        x = x + dense(w, f"layer{i}.outer", f)
    return cross_entropy(dense(w, "head", layer_norm(w, "norm", x)).reshape(n * t, -1), after.reshape(-1))


# ---- Their models, how the params go on, and batches ----

class Network:
    """`changes` are replacements of text that make it small, `widened` those that f64 takes besides; `near` is how near
    the f64 comes, where a part of it stays f32."""

    def __init__(self, file, changes, defines, loss, step, batch, widened=(), near=1e-9):
        self.file, self.changes, self.widened = file, changes, [*widened, ("f32[", "f64[")]
        self.defines = [word for define in defines.split() for word in ("-D", define)]
        self.loss, self.step, self.batch, self.near = loss, step, batch, {"f64": near, "f32": 1e-4}
        self.known = None

    def text(self, root, dtype):
        text = (root / self.file).read_text()
        for old, new in self.changes + (self.widened if dtype == "f64" else []):
            assert old in text, f"{self.file} has no {old}"
            text = text.replace(old, new)
        return text

    def curve(self, weights):
        """The losses of all steps and the params at the end, by NumPy; worked out once, for all dtypes and targets."""
        self.known = self.known or self.learn({key: array.astype(np.float64) for key, array in weights.items()})
        return self.known

    def learn(self, w):
        losses, kept, chance = [], {key: {} for key in w}, np.random.default_rng(SEED)
        for t in range(1, STEPS + 1):
            values, running = {key: Value(array) for key, array in w.items()}, {}
            loss = self.loss(values, running, *self.batch(chance, t))
            loss.backward()
            losses.append(float(loss.array.sum()))
            w = {key: 0.9 * w[key] + 0.1 * running[key] if key in running else self.step(w[key], values[key].gradient, t, kept[key])
                 for key in w}
        return losses, w


def numbers(chance, *shape):
    return chance.normal(size=shape).astype(np.float32)


EMBEDDED = "embedding@token(token, VOCABULARY, WIDTH) + embedding@position(at, CONTEXT, WIDTH)"  # whose tables are f32
NETWORKS = {
    "mnist": Network(
        "models/owl/mnist.nnc", [("28, 28", "10, 11"), (", 32, 5", ", 4, 5"), ("1024", "12")], "N=6", mnist,
        lambda p, g, t, m: adagrad(p, g, t, m, 0.005),
        lambda chance, t: [numbers(chance, 6, 1, 10, 11) * 100, chance.integers(0, 10, 6), np.int64(t * 7 - 100)]),
    "resnet8": Network(
        "tests/bench/training/resnet8.nnc", [("32, 32", "9, 8"), (" 16, ", " 4, "), (" 32, 2", " 6, 2"), (" 64, 2", " 8, 2")], "N=4",
        resnet8, momentum, lambda chance, t: [numbers(chance, 4, 3, 9, 8), chance.integers(0, 10, 4)]),
    "lstm": Network(
        "tests/bench/training/lstm.nnc", [], "N=3 T=9 INPUT=5 WIDTH=6", lstm, adam,
        lambda chance, t: [numbers(chance, 9, 3, 5), numbers(chance, 3, 6)]),
    "gpt": Network(
        "tests/bench/training/gpt.nnc", [], "N=2 CONTEXT=7 LAYERS=2 HEADS=2 WIDTH=8 VOCABULARY=11", gpt, adamw,
        lambda chance, t: [chance.integers(0, 11, (2, 7)), chance.integers(0, 11, (2, 7))],
        widened=[(EMBEDDED, f"cast({EMBEDDED}, to = f64)"), ("-1e9, 0.0", "-1e9, f64(0.0)")], near=1e-5),
}


def follow(network, dtype, library, weights):
    """Fails where a loss or a param is not NumPy's, or a second training has other bits."""
    losses, w = network.curve(weights)
    chance, one, two = np.random.default_rng(SEED), Model(library, "model", weights).stream(), Model(library, "model", weights).stream()
    two.model.rubbish = 0x55
    for t, loss in enumerate(losses, 1):
        batch = network.batch(chance, t)
        ours, again = one.run(*batch), two.run(*batch)
        close(f"loss of step {t}", ours, loss, network.near[dtype])
        assert ours.tobytes() == again.tobytes(), f"step {t} has other bits in a second training"
    for name in w:
        if not (dtype == "f32" and name.endswith("key.bias")):  # its gradient is 0 but for rounding, which Adam makes large
            close(name, one.param(name), w[name], 30 * network.near[dtype])
    assert np.array_equal(one.params, two.params) and np.array_equal(one.state, two.state), "a second training has other bits"


def test(arguments, name, dtype, target, folder):
    """None, or what is wrong."""
    network, source = NETWORKS[name], folder / "model.nnc"
    source.write_text(network.text(arguments.root, dtype))
    weights = draw_weights(arguments.nnc, source, np.random.default_rng(3), *network.defines)
    write_safetensors(weights, folder / "drawn.safetensors")
    error = build.command([arguments.nnc, "compile", source, "--graph", "step", "--name", "model", "-o", folder, "--target", target,
                           "--emit", "shared", "--cc", arguments.cc, "--weights-from", folder / "drawn.safetensors", "--convert-weights",
                           *network.defines])
    if error:
        return error
    follow(network, dtype, folder / "libmodel.so", weights)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--root", required=True, type=pathlib.Path)
    parser.add_argument("--target", nargs="*", default=["generic", "x86-64-v4"])
    parser.add_argument("--cc", default="gcc -O0")
    parser.add_argument("--network", nargs="*", default=NETWORKS)
    arguments = parser.parse_args()
    arguments.nnc = arguments.nnc.resolve()  # Meson says ./nnc
    return build.report([(f"{name} in {dtype} for {target}", target, arguments.cc.split()[0], (arguments, name, dtype, target))
                         for name in arguments.network for dtype in ("f64", "f32") for target in arguments.target], test)


if __name__ == "__main__":
    sys.exit(main())
