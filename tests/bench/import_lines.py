#!/usr/bin/python3
"""How many lines the import of networks of torchvision has, by both exporters of PyTorch.

    import_lines.py NNC [NETWORK ...]

Weights are drawn, each for itself: of a network that has not been trained, many are equal, and equal ones are one param,
which other blocks do not have.
"""

import pathlib
import subprocess
import sys
import tempfile
import warnings

import torch
import torchvision

NETWORKS = "resnet50 vit_b_16 convnext_tiny swin_t maxvit_t".split()


def draw(network):
    for tensor in [*network.parameters(), *network.buffers()]:
        if tensor.is_floating_point():
            tensor.data.copy_(torch.rand(tensor.shape) + 0.5)


def lines(nnc, network, path, dynamo):
    torch.onnx.export(network, (torch.zeros(1, 3, 224, 224),), path, dynamo=dynamo, verbose=False)
    return len(subprocess.run([nnc, "import", path], check=True, capture_output=True, text=True).stdout.splitlines())


def main():
    warnings.filterwarnings("ignore")
    nnc, names = sys.argv[1], sys.argv[2:] or NETWORKS
    for name in names:
        network = getattr(torchvision.models, name)(weights=None).eval()
        draw(network)
        with tempfile.TemporaryDirectory() as folder:
            counts = [lines(nnc, network, pathlib.Path(folder) / f"{kind}.onnx", kind) for kind in (False, True)]
        print(f"{name:16} {counts[0]:5} by TorchScript {counts[1]:5} by dynamo", flush=True)


if __name__ == "__main__":
    main()
