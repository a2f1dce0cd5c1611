#!/usr/bin/python3
"""Recipes that a user writes: any value of any knob is refused, or it gives right results.

    knobs.py --nnc build/nnc [--target T ...] [--random COUNT] [--seed N] [--full]

Each case is a graph with one mark in it.  Every knob takes odd values, one at a time and drawn together, on each target
every other one unless --full asks for all; a refusal must be an error at the mark, anything else must agree with the
reference evaluator.  The text that `nnc opt` prints of what is taken reads back, and prints the same.  Speaks TAP: one
result per case and target.
"""

import argparse
import concurrent.futures
import ctypes.util
import itertools
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import build

HUGE = 2**31 - 2
CC = "gcc -O0"  # the quickest; how well C is compiled is not the question
VALUES = {
    "pixels": [0, 1, 2, 3, 5, 7, 12, 14, 28, 32, 33, 64, HUGE],
    "vectors": [0, 1, 2, 3, 4, 5, 8, 9, 31, 2**16, HUGE],
    "chunk": [0, 1, 2, 3, 7, 100, HUGE],
    "rounds": [0, 1, 2, 3, 5, 8, HUGE],
    "rows": [None, 0, 1, 2, HUGE],
    "team": [0, 1, 7, 32, 256, 1024, HUGE],
    "tile_rows": [0, 1, 3, 16, 64, HUGE],
    "tile_columns": [0, 2, 8, 32, 128, HUGE],
    "sums": [0, 16, 17, 32, 64, HUGE],
    "groups": [0, 1, 3, 4, 32, HUGE],
    "splits": [0, 1, 2, 5, 17, HUGE],
    "outputs": [0, 1, 2, 3, 4, 15, HUGE],
    "channels": [None, 0, 1, 2],
    "width": [None, 0, 1, 2],
    "held": [None, 0, 1, 2],
    "framed": [0, 1, 2, 3, 4, 5, 9, HUGE],
    "height": [0, 1, 2, 4, 5, 8, 16, 31, HUGE],
    "taps": [None, 0, 1, 2],
    "images": [0, 1, 2, 3, 6, HUGE],
    "lines": [0, 1, 2, 3, 9, 10, HUGE],
    "transposes": [None, 0, 1, 2],
    "half": [0, 1, 2, 3, 4, 5, 9, HUGE],
    "results": [0, 1, 2, 3, 4, 5, 6, HUGE],
}
TILED = ["pixels", "vectors", "chunk", "rounds", "rows", "transposes"]
DEPTHWISE = ["pixels", "outputs", "channels", "width", "held", "framed"]
GRADIENT = ["height", "vectors", "taps", "images", "lines"]
WINOGRAD = ["results", "height", "pixels", "vectors"]
STRASSEN = ["half", "pixels", "vectors"]
PAIRS = ["pixels", "vectors", "lines"]
CASES = {  # what the marked node is, with MARK where the mark stands: (provider, knobs, text)
    "pairs_product": ("pairs", PAIRS, """graph g(x: u8[27, 33]) -> (y: f32[27, 20]) {
    param w: i8[33, 20] = -77
    a = f32(x)
    b = a - 3.0
    v = f32(w)
    u = v - 5.0
    y = matmul(b, u) MARK
}"""),
    "pairs_image": ("pairs", PAIRS, """graph g(x: i8[2, 5, 9, 13]) -> (y: f32[2, 24, 5, 7]) {
    param w: u8[24, 5, 3, 3] = 200
    a = f32(x)
    v = f32(w)
    u = v - 128.0
    c = conv2d(a, u, pad = 1, stride = 2) MARK
    y = c * 0.5
}"""),
    "matmul": ("tiled", TILED, """graph g(x: f32[20, 40]) -> (y: f32[20, 48]) {
    param w: f32[40, 48] = he_normal(seed = 1)
    m = matmul(x, w) MARK
    y = relu(m)
}"""),
    "matmul_deep": ("tiled", TILED, """graph g(x: f32[7, 600]) -> (y: f32[7, 33]) {
    param w: f32[600, 33] = he_normal(seed = 1)
    y = matmul(x, w) MARK
}"""),
    "matmul_batch": ("tiled", TILED, """graph g(x: f32[3, 10, 24], z: f32[3, 24, 35]) -> (y: f32[3, 10, 35]) {
    m = matmul(x, z) MARK
    y = exp(m) + 1.0
}"""),
    "matmul_transposed": ("tiled", TILED, """graph g(x: f32[2, 9, 24], z: f32[2, 36, 24]) -> (y: f32[2, 9, 36]) {
    y = matmul(x, transpose(z, axes = [0, 2, 1])) MARK
}"""),
    "matmul_run_time": ("tiled", TILED, """graph g(x: f32[53, 70], w: f32[70, 80], b: f32[80]) -> (y: f32[53, 80], z: bool[53, 80]) {
    m = matmul(x, w) MARK
    y = m + b
    z = y < 0.5
}"""),
    "matmul_gathered": ("tiled", TILED, """graph g(x: f32[40, 300], d: f32[40, 32]) -> (y: f32[300, 32]) {
    y = matmul(transpose(x), d) MARK
}"""),
    "matmul_weights": ("tiled", TILED, """graph g(x: f32[288, 32], d: f32[288, 80], w: f32[32, 80]) -> (y: f32[32, 80]) {
    m = matmul(transpose(x), d) MARK
    y = w - 0.1 * m
}"""),
    "matmul_pages": ("tiled", ["rows", "transposes"], """graph g(x: f32[16, 2100], w: f32[2100, 1008]) -> (y: f32[16, 1008]) {
    m = matmul(x, w) MARK
    y = 0.01 * m
}"""),
    "matmul_panels": ("tiled", TILED, """graph g(x: f32[19, 96], w: f32[96, 96], v: f32[96, 96]) -> (y: f32[19, 96]) {
    (y, i) = while (i < 2) with (y = x, i = 0) {
        h = matmul(y, w) MARK
    } next (y <- tanh(matmul(h, v, transpose_y = true)), i <- i + 1)
}"""),
    "matmul_sums": ("tiled", TILED, """graph g(x: f32[18, 40]) -> (y: f16[18, 48]) {
    param w: f32[40, 48] = he_normal(seed = 1)
    m = matmul(x, w) MARK
    y = f16(m)
}"""),
    "conv_few": ("tiled", TILED, """graph g(x: f32[2, 3, 9, 17]) -> (y: f32[2, 32, 9, 17]) {
    param w: f32[32, 3, 3, 3] = he_normal(seed = 1)
    c = conv2d(x, w, pad = 1) MARK
    y = relu(c)
}"""),
    "conv": ("tiled", TILED, """graph g(x: f32[1, 32, 9, 11]) -> (y: f32[1, 40, 5, 6]) {
    param w: f32[40, 32, 3, 3] = he_normal(seed = 1)
    y = conv2d(x, w, pad = 1, stride = 2) MARK
}"""),
    "pointwise": ("tiled", TILED, """graph g(x: f32[2, 32, 8, 8]) -> (y: f32[2, 48, 8, 8]) {
    param w: f32[48, 32, 1, 1] = he_normal(seed = 1)
    y = conv2d(x, w) MARK
}"""),
    "pooled": ("tiled", TILED, """graph g(x: f32[1, 3, 32, 32]) -> (y: f32[1, 16, 16, 16]) {
    param w: f32[16, 3, 3, 3] = he_normal(seed = 1)
    c = conv2d(x, w, pad = 1) MARK
    y = max_pool(relu(c), window = 2, stride = 2)
}"""),
    "line": ("tiled", TILED, """graph g(x: f32[1, 16, 16, 16]) -> (y: f32[1, 16, 16, 16]) {
    param u: f32[16, 16, 3, 3] = he_normal(seed = 1)
    param v: f32[16, 32, 1, 1] = he_normal(seed = 2)
    param w: f32[16, 16, 3, 3] = he_normal(seed = 3)
    h = concat(conv2d(x, u, pad = 1), conv2d(x, w, pad = 1), axis = 1)
    c = conv2d(exp(h), v) MARK
    y = relu(c)
}"""),
    "image": ("tiled", TILED, """graph g(x: u8[2, 3, 19, 17], w: f16[32, 3, 3, 3]) -> (y: f32[2, 32, 10, 9]) {
    c = conv2d(f32(x) / 127.0 - 1.0, f32(w), pad = 1, stride = 2) MARK
    y = relu(c)
}"""),
    "depthwise": ("depthwise", DEPTHWISE, """graph g(x: f32[1, 3, 9, 11]) -> (y: f32[1, 32, 9, 11]) {
    param u: f32[32, 3, 1, 1] = he_normal(seed = 1)
    param w: f32[32, 1, 3, 3] = he_normal(seed = 2)
    param b: f32[32] = he_normal(seed = 3)
    c = conv2d(conv2d(x, u), w, b, pad = 1, groups = 32) MARK
    y = relu(c)
}"""),
    "depthwise_width": ("depthwise", DEPTHWISE, """graph g(x: f32[2, 3, 9, 41]) -> (y: f32[2, 3, 5, 41]) {
    param w: f32[3, 1, 3, 5] = he_normal(seed = 1)
    c = conv2d(x, w, pad = [1, 2], stride = [2, 1], groups = 3) MARK
    y = minimum(relu(c), 6.0)
}"""),
    "depthwise_transposed": ("depthwise", DEPTHWISE, """graph g(x: f32[1, 3, 9, 11]) -> (y: f32[1, 32, 18, 22]) {
    param u: f32[32, 3, 1, 1] = he_normal(seed = 1)
    param w: f32[32, 1, 4, 4] = he_normal(seed = 2)
    c = conv2d_transpose(conv2d(x, u), w, stride = 2, pad = 1, groups = 32) MARK
    y = relu(c)
}"""),
    "depthwise_wide_window": ("depthwise", DEPTHWISE, """graph g(x: f32[1, 3, 4, 50]) -> (y: f32[1, 32, 4, 50]) {
    param u: f32[32, 3, 1, 1] = he_normal(seed = 1)
    param w: f32[32, 1, 1, 17] = he_normal(seed = 2)
    c = conv2d(conv2d(x, u), w, pad = [0, 8], groups = 32) MARK
    y = exp(c)
}"""),
    "grouped": ("depthwise", DEPTHWISE, """graph g(x: f32[1, 6, 9, 41], r: f32[1, 12, 5, 21]) -> (y: f32[1, 12, 5, 21]) {
    param w: f32[12, 3, 3, 3] = he_normal(seed = 1)
    c = conv2d(x, w, pad = 1, stride = 2, groups = 2) MARK
    y = c + exp(r)
}"""),
    "winograd": ("winograd", WINOGRAD, """graph g(x: f32[1, 3, 9, 11], r: f32[1, 48, 9, 11]) -> (y: f32[1, 48, 9, 11]) {
    param u: f32[32, 3, 1, 1] = he_normal(seed = 1)
    param w: f32[48, 32, 3, 3] = he_normal(seed = 2)
    param b: f32[48] = he_normal(seed = 3)
    c = conv2d(conv2d(x, u), w, b, pad = 1) MARK
    y = relu(c + r)
}"""),
    "winograd_odd": ("winograd", WINOGRAD, """graph g(x: f32[2, 5, 6, 7]) -> (y: f32[2, 19, 7, 5]) {
    param w: f32[19, 5, 3, 3] = he_normal(seed = 1)
    y = conv2d(x, w, pad = [2, 0, 1, 0]) MARK
}"""),
    "strassen": ("strassen", STRASSEN, """graph g(x: f32[2, 9, 64], r: f32[2, 9, 192]) -> (y: f32[2, 9, 192]) {
    param w: f32[64, 192] = he_normal(seed = 1)
    c = matmul(x, w) MARK
    y = relu(c + r)
}"""),
    "strassen_image": ("strassen", STRASSEN, """graph g(x: f32[1, 3, 5, 5]) -> (y: f32[1, 192, 5, 5]) {
    param u: f32[32, 3, 1, 1] = he_normal(seed = 1)
    param w: f32[192, 32, 1, 1] = he_normal(seed = 2)
    param b: f32[192] = he_normal(seed = 3)
    c = conv2d(conv2d(x, u), w, b) MARK
    y = exp(c)
}"""),
    "gradient": ("gradient", GRADIENT, """graph g(x: f32[6, 32, 9, 7], d: f32[6, 48, 9, 7]) -> (y: f32[48, 32, 3, 3]) {
    w = conv2d_weight_gradient(x, d, size = [3, 3], pad = 1) MARK
    y = 0.5 * w
}"""),
    "gradient_few": ("gradient", GRADIENT, """graph g(x: f32[2, 3, 19, 17], d: f32[2, 33, 9, 9]) -> (y: f32[33, 3, 3, 5]) {
    y = conv2d_weight_gradient(x, d, size = [3, 5], stride = 2, pad = [0, 2, 0, 2]) MARK
}"""),
    "gradient_line": ("gradient", GRADIENT, """graph g(x: f32[2, 3, 19, 17], d: f32[2, 24, 10, 9]) -> (y: f32[24, 3, 7, 7]) {
    y = conv2d_weight_gradient(x, d, size = 7, stride = 2, pad = 3) MARK
}"""),
    "gradient_pixels": ("gradient", GRADIENT, """graph g(x: f32[4, 16, 7, 6], z: f32[4, 3, 7, 6]) -> (y: f32[80, 16, 1, 1]) {
    param w: f32[80, 3, 1, 1] = he_normal(seed = 1)
    d = conv2d(z, w)
    y = conv2d_weight_gradient(x, d, size = 1) MARK
}"""),
    "softmax": ("rows", ["team"], """graph g(x: f32[5, 300]) -> (y: f32[5, 300]) {
    e = exp(x)
    s = reduce_sum(e, axes = 1, keep = true) MARK
    y = e / s
}"""),
    "pool": ("window", ["team"], """graph g(x: f32[1, 5, 9, 9]) -> (y: f32[1, 5, 4, 4]) {
    y = max_pool(x, window = 3, stride = 2) MARK
}"""),
    "column_sums": ("window", ["team"], """graph g(x: f32[300, 7]) -> (y: f32[7]) {
    y = reduce_sum(x, axes = 0) MARK
}"""),
    "columns": ("columns", [], """graph g(x: f32[3, 20, 5, 48], z: f32[5, 48]) -> (y: f32[3, 1, 1, 48], l: f32[1, 20, 5, 48]) {
    s = reduce_sum(x * z, axes = [1, 2], keep = true) MARK
    y = 0.5 * s
    l = reduce_max(x, axes = 0, keep = true)
}"""),
    "columns_parts": ("columns", [], """graph g(x: f32[17, 300]) -> (y: f32[300]) {
    s = reduce_prod(x, axes = 0) MARK
    y = sqrt(abs(s))
}"""),
    "matmul_blocked": ("blocked", ["tile_rows", "tile_columns", "sums", "groups", "splits"], """graph g(x: f32[70, 140]) -> (y: f32[70, 48]) {
    param w: f32[140, 48] = he_normal(seed = 1)
    y = relu(matmul(x, w)) MARK
}"""),
    "vector_blocked": ("blocked", ["tile_rows", "tile_columns", "sums", "groups", "splits"], """graph g(x: f32[300], b: f32[70]) -> (y: f32[70]) {
    param w: f32[300, 70] = he_normal(seed = 1)
    p = x @ w MARK
    y = p + b
}"""),
    "transposed_blocked": ("blocked", ["tile_rows", "tile_columns", "sums", "groups", "splits"], """graph g(x: f32[3, 2, 90], z: f32[2, 17, 90]) -> (y: f32[3, 2, 17]) {
    p = reshape(x, shape = [3, 2, 1, 90]) @ transpose(z, axes = [0, 2, 1]) MARK
    y = reshape(p, shape = [3, 2, 17])
}"""),
    "groups_blocked": ("blocked", ["tile_rows", "tile_columns", "sums", "groups", "splits"], """graph g(x: f32[2, 24, 9, 7]) -> (y: f32[2, 15, 5, 4]) {
    param w: f32[15, 8, 3, 3] = he_normal(seed = 1)
    p = conv2d(x, w, groups = 3, stride = 2, pad = 1) MARK
    y = relu(p)
}"""),
    "pixel_blocked": ("blocked", ["tile_rows", "tile_columns", "sums", "groups", "splits"], """graph g(x: f32[3, 100, 1, 1]) -> (y: f32[3, 50, 1, 1]) {
    param w: f32[50, 100, 1, 1] = he_normal(seed = 1)
    param b: f32[50] = he_normal(seed = 2)
    p = conv2d(x, w, b) MARK
    y = sigmoid(p)
}"""),
    "matmul_library": ("openblas", ["lines"], """graph g(x: f32[18, 40]) -> (y: f32[18, 9]) {
    param w: f32[40, 9] = he_normal(seed = 1)
    y = relu(matmul(x, w)) MARK
}"""),
    "conv_library": ("openblas", ["lines"], """graph g(x: f32[2, 3, 9, 7]) -> (y: f32[2, 8, 9, 7]) {
    param w: f32[8, 3, 3, 3] = he_normal(seed = 1)
    y = conv2d(x, w, pad = 1) MARK
}"""),
    "matmul_window": ("window", ["team"], """graph g(x: f32[7, 40]) -> (y: f32[7, 9]) {
    param w: f32[40, 9] = he_normal(seed = 1)
    y = matmul(x, w) MARK
}"""),
}


