"""Cases of layers that came after the first: convolutions of any rank, weights that are normed, attention of several kinds."""

import math

import numpy as np

RANDOM = np.random.Generator(np.random.Philox(11))


def normal(*shape):
    return RANDOM.normal(size=shape)


def pairs(v, rank):
    return [v] * rank if isinstance(v, int) else list(v)


def correlation(x, w, bias=0.0, stride=1, pad=0, dilation=1, groups=1):
    """By its definition: a sum over taps of strided parts of the padded image"""
    rank = x.ndim - 2
    s, p, by, k = pairs(stride, rank), pairs(pad, rank), pairs(dilation, rank), w.shape[2:]
    x = np.pad(x, [(0, 0), (0, 0)] + [(n, n) for n in p])
    out = [(n - (a - 1) * d - 1) // t + 1 for n, a, d, t in zip(x.shape[2:], k, by, s)]
    y = np.zeros((x.shape[0], w.shape[0], *out))
    a, b = w.shape[1], w.shape[0] // groups
    for tap in np.ndindex(*k):
        part = x[(..., *(slice(t * d, t * d + (n - 1) * e + 1, e) for t, d, n, e in zip(tap, by, out, s)))]
        for g in range(groups):
            y[:, g * b:g * b + b] += np.einsum("nc...,oc->no...", part[:, g * a:g * a + a], w[(slice(g * b, g * b + b), slice(None), *tap)])
    return y + np.reshape(bias, (-1, *[1] * rank)) if np.ndim(bias) else y


def transposed(x, w, bias, stride=1, pad=0, dilation=1, groups=1, more=0):
    """Each element of x puts the weights where a convolution would have seen it"""
    rank = x.ndim - 2
    s, p, by, left, k = pairs(stride, rank), pairs(pad, rank), pairs(dilation, rank), pairs(more, rank), w.shape[2:]
    size = [(n - 1) * t + d * (a - 1) + 1 + e for n, t, d, a, e in zip(x.shape[2:], s, by, k, left)]
    a, b = x.shape[1] // groups, w.shape[1]
    y = np.zeros((x.shape[0], groups * b, *size))
    for tap in np.ndindex(*k):
        place = tuple(slice(t * d, t * d + (n - 1) * e + 1, e) for t, d, n, e in zip(tap, by, x.shape[2:], s))
        for g in range(groups):
            y[(slice(None), slice(g * b, g * b + b), *place)] += np.einsum("nc...,co->no...", x[:, g * a:g * a + a], w[(slice(g * a, g * a + a), slice(None), *tap)])
    y = y[(..., *(slice(n, m - n) for n, m in zip(p, size)))]
    return y + np.reshape(bias, (-1, *[1] * rank)) if np.ndim(bias) else y


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def dense(x, p, name):
    return x @ p[f"{name}.weight"] + p[f"{name}.bias"]


def heads_of(x, heads):
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def attention(x, p, heads, memory=None, kv_heads=None, causal=False, name="attention"):
    memory = x if memory is None else memory
    kv_heads = kv_heads or heads
    q = heads_of(dense(x, p, f"{name}.query"), heads)
    k, v = (np.repeat(heads_of(dense(memory, p, f"{name}.{part}"), kv_heads), heads // kv_heads, 1) for part in ("key", "value"))
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:]) > 0, scores, -np.inf)
    y = (softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(*x.shape[:2], -1)
    return dense(y, p, f"{name}.output")


def layer_norm(x, p, name):
    y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return y * p[f"{name}.scale"] + p[f"{name}.bias"]


gelu = np.vectorize(lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))), otypes=[float])


def transformer(x, p, causal=False):
    h = x + attention(layer_norm(x, p, "transformer.norm1"), p, 2, causal=causal, name="transformer.attention")
    return h + dense(gelu(dense(layer_norm(h, p, "transformer.norm2"), p, "transformer.up")), p, "transformer.down")


def params(**shapes):
    return {name.replace("_", "."): normal(*shape) for name, shape in shapes.items()}


def dense_params(name, n, m):
    return {f"{name}.weight": normal(n, m), f"{name}.bias": normal(m)}


def attention_params(name, d, memory, kv):
    return {**dense_params(f"{name}.query", d, d), **dense_params(f"{name}.key", memory, kv), **dense_params(f"{name}.value", memory, kv),
            **dense_params(f"{name}.output", d, d)}


def transformer_params(d, hidden):
    norms = {f"transformer.norm{i}.{part}": normal(d) for i in (1, 2) for part in ("scale", "bias")}
    return {**norms, **attention_params("transformer.attention", d, d, d), **dense_params("transformer.up", d, hidden),
            **dense_params("transformer.down", hidden, d)}


def conv_case(name, by_hand, call, image, weight, **told):
    bias = normal(told.pop("outputs"))
    return (call, [image], {f"{name}.weight": weight, f"{name}.bias": bias}, lambda x, p: by_hand(x, p[f"{name}.weight"], p[f"{name}.bias"], **told))


