"""Gradients of the layers of ResNet-50 and BERT-base, as shares of the machine's peak: one core, f32.

    gradients.py BUILD [--batch N] [--tokens N] [--target T]

For each layer the product itself, the gradient of its operand and that of its weight, each a graph of its own, as they
stand in a training step: the weight comes at run time, images lie in blocks of channels.  The peak is the loop of
multiply-adds of `nnc bench`, measured in the same run; a share is the fastest of three runs.  Closes with geometric
means, of ResNet-50 without the gradient of its image, which training does not ask for, and of BERT.
"""

import argparse
import json
import math
import pathlib
import re
import subprocess
import tempfile

from bench import TARGETS

# channels, image, outputs, window, stride: the convolutions of ResNet-50 (He et al. 2015), each kind once
RESNET50 = [(3, 224, 64, 7, 2)] + [
    layer
    for width, image, before in ((64, 56, 64), (128, 28, 256), (256, 14, 512), (512, 7, 1024))
    for layer in (
        (before, image * (1 if width == 64 else 2), width, 1, 1),
        (width, image * (1 if width == 64 else 2), width, 3, 1 if width == 64 else 2),
        (width, image, 4 * width, 1, 1),
        (before, image * (1 if width == 64 else 2), 4 * width, 1, 1 if width == 64 else 2),
        (4 * width, image, width, 1, 1),
        (width, image, width, 3, 1),
    )
]
LANES = {"generic": 4, "x86-64-v2": 4, "x86-64-v3": 8, "x86-64-v4": 16, "aarch64": 4}
BERT = [(768, 768), (768, 3072), (3072, 768)]  # operand and result of a token


def convolution(n, channels, image, outputs, window, stride):
    out = (image + 2 * (window // 2) - window) // stride + 1
    x, w, d = f"x: f32[{n}, {channels}, {image}, {image}]", f"w: f32[{outputs}, {channels}, {window}, {window}]", \
        f"d: f32[{n}, {outputs}, {out}, {out}]"
    where = f"stride = [{stride}, {stride}], pad = [{', '.join([str(window // 2)] * 4)}], dilation = [1, 1]"
    shape = lambda text: text.split(": ")[1]
    return {
        "conv": (f"{x}, {w}", shape(d), f"conv2d(x, w, stride = {stride}, pad = {window // 2})"),
        "operand": (f"{d}, {w}", shape(x), f"conv2d_transpose(d, w, size = [{image}, {image}], {where})"),
        "weight": (f"{x}, {d}", shape(w), f"conv2d_weight_gradient(x, d, size = [{window}, {window}], {where})"),
    }


def product(tokens, k, n):
    x, w, d = f"x: f32[{tokens}, {k}]", f"w: f32[{k}, {n}]", f"d: f32[{tokens}, {n}]"
    return {
        "conv": (f"{x}, {w}", f"f32[{tokens}, {n}]", "x @ w"),
        "operand": (f"{d}, {w}", f"f32[{tokens}, {k}]", "matmul(d, w, transpose_y = true)"),
        "weight": (f"{x}, {d}", f"f32[{k}, {n}]", "transpose(x) @ d"),
    }


def in_blocks(inputs, value, lanes):
    """Statements that bring images into blocks of channels, as layers before and behind would, and the value of these."""
    lines = []
    for name, *extents in re.findall(r"(\b[xd]): f32\[(\d+), (\d+), (\d+), (\d+)\]", inputs):
        if lanes > 1 and int(extents[1]) % lanes == 0:
            lines.append(f"    {name}b: f32[{', '.join(extents)}]{{NCHW{lanes}c}} = relayout({name})\n")
            value = re.sub(rf"\b{name}\b(?=[,)])", f"{name}b", value)
    return "".join(lines), value


def share(nnc, target, folder, graph):
    inputs, result, value = graph
    blocks, value = in_blocks(inputs, value, LANES[target])
    path = pathlib.Path(folder) / "layer.nnc"
    path.write_text(f"nnc 1\ngraph layer({inputs}) -> (y: {result}) {{\n{blocks}    y = {value}\n}}\n")
    best = 0
    for _ in range(3):
        text = subprocess.check_output([nnc, "bench", path, "--kernels", "--seconds", "1", "--target", target, "--format", "json"],
                                       stderr=subprocess.DEVNULL)
        found = json.loads(text)
        kernel = max(found["kernels"], key=lambda kernel: kernel["flop"])
        best = max(best, kernel["flop"] / kernel["median_s"] / found["peak_flop_per_s"])
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=512)
    cpu = pathlib.Path("/proc/cpuinfo").read_text()
    parser.add_argument("--target", default=next((t for t, flag in TARGETS.items() if flag in cpu), "generic"))
    arguments = parser.parse_args()
    layers = [(f"{c} x {i}^2 to {o}, {k} x {k} / {s}", convolution(arguments.batch, c, i, o, k, s)) for c, i, o, k, s in RESNET50]
    layers += [(f"{arguments.tokens} x {k} to {n}", product(arguments.tokens, k, n)) for k, n in BERT]
    shares = {"conv": [], "operand": [], "weight": []}
    print(f"{'layer':34} {'product':>8} {'operand':>8} {'weight':>8}   % of the peak")
    with tempfile.TemporaryDirectory() as folder:
        for name, graphs in layers:
            for which, graph in graphs.items():
                shares[which].append(100 * share(arguments.build.resolve() / "nnc", arguments.target, folder, graph))
            print(f"{name:34} " + " ".join(f"{s[-1]:8.1f}" for s in shares.values()), flush=True)
    for name, begin, end in (("ResNet-50", 0, len(RESNET50)), ("BERT", len(RESNET50), len(layers))):
        found = [values[begin + (which == "operand" and not begin) : end] for which, values in shares.items()]
        means = [math.exp(sum(map(math.log, values)) / len(values)) for values in found]
        print(f"{name + ', geometric mean':34} " + " ".join(f"{m:8.1f}" for m in means))


if __name__ == "__main__":
    main()
