#!/usr/bin/python3
"""The block of params: what NAME_params_init writes there, where each lies, and who changes it.

    params.py --nnc build/nnc [--target T ...] [--cc CC ...] [--cxx COMMAND]

First values are compared by their bits with those that the compiler draws itself, which it does where no entry updates
them, for every initialiser and dtype; and, with another seed, with Philox in NumPy.  COMMAND compiles CUDA for the emulated
device of tests/cuda.  Speaks TAP.
"""

import argparse
import pathlib
import re
import subprocess
import sys

import numpy as np

import build
from streams import Model, write_safetensors

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "conform"))
from generators import fold_in, unit

FLOATS = ["f64", "f32", "f16", "bf16"]
DRAWN = ["uniform(low = -0.3, high = 1.7, seed = 3)", "uniform(low = 0.1, high = 0.3, seed = -5)", "normal(seed = 4)",
         "normal(mean = 0.7, std = 0.013, seed = 9000000000)", "he_normal(seed = 1)", "he_uniform(seed = 2)",
         "glorot_uniform(seed = 7)"]
SHAPES = ["[3, 5, 3, 1]", "[7, 9]", "[1030]", "[]", "[0, 3]", "[1, 1]"]


def every_param():
    """(type, initialiser) of params."""
    for number, initial in enumerate(DRAWN):
        for dtype in FLOATS:
            for shape in SHAPES if number in (0, 3, 4) else SHAPES[:2]:
                yield dtype + shape, initial
    for dtype in [*FLOATS, "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8"]:
        number = "2.7" if dtype in FLOATS else "3"
        yield from ((f"{dtype}[5, 7]", initial) for initial in (number, "0" if number == "3" else "0.0",
                                                                "iota(axis = 0)", "iota(axis = -1)"))
    yield "bool[9]", "true"
    yield "f32[3]", "-0.0"
    yield "f32[2]", "[1.5, -2.5]"


def text_of(params):
    """A model whose `step` updates all of them, and whose `show` gives them."""
    lines = [f"    param w{i}: {kind} = {initial}" for i, (kind, initial) in enumerate(params)]
    results = ", ".join(f"y{i}: {kind}" for i, (kind, _) in enumerate(params))
    copies = [f"    y{i} = w{i}" for i in range(len(params))]
    updates = [f"    w{i} <- {f'w{i} + w{i}' if not kind.startswith('bool') else f'w{i} == w{i}'}"
               for i, (kind, _) in enumerate(params)]
    return "\n".join(["nnc 1", f"graph show() -> ({results}) {{", *lines, *copies, "}",
                      "graph step(x: f32[]) -> (y: f32[]) {", *lines, *updates, "    y = x", "}", ""])


def compiled(arguments, target, cc, folder, text, *flags, name="model"):
    """The library of a text, as a Model."""
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / f"{name}.nnc"
    source.write_text(text)
    error = build.command([arguments.nnc, "compile", source, "-o", folder, "--target", target, "--emit", "c,shared", "--cc", f"{cc} -O1",
                           "--weights", "c", "--name", name, *flags])
    assert not error, error
    return Model(folder / f"lib{name}.so", name, {})


def same_bits(what, ours, theirs):
    assert ours.tobytes() == theirs.tobytes(), f"{what}: other bits: {ours.ravel()[:4]}, not {theirs.ravel()[:4]}"


# ---- What is tested: each takes (arguments, target, cc, folder) ----

def first_values(arguments, target, cc, folder):
    """They have the bits that the compiler draws, and none of them is data."""
    params = list(every_param())
    text = text_of(params)
    drawn = compiled(arguments, target, cc, folder / "drawn", text, "--graph", "show").stream().run()
    stream = compiled(arguments, target, cc, folder / "all", text).stream()
    for i, (kind, initial) in enumerate(params):
        same_bits(f"{kind} = {initial}", stream.param(f"w{i}"), drawn[i])
    shown = stream.show()
    for i in range(len(params)):
        same_bits(f"w{i} read by an entry", shown[i], drawn[i])
    arrays = re.findall(r"^static const \w+ (w\d+_\w+)\[", (folder / "all/model.c").read_text(), re.M)
    assert len(arrays) == 1, f"one param is written out in the model, but {arrays} are in the source"


