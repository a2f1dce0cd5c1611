#!/usr/bin/python3
"""Tokens a second of decoders that take one token at a time, with weights of f32, bf16, and i8 with scales of blocks.

    decoding.py --nnc build/nnc [--size 15M 110M] [--type f32 bf16 i8] [--cc clang gcc] [--target T] [--rounds N]
                [--llama2c FOLDER]

A decoder is that of Llama (Touvron et al. 2023): RMS norms, rotary positions, gated feed-forward, a table of tokens that
makes the logits, too.  Its text and random weights are made here; it is compiled, and run in C from token to token, the
likeliest each time.  All weights are read once a token, so that memory is the limit: `GB/s` is their bytes times the
tokens.  Types take turns, and each figure is the median of its rounds.  With --llama2c, run.c of that folder (llama2.c,
which is no part of this), built by gcc -Ofast -march=native, takes turns with them, on weights of the same sizes in f32.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import numpy as np

SIZES = {"15M": dict(WIDTH=288, HIDDEN=768, LAYERS=6, HEADS=6), "110M": dict(WIDTH=768, HIDDEN=2048, LAYERS=12, HEADS=12)}
VOCABULARY, CONTEXT, BLOCK = 32000, 256, 32

MODEL = """nnc 1
use "nn"

const VOCABULARY = {vocabulary}
const CONTEXT    = {context}
const WIDTH      = {WIDTH}
const HIDDEN     = {HIDDEN}
const LAYERS     = {LAYERS}
const HEADS      = {HEADS}
const DEPTH      = WIDTH / HEADS
const BLOCK      = {block}

# Rows of weights as numbers: x @ w' needs them, and a token is one of them.
fn rows(outputs, inputs) -> (w) {{
    {rows}
}}

fn linear(x, outputs, inputs) -> (y) {{
    y = matmul(x, rows@w(outputs, inputs), transpose_y = true)
}}

# Pairs of neighbours, turned by angles that grow with the position.
fn turned(x, at) -> (y) {{
    pair = iota(shape = [DEPTH / 2], dtype = f32)
    angle = f32(at) * exp(pair * (-2.0 * log(10000.0) / float(DEPTH)))
    (re, im) = split(reshape(x, shape = [HEADS, DEPTH / 2, 2]), axis = 2, sizes = [1, 1])
    a = reshape(re, shape = [HEADS, DEPTH / 2])
    b = reshape(im, shape = [HEADS, DEPTH / 2])
    y = reshape(stack(a * cos(angle) - b * sin(angle), a * sin(angle) + b * cos(angle), axis = 2), shape = [HEADS, 1, DEPTH])
}}

fn attend(x, at, keys, values, layer) -> (y, new_keys, new_values) {{
    q = turned(linear@q(x, WIDTH, WIDTH), at)
    k = turned(linear@k(x, WIDTH, WIDTH), at)
    v = linear@v(x, WIDTH, WIDTH)
    new_keys = dynamic_update(keys, [layer, 0, 0, at], reshape(k, shape = [1, HEADS, DEPTH, 1]))
    new_values = dynamic_update(values, [layer, 0, at, 0], reshape(v, shape = [1, HEADS, 1, DEPTH]))
    seen = iota(shape = [CONTEXT], dtype = i32) <= at
    scores = q @ new_keys[layer] * (1.0 / sqrt(float(DEPTH)))
    heads = softmax(select(seen, scores, -1e9)) @ new_values[layer]
    y = linear@o(reshape(heads, shape = [WIDTH]), WIDTH, WIDTH)
}}

fn block(x, at, keys, values, layer) -> (y, new_keys, new_values) {{
    (a, new_keys, new_values) = attend@attention(rms_norm@before(x, 1e-5), at, keys, values, layer)
    h = x + a
    n = rms_norm@after(h, 1e-5)
    y = h + linear@down(silu(linear@gate(n, HIDDEN, WIDTH)) * linear@up(n, HIDDEN, WIDTH), WIDTH, HIDDEN)
}}

