"""What library.py asks of functions of arrays: cases as there."""

import numpy as np

from generators import unit

RANDOM = np.random.Generator(np.random.Philox(13))


def normal(*shape):
    return RANDOM.normal(size=shape) * 2


# ---- Kinds of numbers, truth ----

ODD = np.array([[0.0, -0.0, np.nan, np.inf, -np.inf], [1e308, -1e308, 5e-324, 1.0, -2.5]])
TRUTH = RANDOM.integers(0, 2, (3, 4, 5)) > 0
WIDE = np.array([-2**63, -2**31 - 1, -2**31, -32769, -129, -128, -1, 0, 127, 128, 255, 256, 32768, 2**31, 2**63 - 1])
BASES, POWERS = np.array([3, -7, -1, 2, 0, 0, 5, -1, 9, 2]), np.array([39, 22, 2**63 - 1, 64, 0, 7, 2**62, -3, -1, 63])
POWER = np.vectorize(lambda x, n: np.array(pow(int(x), int(n), 2**64), np.uint64).astype(np.int64) if n >= 0 else x if abs(x) == 1 else 0)
TARGETS = {"i64": np.int64, "i32": np.int32, "i16": np.int16, "i8": np.int8, "u64": np.uint64, "u32": np.uint32, "u16": np.uint16, "u8": np.uint8}
KINDS = {
    "isnan": [("isnan(x0)", [ODD], {}, lambda x, p: np.isnan(x)), ("isnan(x0)", [np.float32(np.nan)], {}, lambda x, p: True)],
    "isinf": [("isinf(x0)", [ODD], {}, lambda x, p: np.isinf(x)),
              ("isinf(x0, positive = false)", [ODD], {}, lambda x, p: np.isneginf(x)),
              ("isinf(x0, negative = false)", [ODD], {}, lambda x, p: np.isposinf(x)),
              ("isinf(x0, false, false)", [ODD], {}, lambda x, p: np.zeros(x.shape, bool))],
    "isfinite": [("isfinite(x0)", [ODD], {}, lambda x, p: np.isfinite(x))],
    "saturate": [(f"saturate(x0, {ours})", [x], {}, lambda x, p, t=theirs: np.array([min(max(int(v), np.iinfo(t).min), np.iinfo(t).max) for v in x], t))
                 for ours, theirs in TARGETS.items()
                 for x in (WIDE, WIDE[1:-1].astype(np.float64) + 0.5 * np.sign(WIDE[1:-1]), np.array([0, 255, 2**63 - 1, 2**63, 2**64 - 1], np.uint64),
                           np.array([-128, -1, 0, 127], np.int8), np.array([0, 200, 65535], np.uint16))],
    "integer_power": [("integer_power(x0, x1)", [BASES, POWERS], {}, lambda x, n, p: POWER(x, n)),
                      ("integer_power(x0, 3)", [BASES], {}, lambda x, p: x**3), ("integer_power(x0, x1)", [np.array(3), POWERS], {}, lambda x, n, p: POWER(x, n)),
                      ("integer_power(x0, x1)", [BASES[:0], POWERS[:0]], {}, lambda x, n, p: x),
                      ("integer_power(x0, x1)", [BASES.astype(np.uint64), np.abs(POWERS).astype(np.uint64)], {}, lambda x, n, p: POWER(x, n).astype(np.uint64))],
    "is_float": [(f"y = {d}({v}) if is_float({d}) else i64({v})", [], {}, lambda p, v=v: np.array(v)) for d, v in [("f64", 1.0), ("i32", 2)]],
    "is_unsigned": [(f"y = i64(1) if is_unsigned({d}) else i64(0)", [], {}, lambda p, v=v: np.array(v)) for d, v in [("u16", 1), ("i16", 0)]],
    "dtype_bits": [(f"y = i64(dtype_bits({d}))", [], {}, lambda p, v=v: np.array(v)) for d, v in [("u64", 64), ("i32", 32), ("u16", 16), ("i8", 8)]],
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

EDGES = [("0", 0), ("1", 1), ("[2, 0, 1]", [2, 0, 1]), ("[-1, 3, 0]", [-1, 3, 0])]
MODES = ("edge", "reflect", "symmetric", "wrap")


def padded(x, before, after, mode):
    """NumPy's pad, after what negative numbers cut."""
    before, after = (np.broadcast_to(v, x.ndim) for v in (before, after))
    x = x[tuple(slice(-min(b, 0), n + min(a, 0)) for b, a, n in zip(before, after, x.shape))]
    return np.pad(x, [(max(b, 0), max(a, 0)) for b, a in zip(before, after)], mode)


def border(x, count, axis, begins, mode):
    whole = np.pad(x, [((count, 0) if begins else (0, count)) if d == axis else (0, 0) for d in range(x.ndim)], mode)
    return np.take(whole, range(count) if begins else range(-count, 0), axis)


def shuffled(x, block):
    """PyTorch's pixel_shuffle, pixel by pixel."""
    n, c, h, w = x.shape
    y = np.zeros((n, c // block**2, h * block, w * block))
    for i in range(h * block):
        for j in range(w * block):
            y[:, :, i, j] = x[:, (i % block) * block + j % block::block * block, i // block, j // block]
    return y


def depth_first(x, block):
    """ONNX's DepthToSpace, pixel by pixel."""
    n, c, h, w = x.shape
    rest = c // block**2
    y = np.zeros((n, rest, h * block, w * block))
    for i in range(h * block):
        for j in range(w * block):
            from_ = ((i % block) * block + j % block) * rest
            y[:, :, i, j] = x[:, from_:from_ + rest, i // block, j // block]
    return y


BLOCKS = normal(2, 12, 3, 5)
ORDER = {
    "flip": [("flip(x0)", [CUBE], {}, lambda x, p: np.flip(x)), ("flip(x0, 1)", [CUBE], {}, lambda x, p: np.flip(x, 1)),
             ("flip(x0, [0, -1])", [CUBE], {}, lambda x, p: np.flip(x, (0, -1))), ("flip(x0)", [CUBE[:, :0]], {}, lambda x, p: x[:, :0]),
             ("flip(x0)", [np.array(3.0)], {}, lambda x, p: x)],
    "roll": [(f"roll(x0, {s}, {a})", [CUBE], {}, lambda x, p, s=s, a=a: np.roll(x, s, a))
             for s, a in [(1, 0), (-1, 1), (7, 2), (-12, -1), ([1, -2], [0, 1]), (0, 1), (4, 1)]]
            + [("roll(x0, 2, 1)", [CUBE[:, :0]], {}, lambda x, p: x), ("roll(x0, 1, 0)", [TRUTH], {}, lambda x, p: np.roll(x, 1, 0))],
    "tile": [(f"tile(x0, {t})", [CUBE], {}, lambda x, p, t=t: np.tile(x, t))
             for t in (1, 2, [2, 1, 3], [2, 3], [2, 1, 1, 3], [1, 0, 2])] + [("tile(x0, 3)", [np.array(2.0)], {}, lambda x, p: np.tile(x, 3))],
    "repeat": [(f"repeat(x0, {n}, {a})", [CUBE], {}, lambda x, p, n=n, a=a: np.repeat(x, n, a)) for n, a in [(2, 0), (3, 1), (1, -1), (0, 2)]],
    "pad_border": [(f'pad_border(x0, {n}, {d}, {str(begins).lower()}, "{mode}")', [CUBE], {},
                    lambda x, p, n=n, d=d, b=begins, m=mode: border(x, n, d, b, m))
                   for n, d in [(2, 0), (1, 1), (3, 2)] for begins in (True, False) for mode in MODES],
    "pad_mode": [(f'pad_mode(x0, {b}, {a}, "{mode}")', [CUBE], {}, lambda x, p, b=bv, a=av, m=mode: padded(x, b, a, m))
                 for b, bv in EDGES for a, av in EDGES[1:] for mode in MODES
                 if min(bv if isinstance(bv, list) else [0]) >= 0 and min(av if isinstance(av, list) else [0]) >= 0]
    + [(f'pad_mode(x0, [-1, 3, 0], [2, -1, 1], "{mode}")', [CUBE], {},
        lambda x, p, m=mode: padded(x, [-1, 3, 0], [2, -1, 1], m)) for mode in ("edge",)]
    + [(f'pad_mode(x0, [9, 0, 11], 7, "{mode}")', [CUBE], {}, lambda x, p, m=mode: padded(x, [9, 0, 11], 7, m)) for mode in MODES]
    + [(f'pad_mode(x0, 2, 1, "{mode}")', [CUBE[:1, :, :1]], {}, lambda x, p, m=mode: padded(x, 2, 1, m)) for mode in MODES],
    "depth_to_space": [("depth_to_space(x0, 2)", [BLOCKS], {}, lambda x, p: depth_first(x, 2)),
                       ('depth_to_space(x0, 2, "CRD")', [BLOCKS], {}, lambda x, p: shuffled(x, 2)),
                       ("depth_to_space(x0, 1)", [BLOCKS], {}, lambda x, p: x)],
    "space_to_depth": [("space_to_depth(x0, 2)", [depth_first(BLOCKS, 2)], {}, lambda x, p: BLOCKS),
                       ('space_to_depth(x0, 2, "CRD")', [shuffled(BLOCKS, 2)], {}, lambda x, p: BLOCKS)],
}

# ---- Diagonals and ramps ----


def diagonal_matrix(x, k):
    return np.array([np.diag(row, k) for row in x.reshape(-1, x.shape[-1])]).reshape(x.shape[:-1] + (x.shape[-1] + abs(k),) * 2)


WIDER = normal(2, 3, 5)
SHIFTS = (0, 1, -1, 2, -2, 4, 9, -9)
INDEX = np.array([[0, 3, -1], [2, -4, 1]])


def hot(index, depth, axis, on=1.0, off=0.0):
    index = np.where(index < 0, index + depth, index)
    return np.moveaxis(np.where(index[..., None] == np.arange(depth), on, off), -1, axis)


DIAGONALS = {
    "arange": [(f"arange({a}, {b}, {s})", [], {}, lambda p, a=a, b=b, s=s: np.arange(a, b, s)) for a, b, s in [(0, 5, 1), (3, 20, 4), (7, -3, -2), (2, 2, 1), (5, 1, 1)]]
    + [("arange(0.5, 2.0, 0.25, f64)", [], {}, lambda p: np.arange(0.5, 2.0, 0.25))],
    "ramp": [("ramp(4, 1, 3)", [], {}, lambda p: np.arange(4).reshape(1, 4, 1))],
    "off_diagonal": [("off_diagonal(3, 5)", [], {}, lambda p: np.arange(5) - np.arange(3)[:, None])],
    "matrix_shape": [("(r, c) = matrix_shape(x0)\n    y = full(r * 10 + c, [2], i64)", [WIDER], {}, lambda x, p: np.full(2, x.shape[-2] * 10 + x.shape[-1]))],
    "triu": [(f"triu(x0, {k})", [WIDER], {}, lambda x, p, k=k: np.triu(x, k)) for k in SHIFTS] + [("triu(x0)", [TRUTH], {}, lambda x, p: np.triu(x))],
    "tril": [(f"tril(x0, {k})", [WIDER], {}, lambda x, p, k=k: np.tril(x, k)) for k in SHIFTS]
    + [("tril(x0)", [WIDER[:, :0]], {}, lambda x, p: x), ("tril(x0, x1)", [WIDER, np.array(1)], {}, lambda x, k, p: np.tril(x, 1))],
    "eye": [("eye(3, dtype = f64)", [], {}, lambda p: np.eye(3)), ("eye(3, 5, k = 1, dtype = i64)", [], {}, lambda p: np.eye(3, 5, 1)),
            ("eye(4, 2, -2, bool)", [], {}, lambda p: np.eye(4, 2, -2) != 0)],
    "diagonal": [(f"diagonal(x0, {k})", [x], {}, lambda x, p, k=k: np.diagonal(x, k, -2, -1)) for k in (0, 1, -1, 2, -2, 4, -4)
                 for x in (WIDER, normal(5, 3)) if abs(k) < min(x.shape[-2:]) or (k > 0 and k < x.shape[-1]) or (k < 0 and -k < x.shape[-2])],
    "diagonal_matrix": [(f"diagonal_matrix(x0, {k})", [WIDER], {}, lambda x, p, k=k: diagonal_matrix(x, k)) for k in (0, 1, -1, 3, -2)],
    "one_hot": [(f"one_hot(x0, 4, axis = {a})", [INDEX], {}, lambda x, p, a=a: hot(x, 4, a)) for a in (0, 1, 2, -1, -2)]
    + [("one_hot(x0, 3)", [INDEX], {}, lambda x, p: hot(x, 3, -1)), ("one_hot(x0, 2)", [np.array(1)], {}, lambda x, p: hot(x, 2, -1)),
       ("one_hot(x0, 4, 0, x1, x2)", [INDEX, np.array(5.0), np.array(-1.0)], {}, lambda x, on, off, p: hot(x, 4, 0, on, off))],
}

# ---- Elements at computed positions ----

TABLE = normal(4, 5, 6)
PICKS = {axis: RANDOM.integers(-n, n, np.minimum((3, 5, 4), 3 if axis else (9, 5, 6))) for axis, n in enumerate(TABLE.shape)}
MERGES = {"set": lambda x, u: u, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def elements(x, index, axis):
    """The position in x of each element of the index."""
    for at in np.ndindex(index.shape):
        where = list(at)
        where[axis] = index[at] % x.shape[axis]
        yield at, tuple(where)


def picked(x, index, axis):
    y = np.zeros(index.shape)
    for at, where in elements(x, index, axis):
        y[at] = x[where]
    return y


def placed(x, index, update, axis, mode):
    y = x.copy()
    for at, where in elements(x, index, axis):
        y[where] = MERGES[mode](y[where], update[at])
    return y


def picked_nd(x, index, batch=0):
    y = np.zeros(index.shape[:-1] + x.shape[batch + index.shape[-1]:])
    for at in np.ndindex(index.shape[:-1]):
        y[at] = x[at[:batch] + tuple(index[at])]
    return y


def placed_nd(x, index, update, mode):
    y = x.copy()
    for at in np.ndindex(index.shape[:-1]):
        where = tuple(index[at])
        y[where] = MERGES[mode](y[where], update[at])
    return y


def filled(part, shape):
    """What there is, and zeros behind it, along all dimensions."""
    y = np.zeros(shape, part.dtype)
    y[tuple(slice(0, n) for n in part.shape)] = part
    return y


LISTS = {k: RANDOM.integers(-4, 4, (3, 2, k)) for k in (1, 2, 3)}
BATCHED = RANDOM.integers(-4, 4, (4, 7, 2))
KEEP = np.array([True, False, True, True])
POSITIONS = {
    "gather_elements": [(f"gather_elements(x0, x1, {a})", [TABLE, i], {}, lambda x, i, p, a=a: picked(x, i, a)) for a, i in PICKS.items()]
    + [("gather_elements(x0, x1, -1)", [TABLE, PICKS[2]], {}, lambda x, i, p: picked(x, i, 2)),
       ("gather_elements(x0, x1)", [TABLE[:, 0, 0], np.array([], np.int32)], {}, lambda x, i, p: np.zeros(0))],
    "scatter_elements": [(f'scatter_elements(x0, x1, x2, {a}, "{m}")', [TABLE, i, normal(*i.shape)], {},
                          lambda x, i, u, p, a=a, m=m: placed(x, i, u, a, m)) for a, i in PICKS.items() for m in MERGES],
    "gather_nd": [("gather_nd(x0, x1)", [TABLE, i], {}, lambda x, i, p: picked_nd(x, i)) for i in LISTS.values()]
    + [("gather_nd(x0, x1, batch = 1)", [TABLE, BATCHED], {}, lambda x, i, p: picked_nd(x, i, 1)),
       ("gather_nd(x0, x1, 2)", [TABLE, RANDOM.integers(-6, 6, (4, 5, 1))], {}, lambda x, i, p: picked_nd(x, i, 2)),
       ("gather_nd(x0, x1)", [TABLE, LISTS[1][:0].astype(np.int32)], {}, lambda x, i, p: picked_nd(x, i))],
    "scatter_nd": [(f'scatter_nd(x0, x1, x2, "{m}")', [TABLE, i, normal(3, 2, *TABLE.shape[k:])], {},
                    lambda x, i, u, p, m=m: placed_nd(x, i, u, m)) for k, i in LISTS.items() for m in MERGES],
    "scatter_by": [(f'scatter_by(x0, x1, x2, "{m}")', [TABLE, np.array([1, 1, -1]), normal(3, 5, 6)], {},
                    lambda x, i, u, p, m=m: placed_nd(x, i[:, None], u, m)) for m in MERGES],
    "element_positions": [("element_positions(x0, [4, 5, 6], 1)", [PICKS[1]], {}, lambda i, p:
                           np.ravel_multi_index((np.arange(3)[:, None, None], i % 5, np.arange(3)), (4, 5, 6)))],
    "slice_positions": [("slice_positions(x0, [4, 5, 6])", [LISTS[2]], {}, lambda i, p: i[..., 0] % 4 * 5 + i[..., 1] % 5)],
    "positions": [("(y, n) = positions(x0)", [KEEP], {}, lambda m, p: np.array([0, 2, 3, 3])),
                  ("(y, n) = positions(x0, 2)", [KEEP], {}, lambda m, p: np.array([0, 2])),
                  ("(at, y) = positions(x0, 2)", [KEEP], {}, lambda m, p: np.array(2)),
                  ("(y, n) = positions(x0)", [KEEP[:0]], {}, lambda m, p: np.zeros(0))],
    "compress": [("(y, n) = compress(x0, x1, 0)", [TABLE, KEEP], {}, lambda x, m, p: filled(np.compress(m, x, 0), x.shape)),
                 ("(y, n) = compress(x0, x1, -1)", [TABLE, KEEP], {}, lambda x, m, p: filled(np.compress(m, x, -1), (4, 5, 4))),
                 ("(y, n) = compress(x0, x1, 1, bound = 2)", [TABLE, KEEP], {}, lambda x, m, p: np.compress(m, x, 1)[:, :2]),
                 ("(y, n) = compress(x0, x1)", [TABLE, KEEP], {}, lambda x, m, p: filled(np.compress(m, x), 4)),
                 ("(at, y) = compress(x0, x1, 0)", [TABLE, KEEP], {}, lambda x, m, p: np.array(3))],
    "nonzero": [("(y, n) = nonzero(x0)", [TIES], {}, lambda x, p: filled(np.array(np.nonzero(x)), (3, 60))),
                ("(y, n) = nonzero(x0, 5)", [TRUTH], {}, lambda x, p: np.array(np.nonzero(x))[:, :5]),
                ("(at, y) = nonzero(x0)", [TRUTH], {}, lambda x, p: np.array(np.count_nonzero(x)))],
}

REPEATED = np.array([3, 1, 3, 2, 1, 3], np.int64)
SLICES = np.array([[2, 1, 2, 0], [5, 5, 5, 7], [1, 0, 1, 0]], np.int64)


def unique(x, axis, result, is_sorted=True):
    """The wanted one of y, first, which, times and count, with zeros behind the count."""
    y, first, which, times = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    by = np.arange(len(first)) if is_sorted else np.argsort(first)
    n = x.shape[axis]
    pad = lambda a: np.concatenate([a, np.zeros(n - len(a), np.int64)])
    whole = [filled(np.take(y, by, axis), tuple(n if d == axis else e for d, e in enumerate(x.shape))), pad(first[by]),
             np.argsort(by)[which.reshape(-1)], pad(times[by]), np.array(len(first))]
    return whole[result]


UNIQUE = {
    "unique": [(f"({', '.join('y' if i == r else 'abcde'[i] for i in range(5))}) = unique(x0{axis_text}{order_text})", [x], {},
                lambda x, p, a=axis, r=r, o=is_sorted: unique(x, a, r, o))
               for x, axis, axis_text in ((REPEATED, 0, ""), (SLICES, 1, ", axis = 1"), (SLICES, 0, ""), (SLICES[:1], 0, ""))
               for is_sorted, order_text in ((True, ""), (False, ", sorted = false")) for r in range(5)],
    "row_order": [("row_order(x0)", [x], {}, lambda x, p: np.lexsort(x.T[::-1])) for x in (SLICES, SLICES.T.copy(), SLICES[[0, 0, 2, 0]])],
}

# ---- Sorting ----

MIXED = np.array([[2.0, np.nan, -np.inf, 1.0, np.nan, 2.0, np.inf, -0.0, 0.0], [0, 0, 0, 0, 0, 0, 0, 0, 0], np.arange(9.0, 0, -1)])
LONG = np.floor(normal(2, 150) * 9)
LONG[1, 40] = np.nan


def order(x, axis=-1, largest=False):
    """Stable; NaN as the largest."""
    if not largest:
        return np.argsort(x, axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)


SORTED = [(x, a) for x in (CUBE, TIES) for a in (0, 1, -1)] + [(MIXED, 1), (LONG, 1), (LONG, 0), (TIES[:, :0], 1), (np.array([3.0]), 0),
                                                              (RANDOM.integers(-3, 3, (130,)), 0), (RANDOM.integers(0, 9, (7, 3)).astype(np.uint8), 0)]
SORTING = {
    "argsort": [(f"argsort(x0, {a}, {str(g).lower()})", [x], {}, lambda x, p, a=a, g=g: order(x, a, g)) for x, a in SORTED for g in (False, True)],
    "sort": [(f"sort(x0, {a}, {str(g).lower()})", [x], {}, lambda x, p, a=a, g=g: np.take_along_axis(x, order(x, a, g), a))
             for x, a in SORTED for g in (False, True)],
    "top_k": [(f"({r}) = top_k(x0, 3, {a}, {str(g).lower()})", [x], {}, lambda x, p, a=a, g=g, i=i: np.take(
        (np.take_along_axis(x, order(x, a, g), a), order(x, a, g))[i], range(3), a)) for x, a in SORTED[:8] for g in (True, False)
        for i, r in enumerate(("y, i", "v, y"))] + [("(y, i) = top_k(x0, 0)", [CUBE], {}, lambda x, p: x[..., :0])],
}

# ---- Sums of products ----


def words(names):
    return "[" + ", ".join(f'"{n}"' for n in names) + "]"


def einsum_case(equation, *tensors):
    left, result = equation.split("->")
    given = ", ".join(f"x{i}" for i in range(len(tensors)))
    call = f"einsum([{given}], [{', '.join(map(words, left.split(',')))}], {words(result)})"
    return call, list(tensors), {}, lambda *given: np.einsum(equation, *given[:-1])


A, B, C, S = normal(3, 4), normal(4, 5), normal(2, 3, 4), normal(3, 3)
PRODUCTS = {
    "einsum": [einsum_case(*case) for case in [
        ("ij,jk->ik", A, B), ("ij,jk->ki", A, B), ("ij->ji", A), ("ij->", A), ("ij->j", A), ("bij,jk->bik", C, B), ("bij,bik->bjk", C, normal(2, 3, 6)),
        ("ij,ij->ij", A, A), ("ij,ij->", A, A), ("i,j->ij", A[0], B[0]), ("ii->i", S), ("ii->", S), ("bii->b", normal(2, 3, 3)), ("ii,ij->j", S, A),
        ("ij,jk,kl->il", A, B, normal(5, 2)), ("ij,jk,bij->bk", A, B, C), ("ij,kl->ijkl", A, B), ("bij,b->ij", C, normal(2)), ("iij,ij->i", normal(3, 3, 4), A),
        ("ij,jk->ik", A[:0], B), ("abc,acd->bd", C, normal(2, 4, 3)), ("i,i->", A[0], A[1])]],
    "index_of": [('i64(index_of("b", ["a", "b", "b"]))', [], {}, lambda p: np.array(1)), ('i64(index_of(9, [1, 2]))', [], {}, lambda p: np.array(-1))],
    "items_of": [("y = i64(items_of([1, 2, 3, 4], [[2, 3, 4], [1, 3, 4]], [[4]])[0])", [], {}, lambda p: np.array(3))],
    "distinct": [('y = i64(len(distinct(["a", "b", "a", "a"])))', [], {}, lambda p: np.array(2))],
    "diagonals": [('diagonals(x0, ["a", "b", "a"])', [normal(3, 2, 3)], {}, lambda x, p: np.einsum("aba->ba", x))],
    "named_transpose": [('named_transpose(x0, ["a", "b", "c"], ["c", "a", "b"])', [C], {}, lambda x, p: x.transpose(2, 0, 1))],
    "named_extents": [('y = i64(named_extents(x0, ["a", "b", "c"], ["c"])[0])', [C], {}, lambda x, p: np.array(4))],
    "named_sum": [('named_sum(x0, ["a", "b", "c"], ["b"])', [C], {}, lambda x, p: x.sum((0, 2)))],
    "product_names": [('y = i64(len(product_names(["a", "b"], ["b", "c"], ["a", "c"])))', [], {}, lambda p: np.array(2))],
    "named_product": [('named_product(x0, x1, ["a", "b"], ["b", "c"], ["a", "c"])', [A, B], {}, lambda x, y, p: x @ y)],
}

# ---- Quantiles, places in what is sorted ----

GAPS, TIES, LATE = normal(3, 5, 4), np.array([-1.0, 0.0, 0.0, 2.0, 2.0, 2.0, 7.0]), np.array([0.5, np.nan, -np.inf, np.inf, 2.0])
GAPS_NAN = GAPS.copy()
GAPS_NAN[1, 2, 3] = np.nan
WHOLE = RANDOM.integers(-9, 9, (2, 6))
SOUGHT = np.concatenate([TIES, normal(5), [np.nan, -np.inf, np.inf]]).reshape(3, 5)
ROWS = np.sort(normal(3, 9), -1)
PLACES = {
    "quantile": [(f"quantile(x0, {list(q) if q.ndim else q}, {axis})", [x], {}, lambda x, p, q=q, axis=axis: np.quantile(x, q, axis=axis))
                 for x in (GAPS, GAPS_NAN) for axis in (-1, 0, 1) for q in (np.array(0.3), np.array([0.0, 0.25, 0.5, 1.0]), np.array([0.99]))]
                + [("y = f64(quantile(x0, 0.25))", [WHOLE], {}, lambda x, p: np.quantile(x, 0.25, axis=-1)), ("quantile(x0, 0.7)", [GAPS[:, :, :1]], {}, lambda x, p: x[..., 0])],
    "median": [("median(x0)", [GAPS], {}, lambda x, p: np.median(x, -1)), ("median(x0, 1)", [GAPS_NAN], {}, lambda x, p: np.median(x, 1))],
    "searchsorted": [(f"searchsorted(x0, x1{right})", [x, v], {}, lambda x, v, p, side=side: np.searchsorted(x, v, side))
                     for right, side in (("", "left"), (", true", "right"), (", right = true", "right"))
                     for x, v in ((TIES, SOUGHT), (TIES[:1], SOUGHT), (np.array([0.5, 2.0, np.inf, np.nan, np.nan]), LATE), (np.sort(WHOLE[0]), WHOLE),
                                  (np.arange(64.0), normal(40) * 20))]
                    + [("searchsorted([-0.5, 0.5, 2.0], x0)", [SOUGHT], {}, lambda v, p: np.searchsorted([-0.5, 0.5, 2.0], v)),
                       ("searchsorted(x0, 2.0)", [TIES], {}, lambda x, p: np.searchsorted(x, 2.0))]
                    + [("searchsorted(x0, x1)", [ROWS, normal(3, 4)], {}, lambda x, v, p: np.stack([np.searchsorted(a, b) for a, b in zip(x, v)]))],
    "random_permutation": [("random_permutation(x0, 50)", [np.array(7)], {}, lambda k, p: np.argsort(unit(7, 50)[:50].astype(np.float32), kind="stable")),
                           ("sort(random_permutation(x0, 33))", [np.array(-2)], {}, lambda k, p: np.arange(33))],
}

CORNERS = np.array([-3.0, -1, 0.5, 0.5, 2, 7])
MADE = {
    "linspace": [(f"y = linspace({a}, {b}, {n}, f64)", [], {}, lambda p, a=a, b=b, n=n: np.linspace(a, b, n)) for a, b, n in ((0, 1, 11), (3.5, -2, 6), (2, 9, 1), (0, 1, 0), (-1, 1, 2))]
    + [("y = f64(linspace(0, 1, 7))", [], {}, lambda p: np.linspace(0, 1, 7).astype(np.float32).astype(float)),
       ("y = linspace(0.1, 0.7, 50, f64)[-1]", [], {}, lambda p: np.array(0.7))],
    "trace": [(f"trace(x0, {k})", [normal(2, 4, 5)], {}, lambda x, p, k=k: np.trace(x, k, -2, -1)) for k in (0, 1, -2)],
    "outer": [("outer(x0, x1)", [normal(4), normal(5)], {}, lambda x, y, p: np.outer(x, y)),
              ("outer(x0, x1)", [normal(2, 4), normal(2, 5)], {}, lambda x, y, p: np.einsum("bi,bj->bij", x, y))],
    "interp": [("interp(x0, x1, x2)", [x, CORNERS[[0, 1, 2, 4, 5]], v], {}, lambda x, at, v, p: np.interp(x, at, v))
               for v in (normal(5),) for x in (normal(4, 6) * 3, np.array([-1.0, 7, 2, np.inf, -np.inf, np.nan]))]
    + [("interp(x0, x1, x2)", [normal(6), np.array([2.0]), np.array([5.0])], {}, lambda x, at, v, p: np.full(6, 5.0)),
       ("grad(reduce_sum(interp(x0, x1, x2)), wrt = x0)", [np.array([-5.0, -2, 0.6, 6, 9, 0.5]), CORNERS[[0, 1, 2, 4, 5]], np.arange(5) ** 2.0], {},
        lambda x, at, v, p: np.array([0, 0.5, 5 / 1.5, 7 / 5, 0, 5 / 1.5]))],
}

EDGES = np.array([2, 0, 2, 4, 0, 2, 4])


def by_segment(x, reduce, empty=0.0):
    y = np.full((5, *x.shape[1:]), empty)
    for i in set(EDGES):
        y[i] = reduce(x[EDGES == i], axis=0)
    return y


def segment_shares(x):
    y = np.zeros(x.shape)
    for i in set(EDGES):
        e = np.exp(x[EDGES == i] - x[EDGES == i].max(0))
        y[EDGES == i] = e / e.sum(0)
    return y


SEGMENTS = {
    "segment_sum": [("segment_sum(x0, x1, 5)", [x, EDGES], {}, lambda x, e, p: by_segment(x, np.sum)) for x in (normal(7, 3), normal(7), normal(7, 2, 3))],
    "segment_mean": [("segment_mean(x0, x1, 5)", [x, EDGES], {}, lambda x, e, p: by_segment(x, np.mean)) for x in (normal(7, 3), normal(7))],
    "segment_max": [("segment_max(x0, x1, 5)", [normal(7, 3), EDGES], {}, lambda x, e, p: by_segment(x, np.max)),
                    ("segment_max(x0, i32(x1), 5, empty = -2.0)", [normal(7), EDGES], {}, lambda x, e, p: by_segment(x, np.max, -2.0))],
    "segment_softmax": [("segment_softmax(x0, x1, 5)", [x, EDGES], {}, lambda x, e, p: segment_shares(x)) for x in (normal(7) * 400, normal(7, 3))],
}
SEGMENTS["segment_mean"].append(("y = f64(segment_mean(cast(x0, to = bf16), x1, 1))", [np.full(2000, 0.75), np.zeros(2000, int)], {}, lambda x, e, p: np.array([0.75])))
SEGMENTS["segment_softmax"].append(("y = f64(segment_softmax(cast(x0, to = f16), x1, 1))", [np.full(4096, 0.75), np.zeros(4096, int)], {}, lambda x, e, p: np.full(4096, 1 / 4096)))
SEGMENTS["segment_max"] += [("segment_max(x0, x1, 5)", [np.arange(7) * 3 - 9, EDGES], {}, lambda x, e, p: by_segment(x, np.max).astype(int)),
                            ("segment_max(x0, x1, 5, empty = 1.5)", [np.full(7, -np.inf), EDGES], {}, lambda x, e, p: by_segment(x, np.max, 1.5))]
GRIDS = [np.arange(3.0), normal(2), normal(4)]
MADE.update({
    "kron": [("kron(x0, x1)", [normal(2, 3), normal(4, 2)], {}, lambda a, b, p: np.kron(a, b))],
    "meshgrid": [(f"y = meshgrid([x0, x1, x2])[{i}]", GRIDS, {}, lambda a, b, c, p, i=i: np.meshgrid(a, b, c, indexing="ij")[i]) for i in range(3)]
    + [("y = meshgrid([x0])[0]", [GRIDS[1]], {}, lambda a, p: a)],
    "distances": [("distances(x0, x1)", [x, y], {}, lambda x, y, p: np.sqrt(((x[..., :, None, :] - y[..., None, :, :]) ** 2).sum(-1)))
                  for x, y in ((normal(4, 3), normal(5, 3)), (normal(2, 4, 3), normal(2, 5, 3)))]
    + [("distances(x0, x1, p = 1)", [normal(4, 3), normal(5, 3)], {}, lambda x, y, p: np.abs(x[:, None] - y).sum(-1)),
       ("grad(reduce_sum(distances(x0, x0)), wrt = x0)", [np.zeros((3, 2))], {}, lambda x, p: x)],
})

CASES = {**SEGMENTS, **MADE, **KINDS, **SUMS, **LAST, **ORDER, **DIAGONALS, **POSITIONS, **UNIQUE, **SORTING, **PRODUCTS, **PLACES}
# Built for targets, too: those that more than one kernel makes.
BUILT = ["gather_elements", "gather_nd", "tile", "roll", "pad_mode", "scatter_elements", "scatter_nd", "compress",
         "argsort", "sort", "top_k", "einsum", "quantile", "searchsorted", "interp"]
