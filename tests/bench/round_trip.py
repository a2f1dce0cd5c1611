#!/usr/bin/env python3
"""Exports models and compares ONNX Runtime on the files with the evaluator, or with ONNX Runtime on the original.

    round_trip.py --nnc build/nnc [MODEL.nnc | MODEL.onnx ...]   all of models/ when none is given
    round_trip.py --nnc build/nnc --cases FOLDER... [--every N] [--filter WORD]
                                                                 cases of ONNX's backend tests, every Nth: imported,
                                                                 exported, and compared with the case's own results
    round_trip.py --nnc build/nnc --ops [--per-model N]          the op table (tests/conform), so many cases in a model

Needs onnx and onnxruntime.  All files pass onnx.checker with full_check.  Reports as TAP.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy
import onnx

import onnx_runtime
import round_trip_cases

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RUNNER = ROOT / "tests/bench/onnx_runtime.py"
WITHIN = 1e-4  # of the largest element, as `nnc run --check`
NARROW = 2e-2  # f16 and bf16


class Tap:
    def __init__(self, count):
        self.number, self.failed = 0, 0
        print(f"1..{count}")

    def tell(self, name, problem, note=""):
        self.number += 1
        self.failed += bool(problem)
        print(f"{'not ok' if problem else 'ok'} {self.number} - {name}{': ' + note if note and not problem else ''}")
        for line in str(problem or "").strip().splitlines()[:20]:
            print("# " + line)
        sys.stdout.flush()


def command(*words):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(done.stderr.strip() or f"exit status {done.returncode}")
    return done.stdout


def error_of(got, want):
    """Relative to the largest element; infinities and NaN must agree."""
    assert got.shape == want.shape, f"shape {got.shape}, not {want.shape}"
    got, want = got.astype("f8"), want.astype("f8")
    if got.size == 0:
        return 0.0
    with numpy.errstate(all="ignore"):
        same = (got == want) | (numpy.isnan(got) & numpy.isnan(want))
        error = numpy.where(same, 0, numpy.abs(got - want))
    scale = numpy.abs(want[numpy.isfinite(want)]).max(initial=0)
    return float(numpy.nan_to_num(error, nan=numpy.inf).max() / max(scale, 1e-9))


def graphs_of(nnc, model):
    text = command(nnc, "opt", "--passes=", "--init-missing", model)
    for name, inputs in re.findall(r"^graph ([\w.]+)\((.*?)\)", text, re.MULTILINE | re.DOTALL):
        yield name, re.findall(r"([\w.]+): (\w+)\[([^\]]*)\]", inputs)


def draw(number, dtype, shape):
    random = numpy.random.default_rng(number)
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if dtype[0] in "iu":
        return random.integers(0, 10, shape).astype(f"{dtype[0]}{int(dtype[1:]) // 8}")
    return random.uniform(-1, 1, shape).astype({"f64": "f8", "f16": "f2"}.get(dtype, "f4"))


def compare_graph(nnc, model, graph, inputs, folder):
    """The largest error over outputs."""
    given, words = {}, []
    for i, (name, dtype, dims) in enumerate(inputs):
        given[name] = draw(i, dtype, [int(d) for d in dims.split(",") if d.strip()])
        onnx_runtime.save(folder / f"{name}.npy", given[name], dtype == "bf16")
        words += ["--input", f"{name}={folder / name}.npy"]
    path = folder / "model.onnx"
    command(nnc, "export", model, "--graph", graph, "--init-missing", "-o", path)
    narrow, session = onnx_runtime.session(path, threads=2)
    names = [output.name for output in session.get_outputs()]
    kept = {node.name for node in session.get_overridable_initializers()}
    own = [name for name in names if not (name.endswith("_next") and name[:-5] in kept)]
    words += [word for name in own for word in ("--output", f"{name}={folder / name}.out.npy")]
    command(nnc, "run", model, "--graph", graph, "--init-missing", "--target", "reference", *words)
    worst = 0.0
    for name, got in zip(names, session.run(names, given)):
        if name in own:
            want = onnx_runtime.load(folder / f"{name}.out.npy", name in narrow)
            error = error_of(got, want)
            worst = max(worst, error)
            assert error <= (NARROW if want.dtype == "f2" or name in narrow else WITHIN), f"{name}: differs by {error:.2g} of the largest"
    return worst


def run_models(nnc, models):
    jobs = [(model, *graph) for model in models for graph in graphs_of(nnc, model)]
    tap = Tap(len(jobs))
    for model, graph, inputs in jobs:
        with tempfile.TemporaryDirectory() as folder:
            try:
                error = compare_graph(nnc, model, graph, inputs, pathlib.Path(folder))
                tap.tell(f"{model.stem} {graph}", None, f"{error:.1e} of the largest element")
            except Exception as problem:
                tap.tell(f"{model.stem} {graph}", problem)
    return tap


# Files of ONNX: the original in ONNX Runtime, and what nnc makes of it

def run_originals(nnc, models):
    tap = Tap(len(models))
    for model in models:
        with tempfile.TemporaryDirectory() as folder:
            try:
                path = pathlib.Path(folder) / "model.onnx"
                _, original = onnx_runtime.session(model, threads=2)
                free = {f"{i.name}.{k}": 2 for i in original.get_inputs() for k, d in enumerate(i.shape) if not isinstance(d, int)}
                command(nnc, "export", model, "-o", path, *[word for k, v in free.items() for word in ("-D", f"{k}={v}")])
                _, session = onnx_runtime.session(path, threads=2)
                dtype = {"tensor(float)": "f32", "tensor(int64)": "i64", "tensor(float16)": "f16"}
                values = [draw(k, dtype[i.type], [d if isinstance(d, int) else 2 for d in i.shape])
                          for k, i in enumerate(original.get_inputs())]
                want = original.run(None, {i.name: v for i, v in zip(original.get_inputs(), values)})
                got = session.run(None, {i.name: v for i, v in zip(session.get_inputs(), values)})
                worst = max(error_of(g, w) for g, w in zip(got, want))
                nodes = [len(onnx.load(p).graph.node) for p in (model, path)]
                tap.tell(model.stem, None if worst <= WITHIN else f"differs by {worst:.2g}",
                         f"{worst:.1e} of the largest element, {nodes[0]} nodes, now {nodes[1]}")
            except Exception as problem:
                tap.tell(model.stem, problem)
    return tap


# The op table, with ONNX Runtime in the place of `nnc run`

def conform(nnc, *words):
    """What tests/conform finds: for each op its cases, how many models of them differ, and in what."""
    here = os.path.dirname(sys.executable)  # where the runner finds onnxruntime, too
    environment = dict(os.environ, NNC=str(nnc), PATH=f"{here}{os.pathsep}{os.environ['PATH']}")
    command = [sys.executable, ROOT / "tests/conform/conform.py", "--nnc", RUNNER, "--target", "onnxruntime", *words, "--", "--init-missing"]
    text = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True).stdout
    found = re.findall(r"^(?:not )?ok \d+ - (\w+): (\d+) cases(?:, (\d+) models differ)?$(.*?)(?=^(?:not )?ok |\Z)", text, re.MULTILINE | re.DOTALL)
    return {op: (int(cases), int(wrong or 0), lines.strip()) for op, cases, wrong, lines in found}


def run_ops(nnc, per_model):
    """Many cases in a model; those of ops that fail one by one, as a model of which one op has no kernel does not run."""
    found = conform(nnc, "--per-model", per_model)
    again = [op for op, (_, wrong, _) in found.items() if wrong]
    if again:
        found |= conform(nnc, "--per-model", 1, "--op", ",".join(again))
    tap = Tap(len(found))
    for op, (cases, wrong, lines) in found.items():
        tap.tell(f"{op}: {cases - wrong} of {cases}", lines if wrong else None)
    cases, wrong = (sum(row[i] for row in found.values()) for i in (0, 1))
    print(f"# {cases - wrong} of {cases} cases are equal")
    return tap


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--cases", type=pathlib.Path, nargs="+")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--filter", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--ops", action="store_true")
    parser.add_argument("--per-model", type=int, default=30)
    parser.add_argument("models", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    nnc = options.nnc.resolve()
    if options.ops:
        return 1 if run_ops(nnc, options.per_model).failed else 0
    if options.cases:
        return 0 if round_trip_cases.run_cases(nnc, options.cases, options.every, options.filter, options.jobs) else 1
    if options.models and options.models[0].suffix == ".onnx":
        tap = run_originals(nnc, options.models)
    else:
        tap = run_models(nnc, options.models or sorted((ROOT / "models").glob("*.nnc")))
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
