#!/usr/bin/python3
"""Contractions by instructions that add up several products: sums of bf16 have NumPy's bits, added in the order that the
instruction's manual says, C compilers make these instructions, and threads shape tile registers of their own.

    dots.py --nnc build/nnc [--target T ...] [--cc CC ...]

Where a target has no such instruction, sums of bf16 are only near those in f64.  Speaks TAP.
"""

import shutil
import subprocess
import sys

import numpy as np

import build
from integers import Cases, convolve, whole
from streams import Model, write_safetensors

DRAW = np.random.default_rng(5)
RECIPES = {"x86-64-v4-vnni": "pairs", "x86-64-v4-amx": "amx"}  # that add up pairs of bf16
INSTRUCTIONS = {"x86-64-v4-vnni": ["vpdpbusd", "vpdpwssd", "vdpbf16ps"],
                "x86-64-v4-amx": ["ldtilecfg", "tileloadd", "tilezero", "tdpbusd", "tdpbf16ps", "tilestored", "tilerelease"]}
FLAGS = ["-O1", "-ffp-contract=fast", "-fno-math-errno"]


def brains(*shape):
    """Numbers of 8 bits and all signs, as bf16 has them; some are 0."""
    x = DRAW.standard_normal(shape).astype(np.float32) * np.exp2(DRAW.integers(-4, 5, shape)).astype(np.float32)
    return ((x * (DRAW.random(shape) < 0.95)).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def bits(x):
    return (x.view(np.uint32) >> 16).astype(np.uint16)


def even(x, w):
    """Of an odd depth the last has a neighbour of 0."""
    return np.pad(x, ((0, 0), (0, x.shape[1] % 2))), np.pad(w, ((0, w.shape[0] % 2), (0, 0)))


def sums_by_pairs(x, w):
    """x [rows, depth] by w [depth, columns]: of each pair of the depth the second product before the first, in f32."""
    total = np.zeros((x.shape[0], w.shape[1]), np.float32)
    for k in range(0, x.shape[1], 2):
        for i in (k + 1, k):
            total = total + x[:, i:i + 1] * w[i]  # the product is exact
    return total


def step_of(run):
    """Pairs that a row of a tile register has: as many as go into a run of so many elements, and into 64 bytes."""
    return next(n for n in range(16, 0, -1) if run // 2 % n == 0)


def sums_by_tiles(x, w, pairs):
    """Of each step of so many pairs the even products, the odd ones, then both, and what there is."""
    total = np.zeros((x.shape[0], w.shape[1]), np.float32)
    for k in range(0, x.shape[1], 2 * pairs):
        part = [np.zeros_like(total), np.zeros_like(total)]
        for i in range(2 * pairs):
            part[i % 2] = part[i % 2] + x[:, k + i:k + i + 1] * w[k + i]
        total = total + (part[0] + part[1])
    return total


def images(x, w, pad, stride):
    """Windows of x, and w, as matrices whose depth is rows of taps, taps, channels; an odd one has a neighbour of 0."""
    x = np.pad(x, [(0, 0), (0, x.shape[1] % 2), (pad, pad), (pad, pad)])
    w = np.pad(w, [(0, 0), (0, w.shape[1] % 2), (0, 0), (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))[:, :, ::stride, ::stride]
    n, _, h, width = windows.shape[:4]
    return (windows.transpose(0, 2, 3, 4, 5, 1).reshape(n * h * width, -1), w.transpose(2, 3, 1, 0).reshape(-1, w.shape[0]),
            lambda y: y.reshape(n, h, width, -1).transpose(0, 3, 1, 2))


class Sums:
    """Graphs of contractions of bf16: {name: (inputs, {recipe: sums in its order}, sums in f64, the sums of amounts)}."""

    dtype, read, draw, kept = "bf16", "f32({})", staticmethod(brains), staticmethod(bits)

    def __init__(self):
        self.text, self.arrays, self.cases = {}, {}, {}

    def add(self, name, x, w, matrices, run, body):
        a, b, arrange = matrices
        shape = [", ".join(map(str, t.shape)) for t in (x, w, arrange(a @ b))]
        self.text[name] = f"graph {name}(x: {self.dtype}[{shape[0]}]) -> (r: f32[{shape[2]}]) {{\n    param {name}_w: {self.dtype}[{shape[1]}]\n    {body} RECIPE\n}}\n"
        self.arrays[f"{name}_w"] = self.kept(w)
        wide = a.astype(np.float64), b.astype(np.float64)
        in_order = {recipe: arrange(sums) for recipe, sums in self.in_order(a, b, step_of(run)).items()}
        self.cases[name] = self.kept(x), in_order, arrange(wide[0] @ wide[1]), arrange(abs(wide[0]) @ abs(wide[1]))

    def in_order(self, a, b, pairs):
        return {"pairs": sums_by_pairs(a, b), **({"amx": sums_by_tiles(a, b, pairs)} if pairs >= 4 else {})}

    def product(self, rows, depth, columns):
        x, w, name = self.draw(rows, depth), self.draw(depth, columns), f"product_{rows}_{depth}_{columns}"
        self.add(name, x, w, (*even(x, w), lambda y: y), depth + depth % 2, f"r = {self.read.format('x')} @ {self.read.format(name + '_w')}")

    def convolution(self, shape, outputs, size, pad=0, stride=1):
        x, w, name = self.draw(*shape), self.draw(outputs, shape[1], size, size), f"image_{shape[1]}_{outputs}_{size}_{stride}"
        self.add(name, x, w, images(x, w, pad, stride), size * (shape[1] + shape[1] % 2),
                 f"r = conv2d({self.read.format('x')}, {self.read.format(name + '_w')}, pad = {pad}, stride = {stride})")


def make():
    s = Sums()
    for extents in (1, 64, 40), (7, 33, 32), (31, 1, 256), (20, 90, 8), (75, 160, 56), (16, 24, 32):
        s.product(*extents)
    s.convolution((2, 16, 6, 13), 24, 3, 1)
    s.convolution((1, 5, 9, 9), 40, 3, 1, 2)
    s.convolution((1, 3, 17, 20), 16, 7, 3, 2)
    s.convolution((3, 24, 5, 7), 32, 1, 0, 2)
    return s


SUMS = make()


def test_sums(arguments, target, cc, folder):
    """None, or what is wrong."""
    recipe = RECIPES.get(target)
    names = [name for name, (_, in_order, _, _) in SUMS.cases.items() if not recipe or recipe in in_order]
    text = "nnc 1\n" + "".join(SUMS.text[name] for name in names)
    (folder / "sums.nnc").write_text(text.replace("RECIPE", f"@kernel(0, {recipe})" if recipe else ""))
    write_safetensors(SUMS.arrays, folder / "sums.safetensors", {n: "BF16" for n in SUMS.arrays})
    error = build.emit(arguments.nnc, folder / "sums.nnc", folder, target, "--weights", "c", "--name", "sums")
    error = error or build.compile_source(folder / "sums.c", target, cc, *FLAGS)
    error = error or build.command([cc, "-shared", folder / "sums.o", "-lm", "-o", folder / "libsums.so"])
    if error:
        return error
    stream = Model(folder / "libsums.so", "sums", {}).stream()
    for name in names:
        x, in_order, wide, amounts = SUMS.cases[name]
        got = getattr(stream, name)(x)
        assert np.all(abs(got - wide) <= 1e-5 * amounts), f"{name}: off by {np.max(abs(got - wide) / amounts)} of the amounts"
        if recipe:
            wanted = in_order[recipe]
            wrong = np.argwhere(got != wanted)
            assert not len(wrong), f"{name}: {len(wrong)} of {got.size} differ; at {wrong[0]}: {got[tuple(wrong[0])]}, not {wanted[tuple(wrong[0])]}"
    return None


def instruction_cases():
    cases = Cases()
    x = whole("u8", 1, 16, 8, 8)
    for name, dtype, zero in ("quads", "i8", 0), ("pairs", "u8", 3):  # no byte holds 252
        w = whole(dtype, 32, 16, 1, 1)
        cases.add(name, [x], convolve(x, w - np.int64(zero)).astype(np.int32), f"r = conv2d(i32(x), i32(w) - {zero})", {"w": w})
    x, w = whole("u8", 32, 64), whole("i8", 64, 32)
    cases.add("product", [x], x.astype(np.int32) @ w, "r = i32(x) @ i32(w)", {"w": w})
    cases.text += ("graph brains(x: bf16[9, 32]) -> (r: f32[9, 48]) {\n    param w: bf16[32, 48] = he_normal(seed = 1)\n"
                   "    r = f32(x) @ f32(w)\n}\n")
    return cases.text


def test_instructions(arguments, target, cc, folder):
    """Are they in what the compiler makes by the flags of the second line, C and C++, without a warning?"""
    (folder / "some.nnc").write_text(instruction_cases())
    error = build.emit(arguments.nnc, folder / "some.nnc", folder, target, "--weights", "c", "--name", "some")
    if error:
        return error
    flags = (folder / "some.c").read_text().splitlines()[1].split("Compile with: ")[1].split(" */")[0].split()
    source = folder / "some.c"
    for compiler, words in (cc, build.C99), (build.plus_plus(cc), build.PLUS_PLUS_17):
        error = build.command([compiler, *words, *build.WARNINGS, *flags, "-c", source, "-o", folder / "some.o"])
        if error:
            return error
        text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", folder / "some.o"], capture_output=True, text=True, check=True).stdout
        missing = [i for i in INSTRUCTIONS[target] if not any(line.split()[1:2] == [i] for line in text.splitlines())]
        if missing:
            return f"{compiler} makes no {', '.join(missing)}"
    return None


SHARED = [("u8[1, 256, 12, 12]", "i8[512, 256, 1, 1]", "f32[1, 512, 12, 12]", "conv2d(f32(x) - 120.0, f32(w))"),
          ("u8[1, 128, 9, 35]", "i8[64, 128, 3, 3]", "f32[1, 64, 9, 35]", "conv2d(f32(x), f32(w), pad = 1)"),
          ("u8[25, 512]", "i8[512, 2048]", "f32[25, 2048]", "(f32(x) - 120.0) @ f32(w)"),
          ("u8[25, 9000]", "i8[9000, 32]", "f32[25, 32]", "f32(x) @ f32(w)")]


def test_registers(arguments, folder):
    """Each function that computes with tile registers, of which a thread runs parts, shapes them, whichever part it is."""
    for number, (x, w, r, body) in enumerate(SHARED):
        (folder / "shared.nnc").write_text(f"nnc 1\ngraph g(x: {x}) -> (r: {r}) {{\n    param w: {w} = 3\n    r = {body}\n}}\n")
        error = build.emit(arguments.nnc, folder / "shared.nnc", folder, "x86-64-v4-amx", "--threads", "2", "--name", "shared")
        if error:
            return error
        functions = [f for f in (folder / "shared.c").read_text().split("\nstatic void ") if "tiles_begin_i32(sums" in f]
        assert functions, f"{number}: no tiles"
        for function in functions:
            before, _, after = function.partition("tiles_begin_i32(sums")
            assert "tiles_set(" in before and "tiles_release();" in after, f"{number}: not shaped:\n{function}"
            assert not any("if (part" in line for line in function.splitlines()), f"{number}: some parts alone do something:\n{function}"
    return None


def main():
    arguments = build.take_arguments(__doc__, ["x86-64-v3"])
    cases = [(f"sums for {target} with {cc}", target, cc, (test_sums, target, cc)) for target in arguments.target for cc in arguments.cc]
    found = shutil.which("objdump") and [cc for cc in ("gcc", "clang") if shutil.which(cc)] or []
    cases += [(f"instructions of {target} by {cc}", "generic", None, (test_instructions, target, cc))
              for target in arguments.target for cc in found if target in INSTRUCTIONS]

    if "x86-64-v4-amx" in arguments.target:
        cases += [("registers of threads", "generic", None, (test_registers,))]

    def go(test, *words):
        return test(arguments, *words)

    return build.report(cases, go)


if __name__ == "__main__":
    sys.exit(main())
