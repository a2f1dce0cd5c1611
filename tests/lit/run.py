"""Runs the lit tests: text in, text out.  Speaks TAP, one result per file.

    run.py --nnc build/nnc --filecheck PATH [--filter TEXT] FOLDER...

A test is a file with lines `# RUN: command`.  The commands run in bash, in order, with pipefail; the first that fails
fails the file.  `# REQUIRES: nvcc dot` skips the file where one of these programs is absent.

    %s  the file          %S  its folder          %T  a temporary folder of its own      %t  a name in it
    %widest  the target of the widest vectors that this machine runs
    %root  the project    nnc, FileCheck, not (any failure), exits N (that very exit status) stand on the PATH
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

HERE = pathlib.Path(__file__).resolve().parent
SUFFIXES = {".nnc", ".test"}
TIME_LIMIT = 120


def find_widest():
    """Machines have AVX-512 or not; those of the tests have AVX2."""
    try:
        has = set(pathlib.Path("/proc/cpuinfo").read_text().split())
    except OSError:
        has = set()
    levels = {"x86-64-v4": {"avx512f", "avx512bw", "avx512dq", "avx512vl"}, "x86-64-v3": {"avx2", "fma"}, "x86-64-v2": {"sse4_2"}}
    return next((target for target, needs in levels.items() if needs <= has), "generic")


WIDEST = find_widest()


def lines_of(text, keyword):
    return re.findall(rf"^\s*#\s*{keyword}:\s*(.*?)\s*$", text, re.MULTILINE)


def command_of(path, text, temporary):
    substitutions = {"%root": HERE.parent.parent, "%widest": WIDEST, "%s": path, "%S": path.parent, "%T": temporary, "%t": temporary / path.stem}
    lines = []
    for line in lines_of(text, "RUN"):
        for key, value in substitutions.items():
            line = re.sub(rf"{key}\b", lambda _: str(value), line)
        lines += [line, 'status=$?; [ $status -eq 0 ] || exit $status'] # `set -e` lets `false && ...` pass
    return "set -eo pipefail\n" + "\n".join(lines)


def run(path, environment, folder):
    """(status, text): status is 'ok', 'skip' or 'fail'."""
    text = path.read_text()
    absent = [tool for line in lines_of(text, "REQUIRES") for tool in line.split() if not shutil.which(tool)]
    if absent:
        return "skip", "needs " + " ".join(absent)
    if not lines_of(text, "RUN"):
        return "fail", "no RUN line"
    temporary = pathlib.Path(tempfile.mkdtemp(dir=folder))
    command = command_of(path, text, temporary)
    try:
        done = subprocess.run(["bash", "-c", command], env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              timeout=TIME_LIMIT, cwd=temporary)
    except subprocess.TimeoutExpired:
        return "fail", f"{command}\nran longer than {TIME_LIMIT} s"
    if done.returncode:
        return "fail", f"{command}\nexit status {done.returncode}\n{done.stdout}"
    return "ok", ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--filecheck", required=True, type=pathlib.Path)
    parser.add_argument("--filter", default="")
    parser.add_argument("folder", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    files = sorted(f.resolve() for folder in options.folder for f in folder.rglob("*")
                   if f.suffix in SUFFIXES and "Inputs" not in f.parts and options.filter in str(f))
    path = [HERE / "bin", options.nnc.resolve().parent, options.filecheck.resolve().parent, os.environ["PATH"]]
    environment = dict(os.environ, PATH=os.pathsep.join(map(str, path)), LC_ALL="C.UTF-8", PYTHON=sys.executable)
    for variable in ("COLUMNS", "NO_COLOR", "TERM"):  # of the terminal that the tests happen to run on
        environment.pop(variable, None)
    failed = 0
    print(f"1..{len(files)}", flush=True)
    with tempfile.TemporaryDirectory(prefix="nnc-lit-") as folder, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for number, (file, (status, text)) in enumerate(zip(files, pool.map(
                lambda f: run(f, environment, folder), files)), 1):
            name = os.path.relpath(file, HERE.parent)
            failed += status == "fail"
            print(f"{'not ok' if status == 'fail' else 'ok'} {number} - {name}{' # SKIP ' + text if status == 'skip' else ''}")
            if status == "fail":
                print("\n".join("# " + line for line in text.splitlines()), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