def other_seeds(arguments, target, cc, folder):
    model = compiled(arguments, target, cc, folder, text_of([("f64[7, 9]", "uniform(low = 0.5, high = 2.5, seed = 3)")]))
    for seed in (1, -1, 2**40):
        same_bits(f"seed {seed}", model.stream(seed).param("w0").ravel(),
                  0.5 + 2 * unit(int(fold_in(3, seed)), 63)[:63])
    assert not np.array_equal(model.stream(1).param("w0"), model.stream(0).param("w0"))


def layout(arguments, target, cc, folder):
    """The header and the descriptor say the same, and nothing lies upon another."""
    model = compiled(arguments, target, cc, folder, text_of(list(every_param())))
    header = (folder / "model.h").read_text()
    said = re.findall(r"^/\* +(\d+)  (w\d+): (\w+)\[(.*)\] \*/$", header, re.M)
    block, end = model.of.params, 0
    assert len(said) == block.count, f"{len(said)} params in the header, {block.count} in the descriptor"
    for line, slot in zip(said, block.slot[:block.count]):
        info = slot.tensor
        shape = ", ".join(str(d) for d in info.shape[:info.rank])
        assert line == (str(slot.offset[0]), info.name.decode(), info.dtype.decode(), shape), line
        assert slot.offset[0] % 64 == 0 and slot.offset[0] >= end and slot.flag == -1
        end = slot.offset[0] + info.bytes
    assert end == block.bytes == int(re.search(r"MODEL_PARAMS_BYTES (\d+)", header)[1])
    assert [(e.updated_params, e.updated_states) for e in (model.entry["show"], model.entry["step"])] == [(0, 0), (block.count, 0)]


SMALL = """nnc 1
use "nn"
fn net(x) -> (y) { y = dense@out(tanh(dense@hidden(x, 8)), 3) }
graph step(x: f32[4, 5], label: i64[4]) -> (loss) {
    loss = mean(cross_entropy(net@net(x), label))
    minimize(loss, with = adam(rate = 0.05))
}
graph run(x: f32[4, 5]) -> (p) { p = softmax(net@net(x)) }
"""


def side_by_side(arguments, target, cc, folder):
    """Two trainings by turns come to what each comes to alone; what infers changes nothing."""
    model, chance = compiled(arguments, target, cc, folder, SMALL), np.random.default_rng(1)
    data = [(chance.normal(size=(4, 5)), chance.integers(0, 3, 4)) for _ in range(20)]
    together, alone = [model.stream(1), model.stream(2)], [model.stream(1), model.stream(2)]
    for batch in data:
        for stream in together:
            stream.step(*batch)
    for stream in alone:
        for batch in data:
            stream.step(*batch)
    for a, b in zip(together, alone):
        before = a.params.copy()
        same_bits("inference", a.run(data[0][0]), b.run(data[0][0]))
        same_bits("params", a.params, b.params)
        same_bits("params after an inference", a.params, before)
        same_bits("state", a.state, b.state)
    assert not np.array_equal(together[0].params, together[1].params)


def stored(arguments, target, cc, folder):
    """With weights beside the model they are copied, whatever the seed; moments and biases that are not stored, drawn."""
    chance = np.random.default_rng(2)
    weights = {"net.hidden.weight": chance.normal(size=(5, 8)).astype("f4"), "net.out.weight": chance.normal(size=(8, 3)).astype("f4")}
    folder.mkdir(parents=True, exist_ok=True)
    write_safetensors(weights, folder / "stored.safetensors")
    model = compiled(arguments, target, cc, folder, SMALL, "--weights-from", folder / "stored.safetensors", "--init-missing")
    for seed in (0, 5):
        stream = model.stream(seed)
        for name, array in weights.items():
            same_bits(name, stream.param(name), array)
        assert not stream.param("net.out.bias").any()


