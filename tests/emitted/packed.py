#!/usr/bin/python3
"""`nnc compile --pack`: what NAME_pack makes of the params, and entries that read it.

    packed.py --nnc build/nnc [--target T ...] [--cc CC ...]

Networks of all kinds of layers, with a step that trains them: the harness compares packed entries with the reference
evaluator while params change, and libraries with and without packing are trained side by side.  Speaks TAP.
"""

import argparse
import pathlib
import subprocess
import sys

import numpy as np

import build
from streams import Model

# name: (function of the network, type of its input, classes)
NETWORKS = {
    "perceptron": ("y = dense@out(relu(dense@second(tanh(dense@first(x, 130)), 48)), 10)", "f32[5, 67]", 10),
    "double": ("y = dense@out(tanh(dense@first(x, 9)), 3)", "f64[4, 7]", 3),
    "half": ("y = dense@out(tanh(dense@first(x, 33)), 3)", "f16[4, 7]", 3),
    "narrow": ("""param first: bf16[67, 130] = normal(std = 0.1, seed = 3)
    param second: bf16[20, 130] = normal(std = 0.1, seed = 4)
    y = dense@out(tanh(matmul(relu(x @ f32(first)), f32(second), transpose_y = true)), 10)""", "f32[5, 67]", 10),
    "image": ("""a = relu(batch_norm@norm(conv@first(x, 20, 3, pad = 1, with_bias = false), training = training))
    b = relu(conv@strided(a, 32, [3, 2], stride = 2))
    c = relu(depthwise_conv@depth(b, 3, pad = 1) + conv@point(b, 32, 1))
    d = relu(conv@groups(c, 16, 3, groups = 2))
    y = dense@out(flatten(max_pool(d, window = 2)), 4)""", "f32[2, 3, 17, 14]", 4),
    "wide": ("y = dense@out(reduce_max(relu(conv@a(conv@b(x, 64, 3), 48, 5, dilation = 2)), axes = [2, 3]), 7)",
             "f32[1, 16, 15, 15]", 7),
    "shared": ("""param table: f32[40, 24] = normal(seed = 3)
    e = gather(table, i64(x))
    y = matmul(tanh(dense@first(e, 24)), table, transpose_y = true)""", "f32[6]", 40),
    "sequence": ("""(ys, h, c) = lstm@rnn(reshape(x, shape = [9, 3, 10]), 20)
    y = dense@out(h, 5)""", "f32[3, 90]", 5),
    "grouped": ("""a = relu(conv@reduce(x, 32, 1))
    b = relu(conv@groups(a, 32, 3, pad = 1, groups = 8))
    c = relu(conv@pairs(b, 64, 3, stride = 2, pad = 1, groups = 16))
    y = dense@out(flatten(conv@wide(c, 48, 1, groups = 2)), 5)""", "f32[2, 3, 9, 8]", 5),
    "attention": ("""h = attention@heads(reshape(x, shape = [2, 6, 24]), 3)
    y = dense@out(reshape(layer_norm@norm(h), shape = [2, 144]), 5)""", "f32[2, 144]", 5),
}


def text_of(body, kind, classes):
    batch = int(kind.split("[")[1].split(",")[0].rstrip("]"))
    return f"""nnc 1
use "nn"
fn net(x, training = false) -> (y) {{
    {body}
}}
graph run(x: {kind}) -> (y) {{ y = net@net(x) }}
graph step(x: {kind}, label: i64[{batch}]) -> (loss) {{
    loss = mean(cross_entropy(net@net(x, training = true), label))
    minimize(loss, with = momentum(rate = 0.01))
}}
# {classes} classes
"""


def compile_model(arguments, target, cc, source, folder, *flags):
    error = build.command([arguments.nnc, "compile", source, "-o", folder, "--target", target, "--cc", f"{cc} -O0", *flags])
    assert not error, error


def library(arguments, target, cc, source, folder, *flags):
    compile_model(arguments, target, cc, source, folder, "--emit", "c,shared,kernels", "--name", "model", *flags)
    return Model(folder / "libmodel.so", "model", {})


# ---- What is tested: each takes (arguments, target, cc, folder) ----

