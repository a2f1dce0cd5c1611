#!/usr/bin/python3
"""Contractions of f32 by tile registers (AMX), in three and in two parts of bf16: milliseconds beside those of AVX-512, and
how far results are from those of the evaluator.

    precision.py BUILD [MODEL ...] [--turns N]

A row a model: medians of `nnc bench`, taken in turns, for x86-64-v4, for x86-64-v4-amx and there with --precision high, and
ratios to the first.  Weights are drawn.  Then of the first output the root of the mean square of the difference, by that of
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
WAYS = {"x86-64-v4": ["--target", "x86-64-v4"], "highest": ["--target", "x86-64-v4-amx"],
        "high": ["--target", "x86-64-v4-amx", "--precision", "high"]}
MODELS = ["resnet50", "densenet121", "inception_v3", "vgg16", "resnext50", "squeezenet", "mobilenetv2", "mobilenetv3",
          "efficientnet_b0", "shufflenetv2", "vit_b16", "bert_base", "gpt2", "resnet8", "ds_cnn"]
MOST_SECONDS = 25


def milliseconds(nnc, model, way):
    out = subprocess.run([nnc, "bench", model, "--init-missing", *WAYS[way]], check=True, capture_output=True, text=True).stdout
    number, unit = re.search(r"latency +([\d.]+) (ns|us|ms|s) the median", out).groups()
    return float(number) * UNITS[unit]


def outputs(nnc, model, words, folder):
    """The first output; None when it takes too long."""
    path = pathlib.Path(folder) / "y.npz"
    path.unlink(missing_ok=True)
    try:
        subprocess.run([nnc, "run", model, "--init-missing", "--input", "random:1", "--output", path, *words], check=True,
                       capture_output=True, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    arrays = numpy.load(path)
    return arrays[arrays.files[0]].astype(numpy.float64)


def far(nnc, model, folder):
    wanted = outputs(nnc, model, ["--target", "reference"], folder)
    for way in WAYS:
        got = None if wanted is None else outputs(nnc, model, WAYS[way], folder)
        yield "-" if got is None else f"{numpy.sqrt(numpy.mean((got - wanted) ** 2) / numpy.mean(wanted ** 2)):.1e}"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("model", nargs="*", default=MODELS)
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    nnc, ratios = arguments.build / "nnc", {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.model:
            model = pathlib.Path(__file__).parents[2] / "models" / f"{name}.nnc"
            turns = [{way: milliseconds(nnc, model, way) for way in WAYS} for _ in range(arguments.turns)]
            medians = {way: statistics.median(turn[way] for turn in turns) for way in WAYS}
            for way in WAYS:
                ratios[way].append(medians["x86-64-v4"] / medians[way])
            print(name, *(f"{medians[way]:.3f}" for way in WAYS), "|", *(f"{ratios[way][-1]:.2f}" for way in WAYS), "|",
                  *far(nnc, model, folder), flush=True)
    print("geometric means", *(f"{way} {statistics.geometric_mean(ratios[way]):.2f}" for way in WAYS))


if __name__ == "__main__":
    main()
