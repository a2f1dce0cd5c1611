"""What library.py asks of matrices: cases as there."""

import numpy as np

RANDOM = np.random.Generator(np.random.Philox(23))


def normal(*shape):
    return RANDOM.normal(size=shape) * 2


# ---- Equations ----

SIZES = (1, 2, 3, 7)
SQUARE = {n: normal(2, 3, n, n) for n in SIZES}
SQUARE[3][0, 0] = [[0, 2, 1], [1, 0, 3], [2, 1, 0]]  # not without pivots
POSITIVE = {n: a @ a.swapaxes(-1, -2) + np.eye(n) for n, a in SQUARE.items()}
LARGE = normal(2, 70, 70)  # three blocks, and rows for the last
SINGULAR = np.array([[[1.0, 2], [2, 4]], [[0, 0], [0, 0]], [[0, 1], [1, 0]]])

LAST = np.array([[[0.0, 0, 0], [0, 2, 3], [0, 5, 7]], [[0, 0, 0], [0, 1, 2], [0, 2, 4]]])


def adjugate(a):
    """By the minors."""
    if a.ndim > 2:
        return np.stack([adjugate(m) for m in a])
    pairs = [[(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, j, 0), i, 1)) for j in range(len(a))] for i in range(len(a))]
    return np.array(pairs).reshape(a.shape)


def cholesky_change(a, v):
    """Of the lower L as symmetric a changes by v, of which the lower half counts (Murray 2016)"""
    l, v = np.linalg.cholesky(a), np.tril(v) + np.tril(v, -1).T
    p = np.linalg.solve(l, np.linalg.solve(l, v).T)
    return l @ (np.tril(p) - np.diag(np.diag(p)) / 2)


def triangle(a, lower, unit):
    t = np.tril(a, -unit) if lower else np.triu(a, unit)
    return t + unit * np.eye(a.shape[-1])


# Gradients of their own, differentiated once more: forward mode.
CHANGES = {
    "solve": [("jvp(solve(x0, x1), wrt = [x0, x1], tangent = [x2, x3])", [a, normal(n, 2), normal(n, n), normal(n, 2)], {},
               lambda a, b, v, u, p: np.linalg.solve(a, u - v @ np.linalg.solve(a, b))) for n, a in ((3, SQUARE[3][0, 0]), (70, LARGE[0]))],
    "inverse": [("jvp(inverse(x0), x0, x1)", [SQUARE[7][0, 0], normal(7, 7)], {}, lambda a, v, p: -np.linalg.inv(a) @ v @ np.linalg.inv(a))],
    "determinant": [("jvp(determinant(x0), x0, x1)", [a, normal(n, n)], {}, lambda a, v, p: np.linalg.det(a) * np.trace(np.linalg.solve(a, v)))
                    for n, a in ((3, SQUARE[3][0, 0]), (9, LARGE[0, :9, :9]))],
    "log_determinant": [("jvp(log_determinant(x0), x0, x1)", [LARGE[0], normal(70, 70)], {}, lambda a, v, p: np.trace(np.linalg.solve(a, v)))],
    "cholesky": [("jvp(cholesky(x0), x0, x1)", [a, normal(len(a), len(a))], {}, lambda a, v, p: cholesky_change(a, v))
                 for a in (POSITIVE[3][0, 0], LARGE[0] @ LARGE[0].T + np.eye(70))],
    "triangular_solve": [("jvp(triangular_solve(x0, x1), wrt = [x0, x1], tangent = [x2, x3])", [SQUARE[3][0, 0] + 9 * np.eye(3), normal(3, 4), normal(3, 3), normal(3, 4)], {},
                          lambda a, b, v, u, p: np.linalg.solve(np.tril(a), u - np.tril(v) @ np.linalg.solve(np.tril(a), b)))],
}

