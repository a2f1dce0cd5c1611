"""The figures of docs/performance.md, measured here and now.

    bench.py BUILD [MODEL ...]        without models: all of models/, the contraction kernels and the parser

Times of nnc are the best of three, times of the C compilers of one run, both in processor time; latencies are medians,
as shares of the multiply-add peak that `nnc bench` measures in the same run.  Sizes and peaks of memory do not depend
on the machine.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TARGETS = {"x86-64-v4": "avx512f", "x86-64-v3": "avx2"}
ROOT = pathlib.Path(__file__).resolve().parents[2]


def measure(words):
    """Seconds on the processor and peak memory (MB) of a command that must succeed."""
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"failed: {' '.join(map(str, words))}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def best(words, times=3):
    return min(measure(words) for _ in range(times))


def compiler_row(nnc, model, target, folder):
    seconds, memory = best([nnc, "compile", model, "--target", target, "-o", folder])
    (source,) = pathlib.Path(folder).glob("*.c")
    flags = re.search(r"Compile with: (.*) \*/", source.read_text()).group(1).split()
    words = ["-std=gnu99", *flags, "-c", source, "-o", pathlib.Path(folder) / "o.o"]
    clang, gcc = (measure([cc, *words])[0] for cc in ("clang", "gcc"))
    plan = json.loads(subprocess.check_output([nnc, "plan", model, "--target", target, "--format", "json"]))
    size = source.stat().st_size / 1e3
    return f"{seconds * 1e3:8.0f} {memory:8.0f} {size:8.0f} {clang:8.1f} {gcc:8.1f} {plan['peak']:12,}"


def show_model(nnc, model, targets):
    for target in targets:
        with tempfile.TemporaryDirectory() as folder:
            row = compiler_row(nnc, model, target, folder)
        r = json.loads(subprocess.check_output([nnc, "bench", model, "--target", target, "--format", "json"]))
        print(f"{model.stem:12} {target:10} {row} {r['median_s'] * 1e3:10.3f} {r['flop_per_s'] * 1e-9:8.1f}"
              f" {r['share_of_peak'] * 100:6.1f} %", flush=True)


def find_model(name):
    """A file, or the name of one of models/."""
    path = pathlib.Path(name)
    return path if path.exists() else ROOT / "models" / f"{path.stem}.nnc"


def main(build, names):
    nnc = build / "nnc"
    cpu = pathlib.Path("/proc/cpuinfo").read_text()
    targets = [t for t, flag in TARGETS.items() if flag in cpu] or ["generic"]
    models = [find_model(n) for n in names] or sorted((ROOT / "models").glob("*.nnc"))
    print(f"{'':23} {'nnc':>8} {'':8} {'C':>8} {'clang':>8} {'gcc':>8} {'arena':>12} {'latency':>10} {'rate':>8}"
          f" {'of the':>8}")
    print(f"{'model':12} {'target':10} {'ms':>8} {'MB':>8} {'kB':>8} {'-O3 s':>8} {'-O3 s':>8} {'bytes':>12} {'ms':>10}"
          f" {'GFLOP/s':>8} {'peak':>8}")
    for model in models:
        show_model(nnc, model, targets)
    if not names:
        print("\ncontractions", flush=True)
        subprocess.run([build / "tests/bench/contractions", *targets], check=True)
        print("parsing", flush=True)
        subprocess.run([build / "tests/bench/bench_parse"], check=True)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:])
