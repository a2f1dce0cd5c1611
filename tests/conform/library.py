#!/usr/bin/python3
"""Conformance of the library: every function of the library against NumPy, in f64, on the reference evaluator.

    library.py --nnc build/nnc --library frontends/nnc/nn.nnc learning.nnc ... [--target T ...] [--cc CC]

A case is a call, its inputs, the params it declares, and what NumPy makes of them.  A function without a case fails.
With targets the cases of those functions that loop, draw, or have many parts are also built into one model for each.
Speaks TAP: one result per function, then one per target.
"""

import argparse
import json
import math
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import numpy as np

import arrays
import images
import layers
import learning
import matrices
import numeric
from generators import unit

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "emitted"))
import build

RANDOM = np.random.Generator(np.random.Philox(7))
TYPES = {"float64": ("f64", "F64"), "float32": ("f32", "F32"), "int64": ("i64", "I64"), "int32": ("i32", "I32"),
         "uint8": ("u8", "U8"), "int8": ("i8", "I8"), "int16": ("i16", "I16"), "uint16": ("u16", "U16"), "uint32": ("u32", "U32"),
         "uint64": ("u64", "U64"), "bool": ("bool", "BOOL")}
TOLERANCE = 1e-12

erf = np.vectorize(math.erf, otypes=[np.float64])


def normal(*shape):
    return RANDOM.normal(size=shape) * 2


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def log_softmax(x):
    return x - x.max(-1, keepdims=True) - np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True))


def correlate(x, w, stride=1, pad=0, dilation=1, groups=1):
    """2-D cross-correlation by its definition."""
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    n, c, height, width = x.shape
    o, per_group, kh, kw = w.shape
    oh, ow = [(e - (k - 1) * dilation - 1) // stride + 1 for e, k in ((height, kh), (width, kw))]
    y = np.zeros((n, o, oh, ow))
    for i in range(oh):
        for j in range(ow):
            window = x[:, :, i * stride:i * stride + kh * dilation:dilation, j * stride:j * stride + kw * dilation:dilation]
            for k in range(o):
                first = k // (o // groups) * per_group
                y[:, k, i, j] = (window[:, first:first + per_group] * w[k]).sum((1, 2, 3))
    return y


def channels(v, rank=4):
    return v.reshape([-1] + [1] * (rank - 2))


def standardize(x, axis, eps):
    return (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + eps)


def heads_of(x, heads):
    n, t, d = x.shape
    return x.reshape(n, t, heads, d // heads).transpose(0, 2, 1, 3)


def merged(x):
    n, h, t, k = x.shape
    return x.transpose(0, 2, 1, 3).reshape(n, t, h * k)


def attend(q, k, v, mask=0.0):
    return softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]) + mask) @ v


def self_attention(x, heads, mask, p):
    q, k, v = (heads_of(x @ p[f"attention.{n}.weight"] + p[f"attention.{n}.bias"], heads) for n in ("query", "key", "value"))
    return merged(attend(q, k, v, mask)) @ p["attention.output.weight"] + p["attention.output.bias"]


X = normal(3, 5)
IMAGE = normal(2, 4, 5, 6)
NIBBLES = RANDOM.integers(0, 256, (5, 3, 2)).astype(np.uint8)
ROWS = normal(2, 3, 8)
UNSEEN = np.where(np.arange(3)[:, None] == 1, -np.inf, np.zeros((3, 5)))   # the second row sees nothing
TAIL = np.array([-800.0, -40.0, -1.0, -1e-9, -0.0, 1e-9, 1.0, 3.0, 40.0, 800.0])


def dense_params(name, n, m):
    return {f"{name}.weight": normal(n, m), f"{name}.bias": normal(m)}


def norm_params(name, c):
    return {f"{name}.scale": normal(c), f"{name}.bias": normal(c)}


ATTENTION = {k: v for n in ("query", "key", "value", "output") for k, v in dense_params(f"attention.{n}", 8, 8).items()}
BATCH = {**norm_params("batch_norm", 4), "batch_norm.mean": normal(4), "batch_norm.variance": np.abs(normal(4))}
DROPPED = normal(4, 9)
KEPT = unit(5, DROPPED.size).reshape(DROPPED.shape) >= np.float32(0.3)
CLASSES = np.array([1, 0, 4])

# function: [(call, inputs, params, wanted(inputs..., params))]
# Recurrent layers: params by name, with a prefix, and the network step by step.

SEQUENCE = normal(6, 3, 4) / 2


def recurrent_params(prefix, gates, biased, width=5, depth=4):
    params = {f"{prefix}.input.weight": normal(depth, gates * width) / 4, f"{prefix}.input.bias": normal(gates * width) / 4,
              f"{prefix}.hidden.weight": normal(width, gates * width) / 4}
    return {**params, f"{prefix}.hidden.bias": normal(gates * width) / 4} if biased else params


def weights_alone(params):
    return {name: values for name, values in params.items() if not name.endswith(".bias")}


def halves(packed, scale, zero):
    """Numbers of 4 bits in blocks of 4, of which the first 11 or 12 count."""
    numbers = np.stack([packed & 15, packed >> 4], -1).reshape(*packed.shape[:2], -1)
    wide = ((numbers - zero) * scale[..., None]).reshape(packed.shape[0], -1)
    return wide[:, :11] if np.isscalar(zero) else wide


def affine(x, p, name):
    return x @ p[f"{name}.weight"] + p.get(f"{name}.bias", 0)


def both_ways(layer, prefix):
    return lambda xs, p: np.concatenate([layer(xs, p, f"{prefix}.forward"), layer(xs[::-1], p, f"{prefix}.backward")[::-1]], -1)


def rnn(xs, p, prefix="rnn"):
    h, ys = np.zeros((3, 5)), []
    for x in xs:
        h = np.tanh(affine(x, p, f"{prefix}.input") + affine(h, p, f"{prefix}.hidden"))
        ys.append(h)
    return np.array(ys)


