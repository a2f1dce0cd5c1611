"""Two builds of nnc side by side, in turns, as ratios: is a change as fast as what it replaces?

    turns.py OLD NEW [--rounds N] [--target T ...] [--model M ...]        the folders of the builds

Columns: new by old, medians of the rounds' ratios.  Every round asks both, one after the other, so what else the machine
does meets both alike.  Bytes of the arena must be the same, or are shown.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

from bench import TARGETS, find_model, measure

ROOT = pathlib.Path(__file__).resolve().parents[2]


def compile_once(nnc, model, target):
    """Seconds and MB of a compilation, and kB of C."""
    with tempfile.TemporaryDirectory() as folder:
        seconds, memory = measure([nnc, "compile", model, "--target", target, "-o", folder])
        return seconds, memory, sum(path.stat().st_size for path in pathlib.Path(folder).glob("*.c")) / 1e3


def latency(nnc, model, target):
    words = [nnc, "bench", model, "--target", target, "--format", "json"]
    return json.loads(subprocess.check_output(words))["median_s"]


def arena(nnc, model, target):
    words = [nnc, "plan", model, "--target", target, "--format", "json"]
    return json.loads(subprocess.check_output(words))["peak"]


def compare(old, new, model, target, rounds):
    ratios = []
    for number in range(rounds):
        both = {}
        for nnc in (old, new) if number % 2 else (new, old):
            both[nnc] = (*compile_once(nnc, model, target), latency(nnc, model, target))
        ratios.append([now / then for now, then in zip(both[new], both[old])])
    row = [statistics.median(column) for column in zip(*ratios)]
    arenas = [arena(nnc, model, target) for nnc in (old, new)]
    shown = f"{arenas[1]:,}" if arenas[0] == arenas[1] else f"{arenas[0]:,} -> {arenas[1]:,}"
    print(f"{model.stem:12} {target:10}" + "".join(f" {ratio:9.3f}" for ratio in row) + f"  {shown}", flush=True)


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("old", type=pathlib.Path)
    words.add_argument("new", type=pathlib.Path)
    words.add_argument("--rounds", type=int, default=5)
    words.add_argument("--target", nargs="*", default=list(TARGETS))
    words.add_argument("--model", nargs="*", default=[])
    given = words.parse_args()
    models = [find_model(name) for name in given.model] or sorted((ROOT / "models").glob("*.nnc"))
    print(f"{'model':12} {'target':10} {'compile':>9} {'memory':>9} {'C text':>9} {'latency':>9}  arena")
    for model in models:
        for target in given.target:
            compare(given.old.resolve() / "nnc", given.new.resolve() / "nnc", model, target, given.rounds)


if __name__ == "__main__":
    main()
