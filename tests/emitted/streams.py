#!/usr/bin/python3
"""Models that keep something from call to call, over many calls, against the same networks in NumPy.

    streams.py --nnc build/nnc --models models [--target T ...] [--cc CC]

Each is compiled to a shared library, with weights drawn here, and called through its descriptor.  NumPy sees a whole
sequence at once where it can: windows and keys as they are written in a textbook, without a cache.  The arena is filled
with NaN before every call, so what lasts is in the state.  Speaks TAP: one result per model and target.
"""

import argparse
import ctypes
import json
import pathlib
import subprocess
import sys

import numpy as np

import build

sys.path.append(str(build.HERE.parent / "conform"))
from generators import fold_in, unit

# ---- Libraries and their descriptors, as runtime/nnc_model.h has them ----

Pointers = ctypes.POINTER(ctypes.c_void_p)
Run = ctypes.CFUNCTYPE(ctypes.c_int, Pointers, Pointers, *[ctypes.c_void_p] * 5)
ParamsInit = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
StateInit = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
Pack = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class TensorInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_char_p), ("rank", ctypes.c_int32),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("bytes", ctypes.c_size_t)]


class Entry(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("input_count", ctypes.c_uint32), ("output_count", ctypes.c_uint32),
                ("input", ctypes.POINTER(TensorInfo)), ("output", ctypes.POINTER(TensorInfo)), ("updated_params", ctypes.c_uint32),
                ("updated_states", ctypes.c_uint32), ("packed", ctypes.c_int32), ("run", Run)]


class Slot(ctypes.Structure):
    _fields_ = [("tensor", TensorInfo), ("offset", ctypes.c_size_t * 2), ("flag", ctypes.c_int32)]


class Block(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_size_t), ("count", ctypes.c_uint32), ("slot", ctypes.POINTER(Slot))]


class Descriptor(ctypes.Structure):
    _fields_ = [("abi", ctypes.c_uint32), ("name", ctypes.c_char_p), ("entry_count", ctypes.c_uint32),
                ("entry", ctypes.POINTER(Entry)), ("arena_bytes", ctypes.c_size_t), ("arena_alignment", ctypes.c_size_t),
                ("weights_bytes", ctypes.c_size_t), ("weights_checksum", ctypes.c_uint64), ("params", Block),
                ("state", Block), ("packed_bytes", ctypes.c_size_t), ("params_init", ParamsInit), ("state_init", StateInit),
                ("pack", Pack)]


DTYPES = {b"f32": np.float32, b"f64": np.float64, b"f16": np.float16, b"bf16": np.uint16, b"i8": np.int8, b"i16": np.int16,
          b"i32": np.int32, b"i64": np.int64, b"u64": np.uint64, b"u32": np.uint32, b"u16": np.uint16, b"u8": np.uint8, b"bool": np.bool_}


def aligned(size):
    memory = np.zeros(size + 64, np.uint8)
    begin = -memory.ctypes.data % 64
    return memory[begin:begin + max(size, 1)]  # an empty slice has no address of its own


def addresses(arrays):
    return (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))


class Model:
    """A compiled model; `weights` are what it was compiled with, by name."""

    def __init__(self, library, name, weights):
        self.of = Descriptor.in_dll(ctypes.CDLL(str(library)), f"{name}_model")
        assert self.of.abi == 5, "the model's descriptor is of another version"
        self.arena, self.weights, self.rubbish = aligned(self.of.arena_bytes), weights, 0xFF
        self.entry = {self.of.entry[i].name.decode(): self.of.entry[i] for i in range(self.of.entry_count)}

    def stream(self, seed=0):
        return Stream(self, seed)


