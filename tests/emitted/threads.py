#!/usr/bin/python3
"""Threads that share a run: models compiled for one thread and for three give the same bits, with any pool or none.

    threads.py --nnc build/nnc --models FOLDER ... [--name NAME ...]

Speaks TAP: one result per model, target and compiler.
"""

import argparse
import ctypes.util
import os
import pathlib
import sys

import build
import models

# What has kernels of every form in it; each for one target, by one compiler.
LIBRARY = ["--backend", "openblas"] if ctypes.util.find_library("openblas") else []
LIBRARIES = {"squeezenet": LIBRARY}  # further flags
os.environ["OPENBLAS_NUM_THREADS"] = "1"
MODELS = {"chargpt": ("generic", "gcc"), "decoder": ("x86-64-v4", "gcc"), "keywords": ("generic", "gcc"), "lenet": ("x86-64-v3", "clang"),
          "mobilenetv2": ("x86-64-v4", "gcc"), "quantised": ("x86-64-v3", "gcc"), "resnet50": ("x86-64-v3", "gcc"), "gpt": ("x86-64-v4", "clang"),
          "resnet8": ("x86-64-v4", "gcc"), "spirals": ("generic", "clang"), "squeezenet": ("x86-64-v3", "gcc")}
# Larger than elsewhere in the tests: threads share no kernel of a few microseconds.
LARGER = {"squeezenet": ["SIZE=128", "CLASSES=100"], "resnet50": ["SIZE=96", "CLASSES=100"], "mobilenetv2": ["SIZE=128", "CLASSES=100"],
          "gpt": ["N=2", "CONTEXT=64", "LAYERS=2", "WIDTH=96", "VOCABULARY=21"]}


def words(model):
    return [word for define in LARGER[model.stem] for word in ("-D", define)] if model.stem in LARGER else models.words(model, False)


def compile_one(arguments, model, folder, target, cc, name, threads):
    error = build.command([arguments.nnc, "compile", model, "-o", folder, "--target", target, "--name", name, "--weights", "blob",
                           "--threads", threads, *LIBRARIES.get(model.stem, []), *words(model)])
    flags = ["-O0", "-ffp-contract=fast", "-fno-math-errno"]
    error = error or build.compile_source(folder / f"{name}.c", target, cc, *flags)
    return error or (build.check_plus_plus(folder / f"{name}.c", target, cc) if threads > 1 else None)


def test(arguments, model, target, cc, folder):
    """None, or what is wrong."""
    error = compile_one(arguments, model, folder, target, cc, "plain", 1)
    error = error or compile_one(arguments, model, folder, target, cc, "shared", 3)
    if error:
        return error
    if "nnc_deal(team" not in (folder / "shared.c").read_text() and model.stem in ("resnet50", "mobilenetv2", "gpt", "quantised", "squeezenet"):
        return "no thread shares anything"
    sources = ["plain.o", "shared.o", *(s.name for s in folder.glob("*_weights.S"))]
    words = [cc, "-std=gnu99", "-g", "-I", build.RUNTIME, build.HERE / "threads.c", build.RUNTIME / "pool.c", build.RUNTIME / "call.c",
             *sources, *(["-lopenblas"] if LIBRARY else []), "-lm", "-lpthread", "-o", "threads"]
    error = build.command(["sh", "-c", f"cd '{folder}' && {' '.join(map(str, words))}"])
    return error or build.command([folder / "threads", "2"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--models", required=True, nargs="+", type=pathlib.Path)
    parser.add_argument("--name", nargs="*", default=list(MODELS), help="only these models")
    arguments = parser.parse_args()
    arguments.nnc = arguments.nnc.resolve()  # Meson says ./nnc
    found = sorted(m for folder in arguments.models for m in folder.glob("*.nnc") if m.stem in MODELS and m.stem in arguments.name)
    return build.report([(f"{model.stem} for {' by '.join(MODELS[model.stem])}", *MODELS[model.stem],
                          (arguments, model, *MODELS[model.stem])) for model in found], test)


if __name__ == "__main__":
    sys.exit(main())
