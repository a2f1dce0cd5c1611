"""The generators of random numbers beside NumPy, and cases of what makes numbers from nothing or from a key."""

import math

import numpy as np

from cases import lst
from tensors import EVERY, FLOATS, NUMBERS, Tensor, Ulp, round_to


def philox(seed, elements):
    """Philox 4x32-10 (Salmon et al., SC11): word i % 4 of the block with counter i / 4."""
    return blocks(seed, np.arange((elements + 3) // 4, dtype=np.uint64), 0).reshape(-1)


def blocks(seed, counter, stream):
    mask = np.uint64(0xFFFFFFFF)
    c = [counter & mask, counter >> np.uint64(32), np.full_like(counter, stream), np.zeros_like(counter)]
    key = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    for _ in range(10):
        p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(key[0]), p1 & mask,
             (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(key[1]), p0 & mask]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(c, axis=-1)


def fold_in(key, number):
    block = blocks(int(key) & (2**64 - 1), np.asarray(number, np.int64).astype(np.uint64), 1)
    return (block[..., 0] | block[..., 1] << np.uint64(32)).astype(np.int64)


def unit(seed, elements):
    return (philox(seed, elements) >> np.uint64(8)).astype(np.float64) * 2.0**-24


def last_below(high, dtype):
    """The last number of a floating-point dtype below a positive one."""
    near = round_to(dtype, np.array([high]))[0]
    if float(near) < high:
        return float(near)
    if dtype != "bf16":
        return float(np.nextafter(near, np.zeros_like(near)))
    return float((near.view(np.uint32) - np.uint32(0x10000)).view(np.float32))


def uniform(seed, shape, low, high, dtype="f32"):
    """What would be rounded to high comes up to the last number below it, where that is not below low; halves always."""
    count = math.prod(shape)
    largest = round_to(dtype, np.array([low + (high - low) * (1 - 2.0**-24)]))[0]
    if (dtype in ("f16", "bf16") or largest >= high) and last_below(high, dtype) >= low:
        high = last_below(high, dtype)
    return (low + (high - low) * unit(seed, count)[:count]).reshape(shape)


def normal(seed, shape, mean, std):
    count = math.prod(shape)
    u = unit(seed, count).reshape(-1, 2)
    r, t = np.sqrt(-2 * np.log(1 - u[:, 0])), 2 * np.pi * u[:, 1]
    return (mean + std * np.stack([r * np.cos(t), r * np.sin(t)], axis=1).reshape(-1)[:count]).reshape(shape)


def fans(shape):
    if len(shape) < 2:
        return (shape[0] if shape else 1,) * 2
    if len(shape) == 2:
        return shape
    window = math.prod(shape[2:])
    return shape[1] * window, shape[0] * window


class Near:
    """Random numbers to five places: their use needs no more, and float's cosine gives no more."""

    def allowed(self, dtype, want):
        return (2.0**-7 if dtype == "bf16" else 2.0**-10 if dtype == "f16" else 1e-5) * (1 + np.abs(want.astype(np.float64)))


def generate_cases(cases):
    for dtype in EVERY:
        value = 1 if dtype == "bool" else 3
        cases.add("full", [], Tensor(dtype, np.full((2, 3), value)), f"value = {value}, shape = [2, 3], dtype = {dtype}")
    cases.add("full", [], Tensor("f32", np.float32(0.1)), "value = 0.1")
    for dtype in NUMBERS:
        ramp = np.arange(5)[:, None] * np.ones((1, 3))
        cases.add("iota", [], Tensor(dtype, ramp), f"shape = [5, 3], dtype = {dtype}")
        cases.add("iota", [], Tensor(dtype, np.broadcast_to(np.arange(3), (5, 3))),
                  f"axis = -1, shape = [5, 3], dtype = {dtype}")
    cases.add("iota", [], Tensor("i64", np.arange(100)), "shape = [100]")
    for dtype in FLOATS:
        for seed in (0, 1, 2**40 + 3):
            cases.add("uniform", [], Tensor(dtype, uniform(seed, (7, 5), 0, 1, dtype)), f"seed = {seed}, shape = [7, 5], dtype = {dtype}")
            cases.add("normal", [], Tensor(dtype, normal(seed, (7, 5), 0, 1)),
                      f"seed = {seed}, shape = [7, 5], dtype = {dtype}", Near())
    cases.add("uniform", [], Tensor("f32", uniform(5, (1001,), -2, 6)), "seed = 5, low = -2, high = 6, shape = [1001]", Ulp(1))
    cases.add("normal", [], Tensor("f32", normal(5, (1001,), 3, 2)), "seed = 5, mean = 3, std = 2, shape = [1001]", Near())
    for shape in [(), (5,), (4, 6), (8, 3, 3), (8, 3, 5, 5)]:
        fan_in, fan_out = fans(shape)
        args = f"seed = 9, shape = {lst(shape)}"
        he, glorot = math.sqrt(6 / fan_in), math.sqrt(6 / (fan_in + fan_out))
        wanted = {"he_normal": normal(9, shape, 0, math.sqrt(2 / fan_in)), "he_uniform": uniform(9, shape, -he, he),
                  "glorot_uniform": uniform(9, shape, -glorot, glorot)}
        for op, want in wanted.items():
            cases.add(op, [], Tensor("f32", want), args, Near())
            if shape:
                body = f"param {{id}}: f32{lst(shape)} = {op}(seed = 9)\n    {{r[0]}} = neg({{id}})"
                cases.add(op, [], Tensor("f32", -want), tolerance=Near(), body=body)


KEYS = [0, 1, -1, 2**40 + 3, -2**63]


def draw_cases(cases):
    def key(k):
        return Tensor("i64", k)

    for k in KEYS:
        for dtype in FLOATS:
            cases.add("random_uniform", [key(k)], Tensor(dtype, uniform(k, (7, 5), 0, 1, dtype)), f"shape = [7, 5], dtype = {dtype}")
            cases.add("random_normal", [key(k)], Tensor(dtype, normal(k, (7, 5), 0, 1)),
                      f"shape = [7, 5], dtype = {dtype}", Near())
        cases.add("random_bits", [key(k)], Tensor("i64", philox(k, 35)[:35].astype(np.int64).reshape(7, 5)), "shape = [7, 5]")
    for shape in [(), (0,), (1,), (2,), (3, 0, 2), (1, 1, 1), (64,), (1001,), (3, 64), (3, 67), (5, 4, 16)]:
        cases.add("random_uniform", [key(9)], Tensor("f32", uniform(9, shape, 0, 1)), f"shape = {lst(shape)}")
        cases.add("random_normal", [key(9)], Tensor("f32", normal(9, shape, 0, 1)), f"shape = {lst(shape)}", Near())
        cases.add("random_bits", [key(9)], Tensor("i64", philox(9, math.prod(shape) + 4)[:math.prod(shape)].astype(np.int64)
                                                  .reshape(shape)), f"shape = {lst(shape)}")
    # Scales that are a power of two, of few bits, of many; what is added exact in f32 or not.
    for dtype in FLOATS:
        for low, high in [(0, 0.5), (-1, 1), (1, 3), (0.1, 1.1), (-0.1, 0.1), (-3, 5), (2, 2), (1000, 1000.7)]:
            cases.add("random_uniform", [key(5)], Tensor(dtype, uniform(5, (99,), low, high, dtype)),
                      f"shape = [99], low = {low}, high = {high}, dtype = {dtype}")
        for mean, std in [(0, 2), (1, 1), (0, 0.02), (-0.3, 0.1), (100, -1), (1, 0)]:
            cases.add("random_normal", [key(5)], Tensor(dtype, normal(5, (99,), mean, std)),
                      f"shape = [99], mean = {mean}, std = {std}, dtype = {dtype}", Near())
    # To the last bit what the generator gives whose seed is the key.
    same = Tensor("f32", np.zeros(1003))
    for k in KEYS[:4]:
        for attrs in ["", ", mean = 0.3, std = 0.02", ", mean = -1, std = 4"]:
            cases.add("random_normal", [key(k)], same,
                      body=f"param {{id}}: f32[1003] = normal(seed = {k}{attrs})\n"
                           f"    {{r[0]}} = random_normal({{x[0]}}, shape = [1003]{attrs}) - {{id}}")
    # Read by elementwise ops, reductions and at other positions.
    drawn = uniform(3, (20, 32), 0, 1)
    cases.add("random_uniform", [key(3), Tensor("f32", np.ones((20, 32)))], Tensor("f32", np.where(drawn < 0.25, 4, 0)),
              body="{r[0]} = select(random_uniform({x[0]}, shape = [20, 32]) < 0.25, {x[1]} * 4.0, 0.0)")
    cases.add("random_uniform", [key(3)], Tensor("f32", drawn.max(axis=1)),
              body="{r[0]} = reduce_max(random_uniform({x[0]}, shape = [20, 32]), axes = 1)")
    cases.add("random_uniform", [key(3)], Tensor("f32", drawn.T[5:9, ::2]),
              body="{r[0]} = transpose(random_uniform({x[0]}, shape = [20, 32]))[5:9, ::2]")
    several = fold_in(3, np.arange(2))
    cases.add("random_uniform", [key(3)], Tensor("f32", uniform(int(several[0]), (9,), 0, 1) + uniform(int(several[1]), (9,), 0, 1)),
              body="{r[0]} = random_uniform(fold_in({x[0]}, 0), shape = [9]) + random_uniform(fold_in({x[0]}, 1), shape = [9])")
    for k in KEYS:
        cases.add("fold_in", [key(k), Tensor("i64", [0, 1, 2, -1, 2**33, 2**63 - 1])],
                  Tensor("i64", fold_in(k, [0, 1, 2, -1, 2**33, 2**63 - 1])))
    column = Tensor("i64", [[4], [5]])
    cases.add("fold_in", [column, Tensor("i64", [0, 7])],
              Tensor("i64", np.stack([fold_in(4, [0, 7]), fold_in(5, [0, 7])])))


def add_cases(cases):
    generate_cases(cases)
    draw_cases(cases)
