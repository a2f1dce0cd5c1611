"""`./dev demo`, the README's first command, without the build: it runs, every image is told right, and the plan is shown."""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]


def complaint(nnc, columns):
    with tempfile.TemporaryDirectory() as name:
        (pathlib.Path(name) / "models").symlink_to(ROOT / "models")
        done = subprocess.run([sys.executable, "models/demo.py", nnc.parent], cwd=name, text=True,
                              env={**os.environ, "COLUMNS": str(columns)}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=120)
    if done.returncode:
        return f"exit status {done.returncode}\n{done.stdout}"
    shown = re.findall(r"(\d)_\w+\.pgm", done.stdout)
    told = [digit for digit, share in re.findall(r"(\d)  █+ +(\d+\.\d) %", done.stdout) if float(share) > 50]
    if not shown or told != shown:
        return f"images of {shown}, told as {told}\n{done.stdout}"
    return None if "proven minimal" in done.stdout else done.stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    options = parser.parse_args()
    wrong = 0
    widths = (80, 200)
    print(f"1..{len(widths)}")
    for number, columns in enumerate(widths, 1):
        said = complaint(options.nnc.resolve(), columns)
        wrong += said is not None
        print(f"{'not ok' if said else 'ok'} {number} - {columns} columns")
        if said:
            print("# " + said.replace("\n", "\n# "))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