EQUATIONS = {
    "solve": [("solve(x0, x1)", [a, normal(2, 3, n, m)], {}, lambda a, b, p: np.linalg.solve(a, b)) for n, a in SQUARE.items() for m in (1, 4)]
    + [("solve(x0, x1)", [SQUARE[3][0, 1], normal(3, 2)], {}, lambda a, b, p: np.linalg.solve(a, b)),
       ("solve(x0, x1)", [LARGE, normal(2, 70, 3)], {}, lambda a, b, p: np.linalg.solve(a, b)),
       ("solve(x0, x1)", [SQUARE[2] * 1e-200, normal(2, 3, 2, 1)], {}, lambda a, b, p: np.linalg.solve(a, b)),
       ("solve(x0, x1)", [SINGULAR, np.ones((3, 2, 1))], {}, lambda a, b, p: np.array([[[np.nan]] * 2, [[np.nan]] * 2, [[1.0]] * 2]))],
    "inverse": [("inverse(x0)", [a], {}, lambda a, p: np.linalg.inv(a)) for a in [*SQUARE.values(), LARGE]],
    "lu": [("(f, at, place) = lu(x0); y = (tril(f, -1) + eye(%d, dtype = f64)) @ triu(f) - gather_nd(x0, unsqueeze(at, 2), batch = 1)" % a.shape[-1], [a], {},
            lambda a, p: np.zeros(a.shape)) for a in [SQUARE[1][0], SQUARE[7][0], LARGE]]
    + [("(f, at, place) = lu(x0); y = gather_elements(place, at, 1)", [LARGE], {}, lambda a, p: np.tile(np.arange(70), (2, 1))),
       ("(f, at, place) = lu(x0); y = reduce_max(abs(tril(f, -1))) <= 1.0", [LARGE], {}, lambda a, p: np.array(True))],
    "lu_solve": [("(f, at, place) = lu(x0); y = lu_solve(x0, x1, f, at, place, true)", [a, normal(2, n, 3)], {}, lambda a, b, p: np.linalg.solve(a.swapaxes(1, 2), b))
                 for n, a in [(3, SQUARE[3][0, :2]), (70, LARGE)]],
    "matrix_transpose": [("matrix_transpose(x0)", [normal(2, 3, 4)], {}, lambda a, p: a.swapaxes(1, 2))],
    "matrix_blocks": [(f"(p, blocks) = matrix_blocks({n}); y = i64(p) * 100 + blocks", [], {}, lambda p, y=y: np.array(y)) for n, y in ((1, 101), (32, 3201), (33, 1702), (70, 2403))],
    "matrix_widen": [("matrix_widen(x0, 3)", [np.ones((2, 2))], {}, lambda a, p: np.array([[[1.0, 1, 0], [1, 1, 0], [0, 0, 1]]]))],
    "substitute": [("substitute(x0, x1, true, false)", [SQUARE[3][0] + 9 * np.eye(3), normal(3, 3, 2)], {}, lambda a, b, p: np.linalg.solve(np.tril(a), b))],
    "permutation_sign": [("permutation_sign(x0, f64)", [np.array([[0, 1, 2], [2, 1, 0], [1, 2, 0]])], {}, lambda q, p: np.array([1.0, -1, 1]))],
    "determinant": [("determinant(x0)", [a], {}, lambda a, p: np.linalg.det(a)) for a in [*SQUARE.values(), SINGULAR, SQUARE[2][0, 0], LARGE / 8]]
    + [("determinant(x0)", [np.array([[np.nan, 1], [1, 0]])], {}, lambda a, p: np.array(np.nan))],
    "log_determinant": [("log_determinant(x0)", [a], {}, lambda a, p: np.linalg.slogdet(a)[1]) for a in [SQUARE[1], SQUARE[3], LARGE, LARGE * 1e-20]],
    "adjugate": [("adjugate(x0)", [a], {}, lambda a, p: adjugate(a)) for a in [*SQUARE.values(), SINGULAR, SQUARE[3][0, 0], np.diag([0.0, 1, 2])]],
    "adjugate_last": [("(x, y) = adjugate_last(x0, full(2, [2, 1, 1], i64))", [LAST], {}, lambda a, p: np.linalg.det(a[:, 1:, 1:]).reshape(2, 1, 1)),
                      ("(y, d) = adjugate_last(x0, full(2, [2, 1, 1], i64))", [LAST], {}, lambda a, p: np.pad(adjugate(a[:, 1:, 1:]), ((0, 0), (1, 0), (1, 0))))],
    "rounding": [("x0 * rounding(x0.dtype)", [np.ones(1)], {}, lambda a, p: np.array([np.finfo(float).eps]))],
    "cholesky": [("cholesky(x0)", [a], {}, lambda a, p: np.linalg.cholesky(a)) for a in [*POSITIVE.values(), LARGE @ LARGE.swapaxes(1, 2) + np.eye(70)]]
    + [("tril(cholesky(x0))[:, 0]", [np.array([[4.0, 7], [2, -9]])], {}, lambda a, p: np.array([2.0, 1])),
       ("cholesky(x0)[1:, 1:]", [np.array([[4.0, 7], [2, -9]])], {}, lambda a, p: np.array([[np.nan]]))],
    "triangular_solve": [(f"triangular_solve(x0, x1, {str(lower).lower()}, {str(unit).lower()})", [a / 4 + 2 * np.eye(n), normal(2, 3, n, 2)], {},
                          lambda a, b, p, lower=lower, unit=unit: np.linalg.solve(triangle(a, lower, unit), b))
                         for n, a in SQUARE.items() for lower in (True, False) for unit in (False, True)]
    + [(f"triangular_solve(x0, x1, {str(lower).lower()}, {str(unit).lower()})", [LARGE / 40 + 2 * np.eye(70), normal(2, 70, 5)], {},
        lambda a, b, p, lower=lower, unit=unit: np.linalg.solve(triangle(a, lower, unit), b)) for lower in (True, False) for unit in (False, True)],
}