class Stream:
    """A model with params and a state of its own: `stream.ENTRY(inputs...)` gives the outputs, one by itself."""

    def __init__(self, model, seed=0):
        self.model, self.params, self.state = model, aligned(model.of.params.bytes), aligned(model.of.state.bytes)
        self.packed = aligned(model.of.packed_bytes)
        self.params[:] = self.state[:] = self.packed[:] = 0xFF
        assert not model.of.params_init or model.of.params_init(self.params.ctypes.data, seed, None) == 0
        assert not model.of.state_init or model.of.state_init(self.state.ctypes.data, None) == 0

    def param(self, name):
        """The array as it lies in the block."""
        return next(a for n, a in self.listed(self.model.of.params, self.params) if n == name)

    @staticmethod
    def listed(block, memory):
        for slot in block.slot[:block.count]:
            info = slot.tensor
            at = slot.offset[int(slot.flag >= 0 and memory[slot.flag])]
            array = memory[at:at + info.bytes].view(DTYPES[info.dtype])
            yield info.name.decode(), array.reshape(info.shape[:info.rank])

    def __getattr__(self, name):
        return lambda *inputs: self.call(self.model.entry[name], inputs)

    def call(self, entry, inputs):
        assert len(inputs) == entry.input_count
        x = [np.ascontiguousarray(a, DTYPES[entry.input[i].dtype]) for i, a in enumerate(inputs)]
        y = [np.zeros(entry.output[i].shape[:entry.output[i].rank], DTYPES[entry.output[i].dtype])
             for i in range(entry.output_count)]
        assert [a.nbytes for a in x] == [entry.input[i].bytes for i in range(len(x))]
        self.model.arena[:] = self.model.rubbish
        if entry.packed:
            assert self.model.of.pack(self.params.ctypes.data, self.packed.ctypes.data) == 0
        params = self.packed if entry.packed else self.params
        assert entry.run(addresses(x), addresses(y), self.model.arena.ctypes.data, None, params.ctypes.data,
                         self.state.ctypes.data, None) == 0
        return y[0] if len(y) == 1 else y


def close(what, ours, theirs, worst=1e-4):
    """Within a share of the largest value."""
    apart = np.abs(np.asarray(ours, np.float64) - theirs).max() / max(np.abs(theirs).max(), 1e-30)
    assert apart < worst, f"{what}: {apart:.1e} of the largest value apart"  # NaN is too


# ---- Networks in NumPy, with the weights `w` ----


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def dense(w, label, x):
    return x @ w[label + ".weight"] + w.get(label + ".bias", 0)


def layer_norm(w, label, x):
    d = x - x.mean(axis=-1, keepdims=True)
    return d / np.sqrt((d * d).mean(axis=-1, keepdims=True) + 1e-5) * w[label + ".scale"] + w[label + ".bias"]


def gru(w, xs):
    """h after each frame."""
    h, hs = np.zeros(len(w["gru.hidden.weight"])), []
    for x in xs:
        xr, xz, xn = np.split(dense(w, "gru.input", x), 3)
        hr, hz, hn = np.split(dense(w, "gru.hidden", h), 3)
        z = sigmoid(xz + hz)
        h = (1 - z) * np.tanh(xn + sigmoid(xr + hr) * hn) + z * h
        hs.append(h)
    return np.array(hs)


def keywords(w, frames):
    """The probabilities after each frame: every layer over all of time at once."""
    h = np.maximum(dense(w, "stem", frames), 0)
    for i, dilation in enumerate([1, 2, 4, 8]):
        taps = w[f"block{i}.time.weight"]
        before = np.pad(h, ((dilation * (len(taps) - 1), 0), (0, 0)))
        y = sum(before[k * dilation:k * dilation + len(h)] * taps[k] for k in range(len(taps)))
        h = np.maximum(h + dense(w, f"block{i}.mix", np.maximum(y, 0)), 0)
    means, mean = [], 0
    for now in h:
        mean = 0.9 * mean + 0.1 * now
        means.append(mean)
    return softmax(dense(w, "out", np.array(means)))


