#!/usr/bin/python3
"""Random programs of loops and branches that begin and end in states and outputs, against the reference evaluator.

    random_loops.py --nnc build/nnc [--target T] [--cc CC,...] [--level L,...] [--first SEED] [--count N] [--sanitize]

Each has several graphs that share states, with whiles of known and unknown rounds, cases, updates of rows and products,
in any order and nested; every value is a small matrix.  `nnc compile --emit test` makes a program of each that calls the
graphs three times over, so what is left in a state shows.  Speaks TAP: one result for each ten programs.
"""

import argparse
import os
import pathlib
import random
import sys
import tempfile

import numpy

import build

GROUP = 10
TYPE = "f32[4, 4]"
ROUNDS = [0, 2, 1, 3, 7, -1, 4]  # that the input k asks for; cases have branches for 0 and 2


class Writer:
    """Statements of a graph, each with the names that may be read where it stands."""

    def __init__(self, chance, states):
        self.chance, self.states, self.lines, self.count = chance, states, [], 0

    def name(self, stem="v"):
        self.count += 1
        return f"{stem}{self.count}"

    def put(self, depth, text):
        self.lines.append("    " * depth + text)

    def expression(self, seen, numbers):
        a, b = self.chance.choice(seen), self.chance.choice(seen)
        at = self.chance.choice(numbers + ["k", "1"])
        return self.chance.choice([
            f"tanh({a} @ {b})", f"tanh({a} @ w)", f"{a} * 0.5", f"tanh({a})", f"{a} * 0.5 + {b} * 0.5", f"select({a} > {b}, {a}, {b})",
            f"dynamic_update({a}, [{at}, 0], {b}[1:2])", f"dynamic_update({a}, [{at}, 0], tanh({b}[0:1] @ {a}))",
            f"transpose({a})", f"concat({a}[1:], {b}[0:1], axis = 0)"])

    def statements(self, depth, seen, numbers, most):
        """Some, and what may be read behind them."""
        seen = list(seen)
        for _ in range(self.chance.randint(0 if depth > 1 else 2, most)):
            kind = self.chance.random()
            if kind < 0.25 and depth < 4:
                seen += self.loop(depth, seen, numbers)
            elif kind < 0.4 and depth < 4:
                seen += self.branches(depth, seen, numbers)
            else:
                name = self.name()
                self.put(depth, f"{name} = {self.expression(seen, numbers)}")
                seen.append(name)
        return seen

    def loop(self, depth, seen, numbers):
        carried = [self.name("c") for _ in range(self.chance.randint(1, 3))]
        results, i = [self.name("r") for _ in carried], self.name("i")
        bound = self.chance.choice(["k", str(self.chance.randint(1, 5))])
        first = ", ".join(f"{c} = {self.chance.choice(seen)}" for c in carried)
        at_end = self.chance.random() < 0.2
        head = "do" if at_end else f"while ({i} < {bound})"
        self.put(depth, f"({', '.join(results + [self.name('n')])}) = {head} with ({first}, {i} = 0) {{")
        inner = self.statements(depth + 1, seen + carried, numbers + [i], 3)
        pool = [v for v in inner if v not in seen] if self.chance.random() < 0.8 else inner
        nexts = ", ".join(f"{c} <- {self.chance.choice(pool)}" for c in carried)
        test = f" while ({i} + 1 < {bound})" if at_end else ""
        self.put(depth, f"}} next ({nexts}, {i} <- {i} + 1){test}")
        return results

    def branches(self, depth, seen, numbers):
        results = [self.name("b") for _ in range(self.chance.randint(1, 2))]
        self.put(depth, f"({', '.join(results)}) = case ({self.chance.choice(numbers + ['k'])}) {{")
        for key in ("0: {", "2: {", "else: {"):
            self.put(depth + 1, key)
            inner = self.statements(depth + 2, seen, numbers, 2)
            self.put(depth + 2, "yield " + ", ".join(self.chance.choice(inner) for _ in results))
            self.put(depth + 1, "}")
        self.put(depth, "}")
        return results

    def graph(self, number):
        used = self.chance.sample(self.states, self.chance.randint(0, len(self.states)))
        outputs = [f"y{i}" for i in range(self.chance.randint(1, 3))]
        head = ", ".join(f"{y}: {TYPE}" for y in outputs)
        self.put(0, f"graph g{number}(x: {TYPE}, w: {TYPE}, k: i32[]) -> ({head}) {{")
        for state in used:
            self.put(1, f"state {state}: {TYPE} = 0.25")
        seen = self.statements(1, ["x", *used], [], 5)
        late = seen[1 + len(used):] or seen
        for y in outputs:
            self.put(1, f"{y} = {self.chance.choice(late)}" + self.chance.choice(["", "", f" + {self.chance.choice(seen)}"]))
        for state in used:
            if self.chance.random() < 0.8:
                self.put(1, f"{state} <- {self.chance.choice(late)}")
        self.put(0, "}")