def as_evaluated(arguments, target, cc, folder):
    """The harness calls step and run in turns, and NAME_pack in between."""
    for name, network in NETWORKS.items():
        source, out = folder / f"{name}.nnc", folder / name
        source.write_text(text_of(*network))
        compile_model(arguments, target, cc, source, out, "--emit", "c,test,selftest", "--pack", "--weights", "c",
                      "--checked", "--name", "model")
        flags = {"generic": "-O0", "x86-64-v3": "-O0 -march=x86-64-v3", "x86-64-v4": "-O0 -march=x86-64-v4"}[target]
        error = build.command([cc, "-std=c99", "-Wall", "-Wextra", "-Werror", *flags.split(), out / "model.c",
                               out / "model_test.c", out / "model_selftest.c", "-o", out / "test", "-lm"])
        assert not error, f"{name}: {error}"
        done = subprocess.run([out / "test"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"


def as_unpacked(arguments, target, cc, folder):
    """The same steps in two libraries: `run` gives the same, and stays as it was until params are packed again."""
    rng = np.random.default_rng(5)
    for name, network in NETWORKS.items():
        source = folder / f"{name}.nnc"
        source.write_text(text_of(*network))
        plain = library(arguments, target, cc, source, folder / f"{name}-plain").stream()
        packs = library(arguments, target, cc, source, folder / f"{name}-packs", "--pack").stream()
        entry = packs.model.entry["run"]
        assert entry.packed == 1 and packs.model.entry["step"].packed == 0 and plain.model.entry["run"].packed == 0
        shape = entry.input[0].shape[:entry.input[0].rank]
        x = rng.integers(0, 40, shape).astype(float) if name == "shared" else rng.standard_normal(shape)
        label = rng.integers(0, network[2], shape[0])
        before = packs.run(x)
        for _ in range(3):
            assert np.array_equal(plain.step(x, label), packs.step(x, label)), f"{name}: packing changes a step"
        ours, theirs = np.float64(packs.run(x)), np.float64(plain.run(x))
        worst = 2e-2 if name == "half" else 1e-5
        assert np.abs(ours - theirs).max() <= worst * np.abs(theirs).max(), f"{name}: {np.abs(ours - theirs).max()} apart"
        assert not np.array_equal(before, packs.run(x)), f"{name}: nothing was learnt"


def as_constants(arguments, target, cc, folder):
    """What reads packed params is computed as what has its weights in the source: by the same loops."""
    source = folder / "perceptron.nnc"
    source.write_text(text_of(*NETWORKS["perceptron"]))
    library(arguments, target, cc, source, folder / "alone", "--graph", "run")
    library(arguments, target, cc, source, folder / "packs", "--pack")
    alone, packs = ((folder / kind / "model.kernels").read_text() for kind in ("alone", "packs"))
    kernels = [kernel.split("\n}\n")[0] for kernel in alone.split("static void ")[1:]]
    assert len(kernels) == 3
    for kernel in kernels:
        assert kernel.split("\n", 1)[1] in packs, f"another kernel than\n{kernel}"


def missing(arguments, target, cc, folder):
    """NAME_pack and entries refuse what is missing or not aligned."""
    source = folder / "double.nnc"
    source.write_text(text_of(*NETWORKS["double"]))
    stream = library(arguments, target, cc, source, folder / "out", "--pack").stream()
    of, params, packed = stream.model.of, stream.params.ctypes.data, stream.packed.ctypes.data
    assert [of.pack(None, packed), of.pack(params + 4, packed), of.pack(params, None), of.pack(params, packed + 4),
            of.pack(params, packed)] == [4, 4, 5, 5, 0]
    header = (folder / "out/model.h").read_text()
    assert "int model_pack(const void *params, void *packed);" in header
    assert "int model_run(const double x[28], double y[12], const void *packed, void *arena);" in header
    assert f"#define MODEL_PACKED_BYTES {of.packed_bytes} " in header


# Which targets they are tried for, unless told.
TESTS = {as_evaluated: ["generic", "x86-64-v4"], as_unpacked: ["x86-64-v3"], as_constants: ["generic", "x86-64-v4"],
         missing: ["generic"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--target", nargs="*")
    parser.add_argument("--cc", nargs="*", default=["gcc"])
    arguments = parser.parse_args()
    arguments.nnc = arguments.nnc.resolve()
    return build.report([(f"{function.__name__} for {target} with {cc}", target, cc, (function, arguments, target, cc))
                         for function in TESTS for target in arguments.target or TESTS[function] for cc in arguments.cc],
                        lambda function, *words: function(*words))


if __name__ == "__main__":
    sys.exit(main())
