#!/usr/bin/python3
"""Products and convolutions of odd sizes, deep and wide ones too, and training steps of them: each compiles, for any target.

    odd_products.py --nnc build/nnc [--first SEED] [--count N]

The compiler judges its own plans, and refuses a kernel that seems to read what is not there: so that a wrong alarm of it
shows, sizes are such as suites of networks have not.  Nothing is run; random_graphs.py does that, of small sizes.  Speaks
TAP: one result for each hundred models.
"""

import argparse
import pathlib
import random
import subprocess
import tempfile

TARGETS = {"generic": [[], [], ["--size"], ["--threads", "3"]], "x86-64-v2": [[]], "x86-64-v3": [[], ["--threads", "3"]],
           "x86-64-v4": [[], ["--threads", "3"]], "aarch64": [[]], "cortex-m": [[], ["--size"]], "x86-64-v4-amx": [[]], "riscv64-v": [[]]}
BATCH = 100


def f32(*extents):
    return f"f32[{', '.join(map(str, extents))}]"


def model(draw):
    """As often small as large."""
    def size(doublings):
        return int(2 ** draw.uniform(0, doublings))
    m, n, k, b = size(9), size(9.5), size(12.3), draw.randint(2, 5)
    c, o, h, taps = size(7), size(7), draw.randint(3, 30), draw.choice([1, 3, 3, 5])
    return "nnc 1\nuse \"nn\"\n" + draw.choice([
        f"graph g(x: {f32(m, k)}, y: {f32(k, n)}) -> (z) {{\n    z = relu(x @ y)\n}}\n",
        f"graph g(x: {f32(m, k)}, y: {f32(n, k)}) -> (z) {{\n    z = x @ transpose(y)\n}}\n",
        f"graph g(x: {f32(k, m)}, y: {f32(k, n)}) -> (z) {{\n    z = transpose(x) @ y\n}}\n",
        f"graph g(x: {f32(b, m, k)}, y: {f32(b, k, n)}, s: f32[]) -> (z) {{\n    z = x @ y * s\n}}\n",
        f"graph g(x: {f32(m, k)}, y: f16[{k}, {n}]) -> (z) {{\n    z = tanh(x @ f32(y))\n}}\n",
        f"graph g(x: {f32(m, k)}, l: i64[{m}]) -> (loss: f32[]) {{\n    h = relu(dense@a(x, {n}))\n"
        f"    loss = mean(cross_entropy(dense@b(h, {size(6)}), l))\n    minimize(loss, with = sgd(rate = 0.1))\n}}\n",
        f"graph g(x: {f32(size(8), b, size(6))}) -> (loss: f32[]) {{\n    (h, last) = rnn(x, {size(6)})\n"
        "    loss = mean(h)\n    minimize(loss, with = adam(rate = 0.1))\n}\n",
        f"graph g(x: {f32(b, c, h, h)}, w: {f32(o, c, taps, taps)}) -> (z, dx, dw) {{\n"
        f"    z = conv2d(x, w, pad = {taps // 2}, stride = {draw.choice([1, 1, 2])})\n"
        "    (dx, dw) = grad(reduce_sum(sin(z)), wrt = [x, w])\n}\n",
    ])


def wrong(nnc, folder, seed):
    draw = random.Random(seed)
    text, target = model(draw), draw.choice(list(TARGETS))
    (folder / "g.nnc").write_text(text)
    command = [nnc, "compile", folder / "g.nnc", "--init-missing", "--target", target, "-o", folder, *draw.choice(TARGETS[target])]
    run = subprocess.run(command, capture_output=True, text=True)
    return run.returncode and f"seed {seed} for {target}: {run.stderr.strip()[-300:]}\n{text}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nnc", required=True)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    options = parser.parse_args()
    print(f"1..{-(-options.count // BATCH)}")
    with tempfile.TemporaryDirectory(prefix="nnc-odd-") as folder:
        for number, first in enumerate(range(options.first, options.first + options.count, BATCH), 1):
            last = min(first + BATCH, options.first + options.count) - 1
            found = list(filter(None, (wrong(options.nnc, pathlib.Path(folder), seed) for seed in range(first, last + 1))))
            for line in "\n".join(found).splitlines():
                print("#", line)
            print("not ok" if found else "ok", number, "-", f"seeds {first} to {last}", flush=True)


if __name__ == "__main__":
    main()
