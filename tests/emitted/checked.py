#!/usr/bin/python3
"""Models as emitted C under AddressSanitizer and UndefinedBehaviorSanitizer, with dead ranges of the arena unreadable.

    checked.py --nnc build/nnc --models FOLDER ... [--target T ...] [--cc CC]

The harness runs each model against the reference evaluator, for one of the targets here, which take turns.  Large models
are reduced, which changes extents, not kinds of kernels.  Speaks TAP: one result per model and target.
"""

import argparse
import pathlib
import sys
import tempfile

import build
import models

# Without optimization: compilers take a tenth of the time, and what a sanitizer can see is the same.
SANITIZE = ["-O0", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def test(arguments, model, target, folder):
    """None, or what is wrong."""
    error = build.command([arguments.nnc, "compile", model, "-o", folder, "--target", target, "--emit", "c,test",
                           "--name", model.stem, "--weights", "blob", "--checked", *models.words(model, False)])
    if error:
        return error
    sources = [folder / f"{model.stem}.c", folder / f"{model.stem}_test.c", *folder.glob("*_weights.S")]
    error = build.command([arguments.cc, *build.C99, *build.march(target), *build.WARNINGS, *SANITIZE,
                           "-I", folder, *sources, "-lm", "-o", folder / "harness"])
    return error or build.command([folder / "harness"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--models", required=True, nargs="+", type=pathlib.Path)
    parser.add_argument("--target", nargs="*", default=build.TARGETS)
    parser.add_argument("--cc", default="gcc")
    arguments = parser.parse_args()
    arguments.nnc = arguments.nnc.resolve()  # Meson says ./nnc
    files = [m for folder in arguments.models for m in sorted(folder.glob("*.nnc"))]
    here = [t for t in arguments.target if build.available(t, arguments.cc)] or arguments.target
    jobs = [(m, here[i % len(here)]) for i, m in enumerate(files)]

    print(f"1..{len(jobs)}")
    with tempfile.TemporaryDirectory() as temporary:
        def run(job):
            model, target = job
            if build.available(target, arguments.cc):
                return test(arguments, model, target, pathlib.Path(temporary) / model.parent.name / model.stem / target)
            return None
        errors = build.side_by_side(run, jobs)
    for number, ((model, target), error) in enumerate(zip(jobs, errors), 1):
        skip = "" if build.available(target, arguments.cc) else f" # SKIP no {arguments.cc}, or the machine is no {target}"
        print(f"{'not ok' if error else 'ok'} {number} - {model.stem} for {target}{skip}")
        for line in (error or "").splitlines()[:30]:
            print(f"# {line[:300]}")
    return 1 if any(errors) else 0


if __name__ == "__main__":
    sys.exit(main())