def largest_value(w, u, rounds):
    m = w.reshape(w.shape[0], -1)
    u = u / np.linalg.norm(u)
    for _ in range(rounds):
        v = m.T @ u
        u = m @ (v / np.linalg.norm(v))
        u /= np.linalg.norm(u)
    v = m.T @ u
    return (u @ m) @ (v / np.linalg.norm(v))


LINE, IMAGE, VOLUME = normal(2, 4, 9), normal(2, 4, 5, 6), normal(1, 2, 3, 4, 5)
ROWS, MEMORY = normal(2, 3, 8), normal(2, 5, 6)
CASES = {
    "conv": [conv_case("conv", correlation, "conv(x0, 6, 3, stride = 2, pad = 1, groups = 2)", LINE, normal(6, 2, 3), outputs=6, stride=2, pad=1, groups=2),
             conv_case("conv", correlation, "conv(x0, 3, [2, 3, 1], pad = 1)", VOLUME, normal(3, 2, 2, 3, 1), outputs=3, pad=1),
             ("conv(x0, 3, 2, dilation = 3, with_bias = false)", [LINE], {"conv.weight": normal(3, 4, 2)}, lambda x, p: correlation(x, p["conv.weight"], dilation=3))],
    "convolve": [("convolve(x0, x1, x2, stride = 2)", [LINE, normal(5, 4, 3), normal(5)], {}, lambda x, w, b, p: correlation(x, w, b, 2)),
                 ("convolve(x0, x1, none, pad = 2)", [IMAGE, normal(5, 4, 3, 3)], {}, lambda x, w, p: correlation(x, w, pad=2)),
                 ("convolve(x0, x1)", [VOLUME, normal(2, 2, 2, 2, 2)], {}, lambda x, w, p: correlation(x, w))],
    "conv_transposed": [conv_case("conv_transposed", transposed, "conv_transposed(x0, 3, 4, stride = 2, pad = 1)", LINE, normal(4, 3, 4), outputs=3, stride=2, pad=1),
                        conv_case("conv_transposed", transposed, "conv_transposed(x0, 6, [3, 2], stride = [2, 3], pad = [1, 0], groups = 2, more = [1, 2])", IMAGE,
                                  normal(4, 3, 3, 2), outputs=6, stride=[2, 3], pad=[1, 0], groups=2, more=[1, 2]),
                        conv_case("conv_transposed", transposed, "conv_transposed(x0, 2, 2, stride = 2, dilation = 2)", VOLUME, normal(2, 2, 2, 2, 2), outputs=2, stride=2, dilation=2),
                        ("conv_transposed(x0, 3, 3, with_bias = false)", [IMAGE], {"conv_transposed.weight": normal(4, 3, 3, 3)},
                         lambda x, p: transposed(x, p["conv_transposed.weight"], None))],
    "weight_norm": [("weight_norm(x0, x1)", [normal(4, 3, 2), normal(4)], {}, lambda v, g, p: v * (g / np.sqrt((v * v).sum((1, 2))))[:, None, None]),
                    ("weight_norm(x0, x1)", [normal(4), normal(4)], {}, lambda v, g, p: np.sign(v) * g),
                    ("weight_norm(x0, x1, axis = -1)", [normal(4, 3), normal(3)], {}, lambda v, g, p: v * g / np.linalg.norm(v, axis=0))],
    "spectral_norm": [(f"spectral_norm(x0, rounds = {n}{more})", [normal(4, 3, 2)], {"spectral_norm.u": normal(4)},
                       lambda w, p, n=n: w / largest_value(w, p["spectral_norm.u"], n)) for n, more in ((1, ""), (3, ", training = true"), (0, ""))]
    + [("spectral_norm(x0, rounds = 200)", [normal(5, 7)], {}, lambda w, p: w / np.linalg.svd(w)[1][0])],
    "attention": [("attention(x0, 2, memory = x1)", [ROWS, MEMORY], attention_params("attention", 8, 6, 8), lambda x, m, p: attention(x, p, 2, m)),
                  ("attention(x0, 4, kv_heads = 2, causal = true)", [ROWS], attention_params("attention", 8, 8, 4),
                   lambda x, p: attention(x, p, 4, kv_heads=2, causal=True)),
                  ("attention(x0, 4, kv_heads = 1)", [ROWS], attention_params("attention", 8, 8, 2), lambda x, p: attention(x, p, 4, kv_heads=1))],
    "transformer": [("transformer(x0, 2)", [ROWS], transformer_params(8, 32), lambda x, p: transformer(x, p)),
                    ("transformer(x0, 2, hidden = 5, causal = true)", [ROWS], transformer_params(8, 5), lambda x, p: transformer(x, p, True))],
}
