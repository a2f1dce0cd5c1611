#!/usr/bin/python3
"""The models as emitted C, by their own test harness: outputs against the reference evaluator, a canary around the arena.

    models.py --nnc build/nnc --models models [--target T ...] [--cc CC ...] [--level L] [--full] [--name NAME ...]

Each model is compiled for each target, built without a warning as C99, checked as C++17, and run; the same model again
gives the same bytes.  Unless --full asks for all of it, the large ones are reduced where the evaluator is slow, and the
compilers take turns: each gets a target of each model.
Speaks TAP: one result per model and target.
"""

import argparse
import pathlib
import sys

import build

REDUCED = {
    "resnet50": ["SIZE=64", "CLASSES=100"],
    "resnext50": ["SIZE=64", "CLASSES=100"],
    "densenet121": ["SIZE=64", "CLASSES=100", "LAYERS1=3", "LAYERS2=2", "LAYERS3=2", "LAYERS4=2"],
    "vgg16": ["SIZE=32", "CLASSES=10", "DENSE=64"],
    "squeezenet": ["SIZE=64", "CLASSES=100"],
    "shufflenetv2": ["SIZE=64", "CLASSES=100"],
    "efficientnet_b0": ["SIZE=64", "CLASSES=100"],
    "mobilenetv2": ["SIZE=96", "CLASSES=100"],
    "mobilenetv3": ["SIZE=64", "CLASSES=100"],
    "inception_v3": ["SIZE=139", "CLASSES=100"],
    "vit_b16": ["SIZE=64", "CLASSES=100", "LAYERS=2", "WIDTH=96", "HEADS=3"],
    "gpt2": ["T=20", "LAYERS=2", "WIDTH=96", "HEADS=3", "CONTEXT=40", "VOCABULARY=300"],
    "mnist": ["N=4"],
    "chargpt": ["LAYERS=2", "HEADS=2", "WIDTH=32", "CONTEXT=24", "N=2"],
    "lstm": ["N=5", "T=9"],
    "training/resnet8": ["N=2"],
    "training/gpt": ["N=2", "CONTEXT=9", "LAYERS=1", "WIDTH=48", "VOCABULARY=21"],
    "digits/train": ["N=3"],
    "bert_base": ["LAYERS=2", "S=40", "HIDDEN=192", "HEADS=3", "VOCABULARY=200"],
}


def words(model, full):
    """What reduces it, by its folder and name, or its name alone."""
    defines = REDUCED.get(f"{model.parent.name}/{model.stem}", REDUCED.get(model.stem, []))
    return [word for define in ([] if full else defines) for word in ("-D", define)]


def compile_model(arguments, model, folder, target, parts):
    return build.command([arguments.nnc, "compile", model, "-o", folder, "--target", target, "--emit", parts, "--weights", "blob",
                          *words(model, arguments.full)])


def same_bytes(one, two):
    """None, or the file that differs."""
    files = sorted(p.name for p in one.iterdir() if p.suffix in (".c", ".h", ".S", ".weights"))
    return next((f"{f} differs from one run to the next" for f in files
                 if (one / f).read_bytes() != (two / f).read_bytes()), None)


def run_harness(folder, name, target, cc, level):
    flags = [f"-O{level}", "-ffp-contract=fast", "-fno-math-errno"]
    error = build.compile_source(folder / f"{name}.c", target, cc, *flags)
    link = [cc, *build.C99, *build.WARNINGS, f"{name}_test.c", f"{name}.o", *(s.name for s in folder.glob("*_weights.S")), "-lm", "-o",
            "harness"]
    error = error or build.command(["sh", "-c", f"cd '{folder}' && {' '.join(link)}"])  # .incbin looks where it stands
    error = error or build.check_plus_plus(folder / f"{name}.c", target, cc)
    error = error or build.command([folder / "harness"])
    foreign = [] if error else build.foreign_symbols(folder / f"{name}.o")
    return error or (f"calls {', '.join(foreign)}" if foreign else None)


def test(arguments, model, target, compilers, folder):
    """None, or what is wrong."""
    error = compile_model(arguments, model, folder / "one", target, "c,test")
    error = error or compile_model(arguments, model, folder / "two", target, "c")
    error = error or same_bytes(folder / "two", folder / "one")
    for cc in compilers:
        if not error and build.available(target, cc):
            wrong = run_harness(folder / "one", model.stem, target, cc, arguments.level)
            error = wrong and f"by {cc}: {wrong}"
    return error


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--models", required=True, type=pathlib.Path)
    parser.add_argument("--target", nargs="*", default=build.TARGETS)
    parser.add_argument("--cc", nargs="*", default=["gcc", "clang"])
    parser.add_argument("--level", default="2", help="of optimization: 1, 2, 3, s")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--name", nargs="*", help="only these models")
    arguments = parser.parse_args()
    arguments.nnc = arguments.nnc.resolve()  # Meson says ./nnc
    models = sorted([*arguments.models.glob("*.nnc"), *arguments.models.glob("owl/*.nnc")])
    models = [model for model in models if not arguments.name or model.stem in arguments.name]

    cases = []
    for m, model in enumerate(models):
        for t, target in enumerate(arguments.target):
            there = [cc for cc in arguments.cc if build.available(target, cc)] or arguments.cc
            compilers = there if arguments.full else [there[(m + t) % len(there)]]
            cases.append((f"{model.stem} for {target} by {', '.join(compilers)}", target, compilers[0],
                          (arguments, model, target, compilers)))
    return build.report(cases, test)


if __name__ == "__main__":
    sys.exit(main())
