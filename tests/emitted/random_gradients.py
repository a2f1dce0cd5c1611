#!/usr/bin/python3
"""Random networks and their gradients, of first and second order, through loops in loops, scans and library calls.

    random_gradients.py --nnc build/nnc [--target T ...] [--first N] [--count N] [--cc CC]

In f64 the evaluator's gradients along a random direction must be central differences of what they are gradients of.  In
f32 the same network as emitted C must agree with the evaluator, every other one within the least memory that it can be
made to take.  Speaks TAP: one result per network.
"""

import argparse
import pathlib
import random
import re
import subprocess
import sys

import numpy as np

import build

SIZE = 8  # all tensors are square
INPUTS = ["x", "y", "k", "w0", "w1", "w2"]
ASKED = ["w0", "w1", "x"]  # wrt
STEP = 1e-6
MOST_DEEP = 3
ROOM = [1, 1, 1.2, 1.5]  # times the least memory
ROUNDING = 1e-6  # of sums of numbers about 1, though little may be left of them


class Network:
    """Draws the text of a graph: all of it is smooth, so that differences tell."""

    def __init__(self, seed, dtype):
        self.chance, self.dtype, self.names, self.lines = random.Random(seed), dtype, 0, ["nnc 1", 'use "nn"']
        self.loops = self.chance.choice([0, 0.2, 0.4])
        self.sums = []  # of rows, one number each, that can be read where the text has come to

    def name(self):
        self.names += 1
        return f"v{self.names}"

    def put(self, depth, text):
        self.lines.append("    " * depth + text)

    def expression(self, seen):
        a, b = self.chance.choice(seen), self.chance.choice(seen)
        w = self.chance.choice(["w0", "w1", "w2"])
        if self.sums and self.chance.random() < 0.3:
            r = self.chance.choice(self.sums)
            return self.chance.choice([f"{a} * rsqrt(1.0 + square({r}))", f"{a} - {r} * 0.1", f"sigmoid({a} + {r}) * {b}",
                                       f"tanh({a} * tanh({r}))"])
        return self.chance.choice([
            f"{a} @ {w} * 0.4", f"tanh({a} @ {w})", f"matmul({a}, {w}, transpose_y = true) * 0.4", f"gelu_tanh({a} @ {w})",
            f"gelu_tanh({a})", f"tanh({a})", f"sigmoid({a}) * {b}", f"{a} * {b} * 0.5", f"{a} + {b}", f"exp(-square({a}))",
            f"softmax({a})", f"layer_norm@n{self.names}({a})", f"{a} / (1.5 + square({b}))", f"transpose({a})",
            f"{a} + mean({b}, axes = 0)", f"select(k > 0.0, {a}, tanh({b}))", f"-({a} * 2.0)", f"sin({a}) * k",
            f"concat({a}[1:], {b}[0:1], axis = 0)", f"{a} * reduce_sum({b} * {b}, axes = 1, keep = true) * 0.05",
            f"{a} * rsqrt(1.0 + mean({b} * {b}, axes = -1, keep = true))"])

    def statements(self, depth, seen, least, most):
        seen = list(seen)
        for _ in range(self.chance.randint(least, most)):
            if depth < MOST_DEEP and self.chance.random() < self.loops:
                seen += self.scan(depth, seen) if self.chance.random() < 0.3 else self.loop(depth, seen)
                continue
            if self.chance.random() < 0.2:
                self.sum_rows(depth, seen)
            text, name = self.expression(seen), self.name()
            self.put(depth, f"{name} = {text}")
            seen.append(name)
        return seen

    def sum_rows(self, depth, seen):
        a, name = self.chance.choice(seen), self.name()
        over = f"square(reduce_sum({a} * {self.chance.choice(seen)}, axes = 1, keep = true)) * 0.3"
        self.put(depth, f"{name} = {self.chance.choice([over, f'mean({a}, axes = 1, keep = true)', f'reduce_max({a}, axes = 1, keep = true)'])}")
        self.sums.append(name)

    def loop(self, depth, seen):
        choice, count = self.chance.choice, self.chance.randint(1, 2)
        carried, results = [self.name() for _ in range(count)], [self.name() for _ in range(count)]
        counter, rounds = self.name(), self.chance.randint(2, 6)
        begin = ", ".join(f"{name} = {choice(seen)}" for name in carried)
        self.put(depth, f"({', '.join([*results, self.name()])}) = while ({counter} < {rounds}) with ({begin}, {counter} = 0) {{")
        known, outside = seen if self.chance.random() < 0.5 else seen[-2:], len(self.sums)
        made = [name for name in self.statements(depth + 1, known + carried, 1, 4) if name not in known]
        del self.sums[outside:]
        after = ", ".join(f"{name} <- tanh({choice(made)})" for name in carried)
        self.put(depth, f"}} next ({after}, {counter} <- {counter} + 1)")
        return results

    def scan(self, depth, seen):
        """A recurrent layer over the rows of a tensor."""
        rows, begin, w = self.chance.choice(seen), self.chance.choice(seen), self.chance.choice(["w0", "w1"])
        row, held, step, last, all_ = (self.name() for _ in range(5))
        self.put(depth, f"({last}, {all_}) = scan ({row} in {rows}) with ({held} = mean({begin}, axes = 0, keep = true)) {{")
        self.put(depth + 1, f"{step} = tanh({held} @ {w} + {row} @ {self.chance.choice(['w0', 'w2'])})")
        self.put(depth, f"}} next ({held} <- {step} * 0.8 + {held} * 0.2) stack (reshape({step}, shape = [{SIZE}]))")
        return [all_]

    def text(self):
        kind = f"{self.dtype}[{SIZE}, {SIZE}]"
        self.put(0, f"graph g({', '.join(f'{name}: {kind}' for name in INPUTS)}) -> (q, a, b, c, o) {{")
        seen = self.statements(1, ["x", "y"], 4, 7 if self.loops else 14)
        made, choice = seen[2:], self.chance.choice
        self.put(1, f"loss = mean(square(tanh({made[-1]}))) + mean(tanh({choice(made)}) * {choice(made)})")
        if self.chance.random() < 0.25:
            self.put(1, f"(g0, g1, g2) = grad(loss, wrt = [{', '.join(ASKED)}])")
            self.put(1, "q = reduce_sum(g0 * k) + reduce_sum(tanh(g1)) + reduce_sum(g2 * g2)")
        else:
            self.put(1, "q = loss")
        self.put(1, f"(a, b, c) = grad(q, wrt = [{', '.join(ASKED)}])")
        self.put(1, f"o = {choice([*self.sums, *seen[-4:]])} * 1.0")
        self.put(0, "}")
        return "\n".join(self.lines) + "\n"


