"""Ops of the domains com.microsoft and ai.onnx.ml against ONNX Runtime.

    contrib.py --nnc NNC      with a Python that has onnxruntime; reports as TAP
"""

import argparse
import pathlib
import subprocess
import tempfile

import numpy
import onnxruntime

from contrib_more import MORE, Given, given
from write import KINDS, graph, model, node, tensor, value

DICE = numpy.random.default_rng(7)


def floats(*shape):
    return DICE.normal(size=shape).astype("f4")


X, SKIP, GAIN, BIAS = floats(2, 3, 8), floats(2, 3, 8), floats(8), floats(8)
BYTES, SCALES = DICE.integers(0, 256, (5, 3, 8), dtype="u1"), floats(15)

# name: op, operands, attributes, number of results (empty names are left out)
CASES = {
    "fast gelu": ("FastGelu", [X], {}, ["y"]),
    "fast gelu with a bias": ("FastGelu", [X, BIAS], {}, ["y"]),
    "bias gelu": ("BiasGelu", [X, BIAS], {}, ["y"]),
    "gelu": ("Gelu", [X], {}, ["y"]),
    "quick gelu": ("QuickGelu", [X], {"alpha": 1.5}, ["y"]),
    "skip norm": ("SkipLayerNormalization", [X, SKIP, GAIN, BIAS], {"epsilon": 1e-3}, ["y"]),
    "skip norm with a bias and its sum": ("SkipLayerNormalization", [X, SKIP, GAIN, BIAS, BIAS], {}, ["y", "", "", "sum"]),
    "skip norm with its moments": ("SkipLayerNormalization", [X, SKIP, GAIN, BIAS], {"epsilon": 1e-3}, ["y", "mean", "deviation", "sum"]),
    "skip rms norm with its deviation": ("SkipSimplifiedLayerNormalization", [X, SKIP, GAIN], {"epsilon": 1e-3}, ["y", "", "deviation"]),
    "skip rms norm": ("SkipSimplifiedLayerNormalization", [X, SKIP, GAIN], {"epsilon": 1e-3}, ["y", "", "", "sum"]),
    "fused matmul": ("FusedMatMul", [X, floats(8, 4)], {"alpha": 0.5}, ["y"]),
    "fused matmul of what is transposed": ("FusedMatMul", [X, floats(2, 4, 3)], {"transA": 1, "transB": 1}, ["y"]),
    "fused matmul of batches behind rows": ("FusedMatMul", [floats(3, 2, 8), floats(8, 2, 4)], {"transBatchA": 1, "transBatchB": 1}, ["y"]),
    "fused matmul of batches that are transposed, too": ("FusedMatMul", [floats(3, 2, 4, 8), floats(3, 2, 4, 5)],
                                                         {"transBatchA": 1, "transA": 1, "transBatchB": 1, "alpha": 0.25}, ["y"]),
    "fused matmul of all transposed": ("FusedMatMul", [floats(3, 2, 8), floats(5, 2, 3)], {"transBatchA": 1, "transA": 1, "transBatchB": 1, "transB": 1}, ["y"]),
    "matmul of 4 bits": ("MatMulNBits", [floats(2, 40), BYTES, SCALES], {"K": 40, "N": 5, "bits": 4, "block_size": 16}, ["y"]),
    "matmul of 4 bits with zero points": ("MatMulNBits", [floats(2, 40), BYTES, SCALES, DICE.integers(0, 256, 10, dtype="u1")],
                                          {"K": 40, "N": 5, "bits": 4, "block_size": 16}, ["y"]),
    "matmul of 4 bits with zero points of floats": ("MatMulNBits", [floats(2, 40), BYTES, SCALES, floats(5, 3)],
                                                    {"K": 40, "N": 5, "bits": 4, "block_size": 16}, ["y"]),
    "matmul of 8 bits": ("MatMulNBits", [floats(2, 40), DICE.integers(0, 256, (5, 3, 16), dtype="u1"), SCALES],
                         {"K": 40, "N": 5, "bits": 8, "block_size": 16}, ["y"]),
}


def quantised(*shape):
    """Integers with their scale and zero point"""
    return [DICE.integers(0, 256, shape, dtype="u1"), numpy.float32(0.03), numpy.uint8(120)]


