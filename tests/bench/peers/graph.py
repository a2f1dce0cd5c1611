"""ONNX files carried out op by op, for peers that read none: with PyTorch's functions or JAX's, traced and compiled by these.

An op is a function of its inputs with its attributes as keywords, whose defaults are ONNX's.  Here are those that both libraries
say alike; the others have a table of their own (pytorch.py, xla.py).  Ops are as many as the networks of models/ need.
"""

import math

import numpy as np
import onnx
from onnx import helper, numpy_helper

FLOAT, INT32, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT32, onnx.TensorProto.INT64


class Graph:
    """Float arrays are weights; scalars, shapes and axes are numbers and lists, known when it is traced."""

    def __init__(self, path):
        graph = onnx.load(path).graph
        stored = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
        self.weights = {name: a for name, a in stored.items() if a.ndim and a.dtype == np.float32}
        self.numbers = {name: a.tolist() for name, a in stored.items() if name not in self.weights}
        self.inputs = [i.name for i in graph.input if i.name not in stored]
        self.outputs = [o.name for o in graph.output]
        self.nodes = [(n.op_type, list(n.input), list(n.output), attributes_of(n)) for n in graph.node]

    def kinds(self):
        return {kind for kind, *_ in self.nodes}

    def run(self, ops, weights, inputs):
        values = {"": None, **self.numbers, **weights, **dict(zip(self.inputs, inputs))}
        for kind, takes, gives, attributes in self.nodes:
            y = ops[kind](*[values[name] for name in takes], **attributes)
            values.update(zip(gives, y if len(gives) > 1 else [y]))
        return [values[name] for name in self.outputs]


def attributes_of(node):
    values = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    return {name: value.decode() if isinstance(value, bytes) else value for name, value in values.items()}


def ends_of(path):
    """Name, type and extents of each input, and of each output."""
    model = onnx.load(path)
    if not all(o.type.tensor_type.HasField("shape") for o in model.graph.output):
        model = onnx.shape_inference.infer_shapes(model)

    def end(value):
        tensor = value.type.tensor_type
        return value.name, helper.tensor_dtype_to_np_dtype(tensor.elem_type), [d.dim_value for d in tensor.shape.dim]

    stored = {i.name for i in model.graph.initializer}
    return [end(i) for i in model.graph.input if i.name not in stored], [end(o) for o in model.graph.output]


def open_graph(path, ops):
    graph = Graph(path)
    if missing := graph.kinds() - ops.keys():
        raise NotImplementedError(f"no such ops here: {', '.join(sorted(missing))}")
    return graph


# ---- Shapes ----


def reshape(x, shape):
    return x.reshape([x.shape[i] if extent == 0 else extent for i, extent in enumerate(shape)])


def flatten(x, axis=1):
    return x.reshape(math.prod(x.shape[:axis]), -1)


def cut(x, begin, end, axes, steps=None):
    index = [slice(None)] * x.ndim
    for axis, *bounds in zip(axes, begin, end, steps or [1] * len(axes)):
        index[axis] = slice(*bounds)
    return x[tuple(index)]


def squeeze(x, axes):
    gone = {axis % x.ndim for axis in axes}
    return x.reshape([extent for i, extent in enumerate(x.shape) if i not in gone])


def unsqueeze(x, axes):
    rank, extents = x.ndim + len(axes), iter(x.shape)
    new = {axis % rank for axis in axes}
    return x.reshape([1 if i in new else next(extents) for i in range(rank)])


def gemm(x, y, z=None, alpha=1.0, beta=1.0, transA=0, transB=0):
    product = (x.T if transA else x) @ (y.T if transB else y)
    product = product if alpha == 1 else alpha * product
    return product if z is None else product + (z if beta == 1 else beta * z)


def shared_ops(lib):
    """By ONNX's names, with the library's functions: torch or jax.numpy."""
    return {
        "Add": lambda x, y: x + y,
        "Sub": lambda x, y: x - y,
        "Mul": lambda x, y: x * y,
        "Div": lambda x, y: x / y,
        "Pow": lambda x, y: x**y,
        "LessOrEqual": lambda x, y: x <= y,
        "Where": lib.where,
        "Tanh": lib.tanh,
        "Clip": lambda x, low=None, high=None: lib.clip(x, low, high),
        "MatMul": lambda x, y: x @ y,
        "Gemm": gemm,
        "GlobalAveragePool": lambda x: x.mean((2, 3), keepdims=True),
        "Range": lambda begin, end, step: lib.arange(begin, end, step),
        "Concat": lambda *xs, axis: lib.concatenate(xs, axis),
        "Reshape": reshape,
        "Flatten": flatten,
        "Slice": cut,
        "Squeeze": squeeze,
        "Unsqueeze": unsqueeze,
    }
