"""Conformance: every op against NumPy, on the reference evaluator or on emitted code.

    conform.py --nnc build/nnc [--target reference|generic|...] [--cc CC] [--op NAME,...] [--except NAME,...] [--every N [--first K]] [--per-model N] [--sanitize] [--keep FOLDER] [-- WORD ...]

Makes the cases (nothing is stored) and puts some of them together into models of one graph each with many inputs and
outputs.
The reference evaluator runs each through `nnc run MODEL --input NAME=FILE ... --output NAME=FILE ...`; so does another
program in the place of nnc, when there are words for it after `--`.  Emitted code of
all models is built into one program, without a warning, and runs at once.  Speaks TAP: one result per op.  An op of the
op table without a case fails.  --sanitize builds emitted code under AddressSanitizer and UBSan, where every array is a
block of its own; of CUDA code on the emulated device it finds races.  Elementwise arithmetic must be exact; the tolerance of everything else stands with its
cases, and the reference evaluator must be within one unit in the last place of a sum.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

import control
import convolutions
import elementwise
import order
import tensor_ops
from cases import Cases
from tensors import from_bytes, load, mismatch, save, to_bytes

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "emitted"))
import build

PER_MODEL = 60
OPTIMIZE = ["-O1", "-ffp-contract=fast", "-fno-math-errno"]  # as `nnc compile --emit lib`, in less time
RACES = ["-O0", "-g", "-fsanitize=thread"]  # of the emulated device; cases do not run long enough to be optimized
SANITIZE = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


class Model:
    """Some cases as one graph, its files in a folder of their own."""

    def __init__(self, folder, name, cases):
        self.folder, self.name, self.cases = folder / name, name, cases
        self.wrong = {case.op: [] for case in cases}

    def fail(self, error):
        """Whatever has gone wrong with all of it."""
        for lines in self.wrong.values():
            lines += error.splitlines()

    def is_built(self):
        return not any(self.wrong.values())

    def names(self, number, kind, count):
        return [f"c{number}_{kind}{i}" for i in range(count)]

    def sizes(self):
        """Bytes of inputs, and of outputs."""
        return [[len(to_bytes(t)) for c in self.cases for t in getattr(c, kind)] for kind in ("inputs", "outputs")]

    def path(self):
        return self.folder / f"{self.name}.nnc"

    def write(self):
        self.folder.mkdir(parents=True)
        inputs, outputs, body, prelude = [], [], [], dict.fromkeys(c.prelude for c in self.cases)
        for n, case in enumerate(self.cases):
            x, r = self.names(n, "x", len(case.inputs)), self.names(n, "r", len(case.outputs))
            inputs += [f"{name}: {t.type()}" for name, t in zip(x, case.inputs)]
            outputs += [f"{name}: {t.type()}" for name, t in zip(r, case.outputs)]
            body.append("    " + case.body.format(x=x, r=r, id=f"c{n}_t"))
        text = "nnc 1\n" + "".join(prelude)
        text += f"graph {self.name}({', '.join(inputs)}) -> ({', '.join(outputs)}) {{\n" + "\n".join(body) + "\n}\n"
        self.path().write_text(text)

    def compare(self, case, want, got, strict):
        difference = mismatch(want.dtype, got, want.values, case.tolerance, strict, case.inputs)
        if difference:
            statement = case.body.format(x=[t.type() for t in case.inputs], r=[t.type() for t in case.outputs], id="t")
            self.wrong[case.op].append(f"{statement}: {difference}")


def run_through_files(model, arguments):
    """One process per model."""
    model.write()
    words = [arguments.nnc, "run", str(model.path()), "--target", arguments.target]
    for n, case in enumerate(model.cases):
        for name, tensor in zip(model.names(n, "x", len(case.inputs)), case.inputs):
            save(model.folder / f"{name}.npy", tensor)
            words += ["--input", f"{name}={model.folder}/{name}.npy"]
        for name in model.names(n, "r", len(case.outputs)):
            words += ["--output", f"{name}={model.folder}/{name}.npy"]
    error = build.command(words + arguments.words)
    if error:
        model.fail(error)
        return
    strict = arguments.target == "reference"
    for n, case in enumerate(model.cases):
        for name, want in zip(model.names(n, "r", len(case.outputs)), case.outputs):
            model.compare(case, want, load(model.folder / f"{name}.npy", want.dtype), strict)


def compile_model(model, arguments):
    """The model's object, in the folder of its own."""
    model.write()
    if arguments.target.startswith("cuda"):
        error = build.command([arguments.nnc, "compile", model.path(), "-o", model.folder, "--target", arguments.target,
                               "--emit", "cuda", "--weights", "c"])
        races = RACES if arguments.sanitize and arguments.cc != build.NVCC else []
        error = error or build.cuda_object(model.folder / f"{model.name}.cu", model.sizes(), arguments.cc, *races)
        if error:
            model.fail(error)
        return
    flags = SANITIZE if arguments.sanitize else OPTIMIZE
    checked = ["--checked"] if arguments.sanitize else []
    error = build.emit(arguments.nnc, model.path(), model.folder, arguments.target, "--weights", "c", *checked)
    error = error or build.compile_source(model.folder / f"{model.name}.c", arguments.target, arguments.cc, *flags)
    error = error or build.check_plus_plus(model.folder / f"{model.name}.c", arguments.target, arguments.cc)
    if error:
        model.fail(error)
        return
    foreign = build.foreign_symbols(model.folder / f"{model.name}.o")
    if foreign and not arguments.sanitize:
        model.fail(f"calls {', '.join(foreign)}")


