"""Runs the commands that the documentation shows and compares what they print.

In a fenced block ```console a line `$ command` is run in a copy of models/, with `nnc` on the PATH, together with the
lines `> ...` that continue it; the lines after that are its output, where a line `...` stands for any lines and ` ... `
within a line for any text.  With --write the blocks are brought up to date instead (blocks
with `...` keep their cuts: the line before and the line after a cut must still be there).
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"```console\n(.*?)```\n", re.S)


def matches(expected, actual):
    """Do the lines agree, `...` standing for any number of lines?"""
    pattern = "".join("(?:.*\n)*?" if line.strip() == "..." else re.escape(line).replace(r"\ \.\.\.\ ", ".*") + "\n"
                      for line in expected)
    return re.fullmatch(pattern, "".join(line + "\n" for line in actual)) is not None


def commands(block):
    """Splits a block into (command, expected lines)."""
    pairs = []
    for line in block.splitlines():
        if line.startswith("$ "):
            pairs.append((line[2:], []))
        elif line.startswith(">") and not pairs[-1][1]:
            pairs[-1] = (pairs[-1][0] + "\n" + line[2:], [])
        else:
            pairs[-1][1].append(line)
    return pairs


def output(command, folder, nnc):
    environment = dict(os.environ, PATH=os.path.dirname(nnc) + os.pathsep + os.environ["PATH"])
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=environment, capture_output=True, text=True)
    return [line for line in (done.stdout + done.stderr).splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nnc", required=True)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--models", required=True)
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    nnc = os.path.abspath(arguments.nnc)
    cases = [(path, pair) for path in arguments.files for block in BLOCK.findall(open(path, encoding="utf-8").read())
             for pair in commands(block)]
    print(f"1..{len(cases)}")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        work = os.path.join(folder, "models")
        shutil.copytree(arguments.models, work)
        for number, (path, (command, expected)) in enumerate(cases, 1):
            actual = output(command, work, nnc)
            good = matches(expected, actual)
            print(f"{'ok' if good else 'not ok'} {number} - {os.path.basename(path)}: {command.splitlines()[0]}")
            if not good and arguments.write and "..." not in [line.strip() for line in expected]:
                text = open(path, encoding="utf-8").read()
                old = "".join(line + "\n" for line in [f"$ {command}"] + expected)
                new = "".join(line + "\n" for line in [f"$ {command}"] + actual)
                open(path, "w", encoding="utf-8").write(text.replace(old, new, 1))
            elif not good:
                failed += 1
                print("".join(f"# {line}\n" for line in actual), end="")
    return 1 if failed else 0


sys.exit(main())
