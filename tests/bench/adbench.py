"""Gradients of ADBench's mixture of Gaussians and LSTM (tests/bench/adbench), beside JAX where this Python has it: one core.

    adbench.py BUILD [CASE ...] [--turns N] [--dtype f64 ...]      prints milliseconds, medians over the turns
    adbench.py BUILD --check [--target T ...]                      TAP: values and slopes against NumPy, on small cases

In each turn the objective and the gradient of nnc and of JAX follow one another, so what else the machine does meets all.
JAX computes by the same formulas, compiled.  Beside them stand what was published for Tapenade's C and for JAX in f64 on
a like core (GradBench); objective and gradient are its definitions.
"""

import argparse
import math
import os
import pathlib
import statistics
import sys
import tempfile
import time

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/emitted"))
import build
from bench import TARGETS
from streams import Model, addresses

CASES = {  # name: model, constants, published ms of Tapenade and JAX
    "gmm-d10-k25": ("gmm", {"D": 10, "K": 25, "N": 1000}, 4.2, 1.4),
    "gmm-d64-k200": ("gmm", {"D": 64, "K": 200, "N": 1000}, 573, 241),
    "gmm-d128-k25": ("gmm", {"D": 128, "K": 25, "N": 1000}, 242, 62),
    "lstm-l2-c1024": ("lstm", {"L": 2, "C": 1024, "B": 14}, 3.5, 5.3),
    "lstm-l4-c4096": ("lstm", {"L": 4, "C": 4096, "B": 14}, 28.5, 67),
}
SMALL = {"gmm": {"D": 5, "K": 3, "N": 17}, "lstm": {"L": 3, "C": 9, "B": 4}}


def below(d):
    """Rows and columns of what is strictly below the diagonal, column by column."""
    column, row = np.triu_indices(d, 1)
    return row, column


# ---- What is computed, in the words of NumPy or of jax.numpy ----

def logsumexp(xp, x, axis):
    most = x.max(axis=axis, keepdims=True)
    return xp.log(xp.exp(x - most).sum(axis=axis)) + most.squeeze(axis)


def gmm(xp, alpha, mean, q, l, x, constant, gamma=1.0, m=0.0):
    k, d = mean.shape
    row, column = below(d)
    a = xp.exp(q)[:, :, None] * np.eye(d, dtype=np.asarray(q).dtype if xp is np else q.dtype)
    if xp is np:
        a[:, row, column] = l
    else:
        a = a.at[:, row, column].set(l)
    distance = xp.matmul(x, a.swapaxes(1, 2)) - xp.matmul(a, mean[:, :, None]).swapaxes(1, 2)  # [k, n, d]
    inner = (alpha + q.sum(axis=1))[:, None] - 0.5 * (distance**2).sum(axis=2)
    likelihood = logsumexp(xp, inner, 0).sum() - len(x) * logsumexp(xp, alpha, 0)
    prior = m * q.sum() - 0.5 * gamma * gamma * ((xp.exp(q)**2).sum() + (l**2).sum())
    return likelihood + prior + constant


def sigmoid(xp, x):
    return 1 / (1 + xp.exp(-x))


def step(xp, main, extra, state, x):
    y, rows = x * extra[0], []
    for i in range(0, len(main), 2):
        forget, enter, leave, change = xp.split(xp.concatenate([y, state[i], y, state[i]]) * main[i] + main[i + 1], 4)
        c = state[i + 1] * sigmoid(xp, forget) + sigmoid(xp, enter) * xp.tanh(change)
        y = sigmoid(xp, leave) * xp.tanh(c)
        rows += [y, c]
    return xp.stack(rows), y


def lstm(xp, main, extra, first, sequence):
    if xp is np:
        state, ys = first, []
        for x in sequence[:-1]:
            state, y = step(xp, main, extra, state, x)
            ys.append(y)
        ys = np.array(ys)
    else:
        import jax

        ys = jax.lax.scan(lambda state, x: step(xp, main, extra, state, x), first, sequence[:-1])[1]
    predicted = ys * extra[1] + extra[2]
    rest = xp.log(xp.exp(predicted).sum(axis=1, keepdims=True) + 2)
    return -(sequence[1:] * (predicted - rest)).mean()


OBJECTIVE, PARAMS = {"gmm": gmm, "lstm": lstm}, {"gmm": 4, "lstm": 2}  # how many of the inputs are differentiated


