#!/usr/bin/python3
"""Training steps within a memory limit: the arena keeps to it, and the results are those without a limit.

    limits.py --nnc build/nnc [--target T ...] [--cc CC]

The models are those of recompute.py, without `checkpoint`.  The least limit is what the message names that refuses a
limit of one byte; another lies half way to what is taken without a limit.  Three steps and what is inferred then are
compared by their bits, but for cases whose kernels add up sums in other lanes.  Speaks TAP: one result per case and
target.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

import build
from recompute import CASES, compare, emitted

MAY_KEEP_ALL = {"in a scan", "shared params"}  # what could be saved does not stand at the peak on every target
KEEP_ALL = {("the last call alone", "x86-64-v3"), ("the last call alone", "x86-64-v4")}  # the scratch of wide tiles stands there


def plan(arguments, source, target, *flags):
    """The plan of the training step, or what was said instead."""
    done = subprocess.run([str(arguments.nnc), "plan", str(source), "--graph", "step", "--target", target, "--format",
                           "json", *flags], capture_output=True, text=True, check=False)
    return (json.loads(done.stdout), None) if done.returncode == 0 else (None, done.stderr)


def least_limit(arguments, source, target):
    _, said = plan(arguments, source, target, "--memory-limit", "1")
    found = re.search(r"takes an arena of (\d+) bytes at least", said or "")
    if not found:
        raise AssertionError(f"a limit of one byte is not refused: {said}")
    return int(found[1])


def check_plan(arguments, source, target, limit):
    planned, said = plan(arguments, source, target, "--memory-limit", str(limit))
    if said:
        raise AssertionError(f"a limit of {limit} bytes is refused: {said}")
    if planned["peak"] > limit:
        raise AssertionError(f"a limit of {limit} bytes, and a peak of {planned['peak']}")
    return planned


def test(arguments, name, target, folder):
    """None, or what is wrong."""
    case, source = CASES[name], folder / "model.nnc"
    source.write_text(case.written(False))
    free, said = plan(arguments, source, target)
    if said:
        return said
    least = least_limit(arguments, source, target)
    if least >= free["peak"] and name not in MAY_KEEP_ALL and (name, target) not in KEEP_ALL:
        return f"the least is {least} bytes of {free['peak']}"
    results = emitted(arguments, source, target)
    for limit in {least, (least + free["peak"]) // 2}:
        planned = check_plan(arguments, source, target, limit)
        if least < free["peak"] and planned["recomputed"]["peak_before"] != free["peak"]:
            return f"the peak before is said to be {planned['recomputed']['peak_before']}, and is {free['peak']}"
        again = emitted(arguments, source, target, "--memory-limit", str(limit))
        for number, (a, b) in enumerate(zip(results, again)):
            error = compare(a, b, case.lanes)
            if error:
                return f"within {limit} bytes, result {number}: {error}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--target", nargs="*", default=["generic", "x86-64-v4"])
    parser.add_argument("--cc", default="gcc -O0")  # the quickest; how well C is compiled is not the question
    parser.add_argument("--case")
    arguments = parser.parse_args()
    arguments.nnc = arguments.nnc.resolve()  # Meson says ./nnc
    return build.report([(f"{name} for {target}", target, arguments.cc.split()[0], (arguments, name, target))
                         for name in CASES for target in arguments.target if arguments.case in (None, name)], test)


if __name__ == "__main__":
    sys.exit(main())
