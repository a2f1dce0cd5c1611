"""More ops of com.microsoft for contrib.py: what microsoft.py and steps.py compare with NumPy."""

import numpy

DICE = numpy.random.default_rng(11)


class Given(numpy.ndarray):
    """An operand that is known when running; others but the first are constants."""


def given(array):
    return numpy.asarray(array).view(Given)


def floats(*shape):
    return DICE.normal(size=shape).astype("f4")


def codes(kind, *shape):
    return DICE.integers(0, 256, shape).astype(kind)


def halved(operands, *which):
    """These operands as f16"""
    return [given(v.astype("f2")) if i in which and v is not None else v for i, v in enumerate(operands)]


# A result's name may end with its type.
MORE = {
    f"pool of {kind} whose channels come last, {i}": ("NhwcMaxPool", [codes(kind, 2, 7, 6, 3)], attributes, [f"y_{numpy.dtype(kind).name}"])
    for kind in ("u1", "i1")
    for i, attributes in enumerate([{"kernel_shape": [3, 3], "pads": [1, 0, 1, 1]}, {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
                                    {"kernel_shape": [2, 2], "dilations": [2, 2]}, {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}])
}
REGIONS = [floats(2, 3, 6, 5), given(numpy.array([[0.12, 0.21, 0.83, 0.94], [-0.17, 0.16, 1.33, 0.61], [0.91, 0.82, 0.13, 0.24]], "f4")), numpy.array([0, 1, 1], "i4")]
MORE |= {
    f"regions of {h} x {w}, {mode}": ("CropAndResize", [*REGIONS, numpy.array([h, w], "i4")], {"mode": mode, "extrapolation_value": -2.5}, ["y"])
    for h, w in ((4, 3), (1, 4), (7, 1)) for mode in ("bilinear", "nearest")
}
MORE |= {
    "padding of a transposed convolution": ("ConvTransposeWithDynamicPads", [floats(1, 4, 5, 6), floats(4, 3, 3, 3), numpy.array([1, 0, 1, 2]), floats(6)],
                                            {"strides": [2, 2], "group": 2, "output_padding": [1, 0]}, ["y"]),
    **{f"products by {name}, in blocks of {size}": ("MatMulBnb4", [floats(2, 3, 33), codes("u1", 116), abs(floats(-(-231 // size)))],
                                                    {"K": 33, "N": 7, "block_size": size, "quant_type": kind}, ["y"])
       for kind, name in enumerate(("FP4", "NF4")) for size in (16, 32, 64)},
    "products of 16 bits": ("MatMulInteger16", [DICE.integers(-999, 999, (2, 3, 4), dtype="i2"), DICE.integers(-999, 999, (4, 5), dtype="i2")], {}, ["y_int32"]),
    "a scale before silu": ("ScaledSiLU", [floats(2, 3)], {"alpha": 1.7}, ["y"]),
    "a scale before silu of halves": ("ScaledSiLU", [floats(2, 3).astype("f2"), numpy.float32(0.3)], {}, ["y_float16"]),
    "norms of branches": ("BranchwiseRMSNorm", [floats(2, 3, 4), floats(12)], {"epsilon": 0.01}, ["y"]),
    "norms of branches of halves": ("BranchwiseRMSNorm", [floats(2, 12).astype("f2"), floats(4)], {"num_branches": 3}, ["y_float16"]),
}

THREE = given(DICE.integers(0, 9, (3, 2, 4)))
for layout, section in enumerate(([1, 2, 3], [1, 4, 1])):
    for neighbours in (0, 1):
        attributes = {"mrope_section": section, "mrope_layout": layout, "interleaved": neighbours, "num_heads": 3}
        MORE |= {
            f"three positions, {layout} {neighbours}": ("MRotaryEmbedding", [floats(2, 4, 36), THREE, floats(9, 6), floats(9, 6)], attributes, ["y"]),
            f"three positions of a part, {layout} {neighbours}": ("MRotaryEmbedding", [floats(2, 3, 4, 16), THREE, floats(9, 6), floats(9, 6)],
                                                                 attributes | {"rotary_embedding_dim": 12, "scale": 2.5}, ["y"]),
            f"three positions of halves, {layout} {neighbours}": ("MRotaryEmbedding", [v.astype("f2") if v.dtype == "f4" else v for v in
                                                                                      (floats(2, 3, 4, 12) / 4, THREE, floats(9, 6), floats(9, 6))], attributes, ["y_float16"]),
        }

GROUPS = [{}, {"n_group": 3, "topk_group": 2}, {"n_group": 4, "topk_group": 3, "group_topk": 1, "router_sentinel": -5.5}]
MORE |= {f"router, {i}": ("MoEGroupRouter", [floats(5, 12), floats(12)], {"top_k": 4} | groups, ["y"]) for i, groups in enumerate(GROUPS)}
MORE |= {f"router of halves, {i}": ("MoEGroupRouter", [floats(5, 12).astype("f2"), floats(12)], {"top_k": 4} | groups, ["y_float16"]) for i, groups in enumerate(GROUPS)}
MORE["router of all scores"] = ("MoEGroupRouter", [floats(3, 256), floats(4), floats(4, 256)], {"top_k": 2}, ["", "scores", "weights"])


def net(rule, each=False, batch=False, packed=False, state=True):
    lead = (2, 3) if batch else (6,)
    heads = [floats(*lead, 2, 4), given(floats(*lead, 2, 4)), given(floats(*lead, 4, 3))]
    if packed:
        heads = [numpy.concatenate([numpy.asarray(x).reshape(*lead, -1) for x in heads], -1), None, None]
    decay = given(-abs(floats(*lead, 4, *([4] if each else [])))) if "gated" in rule else None
    return [*heads, None, decay, given(abs(floats(*lead, 4))) if "delta" in rule else None, given(floats(2, 4, 3, 4)) if state else None]


KEPT = ["y", "state"]
for rule in ("linear", "gated", "delta", "gated_delta"):
    MORE |= {
        f"a net, {rule}": ("GatedDeltaNet", net(rule), {"update_rule": rule}, KEPT),
        f"a net by keys, {rule}": ("GatedDeltaNet", net(rule, each=True), {"update_rule": rule, "qk_l2_norm": 1, "scale": 0.7}, KEPT),
        f"a net of a batch, {rule}": ("GatedDeltaNet", net(rule, batch=True, state=False), {"update_rule": rule}, KEPT),
        f"a net, packed, {rule}": ("GatedDeltaNet", net(rule, packed=True), {"update_rule": rule}, KEPT),
        f"a net of halves, {rule}": ("GatedDeltaNet", [numpy.asarray(v).astype("f2") if i == 0 else v for i, v in enumerate(halved(net(rule), 0, 1, 2))],
                                     {"update_rule": rule, "qk_l2_norm": 1}, ["y_float16", "state"]),
    }
for gate in ("softplus", "qwen", "sigmoid", "kda"):
    for each in (False, True):
        MORE[f"a net with gates, {gate} {each}"] = ("GatedDeltaNet", [*net("gated_delta", each), floats(4), floats(4, 4) if each else floats(4)],
                                                    {"gate_activation": gate, "beta_activation": "sigmoid", "gate_lower_bound": -2.0}, KEPT)
MORE["a net of lengths"] = ("GatedDeltaNet", [*net("gated_delta")[:3], numpy.array([0, 3, 6], "i4"), *net("gated_delta")[4:6]], {}, KEPT)

for ends in ([0, 7], [0, 1, 7], [0, 3, 4, 7]):
    batch = len(ends) - 1
    for taps, dilation, word in ((1, 1, "none"), (3, 1, "silu"), (4, 2, "swish")):
        operands = [floats(7, 5), floats(5, 1, taps), given(numpy.array(ends, "i4")), floats(5), given(floats(batch, 5, (taps - 1) * dilation))]
        attributes = {"dilation": dilation, "activation": word}
        counts = given(DICE.integers(-1, 5, batch).astype("i4"))
        MORE[f"sequences, {ends} {taps} {word}"] = ("VarlenCausalConvWithState", operands, attributes, KEPT)
        MORE[f"sequences with updates, {ends} {taps} {word}"] = ("VarlenCausalConvWithState", [*operands, counts], attributes | {"state_update_capacity": 3}, [*KEPT, "updates"])
        small = [operands[0].astype("f2") / 4, *halved(operands, 1, 3, 4)[1:]]
        MORE[f"sequences of halves, {ends} {taps} {word}"] = ("VarlenCausalConvWithState", small, attributes, [n + "_float16" for n in KEPT])

STEP = [floats(2, 1, 8), given(floats(2, 1, 8)), given(floats(2, 1, 8))]
BUFFERS = [given(floats(2, 2, 6, 4)), given(floats(2, 2, 6, 4)), given(numpy.array([3], "i4"))]
COUNTED, ADDED, BIAS = given(numpy.array([[1, 0, 1, 1], [1, 1, 1, 1]], "i4")), given(floats(1, 2, 1, 4)), floats(24)
BUFFERED, MASKED = {"num_heads": 2, "past_present_share_buffer": 1}, "DecoderMaskedMultiHeadAttention"
MORE |= {
    "a step in a shared buffer": (MASKED, [*STEP, None, None, *BUFFERS], BUFFERED | {"scale": 0.7}, ["y", "k", "v"]),
    "a step in a shared buffer, masked": (MASKED, [*STEP, COUNTED, ADDED, *BUFFERS, None, None, BIAS], BUFFERED | {"mask_filter_value": -9.0}, ["y", "k", "v"]),
    "a step beside an encoder": (MASKED, [STEP[0], *BUFFERS[:2], given(numpy.array([[1, 0, 1, 1, 1, 0], [1] * 6], "i4")), *[None] * 6, BIAS], {"num_heads": 2}, ["y"]),
}

WORDS = DICE.integers(0, 6, (2, 3)).astype("i4")
SCALES = [numpy.float32(v) for v in (0.01, 0.02, 0.03, 0.04, 0.05)]
for kind in ("u1", "i1"):
    tables = [codes(kind, *s) for s in ((6, 8), (5, 8), (2, 8), (8,), (8,))]
    zeros = [numpy.array(v, kind) for v in (12, 110, 100, 20, 13)]
    MORE[f"words of tables of {kind}"] = ("QEmbedLayerNormalization", [WORDS, WORDS % 2, *tables, numpy.array([[1, 1, 0], [1, 1, 1]], "i4"), *SCALES, *zeros], {"epsilon": 1e-3}, ["y", "m"])
    left_out = [[v if i != 2 else None for i, v in enumerate(w)] for w in (tables, SCALES, zeros)]
    MORE[f"words of tables of {kind} without segments"] = ("QEmbedLayerNormalization", [WORDS, None, *left_out[0], None, *left_out[1], *left_out[2]], {}, ["y", "m"])
