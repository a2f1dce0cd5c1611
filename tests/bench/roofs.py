"""The share of its roof that each of many kernels reaches alone, as `nnc bench --kernels` tells it: narrow channels, narrow
dense layers, global pooling, sums and extremes along strided axes, transposes, softmax and layer norm over short and long
rows, depthwise convolutions of plain images.  With a second compiler, its time by that of the first, too.

    tests/bench/roofs.py build/nnc [OTHER_NNC] [--target host] [--only softmax] [--seconds 0.2]
"""
import argparse
import json
import pathlib
import subprocess
import tempfile


def convolution(channels, outputs, size, window, stride=1, groups=1):
    return (f"x: f32[1, {channels}, {size}, {size}]",
            f"    param w: f32[{outputs}, {channels // groups}, {window}, {window}] = he_normal(seed = 1)\n"
            f"    param b: f32[{outputs}] = normal(seed = 2, std = 0.1)\n"
            f"    y = relu(conv2d(x, w, b, stride = {stride}, pad = {window // 2}, groups = {groups}))\n")


def dense(rows, depth, columns):
    return (f"x: f32[{rows}, {depth}]", f"    param w: f32[{depth}, {columns}] = normal(seed = 1)\n"
                                        f"    param b: f32[{columns}] = normal(seed = 2, std = 0.1)\n    y = x @ w + b\n")


def call(shape, text):
    return f"x: f32{shape}", f"    y = {text}\n"


def cases():
    for c in (3, 8, 24):
        for size in (14, 56, 112):
            yield f"conv 3x3 {c} to {c}, {size}x{size}", convolution(c, c, size, 3)
            yield f"pointwise {c} to {4 * c}, {size}x{size}", convolution(c, 4 * c, size, 1)
            yield f"pointwise {4 * c} to {c}, {size}x{size}", convolution(4 * c, c, size, 1)
    for c, size in ((24, 112), (96, 56), (144, 28), (240, 14), (960, 7)):
        yield f"depthwise 3x3 {c}, {size}x{size}", convolution(c, c, size, 3, 1, c)
        yield f"depthwise 5x5 by 2 {c}, {size}x{size}", convolution(c, c, size, 5, 2, c)
    for rows in (1, 4, 100):
        for depth, columns in ((64, 10), (128, 8), (256, 24), (512, 3), (784, 10), (2048, 2)):
            yield f"dense {rows}x{depth} to {columns}", dense(rows, depth, columns)
    for c, size in ((3, 224), (24, 112), (64, 56), (96, 28), (512, 7), (2048, 7)):
        yield f"global pooling {c}, {size}x{size}", call([1, c, size, size], "global_avg_pool(x)")
    for shape, axes in (([512, 512], 0), ([64, 1000], 0), ([32, 64, 100], 1), ([128, 7, 7, 64], [1, 2]), ([100, 10000], 0),
                        ([10000, 10], 0), ([10000, 3], 0), ([16, 17, 18, 19], 2)):
        yield f"sum {shape} over {axes}", call(shape, f"reduce_sum(x, axes = {axes})")
        yield f"largest {shape} over {axes}", call(shape, f"reduce_max(x, axes = {axes})")
    for shape, axes in (([512, 512], [1, 0]), ([1000, 37], [1, 0]), ([1, 224, 224, 3], [0, 3, 1, 2]),
                        ([1, 3, 224, 224], [0, 2, 3, 1]), ([12, 128, 64], [1, 0, 2]), ([8, 100, 100], [0, 2, 1])):
        yield f"transpose {shape} by {axes}", call(shape, f"transpose(x, axes = {axes})")
    for rows, columns in ((1, 1000), (128, 128), (1536, 128), (1000, 10), (10000, 3), (1000, 17), (16, 4096), (64, 50000)):
        yield f"softmax {rows}x{columns}", call([rows, columns], "softmax(x)")
        yield f"layer norm {rows}x{columns}", call([rows, columns], "layer_norm(x)")


def kernels(nnc, model, options):
    command = [nnc, "bench", model, "--target", options.target, "--kernels", "--format", "json", "--seconds", str(options.seconds)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["kernels"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nnc", nargs="+")
    parser.add_argument("--target", default="host")
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=0.2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder, "g.nnc")
        for name, (operand, text) in cases():
            if options.only not in name:
                continue
            model.write_text(f'nnc 1\nuse "nn"\n\ngraph g({operand}) -> (y) {{\n{text}}}\n')
            ours = kernels(options.nnc[0], model, options)
            longest = max(ours, key=lambda k: k["median_s"])
            time = sum(k["median_s"] for k in ours)
            line = (f"{name:40} {1e6 * time:9.2f} us {100 * longest['share_of_roof']:6.1f} % of {longest['bound_by']:8} "
                    f"{' + '.join(k['recipe'] for k in ours)}")
            for other in options.nnc[1:]:
                theirs = kernels(other, model, options)
                line += f", {sum(k['median_s'] for k in theirs) / time:.2f} by {' + '.join(k['recipe'] for k in theirs)}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
