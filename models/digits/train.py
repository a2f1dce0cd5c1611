#!/usr/bin/env python3
"""Trains `digits` on rendered handwriting: NumPy only, single precision, NCHW, everything drawn from fixed seeds,
so a second run on the same machine gives the same bytes; another BLAS rounds differently.

    python3 train.py                    train, report, write ../digits.safetensors: 5 minutes on one core, 99.2 %
    python3 train.py --evaluate         load the weights and report
    python3 train.py --export FILE      write the held-out set as .npz: images u8[n, 1, 28, 28], labels i64[n]

The network is digits.nnc: x / 255, conv 5x5 1 -> 32 pad 2, relu, max pool 2x2, flatten in (C, H, W) order, dense 10,
softmax. Every epoch renders new images, so the net never sees one twice and cannot learn any by heart.
"""
import argparse
import json
import pathlib
import time

import numpy as np

import render

CLASSES = 10
HELD_OUT, HELD_OUT_SEED = 10_000, 1_000_000     # epoch e trains on seed e: far below
BATCH = 50


def initial_params(rng):
    """He's normal initialisation; names and shapes are those of digits.nnc."""
    def he(*shape, fan_in):
        return rng.normal(0, np.sqrt(2 / fan_in), shape).astype("f4")

    return {"conv1.weight": he(32, 1, 5, 5, fan_in=25),  "conv1.bias": np.zeros(32, "f4"),
            "dense.weight": he(32 * 14 * 14, CLASSES, fan_in=32 * 14 * 14), "dense.bias": np.zeros(CLASSES, "f4")}


