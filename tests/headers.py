"""All headers of the project together in one file: no name means two things.  Forwards and backwards, which also shows
that each includes what it needs.

    headers.py CC INCLUDE_FOLDER...    run in the root of the project; reports as TAP
"""

import pathlib
import subprocess
import sys

ROOTS = ["compiler", "codegen", "frontends", "runtime"]
TEMPLATES = {"compiler/ops/scalar_float.h"}  # included with a type T, for one file after another

MADE = "onnx/onnx.pb-c.h"  # by protoc-c, in the build folder, where it is there
NEED_MADE = {f"frontends/onnx/{name}.h" for name in ("body", "import", "tensor", "window", "wire")}


def main(cc, folders):
    headers = sorted(path.as_posix() for root in ROOTS for path in pathlib.Path(root).rglob("*.h"))
    headers = [path for path in headers if path not in TEMPLATES]
    if not any((pathlib.Path(folder) / MADE).exists() for folder in folders):
        headers = [path for path in headers if path not in NEED_MADE]
    print("1..2")
    failed = 0
    for number, (name, order) in enumerate([("forwards", headers), ("backwards", headers[::-1])], 1):
        source = "".join(f'#include "{path}"\n' for path in order)
        command = [cc, "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-fsyntax-only", "-x", "c", "-"]
        run = subprocess.run(command + [f"-I{folder}" for folder in folders], input=source, text=True, capture_output=True)
        for line in run.stderr.splitlines()[:20]:
            print("#", line)
        failed += run.returncode != 0
        print(f"{'not ok' if run.returncode else 'ok'} {number} - {len(order)} headers, {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
