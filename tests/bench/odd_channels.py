#!/usr/bin/python3
"""3x3 convolutions of channels that vectors do not divide: microseconds by register tiles, by Winograd's algorithm, and by
what the cost table chooses.

    odd_channels.py NNC [TARGET ...]
"""

import pathlib
import re
import subprocess
import sys
import tempfile

TEXT = """nnc 1
graph g(x: f32[1, {c}, {s}, {s}]) -> (y) {{
    param w: f32[{c}, {c}, 3, 3] = he_normal(seed = 1)
    param v: f32[{c}, {c}, 3, 3] = he_normal(seed = 2)
    a = conv2d(x, w, pad = 1){first}
    b = relu(a)
    z = conv2d(b, v, pad = 1){second}
    y = relu(z)
}}
"""
UNITS = {"ns": 1e-3, "us": 1, "ms": 1e3}


def kernels(nnc, folder, target, channels, extent, recipe=None):
    """The recipes of the two convolutions, and microseconds."""
    marks = [f" @kernel({k}, {recipe})" if recipe else "" for k in (0, 1)]
    model = pathlib.Path(folder) / "g.nnc"
    model.write_text(TEXT.format(c=channels, s=extent, first=marks[0], second=marks[1]))
    out = subprocess.run([nnc, "bench", model, "--init-missing", "--target", target, "--kernels"], check=True, capture_output=True,
                         text=True).stdout
    found = re.findall(r"^ +\d+ +([\d.]+) (ns|us|ms) .* (\w+) +conv2d", out, re.M)
    return [f"{recipe} {float(number) * UNITS[unit]:.1f}" for number, unit, recipe in found]


def main():
    nnc, targets = sys.argv[1], sys.argv[2:] or ["x86-64-v3", "x86-64-v4"]
    with tempfile.TemporaryDirectory() as folder:
        for target in targets:
            for channels in (8, 12, 16, 20, 24, 36):
                for extent in (20, 56):
                    rows = [kernels(nnc, folder, target, channels, extent, recipe) for recipe in ("tiled", "winograd", None)]
                    print(target, channels, "channels,", extent, "x", extent, "|", " | ".join(", ".join(r) for r in rows), flush=True)


if __name__ == "__main__":
    main()