def text_of(seed):
    chance = random.Random(seed)
    lines = ["nnc 1"]
    for number in range(chance.randint(1, 2)):
        writer = Writer(chance, ["s", "t"])
        writer.graph(number)
        lines += writer.lines
    return "\n".join(lines) + "\n"


def commands(arguments, folder, name, way):
    """That build and run the test of a program."""
    if arguments.target.startswith("cuda"):
        yield [*build.cuda_words(way[0]), folder / f"{name}_test.cu", folder / f"{name}.cu", "-o", folder / name, "-lm"]
    else:
        flags = [*build.march(arguments.target), *build.WARNINGS, "-ffp-contract=off"]
        flags += ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"] if arguments.sanitize else []
        yield [way[0], *build.C99, f"-O{way[1]}", *flags, folder / f"{name}.c", folder / f"{name}_test.c", "-lm", "-o",
               folder / name]
    yield [folder / name]


def wrong(arguments, folder, seed, number):
    """None, or what is."""
    name = f"r{seed}"
    model = folder / f"{name}.nnc"
    model.write_text(text_of(seed))
    way = arguments.ways[number % len(arguments.ways)]
    kind = "cuda" if arguments.target.startswith("cuda") else "c"
    numpy.save(folder / f"{name}.npy", numpy.int32(ROUNDS[seed % len(ROUNDS)]))
    compiles = [arguments.nnc, "compile", model, "-o", folder, "--input", f"k={folder / name}.npy", "--target", arguments.target, "--emit", f"{kind},test", "--name", name, "--weights",
                "c", *(["--checked"] if arguments.sanitize and not arguments.target.startswith("cuda") else [])]
    for command in [compiles, *commands(arguments, folder, name, way)]:
        error = build.command(command)
        if error:
            return f"seed {seed} for {arguments.target} with {way[0]} -O{way[1]}: {error[:2000]}\n{model.read_text()}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--target", default="generic")
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--level", default="1")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=int(os.environ.get("NNC_RANDOM_ROUNDS", "60")))
    parser.add_argument("--sanitize", action="store_true")
    arguments = parser.parse_args()
    arguments.nnc = arguments.nnc.resolve()
    arguments.ways = [(cc, level) for cc in arguments.cc.split(",") if build.available(arguments.target, cc)
                      for level in arguments.level.split(",")]
    if not arguments.ways:
        print(f"1..0 # SKIP no {arguments.cc}, or the machine is no {arguments.target}")
        return 0
    failed = 0
    groups = range(arguments.first, arguments.first + arguments.count, GROUP)
    print(f"1..{len(groups)}")
    for number, first in enumerate(groups, 1):
        seeds = range(first, min(first + GROUP, arguments.first + arguments.count))
        with tempfile.TemporaryDirectory() as folder:
            errors = [e for e in build.side_by_side(lambda s: wrong(arguments, pathlib.Path(folder), s, s), seeds) if e]
        print(f"{'not ok' if errors else 'ok'} {number} - seeds {seeds[0]} to {seeds[-1]}", flush=True)
        for line in "\n".join(errors).splitlines():
            print("#", line)
        failed += bool(errors)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