LIBRARY = ctypes.util.find_library("openblas")


def backend(provider):
    return ["--backend", "auto"] if provider == "openblas" else []


def show(knobs):
    return "".join(f", {k}" if v is None else f", {k} = {v}" for k, v in knobs)


def marks(provider, knobs, count, draw):
    """Each knob alone with each value, those that are on or off by twos, then some of them together."""
    yield f"@kernel(0, {provider})"
    for knob in knobs:
        for value in VALUES[knob]:
            yield f"@kernel(0, {provider}{show([(knob, value)])})"
    for pair in itertools.combinations([knob for knob in knobs if VALUES[knob][0] is None], 2):
        yield f"@kernel(0, {provider}{show([(knob, 1) for knob in pair])})"
    for _ in range(count if len(knobs) > 1 else 0):
        some = draw.sample(knobs, draw.randint(2, len(knobs)))
        yield f"@kernel(0, {provider}{show([(k, draw.choice(VALUES[k][:6])) for k in some])})"


def call(nnc, *words):
    done = subprocess.run([str(w) for w in (nnc, *words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    return done.returncode, done.stdout


def inputs_of(text):
    names = [piece.split(":")[0] for piece in text[text.index("(") + 1:text.index(") ->")].split(", ") if ":" in piece]
    return [word for seed, name in enumerate(names, 1) for word in ("--input", f"{name}=random:{seed}")]


REFUSALS = ["this kernel cannot be computed so, by '", "is on, or off by 0"]


def check_refusal(path, mark, output):
    line = path.read_text()[:path.read_text().index(mark)].count("\n") + 1
    if f"{path.name}:{line}:" in output and any(refusal in output for refusal in REFUSALS):
        return None
    return f"refused otherwise: {output}"


def check_text(nnc, path, mark, words):
    """What is printed of it has all that was asked for, and says the same when it is read."""
    again = path.with_suffix(".again.nnc")
    status, printed = call(nnc, "opt", path, *words)
    if status:
        return f"does not print: {printed}"
    flags = "|".join(knob for knob, values in VALUES.items() if None in values)
    asked = [re.sub(rf"^({flags}) = 1$", r"\1", k) for k in re.findall(rf", (\w+ = \d+|(?:{flags})\b(?! =))", mark)]
    missing = [k for k in asked if not re.search(rf", {k}\b", printed)]
    if missing:
        return f"{', '.join(missing)} is not in what is printed:\n{printed}"
    again.write_text(printed)
    status, twice = call(nnc, "opt", again, *words)
    return None if not status and twice == printed else f"prints otherwise when it is read back:\n{printed}\n{twice}"


def check_mark(nnc, folder, number, text, mark, words):
    """(taken, fault)"""
    path = folder / f"case{number}.nnc"
    path.write_text("nnc 1\n" + text.replace("MARK", mark) + "\n")
    gpu = words[1].startswith("cuda")
    try:
        if gpu:
            status, output = call(nnc, "compile", path, "-o", folder / f"out{number}", *words)
        else:
            status, output = call(nnc, "run", "--check", "--cc", CC, *words, *inputs_of(text), path)
        if status == 1 and "error" in output:
            return False, check_refusal(path, mark, output)
        if status or not (gpu or "agrees" in output):
            return True, f"exit status {status}: {output}"
        return True, check_text(nnc, path, mark, words)
    except subprocess.TimeoutExpired:
        return True, "takes longer than two minutes"


def fits(provider, target):
    """Does the provider compute for such targets?"""
    if provider == "openblas":
        return LIBRARY and not target.startswith("cuda")
    if provider == "pairs":
        return target in ("x86-64-v3", "x86-64-v4")
    return provider not in (("tiled", "depthwise", "gradient") if target.startswith("cuda") else ("blocked",))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--target", nargs="*", default=["generic", "x86-64-v3", "x86-64-v4", "cuda:sm_90"])
    parser.add_argument("--case", nargs="*", default=list(CASES))
    parser.add_argument("--random", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--full", action="store_true")
    arguments = parser.parse_args()

    failed = number = 0
    targets = [t for t in arguments.target if build.available(t, "gcc")]
    wanted = [(case, target) for case in arguments.case for target in targets
              if fits(CASES[case][0], target) or case == "matmul"]
    print(f"1..{len(wanted)}", flush=True)
    with tempfile.TemporaryDirectory(prefix="nnc-knobs-") as folder, concurrent.futures.ThreadPoolExecutor() as pool:
        for case, target in wanted:
            provider, knobs, text = CASES[case]
            draw = random.Random(f"{arguments.seed} {case} {target}")
            asked = list(marks(provider, knobs, arguments.random, draw))
            asked = asked if arguments.full or len(targets) == 1 else asked[targets.index(target) % 2::2]
            found = list(pool.map(lambda item: check_mark(
                arguments.nnc.resolve(), pathlib.Path(folder), item[0], text, item[1], ["--target", target, *backend(provider)]), enumerate(asked)))
            faults = [f"{mark}: {fault}" for mark, (_, fault) in zip(asked, found) if fault]
            taken = sum(took for took, _ in found)
            number += 1
            failed += bool(faults)
            print(f"{'not ok' if faults else 'ok'} {number} - {case} for {target}: {taken} of {len(asked)} taken")
            print("".join(f"# {line}\n" for fault in faults for line in fault.splitlines()), end="", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
