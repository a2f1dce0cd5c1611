"""3x3 convolutions, layer by layer: the register tiles beside Winograd's algorithm, and what the cost table chooses.

    winograd.py BUILD [--target T ...] [--seconds N] [--layer NAME ...]

A network for each layer has it several times, by each recipe in turns, each with weights of its own, so that all of them
come from memory as they do in a network; `nnc bench --kernels` times them in one run.  Columns: microseconds by the
register tiles; how many times as fast tiles of 2x2, of 4x4 and what is chosen are, as ratios of medians; the choice.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import tempfile

COPIES = 3
RECIPES = ["tiled", "winograd, results = 2", "winograd, results = 4", None]
LAYERS = {  # channels, outputs, extent of the square image
    "resnet8/1": (16, 16, 32), "resnet8/2": (32, 32, 16), "resnet8/3": (64, 64, 8),
    "resnet50/2": (64, 64, 56), "resnet50/3": (128, 128, 28), "resnet50/4": (256, 256, 14), "resnet50/5": (512, 512, 7),
    "densenet/1": (128, 32, 56), "densenet/2": (128, 32, 28), "densenet/3": (128, 32, 14), "densenet/4": (128, 32, 7),
    "squeezenet/1": (16, 64, 55), "squeezenet/2": (32, 128, 27), "squeezenet/3": (48, 192, 13), "squeezenet/4": (64, 256, 13),
    "inception/1": (32, 64, 147), "inception/2": (64, 96, 35), "inception/3": (96, 96, 35),
    "vgg16/2": (64, 64, 112), "vgg16/3": (128, 128, 56), "vgg16/4": (256, 256, 28), "vgg16/5": (512, 512, 14),
    "narrow": (8, 8, 64), "image": (3, 32, 64),
}


def text_of(channels, outputs, extent):
    """Between two of them stands a pointwise convolution, as they do in a ResNet."""
    body = [f"    param first: f32[{channels}, {channels}, 1, 1] = he_normal(seed = 1)", "    x0 = conv2d(x, first)"]
    count = COPIES * len(RECIPES)
    for i in range(count):
        mark = f" @kernel({i}, {RECIPES[i % len(RECIPES)]})" if RECIPES[i % len(RECIPES)] else ""
        body += [f"    param w{i}: f32[{outputs}, {channels}, 3, 3] = he_normal(seed = {i})",
                 f"    param b{i}: f32[{outputs}] = he_normal(seed = {i})",
                 f"    y{i} = relu(conv2d(x{i}, w{i}, b{i}, pad = 1)){mark}"]
        if i + 1 < count:
            body += [f"    param v{i}: f32[{channels}, {outputs}, 1, 1] = he_normal(seed = {i})", f"    x{i + 1} = conv2d(y{i}, v{i})"]
    image = f"{extent}, {extent}]"
    return (f'nnc 1\nuse "nn"\ngraph layer(x: f32[1, {channels}, {image}) -> (y{count - 1}: f32[1, {outputs}, {image}) {{\n'
            + "\n".join(body) + "\n}\n")


def kernels_of(nnc, source, target):
    """Of each copy in order, the number of its kernel and its recipe."""
    printed = subprocess.run([nnc, "opt", source, "--target", target], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"conv2d\(\S+ w\d+, .*@kernel\((\d+), (.*)\)", printed)
    return [(int(number), recipe) for number, recipe in found]


def times_of(nnc, source, target, seconds):
    words = [nnc, "bench", source, "--target", target, "--kernels", "--seconds", str(seconds), "--format", "json"]
    told = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    return {kernel["kernel"]: kernel["median_s"] for kernel in told["kernels"]}


def compare(given, target, name, folder):
    source = folder / "layer.nnc"
    source.write_text(text_of(*LAYERS[name]))
    kernels, times = kernels_of(given.nnc, source, target), times_of(given.nnc, source, target, given.seconds)
    medians = [statistics.median(times[number] for number, _ in kernels[k::len(RECIPES)]) for k in range(len(RECIPES))]
    direct = medians[0]
    ratios = "".join(f" {direct / median:7.2f}" for median in medians[1:])
    print(f"{target:10} {name:13} {'x'.join(map(str, LAYERS[name])):12} {direct * 1e6:9.1f}{ratios}  {kernels[-1][1]}", flush=True)


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("build", type=pathlib.Path)
    words.add_argument("--target", nargs="*", default=["x86-64-v4", "x86-64-v3"])
    words.add_argument("--seconds", type=int, default=1)
    words.add_argument("--layer", nargs="*", default=list(LAYERS))
    given = words.parse_args()
    given.nnc = given.build / "nnc"
    print(f"{'target':10} {'layer':13} {'shape':12} {'direct us':>9} {'2x2':>7} {'4x4':>7} {'chosen':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for target in given.target:
            for name in given.layer:
                compare(given, target, name, pathlib.Path(folder))


if __name__ == "__main__":
    main()
