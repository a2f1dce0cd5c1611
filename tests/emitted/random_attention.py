#!/usr/bin/python3
"""Random attention, and random images of tokens, as emitted C against the evaluator.

    random_attention.py --nnc build/nnc [--target T ...] [--first N] [--count N] [--cc CC]

Attention of heads of any width, which lie side by side, one after the other or by themselves, with masks, more keys than
queries, and whatever stands in place of softmax; of 16, 32 and 64 bits.  Images that are made of tokens and tokens that
are made of images, between convolutions, norms, products, sums and rows by number.  Speaks TAP: one result per network.
"""

import argparse
import pathlib
import random
import sys

import build

DTYPES = ["f32"] * 6 + ["f16", "bf16", "f64"]
OPTIONS = [[], [], ["--threads", "2"], ["--exact"]]


class Text:
    """A graph: `inputs` as they are declared, and `lines`."""

    def __init__(self, chance):
        self.chance, self.inputs, self.lines = chance, [], []

    def take(self, name, dtype, *shape):
        self.inputs.append(f"{name}: {dtype}[{', '.join(map(str, shape))}]")

    def put(self, text):
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def text(self, *results):
        return "\n    ".join(["nnc 1", f'use "nn"\ngraph g({", ".join(self.inputs)}) -> ({", ".join(results)}) {{', *self.lines]) + "\n}\n"


# ---- Attention ----

WIDTHS = [1, 3, 4, 5, 8, 10, 12, 16, 17, 20, 24, 30, 32, 33, 36, 37, 40, 48, 64, 80]
ROWS = [1, 7, 8, 16, 17, 49, 64, 100, 196, 197, 400, 700]
BETWEEN = ["softmax({})"] * 5 + ["relu({})", "sigmoid({})", "{}", "square({})"]


def split_heads(t, dtype, batch, rows, heads, width):
    """One input that all come from, heads in the order of a fused product, or each of a product of its own."""
    kind = t.chance.choice(["fused", "thirds", "planes", "dense"])
    if kind == "planes":
        t.take("x", dtype, batch, 3 * heads * width, rows)
        whole = t.put(f"reshape(x, shape = [{batch}, 3, {heads}, {width}, {rows}])")
        parts = [t.put(f"slice({whole}, begin = [{i}], end = [{i + 1}], axes = [1])") for i in range(3)]
        return [t.put(f"transpose(reshape({p}, shape = [{batch}, {heads}, {width}, {rows}]), axes = [0, 1, 3, 2])") for p in parts]
    t.take("x", dtype, batch, rows, 3 * heads * width)
    if kind == "fused":
        whole = t.put(f"transpose(reshape(x, shape = [{batch}, {rows}, 3, {heads}, {width}]), axes = [2, 0, 3, 1, 4])")
        return [t.put(f"reshape({whole}[{i}:{i + 1}], shape = [{batch}, {heads}, {rows}, {width}])") for i in range(3)]
    if kind == "thirds":
        whole = t.put(f"transpose(reshape(x, shape = [{batch}, {rows}, {heads}, {3 * width}]), axes = [0, 2, 1, 3])")
        return [t.put(f"{whole}[:, :, :, {i * width}:{(i + 1) * width}]") for i in range(3)]
    parts = [t.put(f"dense@{name}(x, {heads * width})") for name in "qkv"]
    return [t.put(f"transpose(reshape({p}, shape = [{batch}, {rows}, {heads}, {width}]), axes = [0, 2, 1, 3])") for p in parts]


