"""Ops of the domain com.microsoft against ONNX Runtime, whose they are.

    contrib.py --nnc NNC      with a Python that has onnxruntime; reports as TAP
"""

import argparse
import pathlib
import subprocess
import tempfile

import numpy
import onnxruntime

from write import graph, model, node, tensor, value

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
    "skip rms norm": ("SkipSimplifiedLayerNormalization", [X, SKIP, GAIN], {"epsilon": 1e-3}, ["y", "", "", "sum"]),
    "fused matmul": ("FusedMatMul", [X, floats(8, 4)], {"alpha": 0.5}, ["y"]),
    "fused matmul of what is transposed": ("FusedMatMul", [X, floats(2, 4, 3)], {"transA": 1, "transB": 1}, ["y"]),
    "matmul of 4 bits": ("MatMulNBits", [floats(2, 40), BYTES, SCALES], {"K": 40, "N": 5, "bits": 4, "block_size": 16}, ["y"]),
    "matmul of 4 bits with zero points": ("MatMulNBits", [floats(2, 40), BYTES, SCALES, DICE.integers(0, 256, 10, dtype="u1")],
                                          {"K": 40, "N": 5, "bits": 4, "block_size": 16}, ["y"]),
    "matmul of 8 bits": ("MatMulNBits", [floats(2, 40), DICE.integers(0, 256, (5, 3, 16), dtype="u1"), SCALES],
                         {"K": 40, "N": 5, "bits": 8, "block_size": 16}, ["y"]),
}


def check(nnc, folder, op, operands, attributes, results):
    names = [f"i{i}" for i in range(len(operands))]
    weights = [tensor(n, v) for n, v in zip(names[1:], operands[1:])]
    content = model(graph([node(op, names, results, domain="com.microsoft", **attributes)], [value("i0", operands[0].shape)],
                          [value(r, None) for r in results if r], weights), domains=["com.microsoft"])
    path = folder / "m.onnx"
    path.write_bytes(content)
    wanted = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, {"i0": operands[0]})
    numpy.save(folder / "i0.npy", operands[0])
    outputs = [word for r in results if r for word in ("--output", f"{r}={folder / r}.npy")]
    command = [nnc, "run", path, "--target", "reference", "--input", f"i0={folder / 'i0.npy'}", *outputs]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for name, want in zip([r for r in results if r], wanted):
        numpy.testing.assert_allclose(numpy.load(folder / f"{name}.npy"), want, 2e-5, 2e-5)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    options = parser.parse_args()
    print(f"1..{len(CASES)}")
    for i, (name, case) in enumerate(CASES.items(), 1):
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(options.nnc.resolve(), pathlib.Path(folder), *case)
                print(f"ok {i} - {name}")
            except Exception as error:  # ONNX Runtime has its own
                print("\n".join("# " + line for line in str(error).splitlines()[:8]))
                print(f"not ok {i} - {name}")


if __name__ == "__main__":
    main()