graph decoder(token: i32[], at: i32[]) -> (logits: f32[VOCABULARY]) {{
    state keys: f32[LAYERS, HEADS, DEPTH, CONTEXT] = 0.0
    state values: f32[LAYERS, HEADS, CONTEXT, DEPTH] = 0.0
    table = rows@table(VOCABULARY, WIDTH)
    x = gather(table, token)
    (k, v) = [keys, values]
    for layer in 0..LAYERS carry x, k, v {{
        (x, k, v) = block@layer{{layer}}(x, at, k, v, layer)
    }}
    logits = matmul(rms_norm@last(x, 1e-5), table, transpose_y = true)
    keys <- k
    values <- v
}}
"""

ROWS = {
    "f32": "param weight: f32[outputs, inputs]\n    w = weight",
    "f16": "param weight: f16[outputs, inputs]\n    w = f32(weight)",
    "bf16": "param weight: bf16[outputs, inputs]\n    w = f32(weight)",
    "i8": """param weight: i8[outputs, inputs]
    param scale: f32[outputs, inputs / BLOCK, 1]
    blocks = reshape(f32(weight), shape = [outputs, inputs / BLOCK, BLOCK])
    w = reshape(blocks * scale, shape = [outputs, inputs])""",
}

DRIVER = """#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "decoder.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float logits[%(vocabulary)d];

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 64;
    void *arena = aligned_alloc(64, (DECODER_ARENA_BYTES + 127) / 64 * 64);
    void *state = aligned_alloc(64, (DECODER_STATE_BYTES + 127) / 64 * 64);
    double start = 0;
    int32_t token = 1, sum = 0;
    if (!arena || !state || decoder_state_init(state))
        return 1;
    for (int32_t i = 0; i <= steps; i++) {
        int32_t at = i %% %(context)d, best = 0;
        if (i == 1) /* the first one has read the weights into memory */
            start = now();
        if (decoder_run(&token, &at, logits, state, arena))
            return 1;
        for (int32_t k = 1; k < %(vocabulary)d; k++)
            best = logits[k] > logits[best] ? k : best;
        token = best;
        sum += best;
    }
    printf("%%.6f %%d\\n", (now() - start) / steps, (int)sum);
    return 0;
}
"""


LLAMA_DRIVER = """#define TESTING /* without its main */
#include "%(source)s"

