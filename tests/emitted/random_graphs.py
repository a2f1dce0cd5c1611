#!/usr/bin/python3
"""Random graphs: emitted code against the reference evaluator, across passes, allocators, targets and compilers.

    random_graphs.py --emit build/tests/emitted/random_emit --target T --cc CC,... [--level L,...] [--first SEED]
                     [--count N] [--control] [--sanitize] [--races] [--library] [--keep FOLDER]

Ten graphs become one program around host.c, for each compiler and level of optimization; those for CUDA run on a
GPU by --cc nvcc, else on the emulated device of tests/cuda/emulate.
--control has loops and branches in them.  --sanitize builds with AddressSanitizer, --races with ThreadSanitizer, which
knows the threads of the emulated device, and both run what nvcc has made under compute-sanitizer; --library asks OpenBLAS to compute what it can.  A graph that goes wrong is shrunk; its seed, how it was compiled and its text are printed.  Speaks TAP: one result for
each ten graphs.
"""

import argparse
import ctypes.util
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import build

# Of the largest magnitude of an output; products are rounded before they are added, as the evaluator does.
TOLERANCE = {"f64": 1e-9, "f32": 1e-3, "f16": 3e-2, "bf16": 2e-1}
NUMPY = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": np.uint16, "i64": np.int64, "i32": np.int32,
         "i16": np.int16, "i8": np.int8, "u8": np.uint8, "bool": np.uint8}
GROUP = 10


def tensor(data, at, dtype, count):
    values = np.frombuffer(data, NUMPY[dtype], count, at)
    at += values.nbytes
    if dtype == "bf16":
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return values.astype(np.float64) if dtype in TOLERANCE else values, at


def difference(dtype, main, got, want):
    """None, or what differs, in words; the graph computes in the dtype `main`."""
    with np.errstate(all="ignore"):
        same = (got == want) | ((got != got) & (want != want))
        if dtype in TOLERANCE:
            scale = 1 + np.max(np.abs(np.where(np.isfinite(want), want, 0)), initial=0)
            same |= np.abs(got - want) <= max(TOLERANCE[dtype], TOLERANCE[main]) * scale
    if np.all(same):
        return None
    first = int(np.argmin(same))
    return f"{np.count_nonzero(~same)} of {same.size} differ; at {first}: got {got[first]!r}, expected {want[first]!r}"


class Run:
    """Some graphs, given as words of random_emit, through everything."""

    def __init__(self, arguments, folder, words):
        self.arguments, self.folder, self.words = arguments, folder, words
        self.names = [f"r{w.split(':')[0].lstrip('c')}" for w in words]
        self.wrong, self.how = {}, {}
        self.way = None  # compiler and level; of what is wrong

    def tool(self):
        if self.way[0] != build.NVCC or not (self.arguments.sanitize or self.arguments.races):
            return []
        return ["compute-sanitizer", "--error-exitcode=1", f"--tool={'racecheck' if self.arguments.races else 'memcheck'}"]

    def flags(self):
        if self.way[0] == build.NVCC:
            return []
        flags = ["-O0" if self.arguments.sanitize else f"-O{self.way[1]}", "-ffp-contract=off", "-fno-math-errno"]
        if self.arguments.races:
            flags += ["-g", "-fsanitize=thread"]
        return flags + (["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"] if self.arguments.sanitize
                        else [])

    def compile_source(self, source):
        """The object beside the source; None or the error."""
        if self.arguments.target.startswith("cuda"):
            sizes = [line.split() for line in source.with_suffix(".sizes").read_text().splitlines()]
            races = ["-O0", "-g", "-fsanitize=thread"] if self.arguments.races and self.way[0] != build.NVCC else []
            return build.cuda_object(source.with_suffix(".cu"), sizes, self.way[0], *races)
        return build.compile_source(source, self.arguments.target, self.way[0], *self.flags())

    def go(self):
        """Fills `wrong`: name to words."""
        self.folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run([self.arguments.emit, self.folder, self.arguments.target + "+openblas" * self.arguments.library, *self.words],
                              capture_output=True, text=True, check=False)
        lines = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
        self.how = {name: rest for name, mark, rest in lines if mark == ":"}
        if done.returncode:
            last = list(self.how)[-1] if self.how else self.names[0]
            self.wrong[last] = f"random_emit ended with status {done.returncode}\n{done.stderr}"
            return
        for self.way in self.arguments.ways:
            self.build_and_run([line for line in lines if line[1] != ":"])
            if self.wrong:
                break

    def build_and_run(self, manifest):
        sources = [self.folder / f"{n}.c" for n in self.names]
        errors = build.side_by_side(self.compile_source, sources)
        self.wrong = {name: error for name, error in zip(self.names, errors) if error}
        if not self.wrong:
            self.run_host(manifest)

    def run_host(self, manifest):
        objects = [self.folder / f"{n}.o" for n in self.names]
        library = ["-Wl,--no-as-needed", "-lopenblas"] if self.arguments.library else []
        library += build.cuda_libraries(self.way[0]) if self.arguments.target.startswith("cuda") else []
        error = build.link(self.folder, self.names, objects, self.way[0], *library, *self.flags())
        if not error:
            outputs, error = build.run(self.folder, (self.folder / "inputs").read_bytes(), *self.tool())
        if error:
            begun = [line for line in error.splitlines() if line.isdigit()]
            self.wrong[self.names[int(begun[-1])] if begun else self.names[0]] = error
            return
        expected, at = (self.folder / "expected").read_bytes(), 0
        for name, output, rest in manifest:
            dtype, main, count = rest.split()
            got, _ = tensor(outputs, at, dtype, int(count))
            want, at = tensor(expected, at, dtype, int(count))
            words = difference(dtype, main, got, want)
            if words and name not in self.wrong:
                self.wrong[name] = f"{output}: {dtype}: {words}"


