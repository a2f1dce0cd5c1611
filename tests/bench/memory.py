"""What gradients take of memory, without a limit and with some, and what these cost.

    memory.py BUILD [MODEL...] [--limit BYTES...] [--time] [--target T]

The default are all models of memory/, limits that are shares of what is taken without one and the least there is, and the
widest target here.

Gradients of params stay in the state, as JAX and llm.c give them back in arrays of their own: the arena is for all else.
Prints, for each limit, the arena and operations by those without a limit; with --time also the latency by that, the median
of five rounds, each of which asks both.  Beside it stands what others take.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess

from bench import TARGETS

MODELS = pathlib.Path(__file__).with_name("memory")
OTHERS = {
    "perceptron": "JAX: 14.0 MB of temporaries, 3.5 with jax.checkpoint",
    "rnn": "JAX: 1.86 MB of temporaries, 0.81 with jax.checkpoint",
    "vgg16": "ccv: 471 MB for the gradients",
    "gpt2": "llm.c: 587 MB of activations and their gradients",
}
SHARES = [0.75, 0.5, 0.33, 0.25, 0.2]
ROUNDS = 5


def ask(nnc, verb, model, target, limit, *more):
    limited = ["--memory-limit", str(limit)] if limit else []
    return subprocess.run([nnc, verb, MODELS / f"{model}.nnc", "--target", target, *limited, *more], text=True,
                          capture_output=True, check=False)


def plan(nnc, model, target, limit=None):
    return json.loads(ask(nnc, "plan", model, target, limit, "--format", "json").stdout)


def latency(nnc, model, target, limit=None):
    return json.loads(ask(nnc, "bench", model, target, limit, "--format", "json", "--seconds", "1").stdout)["median_s"]


def least_limit(nnc, model, target, peak):
    """The smallest arena; what is not below `peak` cannot be lowered."""
    said = ask(nnc, "plan", model, target, 1).stderr
    return min(int(re.search(r"takes an arena of (\d+) bytes", said)[1]), peak)


def show(nnc, model, target, limits, timed):
    free = plan(nnc, model, target)["peak"]
    least = least_limit(nnc, model, target, free)
    print(f"{model} for {target}: {free / 1e6:.3f} MB.  {OTHERS[model]}")
    limits = limits or [round(free * share) for share in SHARES if free * share > least] + [least] * (least < free)
    for limit in limits:
        planned = plan(nnc, model, target, limit)
        did = planned.get("recomputed", {"operations": 1, "operations_before": 1})
        line = (f"  {planned['peak'] / 1e6:9.3f} MB  {planned['peak'] / free:6.1%}"
                f"  operations {did['operations'] / did['operations_before'] - 1:+7.1%}")
        if timed:
            ratios = [latency(nnc, model, target, limit) / latency(nnc, model, target) for _ in range(ROUNDS)]
            line += f"  time {statistics.median(ratios) - 1:+7.1%} ({min(ratios) - 1:+.1%} to {max(ratios) - 1:+.1%})"
        print(line, flush=True)


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("build", type=pathlib.Path)
    words.add_argument("model", nargs="*", default=list(OTHERS))
    words.add_argument("--limit", nargs="*", type=int)
    words.add_argument("--time", action="store_true")
    words.add_argument("--target")
    given = words.parse_args()
    cpu = pathlib.Path("/proc/cpuinfo").read_text()
    target = given.target or next((t for t, flag in TARGETS.items() if flag in cpu), "generic")
    for model in given.model:
        show(given.build.resolve() / "nnc", model, target, given.limit, given.time)


if __name__ == "__main__":
    main()