def inputs(model, size, dtype):
    """Random numbers as ADBench's: the bits of a sequence are 0 or 1."""
    draw = np.random.default_rng(2)
    if model == "gmm":
        k, d, n = size["K"], size["D"], size["N"]
        wishart = math.fsum(math.lgamma((d + 1 - i) / 2) for i in range(d)) + d * (d - 1) / 4 * math.log(math.pi)
        constant = -n * d / 2 * math.log(2 * math.pi) + k * ((d + 1) * d * math.log(1 / math.sqrt(2)) - wishart)
        given = [draw.normal(size=k), draw.uniform(size=(k, d)), draw.normal(size=(k, d)), draw.normal(size=(k, d * (d - 1) // 2)),
                 draw.normal(size=(n, d)), np.array(constant)]
    else:
        layers, bits = size["L"], size["B"]
        given = [draw.uniform(-1, 1, (2 * layers, 4 * bits)), draw.uniform(-1, 1, (3, bits)),
                 draw.uniform(-1, 1, (2 * layers, bits)), draw.integers(0, 2, (size["C"], bits))]
    return [np.asarray(array, dtype, order="C") for array in given]


# ---- nnc ----

def compiled(nnc, model, size, dtype, target, cc, folder):
    text = (ROOT / f"tests/bench/adbench/{model}.nnc").read_text()
    source = folder / f"{model}.nnc"
    source.write_text(text if dtype == "f64" else text.replace("f64", dtype))
    defines = [word for name, value in size.items() for word in ("-D", f"{name}={value}")]
    error = build.command([nnc, "compile", source, "-o", folder, "--name", model, "--target", target, "--cc", cc, "--emit", "lib",
                           "--weights", "c", *defines])
    if error:
        raise AssertionError(error)
    return Model(folder / f"lib{model}.so", model, {})


def caller(model, entry, arrays):
    """A function that runs the entry on these arrays, and its outputs."""
    of = model.entry[entry]
    outputs = [np.zeros(of.output[i].shape[:of.output[i].rank], arrays[0].dtype) for i in range(of.output_count)]
    x, y = addresses(arrays), addresses(outputs)

    def run():
        assert of.run(x, y, model.arena.ctypes.data, None, None, None, None) == 0
        return arrays, outputs  # whose addresses these are
    return run, outputs


# ---- JAX ----

def jax_callers(model, arrays):
    import jax

    jax.config.update("jax_enable_x64", True)
    objective = lambda *given: OBJECTIVE[model](jax.numpy, *given)
    given = [jax.numpy.asarray(array) for array in arrays]
    made = [jax.jit(objective), jax.jit(jax.grad(objective, tuple(range(PARAMS[model]))))]
    return [lambda f=f: jax.block_until_ready(f(*given)) for f in made]


def has_jax():
    try:
        import jax  # noqa: F401
        return True
    except ImportError:
        return False


# ---- Values and slopes ----

def check(arguments, model, target, folder):
    """None, or what is wrong with the small case."""
    arrays = inputs(model, SMALL[model], np.float64)
    try:
        library = compiled(arguments.nnc, model, SMALL[model], "f64", target, "gcc -O0", folder)
    except AssertionError as failed:
        return str(failed)
    (objective, (value,)), (gradient, slopes) = (caller(library, entry, arrays) for entry in ("objective", "gradient"))
    objective(), gradient()
    want = OBJECTIVE[model](np, *arrays)
    if not abs(value - want) <= 1e-12 * abs(want):
        return f"the objective is {value}, not {want}"
    draw, count, h = np.random.default_rng(7), PARAMS[model], 1e-4
    along = [draw.normal(size=array.shape) for array in arrays[:count]]
    moved = lambda far: OBJECTIVE[model](np, *(x + far * u for x, u in zip(arrays, along)), *arrays[count:])
    want = (8 * (moved(h) - moved(-h)) - moved(2 * h) + moved(-2 * h)) / (12 * h)
    slope = sum((g * u).sum() for g, u in zip(slopes, along))
    return None if abs(slope - want) <= 1e-8 * abs(want) else f"the slope is {slope}, by differences {want}"


# ---- Times ----

def milliseconds(function):
    """Of one call: of as many as take some time."""
    rounds, took = 1, 0.0
    while took < 0.05:
        begin = time.perf_counter()
        for _ in range(rounds):
            function()
        took, made = time.perf_counter() - begin, rounds
        rounds *= 2
    return took / made * 1e3


def measure(arguments, model, size, dtype, jax):
    """Medians: nnc's objective and gradient, then JAX's."""
    arrays = inputs(model, size, {"f64": np.float64, "f32": np.float32}[dtype])
    with tempfile.TemporaryDirectory() as folder:
        library = compiled(arguments.nnc, model, size, dtype, arguments.target[0], arguments.cc, pathlib.Path(folder))
        functions = [caller(library, entry, arrays)[0] for entry in ("objective", "gradient")]
        functions += jax_callers(model, arrays) if jax else []
        for function in functions:
            function()
        turns = [[milliseconds(function) for function in functions] for _ in range(arguments.turns)]
    return [statistics.median(column) for column in zip(*turns)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], default=[])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--dtype", nargs="*", default=["f64", "f32"])
    parser.add_argument("--cc", default="clang")
    cpu = pathlib.Path("/proc/cpuinfo").read_text()
    parser.add_argument("--target", nargs="*", default=[next((t for t, flag in TARGETS.items() if flag in cpu), "generic")])
    arguments = parser.parse_args()
    arguments.nnc = arguments.build.resolve() / "nnc" if arguments.build.is_dir() else arguments.build.resolve()
    if arguments.check:
        return build.report([(f"{model} for {target}", target, "gcc", (arguments, model, target))
                             for model in SMALL for target in arguments.target], check)
    jax = has_jax()
    print(f"{'':13} {'':4} {'nnc':^27}  {'JAX':^18}   published")
    print(f"{'case':13} {'':4} objective  gradient    ratio  objective gradient   Tapenade    JAX")
    for name in arguments.cases or CASES:
        model, size, *published = CASES[name]
        for dtype in arguments.dtype:
            objective, gradient, *peer = measure(arguments, model, size, dtype, jax)
            beside = "".join(f"{ms:9.2f}" for ms in peer) if peer else f"{'-':>9}" * 2
            print(f"{name:13} {dtype:4} {objective:9.2f} {gradient:9.2f} {gradient / objective:8.1f} {beside}   "
                  + "".join(f"{ms:9.1f}" for ms in published), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
