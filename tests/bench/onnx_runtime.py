#!/usr/bin/env python3
"""Stands in for `nnc run` and runs the export of the model in ONNX Runtime:

    NNC=build/nnc onnx_runtime.py run MODEL [--input NAME=FILE.npy ...] [--output NAME=FILE.npy ...] [flag ...]
    NNC=build/nnc onnx_runtime.py ops

Other flags are those of `nnc export`; `--target X` is left out.  The file is checked with onnx.checker before.  So
tests/conform/conform.py compares ONNX Runtime with NumPy:

    NNC=build/nnc python tests/conform/conform.py --nnc tests/bench/onnx_runtime.py --target x -- --init-missing
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper


def export(nnc, model, flags, path):
    done = subprocess.run([nnc, "export", model, "-o", path, *flags], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)


def with_wide_ends(model):
    """NumPy has no bfloat16: such inputs and outputs become floats."""
    graph, casts = model.graph, {}
    for value in list(graph.input) + list(graph.output):
        if value.type.tensor_type.elem_type != TensorProto.BFLOAT16:
            continue
        inner = value.name + "/narrow"
        casts[value.name] = inner
        value.type.tensor_type.elem_type = TensorProto.FLOAT
    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = [casts.get(name, name) for name in names]
    taken = {value.name for value in graph.input}
    for name, inner in casts.items():
        if name in taken:
            graph.node.insert(0, helper.make_node("Cast", [name], [inner], to=TensorProto.BFLOAT16))
        else:
            graph.node.append(helper.make_node("Cast", [inner], [name], to=TensorProto.FLOAT))
    return set(casts)


def session(path, threads=1):
    """The narrow ends, and the session."""
    onnx.checker.check_model(str(path), full_check=True)
    model = onnx.load(path)
    narrow = with_wide_ends(model)
    if narrow:
        path = pathlib.Path(path).with_suffix(".wide.onnx")
        onnx.save(model, path)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    return narrow, onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def load(path, narrow):
    values = numpy.load(path)
    if narrow:
        values = (values.view(numpy.uint16).astype(numpy.uint32) << 16).view(numpy.float32).reshape(values.shape)
    return values


def save(path, values, narrow):
    if narrow:
        values = (numpy.ascontiguousarray(values).view(numpy.uint32) >> 16).astype(numpy.uint16).view("V2").reshape(values.shape)
    numpy.save(path, values)


def run(nnc, model, words):
    inputs, outputs, flags = {}, {}, []
    words = iter(words)
    for word in words:
        if word in ("--input", "--output"):
            name, file = next(words).split("=", 1)
            (inputs if word == "--input" else outputs)[name] = file
        elif word == "--target":
            next(words)
        else:
            flags.append(word)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        export(nnc, model, flags, path)
        narrow, ran = session(path)
        names = list(outputs)
        given = {name: load(file, name in narrow) for name, file in inputs.items()}
        for name, values in zip(names, ran.run(names, given)):
            save(outputs[name], values, name in narrow)


def main():
    nnc = os.environ["NNC"]
    if sys.argv[1] == "run":
        run(nnc, sys.argv[2], sys.argv[3:])
    else:
        os.execv(nnc, [nnc, *sys.argv[1:]])


if __name__ == "__main__":
    main()
