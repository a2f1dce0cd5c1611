"""Conformance with ONNX: each case of its backend tests is imported, run and compared.

    run.py --nnc NNC [--route evaluator|c] [--target T] [--cc CC] [--runner PROGRAM] [--filter WORD] [--jobs N] [--update] [--docs FILE] FOLDER...

A FOLDER has cases: a folder each with model.onnx and test_data_set_*.  What passes is listed in passes.txt; a case that
is listed and fails makes the test fail.  --update writes that list, --docs the table of docs/onnx.md.  Where ccache is, C
that was compiled before is not compiled again.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import numpy

import proto

HERE = pathlib.Path(__file__).parent
LIST = HERE / "passes.txt"
NEEDED = re.compile(r"'([^']*)' is known only when running")
FEW = 16  # elements of an input that may be what a shape hangs on


class Failure(Exception):
    pass


def call(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=120, errors="replace")
    return done.returncode, done.stdout, done.stderr


def reason(error):
    """The first line that says why."""
    lines = [line for line in error.splitlines() if line.startswith("note: node")] or error.splitlines()
    return re.sub(r"^note: node \d+ ", "", lines[0])[:160] if lines else "it stopped without a word"


def bound(value):
    value = proto.as_f32(value)
    return "[" + ",".join(repr(v.item()).replace("True", "1").replace("False", "0") for v in value.ravel()) + "]"


def choose(name, names, given, fixed):
    """The input that is named; where it is made of inputs, the small ones."""
    if name in names:
        return [name] if name not in fixed and given.get(name) is not None else []
    small = [n for n in names if n not in fixed and given.get(n) is not None]
    return [n for n in small if isinstance(given[n], numpy.ndarray) and given[n].ndim <= 1 and given[n].size <= FEW]


def shape_of_list(name, value):
    """The flag that says what is in a sequence or an optional."""
    if isinstance(value, list):
        return ["--shape", f"{name}=[{','.join('x'.join(map(str, item.shape)) or 'scalar' for item in value)}]"]
    return ["--shape", f"{name}=none"] if isinstance(value, str) else []


def flat(names, values):
    """One value for each tensor: those of a sequence one by one."""
    for name in names:
        yield from values[name] if isinstance(values[name], list) else [] if isinstance(values[name], str) else [values[name]]


def import_case(nnc, model, folder, given):
    """Imports; inputs that shapes depend on become constants, as the message asks.  Returns the names of the text and of
    what was bound."""
    names = proto.Model(model).inputs
    flags = [word for name in names for word in shape_of_list(name, given.get(name))]
    fixed = set()
    while True:
        code, _, error = call(nnc, "import", model, "-o", folder, "--overwrite", *flags)
        if code == 0:
            break
        found = NEEDED.search(error)
        open_extent = re.search(r"input '([^']*)': its extent|input '([^']*)' has no shape", error)
        name = found and found[1]
        if not name and open_extent:
            name = open_extent[1] or open_extent[2]
            if name in given and given[name] is not None:
                flags += ["--shape", name + "=" + "x".join(map(str, given[name].shape))]
                if len(flags) > 40:
                    raise Failure(reason(error))
                continue
        if code != 1:
            raise Failure(f"exit status {code}: {error.strip()[-100:]}")
        chosen = choose(name, names, given, fixed)
        if not name or not chosen:
            raise Failure(reason(error))
        for one in chosen:
            fixed.add(one)
            flags += ["-D", f"{one}={bound(given[one])}"]
    return [name for name in names if name not in fixed], flags


def split(text):
    """At commas outside of brackets"""
    return [part.strip() for part in re.split(r",(?![^\[]*\])", text) if part.strip()]


def signature(text):
    """Inputs, each with its type, and names of outputs."""
    line = next(line for line in text.splitlines() if line.startswith("graph "))
    found = re.fullmatch(r"graph \S+?\((.*)\) -> \((.*)\) \{", line)
    return [[side.strip() for side in part.split(":", 1)] for part in split(found[1])], split(found[2])


def data_sets(case, model):
    for folder in sorted(case.glob("test_data_set_*")):
        load = lambda kind, i: (folder / f"{kind}_{i}.pb").read_bytes() if (folder / f"{kind}_{i}.pb").exists() else None
        ins = [load("input", i) for i in range(len(model.all_inputs))]
        outs = [load("output", i) for i in range(len(model.outputs))]
        yield [[data if data is None else proto.held(data, kind) for data, kind in zip(*side)] for side in ((ins, model.input_kinds), (outs, model.output_kinds))]


def compare(name, got, want):
    if got.dtype.kind == "V" and want.dtype == "u2":  # how some cases hold bf16
        want = want.view("V2")
    narrow = min(got.dtype.itemsize, want.dtype.itemsize)
    got, want = proto.as_f32(got), proto.as_f32(want)
    if got.shape != want.shape:
        raise Failure(f"{name}: shape {list(got.shape)}, not {list(want.shape)}")
    if got.dtype != want.dtype and not (got.dtype.kind == want.dtype.kind == "f"):
        raise Failure(f"{name}: {got.dtype}, not {want.dtype}")
    rtol, atol = (1e-3, 1e-7) if narrow >= 4 else (2e-2, 1e-3)  # rtol and atol of ONNX's own runner
    if not numpy.allclose(got.astype("f8"), want.astype("f8"), rtol, max(atol, 1e-6), equal_nan=True):
        worst = numpy.nanmax(numpy.abs(got.astype("f8") - want.astype("f8"))) if got.size else 0
        raise Failure(f"{name}: differs by up to {worst:.3g}")


def cut(got, want, count):
    """What is as large as data say, without what is behind its count."""
    axes = [axis for axis in range(got.ndim) if count is not None and got.ndim == want.ndim and got.shape[axis] != want.shape[axis]]
    return got.take(range(int(count)), axes[0]) if axes else got


# What is drawn has other numbers than the data, but must be what the specification says it may be.

def as_often(got, probability):
    """Is as much true as is likely: within five standard deviations?"""
    spread = numpy.sqrt((probability * (1 - probability)).sum())
    if abs(got.sum() - probability.sum()) > 5 * spread + 1e-6:
        raise Failure(f"{got.sum():.0f} of {got.size} are drawn, not about {probability.sum():.0f}")


def check_bernoulli(case, given, got, want):
    (x,), (y,) = given, got
    if y.dtype != want[0].dtype or y.shape != x.shape or not numpy.isin(y, (0, 1)).all():
        raise Failure("what is drawn is neither 0 nor 1")
    # the body that those cases have says `random > x`, which is 1 with the probability 1 - x
    as_often(y, 1 - x if case.name.endswith("_expanded") else x)


def check_dropout(case, given, got, want):
    """Elements are 0, or 1 / (1 - ratio) as large; the mask says which."""
    x, ratio, training = given
    y, kept = got[0], got[1] if len(got) > 1 else got[0] != 0
    if not training or y.shape != x.shape or y.dtype != x.dtype or kept.dtype != bool:
        raise Failure("it is no dropout that trains")
    compare("y", y, numpy.where(kept, x / (1 - ratio), 0).astype(x.dtype))
    as_often(kept, numpy.full(x.shape, 1 - float(ratio)))


DRAWN = {"bernoulli": check_bernoulli, "training_dropout": check_dropout}


def check_drawn(case):
    """Who looks at the results of a case that draws; None of others, and where the ratio of 0 leaves nothing to chance."""
    name = case.name.removeprefix("test_")
    return next((check for word, check in DRAWN.items() if name.startswith(word) and "zero_ratio" not in name), None)


def run_set(options, model, case, work, ins, outs, full):
    names = [name for name in full.all_inputs]
    given = {name: value for name, value in zip(names, ins)}
    free, flags = import_case(options.nnc, model, work, given)
    path = work / "model.nnc"
    inputs, outputs = signature(path.read_text())
    if any(value is None for value in outs):
        raise Failure("a result is no tensor of NumPy's")
    command = [options.runner or options.nnc, "run", path]
    command += ["--target", "reference"] if options.route == "evaluator" else ["--target", options.target, "--cc", options.cc]
    if any(given.get(key) is None for key in free):
        raise Failure("an input is no tensor of NumPy's")
    for (name, kind), value in zip(inputs, flat(free, given)):
        numpy.save(work / f"{name}.npy", value.view("V2") if kind.startswith("bf16") and value.dtype == "u2" else value)
        command += ["--input", f"{name}={work / name}.npy"]
    for i, name in enumerate(outputs):
        command += ["--output", f"{name}={work / f'out{i}'}.npy"]
    code, _, error = call(*command)
    if code:
        raise Failure(f"run: {reason(error)}")
    results = dict(zip(outputs, (numpy.load(work / f"out{i}.npy") for i in range(len(outputs)))))
    drawn = check_drawn(case)
    if drawn:
        return drawn(case, [value for value in ins if value is not None], [results[name] for name in outputs], outs)
    for label, want in zip(outputs, flat(range(len(outs)), outs)):
        compare(label, cut(results[label], want, results.get(f"{label}.count")), want)


def run_case(options, case):
    try:
        with tempfile.TemporaryDirectory() as work:
            model = case / "model.onnx"
            full = proto.Model(model)
            sets = list(data_sets(case, full))
            if not sets:
                raise Failure("there is no data")
            for ins, outs in sets:
                run_set(options, model, case, pathlib.Path(work), ins, outs, full)
        return None
    except Failure as failure:
        return str(failure)
    except subprocess.TimeoutExpired:
        return "it takes more than 120 s"
    except (OSError, ValueError, KeyError, IndexError, StopIteration, AttributeError) as error:
        return f"the case cannot be read: {type(error).__name__} {error}"[:160]


# The page: what stands above the mark is written by hand.

MARK = "<!-- what follows is written by tests/onnx/run.py --docs -->"


def op_of(case):
    ops = set(proto.Model(case / "model.onnx").ops)
    return ops.pop() if len(ops) == 1 else "several ops"


def without_names(text):
    """A reason as it is for many cases."""
    text = re.sub(r"\S*model\.(onnx|nnc):\S* (error: )?", "", text)
    text = re.sub(r"^(\S+\.)?\S+( '[^']*')?, opset \d+: ", "", text)
    text = re.sub(r"(input|node \d+ \w+) '[^']*'", r"\1", text)
    text = re.sub(r"\S*/(\w+\.npy)", r"\1", text)
    return re.sub(r"; an input becomes.*", "", text)


def page(cases, names, results):
    lines = ["| cases of | pass | of |", "|---|---|---|"]
    folders = sorted({name.split("/")[0] for name in names})
    for folder in folders:
        own = [r for n, r in zip(names, results) if n.startswith(folder + "/")]
        lines.append(f"| {folder} | {sum(r is None for r in own)} | {len(own)} |")
    lines += ["", "| op | pass | of | what the others are |", "|---|---|---|---|"]
    by_op = {}
    for case, name, result in zip(cases, names, results):
        by_op.setdefault(op_of(case), []).append((name, result))
    for op in sorted(by_op):
        reasons = {}
        for name, result in by_op[op]:
            if result:
                reasons.setdefault(without_names(result), []).append(name.split("/")[1].removeprefix("test_"))
        missing = "; ".join(f"{reason} ({', '.join(own[:3])}{', ...' if len(own) > 3 else ''})" for reason, own in sorted(reasons.items()))
        passed = sum(result is None for _, result in by_op[op])
        lines.append(f"| {op} | {passed} | {len(by_op[op])} | {missing.replace('|', ' ')} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nnc", required=True)
    parser.add_argument("--runner", help="runs the text in the place of `nnc run`: tests/bench/onnx_runtime.py exports it")
    parser.add_argument("--route", default="evaluator", choices=["evaluator", "c"])
    parser.add_argument("--target", default="generic")
    parser.add_argument("--cc", default="ccache gcc -O1" if shutil.which("ccache") else "gcc -O1")
    parser.add_argument("--filter", default="")
    parser.add_argument("--every", type=int, default=1, help="only each so manyth case")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--docs", type=pathlib.Path)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("folder", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    os.environ.setdefault("CCACHE_NOHASHDIR", "1")  # each case is compiled in a folder that is made for it

    cases = [case for folder in options.folder for case in sorted(folder.iterdir()) if (case / "model.onnx").exists()]
    cases = [case for case in cases if options.filter in case.name][:: options.every]
    known = set(LIST.read_text().split()) if LIST.exists() else set()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda case: run_case(options, case), cases))

    names = [f"{case.parent.name}/{case.name}" for case in cases]
    passed = {name for name, result in zip(names, results) if result is None}
    lost = [(name, result) for name, result in zip(names, results) if result and name in known]
    for name, result in lost if not options.verbose else [(n, r) for n, r in zip(names, results) if r]:
        print(f"not ok - {name}: {result}")
    print(f"{len(passed)} of {len(names)} cases pass, {len(lost)} that passed do not")
    if options.update:
        LIST.write_text("".join(f"{name}\n" for name in sorted((known - set(names)) | passed)))
    if options.docs:
        above = options.docs.read_text().split(MARK)[0]
        options.docs.write_text(f"{above}{MARK}\n\n{page(cases, names, results)}")
    return 1 if lost and not options.update else 0


if __name__ == "__main__":
    sys.exit(main())
