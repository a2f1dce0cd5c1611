#!/usr/bin/python3
"""The size of what is emitted, for every model: kB and lines of C without weights, functions of kernels and their calls,
and how long C compilers take over it at -O3.

    text.py NNC [OTHER_NNC] [--target T ...] [--model M ...] [--cc CC ...]

Seconds are processor time.  With another nnc its figures stand behind, so that a change can be seen side by side; whether
it costs speed, turns.py tells.
"""

import argparse
import pathlib
import re
import resource
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ["models", "models/owl", "tests/bench/training"]
TARGETS = {"generic": [], "x86-64-v3": ["-march=x86-64-v3"], "x86-64-v4": ["-march=x86-64-v4"]}
FUNCTION = re.compile(r"^(?:NNC_[A-Z_]+ )*static void (?!nnc_)\w+\(", re.MULTILINE)
CALL = re.compile(r"^ +(?!return|if|for)\w+\(.*\);$", re.MULTILINE)


def seconds_of(words):
    """Of the processor, of a command and those that it runs."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(list(map(str, words)), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def figures(nnc, model, target, compilers):
    with tempfile.TemporaryDirectory() as folder:
        seconds_of([nnc, "compile", model, "--target", target, "--weights", "file", "-o", folder])
        (source,) = pathlib.Path(folder).glob("*.c")
        text = source.read_text()
        kernels, runs = text[: text.find("\nint ")], text[text.find("\nint ") :]
        times = [seconds_of([cc, "-std=c99", "-O3", "-w", "-c", *TARGETS[target], source, "-o", f"{folder}/o"]) for cc in compilers]
    row = f"{len(text) / 1e3:8.0f}{text.count(chr(10)):8}{len(FUNCTION.findall(kernels)):6}{len(CALL.findall(runs)):6}"
    return row + "".join(f"{seconds:8.2f}" for seconds in times)


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("nnc", nargs="+", type=pathlib.Path)
    words.add_argument("--target", nargs="*", default=list(TARGETS))
    words.add_argument("--model", nargs="*", default=[])
    words.add_argument("--cc", nargs="*", default=["clang", "gcc"])
    given = words.parse_args()
    compilers = [cc for cc in given.cc if shutil.which(cc)]
    models = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.nnc"))
              if not given.model or path.stem in given.model]
    head = f"{'kB':>8}{'lines':>8}{'fns':>6}{'calls':>6}" + "".join(f"{cc:>8}" for cc in compilers)
    print(f"{'model':24}{'target':10}" + "  |".join(head for _ in given.nnc))
    for model in models:
        for target in given.target:
            rows = [figures(nnc.resolve(), model, target, compilers) for nnc in given.nnc]
            print(f"{model.parent.name + '/' + model.stem:24}{target:10}" + "  |".join(rows), flush=True)


if __name__ == "__main__":
    main()