def attention(chance):
    t, choice = Text(chance), chance.choice
    dtype, batch, heads, width, rows = choice(DTYPES), choice([1, 1, 2, 3]), choice([1, 2, 3, 4, 6]), choice(WIDTHS), choice(ROWS)
    keys, wide = rows, width
    if chance.random() < 0.6:
        q, k, v = split_heads(t, dtype, batch, rows, heads, width)
    else:
        keys, wide, groups = choice([rows, 5, 64, 77, 300]), choice([width, 4, 20, 32]), choice([1, heads])
        t.take("q", dtype, batch, rows, heads, width)
        t.take("k", dtype, batch, keys, groups, width)
        t.take("v", dtype, batch, keys, groups, wide)
        q, k, v = (t.put(f"transpose({name}, axes = [0, 2, 1, 3])") for name in "qkv")
    score = t.put(f"matmul({q}, {k}, transpose_y = true)" + choice(["", " * 0.125", " / 8.0"]))
    mask = choice(["none", "all", "keys", "later", "cap", "lines", "near"])
    if mask == "all":
        t.take("mask", dtype, rows, keys)
        score = t.put(f"{score} + mask")
    elif mask == "keys":
        t.take("mask", dtype, batch, 1, 1, keys)
        score = t.put(f"{score} + mask")
    elif mask == "later":
        before = f"iota(axis = 0, shape = [{rows}, 1]) >= iota(axis = 1, shape = [1, {keys}])"
        score = t.put(f"select({before}, {score}, -inf)" if keys <= rows else f"tanh({score})")
    elif mask == "lines": # what is hidden begins so far beside each row
        hidden, first = choice(["-inf", "-30000.0", "-3.4e38" if dtype == "f32" else "-inf"]), choice([1, 1, keys - rows + 1, 8, 50])
        score = t.put(f"{score} + triu(full({hidden}, [{rows}, {keys}], {dtype}), {first})" + choice(["", f" + cast(f32(off_diagonal({rows}, {keys})), to = {dtype}) * 0.0625"]))
    elif mask == "near":
        first = choice([1, 5, 33])
        score = t.put(f"select(off_diagonal({rows}, {keys}) >= {first} or off_diagonal({rows}, {keys}) < {first - 60}, {choice(['-inf', '-30000.0'])}, {score})")
    elif mask == "cap":
        score = t.put(f"tanh({score} / 50.0) * 50.0")
    share = t.put((BETWEEN[0] if mask in ("later", "lines", "near") else choice(BETWEEN)).format(score))
    out = t.put(f"{share} @ {v}")
    joined = f"reshape(transpose({out}, axes = [0, 2, 1, 3]), shape = [{batch}, {rows}, {heads * wide}])"
    y = t.put(choice([f"{out} * 1.5", joined, f"dense@o({joined}, 20)", f"layer_norm@n({out})"]))
    return t.text(y, *([share] if chance.random() < 0.1 else []))


# ---- Images and tokens ----