def lstm(xs, p, prefix="lstm"):
    h, c, ys = np.zeros((3, 5)), np.zeros((3, 5)), []
    see = [p.get(f"{prefix}.{gate}_peephole.weight", 0) for gate in ("input", "forget", "output")]
    for x in xs:
        z = affine(x, p, f"{prefix}.input") + affine(h, p, f"{prefix}.hidden")
        i, f, g, o = np.split(z, 4, axis=-1)
        c = sigmoid(f + c * see[1]) * c + sigmoid(i + c * see[0]) * np.tanh(g)
        h = sigmoid(o + c * see[2]) * np.tanh(c)
        ys.append(h)
    return np.array(ys)


def gru(xs, p, prefix="gru"):
    h, ys = np.zeros((3, 5)), []
    for x in xs:
        xr, xu, xn = np.split(affine(x, p, f"{prefix}.input"), 3, axis=-1)
        hr, hu, hn = np.split(affine(h, p, f"{prefix}.hidden"), 3, axis=-1)
        u = sigmoid(xu + hu)
        h = (1 - u) * np.tanh(xn + sigmoid(xr + hr) * hn) + u * h
        ys.append(h)
    return np.array(ys)


PEEPHOLES = {**recurrent_params("lstm", 4, False),
             **{f"lstm.{gate}_peephole.weight": normal(5) for gate in ("input", "forget", "output")}}
BOTH_WAYS = {**recurrent_params("lstm.forward", 4, False), **recurrent_params("lstm.backward", 4, False)}

