#!/usr/bin/env python3
"""Contractions on this machine's GPU by blocks of every shape, beside the one that nnc chooses.

    shapes.py [--most N] build/nnc [NAME ...]

Prints for each contraction microseconds of a launch as chosen and by the fastest shapes, of N tried: what the model in
codegen/kernel/lower/blocked_shape.c is judged by.
"""

import argparse
import concurrent.futures
import itertools
import os
import pathlib
import random
import re
import subprocess
import tempfile

MAIN = """#include "{name}.cu"
#include <algorithm>
#include <cstdio>
#include <vector>

static float *filled(size_t count)
{{
    std::vector<float> host(count);
    unsigned random = 1;
    for (float &e : host) {{
        random = random * 1664525u + 1013904223u;
        e = (random >> 8) / 8388608.0f - 1;
    }}
    float *memory;
    cudaMalloc(&memory, 4 * count);
    cudaMemcpy(memory, host.data(), 4 * count, cudaMemcpyHostToDevice);
    return memory;
}}

/* The median of ten times four launches. */
template <typename Call> static void print_time(Call call)
{{
    std::vector<float> times;
    int status = 0;
    for (int i = 0; i < 13; i++) {{
        cudaEvent_t begin, end;
        cudaEventCreate(&begin);
        cudaEventCreate(&end);
        cudaEventRecord(begin);
        for (int k = 0; k < 4; k++)
            status |= call();
        cudaEventRecord(end);
        status |= cudaEventSynchronize(end);
        float ms;
        cudaEventElapsedTime(&ms, begin, end);
        if (i > 2)
            times.push_back(ms / 4);
    }}
    std::sort(times.begin(), times.end());
    printf("%.2f\\n", status ? -1.0 : 1e3 * times[5]);
}}

int main()
{{
    float *x = filled({x}), *y = filled({y}), *weights = filled({weights} / 4);
    void *arena;
    cudaMalloc(&arena, {arena} + 1);
{calls}    return 0;
}}
"""


def product(rows, columns, depth):
    return f"f32[{rows}, {depth}]", f"f32[{depth}, {columns}]", f"f32[{rows}, {columns}]", "x @ w"


def conv(outputs, channels, side, window, groups=1):
    return (f"f32[1, {channels}, {side}, {side}]", f"f32[{outputs}, {channels // groups}, {window}, {window}]",
            f"f32[1, {outputs}, {side}, {side}]", f"conv2d(x, w, pad = {window // 2}, groups = {groups})")


CONTRACTIONS = {
    "vit_qkv": product(197, 768, 768), "vit_up": product(197, 3072, 768), "vit_down": product(197, 768, 3072),
    "vgg_dense": product(1, 4096, 25088), "classes": product(1, 1000, 2048), "square": product(1024, 1024, 1024),
    "resnet_56": conv(64, 64, 56, 3), "resnet_56_wide": conv(256, 64, 56, 1), "resnet_14": conv(256, 256, 14, 3),
    "resnet_7": conv(512, 512, 7, 3), "resnet_7_deep": conv(512, 2048, 7, 1), "resnet_7_wide": conv(2048, 512, 7, 1),
    "densenet_14": conv(32, 128, 14, 3), "densenet_7": conv(32, 128, 7, 3), "vgg_112": conv(128, 128, 112, 3),
    "vgg_28": conv(512, 512, 28, 3), "squeeze": conv(240, 960, 1, 1), "excite": conv(960, 240, 1, 1),
    "resnext_14": conv(512, 512, 14, 3, 32), "mobilenet_14": conv(576, 96, 14, 1), "mobilenet_7": conv(320, 960, 7, 1),
}


def graph(name, contraction, mark):
    x, w, y, call = contraction
    return f"graph {name}(x: {x}) -> (y: {y}) {{\n    param w: {w} = uniform(low = -1, high = 1, seed = 1)\n    y = {call}{mark}\n}}\n"


