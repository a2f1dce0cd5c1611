"""Chains of views into kernels of every kind, drawn at random: vector targets against the evaluator.

    random_views.py --nnc NNC [--first SEED] [--count N]        reports as TAP
"""

import argparse
import math
import pathlib
import random
import subprocess
import tempfile

TARGETS = ["x86-64-v2", "x86-64-v3", "x86-64-v4"]
EXTENTS = [8, 16, 17, 24, 32, 33, 48, 64]


def factors(dice, number):
    """Extents whose product it is"""
    found = []
    while number > 1:
        found.append(dice.choice([d for d in range(2, number + 1) if number % d == 0]))
        number //= found[-1]
    dice.shuffle(found)
    while len(found) > 4 or (len(found) > 2 and dice.random() < 0.3):
        i = dice.randrange(len(found) - 1)
        found[i:i + 2] = [found[i] * found[i + 1]]
    for _ in range(dice.choice([0, 0, 1, 1, 2])):
        found.insert(dice.randint(0, len(found)), 1)
    return found


class Graph:
    """x, and what views make of it: the last one is `name`, of `shape`"""

    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.shape = [self.dice.choice(EXTENTS) for _ in range(self.dice.choice([2, 2, 3]))]
        if self.dice.random() < 0.5:
            self.shape.insert(0, self.dice.choice([1, 2, 3]))
        self.inputs, self.name, self.lines = {"x": self.shape}, "x", []
        for _ in range(self.dice.randint(1, 4)):
            self.view()

    def put(self, text, shape):
        self.name, self.shape = f"v{len(self.lines)}", shape
        self.lines.append(f"{self.name} = {text}")

    def view(self):
        kind, axis = self.dice.random(), self.dice.randrange(len(self.shape))
        if kind < 0.35 and len(self.shape) > 1:
            axes = self.dice.sample(range(len(self.shape)), len(self.shape))
            self.put(f"transpose({self.name}, axes = {axes})", [self.shape[a] for a in axes])
        elif kind < 0.7:
            shape = factors(self.dice, math.prod(self.shape))
            self.put(f"reshape({self.name}, shape = {shape})", shape)
        elif kind < 0.85 and self.shape[axis] > 8:
            begin, end = self.dice.choice([0, 0, 1, 3]), self.shape[axis] - self.dice.choice([0, 0, 1, 2])
            shape = self.shape[:axis] + [end - begin] + self.shape[axis + 1:]
            self.put(f"slice({self.name}, axes = {axis}, begin = {begin}, end = {end})", shape)
        else:
            self.put(f"{self.dice.choice(['relu', 'tanh', 'abs'])}({self.name})", self.shape)

    def end(self):
        """The kernel that reads it"""
        dice, x = self.dice, self.name
        axis, axes = dice.randrange(len(self.shape)), sorted(dice.sample(range(len(self.shape)), dice.randint(1, len(self.shape))))
        ends = [f"reduce_{dice.choice(['sum', 'max', 'prod'])}({x}, axes = {axes}, keep = {dice.choice(['true', 'false'])})",
                f"mean({x}, axes = {axes})", f"layer_norm({x})", f"standardize({x}, axes = {axes})", f"softmax({x}, axis = {axis})",
                f"argmax({x}, axis = {axis})", f"cumsum({x}, axis = {axis})", f"{x} + reduce_max({x}, axes = {axes}, keep = true)",
                f"grad(reduce_sum(square(softmax({x}, axis = {axis}))), wrt = x)"]
        if len(self.shape) > 1:
            self.inputs["w"] = [dice.choice([1, 5, 16, 33]), self.shape[-1]]
            ends += 2 * [f"matmul({x}, w, transpose_y = true)"]
            last = [*range(len(self.shape) - 2), len(self.shape) - 1, len(self.shape) - 2]
            ends += [f"matmul({x}, transpose({x}, axes = {last})) + w[0, 0]"]
        image = [1] * (4 - len(self.shape)) + self.shape
        if len(image) == 4 and image[1] <= 64:
            window = [min(3, image[2]), min(3, image[3])]
            self.inputs["k"] = [dice.choice([1, 4, 16]), image[1], *window]
            ends += [f"conv2d(reshape({x}, shape = {image}), k, pad = {dice.choice([0, 1])})", f"max_pool(reshape({x}, shape = {image}), window = {window})"]
        return dice.choice(ends)

    def text(self):
        end = self.end()
        inputs = ", ".join(f"{name}: f32{shape}" for name, shape in self.inputs.items())
        return 'nnc 1\nuse "nn"\ngraph g(%s) -> (y) {\n    %s\n}\n' % (inputs, "\n    ".join([*self.lines, f"y = {end}"]))


def check(nnc, folder, seed, target):
    graph = Graph(seed)
    (folder / "g.nnc").write_text(graph.text())
    given = [word for name in graph.inputs for word in ("--input", f"{name}=random:{seed}")]
    done = subprocess.run([nnc, "run", "g.nnc", *given, "--target", target, "--cc", "clang -O1", "--check", "--threads", str(1 + seed % 2)],
                          capture_output=True, text=True, cwd=folder, timeout=120)
    return "" if done.returncode == 0 and "agrees" in done.stdout else f"{(folder / 'g.nnc').read_text()}{done.stdout}{done.stderr}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--first", type=int, default=240)
    parser.add_argument("--count", type=int, default=60)
    options = parser.parse_args()
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    targets = TARGETS if "avx512vl" in flags else TARGETS[:2] if "avx2" in flags else TARGETS[:1]
    print(f"1..{options.count}")
    with tempfile.TemporaryDirectory() as folder:
        for i in range(options.count):
            seed = options.first + i
            fault = check(options.nnc.resolve(), pathlib.Path(folder), seed, targets[seed % len(targets)])
            print("".join(f"# {line}\n" for line in fault.splitlines()) + f"{'not ' if fault else ''}ok {i + 1} - seed {seed}", flush=True)


if __name__ == "__main__":
    main()
