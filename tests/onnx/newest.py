"""Writes the cases of the package onnx as folders, as its backend tests keep them.

    newest.py FOLDER        with a Python that has onnx
"""

import pathlib
import sys

import numpy
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases


def proto_of(value, name):
    if isinstance(value, onnx.TensorProto):
        return value
    if isinstance(value, (list, tuple)):
        return numpy_helper.from_list(list(value), name)
    return numpy_helper.from_array(numpy.asarray(value), name)


def wrapped(value, info):
    """What stands for an optional says so in the file."""
    if info.type.HasField("optional_type"):
        return numpy_helper.from_optional(value, "") if value is not None else onnx.OptionalProto()
    return proto_of(value, "") if value is not None else None


def write(case, folder):
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(case.model, folder / "model.onnx")
    for i, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{i}"
        data.mkdir(exist_ok=True)
        graph = case.model.graph
        for kind, values, infos in (("input", inputs, graph.input), ("output", outputs, graph.output)):
            for k, (value, info) in enumerate(zip(values, infos)):
                message = wrapped(value, info)
                if message is not None:
                    (data / f"{kind}_{k}.pb").write_bytes(message.SerializeToString())


def main():
    root = pathlib.Path(sys.argv[1]) / "newest"
    count = 0
    for case in collect_testcases(None):
        try:
            write(case, root / case.name)
            count += 1
        except (TypeError, ValueError, AttributeError) as error:
            print(f"{case.name}: {error}")
    print(f"{count} cases of onnx {onnx.__version__}")


if __name__ == "__main__":
    main()
