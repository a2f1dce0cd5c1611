"""Collects cases: an op applied to tensors, and what NumPy says of it."""

import zlib

import numpy as np

from tensors import NUMPY, Exact, Tensor, is_float

EXACT = Exact()


class Case:
    def __init__(self, op, inputs, outputs, tolerance, body, prelude):
        self.op, self.inputs, self.outputs, self.tolerance = op, inputs, outputs, tolerance
        self.body, self.prelude = body, prelude
        self.empty = any(t.values.size == 0 for t in inputs + outputs)


class Cases:
    def __init__(self):
        self.list = []

    def add(self, op, inputs, want, attrs="", tolerance=EXACT, body=None, prelude=""):
        """`want` is a tensor or a list of them.  `body` is the statement when it is not `r0 = op(a, b, attrs)`; it
        writes {x[0]} for an operand, {r[0]} for a result and {id} for a name of its own."""
        want = want if isinstance(want, list) else [want]
        if body is None:
            operands = [f"{{x[{i}]}}" for i in range(len(inputs))] + ([attrs] if attrs else [])
            results = ", ".join(f"{{r[{i}]}}" for i in range(len(want)))
            results = f"({results})" if len(want) > 1 else results
            body = f"{results} = {op}({', '.join(operands)})"
        self.list.append(Case(op, inputs, want, tolerance, body, prelude))


def lst(values):
    """As attributes have lists."""
    return "[" + ", ".join(str(v) for v in values) + "]"


def generator(*key):
    """Random numbers that depend on the case alone, not on the order of cases."""
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


def numbers(dtype, shape, *key, low=-4.0, high=4.0):
    """Random numbers in [low, high), integers where the dtype asks for them."""
    draw = generator(dtype, shape, *key)
    if is_float(dtype):
        return Tensor(dtype, draw.uniform(low, high, shape))
    if dtype == "bool":
        return Tensor(dtype, draw.integers(0, 2, shape))
    info = np.iinfo(NUMPY[dtype])
    least = max(int(low * 5), info.min)
    return Tensor(dtype, draw.integers(least, max(int(high * 5), least + 20), shape))