def im2col(x, k):
    """x [n, c, h, w], padded to keep its size, as [n, c*k*k, 4, h/2 * w/2]: columns of k x k patches, the four
    members of a pooling window apart, so that max pooling is a maximum over axis 2."""
    n, c, h, w = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (k // 2,) * 2, (k // 2,) * 2))
    patches = np.lib.stride_tricks.sliding_window_view(padded, (h, w), axis=(2, 3))      # [n, c, k, k, h, w]
    windows = patches.reshape(n, c * k * k, h // 2, 2, w // 2, 2)
    return windows.transpose(0, 1, 3, 5, 2, 4).reshape(n, c * k * k, 4, h // 2 * w // 2)


def conv_relu_pool(x, weight, bias):
    """Pools before the relu: the same result, as relu is monotone, for a quarter of the work. Returns y
    [n, m, h/2, w/2], and what the backward step needs."""
    n, _, h, w = x.shape
    columns = im2col(x, weight.shape[-1])
    y = weight.reshape(len(weight), -1) @ columns.reshape(n, columns.shape[1], h * w)
    y = y.reshape(n, len(weight), 4, -1)
    winner = y.argmax(axis=2)
    y = np.maximum(y.max(axis=2) + bias[:, None], 0)
    return y.reshape(n, -1, h // 2, w // 2), (columns, winner, y > 0)


def conv_relu_pool_backward(dy, saved, weight):
    """Gradients of weight and bias."""
    columns, winner, alive = saved
    dy = dy.reshape(alive.shape) * alive
    spread = np.where(winner[:, :, None] == np.arange(4)[:, None], dy[:, :, None], np.float32(0))
    dw = spread.reshape(*dy.shape[:2], -1) @ columns.reshape(*columns.shape[:2], -1).swapaxes(1, 2)
    return dw.sum(axis=0).reshape(weight.shape), dy.sum(axis=(0, 2))


def forward(params, images):
    """images u8[n, 1, 28, 28] to logits [n, 10]."""
    x = images.astype("f4") / np.float32(255)
    h, saved = conv_relu_pool(x, params["conv1.weight"], params["conv1.bias"])
    flat = h.reshape(len(h), -1)
    return flat @ params["dense.weight"] + params["dense.bias"], (saved, flat)


def gradients(params, images, labels):
    """Mean cross-entropy of the softmax, and its gradient for every param."""
    logits, (saved, flat) = forward(params, images)
    logits -= logits.max(axis=1, keepdims=True)
    log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    loss = -log_p[np.arange(len(labels)), labels].mean()

    d = (np.exp(log_p) - np.eye(CLASSES, dtype="f4")[labels]) / np.float32(len(labels))
    dw, db = conv_relu_pool_backward(d @ params["dense.weight"].T, saved, params["conv1.weight"])
    return loss, {"conv1.weight": dw, "conv1.bias": db,
                  "dense.weight": flat.T @ d, "dense.bias": d.sum(axis=0)}


class Adam:
    """Kingma and Ba 2015, algorithm 1."""
    def __init__(self, params, beta1=0.9, beta2=0.999, epsilon=1e-8):
        self.beta1, self.beta2, self.epsilon, self.step = beta1, beta2, epsilon, 0
        self.m = {name: np.zeros_like(p) for name, p in params.items()}
        self.v = {name: np.zeros_like(p) for name, p in params.items()}

    def update(self, params, grads, rate):
        self.step += 1
        rate *= np.sqrt(1 - self.beta2 ** self.step) / (1 - self.beta1 ** self.step)
        for name, g in grads.items():
            self.m[name] += np.float32(1 - self.beta1) * (g - self.m[name])
            self.v[name] += np.float32(1 - self.beta2) * (g * g - self.v[name])
            params[name] -= np.float32(rate) * self.m[name] / (np.sqrt(self.v[name]) + np.float32(self.epsilon))


def train(samples, epochs, peak_rate=2e-3):
    params = initial_params(np.random.default_rng(0))
    adam = Adam(params)
    steps, done = epochs * (samples // BATCH), 0
    for epoch in range(1, epochs + 1):
        start, total = time.time(), 0.0
        images, labels = render.dataset(samples, seed=epoch)
        rendered = time.time() - start
        for at in range(0, samples - BATCH + 1, BATCH):
            loss, grads = gradients(params, images[at:at + BATCH], labels[at:at + BATCH])
            adam.update(params, grads, peak_rate * 0.5 * (1 + np.cos(np.pi * done / steps)))     # cosine decay
            total, done = total + loss, done + 1
        print(f"epoch {epoch}/{epochs}: loss {total / (samples // BATCH):.4f}, "
              f"render {rendered:.0f} s, train {time.time() - start - rendered:.0f} s", flush=True)
    return params


def classify(params, images):
    return np.concatenate([forward(params, images[at:at + BATCH])[0].argmax(axis=1)
                           for at in range(0, len(images), BATCH)])


def report(params):
    images, labels = render.dataset(HELD_OUT, HELD_OUT_SEED)
    right = classify(params, images) == labels
    print("recall by digit:", ", ".join(f"{d}: {100 * right[labels == d].mean():.1f} %" for d in range(CLASSES)))
    print(f"held-out accuracy: {100 * right.mean():.2f} % of {HELD_OUT} images")


def write_safetensors(path, tensors):
    """Header length u64, JSON header padded so that the data is 8-byte aligned, data: all little-endian."""
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = tensor.astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(len(text).to_bytes(8, "little") + text + data)


def read_safetensors(path):
    raw = pathlib.Path(path).read_bytes()
    data = 8 + int.from_bytes(raw[:8], "little")
    tensors = {}
    for name, entry in json.loads(raw[8:data]).items():
        begin, end = entry["data_offsets"]
        tensors[name] = np.frombuffer(raw[data + begin:data + end], "<f4").reshape(entry["shape"])
    return tensors


def main():
    weights = pathlib.Path(__file__).resolve().parent.parent / "digits.safetensors"
    parser = argparse.ArgumentParser(description="Train digits on rendered handwriting.")
    parser.add_argument("--samples", type=int, default=60_000, help="images per epoch (default %(default)s)")
    parser.add_argument("--epochs", type=int, default=10, help="default %(default)s")
    parser.add_argument("--out", metavar="FILE", default=weights, help="the weights: written, or read by --evaluate")
    parser.add_argument("--evaluate", action="store_true", help="only report the accuracy of the weights")
    parser.add_argument("--export", metavar="FILE", help="only write the held-out set as .npz")
    options = parser.parse_args()

    if options.export:
        images, labels = render.dataset(HELD_OUT, HELD_OUT_SEED)
        np.savez(options.export, images=images, labels=labels)      # stored, not deflated: easy to read from C
    if options.evaluate:
        report(read_safetensors(options.out))
    if not (options.export or options.evaluate):
        params = train(options.samples, options.epochs)
        write_safetensors(options.out, params)
        report(params)


if __name__ == "__main__":
    main()
