"""Cases of loops, branches, and parts at run-time positions."""

import math

import numpy as np

from cases import numbers
from tensors import Sum, Tensor, widen

def scalar(dtype, value):
    return Tensor(dtype, np.array(value))


# Parts

SHAPES = [((7,), (3,)), ((4, 6), (2, 3)), ((4, 6), (4, 1)), ((3, 4, 5), (1, 4, 2)), ((2, 3, 2, 2), (1, 1, 1, 1)),
          ((5, 3), (0, 2)), ((), ())]
PLACES = [0, 1, 2, -1, -100, 100, 3]


def part(x, at, sizes):
    """The index of the part, clamped as XLA does."""
    begin = [min(max(p, 0), n - s) for p, n, s in zip(at, x.shape, sizes)]
    return tuple(slice(b, b + s) for b, s in zip(begin, sizes))


def dynamic_cases(cases):
    for dtype in ["f32", "f64", "f16", "i64", "i32", "i8", "u8", "bool"]:
        for number, (shape, sizes) in enumerate(SHAPES):
            x, y = numbers(dtype, shape, "dynamic"), numbers(dtype, sizes, "part")
            for start, index in enumerate(["i32", "i64"]):
                at = [PLACES[(number + start + 3 * d) % len(PLACES)] for d in range(len(shape))]
                where, position = part(x.values, at, sizes), Tensor(index, np.array(at))
                cases.add("dynamic_slice", [x, position], Tensor(dtype, x.values[where]), f"sizes = {list(sizes)}")
                want = x.values.copy()
                want[where] = y.values
                cases.add("dynamic_update", [x, position, y], Tensor(dtype, want))
    x, y = numbers("f32", (4, 6), "whole"), numbers("f32", (1, 6), "row")
    for t in PLACES:
        row, column = part(x.values, (t, 0), (2, 6)), part(x.values, (0, t), (4, 3))
        cases.add("dynamic_slice", [x, scalar("i32", t)], Tensor("f32", x.values[row]),
                  body="{r[0]} = dynamic_slice({x[0]}, {x[1]}, 2)")
        cases.add("dynamic_slice", [x, scalar("i64", t)], Tensor("f32", x.values[column]),
                  body="{r[0]} = dynamic_slice({x[0]}, [0, {x[1]}], [4, 3])")
        want = x.values.copy()
        want[part(x.values, (t, 0), (1, 6))] = y.values
        cases.add("dynamic_update", [x, scalar("i32", t), y], Tensor("f32", want),
                  body="{r[0]} = dynamic_update({x[0]}, {x[1]}, {x[2]}, axis = -2)")


# Loops

def while_cases(cases):
    x = numbers("f64", (3, 4), "while")
    for rounds in [-2, 0, 1, 5]:
        for most in ["", " max = 3", " max = 1, unroll = 4", " unroll = 2"]:
            count = max(rounds, 0)
            count = min(count, 3 if "= 3" in most else 1 if "= 1" in most else count)
            want = [Tensor("f64", x.values * 0.5**count), scalar("i32", count)]
            cases.add("while", [x, scalar("i32", rounds)], want, body="({r[0]}, {r[1]}) = while (i < {x[1]}) with "
                      f"(x = {{x[0]}}, i = 0){most} {{{{ y = x * 0.5 }}}} next (x <- y, i <- i + 1)")
            count = max(count, 1)
            cases.add("while", [x, scalar("i32", rounds)], Tensor("f64", x.values * 0.5**count),
                      body=f"({{r[0]}}, {{id}}) = do with (x = {{x[0]}}, i = 0){most} {{{{ j = i + 1 }}}} "
                           "next (x <- x * 0.5, i <- j) while (j < {x[1]})")
    # carried values that change places, a condition on data, one loop in another
    a, b = numbers("f32", (5,), "first"), numbers("f32", (5,), "second")
    for rounds in range(4):
        want = [Tensor("f32", t.values) for t in ((a, b) if rounds % 2 == 0 else (b, a))]
        cases.add("while", [a, b, scalar("i32", rounds)], want, body="({r[0]}, {r[1]}, {id}) = while (i < {x[2]}) with "
                  "(a = {x[0]}, b = {x[1]}, i = 0) {{ }} next (a <- b, b <- a, i <- i + 1)")
    fibonacci = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]
    cases.add("while", [scalar("i64", 20)], scalar("i64", 21), body="({r[0]}, {id}) = while (a < {x[0]}) with "
              "(a: i64[] = 0, b: i64[] = 1) {{ s = a + b }} next (a <- b, b <- s)")
    for rounds in [0, 1, 4]:
        total = sum(fibonacci[k] for k in range(rounds))
        cases.add("while", [scalar("i32", rounds)], scalar("i32", total), body="""({r[0]}, {id}) = while (i < {x[0]}) with (s = 0, i = 0) {{
        (f, g, j) = while (j < i) with (f = 0, g = 1, j = 0) {{ h = f + g }} next (f <- g, g <- h, j <- j + 1)
    }} next (s <- s + f, i <- i + 1)""")
    scalar_cases(cases)
    scan_cases(cases)


