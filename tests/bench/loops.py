"""An LSTM over a sequence as a loop, beside the same network with every step written out in the text.

    loops.py BUILD [--steps N] [--rounds N] [--target T]        default: 1,000 steps, 5 rounds, the widest target here

Prints the C text and the arena of both, and the loop's latency by that of the text written out: the median of the
rounds, each of which asks both, in turns.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

from bench import TARGETS

MODEL = pathlib.Path(__file__).with_name("lstm.nnc")
FORMS = {"loop": 0, "written out": 1}


def ask(nnc, verb, target, steps, form, *more):
    words = [nnc, verb, MODEL, "--target", target, "-D", f"STEPS={steps}", "-D", f"UNROLLED={FORMS[form]}", *more]
    return subprocess.check_output(words, text=True, stderr=subprocess.DEVNULL)


def latency(nnc, target, steps, form):
    return json.loads(ask(nnc, "bench", target, steps, form, "--format", "json"))["median_s"]


def show_size(nnc, target, steps, form):
    with tempfile.TemporaryDirectory() as folder:
        ask(nnc, "compile", target, steps, form, "-o", folder)
        text = (pathlib.Path(folder) / "lstm.c").stat().st_size
    arena = json.loads(ask(nnc, "plan", target, steps, form, "--format", "json"))["peak"]
    print(f"{form:12} {text / 1e3:8.0f} kB of C {arena:10,} B of arena", flush=True)


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("build", type=pathlib.Path)
    words.add_argument("--steps", type=int, default=1000)
    words.add_argument("--rounds", type=int, default=5)
    words.add_argument("--target")
    given = words.parse_args()
    nnc = given.build.resolve() / "nnc"
    cpu = pathlib.Path("/proc/cpuinfo").read_text()
    target = given.target or next((t for t, flag in TARGETS.items() if flag in cpu), "generic")
    for form in FORMS:
        show_size(nnc, target, given.steps, form)
    times = {form: [] for form in FORMS}
    for number in range(given.rounds):
        for form in sorted(FORMS, reverse=bool(number % 2)):
            times[form].append(latency(nnc, target, given.steps, form))
    ratios = [loop / text for loop, text in zip(*times.values())]
    step = statistics.median(times["loop"]) / given.steps
    print(f"{target}: {step * 1e6:.2f} us a step in the loop, {statistics.median(ratios):.3f} times the text written out "
          f"({min(ratios):.3f} to {max(ratios):.3f})")


if __name__ == "__main__":
    main()