int main(int argc, char **argv)
{
    int steps = argc > 2 ? atoi(argv[2]) : 64, token = 1, sum = 0;
    Transformer transformer;
    struct timespec start = {0}, end;
    build_transformer(&transformer, argv[1]);
    for (int i = 0; i <= steps; i++) {
        if (i == 1)
            clock_gettime(CLOCK_MONOTONIC, &start);
        float *logits = forward(&transformer, token, i %% %(context)d);
        token = sample_argmax(logits, transformer.config.vocab_size);
        sum += token;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%%.6f %%d\\n", ((double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec)) / steps, sum);
    return 0;
}
"""

def bf16(values):
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def stored(kind, outputs, inputs, draw):
    """Arrays of one set of rows, as the file names them."""
    values = draw.standard_normal((outputs, inputs), dtype=np.float32) * np.float32(inputs**-0.5)
    if kind == "f32":
        return {"weight": ("F32", values)}
    if kind == "f16":
        return {"weight": ("F16", values.astype(np.float16))}
    if kind == "bf16":
        return {"weight": ("BF16", bf16(values))}
    blocks = values.reshape(outputs, inputs // BLOCK, BLOCK)
    scale = np.abs(blocks).max(axis=2, keepdims=True) / np.float32(127)
    return {"weight": ("I8", np.rint(blocks / scale).astype(np.int8).reshape(outputs, inputs)), "scale": ("F32", scale)}


def save(path, tensors):
    """A file of safetensors."""
    header, at = {}, 0
    for name, (dtype, values) in tensors.items():
        header[name] = {"dtype": dtype, "shape": values.shape, "data_offsets": [at, at + values.nbytes]}
        at += values.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, values in tensors.values():
            file.write(values.tobytes())


def weights(kind, size):
    draw, width, hidden = np.random.default_rng(1), size["WIDTH"], size["HIDDEN"]
    shapes = {"table": (VOCABULARY, width)}
    for layer in range(size["LAYERS"]):
        at = f"layer{layer}"
        shapes |= {f"{at}.attention.{n}.w": (width, width) for n in "qkvo"}
        shapes |= {f"{at}.gate.w": (hidden, width), f"{at}.up.w": (hidden, width), f"{at}.down.w": (width, hidden)}
    return {f"{name}.{part}": array for name, shape in shapes.items()
            for part, array in stored(kind, *shape, draw).items()}


def build(words, folder, kind, size, cc):
    """The program, and the bytes of its weights."""
    folder.mkdir(parents=True)
    text = MODEL.format(vocabulary=VOCABULARY, context=CONTEXT, block=BLOCK, rows=ROWS[kind], **size)
    (folder / "decoder.nnc").write_text(text)
    save(folder / "decoder.safetensors", weights(kind, size))
    subprocess.run([words.nnc, "compile", folder / "decoder.nnc", "-o", folder, "--target", words.target, "--weights", "blob",
                    "--init-missing"], check=True, stdout=subprocess.DEVNULL)
    (folder / "driver.c").write_text(DRIVER % {"vocabulary": VOCABULARY, "context": CONTEXT})
    head = (folder / "decoder.c").read_text()[:4000]
    flags = head.split("Compile with: ")[1].split(" */")[0].split()
    program = folder / "decoder"
    subprocess.run([cc, "-std=gnu11", *flags, f"-I{folder}", folder / "decoder.c", folder / "decoder_weights.S",
                    folder / "driver.c", "-o", program, "-lm"], check=True)
    return program, (folder / "decoder.weights").stat().st_size


def build_llama2c(source, folder, size):
    """llama2.c's program on a checkpoint of this size, and the bytes of its weights."""
    folder.mkdir(parents=True)
    width, hidden, layers = size["WIDTH"], size["HIDDEN"], size["LAYERS"]
    header = np.array([width, hidden, layers, size["HEADS"], size["HEADS"], VOCABULARY, CONTEXT], np.int32)
    of_layer = 2 * width + 4 * width * width + 3 * width * hidden
    elements = VOCABULARY * width + layers * of_layer + width + CONTEXT * (width // size["HEADS"])
    draw = np.random.default_rng(1)
    with open(folder / "checkpoint", "wb") as file:
        file.write(header.tobytes())
        file.write((draw.standard_normal(elements, dtype=np.float32) * np.float32(width**-0.5)).tobytes())
    (folder / "driver.c").write_text(LLAMA_DRIVER % {"source": (source / "run.c").resolve(), "context": CONTEXT})
    program = folder / "llama2c"
    subprocess.run(["gcc", "-w", "-Ofast", "-march=native", folder / "driver.c", "-o", program, "-lm"], check=True)
    return program, 4 * elements


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--size", nargs="*", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--type", nargs="*", default=["f32", "bf16", "i8"], choices=list(ROWS))
    parser.add_argument("--cc", nargs="*", default=["clang", "gcc"])
    parser.add_argument("--target", default="host")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--llama2c", type=pathlib.Path, help="a folder with llama2.c's run.c")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for what is built")
    words = parser.parse_args()
    words.nnc = words.nnc.resolve()
    with tempfile.TemporaryDirectory() as temporary:
        for name in words.size:
            programs = {(kind, cc): build(words, (words.keep or pathlib.Path(temporary)) / name / kind / cc, kind, SIZES[name], cc)
                        for kind in words.type for cc in words.cc if shutil.which(cc)}
            if words.llama2c:
                programs["f32", "llama2"] = build_llama2c(words.llama2c, (words.keep or pathlib.Path(temporary)) / name / "llama2c", SIZES[name])
            seconds = {key: [] for key in programs}
            for _ in range(words.rounds):
                for key, (program, _) in programs.items():
                    checkpoint = [program.parent / "checkpoint"] if key[1] == "llama2" else []
                    done = subprocess.run([program, *checkpoint, str(words.steps)], capture_output=True, text=True, check=True)
                    seconds[key].append(float(done.stdout.split()[0]))
            first = {cc: statistics.median(times) for (kind, cc), times in seconds.items() if kind == words.type[0]}
            if words.llama2c: # then all are told in its speed
                first = dict.fromkeys((cc for _, cc in seconds), statistics.median(seconds["f32", "llama2"]))
            for (kind, cc), times in seconds.items():
                median, size = statistics.median(times), programs[kind, cc][1]
                print(f"{name:5} {kind:5} {cc:6} {1 / median:8.1f} tokens/s  {size / 1e6:7.1f} MB "
                      f"{size / median * 1e-9:6.1f} GB/s  {first[cc] / median:5.2f} times {'llama2.c' if words.llama2c else words.type[0]}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