class Image:
    """An image by its planes [batch, channels, height, width], by pixels [batch, height, width, channels], or as tokens."""

    def __init__(self, t):
        choice = t.chance.choice
        self.t, self.batch, self.extent = t, choice([1, 1, 2]), [choice([3, 8, 16, 24, 32, 48]), choice([2, 3, 6, 7, 8, 14]), choice([2, 4, 5, 8])]
        self.dtype, self.form, self.x = choice(["f32"] * 5 + ["f64", "f16"]), choice(["planes", "pixels", "tokens"]), "x"
        t.take("x", self.dtype, *self.shape(self.form))

    def shape(self, form):
        c, h, w = self.extent
        return [self.batch, *{"planes": [c, h, w], "pixels": [h, w, c], "tokens": [h * w, c]}[form]]

    def put(self, text):
        self.x = self.t.put(text)

    def reshape(self, shape):
        self.put(f"reshape({self.x}, shape = {shape})")

    def be(self, form):
        """Each goes to the others by way of pixels, or of rows of planes."""
        c, h, w = self.extent
        if self.form == "planes" and form != "planes":
            if form == "tokens" and self.t.chance.random() < 0.5:
                self.reshape([self.batch, c, h * w])
                self.put(f"transpose({self.x}, axes = [0, 2, 1])")
            else:
                self.put(f"transpose({self.x}, axes = [0, 2, 3, 1])")
                self.form = "pixels"
        if self.form == "pixels" and form == "planes":
            self.put(f"transpose({self.x}, axes = [0, 3, 1, 2])")
        elif self.form == "tokens" and form == "planes":
            self.put(f"transpose({self.x}, axes = [0, 2, 1])")
            self.reshape(self.shape("planes"))
        elif {self.form, form} == {"pixels", "tokens"}:
            self.reshape(self.shape(form))
        self.form = form

    def step(self, number, kept):
        choice, label = self.t.chance.choice, f"l{number}"
        kind = choice(["depthwise", "depthwise", "conv", "norm", "dense", "map", "gather", "pool", "add", "concat", "turn", "scale"])
        if kind in ("depthwise", "conv", "gather", "pool", "concat", "scale"):
            self.be("planes")
        elif kind in ("norm", "dense"):
            self.be(choice(["tokens", "pixels"]))
        if kind == "depthwise":
            self.put(f"depthwise_conv@{label}({self.x}, 3, pad = 1)")
        elif kind == "conv":
            self.extent[0] = choice([8, 16, 20, 32])
            self.put(f"conv@{label}({self.x}, {self.extent[0]}, 3, pad = 1)")
        elif kind == "norm":
            self.put(f"layer_norm@{label}({self.x})")
        elif kind == "dense":
            self.extent[0] = choice([8, 16, 24, 33])
            self.put(f"dense@{label}({self.x}, {self.extent[0]})")
        elif kind == "map":
            self.put(f"{choice(['relu', 'gelu', 'tanh', 'exp'])}({self.x} * 0.3)")
        elif kind == "gather":
            axis = choice([1, 2])
            self.extent[axis] = choice([self.extent[axis] * 2, 3])
            self.t.take(label, "i64", self.extent[axis])
            self.put(f"gather({self.x}, {label}, axis = {axis + 1})")
        elif kind == "pool" and min(self.extent[1:]) > 1:
            self.extent[1:] = [e // 2 for e in self.extent[1:]]
            self.put(f"max_pool({self.x}, window = 2, stride = 2)")
        elif kind == "scale":
            self.put(f"{self.x} * mean({self.x}, axes = [2, 3], keep = true)")
        elif kind == "turn":
            self.be(choice(["planes", "pixels", "tokens"]))
        elif kind in ("add", "concat"):
            self.join(kind, [k for k in kept if k[2][1 - (kind == "add"):] == self.extent[1 - (kind == "add"):]])
        kept.append((self.form, self.x, list(self.extent)))

    def join(self, kind, fitting):
        fitting = [k for k in fitting if kind == "add" or k[0] == "planes"]
        if not fitting:
            return
        form, other, extent = self.t.chance.choice(fitting)
        self.be(form)
        self.put(f"{self.x} + {other} * 0.5" if kind == "add" else f"concat({self.x}, {other}, axis = 1)")
        self.extent[0] += extent[0] if kind == "concat" else 0


def tokens(chance):
    t = Text(chance)
    image, kept = Image(t), []
    for number in range(chance.randint(2, 9)):
        image.step(number, kept)
    image.be(chance.choice(["planes", "pixels", "tokens"]))
    beside = [chance.choice(kept)[1]] if chance.random() < 0.3 else []
    return t.text(t.put(f"{image.x} * 1.0"), *(t.put(f"{name} + 1.0") for name in beside))


def test(arguments, seed, target, folder):
    chance = random.Random(seed)
    source = folder / "net.nnc"
    source.write_text((attention if seed % 2 else tokens)(chance))
    words = [arguments.nnc, "run", source, "--check", "--target", target, "--cc", arguments.cc, *chance.choice(OPTIONS)]
    names = [word.split("(")[-1].split(":")[0].strip() for word in source.read_text().split(") ->")[0].split("],")]
    inputs = [word for number, name in enumerate(names, 1) for word in ("--input", f"{name}=random:{number}")]
    error = build.command([*words, *inputs])
    assert not error, f"{error}\n{source.read_text()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--target", nargs="*", default=["generic", "x86-64-v2", "x86-64-v3", "x86-64-v4"], help="in turns")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--cc", default="gcc -O1")
    arguments = parser.parse_args()
    arguments.nnc = arguments.nnc.resolve()  # Meson says ./nnc
    here = [t for t in arguments.target if build.available(t, arguments.cc)] or ["generic"]
    cases = [(seed, here[seed // 2 % len(here)]) for seed in range(arguments.first, arguments.first + arguments.count)]
    return build.report([(f"{seed} for {target}", target, arguments.cc, (arguments, seed, target)) for seed, target in cases], test)


if __name__ == "__main__":
    sys.exit(main())
