"""ONNX's own cases there and back: each is imported, the text is exported, the file passes onnx.checker and runs in ONNX
Runtime on the inputs of the case, and the results are compared with the case's own, within its tolerance.

Where ONNX Runtime has no kernel for an op or a dtype, onnx.reference runs the file, and is counted by itself.  Called by
round_trip.py --cases.
"""

import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnx.reference
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as errors

import onnx_runtime

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "onnx"))
import proto
import run as conformance
from run import Failure

RUNTIME, REFERENCE = "ONNX Runtime", "onnx.reference"
LACKS = re.compile(r"NOT_IMPLEMENTED|Could not find an implementation|is not a registered function/op|type inference failed for output")


def compute(path, names, given):
    """Results, and who computed them."""
    try:
        _, session = onnx_runtime.session(path)
        return session.run(names, given), RUNTIME
    except (errors.NotImplemented, errors.Fail, errors.InvalidGraph) as error:
        if not LACKS.search(str(error)):
            raise
    model = onnx.load(path)
    onnx_runtime.with_wide_ends(model)
    defaults = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    kept = {value.name: defaults[value.name] for value in model.graph.input if value.name in defaults}
    return onnx.reference.ReferenceEvaluator(model).run(names, {**kept, **given}), REFERENCE


def run_set(nnc, model, case, work, ins, outs, full):
    given = dict(zip(full.all_inputs, ins))
    free, _ = conformance.import_case(nnc, model, work, given)
    inputs, outputs = conformance.signature((work / "model.nnc").read_text())
    if any(value is None for value in outs):
        raise Failure("a result is no tensor of NumPy's")
    path = work / "exported.onnx"
    code, _, error = conformance.call(nnc, "export", work / "model.nnc", "-o", path)
    if code:
        raise Failure(f"export: {without_places(error)}")
    values = {name: proto.as_f32(value.view("V2") if value.dtype == "u2" else value) if kind.startswith("bf16") else value
              for (name, kind), value in zip(inputs, conformance.flat(free, given))}
    found, who = compute(path, outputs, values)
    results = dict(zip(outputs, map(numpy.asarray, found)))
    drawn = conformance.check_drawn(case)
    if drawn:
        drawn(case, [value for value in ins if value is not None], [results[name] for name in outputs], outs)
        return who
    for label, want in zip(outputs, conformance.flat(range(len(outs)), outs)):
        got = conformance.cut(results[label], want, results.get(f"{label}.count"))
        if got.dtype.kind == "f" and want.dtype.itemsize == 2 and want.dtype.kind != "f":  # a bf16 that was widened
            want = proto.as_f32(want.view("V2"))
            numpy.testing.assert_allclose(got, want, 2e-2, 1e-3, err_msg=label)
        else:
            conformance.compare(label, got, want)
    return who


def without_places(error):
    lines = [line for line in error.splitlines() if ": note: " in line] or error.splitlines() or ["it stopped without a word"]
    return re.sub(r"^\S*?:(\d+:\d+:)? (note|error): ", "", lines[0])[:160]


def run_case(nnc, case):
    """Who computed the results, and what is wrong with them."""
    who = None
    try:
        with tempfile.TemporaryDirectory() as work:
            full = proto.Model(case / "model.onnx")
            sets = list(conformance.data_sets(case, full))
            if not sets:
                raise Failure("there is no data")
            for ins, outs in sets:
                who = run_set(nnc, case / "model.onnx", case, pathlib.Path(work), ins, outs, full)
        return who, None
    except subprocess.TimeoutExpired:
        return who, "it takes more than 120 s"
    except Exception as error:  # of the runtimes and the checker, too
        words = str(error).strip().splitlines() or [type(error).__name__]
        return who, " ".join(words)[:240]


def run_cases(nnc, folders, every, word, jobs):
    """True where no case that the evaluator passes fails."""
    cases = [case for folder in folders for case in sorted(folder.iterdir()) if (case / "model.onnx").exists()]
    cases = [case for case in cases if word in case.name][::every]
    passes = set(conformance.LIST.read_text().split())
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        results = list(pool.map(run_case, [nnc] * len(cases), cases, chunksize=8))
    reasons, lost = {}, 0
    for case, (_, problem) in zip(cases, results):
        name = f"{case.parent.name}/{case.name}"
        if problem:
            listed = name in passes
            lost += listed
            key = ("" if listed else "(nor does the evaluator pass) ") + conformance.without_names(problem)
            reasons.setdefault(key, []).append(name)
    for reason, names in sorted(reasons.items()):
        print(f"not ok - {len(names)} cases: {reason}\n#   {', '.join(names[:6])}{', ...' if len(names) > 6 else ''}")
    for folder in folders:
        own = [result for case, result in zip(cases, results) if case.parent == folder]
        by = [sum(problem is None and who == name for who, problem in own) for name in (RUNTIME, REFERENCE)]
        print(f"{folder.name}: {sum(by)} of {len(own)} are equal, {by[0]} in {RUNTIME}, {by[1]} in {REFERENCE}")
    print(f"{lost} that the evaluator passes differ")
    return lost == 0
