"""widths.py WIDTH...: is every line that each verb shows at most so many columns wide?  Also of what it complains of."""

import concurrent.futures
import os
import re
import shlex
import subprocess
import sys

VERBS = ["compile", "run", "train", "plan", "opt", "graph", "import", "export", "params", "reduce", "ops", "bench", "tune", "help", "version"]
MODELS = ["digits", "densenet121", "spirals", "decoder", "keywords"]
QUICK = "--target generic --cc 'gcc -O0'"
RIGHT = [  # ends with status 0
    *(f"help {verb}" for verb in VERBS), "help", "version", "ops", "ops conv2d", "ops matmul",
    *(f"plan {model}.nnc{flags}" for model in MODELS for flags in ("", " --format chart", " --report")),
    *(f"params {model}.nnc" for model in MODELS),
    "plan --problem big.csv", "plan digits.nnc --copies 5", "plan digits.nnc --verify plan.json",
    f"plan digits.nnc --report {QUICK}", "plan digits.nnc --threads 3 --report",
    f"run digits.nnc --input zeros --check --time {QUICK}", "run digits.nnc --input zeros --top 3 --target reference",
    f"bench digits.nnc --seconds 0 --threads 2 {QUICK}", f"bench digits.nnc --seconds 0 --kernels {QUICK}",
    f"tune digits.nnc --time-limit 1 --milliseconds 1 -o digits.tune {QUICK}",
    "compile digits.nnc -o out", "compile decoder.nnc -o out --init-missing", "opt digits.nnc --stats -o out.nnc",
    "import d.onnx -o imported", "export digits.nnc -o e.onnx", "reduce digits.nnc --keep false",
]
WRONG = [  # status 1, 2 or 3
    "", "foo", *(f"{verb} --foo" for verb in VERBS), "compile digits.nnc --emit foo", "compile digits.nnc --target foo",
    "compile digits.nnc --emit lib --cc no-such-compiler", "plan digits.nnc --allocator x", "opt digits.nnc --passes=foo",
    "run digits.nnc", "run digits.nnc --input zeros --input zeros", "plan digits.nnc --report --ram 1K --flash 1M",
    "plan digits.nnc --memory-limit 1K", "train spirals.nnc", "ops nothing_like_it", "compile digits.nnc --threads 0",
]
ESCAPE = re.compile("\033\\[[0-9;]*m")


def too_wide(words, width):
    """Lines of stdout, and those of stderr that are no errors in files, nor the source below them."""
    done = subprocess.run(["nnc", *shlex.split(words)], capture_output=True, text=True, env={**os.environ, "COLUMNS": str(width)}, check=False)
    said = [line for line in done.stderr.splitlines() if not re.match(r".*: error: |note: | *\d* \| ", line)]
    return done.returncode, [line for line in done.stdout.splitlines() + said if len(ESCAPE.sub("", line)) > width]


def complaint(case):
    width, words = case
    status, wide = too_wide(words, width)
    right = not wide and (status == 0) == (words in RIGHT)
    return None if right else "\n    ".join([f"{width} columns: nnc {words}: status {status}", *wide[:3]])


cases = [(width, words) for width in map(int, sys.argv[1:]) for words in RIGHT + WRONG]
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    complaints = [c for c in pool.map(complaint, cases) if c]
print("\n".join(complaints))
sys.exit(bool(complaints))