def decoder(w, tokens, layers=4, heads=4, feed=""):
    """Logits after each token: attention over all of them at once, under a mask.  `feed` stands in front of the names of
    the layers that follow attention."""
    count, width = len(tokens), w["gpt.token.table"].shape[1]
    x = w["gpt.token.table"][tokens] + w["gpt.position.table"][:count]
    later = np.triu(np.ones((count, count), bool), 1)

    def split(part):
        return part.reshape(count, heads, width // heads).swapaxes(0, 1)

    for i in range(layers):
        label = f"gpt.layer{i}"
        q, k, v = map(split, np.split(dense(w, label + ".attention.qkv", layer_norm(w, label + ".norm1", x)), 3, axis=1))
        scores = q @ k.swapaxes(1, 2) / np.sqrt(width // heads)
        seen = softmax(np.where(later, -np.inf, scores)) @ v
        x = x + dense(w, label + ".attention.output", seen.swapaxes(0, 1).reshape(count, width))
        f = dense(w, label + feed + ".inner", layer_norm(w, label + ".norm2", x))
        f = 0.5 * f * (1 + np.tanh(np.sqrt(2 / np.pi) * (f + 0.044715 * f ** 3)))
        x = x + dense(w, label + feed + ".outer", f)
    return dense(w, "gpt.head", layer_norm(w, "gpt.norm", x))


# ---- What is tested of each ----


def check_running_mean(model, chance):
    stream, samples = model.stream(), chance.normal(3, 2, (100, 8))
    for n, x in enumerate(samples, 1):
        mean, variance = stream.observe(x)
        close(f"mean of {n}", mean, samples[:n].mean(axis=0))
        if n > 1:
            close(f"variance of {n}", variance, samples[:n].var(axis=0))
    expected = (samples[7] - samples.mean(axis=0)) / np.sqrt(samples.var(axis=0) + 1e-5)
    for _ in range(2):  # reads the state and leaves it as it is
        close("standardized", stream.standardize(samples[7]), expected)


def check_gru_stream(model, chance):
    xs, others = chance.normal(size=(2, 50, 24))
    stream, other, w = model.stream(), model.stream(), model.weights
    hs = gru(w, xs)
    for t, x in enumerate(xs):  # two streams side by side
        probability = stream.frame(x)
        other.frame(others[t])
        close(f"frame {t}", probability, softmax(dense(w, "classify.out", hs[t])))
    last, all_hs = other.sequence(xs)  # has no part in what `frame` keeps
    close("the sequence", all_hs, hs)
    close("frames and sequence", last, probability, 1e-5)
    close("the other stream goes on", other.frame(xs[0]),
          softmax(dense(w, "classify.out", gru(w, [*others, xs[0]])[-1])))


def check_keywords(model, chance):
    stream, frames = model.stream(), chance.normal(size=(40, 40))
    expected = keywords(model.weights, frames)
    for t, frame in enumerate(frames):
        close(f"frame {t}", stream.run(frame), expected[t])


def check_decoder(model, chance):
    prompt, made = list(chance.integers(0, 96, 6)), 20
    by_steps, at_once = model.stream(), model.stream()
    for at, token in enumerate(prompt):
        logits = by_steps.step(token, at)
        at_once.step(token, at)
        close(f"logits at {at}", logits, decoder(model.weights, prompt[:at + 1])[-1])

    tokens = prompt + [int(logits.argmax())]
    for at in range(len(prompt), len(prompt) + made):
        logits = by_steps.step(tokens[at], at)
        expected = decoder(model.weights, tokens)[-1]
        close(f"logits at {at}", logits, expected)
        assert logits.argmax() == expected.argmax(), f"at {at} another token is the likeliest"
        tokens.append(int(logits.argmax()))
    assert len(set(tokens)) > made // 2, f"dull: {tokens}"

    generated = at_once.generate(tokens[len(prompt)], len(prompt)).tolist()
    assert generated == tokens[len(prompt) + 1:], f"generated {generated}, step by step {tokens[len(prompt) + 1:]}"
    at = len(prompt) + made
    close("going on", at_once.step(tokens[at], at), by_steps.step(tokens[at], at))
    check_drawn(model, tokens[0], made)


def check_drawn(model, token, made, seed=-7, temperature=1.5):
    """Tokens drawn from a key are the largest of logits with noise from the same bits."""
    drawn = model.stream().sample(token, 0, seed, temperature).tolist()
    tokens = [token]
    for at in range(made):
        logits = decoder(model.weights, tokens)[-1]
        u = unit(int(fold_in(seed, at)), len(logits))[:len(logits)]
        with np.errstate(divide="ignore"):
            tokens.append(int((logits / temperature - np.log(-np.log(u))).argmax()))
    assert drawn == tokens[1:], f"drawn {drawn}, not {tokens[1:]}"
    assert model.stream().sample(token, 0, seed + 1, temperature).tolist() != drawn, "another seed draws the same"
    cold, likeliest = (model.stream().sample(token, 0, seed, 1e-4), model.stream().generate(token, 0))
    assert cold.tolist() == likeliest.tolist(), "at no temperature another token than the likeliest is drawn"


CHECKS = {"running_mean": check_running_mean, "gru_stream": check_gru_stream, "keywords": check_keywords,
          "decoder": check_decoder}

# ---- Weights, and the runs ----


def draw_weights(nnc, model, chance, *words):
    """By name: matrices keep the variance, embeddings have one of 1, vectors are near their defaults."""
    listed = json.loads(subprocess.check_output([nnc, "params", model, "--format", "json", *words], text=True))
    weights = {}
    for tensor in listed["tensors"]:
        if tensor["role"] != "param":
            continue
        name, shape = tensor["name"], tensor["shape"]
        noise = chance.normal(size=shape)
        fan_in = 1 if name.endswith(".table") else shape[0]
        weights[name] = (noise / np.sqrt(fan_in) if len(shape) == 2 else noise / 10 + name.endswith(".scale")).astype(np.float32)
    return weights


STORED = {"f4": "F32", "f2": "F16", "i2": "I16", "i1": "I8", "u1": "U8", "u2": "BF16"}  # which NumPy lacks


def write_safetensors(weights, path, dtypes=()):
    """Of those that NumPy has no dtype for, `dtypes` says which they are."""
    dtypes, header, end = dict(dtypes), {}, 0
    for name, array in weights.items():
        header[name] = {"dtype": dtypes.get(name) or STORED[array.dtype.str[1:]], "shape": array.shape, "data_offsets": [end, end + array.nbytes]}
        end += array.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(array.tobytes() for array in weights.values()))


def test(arguments, name, target, folder):
    """None, or what is wrong."""
    chance = np.random.default_rng(1)
    source = arguments.models / f"{name}.nnc"
    weights = draw_weights(arguments.nnc, source, chance)
    write_safetensors(weights, folder / "drawn.safetensors")
    stored = ["--weights-from", folder / "drawn.safetensors"] if weights else []
    error = build.command([arguments.nnc, "compile", source, "-o", folder, "--target", target, "--emit", "shared",
                           "--cc", arguments.cc, "--weights", "blob" if weights else "c", *stored])
    if error:
        return error
    weights = {name: array.astype(np.float64) for name, array in weights.items()}
    CHECKS[name](Model(folder / f"lib{name}.so", name, weights), chance)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--models", required=True, type=pathlib.Path)
    parser.add_argument("--target", nargs="*", default=build.TARGETS)
    parser.add_argument("--cc", default="gcc -O1")
    arguments = parser.parse_args()
    arguments.nnc = arguments.nnc.resolve()  # Meson says ./nnc
    return build.report([(f"{name} for {target}", target, arguments.cc, (arguments, name, target))
                         for name in CHECKS for target in arguments.target], test)


if __name__ == "__main__":
    sys.exit(main())
