"""JAX: one function, compiled by XLA; the weights are constants of it, or arguments, whichever is faster."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from peers import fastest, graph

DTYPES = {graph.FLOAT: jnp.float32, graph.INT32: jnp.int32, graph.INT64: jnp.int32}


def margins(pads):
    top, left, bottom, right = pads
    return [(top, bottom), (left, right)]


def along_channels(vector, x):
    return vector[:, None, None] if x.ndim == 4 else vector


def conv(x, w, b=None, strides=(1, 1), pads=(0, 0, 0, 0), dilations=(1, 1), group=1, kernel_shape=None):
    y = lax.conv_general_dilated(x, w, strides, margins(pads), rhs_dilation=dilations, feature_group_count=group)
    return y if b is None else y + along_channels(b, y)


def windows(x, first, op, kernel_shape, strides, pads, dilations):
    whole = ((0, 0), (0, 0), *margins(pads))
    return lax.reduce_window(x, first, op, (1, 1, *kernel_shape), (1, 1, *strides), whole, window_dilation=(1, 1, *dilations))


def max_pool(x, kernel_shape, strides=(1, 1), pads=(0, 0, 0, 0), dilations=(1, 1)):
    return windows(x, -jnp.inf, lax.max, kernel_shape, strides, pads, dilations)


def average_pool(x, kernel_shape, strides=(1, 1), pads=(0, 0, 0, 0), dilations=(1, 1), count_include_pad=0):
    if any(pads) and not count_include_pad:
        raise NotImplementedError("an average that leaves out its padding")
    return windows(x, 0.0, lax.add, kernel_shape, strides, pads, dilations) / math.prod(kernel_shape)


def batch_norm(x, scale, bias, mean, variance, epsilon=1e-5):
    factor = scale * lax.rsqrt(variance + epsilon)
    return x * along_channels(factor, x) + along_channels(bias - mean * factor, x)


def layer_norm(x, scale, bias, axis=-1, epsilon=1e-5):
    centred = x - x.mean(axis, keepdims=True)
    return centred * lax.rsqrt(jnp.square(centred).mean(axis, keepdims=True) + epsilon) * scale + bias


def hard_sigmoid(x, alpha=0.2, beta=0.5):
    return jnp.clip(x * alpha + beta, 0, 1)


OPS = {
    **graph.shared_ops(jnp),
    "Conv": conv,
    "MaxPool": max_pool,
    "AveragePool": average_pool,
    "BatchNormalization": batch_norm,
    "LayerNormalization": layer_norm,
    "Relu": jax.nn.relu,
    "Sigmoid": jax.nn.sigmoid,
    "HardSigmoid": hard_sigmoid,
    "HardSwish": lambda x: x * hard_sigmoid(x, 1 / 6),
    "Gelu": lambda x, approximate="none": jax.nn.gelu(x, approximate == "tanh"),
    "Erf": lax.erf,
    "Softmax": lambda x, axis=-1: jax.nn.softmax(x, axis),
    "Transpose": lambda x, perm: x.transpose(perm),
    "Split": lambda x, sizes, axis=0: jnp.split(x, np.cumsum(sizes)[:-1].tolist(), axis),
    "Gather": lambda x, i, axis=0: jnp.take(x, i, axis),
    "Cast": lambda x, to: jnp.asarray(x, DTYPES[to]),
}


def open_jax(path, inputs, threads, folder):
    read = graph.open_graph(path, OPS)
    weights = {name: jnp.asarray(array) for name, array in read.weights.items()}
    values = [jnp.asarray(inputs[name]) for name in read.inputs]

    def with_weights(*arguments, known=None):
        function = jax.jit(lambda *x: read.run(OPS, known, x) if known else read.run(OPS, x[0], x[1:]))
        return lambda: [y.block_until_ready() for y in function(*arguments)]

    run = fastest(
        {
            "weights as constants": lambda: with_weights(*values, known=weights),
            "weights as arguments": lambda: with_weights(weights, *values),
        },
        threads,
    )
    return run, [np.asarray(y) for y in run()]
