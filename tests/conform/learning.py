"""What library.py asks of losses with options, blocks, kin of dropout, and functions of gradients: cases as there."""

import itertools

import numpy as np

from generators import normal as drawn_normal, unit

RANDOM = np.random.Generator(np.random.Philox(11))
RANDOM_LOSSES = np.random.Generator(np.random.Philox(12))


def normal(*shape):
    return RANDOM.normal(size=shape) * 2


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def log_softmax(x):
    return x - np.logaddexp.reduce(x, -1)[..., None]


# ---- Losses ----

ROWS = normal(6, 4)
LABEL = np.array([3, 0, 2, 2, 0, 1])
HOLES = np.array([3, -7, 2, 2, -7, 1])
NO_CLASS = np.array([3, -1, 2, 2, 4, 1])
WEIGHT = np.array([0.5, 2.0, 1.0, 0.0])
SHARES = np.exp(log_softmax(normal(6, 4)))


def cross_entropy(x, label, weight=np.ones(4), ignore=None, smoothing=0.0):
    """Class by class, as PyTorch defines it: the loss of each row, and what it counts in the mean."""
    shares = label if label.ndim == 2 else (label[:, None] == np.arange(4)).astype(float)
    loss = -(log_softmax(x) * weight * (shares * (1 - smoothing) + smoothing / 4)).sum(-1)
    if label.ndim == 2:
        return loss, np.ones(6)
    ignored = (label == ignore) | (label < 0) | (label > 3)
    return np.where(ignored, 0, loss), np.where(ignored, 0, weight[label % 4])


def mean_cross_entropy(*arguments):
    loss, counts = cross_entropy(*arguments)
    return loss.sum() / (counts.sum() or 1)


CROSS_ENTROPY = [
    ("cross_entropy(x0, x1, weight = x2)", [ROWS, LABEL, WEIGHT], {}, lambda x, c, w, p: cross_entropy(x, c, w)[0]),
    ("cross_entropy(x0, x1, smoothing = 0.1)", [ROWS, LABEL], {}, lambda x, c, p: cross_entropy(x, c, smoothing=0.1)[0]),
    ("cross_entropy(x0, x1, ignore = -7)", [ROWS, HOLES], {}, lambda x, c, p: cross_entropy(x, c, ignore=-7)[0]),
    ("cross_entropy(x0, x1, x2, -7, 0.2)", [ROWS, HOLES, WEIGHT + 1], {},
     lambda x, c, w, p: cross_entropy(x, c, w, -7, 0.2)[0]),
    ("cross_entropy(x0, x1, x2, smoothing = 0.2)", [ROWS, SHARES, WEIGHT], {},
     lambda x, c, w, p: cross_entropy(x, c, w, None, 0.2)[0]),
    ("cross_entropy(x0, x1)", [ROWS, NO_CLASS], {}, lambda x, c, p: cross_entropy(x, c)[0]),
    ("cross_entropy(x0, x1, x2, 1, 0.2)", [ROWS, NO_CLASS, WEIGHT + 1], {}, lambda x, c, w, p: cross_entropy(x, c, w, 1, 0.2)[0]),
]

