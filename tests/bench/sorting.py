#!/usr/bin/env python3
"""Sorting and the first few of rows: the latency of builds in turns, and PyTorch's on one thread where it is there.

    tests/bench/sorting.py build [BUILD ...]      # by hand, a minute or two

A row for each size, the least of the turns; x is normal, of f32.
"""

import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

try:
    import torch
    torch.set_num_threads(1)
except ImportError:
    torch = None

CASES = [(64, 1000, 8), (64, 1000, 100), (64, 1000, None), (1, 20000, 1), (1, 20000, 20), (1, 20000, 1000), (1, 20000, None),
         (1, 1000000, 100), (1, 1000000, None), (1000, 64, None), (256, 256, None), (4096, 8, 2), (4096, 64, 6), (4096, 16, None)]
TURNS = 3


def latency(build, folder):
    words = [f"{build}/nnc", "run", f"{folder}/m.nnc", "--target", "host", "--input", f"x={folder}/x.npy", "--time"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    number, unit = re.search(r"latency: ([\d.]+) (\w+)", done.stdout + done.stderr).groups()
    return float(number) * {"s": 1e3, "ms": 1, "us": 1e-3, "ns": 1e-6}[unit]


def peer(x, k, seconds=0.3):
    if torch is None:
        return float("nan")
    x = torch.from_numpy(x)
    call = (lambda: torch.topk(x, k)) if k else (lambda: torch.sort(x))
    call()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e3


def main():
    builds = sys.argv[1:] or sys.exit(__doc__)
    print("| rows, elements | " + " | ".join(builds) + " | PyTorch |\n" + "|---" * (len(builds) + 2) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for rows, n, k in CASES:
            call = f"(y, i) = top_k(x, {k})" if k else "y = sort(x)"
            pathlib.Path(folder, "m.nnc").write_text(
                f'nnc 1\nuse "nn"\ngraph m(x: f32[{rows}, {n}]) -> ({"y, i" if k else "y"}) {{ {call} }}\n')
            x = np.random.default_rng(1).normal(size=(rows, n)).astype(np.float32)
            np.save(f"{folder}/x.npy", x)
            turns = [[latency(b, folder) for b in builds] + [peer(x, k)] for _ in range(TURNS)]
            shown = [f"{min(t[i] for t in turns):.3f} ms" for i in range(len(builds) + 1)]
            print(f"| {rows} x {n}, {f'first {k}' if k else 'all'} | " + " | ".join(shown) + " |", flush=True)


if __name__ == "__main__":
    main()