class Case:
    def __init__(self, arguments, seed, target, folder):
        self.nnc, self.cc, self.seed, self.target, self.folder = arguments.nnc, arguments.cc, seed, target, folder

    def write(self, dtype):
        path = self.folder / f"{dtype}.nnc"
        path.write_text(Network(self.seed, dtype).text())
        return path

    def call(self, *words):
        done = subprocess.run([str(w) for w in (self.nnc, *words)], capture_output=True, text=True, timeout=300, check=False)
        return done.returncode, done.stdout + done.stderr

    def evaluate(self, path, values, wanted):
        words = []
        for name, value in values.items():
            np.save(self.folder / f"{name}.npy", value)
            words += ["--input", f"{name}={self.folder / name}.npy"]
        for name in wanted:
            words += ["--output", f"{name}={self.folder / name}_out.npy"]
        status, said = self.call("run", path, "--target", "reference", *words)
        assert status == 0, said
        return [np.load(self.folder / f"{name}_out.npy") for name in wanted]

    def differences(self):
        """The sum of gradients times directions is the difference along them."""
        draw = np.random.default_rng(self.seed)
        path, values = self.write("f64"), {name: draw.normal(0, 0.6, (SIZE, SIZE)) for name in INPUTS}
        along = {name: draw.normal(0, 1, (SIZE, SIZE)) for name in ASKED}
        sides = [self.evaluate(path, {**values, **{n: values[n] + sign * STEP * along[n] for n in ASKED}}, ["q"])[0]
                 for sign in (1, -1)]
        parts = [gradient * along[name] for name, gradient in zip(ASKED, self.evaluate(path, values, ["a", "b", "c"]))]
        found, expected = sum(part.sum() for part in parts), (sides[0] - sides[1]) / (2 * STEP)
        scale = sum(np.abs(part).sum() for part in parts) + np.abs(sides[0]) * 1e-3 + 1e-6
        assert abs(found - expected) < 1e-5 * scale, f"the gradient along a direction is {found}, the difference {expected}"

    def limit(self, path):
        """The least memory that it can be made to take, or some more."""
        if self.seed % 2 == 0:
            return []
        _, said = self.call("compile", path, "--target", self.target, "--memory-limit", "1", "-o", self.folder / "small")
        least = int(re.search(r"arena of ([\d,]+) bytes at least", said)[1].replace(",", ""))
        return ["--memory-limit", int(least * ROOM[self.seed // 2 % len(ROOM)])]

    def emitted(self):
        path = self.write("f32")
        inputs = [word for number, name in enumerate(INPUTS, 1) for word in ("--input", f"{name}=random:{number}")]
        status, said = self.call("run", path, "--check", "--cc", self.cc, "--target", self.target, *self.limit(path), *inputs)
        errors = [float(error) for error in re.findall(r"^check \w+: largest error ([^,]+),.* DIFFERS$", said, re.M)]
        assert len(errors) + said.count("agrees") == 5 and status in (0, 1), said
        assert all(error < ROUNDING for error in errors), said


def test(arguments, seed, target, folder):
    case = Case(arguments, seed, target, folder)
    case.differences()
    case.emitted()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--target", nargs="*", default=["generic", "x86-64-v3"], help="in turns")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--cc", default="gcc -O1")
    arguments = parser.parse_args()
    arguments.nnc = arguments.nnc.resolve()  # Meson says ./nnc
    here = [t for t in arguments.target if build.available(t, arguments.cc)] or ["generic"]
    seeds = range(arguments.first, arguments.first + arguments.count)
    cases = [(f"{seed} for {here[seed % len(here)]}", here[seed % len(here)], arguments.cc, (arguments, seed, here[seed % len(here)]))
             for seed in seeds]
    return build.report(cases, test)


if __name__ == "__main__":
    sys.exit(main())