MEAN_CROSS_ENTROPY = [
    ("mean_cross_entropy(x0, x1)", [ROWS, LABEL], {}, lambda x, c, p: mean_cross_entropy(x, c)),
    ("mean_cross_entropy(x0, x1, x2)", [ROWS, LABEL, WEIGHT], {}, lambda x, c, w, p: mean_cross_entropy(x, c, w)),
    ("mean_cross_entropy(x0, x1, [0.5, 2.0, 1.0, 0.0])", [ROWS, LABEL], {}, lambda x, c, p: mean_cross_entropy(x, c, WEIGHT)),
    ("mean_cross_entropy(x0, x1, ignore = -7)", [ROWS, HOLES], {}, lambda x, c, p: mean_cross_entropy(x, c, np.ones(4), -7)),
    ("mean_cross_entropy(x0, x1, x2, -7, 0.2)", [ROWS, HOLES, WEIGHT + 1], {},
     lambda x, c, w, p: mean_cross_entropy(x, c, w, -7, 0.2)),
    ("mean_cross_entropy(x0, x1, ignore = -7)", [ROWS, np.full(6, -7)], {}, lambda x, c, p: np.array(0)),
    ("mean_cross_entropy(x0, x1)", [ROWS, NO_CLASS], {}, lambda x, c, p: mean_cross_entropy(x, c)),
    ("mean_cross_entropy(x0, x1, x2, smoothing = 0.2)", [ROWS, NO_CLASS, WEIGHT + 1], {},
     lambda x, c, w, p: mean_cross_entropy(x, c, w, None, 0.2)),
    ("mean_cross_entropy(x0, x1, x2)", [ROWS, SHARES, WEIGHT], {}, lambda x, c, w, p: mean_cross_entropy(x, c, w)),
]


def collapsed(path, blank):
    """Repeated classes once, then without blanks."""
    return [k for k, _ in itertools.groupby(path) if k != blank]


def ctc(logits, label, steps, lengths, blank=0):
    """By all paths of each sequence that collapse to its label."""
    logp, loss = log_softmax(logits), []
    for n in range(logits.shape[1]):
        ways = [sum(logp[t, n, k] for t, k in enumerate(path))
                for path in itertools.product(range(logits.shape[2]), repeat=steps[n])
                if collapsed(path, blank) == list(label[n, :lengths[n]])]
        loss.append(-np.logaddexp.reduce(ways) if ways else np.inf)
    return np.array(loss)


SOUNDS = normal(5, 6, 3)
WORDS = np.array([[1, 2], [1, 1], [2, 1], [2, -1], [9, 9], [1, 1]])
LENGTHS = np.array([2, 2, 2, 1, 0, 2])
HEARD = np.array([5, 5, 3, 2, 4, 2])  # the last is too short: a blank must stand between

CTC = [
    ("ctc(x0, x1, x2, x3)", [SOUNDS, WORDS, HEARD, LENGTHS], {}, lambda x, c, t, n, p: ctc(x, c, t, n)),
    ("ctc(x0, x1, x2, x3, blank = 2)", [SOUNDS, WORDS % 2, np.array([5, 4, 3, 2, 1, 0]), np.array([2, 2, 1, 1, 1, 0])], {},
     lambda x, c, t, n, p: ctc(x, c, t, n, 2)),
    ("ctc(x0, x1, x2, x3)", [normal(1, 2, 4), np.array([[3], [1]]), np.array([1, 0]), np.array([1, 1])], {},
     lambda x, c, t, n, p: ctc(x, c, t, n)),
    ("ctc(x0, x1, x2, x3)", [SOUNDS[:, :2], np.zeros((2, 0), np.int64), np.array([5, 3]), np.array([0, 0])], {},
     lambda x, c, t, n, p: ctc(x, c, t, n)),
    # where the label does not fit there is no gradient
    ("grad(reduce_sum(ctc(x0, x1, x2, x3)), wrt = [x0])", [SOUNDS[:2, :1], np.array([[1, 1]]), np.array([2]), np.array([2])], {}, lambda x, c, t, n, p: np.zeros(x.shape)),
]


# ---- Blocks ----

IMAGE = normal(2, 4, 5, 6) / 2