OUT = [numpy.float32(0.05), numpy.uint8(110)]
IMAGE = floats(1, 2, 5, 5)
CASES |= {
    "quantised sum": ("QLinearAdd", [*quantised(2, 3, 4), *quantised(3, 1), *OUT], {}, ["y"]),
    "quantised product": ("QLinearMul", [*quantised(2, 3, 4), *quantised(4), *OUT], {}, ["y"]),
    "quantised sigmoid": ("QLinearSigmoid", [*quantised(2, 3), numpy.float32(1 / 256), numpy.uint8(0)], {}, ["y"]),
    "quantised leaky relu": ("QLinearLeakyRelu", [*quantised(2, 3), *OUT], {"alpha": 0.2}, ["y"]),
    "quantised pool": ("QLinearGlobalAveragePool", [*quantised(1, 2, 4, 4), *OUT], {}, ["y"]),
    "quantised pool of windows": ("QLinearAveragePool", [*quantised(1, 2, 5, 5), *OUT], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}, ["y"]),
    "quantised pool that counts the padding": ("QLinearAveragePool", [*quantised(1, 2, 5, 5), *OUT],
                                               {"kernel_shape": [2, 3], "pads": [1, 1, 0, 1], "count_include_pad": 1}, ["y"]),
    "quantised choice": ("QLinearWhere", [DICE.integers(0, 2, (3, 4)).astype(bool), *quantised(3, 4), *quantised(3, 4), *OUT], {}, ["y"]),
    "integers to floats": ("MatMulIntegerToFloat", [*[quantised(3, 4)[0], DICE.integers(-99, 99, (4, 5), dtype="i1")], numpy.float32(0.03), floats(5), numpy.uint8(120),
                                                    DICE.integers(-9, 9, 5, dtype="i1"), floats(5)], {}, ["y"]),
    "floats by integers": ("DynamicQuantizeMatMul", [X, DICE.integers(0, 255, (8, 4), dtype="u1"), floats(4), DICE.integers(0, 255, 4, dtype="u1"), floats(4)], {}, ["y"]),
    "quantised gemm": ("QGemm", [*quantised(3, 4), *quantised(4, 5), DICE.integers(-99, 99, 5, dtype="i4"), *OUT], {"alpha": 1.0}, ["y"]),
    "quantised gemm of floats": ("QGemm", [*quantised(3, 4), *quantised(5, 4)], {"transB": 1}, ["y"]),
    "convolution and what follows": ("FusedConv", [IMAGE, floats(3, 2, 3, 3), floats(3)], {"activation": "LeakyRelu", "activation_params": [0.3], "pads": [1, 1, 1, 1]}, ["y"]),
    "convolution and hard sigmoid": ("FusedConv", [IMAGE, floats(3, 2, 3, 3)], {"activation": "HardSigmoid", "activation_params": [0.25, 0.4]}, ["y"]),
    "convolution and bounds": ("FusedConv", [IMAGE, floats(3, 2, 3, 3)], {"activation": "Clip", "activation_params": [-0.5, 1.0]}, ["y"]),
    "convolution, sum and relu": ("FusedConv", [IMAGE, floats(3, 2, 3, 3), floats(3), floats(1, 3, 3, 3)], {"activation": "Relu"}, ["y"]),
}
CASES |= {
    f"gemm and {name}": ("FusedGemm", [floats(3, 4), floats(5, 4), floats(5)],
                         {"transB": 1, "alpha": 0.5, "activation": name} | {"activation_" + k: v for k, v in numbers.items()}, ["y"])
    for name, numbers in {"Relu": {}, "Tanh": {}, "Sigmoid": {}, "Softplus": {}, "Softsign": {}, "Elu": {"alpha": 0.7}, "LeakyRelu": {"alpha": 0.2},
                          "ThresholdedRelu": {"alpha": 0.3}, "HardSigmoid": {"alpha": 0.25, "beta": 0.4}, "Selu": {"alpha": 1.5, "gamma": 1.1}}.items()
}

WORDS, TABLE = DICE.integers(0, 6, (2, 3)).astype("i4"), floats(6, 8)
PADS = numpy.array([[1, 1, 0], [1, 1, 1]], "i4")
CASES |= {
    "attention with projections": ("Attention", [X, floats(8, 24), floats(24)], {"num_heads": 2}, ["y"]),
    "attention with a mask": ("Attention", [X, floats(8, 24), floats(24), PADS], {"num_heads": 2}, ["y"]),
    "attention of what came before": ("Attention", [X, floats(8, 24), floats(24), PADS], {"num_heads": 2, "unidirectional": 1}, ["y"]),
    "attention of bytes": ("QAttention", [*quantised(2, 3, 8)[:1], DICE.integers(0, 90, (8, 24), dtype="u1"), floats(24), numpy.float32(0.03), numpy.float32(0.02), PADS,
                                          numpy.uint8(120), numpy.uint8(40)], {"num_heads": 2}, ["y"]),
    "attention of bytes with a scale for each column": ("QAttention", [*quantised(2, 3, 8)[:1], DICE.integers(-40, 40, (8, 24), dtype="i1"), floats(24), numpy.float32(0.03),
                                                                      abs(floats(24)) / 50, None, numpy.uint8(120), DICE.integers(-9, 9, 24, dtype="i1")],
                                                       {"num_heads": 2, "unidirectional": 1}, ["y"]),
    "attention of several heads": ("MultiHeadAttention", [X, floats(2, 4, 8), floats(2, 4, 8)], {"num_heads": 4}, ["y"]),
    "attention of several heads with biases": ("MultiHeadAttention", [X, floats(2, 4, 8), floats(2, 4, 8), floats(24)], {"num_heads": 2, "scale": 0.3}, ["y"]),
    "rotated positions": ("RotaryEmbedding", [X, numpy.array([[0, 1, 2], [1, 2, 3]]), floats(5, 2), floats(5, 2)], {"num_heads": 2}, ["y"]),
    "embedded words": ("EmbedLayerNormalization", [WORDS, WORDS % 2, TABLE, floats(5, 8), floats(2, 8), GAIN, BIAS, PADS], {"epsilon": 1e-3}, ["y", "m"]),
}

