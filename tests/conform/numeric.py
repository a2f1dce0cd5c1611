"""What library.py asks of spectra, boxes, and draws of classes: cases as there."""

import math

import numpy as np

from generators import unit

RANDOM = np.random.Generator(np.random.Philox(19))


def normal(*shape):
    return RANDOM.normal(size=shape) * 2


# ---- Draws ----

CHANCES, LOGITS = RANDOM.uniform(0, 1, (3, 7)), normal(4, 5)


def uniform(key, shape):
    return unit(key, int(np.prod(shape)))[:int(np.prod(shape))].reshape(shape).astype(np.float32)


def gumbel(key, shape):
    with np.errstate(divide="ignore"):
        return -np.log(-np.log(uniform(key, shape)))


DRAWS = {
    "bernoulli": [("bernoulli(x1, x0)", [CHANCES, np.array(5)], {}, lambda p, k, _: uniform(5, p.shape) < p.astype(np.float32)),
                  ("bernoulli(x0, 0.25, [6, 4])", [np.array(9)], {}, lambda k, _: uniform(9, (6, 4)) < np.float32(0.25)),
                  ("bernoulli(x0, 1.0, [6])", [np.array(9)], {}, lambda k, _: np.ones(6, bool))],
    "categorical": [("categorical(x1, x0)", [LOGITS, np.array(5)], {}, lambda x, k, _: (x + gumbel(5, (4, 5))).argmax(-1)),
                    ("categorical(x1, x0, 6)", [LOGITS, np.array(-3)], {}, lambda x, k, _: (x[:, None] + gumbel(-3, (4, 6, 5))).argmax(-1)),
                    # none of probability 0, and about as often as it should
                    ("categorical(x0, [-inf, 0.0, -inf] + zeros([50, 3], f64))", [np.array(2)], {}, lambda k, _: np.ones(50)),
                    ("y = abs(mean(f64(categorical(x0, log([0.3, 0.7]) + zeros([20000, 2])))) - 0.7) < 0.02", [np.array(2)], {},
                     lambda k, _: True)],
}

# ---- Spectra ----


def complex_of(x):
    return x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0]


def pairs(z):
    return np.stack([z.real, z.imag], -1)


