"""Single ops of ONNX beside ONNX Runtime: what kernels of no network in particular cost.

    single_ops.py BUILD [--turns N] [--threads N] [OP ...]      with the Python of the peers (peers/install.sh)

Each op is a model of its own, which peers.py compiles, checks and times as it does networks.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper

HERE = pathlib.Path(__file__).parent
IMAGE = [1, 64, 56, 56]
DICE = np.random.default_rng(0)


def floats(*shape):
    return DICE.standard_normal(shape).astype("f4")


def pool(op, size, stride, shape):
    """Windows of `size` in each dimension, padded so that each element is the centre of one where the stride is 1."""
    rank = len(shape) - 2
    pad = size // 2 if stride < size else 0
    out = shape[:2] + [(n + 2 * pad - size) // stride + 1 for n in shape[2:]]
    return op, shape, out, {}, {"kernel_shape": [size] * rank, "strides": [stride] * rank, "pads": [pad] * 2 * rank}


def reduction(op, axis, shape):
    return op, shape, [1 if d == axis else n for d, n in enumerate(shape)], {"axes": np.array([axis])}, {}


def border(mode):
    return "Pad", [1, 32, 64, 64], [1, 32, 70, 70], {"pads": np.array([0, 0, 3, 3] * 2)}, {"mode": mode}


# name: op, shapes of its operand and result, constants behind the operand, attributes
OPS = {f"{op.lower()} {k}x{k} by {s}, {n}x{n}": pool(op, k, s, [1, 64, n, n])
       for op in ("MaxPool", "AveragePool") for k, s, n in ((2, 2, 56), (3, 2, 112), (3, 1, 56), (3, 1, 14), (5, 1, 14))}  # fmt: skip
OPS |= {
    "maxpool 3x3x3 by 2": pool("MaxPool", 3, 2, [1, 16, 32, 32, 32]),
    "argmax of channels": ("ArgMax", [1, 21, 128, 128], [1, 128, 128], {}, {"axis": 1, "keepdims": 0}),
    "argmax of rows": ("ArgMax", [64, 1000], [64], {}, {"axis": 1, "keepdims": 0}),
    "softmax of channels": ("Softmax", [1, 21, 128, 128], [1, 21, 128, 128], {}, {"axis": 1}),
    "softmax of rows of 56": ("Softmax", IMAGE, IMAGE, {}, {"axis": 3}),
    "softmax of rows of 197": ("Softmax", [12, 197, 197], [12, 197, 197], {}, {"axis": 2}),
    "log softmax of rows of 56": ("LogSoftmax", IMAGE, IMAGE, {}, {"axis": 3}),
    "largest of rows of 56": reduction("ReduceMax", 3, IMAGE),
    "sum of rows of 56": reduction("ReduceSum", 3, IMAGE),
    "norm of channels": reduction("ReduceL2", 1, IMAGE),
    "border by reflection": border("reflect"),
    "border of edges": border("edge"),
    "tiled image": ("Tile", [1, 32, 28, 28], [1, 32, 56, 56], {"repeats": np.array([1, 1, 2, 2])}, {}),
    "instance norm": ("InstanceNormalization", IMAGE, IMAGE, {"scale": floats(64), "bias": floats(64)}, {}),
    "group norm": ("GroupNormalization", IMAGE, IMAGE, {"scale": floats(64), "bias": floats(64)}, {"num_groups": 8}),
    "layer norm": ("LayerNormalization", [128, 768], [128, 768], {"scale": floats(768), "bias": floats(768)}, {}),
    "transposed last": ("Transpose", IMAGE, [1, 64, 56, 56], {}, {"perm": [0, 1, 3, 2]}),
    "running sum": ("CumSum", IMAGE, IMAGE, {"axis": np.array(3)}, {}),
    "exp": ("Exp", IMAGE, IMAGE, {}, {}),
    "erf": ("Erf", IMAGE, IMAGE, {}, {}),
    "convolution of a row": ("Conv", [1, 64, 500], [1, 128, 500], {"w": floats(128, 64, 3)}, {"pads": [1, 1]}),
    "product of 128 rows": ("MatMul", [128, 768], [128, 768], {"w": floats(768, 768)}, {}),
}


def write(path, op, shape, result, constants, attributes):
    kind = TensorProto.INT64 if op == "ArgMax" else TensorProto.FLOAT
    node = helper.make_node(op, ["x", *constants], ["y"], **attributes)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", kind, result)],
                              [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()])  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("ops", nargs="*", metavar="OP", help=f"default: all of {', '.join(OPS)}")
    parser.add_argument("--turns", default="5")
    parser.add_argument("--threads", default="1")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name in words.ops or OPS:
            files.append(pathlib.Path(folder, name.replace(" ", "_").replace(",", "") + ".onnx"))
            write(files[-1], *OPS[name])
        command = [sys.executable, HERE / "peers.py", words.build, "--turns", words.turns, "--threads", words.threads]
        return subprocess.run([*command, "--peer", "onnxruntime", *files]).returncode


if __name__ == "__main__":
    sys.exit(main())
