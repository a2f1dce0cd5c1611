"""Products of rows by a constant matrix, layer by layer: the register tiles beside Strassen's algorithm, and what the cost
table chooses.

    strassen.py BUILD [--target T ...] [--seconds N] [--layer NAME ...]

A network for each layer has it several times, by each recipe in turns, each with weights of its own, so that all of them
come from memory as they do in a network; `nnc bench --kernels` times them in one run.  Columns: microseconds by the
register tiles; how many times as fast Strassen's algorithm and what is chosen are, as ratios of medians; the choice.
"""

import argparse
import pathlib
import re
import statistics
import subprocess
import tempfile

from winograd import times_of

COPIES = 4
RECIPES = ["tiled", "strassen", None]
LAYERS = {  # rows or pixels, depth, columns; of an image where there is an extent
    "bert/attention": (128, 768, 768), "bert/inner": (128, 768, 3072), "bert/outer": (128, 3072, 768),
    "vit/attention": (197, 768, 768), "vit/inner": (197, 768, 3072), "vit/outer": (197, 3072, 768),
    "resnet50/3": ("28", 512, 256), "resnet50/4": ("14", 1024, 256), "resnet50/4b": ("14", 256, 1024), "resnet50/5": ("7", 2048, 512),
    "resnet50/5b": ("7", 512, 2048), "resnext50/4": ("14", 1024, 512), "densenet121/4": ("14", 512, 128), "inception_v3/6": ("17", 768, 192),
    "long": (1024, 512, 512), "narrow": (196, 128, 128),
}


def text_of(rows, depth, columns):
    """Each reads what the one before it gives, brought back to its depth by a product of few rows' worth."""
    image = isinstance(rows, str)
    x, y = (f"f32[1, {c}, {rows}, {rows}]" if image else f"f32[1, {rows}, {c}]" for c in (depth, columns))
    call, shape = ("conv2d({0}, {1})", "[{0}, {1}, 1, 1]") if image else ("matmul({0}, {1})", "[{1}, {0}]")
    body, count = [], COPIES * len(RECIPES)
    if image:
        body = [f"    param first: f32[{depth}, {depth}, 1, 1] = he_normal(seed = 1)", "    x0 = conv2d(x, first) @kernel(900, tiled)"]
    else:
        body = ["    x0 = relu(x)"]
    for i in range(count):
        recipe = RECIPES[i % len(RECIPES)]
        mark = f" @kernel({i}, {recipe})" if recipe else ""
        body += [f"    param w{i}: f32{shape.format(columns, depth)} = he_normal(seed = {i})",
                 f"    y{i} = {call.format(f'x{i}', f'w{i}')}{mark}"]
        if i + 1 < count:
            body += [f"    param v{i}: f32{shape.format(depth, columns)} = he_normal(seed = {i})",
                     f"    z{i} = {call.format(f'y{i}', f'v{i}')} @kernel({500 + i}, tiled)", f"    x{i + 1} = relu(z{i})"]
    return f"nnc 1\ngraph layer(x: {x}) -> (y{count - 1}: {y}) {{\n" + "\n".join(body) + "\n}\n"


def kernels_of(nnc, source, target):
    """Of each copy in order, the number of its kernel and its recipe."""
    printed = subprocess.run([nnc, "opt", source, "--target", target], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"(?:conv2d|matmul)\(\S+ w\d+\S* @kernel\((\d+), (.*)\)", printed)
    return [(int(number), recipe) for number, recipe in found]


def compare(given, target, name, folder):
    source = folder / "layer.nnc"
    source.write_text(text_of(*LAYERS[name]))
    kernels, times = kernels_of(given.nnc, source, target), times_of(given.nnc, source, target, given.seconds)
    assert len(kernels) == COPIES * len(RECIPES), kernels
    tiled, strassen, chosen = (statistics.median(times[number] for number, _ in kernels[i::len(RECIPES)]) for i in range(len(RECIPES)))
    what = re.sub(r", pixels.*", "", kernels[len(RECIPES) - 1][1])
    rows, depth, columns = LAYERS[name]
    print(f"| {name} ({f'{rows}x{rows}' if isinstance(rows, str) else rows}, {depth}, {columns}) | {tiled * 1e6:.0f} us | "
          f"{tiled / strassen:.2f} | {tiled / chosen:.2f} | {what} |", flush=True)
    return tiled / chosen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--target", nargs="+", default=["x86-64-v4", "x86-64-v3"])
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--layer", nargs="+", choices=LAYERS, default=list(LAYERS))
    given = parser.parse_args()
    given.nnc = given.build / "nnc"
    with tempfile.TemporaryDirectory() as folder:
        for target in given.target:
            print(f"\n| {target} | tiles | strassen | chosen | |\n|---|---|---|---|---|")
            gains = [compare(given, target, name, pathlib.Path(folder)) for name in given.layer]
            print(f"geometric mean of what is chosen: {statistics.geometric_mean(gains):.3f}")


if __name__ == "__main__":
    main()
