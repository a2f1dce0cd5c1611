#!/usr/bin/python3
"""The firmware of docs/firmware.md on Cortex-M4 and Cortex-M7 in QEMU: it is built as the page says, and recognises digits;
another learns to.

    firmware.py --nnc build/nnc --page docs/firmware.md --root .      reports as TAP; skipped without compiler or QEMU
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BOARDS = [("mps2-an386", "cortex-m4", "fpv4-sp-d16"), ("mps2-an500", "cortex-m7", "fpv5-d16")]
NEEDS = ["arm-none-eabi-gcc", "qemu-system-arm"]
SAID = "the test of the model passes\n" + "".join(f"{i} is {i}\n" for i in range(10))


def sh(command, folder, nnc):
    environment = dict(os.environ, PATH=f"{nnc.parent}{os.pathsep}{os.environ['PATH']}")
    return subprocess.run(["sh", "-e", "-c", command], cwd=folder, env=environment, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=300)


def commands(page):
    """The page's shell blocks: the model, build and run for the first board, whether it fits, and what learns."""
    return re.findall(r"```sh\n(.*?)```", page.read_text(), re.S)


def for_board(command, machine, cpu, fpu):
    for old, new in zip(BOARDS[0], (machine, cpu, fpu)):
        command = command.replace(old, new)
    return command.replace("-Wall", "-Wall -Werror")


def complaint_of_run(done):
    if done.returncode:
        return f"exit status {done.returncode}\n{done.stdout}"
    return None if done.stdout.endswith(SAID) else done.stdout


def complaint_of_report(folder, nnc, report):
    """The model fits into the page's part; into less flash it does not."""
    fits, not_into = sh(report, folder, nnc), sh(report.replace("512K", "192K"), folder, nnc)
    if fits.returncode or "of 65,536 B: fits" not in fits.stdout or "of 524,288 B: fits" not in fits.stdout:
        return fits.stdout
    return None if not_into.returncode == 1 else not_into.stdout


def complaint_of_learning(folder, nnc, learn):
    """It has RAM for no more than it needs, and says itself whether it has learnt enough."""
    learn = learn.replace("python3", sys.executable).replace("-Wall", "-Wall -Werror")
    done, less = sh(learn, folder, nnc), sh(learn.replace("96K", "90K"), folder, nnc)
    if done.returncode or not re.search(r"^1\d\d of 200 recognised$", done.stdout, re.M):
        return f"exit status {done.returncode}\n{done.stdout}"
    return None if less.returncode == 1 and "RAM' overflowed" in less.stdout else less.stdout


def complaint_of_library(folder, nnc):
    """libNAME.a by the cross compiler's own archiver, for that machine."""
    done = sh('nnc compile digits.nnc --weights-from models/digits.safetensors --emit static -o lib '
              '--cc "arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16"\n'
              "arm-none-eabi-readelf -h lib/libdigits.a", folder, nnc)
    return None if done.returncode == 0 and "ARM" in done.stdout else done.stdout


def complaint_of_damage(folder, nnc, build_and_run):
    """A model that computes something else is noticed by its own test."""
    path = folder / "model/digits_selftest.c"
    text = path.read_text()
    path.write_text(text.replace("expected0[10] = {", "expected0[10] = {0.5f + "))
    done = sh(build_and_run, folder, nnc)
    path.write_text(text)
    return None if done.returncode == 1 and "the test of the model fails" in done.stdout else done.stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--page", required=True, type=pathlib.Path)
    parser.add_argument("--root", required=True, type=pathlib.Path)
    options = parser.parse_args()
    nnc, root = options.nnc.resolve(), options.root.resolve()
    absent = [tool for tool in NEEDS if not shutil.which(tool)]
    if absent:
        print(f"1..0 # SKIP {' and '.join(absent)} not installed: ./dev setup machines")
        return 0
    model, build_and_run, report, learn = commands(options.page)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "models").symlink_to(root / "models")
        (folder / "tests").symlink_to(root / "tests")
        made = sh(model, folder, nnc)
        results = [("the model", made.stdout if made.returncode or "32,256" not in made.stdout else None)]
        for board in BOARDS:
            results.append((board[1], complaint_of_run(sh(for_board(build_and_run, *board), folder, nnc))))
        results.append(("a damaged model", complaint_of_damage(folder, nnc, build_and_run)))
        results.append(("a report", complaint_of_report(folder, nnc, report)))
        results.append(("what learns", complaint_of_learning(folder, nnc, learn)))
        results.append(("a library", complaint_of_library(folder, nnc)))
    print(f"1..{len(results)}")
    for number, (what, complaint) in enumerate(results, 1):
        print(f"{'not ok' if complaint else 'ok'} {number} - {what}")
        if complaint:
            print("# " + complaint.replace("\n", "\n# "))
    return 1 if any(complaint for _, complaint in results) else 0


if __name__ == "__main__":
    sys.exit(main())
