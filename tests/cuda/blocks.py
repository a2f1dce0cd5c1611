#!/usr/bin/python3
"""Random contractions by blocks of random shapes, on the emulated device that finds races, against the reference evaluator.

    blocks.py --nnc build/nnc [--first SEED] [--count N]

Extents are seldom multiples of tiles; depths are split among groups and blocks.  Speaks TAP: a result for each.
"""

import argparse
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "emitted"))
import build  # noqa: E402


def contraction(chance):
    """(inputs, the weights, an expression of both)"""
    rows, columns, depth = chance.randint(1, 90), chance.randint(1, 90), chance.randint(64, 300)
    image = f"{chance.randint(1, 2)}, {{}}, {chance.randint(5, 14)}, {chance.randint(5, 14)}"
    groups, each, outputs = chance.randint(2, 4), chance.randint(8, 12), chance.randint(4, 9)
    channels = chance.choice([14, 16, 29, 32, 60, 64])
    return chance.choice([
        (f"x: f32[{rows}, {depth}]", f"w: f32[{depth}, {columns}]", "x @ w"),
        (f"x: f32[{depth}]", f"w: f32[{depth}, {columns}]", "x @ w"),
        (f"x: f64[{rows}, {depth}]", f"w: f64[{columns}, {depth}]", "x @ transpose(w, axes = [1, 0])"),
        (f"x: f16[2, 3, {rows}, {depth}]", f"w: f16[3, {depth}, {columns}]", "x @ w"),
        (f"x: f32[{image.format(each)}], b: f32[{columns}]", f"w: f32[{columns}, {each}, 3, 3]",
         f"conv2d(x, w, b, stride = {chance.randint(1, 2)}, pad = {chance.randint(0, 2)})"),
        (f"x: f32[{image.format(groups * each)}]", f"w: f32[{groups * outputs}, {each}, 3, 3]", f"conv2d(x, w, groups = {groups}, pad = 1)"),
        (f"x: f32[{image.format(groups * channels)}]", f"w: f32[{groups * outputs}, {channels}, 3, 2]",
         f"conv2d(x, w, groups = {groups}, pad = 1, dilation = {chance.randint(1, 2)}, stride = {chance.randint(1, 2)})"),
        (f"x: f32[2, {channels}, 40]", f"w: f32[{columns}, {channels}, 5]", "conv1d(x, w, pad = 2)"),
        (f"x: f32[1, {channels}, 4, 5, 6]", f"w: f32[{outputs}, {channels}, 2, 3, 1]", "conv3d(x, w, pad = 1)"),
    ])


def model(chance):
    inputs, weights, expression = contraction(chance)
    known = chance.random() < 0.6  # when compiling
    param = f"    param {weights} = uniform(low = -1, high = 1, seed = 5)\n" if known else ""
    mark = (f"tile_rows = {2 ** chance.randint(0, 6)}, tile_columns = {2 ** chance.randint(0, 6)}, "
            f"sums = {chance.choice([16, 32, 64])}, groups = {2 ** chance.randint(0, 4)}, splits = {chance.choice([1, 2, 3, 4, 6, 8])}")
    given = inputs if known else f"{inputs}, {weights}"
    return f"nnc 1\ngraph m({given}) -> (y) {{\n{param}    p = {expression} @kernel(0, blocked, {mark})\n    y = tanh(p * 0.05)\n}}\n"


def test(nnc, seed, folder):
    """None, or what is wrong.  A shape that is refused is followed by another."""
    chance, path = random.Random(seed), folder / "m.nnc"
    for _ in range(100):
        path.write_text(model(chance))
        error = build.command([nnc, "compile", path, "-o", folder, "--target", "cuda:sm_90", "--emit", "cuda,test"])
        if not error or "this kernel cannot be computed so" not in error:
            break
    error = error or build.command([*build.cuda_words("g++", "-O0", "-g", "-fsanitize=thread"), folder / "m.cu", folder / "m_test.cu",
                                    "-o", folder / "m", "-lm"]) or build.command([folder / "m"], folder)
    return f"{path.read_text()}{error}" if error else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=16)
    arguments = parser.parse_args()
    seeds = range(arguments.first, arguments.first + arguments.count)
    return build.report([(f"seed {s}", "cuda:sm_90", "g++", (arguments.nnc, s)) for s in seeds], test)


if __name__ == "__main__":
    sys.exit(main())