def run_emitted(models, folder, arguments):
    """All of them in one process."""
    build.side_by_side(lambda model: compile_model(model, arguments), models)
    built = [m for m in models if m.is_built()]
    cuda = arguments.target.startswith("cuda")
    flags = [] if not arguments.sanitize else SANITIZE if not cuda else RACES
    flags = flags + (build.cuda_libraries(arguments.cc) if cuda else [])
    error = build.link(folder, [m.name for m in built], [m.folder / f"{m.name}.o" for m in built], arguments.cc, *flags)
    data = b"".join(to_bytes(t) for m in built for c in m.cases for t in c.inputs)
    if not error:
        outputs, error = build.run(folder, data)
    if error:
        for model in built:
            model.fail(error)
        return
    at = 0
    for model in built:
        for case in model.cases:
            for want in case.outputs:
                got, at = from_bytes(outputs, at, want)
                model.compare(case, want, got, strict=False)


def op_names(nnc):
    table = subprocess.run([nnc, "ops"], capture_output=True, text=True, check=True).stdout
    primitives = table.split("\nThe library")[0]  # its functions have library.py
    names = re.findall(r"^  (\w+)\(", primitives, re.MULTILINE)
    return [name for name in names if name != "minimize"]  # which gives nothing: tests/emitted/training.py


def models_of(cases, folder, size):
    """Full ones: each costs a file and some processes.  Tensors of no elements apart, since targets may treat them apart."""
    groups = [[c for c in cases if not c.empty], [c for c in cases if c.empty]]
    return [Model(folder, f"m{g}_{i // size}", group[i:i + size])
            for g, group in enumerate(groups) for i in range(0, len(group), size)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True)
    parser.add_argument("--target", default="reference")
    parser.add_argument("--cc", default="clang")
    parser.add_argument("--op", type=lambda words: words.split(","), help="only these")
    parser.add_argument("--except", dest="others", type=lambda words: words.split(","), default=[], help="all but these")
    parser.add_argument("--every", type=int, default=1, help="one case of N, and the first of each op")
    parser.add_argument("--first", type=int, default=0, help="of these, which of the N")
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("--per-model", type=int, default=PER_MODEL, help="cases in a model")
    parser.add_argument("--keep", help="leave models and files in this folder")
    parser.add_argument("words", nargs="*", help="more words for `run`")
    arguments = parser.parse_args()
    through_files = arguments.target == "reference" or arguments.words
    if not through_files and not build.available(arguments.target, arguments.cc):
        print(f"1..0 # SKIP no {arguments.cc}, or the machine is no {arguments.target}")
        return 0

    cases = Cases()
    with np.errstate(all="ignore"):
        elementwise.add_cases(cases)
        tensor_ops.add_cases(cases)
        order.add_cases(cases)
        control.add_cases(cases)
        convolutions.add_cases(cases)
    names = [op for op in op_names(arguments.nnc) if (not arguments.op or op in arguments.op) and op not in arguments.others]
    failed = 0
    print(f"1..{len(names)}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(arguments.keep or temporary)
        wanted = sorted((c for c in cases.list if c.op in names), key=lambda case: names.index(case.op))
        wanted = [c for i, c in enumerate(wanted) if i % arguments.every == arguments.first or wanted[i - 1].op != c.op]
        models = models_of(wanted, folder, arguments.per_model)
        if through_files:
            build.side_by_side(lambda model: run_through_files(model, arguments), models)
        else:
            run_emitted(models, folder, arguments)
    for number, op in enumerate(names, 1):
        count = sum(c.op == op for c in wanted)
        wrong = [line for m in models for line in m.wrong.get(op, [])] if count else ["no case"]
        differ = f", {sum(bool(m.wrong.get(op)) for m in models)} models differ" if wrong and count else ""
        print(f"{'not ok' if wrong else 'ok'} {number} - {op}: {count} cases{differ}", flush=True)
        for line in wrong[:20]:
            print(f"# {line}")
        if wrong and count and not arguments.keep:
            print(f"# --op {op} --keep FOLDER leaves the models and their inputs")
        failed += bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
