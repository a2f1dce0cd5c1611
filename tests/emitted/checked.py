#!/usr/bin/python3
"""Every model of models/, emitted for every target, against the reference evaluator.

    models.py --nnc build/nnc --models models [--only NAME] [--target T ...]

For each: two compilations write the same bytes; gcc and clang take the source without a warning as C99 and as C++17;
it calls nothing but memcpy, memset and math.h; and the harness agrees with the evaluator, with dead ranges of the arena
made unreadable, under AddressSanitizer and UndefinedBehaviorSanitizer.  Large models have smaller inputs or fewer
layers here, which changes extents, not kinds of kernels.  Speaks TAP: one result per model and target.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import build

SMALLER = {"resnet50": ["-D", "SIZE=64"], "bert_base": ["-D", "S=16", "-D", "LAYERS=2", "-D", "VOCABULARY=1000"]}
SANITIZE = ["-O0", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def compile_model(arguments, model, target, folder, *flags):
    folder.mkdir(parents=True)
    return build.command([arguments.nnc, "compile", model, "-o", folder, "--target", target, "--weights", "blob",
                          *SMALLER.get(model.stem, []), *flags])


def differing(a, b):
    """Names of files that are not the same in both folders."""
    names = {p.name for p in [*a.iterdir(), *b.iterdir()]}
    return sorted(n for n in names if not ((a / n).exists() and (b / n).exists() and
                                           (a / n).read_bytes() == (b / n).read_bytes()))


def warnings(source, target):
    """What a compiler or the linker's view of the object says against the source."""
    for cc in ("gcc", "clang"):
        if not build.available("generic", cc):
            continue
        error = build.compile_source(source, target, cc, "-O0") or build.check_plus_plus(source, target, cc)
        foreign = [] if error else build.foreign_symbols(source.with_suffix(".o"))
        if error or foreign:
            return error or f"calls {', '.join(foreign)}"
    return None


def run_checked(folder, name, target, cc):
    """The harness under sanitizers; None or the error."""
    sources = [folder / f"{name}.c", folder / f"{name}_test.c", *folder.glob(f"{name}_weights.S")]
    error = build.command([cc, *build.LANGUAGE[cc], *build.march(target), *build.WARNINGS, *SANITIZE, "-I", folder,
                           *sources, "-lm", "-o", folder / "test"])
    if error:
        return error
    done = subprocess.run([str(folder / "test")], capture_output=True, text=True, errors="replace", check=False)
    return None if done.returncode == 0 else f"status {done.returncode}\n{done.stdout}{done.stderr}"


def test(arguments, model, target, folder):
    """None, or what is wrong."""
    error = compile_model(arguments, model, target, folder / "once")
    error = error or compile_model(arguments, model, target, folder / "twice")
    if not error and differing(folder / "once", folder / "twice"):
        error = f"two compilations differ in {', '.join(differing(folder / 'once', folder / 'twice'))}"
    error = error or warnings(folder / "once" / f"{model.stem}.c", target)
    error = error or compile_model(arguments, model, target, folder / "checked", "--checked", "--emit", "c,test")
    if error or not build.available(target, "gcc"):
        return error
    return run_checked(folder / "checked", model.stem, target, "gcc")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True)
    parser.add_argument("--models", required=True, type=pathlib.Path)
    parser.add_argument("--only", help="this model")
    parser.add_argument("--target", nargs="+", default=list(build.FEATURES))
    arguments = parser.parse_args()
    jobs = [(m, t) for m in sorted(arguments.models.glob("*.nnc")) if arguments.only in (None, m.stem)
            for t in arguments.target]

    print(f"1..{len(jobs)}")
    with tempfile.TemporaryDirectory() as temporary:
        errors = build.side_by_side(lambda job: test(arguments, *job, pathlib.Path(temporary) / job[0].stem / job[1]), jobs)
    for number, ((model, target), error) in enumerate(zip(jobs, errors), 1):
        print(f"{'not ok' if error else 'ok'} {number} - {model.stem} for {target}")
        for line in (error or "").splitlines()[:30]:
            print(f"# {line[:300]}")
    return 1 if any(errors) else 0


if __name__ == "__main__":
    sys.exit(main())