for name, cases in CHANGES.items():
    EQUATIONS[name] += cases

# ---- Decompositions ----

TALL = {(m, n): normal(2, m, n) for m, n in ((1, 1), (3, 1), (5, 4), (9, 9), (40, 33))}
SHAPES = [x for a in TALL.values() for x in (a, a.swapaxes(1, 2))]
DEFICIENT = np.stack([normal(7, 2) @ normal(2, 5), np.zeros((7, 5)), 1e-200 * normal(7, 5), 1e200 * normal(7, 5)])
SYMMETRIC = [*POSITIVE.values(), np.tril(LARGE), np.zeros((2, 5, 5)), np.stack([np.eye(6), 1e-300 * np.eye(6)]), LARGE[:, :9, :9] * 1e200]


def eigenvalues(a, p):
    return np.linalg.eigvalsh(a)


def singular_values(a, p):
    return np.linalg.svd(a, compute_uv=False)


def zeros(a, p):
    return np.zeros(a.shape)


def size(a):
    """What rounding is beside."""
    return f"(reduce_max(abs({a})) + 1e-300)"


LOWER = "(tril(x0) + matrix_transpose(tril(x0, -1)))"
DECOMPOSITIONS = {
    "eigh": [("(y, v) = eigh(x0)", [a], {}, eigenvalues) for a in SYMMETRIC]
    + [(f"(w, v) = eigh(x0); y = ({LOWER} @ v - v * unsqueeze(w, -2)) / {size('x0')}", [a], {}, zeros) for a in SYMMETRIC]
    + [(f"(w, v) = eigh(x0); y = matrix_transpose(v) @ v - eye({a.shape[-1]}, dtype = f64)", [a], {}, zeros) for a in SYMMETRIC]
    + [("(y, v) = eigh(x0)", [np.array([[np.nan, 2], [2, 1]])], {}, lambda a, p: np.full(2, np.nan)),
       ("(y, v) = eigh(x0)", [np.zeros((3, 0, 0))], {}, lambda a, p: np.zeros((3, 0)))],
    "qr": [("(y, r) = qr(x0)", [a], {}, lambda a, p: np.linalg.qr(a)[0]) for a in SHAPES]
    + [("(q, y) = qr(x0)", [a], {}, lambda a, p: np.linalg.qr(a)[1]) for a in SHAPES]
    + [(f"(q, r) = qr(x0); y = (q @ r - x0) / {size('x0')}", [DEFICIENT], {}, zeros),
       ("(q, r) = qr(x0); y = matrix_transpose(q) @ q - eye(5, dtype = f64)", [DEFICIENT], {}, lambda a, p: np.zeros((4, 5, 5)))],
    "svd": [("(u, y, vt) = svd(x0)", [a], {}, singular_values) for a in [*SHAPES, DEFICIENT[:2]]]
    + [(f"(u, s, vt) = svd(x0); y = (u * unsqueeze(s, -2) @ vt - x0) / {size('x0')}", [a], {}, zeros) for a in [*SHAPES, DEFICIENT]]
    + [(f"(u, s, vt) = svd(x0); y = {side} - eye({min(a.shape[1:])}, dtype = f64)", [a], {}, lambda a, p: np.zeros((2, min(a.shape[1:]), min(a.shape[1:]))))
       for a in SHAPES for side in ("matrix_transpose(u) @ u", "vt @ matrix_transpose(vt)")],
    "pinv": [("pinv(x0)", [a], {}, lambda a, p: np.linalg.pinv(a)) for a in (*SHAPES[:6], DEFICIENT[:2])]
    + [("pinv(x0, 0.5)", [np.diag([1.0, 3, 2])], {}, lambda a, p: np.diag([0, 1 / 3, 1 / 2]))],
    "side": [("y = i64(side(x0))", [np.zeros((2, 3, 3))], {}, lambda a, p: np.array(3))],
    "largest_of": [("largest_of(x0)", [DEFICIENT[:2, :2, :2] * 0 + [[[1, -3], [2, 0]], [[0, 0], [0, 0]]]], {}, lambda a, p: np.array([[[3.0]], [[1]]]))],
    "recip_or_0": [("recip_or_0(x0)", [np.array([2.0, 0, -0.5])], {}, lambda x, p: np.array([0.5, 0, -2]))],
    "halves": [(f"y = f64(halves({n}))", [], {}, lambda p, y=y: np.array(y)) for n, y in ((4, [1.0, 1, -1, -1]), (5, [1.0, 1, 0, -1, -1]))],
    "next_round": [("next_round(x0, 1)", [np.arange(n) * 1.0 + np.zeros((2, 1))], {}, lambda x, p, y=y: np.array([y, y]) * 1.0)
                   for n, y in ((4, [0, 3, 1, 2]), (5, [4, 0, 1, 2, 3]))],
    "columns_in_order": [("columns_in_order(x0, x1)", [np.arange(6.0).reshape(1, 2, 3), np.array([[2, 0, 1]])], {}, lambda x, o, p: x[:, :, [2, 0, 1]])],
    "rotate_columns": [("rotate_columns(x0, x1, x2)", [np.array([[[1.0, 2], [3, 4]]]), np.array([[0.6, 0.6]]), np.array([[0.8, -0.8]])], {},
                        lambda x, c, s, p: x @ [[0.6, 0.8], [-0.8, 0.6]])],
    "jacobi_rotation": [("(c, s) = jacobi_rotation(x0, x1); y = c * s * (x0 - flip(x0, [-1])) + (c * c - s * s) * x1",
                         [normal(2, 4), np.array([[1.0, 2, 2, 1], [0, 1e-3, 1e-3, 0]])], {}, lambda d, o, p: np.zeros((2, 4)))],
}

