"""What the tests of small models share: they write one, run nnc on it, and report as TAP.

    CASES of a script that ends with main(), each a function of a Tool, marked with @case
"""

import argparse
import pathlib
import subprocess
import tempfile

import numpy

CASES = []


def case(run):
    CASES.append(run)
    return run


class Tool:
    def __init__(self, nnc, folder):
        self.nnc, self.folder = nnc, folder

    def write(self, content, name="m.onnx"):
        (self.folder / name).write_bytes(content)
        return self.folder / name

    def run(self, *command, status=0):
        done = subprocess.run([self.nnc, *map(str, command)], capture_output=True, text=True, cwd=self.folder, timeout=60)
        assert done.returncode == status, f"exit {done.returncode}, not {status}: {done.stdout}{done.stderr}"
        return done.stdout if status == 0 else done.stderr

    def text(self, content, *flags):
        """The statements of the imported graph."""
        self.write(content)
        lines = self.run("import", "m.onnx", *flags).splitlines()
        assert lines[:3] == ["nnc 1", 'use "nn"', ""] and lines[-1] == "}", lines
        return [line[4:] for line in lines[4:-1]]

    def value(self, content, result="y", flags=(), **inputs):
        self.write(content)
        for name, array in inputs.items():
            numpy.save(self.folder / f"{name}.npy", array)
        given = [word for name in inputs for word in ("--input", f"{name}={name}.npy")]
        self.run("run", "m.onnx", "--target", "reference", *given, *flags, "--output", f"{result}=out.npy")
        return numpy.load(self.folder / "out.npy")


def expect(found, *wanted):
    assert list(found) == list(wanted), f"found {found}, not {wanted}"


def main(tool=Tool):
    parser = argparse.ArgumentParser()
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    options = parser.parse_args()
    print(f"1..{len(CASES)}")
    for i, run in enumerate(CASES, 1):
        with tempfile.TemporaryDirectory() as folder:
            try:
                run(tool(options.nnc.resolve(), pathlib.Path(folder)))
                print(f"ok {i} - {run.__name__}")
            except (AssertionError, OSError) as error:
                print("\n".join("# " + line for line in str(error).splitlines()))
                print(f"not ok {i} - {run.__name__}")