def word_of(arguments, seed, steps, left_out):
    """A graph of random_emit without some of its steps."""
    return f"{'c' * arguments.control}{seed}:{steps}" + (":" if left_out else "") + ",".join(map(str, left_out))


def fails(arguments, seed, steps, left_out):
    with tempfile.TemporaryDirectory() as folder:
        run = Run(arguments, pathlib.Path(folder), [word_of(arguments, seed, steps, left_out)])
        run.go()
        return run.wrong


def shrink(arguments, seed, steps):
    """The fewest steps that still go wrong, from the end and then one by one."""
    while steps > 1 and fails(arguments, seed, steps - 1, []):
        steps -= 1
    left_out = []
    for step in reversed(range(steps)):
        if fails(arguments, seed, steps, [step] + left_out):
            left_out = [step] + left_out
    return word_of(arguments, seed, steps, left_out)


def show(way):
    return f"{way[0]} -O{way[1]}" if way else "no compiler"


def report(arguments, name, run):
    """The least graph that goes wrong, as TAP comments."""
    if name not in run.how: # it ended before it said anything of it
        print("\n".join(f"# {line[:300]}" for line in run.wrong[name].splitlines()))
        return
    seed, steps = int(name[1:]), int(run.how[name].split()[0])
    if run.way:
        arguments = argparse.Namespace(**{**vars(arguments), "ways": [run.way]})
    word = shrink(arguments, seed, steps)
    with tempfile.TemporaryDirectory() as temporary:
        small = Run(arguments, pathlib.Path(temporary), [word])
        small.go()
        text = "\n".join([f"random graph {word} ({run.how[name]}) for {arguments.target} with {show(run.way)}:",
                          *(w[:3000] for w in small.wrong.values()), "as found: " + run.wrong[name][:3000],
                          (small.folder / f"{name}.nnc").read_text()])
    for line in text.splitlines():
        print(f"# {line[:300]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--emit", required=True)
    parser.add_argument("--target", default="generic")
    parser.add_argument("--cc", default="clang", help="compilers, with commas between")
    parser.add_argument("--level", default="1", help="of optimization: 1, 2, 3, s; with commas between")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=int(os.environ.get("NNC_RANDOM_ROUNDS", "60")))
    parser.add_argument("--control", action="store_true", help="with loops and branches")
    parser.add_argument("--library", action="store_true", help="contractions by OpenBLAS, where that can")
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("--races", action="store_true")
    parser.add_argument("--keep", help="leave sources in this folder")
    arguments = parser.parse_args()
    arguments.ways = [(cc, level) for cc in arguments.cc.split(",") if build.available(arguments.target, cc)
                      for level in arguments.level.split(",")]
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if arguments.library and not ctypes.util.find_library("openblas"):
        print("1..0 # SKIP no libopenblas")
        return 0
    if not arguments.ways:
        print(f"1..0 # SKIP no {arguments.cc}, or the machine is no {arguments.target}")
        return 0

    failed = 0
    groups = range(arguments.first, arguments.first + arguments.count, GROUP)
    print(f"1..{len(groups)}")
    for number, first in enumerate(groups, 1):
        seeds = range(first, min(first + GROUP, arguments.first + arguments.count))
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(arguments.keep or temporary)
            run = Run(arguments, folder, ["c" * arguments.control + str(s) for s in seeds])
            run.go()
            print(f"{'not ok' if run.wrong else 'ok'} {number} - seeds {seeds[0]} to {seeds[-1]}", flush=True)
            for name in list(run.wrong)[:1]:
                report(arguments, name, run)
            failed += bool(run.wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
