#!/usr/bin/python3
"""Conformance: every op against NumPy, on the reference evaluator or on emitted code.

    conform.py --nnc build/nnc [--target reference|generic|...] [--op NAME] [--keep FOLDER] [-- flags of nnc run]

Makes the cases (nothing is stored), puts those of one op into models of one graph each with many inputs and outputs,
runs `nnc run MODEL --input NAME=FILE ... --output NAME=FILE ...` and compares.  Speaks TAP: one result per op.  An op
of the op table without a case fails.  Elementwise arithmetic must be exact; the tolerance of everything else stands
with its cases, and the reference evaluator must be within one unit in the last place of a sum.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

import elementwise
import tensor_ops
from cases import Cases
from tensors import NUMPY, load, mismatch, save

PER_MODEL = 60


class Model:
    """Some cases as one graph, its files in a folder of their own."""

    def __init__(self, folder, cases):
        self.folder, self.cases = folder, cases
        folder.mkdir(parents=True)

    def names(self, number, kind, count):
        return [f"c{number}_{kind}{i}" for i in range(count)]

    def write(self):
        inputs, outputs, body, prelude = [], [], [], dict.fromkeys(c.prelude for c in self.cases)
        for n, case in enumerate(self.cases):
            x, r = self.names(n, "x", len(case.inputs)), self.names(n, "r", len(case.outputs))
            inputs += [f"{name}: {t.type()}" for name, t in zip(x, case.inputs)]
            outputs += [f"{name}: {t.type()}" for name, t in zip(r, case.outputs)]
            body.append("    " + case.body.format(x=x, r=r, id=f"c{n}_t"))
            for name, tensor in zip(x, case.inputs):
                save(self.folder / f"{name}.npy", tensor)
        text = "nnc 1\n" + "".join(prelude)
        text += f"graph conform({', '.join(inputs)}) -> ({', '.join(outputs)}) {{\n" + "\n".join(body) + "\n}\n"
        (self.folder / "model.nnc").write_text(text)

    def command(self, nnc, flags):
        words = [nnc, "run", str(self.folder / "model.nnc"), *flags]
        for n, case in enumerate(self.cases):
            for name in self.names(n, "x", len(case.inputs)):
                words += ["--input", f"{name}={self.folder}/{name}.npy"]
            for name in self.names(n, "r", len(case.outputs)):
                words += ["--output", f"{name}={self.folder}/{name}.npy"]
        return words

    def compare(self, strict):
        """What is wrong, in words, one line per result."""
        wrong = []
        for n, case in enumerate(self.cases):
            for name, want in zip(self.names(n, "r", len(case.outputs)), case.outputs):
                got = load(self.folder / f"{name}.npy", want.dtype)
                difference = mismatch(want.dtype, got, want.values, case.tolerance, strict)
                if difference:
                    statement = case.body.format(x=[t.type() for t in case.inputs],
                                                 r=[t.type() for t in case.outputs], id="t")
                    wrong.append(f"{statement}: {difference}")
        return wrong

    def run(self, nnc, flags, strict):
        self.write()
        done = subprocess.run(self.command(nnc, flags), capture_output=True, text=True, check=False)
        if done.returncode:
            return [f"nnc run ended with status {done.returncode}: {self.folder}"] + done.stderr.splitlines()[:20]
        return self.compare(strict)


def op_names(nnc):
    table = subprocess.run([nnc, "ops"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  (\w+)\(", table, re.MULTILINE)


def run_op(op, cases, folder, arguments, flags):
    strict = arguments.target == "reference"
    groups = [[c for c in cases if not c.empty], [c for c in cases if c.empty]]
    if arguments.skip_empty:
        groups.pop()
    wrong = []
    for g, group in enumerate(groups):
        for i in range(0, len(group), PER_MODEL):
            model = Model(folder / f"{op}-{g}-{i // PER_MODEL}", group[i:i + PER_MODEL])
            wrong += model.run(arguments.nnc, flags, strict)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True)
    parser.add_argument("--target", default="reference")
    parser.add_argument("--op", help="only this one")
    parser.add_argument("--keep", help="leave models and files in this folder")
    parser.add_argument("--skip-empty", action="store_true", help="without tensors of no elements")
    parser.add_argument("flags", nargs="*", help="passed on to nnc run")
    arguments = parser.parse_args()

    cases = Cases()
    with np.errstate(all="ignore"):
        elementwise.add_cases(cases)
        tensor_ops.add_cases(cases)
    names = [op for op in op_names(arguments.nnc) if arguments.op in (None, op)]
    flags = ["--target", arguments.target, *arguments.flags]
    failed = 0
    print(f"1..{len(names)}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(arguments.keep or temporary)
        for number, op in enumerate(names, 1):
            mine = [c for c in cases.list if c.op == op]
            wrong = run_op(op, mine, folder, arguments, flags) if mine else ["no case"]
            print(f"{'not ok' if wrong else 'ok'} {number} - {op}: {len(mine)} cases", flush=True)
            for line in wrong[:20]:
                print(f"# {line}")
            failed += bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