def spectrum(x, axis=-2, inverse=False, onesided=False, length=None):
    d = axis % x.ndim
    z = complex_of(x)
    if inverse and onesided:
        return np.fft.irfft(z, length, d)[..., None]
    y = (np.fft.ifft if inverse else np.fft.fft)(z, length, d)
    return pairs(np.take(y, range(y.shape[d] // 2 + 1), d) if onesided else y)


LENGTHS = (1, 2, 3, 8, 12, 31, 32, 33, 37, 64, 65, 67, 90, 307, 662, 1000, 1021, 1024)
HANN = np.hanning(16)
SIGNAL = normal(2, 50, 1)
SPECTRA = {
    "fourier": [("(y, v) = fourier(x0, x1)", [a, b], {}, lambda a, b, p: np.fft.fft(a + 1j * b).real) for n in LENGTHS for a, b in [normal(2, 2, n)]]
    + [("(u, y) = fourier(x0, x1, true)", [a, b], {}, lambda a, b, p: np.fft.ifft(a + 1j * b).imag * a.shape[1]) for n in (5, 66) for a, b in [normal(2, 3, n)]],
    "dft": [(f"dft(x0, {a}{s})", [x], {}, lambda x, p, a=a, o=o: spectrum(x, a, **o)) for x in (normal(3, 10, 4, 1), normal(2, 9, 5, 2)) for a in (1, 2, -2, 0)
            for s, o in [("", {}), (", inverse = true", {"inverse": True}), (", onesided = true", {"onesided": True}),
                         (", length = 7", {"length": 7}), (", length = 16, inverse = true", {"length": 16, "inverse": True})]]
    + [(f"dft(x0, 1, true, true{s})", [pairs(np.fft.rfft(normal(2, n)))], {}, lambda x, p, m=m: spectrum(x, 1, True, True, m))
       for n, s, m in [(8, "", None), (9, ", 9", 9), (8, ", 5", 5), (8, ", 12", 12), (2, "", None), (260, "", None), (265, ", 265", 265)]]
    + [(f"dft(x0, onesided = true{s})", [normal(3, n, 1)], {}, lambda x, p, m=m: spectrum(x, -2, False, True, m)) for n, s, m in [(263, "", None), (641, "", None), (400, "", None), (8, ", length = 320", 320)]],
    "chirp_fourier": [("(y, v) = chirp_fourier(x0, x1)", [a, b], {}, lambda a, b, p: np.fft.fft(a + 1j * b).real) for n in (1, 2, 7, 64, 67) for a, b in [normal(2, 2, n)]]
    + [("(u, y) = chirp_fourier(x0, x1, true)", [a, b], {}, lambda a, b, p: np.fft.ifft(a + 1j * b).imag * a.shape[1]) for n in (5, 66) for a, b in [normal(2, 3, n)]],
    "power_above": [(f"y = i64(power_above({n}))", [], {}, lambda p, s=s: np.array(s)) for n, s in ((1, 1), (2, 2), (3, 4), (64, 64), (65, 128))],
    "dft_product": [("y = dft_product(x0, 9, 5)[0]", [normal(2, 9, 2)], {}, lambda x, p: np.fft.fft(complex_of(x)).real[:, :5])],
    "stft": [("stft(x0, 8, 16)", [SIGNAL], {}, lambda x, p: pairs(np.fft.rfft(np.stack([x[:, i:i + 16, 0] for i in range(0, 35, 8)], 1)))),
             ("stft(x0, 5, 16, x1)", [SIGNAL, HANN], {}, lambda x, w, p: pairs(np.fft.rfft(np.stack([x[:, i:i + 16, 0] * w for i in range(0, 35, 5)], 1)))),
             ("stft(x0, 8, 12)", [SIGNAL], {}, lambda x, p: pairs(np.fft.rfft(np.stack([x[:, i:i + 12, 0] for i in range(0, 39, 8)], 1)))),
             ("stft(x0, 7, 12, onesided = false)", [normal(1, 30, 2)], {}, lambda x, p: pairs(np.fft.fft(np.stack([complex_of(x)[:, i:i + 12] for i in range(0, 19, 7)], 1))))],
    "factors": [(f"y = i64(factors({n}))", [], {}, lambda p, s=s: np.array(s)) for n, s in ((64, 64), (400, 41), (2048, 96), (514, 259), (67, 67), (641, 300))],
    "divisor": [("y = i64(divisor(90, 32))", [], {}, lambda p: np.array(30)), ("y = i64(divisor(37, 32))", [], {}, lambda p: np.array(1))],
    "turns": [("(y, s) = turns(5, 3, 4, f64)", [], {}, lambda p: np.cos(2 * np.pi * np.outer(np.arange(3), np.arange(4)) / 5)),
              ("(c, y) = turns(5, 3, 4, f64)", [], {}, lambda p: np.sin(2 * np.pi * np.outer(np.arange(3), np.arange(4)) / 5))],
}

# ---- Boxes ----


def overlap(a, b):
    low, high = np.minimum(a[:2], a[2:]), np.maximum(a[:2], a[2:])
    low_b, high_b = np.minimum(b[:2], b[2:]), np.maximum(b[:2], b[2:])
    both = np.prod(np.maximum(np.minimum(high, high_b) - np.maximum(low, low_b), 0))
    union = np.prod(high - low) + np.prod(high_b - low_b) - both
    return both / union if union > 0 else 0.0


def kept(boxes, scores, most, limit, least):
    """One row, box by box."""
    chosen = []
    for i in sorted(range(len(scores)), key=lambda i: (-scores[i], i)):
        if scores[i] > least and len(chosen) < most and all(overlap(boxes[i], boxes[j]) <= limit for j in chosen):
            chosen.append(i)
    return chosen


def suppressed(boxes, scores, most, limit=0.0, least=-np.inf):
    rows = [kept(b, s, most, limit, least) for b, s in zip(boxes, scores)]
    return np.array([row + [-1] * (most - len(row)) for row in rows]), np.array([len(row) for row in rows])


LOW = RANDOM.uniform(0, 4, (3, 12, 2))
BOXES = np.concatenate([LOW, LOW + RANDOM.uniform(0.5, 3, (3, 12, 2))], -1)
BOXES[1] = BOXES[1][:, [2, 3, 0, 1]]  # the other way round
SCORES = np.round(normal(3, 12), 1)
MIDDLES = np.stack([BOXES[..., 1] + BOXES[..., 3], BOXES[..., 0] + BOXES[..., 2], 2 * np.abs(BOXES[..., 3] - BOXES[..., 1]),
                    2 * np.abs(BOXES[..., 2] - BOXES[..., 0])], -1) / 2
SUPPRESSED = [(most, limit, least) for most in (1, 5, 14) for limit in (0.0, 0.3, 1.0) for least in (-np.inf, 0.2)]
ARRANGED = {
    "non_max_suppression": [(f"({r}) = non_max_suppression(x0, x1, {m}, {o}, {w})", [BOXES, SCORES], {}, lambda b, s, p, i=i, a=(m, o, v): suppressed(b, s, *a)[i])
                            for m, o, v in SUPPRESSED for w in ["-inf" if v == -np.inf else str(v)] for i, r in enumerate(("y, n", "at, y"))]
    + [("(y, n) = non_max_suppression(x0, x1, 6, 0.3, middles = true)", [MIDDLES, SCORES], {}, lambda b, s, p: suppressed(BOXES, s, 6, 0.3)[0]),
       ("(at, y) = non_max_suppression(x0, x1, 6, 0.3, 100.0)", [BOXES, SCORES], {}, lambda b, s, p: np.zeros(3, int))],
    "intersection_over_union": [("intersection_over_union(x0, x1)", [BOXES[0], BOXES[1]], {}, lambda a, b, p: np.array([overlap(*both) for both in zip(a, b)])),
                                ("intersection_over_union(x0, x0)", [np.zeros((2, 4))], {}, lambda a, p: np.zeros(2))],
    "box_corners": [("box_corners(x0)", [MIDDLES], {}, lambda m, p: np.concatenate(
        [np.minimum(BOXES[..., :2], BOXES[..., 2:]), np.maximum(BOXES[..., :2], BOXES[..., 2:])], -1))],
}

# ---- Gamma functions ----

ARGUMENTS = np.concatenate([RANDOM.uniform(-20, 20, 200), RANDOM.uniform(0.5, 3, 50), [1e-300, -1e-9, 1e-9, 1e5, 1e300, 7.5, 0.5, 1.0, 2.0, 170.0]])
ENDS = np.array([0.0, -0.0, -1.0, -7.0, np.inf, -np.inf, np.nan])


def function_of(function, poles):
    return np.vectorize(lambda v: poles(v) if v <= 0 and v == np.floor(v) else float(v) if v != v or v == np.inf else function(v), otypes=[np.float64])


def gamma_of(v):
    return math.gamma(v) if v < 171.6 else np.inf


LGAMMA = function_of(math.lgamma, lambda v: np.inf)
GAMMA = function_of(gamma_of, lambda v: np.copysign(np.inf, v) if v == 0 else np.nan)
GAMMAS = {
    "lgamma": [("lgamma(x0)", [x], {}, lambda x, p: LGAMMA(x)) for x in (ARGUMENTS, ENDS)]
    # in units of the last place also around its zeros
    + [("y = lgamma(x0) / x1", [x, LGAMMA(x.astype(np.float64)).astype(np.float32)], {}, lambda x, z, p: np.float32(LGAMMA(x.astype(np.float64))) / z)
       for x in [np.float32([1.0001, 0.9999, 1.9999, 2.0001, 3.5, -2.5, 40.0, 1e-20])]],
    "gamma": [("gamma(x0)", [x], {}, lambda x, p: GAMMA(x)) for x in (ARGUMENTS[np.abs(ARGUMENTS) < 15], ENDS)],
}

# ---- Fewer bits ----


def round_float(x, digits, least, largest, over):
    """By what is representable: a grid of each binade."""
    out = []
    for v in x.astype(np.float64):
        if np.isnan(v) or np.isinf(v):
            out.append(v if np.isnan(v) else np.copysign(over, v))
            continue
        unit = 2.0 ** (max(math.frexp(v)[1] - 1 if v else least, least) - digits)
        r = np.round(v / unit) * unit
        out.append(r if abs(r) <= largest else np.copysign(over, v))
    return np.float32(out)


FEW = np.float32(np.concatenate([RANDOM.normal(size=60) * 10.0 ** RANDOM.integers(-4, 4, 60), [0, 448, 464, 465, -464.1, np.inf, -np.inf, np.nan, 1.0625, 1.1875, 2.0**-9, 2.0**-10]]))
POWERS = np.float32([1, 1.5, 1.4999, 1.50001, 3, 0.7, 2.0**-126, 2.0**-127, 0, 5e-39, 3e38, -3])


def round_to_power(x, mode):
    bits = np.abs(x).view(np.int32)
    e, f = bits >> 23, bits & 0x7FFFFF
    more = {"up": f > 0, "down": f < 0, "nearest": (f > 1 << 22) | ((f == 1 << 22) & (e > 0))}[mode]
    return np.float32(2.0 ** (np.minimum(e + more, 254) - 127.0))


# Also beyond what the integers have
BEYOND, WHOLE = np.float32(normal(4, 9) * 8), RANDOM.integers(-100, 100, (4, 9)).astype(np.int8)
SCALES, ZEROS = np.float32([0.1, 0.05, 0.2, 0.3]), np.int8([0, 5, -7, 3])


def integers(x, scale, zero, to):
    return np.clip(np.round(x / scale) + zero, np.iinfo(to).min, np.iinfo(to).max).astype(to)


ROUNDED = {
    "round_float": [(f"round_float(x0, {d}, {least}, {largest}{text})", [FEW], {}, lambda x, p, a=(d, least, largest, over): round_float(x, *a))
                    for d, least, largest, text, over in ((3, -6, 448.0, "", 448), (3, -6, 448.0, ", nan", np.nan), (2, -14, 57344.0, ", inf", np.inf), (1, 0, 6.0, "", 6))],
    "along": [("along(x0, x1, 1)", [np.arange(3.0), normal(2, 3, 4)], {}, lambda v, x, p: v[:, None] + 0 * x[:1, :, :1])],
    "zero_of": [("f32(zero_of(x0, u8))", [WHOLE], {}, lambda x, p: x.astype(np.uint8).astype("f4")),
                ("x0 + f32(zero_of(200, u8))", [BEYOND], {}, lambda x, p: x + np.float32(200))],
    "quantize": [("quantize(x0, 0.1, 3, to = i8)", [BEYOND], {}, lambda x, p: integers(x, np.float32(0.1), 3, np.int8)),
                 ("quantize(x0, 0.1)", [BEYOND], {}, lambda x, p: integers(x, np.float32(0.1), 0, np.uint8)),
                 ("quantize(x0, 0.1, to = u16)", [BEYOND], {}, lambda x, p: integers(x, np.float32(0.1), 0, np.uint16)),
                 ("quantize(x0, x1, x2, to = i8, axis = 0)", [BEYOND, SCALES, ZEROS], {},
                  lambda x, s, z, p: integers(x, s[:, None], z[:, None], np.int8))],
    "dequantize": [("dequantize(x0, 0.1, 3)", [WHOLE], {}, lambda x, p: (x - np.float32(3)) * np.float32(0.1)),
                   ("dequantize(x0, x1, axis = -2)", [WHOLE, SCALES], {}, lambda x, s, p: x * s[:, None]),
                   ("dequantize(x0, x1, x2, axis = 0)", [WHOLE, SCALES, ZEROS], {}, lambda x, s, z, p: (x - z[:, None].astype("f4")) * s[:, None])],
    "fake_quantize": [("fake_quantize(x0, x1, x2, to = i8, axis = 0)", [BEYOND, SCALES, ZEROS], {},
                       lambda x, s, z, p: (integers(x, s[:, None], z[:, None], np.int8).astype("f4") - z[:, None]) * s[:, None])],
    "round_to_power": [(f'round_to_power(x0, "{mode}")', [POWERS], {}, lambda x, p, m=mode: round_to_power(x, m)) for mode in ("up", "down", "nearest")],
}

# ---- Trees ----

THRESHOLDS = np.float32([0.5, -1, 0, 2])
TREE = {"roots": [0, 2], "feature": [0, 1, 2, 1, 0, 0, 0, 0], "split": [0.1, -0.2, 0.3, 1.0, 0, 0, 0, 0], "yes": [1, 4, 3, 6, 4, 5, 6, 7], "no": [5, 6, 7, 4, 4, 5, 6, 7]}
ROWS_OF_TREES = np.float32(RANDOM.normal(size=(9, 3)))
ROWS_OF_TREES[0, 1] = np.nan


def leaves(x, modes, missing):
    test = [np.less_equal, np.less, np.greater_equal, np.greater]
    def walk(row, at):
        for _ in range(2):
            v = row[TREE["feature"][at]]
            goes = test[modes[at]](v, np.float32(TREE["split"][at])) or (missing[at] and np.isnan(v))
            at = TREE["yes" if goes else "no"][at]
        return at
    return np.array([[walk(row, root) for root in TREE["roots"]] for row in x])


NODES = [np.array(TREE[k], np.float32 if k == "split" else np.int64) for k in ("roots", "feature", "split", "yes", "no")]
MODES, GAPS = np.array([0, 3, 1, 2, 0, 0, 0, 0]), np.array([0, 1, 0, 1, 0, 0, 0, 0])
TREES = {
    "tree_test": [(f"tree_test(x0, x1, {kind})", [np.float32([0.5, 0, 0, np.nan]), THRESHOLDS], {}, lambda v, s, p, f=f: f(v, s))
                  for kind, f in enumerate((np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal))]
    + [("tree_test(x0, x0, 6, x1)", [THRESHOLDS, np.float32([[0.5, np.nan], [0, 1], [0, np.nan], [3, 4]])], {}, lambda v, m, p: np.array([True, False, True, False]))],
    "tree_leaves": [("tree_leaves(x0, x1, x2, x3, x4, x5, [0], 2)", [ROWS_OF_TREES, *NODES], {}, lambda x, *a: leaves(x, MODES * 0, MODES * 0)),
                    ("tree_leaves(x0, x1, x2, x3, x4, x5, [0, 1, 2, 3], 2, mode = x6, missing = x7)", [ROWS_OF_TREES, *NODES, MODES, GAPS], {},
                     lambda x, *a: leaves(x, MODES, GAPS))],
}



def coupled(r):
    """Algorithm 2 of Wu, Lin and Weng, row by row, as it stops; near to the shares that their equation (21) solves for."""
    rows = []
    for pair in r:
        k = len(pair)
        q = np.array([[-pair[j, t] * pair[t, j] if j != t else sum(pair[s, t] ** 2 for s in range(k) if s != t) for j in range(k)] for t in range(k)])
        p = np.full(k, 1 / k)
        for _ in range(100):
            qp = q @ p
            level = p @ qp
            if max(abs(qp - level)) < 0.005 / k:
                break
            for t in range(k):
                step = (level - qp[t]) / q[t, t]
                p[t] += step
                level = (level + step * (step * q[t, t] + 2 * qp[t])) / (1 + step) ** 2
                qp, p = (qp + step * q[t]) / (1 + step), p / (1 + step)
        exact = np.linalg.solve(np.block([[q, np.ones((k, 1))], [np.ones((1, k)), np.zeros((1, 1))]]), [*np.zeros(k), 1])[:k]
        assert np.abs(p - exact).max() < 0.05, (p, exact)
        rows.append(p)
    return np.array(rows)


def shares(n, k):
    """Of each pair of classes, the two of which make 1"""
    upper = np.triu(RANDOM.uniform(0.05, 0.95, (n, k, k)), 1)
    return upper + np.tril(1 - upper.transpose(0, 2, 1), -1)


COUPLED = {"pairwise_coupling": [("pairwise_coupling(x0)", [shares(n, k)], {}, lambda r, p: coupled(r)) for n, k in ((5, 2), (7, 3), (4, 5))]}

# ---- The normal distribution ----


def inverse_erf(x):
    """By bisection, of erfc in the tails"""
    if not abs(x) < 1:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    low, high = 0.0, 7.0
    for _ in range(200):
        middle = (low + high) / 2
        over = math.erfc(middle) < 1 - abs(x) if abs(x) > 0.5 else math.erf(middle) > abs(x)
        low, high = (low, middle) if over else (middle, high)
    return math.copysign(low, x)


SHARES = np.concatenate([np.linspace(-1.25, 1.25, 101), [0.85, -0.85, 1 - 2**-53, -1 + 1e-12, 1e-300, -1e-9, np.nan]])
NORMAL = {
    "erfinv": [("erfinv(x0)", [SHARES], {}, lambda x, p: np.vectorize(inverse_erf)(x)),
               ("y = f64(erfinv(f32(x0)))", [SHARES[:101]], {}, lambda x, p: np.vectorize(inverse_erf)(x.astype(np.float32)).astype(np.float32)),
               ("y = grad(reduce_sum(erfinv(x0)), wrt = x0)", [SHARES[30:70]], {}, lambda x, p: np.exp(np.vectorize(inverse_erf)(x)**2) * math.sqrt(math.pi) / 2)],
    "polynomial": [("polynomial(x0, [1.0, -2.0, 0.5])", [SHARES[:9]], {}, lambda x, p: 1 - 2 * x + x * x / 2),
                   ("polynomial(x0, [3.0])", [np.float64(2)], {}, lambda x, p: 3.0)],
}

def overlap_added(frames, step):
    n, count, c, length = frames.shape
    y = np.zeros((n, (count - 1) * step + length, c))
    for i in range(count):
        y[:, i * step:i * step + length] += frames[:, i].transpose(0, 2, 1)
    return y


def heard(x, step, length, window=1.0):
    """What frames have seen of a signal, where their windows let something through"""
    count = (x.shape[1] - length) // step + 1
    weight = overlap_added(np.broadcast_to(np.square(window) * np.ones(length), (1, count, 1, length)), step)
    return np.where(weight > 1e-11, x[:, :weight.shape[1]], 0)


FRAMES = normal(2, 5, 3, 7)
TURN = 2 * np.pi * np.arange(9)
SPECTRA.update({
    "overlap_add": [(f"overlap_add(x0, {step})", [FRAMES], {}, lambda x, p, step=step: overlap_added(x, step)) for step in (1, 3, 7, 9)],
    "istft": [("istft(stft(x0, 8, 16), 8, 16)", [SIGNAL], {}, lambda x, p: heard(x, 8, 16)),
              ("istft(stft(x0, 5, 16, x1), 5, 16, x1)", [SIGNAL, HANN], {}, lambda x, w, p: heard(x, 5, 16, w)),
              ("istft(stft(x0, 7, 9), 7, 9)", [SIGNAL], {}, lambda x, p: heard(x, 7, 9)),
              ("istft(stft(x0, 20, 12), 20, 12)", [SIGNAL], {}, lambda x, p: heard(x, 20, 12)),
              ("istft(stft(x0, 7, 12, onesided = false), 7, 12, onesided = false)", [normal(1, 30, 2)], {}, lambda x, p: heard(x, 7, 12))],
    "cosine_window": [("y = cosine_window(9, [1.0, 0.5, 0.25], dtype = f64)", [], {}, lambda p: 1 - np.cos(TURN / 9) / 2 + np.cos(2 * TURN / 9) / 4)],
    "hann_window": [("y = hann_window(9, false, f64)", [], {}, lambda p: np.hanning(9)), ("y = hann_window(8, dtype = f64)", [], {}, lambda p: np.hanning(9)[:-1]),
                    ("y = f64(hann_window(8))", [], {}, lambda p: np.hanning(9)[:-1].astype(np.float32)), ("y = hann_window(1, false, f64)", [], {}, lambda p: np.ones(1))],
    "hamming_window": [("y = hamming_window(9, false, f64)", [], {}, lambda p: np.hamming(9)), ("y = hamming_window(8, dtype = f64)", [], {}, lambda p: np.hamming(9)[:-1])],
    "blackman_window": [("y = blackman_window(9, false, f64) + 1.0", [], {}, lambda p: np.blackman(9) + 1)],
})


def by_recurrence(x):
    """The derivative of lgamma from far above, where three terms of its series are exact"""
    if not x > 0:
        return np.nan if np.isnan(x) or x == round(x) else by_recurrence(1 - x) - np.pi / np.tan(np.pi * x)
    far = x + 300
    return np.log(far) - 1 / (2 * far) - 1 / (12 * far**2) + 1 / (120 * far**4) - math.fsum(1 / (x + k) for k in range(300))


DIGAMMA = np.concatenate([np.linspace(0.05, 9, 83), [1e-3, 20, 1e3, 1e8], np.linspace(-5.3, -0.3, 11), [0.0, -3, np.nan]])
GAMMAS["digamma"] = [("digamma(x0)", [DIGAMMA], {}, lambda x, p: np.vectorize(by_recurrence)(x)),
                     ("y = f64(digamma(f32(x0)))", [DIGAMMA[:83]], {}, lambda x, p: np.vectorize(by_recurrence)(x.astype(np.float32)).astype(np.float32)),
                     ("grad(reduce_sum(lgamma(x0)), wrt = x0)", [DIGAMMA[:90]], {}, lambda x, p: np.vectorize(by_recurrence)(x)),
                     ("grad(reduce_sum(digamma(x0)), wrt = x0)", [np.array([1.0, 0.5, 2.0])], {}, lambda x, p: np.array([1, 3, 1 - 6 / np.pi**2]) * np.pi**2 / [6, 6, 6])]

CASES = {**COUPLED, **ROUNDED, **TREES, **GAMMAS, **DRAWS, **SPECTRA, **ARRANGED, **NORMAL}
# Built for targets, too.
BUILT = ["dft", "stft", "pairwise_coupling", "non_max_suppression"]