def linear_attention(q, k, v, memory, decay=None, beta=None, scale=None):
    """Step by step; the results, and the memory at the end."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    y = []
    for t in range(q.shape[2]):
        kt, vt = k[:, :, t], v[:, :, t]
        memory = memory if decay is None else memory * np.exp(decay[:, :, t])[..., None]
        if beta is not None:
            vt = beta[:, :, t] * (vt - np.einsum("nhde,nhd->nhe", memory, kt))
        memory = memory + kt[..., None] * vt[..., None, :]
        y.append(np.einsum("nhd,nhde->nhe", q[:, :, t], np.repeat(memory, q.shape[1] // k.shape[1], 1)) * scale)
    return np.stack(y, 2), memory


STEPS = [normal(2, 4, 5, 3), normal(2, 2, 5, 3), normal(2, 2, 5, 6), normal(2, 2, 3, 6)]
DECAYS, RATES = -np.abs(normal(2, 2, 5, 1)), np.abs(normal(2, 1, 5, 1)) / 4
LINEAR = [
    ("(y, m) = linear_attention(x0, x1, x2, x3)", STEPS, {}, lambda *a: linear_attention(*a[:4])[0]),
    ("(z, y) = linear_attention(x0, x1, x2, x3, decay = x4, scale = 0.5)", [*STEPS, DECAYS], {}, lambda *a: linear_attention(*a[:5], scale=0.5)[1]),
    ("(y, m) = linear_attention(x0, x1, x2, x3, beta = x4)", [*STEPS, RATES], {}, lambda *a: linear_attention(*a[:4], beta=a[4])[0]),
    ("(y, m) = linear_attention(x0, x1, x2, x3, x4, x5)", [*STEPS, DECAYS, RATES], {}, lambda *a: linear_attention(*a[:6])[0]),
]

def nadam(x, g, p):
    now, then = (0.9 * (1 - 0.5 * 0.96 ** (t * 4e-3)) for t in (1, 2))
    return x - 0.1 * (g * (1 - now) / (1 - now) + 0.1 * g * then / (1 - now * then)) / (np.abs(g) + 1e-8)


def adafactor(x, g, p):
    s = g / np.sqrt((g * g).mean(1, keepdims=True) * (g * g).mean(0) / (g * g).mean())
    return x - s * 0.1 * np.sqrt((x * x).mean()) / max(np.sqrt((s * s).mean()), 1)


def adafactor_of_vector(x, g, p):
    return x * (1 - 0.005) - np.sign(g) * 0.01 * np.sqrt((x * x).mean())


CASES = {
    "rnn": [("(y, h) = rnn(x0, 5)", [SEQUENCE], recurrent_params("rnn", 1, False), rnn),
            ("(y, h) = rnn(x0, 5, with_bias = false)", [SEQUENCE], weights_alone(recurrent_params("rnn", 1, False)), rnn),
            ("(y, h) = rnn(x0, 5, bidirectional = true)", [SEQUENCE],
             {**recurrent_params("rnn.forward", 1, False), **recurrent_params("rnn.backward", 1, False)}, both_ways(rnn, "rnn"))],
    "lstm": [("(y, h, c) = lstm(x0, 5)", [SEQUENCE], recurrent_params("lstm", 4, False), lstm),
             ("(y, h, c) = lstm(x0, 5, peephole = true)", [SEQUENCE], PEEPHOLES, lstm),
             ("(y, h, c) = lstm(x0, 5, bidirectional = true)", [SEQUENCE], BOTH_WAYS, both_ways(lstm, "lstm")),
             ("(y, h, c) = lstm(x0, 5, bidirectional = true, with_bias = false)", [SEQUENCE], weights_alone(BOTH_WAYS),
              both_ways(lstm, "lstm"))],
    "see": [("see(x0, x1)", [X, normal(3, 5)], {"see.weight": normal(5)}, lambda x, c, p: x + c * p["see.weight"])],
    "gru": [("(y, h) = gru(x0, 5)", [SEQUENCE], recurrent_params("gru", 3, True), gru),
            ("(y, h) = gru(x0, 5, with_bias = false)", [SEQUENCE], weights_alone(recurrent_params("gru", 3, True)), gru),
            ("(y, h) = gru(x0, 5, bidirectional = true)", [SEQUENCE],
             {**recurrent_params("gru.forward", 3, True), **recurrent_params("gru.backward", 3, True)}, both_ways(gru, "gru"))],
    "flatten": [("flatten(x0)", [IMAGE], {}, lambda x, p: x.reshape(2, 120)),
                ("flatten(x0, axis = 2)", [IMAGE], {}, lambda x, p: x.reshape(2, 4, 30)),
                ("flatten(x0, axis = 0)", [X], {}, lambda x, p: x.reshape(15))],
    "pair": [("max_pool(x0, window = pair(2), stride = 1) + max_pool(x0, window = pair([2, 2]), stride = 1)", [IMAGE], {},
              lambda x, p: 2 * np.max([x[:, :, i:4 + i, j:5 + j] for i in (0, 1) for j in (0, 1)], axis=0))],
    "unsqueeze": [("unsqueeze(x0, 1)", [X], {}, lambda x, p: x[:, None]),
                  ("unsqueeze(x0, -1)", [X], {}, lambda x, p: x[..., None])],
    "squeeze": [(f"squeeze(x0{axes})", [np.arange(6.0).reshape(1, 3, 1, 2, 1)], {}, lambda x, p, at=at: np.squeeze(x, at))
                for axes, at in (("", None), (", [0]", 0), (", -1", 4), (", [-1, 2]", (2, 4)), (", axes = [0, 2, 4]", (0, 2, 4)))],
    "deviation": [("deviation(x0)", [X], {}, lambda x, p: x.std()),
                  ("deviation(x0, axes = 1, keep = true)", [X], {}, lambda x, p: x.std(1, keepdims=True))],
    "log_add_exp": [("log_add_exp(x0, x1)", [X * 100, 1 - X], {}, lambda x, y, p: np.logaddexp(x, y)),
                    ("log_add_exp(x0, x1)", [np.array([np.inf, -np.inf, 3.0]), np.array([np.inf, -np.inf, 3.0])], {}, lambda x, y, p: np.logaddexp(x, y))],
    "angle": [("angle(x0, x1)", [a, b], {}, lambda a, b, p: np.arctan2(a, b)) for a, b in (
        (np.sin(3.0 * X), np.cos(5.0 * X)), (X[:, :1], X[0] - 0.1),
        (np.array([0.0, 1.0, -1.0, 0.0, 0.0, 2.0, -np.inf]), np.array([0.0, 0.0, 0.0, 1.0, -1.0, -2.0, 1.0])))],
    "mean": [("mean(x0)", [X], {}, lambda x, p: x.mean()),
             ("mean(x0, axes = [1, -1])", [IMAGE], {}, lambda x, p: x.mean((1, 3))),
             ("mean(x0, 0, true)", [X], {}, lambda x, p: x.mean(0, keepdims=True))],
    "variance": [("variance(x0)", [X], {}, lambda x, p: x.var()),
                 ("variance(x0, axes = 1, keep = true)", [X], {}, lambda x, p: x.var(1, keepdims=True))],
    "global_avg_pool": [("global_avg_pool(x0)", [IMAGE], {}, lambda x, p: x.mean((2, 3))),
                        ("global_avg_pool(x0, keep = true)", [IMAGE], {}, lambda x, p: x.mean((2, 3), keepdims=True))],
    "global_max_pool": [("global_max_pool(x0)", [IMAGE], {}, lambda x, p: x.max((2, 3)))],
    "root_of_squares": [("root_of_squares(x0)", [X * X], {}, lambda x, p: np.sqrt(x))],
    "l2_norm": [("l2_norm(x0, axes = 1)", [X], {}, lambda x, p: np.sqrt((x * x).sum(1)))],
    "logsumexp": [("logsumexp(x0, axes = 1)", [np.zeros((2, 0))], {}, lambda x, p: np.full(2, -np.inf)),
                  ("logsumexp(x0, axes = -1)", [X * 300], {}, lambda x, p: np.logaddexp.reduce(x, -1)),
                  ("logsumexp(x0, axes = 0, keep = true)", [X], {}, lambda x, p: np.logaddexp.reduce(x, 0)[None]),
                  ("logsumexp(x0, axes = 1)", [np.array([[-np.inf] * 3, [-np.inf, 0, 1], [np.inf, 1, 2]])], {},
                   lambda x, p: np.logaddexp.reduce(x, 1)),
                  ("logsumexp(x0)", [X], {}, lambda x, p: np.log(np.exp(x).sum()))],
    "clip": [("clip(x0, -1.0, 2.0)", [TAIL], {}, lambda x, p: np.clip(x, -1, 2))],
    "relu6": [("relu6(x0)", [TAIL], {}, lambda x, p: np.clip(x, 0, 6))],
    "leaky_relu": [("leaky_relu(x0, slope = 0.2)", [TAIL], {}, lambda x, p: np.where(x >= 0, x, 0.2 * x))],
    "prelu": [("prelu(x0)", [IMAGE], {"prelu.slope": normal(4)},
               lambda x, p: np.where(x >= 0, x, x * channels(p["prelu.slope"])))],
    "elu": [("elu(x0, alpha = 0.5)", [TAIL], {}, lambda x, p: np.where(x > 0, x, 0.5 * np.expm1(np.minimum(x, 0))))],
    "selu": [("selu(x0)", [TAIL], {},
              lambda x, p: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))))],
    "gelu": [("gelu(x0)", [TAIL], {}, lambda x, p: 0.5 * x * (1 + erf(x / math.sqrt(2))))],
    "gelu_tanh": [("gelu_tanh(x0)", [TAIL], {},
                   lambda x, p: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))],
    "silu": [("silu(x0)", [X], {}, lambda x, p: x * sigmoid(x))],
    "swish": [("swish(x0)", [X], {}, lambda x, p: x * sigmoid(x)),
              ("swish(x0, beta = 1.5)", [X], {}, lambda x, p: x * sigmoid(1.5 * x))],
    "hard_sigmoid": [("hard_sigmoid(x0)", [TAIL], {}, lambda x, p: np.clip(x / 6 + 0.5, 0, 1))],
    "hard_swish": [("hard_swish(x0)", [TAIL], {}, lambda x, p: x * np.clip(x / 6 + 0.5, 0, 1))],
    "hard_tanh": [("hard_tanh(x0)", [TAIL], {}, lambda x, p: np.clip(x, -1, 1))],
    "softplus": [("softplus(x0)", [TAIL], {}, lambda x, p: np.logaddexp(x, 0))],
    "softsign": [("softsign(x0)", [TAIL], {}, lambda x, p: x / (1 + np.abs(x)))],
    "mish": [("mish(x0)", [TAIL], {}, lambda x, p: x * np.tanh(np.logaddexp(x, 0)))],
    "log_sigmoid": [("log_sigmoid(x0)", [TAIL], {}, lambda x, p: -np.logaddexp(-x, 0))],
    "softmax": [("softmax(x0)", [X * 300], {}, lambda x, p: softmax(x)),
                ("softmax(x0, axis = 1)", [IMAGE], {}, lambda x, p: softmax(x, 1))],
    "safe_softmax": [("safe_softmax(select(x0 > 0.0, x0, -inf), axis = 1)", [x], {}, lambda x, p: softmax(np.where(x > 0, x, -1e30), 1) * (x > 0).any(1, keepdims=True))
                     for x in [np.array([[0.5, -1.0, 2.0], [-1.0, -2.0, -3.0], [1.0, 2.0, 3.0]])]],
    "log_softmax": [("log_softmax(x0)", [X * 300], {}, lambda x, p: log_softmax(x)),
                    ("log_softmax(x0, axis = 0)", [np.zeros((0, 3))], {}, lambda x, p: x)],
    "glu": [("glu(x0, axis = 1)", [IMAGE], {}, lambda x, p: x[:, :2] * sigmoid(x[:, 2:]))],
    "dense": [("dense(x0, 4)", [ROWS], dense_params("dense", 8, 4), lambda x, p: x @ p["dense.weight"] + p["dense.bias"]),
              ("dense(x0, 4, with_bias = false)", [ROWS], {"dense.weight": normal(8, 4)},
               lambda x, p: x @ p["dense.weight"])],
    "conv": [("conv(x0, 6, [3, 2], stride = 2, pad = 1, groups = 2)", [IMAGE],
              {"conv.weight": normal(6, 2, 3, 2), "conv.bias": normal(6)},
              lambda x, p: correlate(x, p["conv.weight"], 2, 1, 1, 2) + channels(p["conv.bias"])),
             ("conv(x0, 3, 2, dilation = 2, with_bias = false)", [IMAGE], {"conv.weight": normal(3, 4, 2, 2)},
              lambda x, p: correlate(x, p["conv.weight"], dilation=2))],
    "depthwise_conv": [("depthwise_conv(x0, 3, pad = 1)", [IMAGE],
                        {"depthwise_conv.weight": normal(4, 1, 3, 3), "depthwise_conv.bias": normal(4)},
                        lambda x, p: correlate(x, p["depthwise_conv.weight"], 1, 1, 1, 4)
                        + channels(p["depthwise_conv.bias"])),
                       ("depthwise_conv(x0, 3, stride = 2, with_bias = false)", [IMAGE[:, :, 0]],
                        {"depthwise_conv.weight": np.linspace(-1, 2, 12).reshape(4, 1, 3)},
                        lambda x, p: correlate(x[:, :, None], p["depthwise_conv.weight"][:, :, None], 2, groups=4)[:, :, 0])],
    "dropout": [("dropout(x0, 0.3, 5)", [DROPPED], {}, lambda x, p: np.where(KEPT, x / 0.7, 0)),
                ("dropout(x0, 1, 5)", [DROPPED], {}, lambda x, p: np.zeros(x.shape)),
                ("dropout(x0, 0.0, 5)", [DROPPED], {}, lambda x, p: x)],
    "embedding": [("embedding(x0, 9, 3)", [np.array([[0, 8], [3, 3]])],
                   {"embedding.table": normal(9, 3).astype(np.float32)}, lambda x, p: p["embedding.table"][x])],
    "batch_norm": [("batch_norm(x0, eps = 0.1)", [IMAGE], BATCH,
                    lambda x, p: (x - channels(p["batch_norm.mean"])) / np.sqrt(channels(p["batch_norm.variance"]) + 0.1)
                    * channels(p["batch_norm.scale"]) + channels(p["batch_norm.bias"])),
                   ("batch_norm(x0, eps = 0.1, training = true)", [IMAGE], BATCH,
                    lambda x, p: standardize(x, (0, 2, 3), 0.1)
                    * channels(p["batch_norm.scale"]) + channels(p["batch_norm.bias"]))],
    "standardize": [("standardize(x0, [0, 2], eps = 0.1)", [ROWS], {}, lambda x, p: standardize(x, (0, 2), 0.1))],
    "layer_norm": [("layer_norm(x0, eps = 0.1)", [ROWS], norm_params("layer_norm", 8),
                    lambda x, p: standardize(x, -1, 0.1) * p["layer_norm.scale"] + p["layer_norm.bias"])],
    "rms_norm": [("rms_norm(x0, eps = 0.1)", [ROWS], {"rms_norm.scale": normal(8)},
                  lambda x, p: x / np.sqrt((x * x).mean(-1, keepdims=True) + 0.1) * p["rms_norm.scale"])],
    "group_norm": [("group_norm(x0, 2, eps = 0.1)", [IMAGE], norm_params("group_norm", 4),
                    lambda x, p: standardize(x.reshape(2, 2, 60), -1, 0.1).reshape(x.shape)
                    * channels(p["group_norm.scale"]) + channels(p["group_norm.bias"]))],
    "instance_norm": [("instance_norm(x0, eps = 0.1)", [IMAGE], norm_params("instance_norm.norm", 4),
                       lambda x, p: standardize(x, (2, 3), 0.1) * channels(p["instance_norm.norm.scale"])
                       + channels(p["instance_norm.norm.bias"]))],
    "split_heads": [("split_heads(x0, 4)", [ROWS], {}, lambda x, p: heads_of(x, 4))],
    "merge_heads": [("merge_heads(x0)", [IMAGE], {}, lambda x, p: merged(x))],
    "scaled_dot_product": [("scaled_dot_product(x0, x1, x2)", [normal(2, 2, 3, 4), normal(2, 2, 5, 4), normal(2, 2, 5, 6)],
                            {}, lambda q, k, v, p: attend(q, k, v)),
                           ("scaled_dot_product(x0, x1, x2, scale = 0.25)", [normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 6)],
                            {}, lambda q, k, v, p: softmax(q @ k.swapaxes(-1, -2) * 0.25) @ v),
                           ("scaled_dot_product(x0, x1, x2, x3, safe = true)", [numeric.normal(2, 3, 4), numeric.normal(2, 5, 4), numeric.normal(2, 5, 6), UNSEEN],
                            {}, lambda q, k, v, m, p: np.where(m[:, :1] == 0, softmax(q @ k.swapaxes(-1, -2) / 2) @ v, 0))]
    + [("scaled_dot_product(x0, x1, x2, causal = true)", [matrices.normal(2, t, 4), matrices.normal(2, 5, 4), matrices.normal(2, 5, 6)], {},
        lambda q, k, v, p, t=t: softmax(np.where(np.tri(t, 5, 5 - t) > 0, q @ k.swapaxes(-1, -2) / 2, -np.inf)) @ v) for t in (1, 3, 5)],
    "log10": [("log10(x0)", [10.0 ** np.arange(-5, 6)], {}, lambda x, p: np.log10(x))],
    "small": [("y = f64(small(0.25) + small(0))", [], {}, lambda p: np.array(0.25))],
    "cosine_similarity": [("cosine_similarity(x0, x1, 0)", [matrices.normal(4, 3), matrices.normal(4, 3)], {},
                           lambda x, y, p: (x * y).sum(0) / np.linalg.norm(x, axis=0) / np.linalg.norm(y, axis=0)),
                          ("cosine_similarity(x0, x1)", [np.zeros((2, 3)), matrices.normal(2, 3)], {}, lambda x, y, p: np.zeros(2))],
    "rotary": [("rotary(x0, x1, x2)", [numeric.normal(2, 3, 8), numeric.normal(3, 8), numeric.normal(3, 8)], {},
                lambda x, c, s, p: x * c + np.concatenate([-x[..., 4:], x[..., :4]], -1) * s)],
    "matmul_nibbles": [("matmul_nibbles(x0, x1, x2)", [normal(2, 11), NIBBLES, normal(5, 3)], {}, lambda x, w, s, p: x @ halves(w, s, 8.0).T),
                       ("matmul_nibbles(x0, x1, x2, x3)", [normal(3, 2, 12), NIBBLES, normal(5, 3), normal(5, 3)], {},
                        lambda x, w, s, z, p: x @ halves(w, s, z[..., None]).T)],
    "linear_attention": LINEAR,
    "attention": [("attention(x0, 2)", [ROWS], ATTENTION, lambda x, p: self_attention(x, 2, 0.0, p)),
                  ("attention(x0, 4, x1)", [ROWS, normal(2, 1, 1, 3)], ATTENTION,
                   lambda x, mask, p: self_attention(x, 4, mask, p)),
                  ("attention(x0, 4, causal = true)", [ROWS], ATTENTION,
                   lambda x, p: self_attention(x, 4, np.where(np.tri(x.shape[1]) > 0, 0, -np.inf), p))],
    "cross_entropy": [("cross_entropy(x0, x1)", [X * 100, CLASSES], {}, lambda x, c, p: -log_softmax(x)[np.arange(3), c]),
                      ("cross_entropy(x0, x1)", [X, softmax(normal(3, 5))], {},
                       lambda x, q, p: -(log_softmax(x) * q).sum(-1)),
                      # a student and its teacher: two softmaxes, of which the gradient knows which is whose
                      ("cross_entropy(x0, softmax(x1))", [X, X[::-1] / 2], {}, lambda x, t, p: -(log_softmax(x) * softmax(t)).sum(-1)),
                      ("grad(cross_entropy(x0, softmax(x1)), wrt = x0)", [X, X[::-1] / 2], {}, lambda x, t, p: softmax(x) - softmax(t)),
                      ("grad(cross_entropy(x0, softmax(x1)), wrt = x1)", [X, X[::-1] / 2], {}, lambda x, t, p: -softmax(t)
                       * (log_softmax(x) - (softmax(t) * log_softmax(x)).sum(-1, keepdims=True)))] + learning.CROSS_ENTROPY,
    "binary_cross_entropy": [("binary_cross_entropy(x0, x1)", [X, sigmoid(normal(3, 5))], {},
                              lambda x, t, p: -(t * np.log(sigmoid(x)) + (1 - t) * np.log(sigmoid(-x))))],
    "mse": [("mse(x0, x1)", [X, normal(3, 5)], {}, lambda x, t, p: ((x - t) ** 2).mean())],
    "target_of": [("target_of(x0, x1)", [X, X[:, :1]], {}, lambda x, t, p: np.broadcast_to(t, x.shape)),
                  ("target_of(reduce_sum(x0), x1)", [X, X[0]], {}, lambda x, t, p: t),
                  ("target_of(x0, 0.25)", [X], {}, lambda x, p: np.full_like(x, 0.25))],
    "mae": [("mae(x0, x1)", [X, normal(3, 5)], {}, lambda x, t, p: np.abs(x - t).mean())],
    "huber": [("huber(x0, x1, delta = 1.5)", [X, normal(3, 5)], {},
               lambda x, t, p: np.where(np.abs(x - t) <= 1.5, (x - t) ** 2 / 2, 1.5 * (np.abs(x - t) - 0.75)))],
    "kl_divergence": [("kl_divergence(log_softmax(x0), x1)", [X, softmax(normal(3, 5))], {},
                       lambda x, p, _: (p * (np.log(p) - log_softmax(x))).sum(-1))],
    "hinge": [("hinge(x0, x1)", [X, np.sign(normal(3, 5))], {}, lambda x, t, p: np.maximum(1 - t * x, 0))],
    "focal": [("focal(x0, x1, gamma = 1.5)", [X, np.round(sigmoid(normal(3, 5)))], {},
               lambda x, t, p: np.abs(t - sigmoid(x)) ** 1.5 * -(t * np.log(sigmoid(x)) + (1 - t) * np.log(sigmoid(-x))))],
    "cosine_distance": [("cosine_distance(x0, x1)", [X, normal(3, 5)], {},
                         lambda x, y, p: 1 - (x * y).sum(-1) / np.linalg.norm(x, axis=-1) / np.linalg.norm(y, axis=-1))],
    "triplet": [("triplet(x0, x1, x2)", [X, X + normal(3, 5) / 9, normal(3, 5)], {},
                 lambda x, near, far, p: np.maximum(((x - near) ** 2).sum(-1) - ((x - far) ** 2).sum(-1) + 1, 0))],
    "vjp": [("vjp(tanh(x0), x0, x1)", [X, normal(3, 5)], {}, lambda x, v, p: (1 - np.tanh(x) ** 2) * v),
            ("vjp(x0 @ x1, x1, x2)", [X, normal(5, 2), normal(3, 2)], {}, lambda x, y, v, p: x.T @ v)],
    "jvp": [("jvp(tanh(x0), x0, x1)", [X, normal(3, 5)], {}, lambda x, v, p: (1 - np.tanh(x) ** 2) * v),
            ("jvp(softmax(x0) @ x1, x0, x2)", [X, normal(5, 2), normal(3, 5)], {}, lambda x, y, v, p:
             (softmax(x) * (v - (softmax(x) * v).sum(-1, keepdims=True))) @ y),
            ("jvp(x0 @ x1, wrt = [x0, x1], tangent = [x2, x3])", [X, normal(5, 2), normal(3, 5), normal(5, 2)], {},
             lambda x, y, v, u, p: v @ y + x @ u)],
    "hvp": [("hvp(reduce_sum(x0 * x0 * x0), x0, x1)", [X, normal(3, 5)], {}, lambda x, v, p: 6 * x * v)],
    "jacobian": [("jacobian(x1 @ tanh(x0), x0)", [normal(4), normal(3, 4)], {}, lambda x, m, p: m * (1 - np.tanh(x) ** 2))],
    "hessian": [("hessian(reduce_sum(x0 * (x1 @ x0)), x0)", [normal(4), normal(4, 4)], {}, lambda x, m, p: m + m.T)],
    "step_count": [("step_count()", [], {}, lambda p: np.array(1))],
    # The first step of each; tests/emitted/training.py takes many.
    "sgd": [("sgd(x0, x1, rate = 0.1, decay = 0.5)", [X, normal(3, 5)], {}, lambda x, g, p: x - 0.1 * (g + 0.5 * x))],
    "momentum": [("momentum(x0, x1, 0.1)", [X, normal(3, 5)], {}, lambda x, g, p: x - 0.1 * g),
                 ("momentum(x0, x1, 0.1, nesterov = true)", [X, normal(3, 5)], {}, lambda x, g, p: x - 0.19 * g)],
    "adagrad": [("adagrad(x0, x1, 0.1)", [X, normal(3, 5)], {}, lambda x, g, p: x - 0.1 * g / (np.abs(g) + 1e-10))],
    "rmsprop": [("rmsprop(x0, x1, 0.1, mass = 0.75)", [X, normal(3, 5)], {},
                 lambda x, g, p: x - 0.1 * g / (np.abs(g) / 2 + 1e-8))],
    "adam_step": [(f"(y, m1, v1) = adam_step(x0, x1, x2, 0.9, 0.99, 1e-8, {t})", [X, X * X, normal(3, 5)], {}, lambda m, v, g, p, t=t:
                   (0.9 * m + 0.1 * g) / (1 - 0.9**t) / (np.sqrt((0.99 * v + 0.01 * g * g) / (1 - 0.99**t)) + 1e-8))
                  for t in (1, 7)],
    "integer_range": [("(low, high) = integer_range(u16)\n    y = high - low", [], {}, lambda p: np.array(65535.0))],
    "straight_through": [("straight_through(x0, floor(x0), x0 > 0.0)", [X], {}, lambda x, p: np.floor(x)),
                         ("grad(reduce_sum(straight_through(x0, floor(x0), x0 > 0.0) * x0), wrt = x0)", [X], {},
                          lambda x, p: np.where(x > 0, x, 0) + np.floor(x)),
                         ("grad(reduce_sum(square(fake_quantize(f32(x0), 0.0078125, to = i8))), wrt = x0)", [X], {},
                          lambda x, p: np.where((np.round(x * 128) >= -128) & (np.round(x * 128) <= 127), np.round(x * 128) / 64, 0))],
    "axis_of": [("y = float(axis_of(-1, 3) * 10 + axis_of(1, 2))", [], {}, lambda p: np.array(21.0))],
    "one_of": [('y = 2.0 if one_of("b", ["a", "b"]) == "b" else 0.0', [], {}, lambda p: np.array(2.0))],
    "is_narrow": [(f"y = {v} if is_narrow({d}) else 0.0", [], {}, lambda p, v=v: np.array(v)) for d, v in [("f16", 1.0), ("bf16", 1.0)]]
                 + [("y = 1.0 if is_narrow(f32) else 0.0", [], {}, lambda p: np.array(0.0))],
    "wide_dtype": [("cast(x0, to = wide_dtype(x0.dtype)) + f64(cast(ones([3, 5], bf16), to = wide_dtype(bf16)) / 3.0)", [X], {},
                    lambda x, p: x + float(np.float32(1 / 3)))],
    "as_dtype": [("as_dtype(x0, f64) + f64(as_dtype(as_dtype(x0, f16), f32))", [X], {}, lambda x, p: x + x.astype("f2").astype("f8"))],
    "adam": [("adam(x0, x1, 0.1)", [X, normal(3, 5)], {},
              lambda x, g, p: x - 0.1 * g / (np.abs(g) + 1e-8))],
    "adamw": [("adamw(x0, x1, 0.1)", [X, normal(3, 5)], {},
               lambda x, g, p: x - 0.1 * (g / (np.abs(g) + 1e-8) + 0.01 * x))],
    "lamb": [("lamb(x0, x1, 0.1, eps = 1e-8, decay = 0.0)", [X, normal(3, 5)], {}, lambda x, g, p:
              x - 0.1 * np.linalg.norm(x) / np.linalg.norm(g / (np.abs(g) + 1e-8)) * g / (np.abs(g) + 1e-8))],
    "adadelta": [("adadelta(x0, x1, 0.5, mass = 0.75)", [X, layers.normal(3, 5)], {},
                  lambda x, g, p: x - 0.5 * np.sqrt(1e-6) / np.sqrt(g * g / 4 + 1e-6) * g)],
    "adamax": [("adamax(x0, x1, 0.1)", [X, layers.normal(3, 5)], {}, lambda x, g, p: x - 0.1 * g / (np.abs(g) + 1e-8))],
    "nadam": [("nadam(x0, x1, 0.1)", [X, layers.normal(3, 5)], {}, nadam)],
    "radam": [("radam(x0, x1, 0.1)", [X, layers.normal(3, 5)], {}, lambda x, g, p: x - 0.1 * g)],
    "adafactor": [("adafactor(x0, x1, 0.1)", [X, layers.normal(3, 5)], {}, adafactor), ("adafactor(x0, x1, decay = 0.5)", [X[0], layers.normal(5)], {}, adafactor_of_vector)],
    "lion": [("lion(x0, x1, 0.1, decay = 0.5)", [X, normal(3, 5)], {}, lambda x, g, p: x - 0.1 * (np.sign(g) + 0.5 * x))],
    "stepwise": [("stepwise(0.5, every = 3)", [], {}, lambda p: np.array(0.5))],
    "exponential": [("exponential(0.5, steps = 3)", [], {}, lambda p: np.array(0.5))],
    "cosine": [("cosine(0.5, steps = 3, least = 0.25)", [], {}, lambda p: np.array(0.5))],
    "linear": [("linear(0.5, steps = 3)", [], {}, lambda p: np.array(0.5))],
    "warm_up": [("warm_up(0.5, steps = 4)", [], {}, lambda p: np.array(0.125))],
    "ema": [("ema(x0, x1, 0.75, 5)", [X, normal(3, 5)], {}, lambda a, w, p: 0.75 * a + 0.25 * w),
            ("ema(x0, x1, 0.75, 2)", [X, normal(3, 5)], {}, lambda a, w, p: (a + w) / 2),
            ("ema(x0, x1)", [X, normal(3, 5)], {}, lambda a, w, p: w)],
    # The first run of each; tests/emitted/stages.py makes many.
    "accumulate": [("(gs, go) = accumulate([x0], 1)\n    y = gs[0]", [X], {}, lambda x, p: x)],
    "adapt_scale": [("state scale: f32[] = 4.0\n    (gs, go) = adapt_scale([x0], scale)\n    y = gs[0]", [X], {}, lambda x, p: x / 4)],
    **learning.CASES,
    **arrays.CASES,
    **images.CASES,
    **numeric.CASES,
    **matrices.CASES,
}


for function, more in layers.CASES.items():
    CASES[function] = CASES.get(function, []) + more


def first_steps_with_l1():
    """That each optimiser takes l1: as the gradient plus 0.25 * sign(x), or where decay is decoupled beside the step."""
    w, g = normal(3, 5), normal(3, 5)
    pull = lambda x, g: g + 0.25 * np.sign(x)
    coupled = {"sgd": lambda x, g: g, "momentum": lambda x, g: g, "adagrad": lambda x, g: np.sign(g),
               "rmsprop": lambda x, g: 10 * np.sign(g), "adam": lambda x, g: np.sign(g)}
    for name, step in coupled.items():
        CASES[name].append((f"{name}(x0, x1, 0.1, l1 = 0.25{', eps = 1e-14' if step(0, 2) in (1, 10) else ''})", [w, g], {},
                            lambda x, g, p, step=step: x - 0.1 * step(x, pull(x, g))))
    for name in ("adamw", "lion"):
        CASES[name].append((f"{name}(x0, x1, 0.1, l1 = 0.25, decay = 0.0{', eps = 1e-14' if name == 'adamw' else ''})", [w, g],
                            {}, lambda x, g, p: x - 0.1 * pull(x, np.sign(g))))
    CASES["lamb"].append(("lamb(x0, x1, 0.1, l1 = 0.25, decay = 0.0, eps = 1e-14)", [w, g], {}, lambda x, g, p:
                          x - 0.1 * np.linalg.norm(x) / np.linalg.norm(pull(x, np.sign(g))) * pull(x, np.sign(g))))


def first_steps_of_narrow_floats():
    """Of f16 and bf16, in which 1e-8 is 0 or 1 - 0.999 is: elements that no gradient reaches stay, others are as exact."""
    w, g = np.array([1.0, -2, 1, 4]), np.array([0.0, 0.5, -1, 1e-3])
    steps = {"adam": 1, "adamw": 1, "adagrad": 1, "rmsprop": 10}
    for dtype in ("f16", "bf16"):
        narrow = f"{{}}(cast(x0, to = {dtype}), cast(x1, to = {dtype}), 0.5{{}})"
        for name, length in steps.items():
            call = narrow.format(name, ", decay = 0.0")
            CASES[name].append((f"cast({call}, to = f64)", [w, g], {}, lambda x, g, p, n=length: x - 0.5 * n * np.sign(g)))
        CASES["lamb"].append((f"cast({narrow.format('lamb', ', decay = 0.0')}, to = f64)", [w * 0 + 1, w * 0 + [0, 0, 0, 2]], {},
                              lambda x, g, p: np.array([1.0, 1, 1, 0])))
        kept = 0.51171875 if dtype == "bf16" else 0.51220703125 # of 512 * (1 - 0.999)
        CASES["ema"].append((f"cast(ema(cast(x0, to = {dtype}), cast(x1, to = {dtype}), 0.999, 2000), to = f64)", [w * 0, w * 0 + 512],
                             {}, lambda a, w, p, kept=kept: a + kept))


def means_of_narrow_floats():
    """Sums and squares that f16 has no number for."""
    x = np.array([200.0, 0] * 500)
    want = {"mean": 100, "variance": 10000, "l2_norm": 4472, "standardize": np.sign(x - 100)}
    for name, y in want.items():
        call = f"{name}(cast(x0, to = f16){', 0' if name == 'standardize' else ''})"
        CASES[name].append((f"cast({call}, to = f64)", [x], {}, lambda x, p, y=y: np.array(y, float)))
    CASES["rms_norm"].append(("cast(rms_norm(cast(x0, to = f16)), to = f64)", [x], {}, lambda x, p: np.where(x > 0, 1.4140625, 0.0)))


first_steps_with_l1()
means_of_narrow_floats()
first_steps_of_narrow_floats()
# Built for targets, too.
BUILT = ["rnn", "lstm", "gru", "cross_entropy", *learning.CASES, *arrays.BUILT, *images.BUILT, *numeric.BUILT, *matrices.BUILT]


def save_weights(path, params):
    header, data = {}, b""
    for name, values in params.items():
        bytes_ = np.ascontiguousarray(values).tobytes()
        header[name] = {"dtype": TYPES[str(values.dtype)][1], "shape": list(values.shape),
                        "data_offsets": [len(data), len(data) + len(bytes_)]}
        data += bytes_
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def statement_of(call):
    return call if ") = " in call or call.startswith("y = ") else f"y = {call}"


def tolerance_of(call):
    return 1e-5 if call.startswith("gaussian") else TOLERANCE  # as drawn numbers are near


def apart(call, got, wanted, tolerance):
    """None, or how far."""
    if got.shape != wanted.shape:
        return f"{call}: shape {got.shape}, not {wanted.shape}"
    with np.errstate(invalid="ignore"):
        got, wanted = (np.asarray(a, np.float64 if a.dtype == bool else None) for a in (got, wanted))
        same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
        error = np.max(np.where(same, 0, np.abs(got - wanted) / np.maximum(1, np.abs(wanted))), initial=0)
    return None if error <= tolerance else f"{call}: off by {error}"


def run(nnc, folder, call, inputs, params, wanted):
    """None, or what is wrong."""
    statement = statement_of(call)
    formals = [f"x{i}: {TYPES[str(x.dtype)][0]}[{', '.join(map(str, x.shape))}]" for i, x in enumerate(inputs)]
    (folder / "m.nnc").write_text(f'nnc 1\nuse "nn"\ngraph m({", ".join(formals)}) -> (y) {{\n    {statement}\n}}\n')
    words = [nnc, "run", folder / "m.nnc", "--target", "reference", "--output", f"y={folder}/y.npy"]
    for i, x in enumerate(inputs):
        np.save(folder / f"x{i}.npy", x)
        words += ["--input", f"x{i}={folder}/x{i}.npy"]
    if params:
        save_weights(folder / "w.safetensors", params)
        words += ["--weights-from", folder / "w.safetensors"]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        return f"{call}: exit status {done.returncode}\n{done.stdout}"
    with np.errstate(all="ignore"):
        want = np.asarray(wanted(*inputs, params))
    return apart(call, np.load(folder / "y.npy"), want, tolerance_of(call))


def write_model(folder, cases):
    """One graph of all cases, each in a function of its own; its weights beside it."""
    text, takes, gives, body, weights = 'nnc 1\nuse "nn"\n', [], [], [], {}
    for n, (call, inputs, params, _) in enumerate(cases):
        x = [f"x{i}" for i in range(len(inputs))]
        text += f"fn case{n}({', '.join(x)}) -> (y) {{\n    {statement_of(call)}\n}}\n"
        takes += [f"c{n}_{name}: {TYPES[str(a.dtype)][0]}[{', '.join(map(str, a.shape))}]" for name, a in zip(x, inputs)]
        gives.append(f"y{n}")
        body.append(f"    y{n} = case{n}({', '.join(f'c{n}_{name}' for name in x)})\n")
        weights.update({f"case{n}.{name}": values for name, values in params.items()})
    (folder / "m.nnc").write_text(f"{text}graph m({', '.join(takes)}) -> ({', '.join(gives)}) {{\n{''.join(body)}}}\n")
    save_weights(folder / "w.safetensors", weights)


def run_together(nnc, folder, cases):
    """What is wrong, a list: all cases in one graph, or, where that gives an error, each by itself, to say which"""
    write_model(folder, cases)
    words = [nnc, "run", folder / "m.nnc", "--target", "reference", "--weights-from", folder / "w.safetensors"]
    for n, (_, inputs, _, _) in enumerate(cases):
        words += ["--output", f"y{n}={folder}/y{n}.npy"]
        for i, x in enumerate(inputs):
            np.save(folder / f"c{n}_x{i}.npy", x)
            words += ["--input", f"c{n}_x{i}={folder}/c{n}_x{i}.npy"]
    if len(cases) < 2 or subprocess.run(words, capture_output=True).returncode:
        return [run(nnc, folder, *case) for case in cases]
    wrong = []
    for n, (call, inputs, params, wanted) in enumerate(cases):
        with np.errstate(all="ignore"):
            want = np.asarray(wanted(*inputs, params))
        wrong.append(apart(call, np.load(folder / f"y{n}.npy"), want, tolerance_of(call)))
    return wrong


def run_built(nnc, target, cc, folder):
    """None, or what is wrong: all cases of BUILT in one program."""
    cases = [case for name in BUILT for case in CASES[name]]
    write_model(folder, cases)
    error = build.emit(nnc, folder / "m.nnc", folder, target, "--weights", "c", "--weights-from", folder / "w.safetensors")
    error = error or build.compile_source(folder / "m.c", target, cc, "-O1")
    error = error or build.link(folder, ["m"], [folder / "m.o"], cc)
    if error:
        return error
    data, error = build.run(folder, b"".join(np.ascontiguousarray(x).tobytes() for case in cases for x in case[1]))
    if error:
        return error
    wrong, at = [], 0
    for call, inputs, params, wanted in cases:
        with np.errstate(all="ignore"):
            want = np.asarray(wanted(*inputs, params))
        kind = want.dtype if str(want.dtype) in TYPES else np.float64
        got = np.frombuffer(data, kind, want.size, at).reshape(want.shape)
        at += got.nbytes
        wrong.append(apart(call, got, want, 10 * tolerance_of(call)))
    return "\n".join(filter(None, wrong)) or None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nnc", required=True)
    parser.add_argument("--library", required=True, type=pathlib.Path, nargs="+")
    parser.add_argument("--target", nargs="*", default=[])
    parser.add_argument("--cc", default="gcc")
    options = parser.parse_args()
    text = "".join(path.read_text() for path in options.library)
    names = re.findall(r"^fn (\w+)\(", text, re.MULTILINE)
    print(f"1..{len(names) + len(options.target)}")
    with tempfile.TemporaryDirectory(prefix="nnc-library-") as folder:
        for number, name in enumerate(names, 1):
            cases = CASES.get(name, [])
            wrong = [w for w in run_together(options.nnc, pathlib.Path(folder), cases) if w] if cases else ["no case"]
            for line in "\n".join(wrong).splitlines():
                print("#", line)
            print("not ok" if wrong else "ok", number, "-", name, flush=True)
        for number, target in enumerate(options.target, len(names) + 1):
            if not build.available(target, options.cc):
                print(f"ok {number} - built for {target} # SKIP no {options.cc}, or the machine is no {target}")
                continue
            wrong = run_built(options.nnc, target, options.cc, pathlib.Path(folder))
            for line in (wrong or "").splitlines()[:20]:
                print("#", line)
            print("not ok" if wrong else "ok", number, "-", f"built for {target}", flush=True)


if __name__ == "__main__":
    main()
