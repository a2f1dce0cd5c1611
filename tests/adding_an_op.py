"""Does what docs/adding-an-op.md says, to the letter, in a copy of the tree.

A fenced block whose first line names a file, `FILE, after `TEXT``, is put into that file behind the first line that holds
TEXT.  In a block ```console each `$ command` runs in the copy, and must print what stands below it, where a line `...`
stands for any lines.  Blocks are taken in the order of the page.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"```\w+\n(.*?)```\n", re.S)
PLACE = re.compile(r"\W+(\S+), after `(.+)`")
KEPT = ["cmake", "codegen", "compiler", "frontends", "runtime", "tests", "models", "docs", "meson.build", "meson_options.txt", "LICENSE",
        "README.md", "dev"]


def insert(tree, place, text):
    path = tree / place.group(1)
    lines = path.read_text().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if place.group(2) in line)
    path.write_text("".join(lines[:at + 1]) + text + "".join(lines[at + 1:]))
    return None


def run(tree, command, expected):
    """None, or what it printed instead.  What is built there is built in little time."""
    path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"  # `python3` is the one that runs this
    done = subprocess.run(["sh", "-c", command], cwd=tree, env={**os.environ, "PATH": path, "CFLAGS": "-O0"}, capture_output=True, text=True)
    printed = done.stdout + done.stderr
    wanted = "".join(".*" if line == "..." else re.escape(line) + "\n" for line in expected)
    return None if re.fullmatch(wanted, printed, re.S) else printed


def steps(page):
    """(what it is, what to do in the tree)"""
    for block in BLOCK.findall(page):
        first, _, rest = block.partition("\n")
        place = PLACE.match(first)
        if place:
            yield f"insert into {place.group(1)}", lambda tree, p=place, r=rest: insert(tree, p, r)
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, *expected = part.splitlines()
            yield command, lambda tree, c=command, e=expected: run(tree, c, e)


def main():
    todo = list(steps((ROOT / "docs/adding-an-op.md").read_text()))
    print(f"1..{len(todo)}", flush=True)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder)
        for name in KEPT:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, tree / name)
        for number, (what, do) in enumerate(todo, 1):
            wrong = do(tree)
            print(f"{'not ok' if wrong else 'ok'} {number} - {what}", flush=True)
            if wrong is not None:
                print("".join(f"# {line}\n" for line in wrong.splitlines()[-40:]), end="")
            failed += wrong is not None
    return 1 if failed or len(todo) < 6 else 0


sys.exit(main())