def correlate(x, w, stride=1, pad=0):
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    rows, columns = ((x.shape[2 + i] - w.shape[2 + i]) // stride + 1 for i in (0, 1))
    y = np.zeros((len(x), len(w), rows, columns))
    for i in range(rows):
        for j in range(columns):
            window = x[:, :, i * stride:i * stride + w.shape[2], j * stride:j * stride + w.shape[3]]
            y[:, :, i, j] = np.einsum("nchw,ochw->no", window, w)
    return y


def along_channels(v):
    return v[:, None, None]


def norm_params(name, c):
    return {f"{name}.scale": normal(c), f"{name}.bias": normal(c), f"{name}.mean": normal(c), f"{name}.variance": normal(c)**2}


def conv_norm_params(name, c, o, k):
    return {f"{name}.conv.weight": normal(o, c, k, k) / (2 * k), **norm_params(f"{name}.norm", o)}


def conv_norm(x, p, name, stride=1, pad=0, training=False):
    h = correlate(x, p[f"{name}.conv.weight"], stride, pad)
    mean, variance = (h.mean((0, 2, 3)), h.var((0, 2, 3))) if training else (p[f"{name}.norm.mean"], p[f"{name}.norm.variance"])
    h = (h - along_channels(mean)) / np.sqrt(along_channels(variance) + 1e-5)
    return h * along_channels(p[f"{name}.norm.scale"]) + along_channels(p[f"{name}.norm.bias"])


def relu(x):
    return np.maximum(x, 0)


def residual(x, p, stride=1, training=False):
    h = relu(conv_norm(x, p, "residual.first", stride, 1, training))
    h = conv_norm(h, p, "residual.second", 1, 1, training)
    project = "residual.shortcut.project"
    return relu(h + (conv_norm(x, p, project, stride, 0, training) if f"{project}.conv.weight" in p else x))


def bottleneck(x, p, stride):
    h = relu(conv_norm(x, p, "bottleneck.first"))
    h = relu(conv_norm(h, p, "bottleneck.second", stride, 1))
    return relu(conv_norm(h, p, "bottleneck.third") + conv_norm(x, p, "bottleneck.shortcut.project", stride))


def biased(x, p, name, pad=0):
    return relu(correlate(x, p[f"inception.{name}.weight"], 1, pad) + along_channels(p[f"inception.{name}.bias"]))


def inception(x, p):
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    pooled = np.max([padded[:, :, i:i + 5, j:j + 6] for i in range(3) for j in range(3)], axis=0)
    return np.concatenate([biased(x, p, "one"), biased(biased(x, p, "before_three"), p, "three", 1),
                           biased(biased(x, p, "before_five"), p, "five", 2), biased(pooled, p, "pooled")], axis=1)


def inception_params():
    shapes = {"one": (3, 4, 1), "before_three": (2, 4, 1), "three": (5, 2, 3), "before_five": (1, 4, 1), "five": (2, 1, 5),
              "pooled": (4, 4, 1)}
    params = {}
    for name, (o, c, k) in shapes.items():
        params[f"inception.{name}.weight"], params[f"inception.{name}.bias"] = normal(o, c, k, k) / k, normal(o)
    return params


def squeeze_excite(x, p):
    s = relu(x.mean((2, 3)) @ p["squeeze_excite.squeeze.weight"] + p["squeeze_excite.squeeze.bias"])
    gate = sigmoid(s @ p["squeeze_excite.excite.weight"] + p["squeeze_excite.excite.bias"])
    return x * gate[:, :, None, None]


EXCITE = {"squeeze_excite.squeeze.weight": normal(4, 2), "squeeze_excite.squeeze.bias": normal(2),
          "squeeze_excite.excite.weight": normal(2, 4), "squeeze_excite.excite.bias": normal(4)}
PLAIN = {**conv_norm_params("residual.first", 4, 4, 3), **conv_norm_params("residual.second", 4, 4, 3)}
WIDER = {**conv_norm_params("residual.first", 4, 6, 3), **conv_norm_params("residual.second", 6, 6, 3),
         **conv_norm_params("residual.shortcut.project", 4, 6, 1)}
BOTTLENECK = {**conv_norm_params("bottleneck.first", 4, 3, 1), **conv_norm_params("bottleneck.second", 3, 3, 3),
              **conv_norm_params("bottleneck.third", 3, 6, 1), **conv_norm_params("bottleneck.shortcut.project", 4, 6, 1)}


# ---- Noise ----

NOISY = normal(4, 3, 2, 5)


def kept(shape, rate):
    return (unit(5, np.prod(shape)) >= np.float32(rate)).reshape(shape)


def alpha_dropout(x, rate):
    low, keep = -1.7580993408473766, 1 - rate
    a = (keep + low**2 * keep * rate) ** -0.5
    return a * np.where(kept(x.shape, rate), x, low) - a * low * rate


def gaussian(mean, std):
    return drawn_normal(5, NOISY.shape, mean, std).astype(np.float32)


# ---- Gradients before the optimiser; tests/emitted/stages.py has those with states ----

G, H = normal(3, 5), normal(4)
LONG = np.sqrt((G * G).sum() + (H * H).sum())


def joined(*arrays):
    return np.concatenate([a.ravel() for a in arrays])


def both(call):
    return f"(a, b) = {call}\n    y = concat(flatten(a, axis = 0), b)"


RIGHT, SHARE = RANDOM_LOSSES.normal(size=(3, 5)), RANDOM_LOSSES.uniform(size=(3, 5))
LOSSES = {
    "gaussian_nll": [("gaussian_nll(x0, x1, x2)", [RIGHT, RIGHT[::-1] * 2, SHARE], {}, lambda m, t, v, p: (np.log(v) + (m - t) ** 2 / v) / 2),
                     ("gaussian_nll(x0, 1.0, x1, eps = 0.5)", [RIGHT, SHARE], {}, lambda m, v, p: (np.log(np.maximum(v, 0.5)) + (m - 1) ** 2 / np.maximum(v, 0.5)) / 2)],
    "poisson_nll": [("poisson_nll(x0, x1)", [RIGHT, np.floor(SHARE * 5)], {}, lambda x, t, p: np.exp(x) - t * x)],
    "dice": [("dice(x0, x1)", [SHARE, np.round(SHARE[::-1])], {}, lambda x, t, p: 1 - (2 * (x * t).sum(1) + 1) / ((x + t).sum(1) + 1)),
             ("y = f64(dice(cast(x0, to = f16), cast(x0, to = f16)))", [np.ones((1, 300, 300))], {}, lambda x, p: np.zeros(1)),
             ("dice(x0, x1)", [SHARE[0], np.round(SHARE[1])], {}, lambda x, t, p: 1 - (2 * x * t + 1) / (x + t + 1)),
             ("dice(x0, x0, eps = 0.5)", [SHARE.reshape(3, 1, 5)], {}, lambda x, p: 1 - (2 * (x * x).sum((1, 2)) + 0.5) / (2 * x.sum((1, 2)) + 0.5))],
}

CASES = {
    **LOSSES,
    "mean_cross_entropy": MEAN_CROSS_ENTROPY,
    "is_class": [(f"is_class({x}, 4)", [NO_CLASS], {}, lambda c, p: (c >= 0) & (c < 4)) for x in ("x0", "i8(x0)")],
    "ctc": CTC,
    "conv_norm": [("conv_norm(x0, 6, 3, stride = 2, pad = 1)", [IMAGE], conv_norm_params("conv_norm", 4, 6, 3),
                   lambda x, p: conv_norm(x, p, "conv_norm", 2, 1))],
    "shortcut": [("shortcut(x0, 4)", [IMAGE], {}, lambda x, p: x),
                 ("shortcut(x0, 4, stride = 2)", [IMAGE], conv_norm_params("shortcut.project", 4, 4, 1),
                  lambda x, p: conv_norm(x, p, "shortcut.project", 2))],
    "residual": [("residual(x0, 4)", [IMAGE], PLAIN, residual),
                 ("residual(x0, 6, stride = 2)", [IMAGE], WIDER, lambda x, p: residual(x, p, 2)),
                 ("residual(x0, 6, training = true)", [IMAGE], WIDER, lambda x, p: residual(x, p, training=True))],
    "bottleneck": [("bottleneck(x0, 3, stride = 2, expansion = 2)", [IMAGE], BOTTLENECK, lambda x, p: bottleneck(x, p, 2))],
    "inception": [("inception(x0, [3, [2, 5], [1, 2], 4])", [IMAGE], inception_params(), inception)],
    "squeeze_excite": [("squeeze_excite(x0, ratio = 2)", [IMAGE], EXCITE, squeeze_excite)],
    "spatial_dropout": [("spatial_dropout(x0, 0.3, 5)", [NOISY], {}, lambda x, p:
                         np.where(kept((4, 3, 1, 1), 0.3), x / 0.7, 0))],
    "drop_path": [("drop_path(x0, 0.5, 5)", [NOISY], {}, lambda x, p: np.where(kept((4, 1, 1, 1), 0.5), x / 0.5, 0)),
                  ("drop_path(x0, 0, 5)", [NOISY], {}, lambda x, p: x)],
    "alpha_dropout": [("alpha_dropout(x0, 0.3, 5)", [NOISY], {}, lambda x, p: alpha_dropout(x, 0.3)),
                      ("alpha_dropout(x0, 0.0, 5)", [NOISY], {}, lambda x, p: x)],
    "gaussian_noise": [("gaussian_noise(x0, 0.5, 5)", [NOISY], {}, lambda x, p: x + gaussian(0, 0.5))],
    "gaussian_dropout": [("gaussian_dropout(x0, 0.2, 5)", [NOISY], {}, lambda x, p: x * gaussian(1, 0.5))],
    "global_norm": [("global_norm([x0, x1])", [G, H], {}, lambda g, h, p: LONG),
                    ("global_norm([x0, x1])", [G.astype(np.float32) * np.float32(1e15), H], {}, lambda g, h, p:
                     np.sqrt((g.astype(np.float64)**2).sum() + (h * h).sum()))],
    "clip_by_value": [(both("clip_by_value([x0, x1], 0.5)"), [G, H], {}, lambda g, h, p: joined(np.clip(g, -0.5, 0.5), np.clip(h, -0.5, 0.5)))],
    "clip_by_norm": [(both("clip_by_norm([x0, x1], 0.5)"), [G, H], {}, lambda g, h, p: joined(g, h) * 0.5 / LONG),
                     (both("clip_by_norm([x0, x1], 500.0)"), [G, H], {}, lambda g, h, p: joined(g, h)),
                     (both("clip_by_norm([x0, x1], 0.5, each = true)"), [G, H], {}, lambda g, h, p:
                      joined(g / np.sqrt((g * g).sum()), h / np.sqrt((h * h).sum())) * 0.5)],
    "all_finite": [("f64(select(all_finite([x0, x1]), 1.0, 0.0))", [G, bad], {}, lambda g, h, p: np.array(float(np.isfinite(h).all())))
                   for bad in (H, np.array([1, np.inf]), np.array([-np.inf, 2]), np.array([0, np.nan]))],
    "unscale": [("(hs, go) = unscale([x0, x1], 8.0)\n    y = concat(flatten(hs[0], axis = 0), hs[1])", [G, H], {}, lambda g, h, p:
                 joined(g, h) / 8)],
    "decayed": [("decayed(x0, x1, 0.5, 0.0)", [G, normal(3, 5)], {}, lambda w, g, p: g + 0.5 * w),
                ("decayed(x0, x1, 0.0, 0.25)", [G, normal(3, 5)], {}, lambda w, g, p: g + 0.25 * np.sign(w)),
                ("decayed(x0, x1, 0.5, 0.25)", [G, normal(3, 5)], {}, lambda w, g, p: g + 0.5 * w + 0.25 * np.sign(w))],
}
