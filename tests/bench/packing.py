#!/usr/bin/python3
"""What NAME_pack gains: a call of an entry that reads params where training leaves them, packed, and as constants.

    packing.py BUILD [--target host]

Medians of calls in turns; BUILD has nnc.
"""

import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "emitted"))
from packed import text_of
from streams import Model, addresses

NETWORKS = {
    "perceptron, batch 1": ("y = dense@c(relu(dense@b(relu(dense@a(x, 1024)), 1024)), 10)", "f32[1, 784]", 10),
    "perceptron, batch 32": ("y = dense@c(relu(dense@b(relu(dense@a(x, 1024)), 1024)), 10)", "f32[32, 784]", 10),
    "convolutions, batch 1": ("""a = relu(conv@b(relu(conv@a(x, 32, 3, pad = 1)), 64, 3, pad = 1, stride = 2))
    b = relu(depthwise_conv@d(relu(conv@c(a, 64, 3, pad = 1)), 3, pad = 1))
    y = dense@f(global_avg_pool(relu(conv@e(b, 128, 1))), 10)""", "f32[1, 3, 32, 32]", 10),
    "a layer of a transformer": ("""h = attention@heads(x, 6)
    f = dense@outer(gelu_tanh(dense@inner(layer_norm@norm(h), 1536)), 384)
    y = dense@out(mean(f, 1), 10)""", "f32[1, 128, 384]", 10),
}
KINDS = {"params": [], "packed": ["--pack"], "constants": ["--graph", "run"]}
TURNS, CALLS = 31, 20


def prepare(nnc, target, source, folder, flags):
    """A function that makes some calls, and gives the seconds of one."""
    subprocess.run([nnc, "compile", source, "-o", folder, "--target", target, "--emit", "c,lib", "--name", "model", "--weights",
                    "blob" if "--graph" in flags else "c", *flags], check=True, capture_output=True)
    stream = Model(folder / "libmodel.so", "model", {}).stream()
    entry = stream.model.entry["run"]
    x = np.ones(entry.input[0].shape[:entry.input[0].rank], np.float32)
    y = np.zeros(entry.output[0].shape[:entry.output[0].rank], np.float32)
    stream.call(entry, [x])  # packs
    params = stream.packed if entry.packed else stream.params

    def run():
        begin = time.perf_counter()
        for _ in range(CALLS):
            entry.run(addresses([x]), addresses([y]), stream.model.arena.ctypes.data, None, params.ctypes.data,
                      stream.state.ctypes.data, None)
        return (time.perf_counter() - begin) / CALLS
    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--target", default="host")
    arguments = parser.parse_args()
    for name, network in NETWORKS.items():
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "model.nnc"
            source.write_text(text_of(*network))
            runs = {kind: prepare(arguments.build / "nnc", arguments.target, source, pathlib.Path(folder) / kind, flags)
                    for kind, flags in KINDS.items()}
            turns = [{kind: run() for kind, run in runs.items()} for _ in range(TURNS)]
        middle = {kind: statistics.median(turn[kind] for turn in turns) for kind in KINDS}
        print(f"{name:24} " + ", ".join(f"{kind} {1e6 * seconds:.0f} us" for kind, seconds in middle.items()) +
              f": packed {middle['params'] / middle['packed']:.2f} times as fast")


if __name__ == "__main__":
    main()