TREES = {"nodes_treeids": [0] * 5 + [1] * 3, "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2], "nodes_featureids": [0, 2, 0, 0, 0, 1, 0, 0],
         "nodes_values": [0.1, -0.2, 0.0, 0.0, 0.0, 0.3, 0.0, 0.0], "nodes_truenodeids": [1, 3, 0, 0, 0, 1, 0, 0], "nodes_falsenodeids": [2, 4, 0, 0, 0, 2, 0, 0],
         "nodes_modes": ["BRANCH_LEQ", "BRANCH_LEQ", "LEAF", "LEAF", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"]}
ROWS = floats(6, 3)


def leaves(side, targets):
    return {f"{side}_treeids": [0, 0, 0, 1, 1], f"{side}_nodeids": [2, 3, 4, 1, 2], f"{side}_ids": targets, f"{side}_weights": [0.5, -1.0, 2.0, 0.25, 3.0]}


SVC = {"kernel_type": "RBF", "kernel_params": [0.4, 0.0, 3.0]}
SUPPORTS = [0.5, -1.0, 2.0, 1.0, 0.25, -0.5, 0.1, 0.9, -1.2, -0.4, 0.3, 0.8]
THREE = {"classlabels_ints": [3, 1, 2], "vectors_per_class": [1, 2, 1], "support_vectors": SUPPORTS, "coefficients": [0.7, -0.3, 0.5, -0.8, 0.6, 0.4, -0.9, 0.2],
         "rho": [0.1, -0.05, 0.02]}
TWO = {"classlabels_int64s": [5, 7]}
MIXED = TREES | {"nodes_modes": ["BRANCH_LT", "BRANCH_GTE", "LEAF", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "LEAF"]}
SHARES = {"target_weights": [0.1, 0.4, 0.2, 0.25, 0.3]}
LEARNED = {
    "trees for a target": ("TreeEnsembleRegressor", [ROWS], TREES | leaves("target", [0] * 5) | {"n_targets": 1, "base_values": [0.5]}, ["y"]),
    "trees for two targets": ("TreeEnsembleRegressor", [ROWS], TREES | leaves("target", [0, 1, 1, 0, 1]) | {"n_targets": 2}, ["y"]),
    "means of trees": ("TreeEnsembleRegressor", [ROWS], TREES | leaves("target", [0] * 5) | {"n_targets": 1, "aggregate_function": "AVERAGE"}, ["y"]),
    "largest leaves of trees": ("TreeEnsembleRegressor", [ROWS], TREES | leaves("target", [0, 1, 1, 0, 1]) | {"n_targets": 2, "aggregate_function": "MAX"}, ["y"]),
    "least leaves of trees": ("TreeEnsembleRegressor", [ROWS], TREES | leaves("target", [0, 1, 1, 0, 0]) | {"n_targets": 2, "aggregate_function": "MIN"}, ["y"]),
    "trees and a softmax that keeps zeros": ("TreeEnsembleRegressor", [ROWS], TREES | leaves("target", [0, 1, 1, 0, 1]) | {"n_targets": 2, "post_transform": "SOFTMAX_ZERO"}, ["y"]),
    "quantiles of trees": ("TreeEnsembleRegressor", [ROWS], TREES | leaves("target", [0] * 5) | SHARES | {"n_targets": 1, "post_transform": "PROBIT"}, ["y"]),
    "trees of several modes": ("TreeEnsembleRegressor", [ROWS], MIXED | leaves("target", [0] * 5) | {"n_targets": 1}, ["y"]),
    "trees for classes": ("TreeEnsembleClassifier", [ROWS], TREES | leaves("class", [0, 1, 2, 0, 2]) | {"classlabels_int64s": [5, 7, 9], "post_transform": "SOFTMAX"}, ["y", "z"]),
    "trees of one score for two classes": ("TreeEnsembleClassifier", [ROWS], TREES | leaves("class", [0] * 5) | TWO | {"post_transform": "LOGISTIC"}, ["y", "z"]),
    "trees of the second's score": ("TreeEnsembleClassifier", [ROWS], TREES | leaves("class", [1] * 5) | TWO, ["y", "z"]),
    "trees of one share for two classes": ("TreeEnsembleClassifier", [ROWS], TREES | leaves("class", [0] * 5) | TWO | {"class_weights": [0.1, 0.4, 0.2, 0.25, 0.3]}, ["y", "z"]),
    "trees of the second's score, logistic": ("TreeEnsembleClassifier", [ROWS], TREES | leaves("class", [1] * 5) | TWO | {"post_transform": "LOGISTIC"}, ["y", "z"]),
    "trees of one score behind a base": ("TreeEnsembleClassifier", [ROWS], TREES | leaves("class", [0] * 5) | TWO | {"base_values": [0.7]}, ["y", "z"]),
    "linear regression": ("LinearRegressor", [ROWS], {"coefficients": [0.5, -1.0, 2.0, 1.0, 0.25, -0.5], "intercepts": [0.1, 0.2], "targets": 2}, ["y"]),
    "linear classes": ("LinearClassifier", [ROWS], {"coefficients": [0.5, -1.0, 2.0, 1.0, 0.25, -0.5, 0.3, 0.1, -0.7], "intercepts": [0.1, 0.2, 0.0],
                                                    "classlabels_ints": [3, 1, 2], "post_transform": "SOFTMAX"}, ["y", "z"]),
    "one linear score for two classes": ("LinearClassifier", [ROWS], {"coefficients": [0.5, -1.0, 2.0], "intercepts": [0.1], "classlabels_ints": [5, 7]}, ["y", "z"]),
    "one linear score for two classes, logistic": ("LinearClassifier", [ROWS], {"coefficients": [0.5, -1.0, 2.0], "intercepts": [-0.1], "classlabels_ints": [5, 7],
                                                                              "post_transform": "LOGISTIC"}, ["y", "z"]),
    "support vectors": ("SVMRegressor", [ROWS], {"support_vectors": [0.5, -1.0, 2.0, 1.0, 0.25, -0.5], "coefficients": [0.7, -0.3], "rho": [0.2], "n_supports": 2,
                                                 "kernel_type": "RBF", "kernel_params": [0.4, 0.0, 3.0]}, ["y"]),
    "support vectors by a polynomial": ("SVMRegressor", [ROWS], {"support_vectors": [0.5, -1.0, 2.0, 1.0, 0.25, -0.5], "coefficients": [0.7, -0.3], "rho": [0.2],
                                                                 "n_supports": 2, "kernel_type": "POLY", "kernel_params": [0.4, 1.0, 2.0]}, ["y"]),
    "support vectors of two classes": ("SVMClassifier", [ROWS], SVC | {"classlabels_ints": [5, 7], "vectors_per_class": [1, 1], "support_vectors": SUPPORTS[:6],
                                                                      "coefficients": [0.7, -0.3], "rho": [0.1]}, ["y", "z"]),
    "support vectors of three classes": ("SVMClassifier", [ROWS], SVC | THREE, ["y", "z"]),
    "shares of three classes": ("SVMClassifier", [ROWS], SVC | THREE | {"prob_a": [-1.5, -0.7, -1.1], "prob_b": [0.1, -0.2, 0.05]}, ["y", "z"]),
    "scaled": ("Scaler", [ROWS], {"offset": [0.5, 1.0, -1.0], "scale": [2.0, 0.5, 1.0]}, ["y"]),
    "normalised by the sum": ("Normalizer", [ROWS], {"norm": "L1"}, ["y"]),
    "normalised by the length": ("Normalizer", [ROWS], {"norm": "L2"}, ["y"]),
    "normalised by the largest": ("Normalizer", [numpy.abs(ROWS)], {"norm": "MAX"}, ["y"]),
    "binary": ("Binarizer", [ROWS], {"threshold": 0.2}, ["y"]),
    "filled in": ("Imputer", [numpy.where(ROWS > 1, numpy.float32("nan"), ROWS)], {"imputed_value_floats": [1.0, 2.0, 3.0], "replaced_value_float": float("nan")}, ["y"]),
    "one hot": ("OneHotEncoder", [DICE.integers(0, 5, (4, 2))], {"cats_int64s": [1, 3, 4]}, ["y"]),
    "labels of labels": ("LabelEncoder", [DICE.integers(0, 5, (4,))], {"keys_int64s": [1, 3, 4], "values_floats": [0.5, 1.5, -2.0], "default_float": 9.0}, ["y"]),
    "features chosen": ("ArrayFeatureExtractor", [ROWS, numpy.array([2, 0])], {}, ["y"]),
}


def cache(*shape, used):
    """What was kept: `used` positions, and room for more"""
    array = floats(*shape)
    array[:, :, used:] = 0
    return given(array)




def flat(batch, steps):
    """Queries of 4 heads, keys and values of 2"""
    return [floats(batch, steps, 64), floats(batch, steps, 32), floats(batch, steps, 32)]


PROMPT, STEP, ANGLES = flat(2, 3), flat(2, 1), [floats(9, 8), floats(9, 8)]
OF_FOUR = {"num_heads": 4, "kv_num_heads": 2}
ALL = ["y", "k", "v"]


def grown(past, count):
    """Operands of a step behind `past` keys of one sequence"""
    return [given(floats(1, 2, past, 16)), given(floats(1, 2, past, 16)), numpy.array([past + count - 1], "i4"), numpy.array(past + count, "i4")]


def room(*used):
    """Operands of a step, where each sequence has `used` keys in a buffer of 8"""
    keys, values = [numpy.stack([cache(1, 2, 8, 16, used=u)[0] for u in used]) for _ in range(2)]
    return [given(keys), given(values), given(numpy.array(used, "i4")), numpy.array(8, "i4")]


GROUPED = {
    "a prompt": [*PROMPT, None, None, numpy.array([2, 2], "i4"), numpy.array(3, "i4")],
    "a prompt, packed": [floats(2, 3, 128), None, None, None, None, numpy.array([2, 2], "i4"), numpy.array(3, "i4")],
    "a step behind a past that grows": [*flat(1, 1), *grown(4, 1)],
    "steps behind a past that grows": [*flat(1, 3), *grown(4, 3)],
    "a step in a buffer": [*flat(1, 1), *room(5)],
    "a step in a buffer, each sequence its own": [*STEP, *room(5, 2)],
}


def kept_in(bits, of, operands):
    """The same with keys and values as integers: operands 3 and 4 are codes, and 12 and 13 their scales."""
    pasts = [floats(2, 2, 0, 16) if v is None else v for v in operands[3:5]]  # what is not used is 0
    codes = [given(((DICE.integers(-99, 99, v.shape) if bits == 8 else DICE.integers(0, 255, v.shape)) * (v != 0)).astype("i1" if bits == 8 else "u1")[..., :2 * bits])
             for v in pasts]
    scales = [abs(floats(1, 2, 1, 16)) / 20 + 0.01 if of == "each" else numpy.float32([0.03]) for _ in range(2)]
    scales = [s * numpy.float32(1 if bits == 8 else 10) for s in scales]
    attributes = {f"{x}_quant_type": "PER_CHANNEL" if of == "each" else "PER_TENSOR" for x in "kv"} | {"kv_cache_bit_width": bits}
    return "GroupQueryAttention", [*operands[:3], *codes, *operands[5:7], *ANGLES, None, None, None, *scales], OF_FOUR | {"do_rotary": 1} | attributes, ["y", f"k{bits}", f"v{bits}"]


CASES |= {f"grouped queries, {name}": ("GroupQueryAttention", operands, OF_FOUR, ALL) for name, operands in GROUPED.items()}
CASES |= {f"grouped queries, rotated, {name}": ("GroupQueryAttention", operands + ANGLES, OF_FOUR | {"do_rotary": 1}, ALL) for name, operands in GROUPED.items()}
CASES |= {
    "grouped queries, neighbours rotated": ("GroupQueryAttention", [*STEP, *room(5, 2), *ANGLES], OF_FOUR | {"do_rotary": 1, "rotary_interleaved": 1}, ALL),
    "grouped queries, rotated by positions": ("GroupQueryAttention", [*STEP, *room(5, 2), *ANGLES, given(numpy.array([[4], [1]]))], OF_FOUR | {"do_rotary": 1}, ALL),
    "grouped queries with a bias": ("GroupQueryAttention", [*STEP, *room(5, 2), None, None, None, floats(2, 1, 1, 8)], OF_FOUR, ALL),
    "grouped queries in a window": ("GroupQueryAttention", [*STEP, *room(5, 2)], OF_FOUR | {"local_window_size": 3}, ALL),
    "grouped queries of a prompt in a window": ("GroupQueryAttention", GROUPED["a prompt"], OF_FOUR | {"local_window_size": 2}, ALL),
    "grouped queries, scaled and capped": ("GroupQueryAttention", GROUPED["a prompt"], OF_FOUR | {"scale": 0.3, "softcap": 2.0}, ALL),
    "grouped queries with a share for none": ("GroupQueryAttention", [*STEP, *room(5, 2)], OF_FOUR | {"smooth_softmax": 1}, ALL),
    "grouped queries with sinks": ("GroupQueryAttention", [*STEP, *room(5, 2), None, None, None, None, floats(4)], OF_FOUR, ALL),
    **{f"grouped queries, kept in {bits} bits by a scale {of}, {name}": kept_in(bits, of, operands) for bits in (8, 4) for of in ("each", "of all")
       for name, operands in GROUPED.items()},
    "attention with a past": ("Attention", [X, floats(8, 24), floats(24), None, given(floats(2, 2, 2, 4, 4))], {"num_heads": 2, "unidirectional": 1}, ["y", "kv"]),
    "attention with a past and a mask": ("Attention", [X, floats(8, 24), floats(24), numpy.array([[0, 1, 1, 1, 1, 1, 1], [1] * 7], "i4"), given(floats(2, 2, 2, 4, 4))],
                                         {"num_heads": 2}, ["y", "kv"]),
    "attention with a mask for each query": ("Attention", [X, floats(8, 24), floats(24), numpy.tri(3, dtype="i4")[None].repeat(2, 0)], {"num_heads": 2}, ["y", "kv"]),
    "attention with padding before": ("Attention", [X, floats(8, 24), floats(24), numpy.array([3, 3, 1, 0], "i4")], {"num_heads": 2}, ["y"]),
    "attention of other values": ("Attention", [X, floats(8, 20), floats(20)], {"num_heads": 2, "qkv_hidden_sizes": [8, 8, 4]}, ["y"]),
    "attention of several heads with a past": ("MultiHeadAttention", [X, X, X, floats(24), None, None, given(floats(2, 2, 4, 4)), given(floats(2, 2, 4, 4))],
                                               {"num_heads": 2, "unidirectional": 1}, ALL),
    "attention of several heads, masked, with a past": ("MultiHeadAttention", [X, X, X, None, given(numpy.array([[0, 1, 1, 1, 1, 1, 1], [1] * 7], "i4")), None,
                                                                               given(floats(2, 2, 4, 4)), given(floats(2, 2, 4, 4))], {"num_heads": 2}, ALL),
    "attention of several heads that come in heads": ("MultiHeadAttention", [X, floats(2, 2, 5, 4), floats(2, 2, 5, 4)], {"num_heads": 2}, ["y"]),
    "attention of several heads with a bias for scores": ("MultiHeadAttention", [X, X, X, None, None, given(floats(1, 2, 3, 3))], {"num_heads": 2}, ["y"]),
    "rotated from a position on": ("RotaryEmbedding", [X, given(numpy.array([2])), floats(9, 2), floats(9, 2)], {"num_heads": 2}, ["y"]),
    "rotated in part": ("RotaryEmbedding", [floats(2, 2, 3, 6), numpy.array([[0, 1, 2], [1, 2, 3]]), floats(5, 2), floats(5, 2)], {"num_heads": 2, "rotary_embedding_dim": 4, "interleaved": 1}, ["y"]),
}

def routed(tokens, experts, columns=6, width=8):
    """Operands of a mixture of experts: tokens, scores, and weights and biases of both products."""
    return [floats(*tokens), given(floats(int(numpy.prod(tokens[:-1])), experts)), floats(experts, columns, width), floats(experts, columns),
            floats(experts, width, 6), floats(experts, width)]


def packed(bits, *shape):
    codes = DICE.integers(0, 1 << bits, shape)
    return (codes if bits == 8 else codes[..., ::2] | codes[..., 1::2] << 4).astype("u1")


def quantised_experts(bits, block, points, tokens=4, experts=5):
    """The same of QMoE; `points`: zero points are given."""
    shapes = [(experts, 16, 32), (experts, 32, 16)]
    scales = [(abs(floats(*s[:2], s[2] // block) if block else floats(*s[:2])) + 0.1) / 99 for s in shapes]
    zeros = [packed(bits, *(z if bits == 8 or z[-1] % 2 == 0 else (*z[:-1], z[-1] + 1))) for z in (s.shape for s in scales)] if points else []
    weights = [packed(bits, *s) for s in shapes]
    operands = [floats(tokens, 32), given(floats(tokens, experts)), weights[0], scales[0], floats(experts, 16), weights[1], scales[1], floats(experts, 32)]
    return operands + ([None] * 3 + zeros if points else [])


TWO_OF = {"k": 2, "activation_type": "silu"}
CASES |= {
    "experts": ("MoE", routed((2, 3, 8), 4), {"k": 1}, ["y"]),
    "experts, two for each token": ("MoE", routed((5, 8), 4), TWO_OF, ["y"]),
    "experts, few of many": ("MoE", routed((1, 8), 16), TWO_OF, ["y"]),
    "experts, few of many, shares of those": ("MoE", routed((2, 8), 16), TWO_OF | {"normalize_routing_weights": 1}, ["y"]),
    "experts without biases": ("MoE", [v if i not in (3, 5) else None for i, v in enumerate(routed((5, 8), 4))], TWO_OF, ["y"]),
    "experts by gelu": ("MoE", routed((5, 8), 4), TWO_OF | {"activation_type": "gelu", "normalize_routing_weights": 1}, ["y"]),
    "experts as they are": ("MoE", routed((5, 8), 4), TWO_OF | {"activation_type": "identity"}, ["y"]),
    "experts with gates": ("MoE", routed((5, 8), 4, columns=12), {"k": 2, "activation_type": "swiglu", "swiglu_fusion": 1}, ["y"]),
    "experts with gates and limits": ("MoE", routed((5, 8), 4, columns=12), {"k": 2, "activation_type": "swiglu", "swiglu_fusion": 1, "activation_alpha": 1.7,
                                                                             "activation_beta": 1.0, "swiglu_limit": 0.5}, ["y"]),
    "experts of 8 bits": ("QMoE", quantised_experts(8, 0, False), TWO_OF | {"expert_weight_bits": 8}, ["y"]),
    "experts of 8 bits with zero points": ("QMoE", quantised_experts(8, 0, True), TWO_OF | {"expert_weight_bits": 8}, ["y"]),
    "experts of 4 bits": ("QMoE", quantised_experts(4, 0, False), TWO_OF, ["y"]),
    "experts of 4 bits with zero points": ("QMoE", quantised_experts(4, 0, True), TWO_OF, ["y"]),
    "experts of 4 bits in blocks": ("QMoE", quantised_experts(4, 16, False), TWO_OF | {"block_size": 16}, ["y"]),
    "experts of 4 bits in blocks with zero points": ("QMoE", quantised_experts(4, 16, True), TWO_OF | {"block_size": 16}, ["y"]),
    "experts of 4 bits, few of many": ("QMoE", quantised_experts(4, 16, True, tokens=1, experts=12), TWO_OF | {"block_size": 16}, ["y"]),
    "experts of 4 bits with shares of their own": ("QMoE", [*quantised_experts(4, 16, True), None, abs(floats(4, 5))], TWO_OF | {"block_size": 16}, ["y"]),
    "experts of 4 bits with shares of their own, made to be 1": ("QMoE", [*quantised_experts(4, 16, True), None, abs(floats(4, 5))],
                                                                TWO_OF | {"block_size": 16, "normalize_routing_weights": 1}, ["y"]),
}

OWN = {  # ONNX Runtime's, in ONNX's domain, and what no other test compares
    "rms norm": ("SimplifiedLayerNormalization", [X, GAIN], {"epsilon": 1e-3, "axis": -1}, ["y"]),
    "rms norm with its deviation": ("SimplifiedLayerNormalization", [X, GAIN], {"epsilon": 1e-3, "axis": -1}, ["y", "deviation"]),
    "largest pixels of regions": ("MaxRoiPool", [floats(2, 3, 8, 8), numpy.array([[0, 0, 0, 5, 5], [1, 1, 2, 6, 7], [0, 3, 3, 3, 3], [1, -2, 1, 4, 12]], "f4")],
                                  {"pooled_shape": [2, 3]}, ["y"]),
    "largest pixels of regions of half the size": ("MaxRoiPool", [floats(2, 3, 8, 8), numpy.array([[0, 1, 0, 11, 9], [1, 2, 5, 20, 15]], "f4")],
                                                   {"pooled_shape": [3, 2], "spatial_scale": 0.5}, ["y"]),
}


CASES["quantised gemm by scales of columns"] = ("QGemm", [*quantised(3, 4), DICE.integers(-99, 99, (5, 4), dtype="i1"), numpy.abs(floats(5)) + 0.01,
                                                          numpy.zeros(5, "i1"), None, *OUT], {"transB": 1}, ["y"])


def extents(*list_):
    return numpy.array(list_, "i8")


MATRICES = floats(2, 4, 4) + 5 * numpy.eye(4, dtype="f4")
for kind, low in (("u1", 7), ("i1", -3)):
    result = "y" if kind == "u1" else "y8"
    CASES[f"quantised to {kind}"] = ("QuantizeLinear", [X, numpy.float32(0.05), numpy.array(low, kind)], {}, [result])
    CASES[f"quantised to {kind} by scales along an axis"] = ("QuantizeLinear", [X, SCALES[:3].__abs__() + 0.05, numpy.array([low, 0, low], kind)], {"axis": 1}, [result])
for kind in ("u1", "i1", "u2", "i2"):
    codes = DICE.integers(0, 99, (3, 4)).astype(kind)
    CASES[f"{kind} as floats"] = ("DequantizeLinear", [codes, numpy.float32(0.05), numpy.array(7, kind)], {}, ["y"])
CASES |= {
    "i32 as floats": ("DequantizeLinear", [DICE.integers(-999, 999, (3, 4), dtype="i4"), numpy.float32(0.05)], {}, ["y"]),
    "padding": ("Pad", [X, extents(0, 1, 2, 0, 0, 1), numpy.float32([1.5])], {}, ["y"]),
    "padding by a number of an input": ("Pad", [X, extents(0, 1, 2, 0, 0, -1), given(numpy.float32([1.5]))], {}, ["y"]),
    "padding by edges": ("Pad", [X, extents(1, 1, 2, 0, 0, 1)], {"mode": "edge"}, ["y"]),
    "a lower triangle": ("Trilu", [X, numpy.array(1)], {"upper": 0}, ["y"]),
    "slices": ("GatherND", [X, extents([0, 1], [1, -1])], {}, ["y"]),
    "samples": ("GridSample", [floats(1, 2, 4, 5), floats(1, 3, 3, 2)], {"mode": "bicubic", "padding_mode": "border"}, ["y"]),
    "one more dimension": ("ExpandDims", [X, numpy.array(-2, "i4")], {}, ["y"]),
    "inverses": ("Inverse", [MATRICES], {}, ["y"]),
    "distances": ("CDist", [floats(3, 4), floats(5, 4)], {"metric": "euclidean"}, ["y"]),
    "windows along an axis": ("UnfoldTensor", [floats(2, 7, 3)], {"dim": 1, "size": 3, "step": 2}, ["y"]),
    "squares of distances": ("CDist", [floats(3, 4), floats(5, 4)], {}, ["y"]),
    "a product of what is transposed": ("TransposeMatMul", [X, floats(2, 4, 3)], {"transA": 1, "transB": 1, "alpha": 0.5}, ["y"]),
}
HALVES = [array.astype("f2") for array in (X, SKIP, GAIN, BIAS)]
CASES["skip norm of halves"] = ("SkipLayerNormalization", [*HALVES, HALVES[3]], {"epsilon": 1e-3}, ["y", "", "", "sum"])
CASES["skip rms norm of halves"] = ("SkipSimplifiedLayerNormalization", HALVES, {"epsilon": 1e-3}, ["y", "", "", "sum"])
OWN["rms norm of halves"] = ("SimplifiedLayerNormalization", HALVES[:3:2], {"epsilon": 1e-3, "axis": -1}, ["y"])


def kind_of(op, operands, result):
    """The type of ONNX that a result has."""
    if result.partition("_")[2] in KINDS:
        return KINDS[result.partition("_")[2]]
    if op.endswith("Classifier") and result == "y":
        return KINDS["int64"]
    if result == "m":
        return KINDS["int32"]
    if result[1:] in ("8", "4"):
        return KINDS["int8" if result[1:] == "8" else "uint8"]
    if op.startswith("QLinear") or (op == "QGemm" and len(operands) > 6):
        return KINDS["uint8"]
    if op == "QuantizeLinear" and result == "y":
        return KINDS["uint8"]
    halves = "Norm" in op and operands[0].dtype == "f2" and result in ("y", "sum")
    return KINDS["float16" if halves else "float32"]


def check(nnc, folder, op, operands, attributes, results, domain):
    names = [f"i{i}" if v is not None else "" for i, v in enumerate(operands)]
    weights = [tensor(n, v) for n, v in zip(names[1:], operands[1:]) if n and not isinstance(v, Given)]
    inputs = {n: numpy.asarray(v) for n, v in zip(names, operands) if n == "i0" or isinstance(v, Given)}
    content = model(graph([node(op, names, results, domain=domain, **attributes)], [value(n, v.shape, KINDS[v.dtype.name]) for n, v in inputs.items()],
                          [value(r, None, kind_of(op, operands, r)) for r in results if r], weights), domains=[domain])
    path = folder / "m.onnx"
    path.write_bytes(content)
    wanted = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, inputs)
    for name, array in inputs.items():
        numpy.save(folder / f"{name}.npy", array)
    given_files = [word for name in inputs for word in ("--input", f"{name}={folder / name}.npy")]
    outputs = [word for r in results if r for word in ("--output", f"{r}={folder / r}.npy")]
    command = [nnc, "run", path, "--target", "reference", *given_files, *outputs]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for name, want in zip([r for r in results if r], wanted):
        numpy.testing.assert_allclose(numpy.load(folder / f"{name}.npy").astype("f8"), want.astype("f8"), 2e-5, {1: 1.0, 2: 2e-3}.get(want.dtype.itemsize, 2e-5))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    options = parser.parse_args()
    cases = [(*c, "") for c in OWN.items()]
    cases += [(*c, "com.microsoft") for c in (CASES | MORE).items()]
    cases += [(*c, "ai.onnx.ml") for c in LEARNED.items()]
    print(f"1..{len(cases)}")
    for i, (name, case, domain) in enumerate(cases, 1):
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(options.nnc.resolve(), pathlib.Path(folder), *case, domain)
                print(f"ok {i} - {name}")
            except Exception as error:  # ONNX Runtime has its own
                print("\n".join("# " + line for line in str(error).splitlines()[:8]))
                print(f"not ok {i} - {name}")


if __name__ == "__main__":
    main()
