#!/usr/bin/python3
"""CUDA code: that of the models runs right on an emulated device, is the same on every run, and nvcc takes it.

    cuda.py --nnc build/nnc --cxx COMMAND MODEL.nnc[,CONSTANT=VALUE ...] ...
    cuda.py --nnc build/nnc --device [--tool memcheck|racecheck|initcheck|synccheck] MODEL.nnc[,CONSTANT=VALUE ...] ...

COMMAND compiles C++ with the headers of tests/cuda/emulate.  Also has nvcc compile a sample of the conformance cases:
every op, in every dtype.  Without nvcc what needs it is skipped.  With --device what nvcc makes of the models runs on
this machine's GPU instead, under a tool of compute-sanitizer when one is named.  Speaks TAP.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "conform"))
import elementwise  # noqa: E402
import tensor_ops  # noqa: E402
from cases import Cases  # noqa: E402
from conform import Model  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "emitted"))
import build  # noqa: E402

NVCC = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
STRICT = ["-arch=sm_90", "-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra"]
PER_MODEL = 100
LINKED = 2  # models whose harness nvcc compiles and links, too


class Tap:
    def __init__(self):
        self.count = self.failed = 0

    def result(self, name, problem="", skip=""):
        self.count += 1
        self.failed += bool(problem)
        print(f"{'not ok' if problem else 'ok'} {self.count} - {name}{' # SKIP ' + skip if skip else ''}", flush=True)
        for line in problem.splitlines()[:20]:
            print(f"# {line}")


def run(words, folder):
    """What went wrong, as text; empty when nothing."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"{words[0]}: status {done.returncode}\n{done.stderr}{done.stdout}"


def emit(nnc, model, folder, *flags):
    path, *constants = str(model).split(",")
    flags += tuple(word for constant in constants for word in ("-D", constant))
    return run([nnc, "compile", path, "-o", str(folder), "--target", "cuda:sm_90", *flags], None)


def name_of(model):
    return pathlib.Path(model.split(",")[0]).stem


def check_emulated(tap, arguments, model, folder):
    name = name_of(model)
    problem = emit(arguments.nnc, model, folder, "--emit", "cuda,test")
    problem = problem or run([*arguments.cxx.split(), f"{name}.cu", f"{name}_test.cu", "-o", "run", "-lm"], folder)
    tap.result(f"{name} on an emulated device", problem or run(["./run"], folder))


def check_same(tap, arguments, model, folder):
    again = folder / "again"
    again.mkdir()
    problem = emit(arguments.nnc, model, again, "--emit", "cuda")
    for file in sorted(again.iterdir()) if not problem else []:
        if file.read_bytes() != (folder / file.name).read_bytes():
            problem = f"{file.name} differs on the second run"
    tap.result(f"{name_of(model)} has the same bytes again", problem)


def check_nvcc(tap, name, sources, folder):
    if not NVCC:
        tap.result(f"{name} under nvcc", skip="nvcc is not on this machine")
        return
    tap.result(f"{name} under nvcc", run([NVCC, *STRICT, *sources], folder))


def run_on_device(nnc, model, tool, folder):
    """None, or what went wrong."""
    name, tools = name_of(model), ["compute-sanitizer", f"--tool={tool}", "--error-exitcode=1"] if tool else []
    problem = emit(nnc, model, folder, "--emit", "cuda,test")
    problem = problem or run([NVCC, "-O3", "-arch=native", f"{name}.cu", f"{name}_test.cu", "-o", "device"], folder)
    return problem or run([*tools, "./device"], folder) or None


def sample():
    """Of each op one case per combination of dtypes."""
    cases = Cases()
    with np.errstate(all="ignore"):
        elementwise.add_cases(cases)
        tensor_ops.add_cases(cases)
    chosen = {}
    for case in cases.list:
        dtypes = tuple(t.dtype for t in case.inputs + case.outputs)
        if not case.empty:
            chosen.setdefault((case.op, dtypes), case)
    return list(chosen.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True)
    parser.add_argument("--cxx")
    parser.add_argument("--device", action="store_true", help="there is a GPU: run the models on it")
    parser.add_argument("--tool", help="of compute-sanitizer")
    parser.add_argument("model", nargs="+")
    arguments = parser.parse_args()
    if arguments.device:
        return build.report([(f"{model}{' under ' + arguments.tool if arguments.tool else ''}", "cuda", build.NVCC, (arguments.nnc, model, arguments.tool))
                             for model in arguments.model], run_on_device)
    tap, cases = Tap(), sample()
    parts = range(0, len(cases), PER_MODEL)
    linked = arguments.model[:LINKED]  # harnesses are alike
    print(f"1..{3 * len(arguments.model) + len(parts)}")
    with tempfile.TemporaryDirectory() as temporary:
        for model in arguments.model:
            name = name_of(model)
            folder = pathlib.Path(temporary) / name
            folder.mkdir()
            check_emulated(tap, arguments, model, folder)
            check_same(tap, arguments, model, folder)
            sources = [f"{name}.cu", f"{name}_test.cu", "-o", "device"] if model in linked else ["-c", f"{name}.cu"]
            check_nvcc(tap, name, sources, folder)
        for i in parts:
            ops = Model(pathlib.Path(temporary), f"ops{i}", cases[i:i + PER_MODEL])
            ops.write()
            problem = emit(arguments.nnc, ops.path(), ops.folder, "--weights", "c")
            name = f"ops {i + 1} to {min(i + PER_MODEL, len(cases))}"
            if problem:
                tap.result(name, problem)
            else:
                check_nvcc(tap, name, ["-c", f"{ops.name}.cu"], ops.folder)
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