def shape_of(nnc, contraction, mark, folder):
    """The recipe in full, or None where it is refused."""
    path = folder / "one.nnc"
    path.write_text("nnc 1\n" + graph("g", contraction, mark))
    done = subprocess.run([nnc, "opt", "--target", "cuda:sm_90", path], capture_output=True, text=True, check=False)
    found = re.search(r"@kernel\(0, (blocked[^)]*)\)", done.stdout)
    return found and found.group(1)


def shapes_of(nnc, contraction, most, folder):
    """The one that is chosen, and others, none twice."""
    sides = [1, 2, 4, 8, 16, 32, 64, 128]
    all_of = list(itertools.product(sides, sides, [16, 32, 64], [1, 2, 4, 8, 16, 32], [1, 2, 4, 8, 16]))
    random.Random(1).shuffle(all_of)
    shapes = [shape_of(nnc, contraction, "", folder)]
    for rows, columns, sums, groups, splits in all_of:
        mark = (f" @kernel(0, blocked, tile_rows = {rows}, tile_columns = {columns}, sums = {sums}, groups = {groups}, "
                f"splits = {splits})")
        shape = shape_of(nnc, contraction, mark, folder)
        if shape and shape not in shapes:
            shapes.append(shape)
        if len(shapes) > most:
            break
    return shapes


def build(nnc, name, most, folder):
    """The shapes; the program `time` prints a line for each."""
    contraction = CONTRACTIONS[name]
    shapes = shapes_of(nnc, contraction, most, folder)
    text = "nnc 1\n" + "".join(graph(f"g{i}", contraction, f" @kernel(0, {s})") for i, s in enumerate(shapes))
    (folder / f"{name}.nnc").write_text(text)
    subprocess.run([nnc, "compile", folder / f"{name}.nnc", "-o", folder, "--target", "cuda:sm_90", "--emit", "cuda"], check=True,
                   capture_output=True)
    header = (folder / f"{name}.h").read_text()
    calls = ""
    for function, words in re.findall(rf"^int ({name}\w*)\((.*)\);", header, re.M):
        given = [re.search(r"(\w+?)_?(\[\d+\])?$", word).group(1) for word in words.split(", ")]
        calls += f"    print_time([&] {{ return {function}({', '.join('0' if g == 'stream' else g for g in given)}); }});\n"
    extents = {key: re.search(rf" {key}_?\[(\d+)\]", header).group(1) for key in "xy"}
    weights = re.search(r"WEIGHTS_BYTES (\d+)|$", header).group(1) or 4  # small ones lie in the source
    arena = re.search(r"ARENA_BYTES (\d+)", header).group(1)
    (folder / "main.cu").write_text(MAIN.format(name=name, calls=calls, arena=arena, weights=weights, **extents))
    subprocess.run(["nvcc", "-O3", f"-arch={os.environ.get('NNC_CUDA_ARCH', 'native')}", "main.cu", "-o", "time"], cwd=folder, check=True)
    return shapes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("nnc", type=pathlib.Path)
    parser.add_argument("name", nargs="*", default=list(CONTRACTIONS))
    parser.add_argument("--most", type=int, default=48)
    arguments = parser.parse_intermixed_args()
    arguments.nnc = arguments.nnc.resolve()
    with tempfile.TemporaryDirectory() as temporary:
        folders = {name: pathlib.Path(temporary) / name for name in arguments.name}
        for folder in folders.values():
            folder.mkdir()
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            shapes = list(pool.map(lambda name: build(arguments.nnc, name, arguments.most, folders[name]), arguments.name))
        for name, tried in zip(arguments.name, shapes):
            times = [float(line) for line in subprocess.run(["./time"], cwd=folders[name], check=True, capture_output=True, text=True).stdout.split()]
            print(f"{name:16} {times[0]:9.2f} us  {tried[0].removeprefix('blocked, ')}", flush=True)
            for us, shape in sorted(zip(times[1:], tried[1:]))[:4]:
                print(f"{'':16} {us:9.2f} us  {shape.removeprefix('blocked, ')}", flush=True)


if __name__ == "__main__":
    main()
