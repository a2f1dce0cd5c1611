#!/usr/bin/python3
"""Contractions of f32 by tile registers (AMX), in two parts of bf16: milliseconds beside those of AVX-512, and how far
results are from those of the evaluator.

    precision.py BUILD [MODEL ...] [--turns N]

A row a model: medians of `nnc bench` for x86-64-v4-amx, taken in turns, without and with --precision high, and the ratio.
Weights are drawn.  Then of the first output the root of the mean square of the difference, by that of
the evaluator's; `-` where that takes too long.
"""

import argparse
import pathlib
import re
import statistics
import subprocess
import tempfile

import numpy

UNITS = {"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3}
WAYS = {way: ["--target", "x86-64-v4-amx", "--precision", way] for way in ("highest", "high")}
MODELS = ["resnet50", "densenet121", "inception_v3", "vgg16", "resnext50", "squeezenet", "mobilenetv2", "mobilenetv3",
          "efficientnet_b0", "shufflenetv2", "vit_b16", "bert_base", "gpt2", "resnet8", "ds_cnn"]
MOST_SECONDS = 25


def milliseconds(nnc, model, way):
    out = subprocess.run([nnc, "bench", model, "--init-missing", *WAYS[way]], check=True, capture_output=True, text=True).stdout
    number, unit = re.search(r"latency +([\d.]+) (ns|us|ms|s) the median", out).groups()
    return float(number) * UNITS[unit]


def run(nnc, model, *words):
    return subprocess.run([nnc, "run", model, "--init-missing", "--input", "random:1", *words], check=True, capture_output=True,
                          text=True, timeout=MOST_SECONDS).stdout


def output(nnc, model, words, name, folder):
    """None when it takes too long."""
    path = pathlib.Path(folder) / "y.npy"
    try:
        run(nnc, model, "--output", f"{name}={path}", *words)
    except subprocess.TimeoutExpired:
        return None
    return numpy.load(path).astype(numpy.float64)


def far(nnc, model, folder):
    name = run(nnc, model, *WAYS["highest"]).split(":")[0]
    wanted = output(nnc, model, ["--target", "reference"], name, folder)
    for way in WAYS:
        got = None if wanted is None else output(nnc, model, WAYS[way], name, folder)
        yield "-" if got is None else f"{numpy.sqrt(numpy.mean((got - wanted) ** 2) / numpy.mean(wanted ** 2)):.1e}"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("model", nargs="*", default=MODELS)
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    nnc, ratios = arguments.build / "nnc", []
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.model:
            model = pathlib.Path(__file__).parents[2] / "models" / f"{name}.nnc"
            turns = [{way: milliseconds(nnc, model, way) for way in WAYS} for _ in range(arguments.turns)]
            medians = {way: statistics.median(turn[way] for turn in turns) for way in WAYS}
            ratios.append(medians["highest"] / medians["high"])
            print(name, *(f"{medians[way]:.3f}" for way in WAYS), f"| {ratios[-1]:.2f} |", *far(nnc, model, folder), flush=True)
    print(f"geometric mean {statistics.geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()