def scalar_cases(cases):
    """Powers, factorials and sums of squares in closed form, of what is used again after the loop."""
    for dtype in ["f64", "f32", "i64", "i32"]:
        for rounds in [0, 1, 2, 7]:
            power = scalar(dtype, 3 * 2**rounds)
            cases.add("while", [scalar(dtype, 3), scalar(dtype, 2), scalar("i32", rounds)],
                      [power, Tensor(dtype, np.full(4, 3 * 2**rounds + rounds))], body="""({r[0]}, {id}) = while (i < {x[2]}) with (x = {x[0]}, i = 0) {{
        z = x * {x[1]}
    }} next (x <- z, i <- i + 1)
    {r[1]} = broadcast({r[0]}, shape = [4]) + cast({id}, to = %s)""" % dtype)
    for rounds in range(6):
        want = [scalar("i64", math.factorial(rounds)), scalar("i64", rounds * (rounds + 1) * (2 * rounds + 1) // 6)]
        cases.add("while", [scalar("i64", rounds)], want, body="({r[0]}, {r[1]}, {id}) = while (i <= {x[0]}) with "
                  "(f: i64[] = 1, s: i64[] = 0, i: i64[] = 1) {{ }} next (f <- f * i, s <- s + i * i, i <- i + 1)")


def scan_cases(cases):
    xs, w = numbers("f64", (6, 2, 3), "scan", low=-1, high=1), numbers("f64", (3, 3), "weights", low=-1, high=1)
    for axis in [0, 1, -2]:
        h, steps = np.zeros((2, 3)), []
        for x in xs.values:
            h = np.tanh(x + h @ w.values)
            steps.append(h)
        place = axis % 3
        sequence = Tensor("f64", np.moveaxis(xs.values, 0, place))
        want = [Tensor("f64", h), Tensor("f64", np.stack(steps, place))]
        cases.add("while", [sequence, w], want, tolerance=Sum(8, 1.0), body=f"""({{r[0]}}, {{r[1]}}) = scan (x in {{x[0]}}, axis = {axis}) with (h: f64[2, 3] = 0.0) {{{{
        n = tanh(x + h @ {{x[1]}})
    }}}} next (h <- n) stack (n)""")
    a, b = numbers("i32", (4, 2), "left"), numbers("i32", (4, 2), "right")
    cases.add("while", [a, b], [Tensor("i32", a.values * b.values), Tensor("i32", a.values - b.values)],
              body="({r[0]}, {r[1]}) = scan (p in {x[0]}, q in {x[1]}) {{ }} stack (p * q, p - q)")
    cases.add("while", [a], Tensor("i32", widen(a.values).sum(0)),
              body="{r[0]} = scan (p in {x[0]}) with (s: i32[2] = 0) {{ }} next (s <- s + p)")


# Branches

def case_cases(cases):
    x = numbers("f64", (3, 4), "case")
    for k in [0, 1, 7, -3, 2, 2**31 - 1, -2**31]:
        want = {0: x.values * 2, 1: x.values + 1, 7: x.values, -3: -x.values}.get(k, x.values * x.values)
        cases.add("case", [scalar("i32", k), x], Tensor("f64", want), body="""{r[0]} = case ({x[0]}) {{
        0: {{ y = {x[1]} * 2.0   yield y }}
        1: {{ yield {x[1]} + 1.0 }}
        7: {x[1]}
        -3: -{x[1]}
        else: {{ yield {x[1]} * {x[1]} }}
    }}""")
    for t in [False, True]:
        want = [Tensor("f64", x.values if t else -x.values), scalar("i32", 3 if t else 4)]
        cases.add("case", [scalar("bool", t), x], want, body="({r[0]}, {r[1]}) = if ({x[0]}) {{ yield {x[1]}, 3 }} "
                  "else {{ y = -{x[1]}   yield y, 4 }}")
    for k in range(4):
        want = [x.values, -x.values, np.abs(x.values), x.values * 0.5][k]
        cases.add("case", [scalar("i32", k), x], Tensor("f64", want), body="{r[0]} = if ({x[0]} < 2) {{ "
                  "yield case ({x[0]}) {{ 0: {x[1]}; else: -{x[1]} }} }} else if ({x[0]} == 2) "
                  "{{ yield abs({x[1]}) }} else {{ yield {x[1]} * 0.5 }}")


def add_cases(cases):
    dynamic_cases(cases)
    while_cases(cases)
    case_cases(cases)


OPS = ("while", "case", "dynamic_slice", "dynamic_update")