# Their changes as a changes by v, from formulas of forward mode.


def over(x):
    return np.divide(1, x, out=np.zeros(x.shape), where=x != 0)


def eigh_change(a, v):
    w, u = np.linalg.eigh(a)
    p = u.T @ (np.tril(v) + np.tril(v, -1).T) @ u
    return (w, np.diag(p)), (u, u @ (over(w[None] - w[:, None]) * p))


def qr_change(a, v):
    q, r = np.linalg.qr(a)
    k = min(a.shape)
    upper = r[:, :k]
    x = q.T @ v[:, :k] @ np.linalg.inv(upper)
    turn = np.tril(x, -1) - np.tril(x, -1).T
    dq = q @ turn + (np.eye(len(q)) - q @ q.T) @ v[:, :k] @ np.linalg.inv(upper)
    return (q, dq), (r, np.hstack([(x - turn) @ upper, dq.T @ a[:, k:] + q.T @ v[:, k:]]))


def svd_change(a, v):
    u, s, wt = np.linalg.svd(a, full_matrices=False)
    w, p, f = wt.T, u.T @ v @ wt.T, over(s[None] ** 2 - s[:, None] ** 2)
    du = u @ (f * (p * s + (p * s).T)) + (v - u @ (u.T @ v)) @ w / s
    dw = w @ (f * (s[:, None] * p + (s[:, None] * p).T)) + (v.T - w @ (w.T @ v.T)) @ u / s
    return (u, du), (s, np.diag(p)), (wt, dw.T)


def total_change(change, vectors):
    """Of the sum of all results, each by a weight; those that have a sign are squared."""
    def of(a, v, *more):
        return np.array(sum(np.sum(w * (2 * x * dx if i in vectors else dx)) for i, ((x, dx), w) in enumerate(zip(change(a, v), more))))
    return of


def changes(name, change, vectors, a):
    """By the gradient, and by differentiating that once more."""
    parts = change(a, normal(*a.shape))
    weights = [normal(*x.shape) for x, _ in parts]
    names = ["u", "s", "t"][:len(parts)]
    total = " + ".join(f"reduce_sum({f'{n} * {n}' if i in vectors else n} * x{i + 2})" for i, n in enumerate(names))
    of = total_change(change, vectors)
    return [(f"({', '.join(names)}) = {name}(x0); y = {y.format(total)}", [a, normal(*a.shape), *weights], {}, lambda *x: of(*x[:-1]))
            for y in ("reduce_sum(grad({}, wrt = x0) * x1)", "jvp({}, x0, x1)")]


for a in (normal(1, 1), POSITIVE[3][0, 0], POSITIVE[7][0, 1]):
    DECOMPOSITIONS["eigh"] += changes("eigh", eigh_change, (1,), a)
for a in (normal(1, 1), normal(5, 3), normal(4, 4), normal(3, 6)):
    DECOMPOSITIONS["qr"] += changes("qr", qr_change, (), a)
    DECOMPOSITIONS["svd"] += changes("svd", svd_change, (0, 2), a)

CASES = {**EQUATIONS, **DECOMPOSITIONS}
# Built for targets, too.
BUILT = ["solve", "inverse", "lu", "determinant", "cholesky", "triangular_solve", "eigh", "qr", "svd"]
