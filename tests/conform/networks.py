#!/usr/bin/python3
"""Gradients of whole networks along random directions, first and second order, against central differences in f64.

    networks.py --nnc build/nnc [--target reference|generic|...] [--cc CC] [--network NAME]

Image and weights of a network are the tensors of one case of gradients.py: all of them are moved at once, along a
direction of random numbers.  Steps are small, so that none of the many kinks of relu and max_pool is stepped over.  Speaks
TAP: one result per network.
"""

import argparse
import pathlib
import sys
import tempfile

import numpy as np

from gradients import Case, run, skips
from tensors import Tensor

STEP = 2e-5

FUNCTIONS = """
# Owl's network for digits.
fn lenet(image, label, conv, conv_bias, hidden, hidden_bias, out, out_bias) -> (loss) {
    p = max_pool(relu(conv2d(image, conv, conv_bias, pad = 2)), window = 2)
    f = relu(flatten(p) @ hidden + hidden_bias)
    loss = cross_entropy(f @ out + out_bias, label)
}

# A convolution normalised by the batch.
fn unit(x, weight, scale, stride) -> (y) {
    h = standardize(conv2d(x, weight, stride = stride, pad = weight.shape[2] // 2), [0, 2, 3], eps = 0.1)
    y = h * reshape(scale, shape = [scale.size, 1, 1])
}
fn residual(x, first, first_scale, second, second_scale, shortcut, stride) -> (y) {
    r = unit(relu(unit(x, first, first_scale, stride)), second, second_scale, 1)
    y = relu(r + (x if shortcut == none else conv2d(x, shortcut, stride = stride)))
}
fn resnet8(image, label, w0, s0, w1, s1, w2, s2, w3, s3, w4, s4, c4, w5, s5, w6, s6, c6, out) -> (loss) {
    a = residual(relu(unit(image, w0, s0, 1)), w1, s1, w2, s2, none, 1)
    b = residual(residual(a, w3, s3, w4, s4, c4, 2), w5, s5, w6, s6, c6, 2)
    loss = cross_entropy(global_avg_pool(b) @ out, label)
}

# A block of a GPT: each position sees those before it.
fn norm(x, scale, bias) -> (y) { y = standardize(x, -1) * scale + bias }
fn transformer(x, scale1, bias1, query, key, value, output, scale2, bias2, inner, inner_bias, outer, outer_bias) -> (y) {
    at = iota(shape = [x.shape[1]], dtype = i64)
    n = norm(x, scale1, bias1)
    (q, k, v) = [split_heads(n @ query, 2), split_heads(n @ key, 2), split_heads(n @ value, 2)]
    seen = scaled_dot_product(q, k, v, select(reshape(at, shape = [x.shape[1], 1]) < at, -1e9, f64(0.0)))
    h = x + merge_heads(seen) @ output
    y = h + gelu_tanh(norm(h, scale2, bias2) @ inner + inner_bias) @ outer + outer_bias
}

fn lstm_steps(xs, input, hidden, bias, h0, c0) -> (ys, h, c) {
    (h, c, ys) = scan (x in xs) with (h = h0, c = c0) {
        (i, f, g, o) = split(x @ input + h @ hidden + bias, axis = -1, sizes = [h0.shape[-1]] * 4)
        c1 = sigmoid(f) * c + sigmoid(i) * tanh(g)
        h1 = sigmoid(o) * tanh(c1)
    } next (h <- h1, c <- c1) stack (h1)
}

# As many steps as `rounds` says: the slices are taken by the loop's own count.
fn gru_steps(xs, rounds, input, hidden, bias, hidden_bias, h0) -> (y) {
    sizes = [h0.shape[-1]] * 3
    (y, count) = while (t < rounds) with (h = h0, t = 0) max = 8 {
        x = reshape(dynamic_slice(xs, t, 1), shape = xs.shape[1:])
        (xr, xu, xn) = split(x @ input + bias, axis = -1, sizes = sizes)
        (hr, hu, hn) = split(h @ hidden + hidden_bias, axis = -1, sizes = sizes)
        u = sigmoid(xu + hu)
        h1 = (1.0 - u) * tanh(xn + sigmoid(xr + hr) * hn) + u * h
    } next (h <- h1, t <- t + 1)
}
"""


def network(name, function, shapes, others=(), results=None):
    """A case; `others` stand behind the first tensor.  Of several results a sum of products."""
    x, i = [f"x{n}" for n in range(len(shapes))], [f"i{n}" for n in range(len(others))]
    call = f"{function}({', '.join(x[:1] + i + x[1:])})"
    body, prelude = (call, "") if results is None else (results[1], f"{results[0]} = {call}")
    return Case(name, body, shapes, -0.7, 0.7, others, prelude, STEP)


def networks():
    label = lambda *classes: [Tensor("i64", np.array(classes))]
    unit = lambda c, k: [(k, c, 3, 3), (k,)]
    yield network("lenet", "lenet", [(3, 1, 8, 8), (5, 1, 5, 5), (5,), (80, 12), (12,), (12, 4), (4,)], label(2, 0, 3))
    yield network("resnet8", "resnet8", [(2, 3, 9, 8), *unit(3, 4), *unit(4, 4), *unit(4, 4), *unit(4, 6), *unit(6, 6), (6, 4, 1, 1),
                                         *unit(6, 8), *unit(8, 8), (8, 6, 1, 1), (8, 5)], label(4, 1))
    yield network("a transformer block", "transformer",
                  [(2, 5, 8), (8,), (8,), *[(8, 8)] * 4, (8,), (8,), (8, 12), (12,), (12, 8), (8,)])
    yield network("lstm", "lstm_steps", [(6, 2, 3), (3, 16), (4, 16), (16,), (2, 4), (2, 4)], results=("(ys, h, c)", "ys * c + h"))
    for rounds in [8, 5, 0]:
        yield network(f"gru of {rounds} steps", "gru_steps", [(8, 2, 3), (3, 12), (4, 12), (12,), (12,), (2, 4)],
                      [Tensor("i32", np.array(rounds))])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True)
    parser.add_argument("--target", default="reference")
    parser.add_argument("--cc", default="gcc -O0")
    parser.add_argument("--network", help="only this one")
    arguments = parser.parse_args()
    if skips(arguments):
        return 0
    cases = [case for case in networks() if arguments.network in (None, case.op)]
    print(f"1..{len(cases)}")
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(cases, 1):
            (wrong,) = run(arguments, [case], pathlib.Path(folder), FUNCTIONS)
            failed |= bool(wrong)
            print(f"{'not ok' if wrong else 'ok'} {number} - {case.op}", flush=True)
            for line in wrong.splitlines():
                print(f"# {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
