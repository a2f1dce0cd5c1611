"""What library.py asks of functions of arrays: cases as there."""

import numpy as np

RANDOM = np.random.Generator(np.random.Philox(13))


def normal(*shape):
    return RANDOM.normal(size=shape) * 2


# ---- Kinds of numbers, truth ----

ODD = np.array([[0.0, -0.0, np.nan, np.inf, -np.inf], [1e308, -1e308, 5e-324, 1.0, -2.5]])
TRUTH = RANDOM.integers(0, 2, (3, 4, 5)) > 0
WIDE = np.array([-2**63, -2**31 - 1, -2**31, -32769, -129, -128, -1, 0, 127, 128, 255, 256, 32768, 2**31, 2**63 - 1])
KINDS = {
    "isnan": [("isnan(x0)", [ODD], {}, lambda x, p: np.isnan(x)), ("isnan(x0)", [np.float32(np.nan)], {}, lambda x, p: True)],
    "isinf": [("isinf(x0)", [ODD], {}, lambda x, p: np.isinf(x)),
              ("isinf(x0, positive = false)", [ODD], {}, lambda x, p: np.isneginf(x)),
              ("isinf(x0, negative = false)", [ODD], {}, lambda x, p: np.isposinf(x)),
              ("isinf(x0, false, false)", [ODD], {}, lambda x, p: np.zeros(x.shape, bool))],
    "isfinite": [("isfinite(x0)", [ODD], {}, lambda x, p: np.isfinite(x))],
    "saturate": [(f"saturate(x0, {ours})", [x], {}, lambda x, p, t=theirs: np.clip(x, np.iinfo(t).min, np.iinfo(t).max).astype(t))
                 for ours, theirs in [("i64", np.int64), ("i32", np.int32), ("i16", np.int16), ("i8", np.int8), ("u8", np.uint8)]
                 for x in (WIDE, WIDE[1:-1].astype(np.float64) + 0.5 * np.sign(WIDE[1:-1]))],
    "any": [("any(x0)", [TRUTH], {}, lambda x, p: x.any()), ("any(x0, -1)", [TRUTH], {}, lambda x, p: x.any(-1)),
            ("any(x0, [0, 2], keep = true)", [TRUTH], {}, lambda x, p: x.any((0, 2), keepdims=True)),
            ("any(x0, 1)", [TRUTH[:, :0]], {}, lambda x, p: x.any(1))],
    "all": [("all(x0)", [TRUTH], {}, lambda x, p: x.all()), ("all(x0, 0)", [TRUTH], {}, lambda x, p: x.all(0)),
            ("all(x0, [0, 2], keep = true)", [TRUTH], {}, lambda x, p: x.all((0, 2), keepdims=True)),
            ("all(x0, 1)", [TRUTH[:, :0]], {}, lambda x, p: x.all(1))],
}

# ---- Sums ----

CUBE = normal(3, 4, 5)
SUMS = {
    "l1_norm": [("l1_norm(x0)", [CUBE], {}, lambda x, p: np.abs(x).sum()),
                ("l1_norm(x0, [0, -1], keep = true)", [CUBE], {}, lambda x, p: np.abs(x).sum((0, 2), keepdims=True))],
    "sum_square": [("sum_square(x0)", [CUBE], {}, lambda x, p: (x * x).sum()),
                   ("sum_square(x0, 1)", [CUBE], {}, lambda x, p: (x * x).sum(1))],
    "log_sum": [("log_sum(x0)", [np.abs(CUBE)], {}, lambda x, p: np.log(x.sum())),
                ("log_sum(x0, 1, true)", [np.abs(CUBE)], {}, lambda x, p: np.log(x.sum(1, keepdims=True)))],
}

TIES = RANDOM.integers(0, 4, (3, 4, 5)).astype(np.float64)


def last(choose, x, axis):
    return x.shape[axis] - 1 - choose(np.flip(x, axis), axis=axis)


LAST = {f"{name}_last": [(f"{name}_last(x0, {axis})", [TIES], {}, lambda x, p, f=choose, a=axis: last(f, x, a)) for axis in (0, 1, -1)]
        + [(f"{name}_last(x0, 1, keep = true)", [TIES], {}, lambda x, p, f=choose: last(f, x, 1)[:, None])]
        for name, choose in (("argmax", np.argmax), ("argmin", np.argmin))}

# ---- Order of elements ----

ORDER = {
    "flip": [("flip(x0)", [CUBE], {}, lambda x, p: np.flip(x)), ("flip(x0, 1)", [CUBE], {}, lambda x, p: np.flip(x, 1)),
             ("flip(x0, [0, -1])", [CUBE], {}, lambda x, p: np.flip(x, (0, -1))), ("flip(x0)", [CUBE[:, :0]], {}, lambda x, p: x[:, :0]),
             ("flip(x0)", [np.array(3.0)], {}, lambda x, p: x)],
}

CASES = {**KINDS, **SUMS, **LAST, **ORDER}
# Built for targets, too: those that more than one kernel makes.
BUILT = []
