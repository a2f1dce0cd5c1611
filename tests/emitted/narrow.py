#!/usr/bin/python3
"""Weights of 4, 8 and 16 bits: what networks that widen them give, and that they are stored as narrow as they are.

    narrow.py --nnc build/nnc [--target T ...] [--cc CC ...]

Results are compared with NumPy's, in f64, and the bytes of weights with those of the arrays that the file holds: none is
kept in f32 as well.  Speaks TAP.
"""

import argparse
import pathlib
import subprocess
import sys

import numpy as np

import build
from streams import Model, close, write_safetensors

DRAW = np.random.default_rng(1)
DTYPES = {"i8": np.int8, "u8": np.uint8, "i16": np.int16, "f16": np.float16, "bf16": np.uint16}
FOUR = {"i4": (-8, 8), "u4": (0, 16)}  # of bytes that have 4 bits: constants that do, and params that say so


def stored(dtype, *shape):
    """An array for the file, and its numbers."""
    if dtype in ("f16", "bf16"):
        values = DRAW.normal(size=shape).astype(np.float32)
        if dtype == "f16":
            return values.astype(np.float16), values.astype(np.float16).astype(np.float64)
        bits = (values.view(np.uint32) >> 16).astype(np.uint16)
        return bits, (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype in FOUR:
        values = DRAW.integers(*FOUR[dtype], shape).astype(DTYPES[f"{dtype[0]}8"])
        return values, values.astype(np.float64)
    info = np.iinfo(DTYPES[dtype])
    values = DRAW.integers(max(info.min, -300), min(info.max, 300) + 1, shape).astype(DTYPES[dtype])
    return values, values.astype(np.float64)


def scale(*shape):
    values = DRAW.uniform(0.001, 0.02, shape).astype(np.float32)
    return values, values.astype(np.float64)


def declared(dtype):
    """How the weight of the dtype begins."""
    return "const w: i8" if dtype == "i4" else f"param w: {dtype}"


def product(dtype, rows, depth, columns, transposed=False):
    """x @ w, or with w' for rows of outputs."""
    array, w = stored(dtype, *((columns, depth) if transposed else (depth, columns)))
    shape = ", ".join(map(str, array.shape))
    body = f"{declared(dtype)}[{shape}]\n    y = matmul(x, f32(w), transpose_y = {str(transposed).lower()})"
    return f"f32[{rows}, {depth}]", body, {"w": array}, lambda x: x @ (w.T if transposed else w)


def scaled(kind, rows, depth, columns, block=32):
    array, w = stored("i8", depth, columns)
    shape = {"scalar": (), "columns": (columns,), "rows": (depth, 1), "blocks": (depth // block, 1, columns),
             "one for blocks": (depth // block, 1, 1)}[kind]
    values, s = scale(*shape)
    body = f"param w: i8[{depth}, {columns}]\n    param s: f32[{', '.join(map(str, shape))}]\n    "
    if "blocks" in kind:
        body += (f"b = reshape(f32(w), shape = [{depth // block}, {block}, {columns}]) * s\n"
                 f"    y = x @ reshape(b, shape = [{depth}, {columns}])")
        wide = (w.reshape(depth // block, block, columns) * s).reshape(depth, columns)
    else:
        body, wide = body + "y = x @ (f32(w) * s)", w * s
    return f"f32[{rows}, {depth}]", body, {"w": array, "s": values}, lambda x: x @ wide


def pointed(rows, depth, columns):
    """With zero points for columns."""
    array, w = stored("u8", depth, columns)
    zero, z = stored("u8", columns)
    values, s = scale(columns)
    body = (f"param w: u8[{depth}, {columns}]\n    param z: u8[{columns}]\n    param s: f32[{columns}]\n"
            "    y = x @ (f32(i32(w) - i32(z)) * s)")
    return f"f32[{rows}, {depth}]", body, {"w": array, "z": zero, "s": values}, lambda x: x @ ((w - z) * s)


def literal(dtype, form, value, depth=128, columns=77):
    """With zero points that are numbers of the text, taken away as integers."""
    array, w = stored(dtype, depth, columns)
    return (f"f32[2, {depth}]", f"{declared(dtype)}[{depth}, {columns}]\n    y = x @ ({form})", {"w": array},
            lambda x: x @ value(w))


def nibbles(rows, depth, columns, size=32, pointed=False):
    """Two to a byte, in blocks of the depth, of which the last may be cut."""
    blocks = -(-depth // size)
    packed, values, zero = stored("u8", columns, blocks, size // 2)[0], *scale(columns, blocks)[:1], DRAW.integers(0, 16, (columns, blocks)).astype(np.float32)
    halves = np.stack([packed & 15, packed >> 4], -1).reshape(columns, blocks, size).astype(np.float64)
    wide = ((halves - (zero if pointed else np.full_like(zero, 8))[..., None]) * values[..., None]).reshape(columns, -1)[:, :depth]
    body = f"param w: u8[{columns}, {blocks}, {size // 2}]\n    param s: f32[{columns}, {blocks}]\n    "
    body += f"param z: f32[{columns}, {blocks}]\n    y = matmul_nibbles(x, w, s, z)" if pointed else "y = matmul_nibbles(x, w, s)"
    return f"f32[{rows}, {depth}]", body, {"w": packed, "s": values} | ({"z": zero} if pointed else {}), lambda x: x @ wide.T


def convolution(dtype, channels, outputs, groups=1):
    """3 x 3, over the image without a border."""
    array, w = stored(dtype, outputs, channels // groups, 3, 3)
    values, s = scale(outputs, 1, 1, 1)
    body = (f"{declared(dtype)}[{outputs}, {channels // groups}, 3, 3]\n    param s: f32[{outputs}, 1, 1, 1]\n"
            f"    y = conv2d(x, f32(w) * s, groups = {groups})")

    def expected(x):
        parts = np.split(w * s, groups)
        windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
        return np.concatenate([np.einsum("nchwij,ocij->nohw", part, weight)
                               for part, weight in zip(np.split(windows, groups, axis=1), parts)], axis=1)

    return f"f32[1, {channels}, 15, 18]", body, {"w": array, "s": values}, expected


def table():
    array, w = stored("i8", 70, 48)
    values, s = scale(70, 1)
    body = ("param w: i8[70, 48]\n    param s: f32[70, 1]\n    t = f32(w) * s\n"
            "    y = gather(t, i32(reshape(x, shape = [5])))")
    return "f32[5, 1]", body, {"w": array, "s": values}, lambda x: (w * s)[x.astype(int)[:, 0].clip(-70, 69)]


def every_half():
    """All numbers that f16 has, subnormal ones too; added to 0, they are themselves."""
    array = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    array = array[np.isfinite(array)].reshape(31, -1)
    body = f"param w: f16[{array.shape[0]}, {array.shape[1]}]\n    y = f32(w) + (x - x)"
    return f"f32[1, {array.shape[1]}]", body, {"w": array}, lambda x: array.astype(np.float64) + 0 * x


CASES = {**{f"{d} by rows of outputs": product(d, 1, 96, 130, True) for d in DTYPES},
         **{f"{d}, a matrix": product(d, 17, 75, 70) for d in DTYPES},
         **{f"scaled by {k}": scaled(k, 1, 128, 77) for k in ("scalar", "columns", "rows", "blocks", "one for blocks")},
         "scaled by blocks, a matrix": scaled("blocks", 20, 96, 64), "zero points": pointed(3, 64, 50),
         "a literal zero point": literal("u8", "f32(i32(w) - 128) * 0.01", lambda w: (w - 128) * 0.01),
         "the same from the left": literal("i8", "f32(i32(3) - i32(w))", lambda w: 3 - w),
         "the same in i16": literal("u8", "f32(i16(w) - 128)", lambda w: w - 128),
         "the same in i64, twice": literal("i16", "f32((i64(w) + 5) * 3 - 128)", lambda w: (w + 5) * 3 - 128),
         "the same of i4, behind views": literal("i4", "reshape(f32(-(reshape(i32(w), shape = [77, 128]) - (-8))), shape = [128, 77])",
                                                 lambda w: -(w + 8)),
         "what wraps around": literal("u8", "f32(i32(u8(w) * 3 - 128))", lambda w: (w * 3 - 128) % 256),
         "nibbles": nibbles(1, 128, 96), "nibbles, a matrix": nibbles(9, 96, 77), "nibbles with zero points": nibbles(3, 128, 64, pointed=True),
         "nibbles of an odd depth": nibbles(2, 75, 50), "convolution": convolution("i8", 16, 32), "convolution of bf16": convolution("bf16", 3, 20),
         "i4, a matrix": product("i4", 17, 75, 70), "u4 by rows of outputs": product("u4", 1, 96, 130, True),
         "convolution of i4": convolution("i4", 16, 32), "convolution of u4": convolution("u4", 12, 24, 4), "depthwise": convolution("i8", 32, 32, 32), "grouped": convolution("u8", 12, 24, 4), "table": table(), "every f16": every_half()}
EXACT = {"every f16"}
WIDE = {"what wraps around"}  # made when compiling


def test(arguments, label, target, cc, folder):
    """None, or what is wrong."""
    kind, body, arrays, expected = CASES[label]
    source = folder / "narrow.nnc"
    source.write_text(f"nnc 1\nuse \"nn\"\n\ngraph narrow(x: {kind}) -> (y) {{\n    {body}\n}}\n")
    write_safetensors(arrays, folder / "narrow.safetensors")
    error = build.command([arguments.nnc, "compile", source, "-o", folder, "--target", target, "--emit", "c,shared",
                           "--cc", f"{cc} -O0", "--weights", "blob"])
    if error:
        return error
    x = np.random.default_rng(2).normal(size=[int(n) for n in kind[4:-1].split(",")]).astype(np.float32)
    got = Model(folder / "libnarrow.so", "narrow", {}).stream().run(x)
    close(label, got, expected(x.astype(np.float64)), 1e-5)
    assert label not in EXACT or np.array_equal(got, expected(x.astype(np.float64)).astype(np.float32)), "other bits"
    size = (folder / "narrow.weights").stat().st_size
    given = sum(a.nbytes // (1 + (name == "w" and ("const w" in body or "u4" in body))) for name, a in arrays.items())
    slack = 4 * given if label in WIDE else 256 + given // 2  # what fills up vectors and blocks
    assert size <= given + slack, f"{size} bytes of weights, of {given} in the file"
    report = subprocess.run([arguments.nnc, "plan", source, "--report", "--weights", "blob", "--target", target], capture_output=True, text=True,
                            check=True).stdout
    assert f"{size:,}" in report, f"the report does not say {size:,} bytes"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--target", nargs="*", default=list(build.FEATURES))
    parser.add_argument("--cc", nargs="*", default=["gcc", "clang"])
    arguments = parser.parse_args()
    arguments.nnc = arguments.nnc.resolve()
    return build.report([(f"{label}, {target} with {cc}", target, cc, (arguments, label, target, cc)) for label in CASES
                         for target in arguments.target for cc in arguments.cc], test)


if __name__ == "__main__":
    sys.exit(main())
