#!/usr/bin/python3
"""Networks of bytes beside ONNX Runtime and OpenVINO: what ONNX Runtime's quantiser makes of networks.py.

    quantised.py BUILD FOLDER [NETWORK.FORM ...] [options of peers.py]           FORM: qdq, qoperator or dynamic

Activations are u8 and weights i8 with a scale for each channel (`quantize_static`, of random images); `.dynamic` has the
range of each activation taken when running (`quantize_dynamic`).  The files stay in FOLDER, and peers.py times them.
Both round in the middle of two steps, to either side: outputs may be further apart than those of f32.
"""

import argparse
import pathlib
import subprocess
import sys

import numpy as np
from onnxruntime import quantization as quant

import networks
from peers.graph import ends_of

ROWS = "resnet8.qdq resnet8.qoperator mobilenetv2.qdq mobilenetv2.qoperator resnet50.qdq resnet50.qoperator bert_base.dynamic".split()
FORMS = "qdq", "qoperator", "dynamic"
ROOT = pathlib.Path(__file__).resolve().parents[2]


class Images(quant.CalibrationDataReader):
    """A few random inputs, from which the ranges of activations are taken."""

    def __init__(self, make_input):
        self.batches = iter([make_input(np.random.default_rng(seed)) for seed in range(4)])

    def get_next(self):
        return next(self.batches, None)


def drawn(path):
    """Normal inputs, by name, of a file that `nnc export` wrote."""
    inputs, _ = ends_of(path)
    return lambda dice: {name: dice.normal(size=shape).astype(dtype) for name, dtype, shape in inputs}


def plain(nnc, name, path):
    """The network in f32, with random weights; returns what makes its inputs."""
    model = ROOT / "models" / f"{name}.nnc"
    if name not in networks.NETWORKS:
        subprocess.run([nnc, "export", model, "-o", path, "--flat"], check=True, capture_output=True)
        return drawn(path)
    make, make_input = networks.NETWORKS[name]
    net = networks.Net(networks.draw_weights(nnc, model))
    net.save(name, make_input(np.random.default_rng(2)), make(net), path)
    return make_input


def quantise(nnc, name, form, folder):
    source, result = folder / f"{name}.onnx", folder / f"{name}.{form}.onnx"
    if result.exists():
        return result
    make_input = plain(nnc, name, source)
    if form == "dynamic":
        quant.quantize_dynamic(source, result, per_channel=True, weight_type=quant.QuantType.QInt8)
        return result
    ready = folder / f"{name}.ready.onnx"
    quant.quant_pre_process(source, ready)
    quant.quantize_static(
        ready, result, Images(make_input), per_channel=True, weight_type=quant.QuantType.QInt8, activation_type=quant.QuantType.QUInt8,
        quant_format=quant.QuantFormat.QDQ if form == "qdq" else quant.QuantFormat.QOperator)  # fmt: skip
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("network", nargs="*", default=ROWS)
    args, options = parser.parse_known_intermixed_args()
    if wrong := [name for name in args.network if name.partition(".")[2] not in FORMS]:
        parser.error(f"{wrong[0]} is no NETWORK.FORM; forms: {', '.join(FORMS)}")
    args.folder.mkdir(parents=True, exist_ok=True)
    files = [quantise(args.build.resolve() / "nnc", *name.split("."), args.folder.resolve()) for name in args.network]
    peers = pathlib.Path(__file__).with_name("peers.py")
    sys.exit(subprocess.run([sys.executable, peers, args.build, "--worst", "0.1", *options, *files], check=False).returncode)


if __name__ == "__main__":
    main()