TWICE = """nnc 1
graph step(x: f32[1, 2]) -> (y: f32[3, 2]) {
    param window: f32[3, 2] = he_normal(seed = 1)
    moved = concat(window[1:, :], x, axis = 0)
    window <- moved
    y = moved + window
}
graph read() -> (y: f32[3, 2]) {
    param window: f32[3, 2] = he_normal(seed = 1)
    y = window * 1.0
}
"""


def one_place(arguments, target, cc, folder):
    """A param whose next value cannot be made over it is found where the layout says all the same."""
    stream = compiled(arguments, target, cc, folder, TWICE).stream()
    want = stream.param("window").copy()
    assert stream.model.of.state.bytes == want.nbytes and stream.model.of.state.count == 0
    for i in range(3):
        x = np.full((1, 2), i, np.float32)
        moved = np.concatenate([want[1:], x])
        same_bits("result", stream.step(x), moved + want)
        want = moved
        same_bits("param", stream.param("window"), want)
        same_bits("as another entry reads it", stream.read(), want)


DEVICE = """
#include "model.h"
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    void *params;
    unsigned char *host = (unsigned char *)calloc(MODEL_PARAMS_BYTES, 1);
    cudaMalloc(&params, MODEL_PARAMS_BYTES);
    cudaMemset(params, 0, MODEL_PARAMS_BYTES);
    if (model_params_init(params, SEED, 0) || cudaDeviceSynchronize())
        return 1;
    cudaMemcpy(host, params, MODEL_PARAMS_BYTES, cudaMemcpyDeviceToHost);
    return fwrite(host, 1, MODEL_PARAMS_BYTES, stdout) != MODEL_PARAMS_BYTES;
}
"""


def on_a_device(arguments, cxx, seed, folder):
    """CUDA draws the bits of C."""
    text = text_of(list(every_param()))
    ours = compiled(arguments, "generic", "gcc", folder / "c", text).stream(seed)
    ours.params[:] = 0  # what lies between params
    assert ours.model.of.params_init(ours.params.ctypes.data, seed, None) == 0
    (folder / "model.nnc").write_text(text)
    (folder / "main.cu").write_text(DEVICE.replace("SEED", str(seed)))
    error = build.command([arguments.nnc, "compile", folder / "model.nnc", "-o", folder, "--target", "cuda:sm_90",
                           "--weights", "c"])
    error = error or build.command([*cxx.split(), f"-I{folder}", folder / "model.cu", folder / "main.cu", "-o", folder / "main"])
    assert not error, error
    done = subprocess.run([folder / "main"], capture_output=True, check=False)
    assert done.returncode == 0 and done.stdout == ours.params.tobytes(), "other bits on the device"


TESTS = [first_values, other_seeds, layout, side_by_side, stored, one_place]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--target", nargs="*", default=["generic", "x86-64-v3", "x86-64-v4"])
    parser.add_argument("--cc", nargs="*", default=["gcc", "clang"])
    parser.add_argument("--cxx")
    arguments = parser.parse_args()
    arguments.nnc = arguments.nnc.resolve()
    cases = [(f"{function.__name__} for {target} with {cc}", target, cc, (function, arguments, target, cc))
             for function in TESTS for target in arguments.target for cc in arguments.cc]
    cases += [(f"on a device, seed {seed}", None, None, (on_a_device, arguments, arguments.cxx, seed))
              for seed in ([0, 12] if arguments.cxx else [])]
    return build.report(cases, lambda function, *words: function(*words))


if __name__ == "__main__":
    sys.exit(main())
