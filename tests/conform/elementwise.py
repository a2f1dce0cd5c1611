"""Cases of the elementwise ops and of cast."""

import math

import numpy as np

from cases import EXACT, generator, numbers
from tensors import EVERY, FLOATS, INTS, NUMBERS, NUMPY, Tensor, Ulp, is_float, round_to, to_bf16, widen

SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 1e-3, -1e-3, 3.0, 100.0]
LENGTHS = [1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 65, 127, 1000]


def erf(x):
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def float_div(x, y):
    return x / y


# name: reference in double, tolerance, the range of random operands, and whether infinities, large numbers and NaN take part.
UNARY = {
    "recip": (lambda x: 1 / x, EXACT, -4, 4),
    "sqrt": (np.sqrt, EXACT, 0, 1000),
    "rsqrt": (lambda x: 1 / np.sqrt(x), Ulp(2), 0, 1000),
    "cbrt": (np.cbrt, Ulp(2), -1000, 1000),
    "exp": (np.exp, Ulp(4, tiny=True), -20, 20),
    "exp2": (np.exp2, Ulp(2, tiny=True), -30, 30),
    "expm1": (np.expm1, Ulp(4), -20, 20),
    "log": (np.log, Ulp(4), 0, 1000),
    "log2": (np.log2, Ulp(2), 0, 1000),
    "log1p": (np.log1p, Ulp(4), -0.9, 100),
    "sin": (np.sin, Ulp(4), -30, 30),
    "cos": (np.cos, Ulp(4), -30, 30),
    "tan": (np.tan, Ulp(6), -1.5, 1.5),
    "asin": (np.arcsin, Ulp(4), -1, 1),
    "acos": (np.arccos, Ulp(4), -1, 1),
    "atan": (np.arctan, Ulp(4), -30, 30),
    "sinh": (np.sinh, Ulp(6), -10, 10),
    "cosh": (np.cosh, Ulp(6), -10, 10),
    "tanh": (np.tanh, Ulp(6), -10, 10),
    "asinh": (np.arcsinh, Ulp(4), -30, 30),
    "acosh": (np.arccosh, Ulp(4), 1, 30),
    "atanh": (np.arctanh, Ulp(4), -1, 1),
    "erf": (erf, Ulp(6), -5, 5),
    "sigmoid": (sigmoid, Ulp(6, tiny=True), -30, 30),
    "floor": (np.floor, EXACT, -100, 100),
    "ceil": (np.ceil, EXACT, -100, 100),
    "round": (np.rint, EXACT, -100, 100),
    "trunc": (np.trunc, EXACT, -100, 100),
}
UNARY_NUMBER = {
    "neg": lambda x: -x,
    "abs": np.abs,
    "sign": np.sign,
    "square": lambda x: x * x,
    "relu": lambda x: np.maximum(x, 0),
}
BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": None,  # by dtype
    "mod": np.mod,
    "fmod": np.fmod,
    "maximum": np.maximum,
    "minimum": np.minimum,
}
BITS = {"bit_and": np.bitwise_and, "bit_or": np.bitwise_or, "bit_xor": np.bitwise_xor}
SHIFTS = {"shift_left": np.left_shift, "shift_right": np.right_shift}
COMPARE = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
           "ge": np.greater_equal}
LOGIC = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor, "not": np.logical_not}
WRITTEN = {"and": "{r[0]} = {x[0]} and {x[1]}", "or": "{r[0]} = {x[0]} or {x[1]}", "not": "{r[0]} = not {x[0]}"}

SHAPES = [((), (3,)), ((3,), ()), ((1,), (5,)), ((2, 1), (1, 3)), ((4, 1, 3), (2, 1)), ((2, 3, 4), (4,)),
          ((2, 3, 4), (2, 1, 1)), ((3, 5), (2, 3, 5)), ((1, 2, 1, 2, 1, 2, 1, 3), (2, 1, 2, 1, 2, 1, 2, 3)), ((), ()),
          ((7, 33), (7, 1)), ((7, 33), (33,)), ((1, 20, 5, 5), (20, 1, 1)), ((0, 3), (1, 3)), ((0,), ())]


def apply(function, dtype, *operands):
    """NumPy's result, computed wide, rounded once."""
    with np.errstate(all="ignore"):
        return Tensor(dtype, function(*(widen(o.values) for o in operands)))


def corner_integers(dtype):
    info = np.iinfo(NUMPY[dtype])
    return [0, 1, 2, 3, 5, 7, info.max, info.max - 1, info.min, info.min + 1] + ([-1, -2, -3, -7] if info.min else [])


def all_pairs(dtype):
    """Every corner value against every other."""
    corners = SPECIAL + [1e30, -7.0, 7.0] if is_float(dtype) else corner_integers(dtype)
    corners = np.array(corners) if is_float(dtype) else np.array(corners, NUMPY[dtype])
    x, y = np.meshgrid(corners, corners)
    return Tensor(dtype, x.ravel()), Tensor(dtype, y.ravel())


def binary_function(op, dtype):
    if op == "div":
        return float_div if is_float(dtype) else np.floor_divide
    return BINARY[op]


def unary_cases(cases):
    for op, (function, tolerance, low, high) in UNARY.items():
        for dtype in FLOATS:
            special = np.array(SPECIAL + [1e4, -1e4, 1e-30] + ([] if op in ("sin", "cos", "tan") else [3e38, -3e38]))
            random = generator(op, dtype).uniform(low, high, 257)
            with np.errstate(all="ignore"):
                x = Tensor(dtype, np.concatenate([special, random]))
            if op in ("sin", "cos", "tan", "exp", "sinh", "cosh") and dtype == "f16":
                x = Tensor(dtype, np.where(np.abs(x.values) > 60000, 1, x.values))
            # 16-bit results are computed in f32 and rounded: an error before the rounding costs at most one ulp.
            allowed = tolerance if dtype in ("f64", "f32") or tolerance is EXACT else Ulp(1, tolerance.tiny)
            cases.add(op, [x], apply(function, dtype, x), tolerance=allowed)
    for op, function in UNARY_NUMBER.items():
        for dtype in NUMBERS:
            corners = SPECIAL if is_float(dtype) else corner_integers(dtype)
            x = Tensor(dtype, np.array(corners, np.float64 if is_float(dtype) else NUMPY[dtype]))
            cases.add(op, [x], apply(function, dtype, x))
            x = numbers(dtype, (3, 67), op)
            cases.add(op, [x], apply(function, dtype, x))


def known_powers(cases, dtype):
    """Exponents that the text knows: products, reciprocals and roots, of special operands and of random ones."""
    huge = [3e38, -3e38, 1e20, -1e20, 1e-20, -1e-20, 3e-39] if dtype != "f16" else [6e4, -6e4, 1e-3, 1e-7]
    x = Tensor(dtype, np.concatenate([SPECIAL, huge, generator("known powers", dtype).uniform(-30, 30, 200)]))
    for y in (3, 4, -1, -2, -3, 0.5, -0.5, 1.5):
        want = apply(lambda x, y=y: np.power(x, y), dtype, x)
        tolerance = Ulp(2) if dtype in ("f64", "f32") else Ulp(1)
        cases.add("pow", [x], want, tolerance=tolerance, body=f"{{r[0]}} = {{x[0]}} ** {float(y)}")


def binary_cases(cases):
    for op in BINARY:
        for dtype in NUMBERS:
            function = binary_function(op, dtype)
            x, y = all_pairs(dtype)
            cases.add(op, [x, y], apply(function, dtype, x, y))
            x, y = numbers(dtype, (5, 41), op, "x"), numbers(dtype, (5, 41), op, "y")
            cases.add(op, [x, y], apply(function, dtype, x, y))
        for a, b in SHAPES:
            x, y = numbers("f32", a, op, b, "x"), numbers("f32", b, op, a, "y")
            cases.add(op, [x, y], apply(binary_function(op, "f32"), "f32", x, y))
    for dtype in FLOATS:
        x, y = numbers(dtype, (301,), "pow", low=0, high=10), numbers(dtype, (301,), "power", low=-3, high=3)
        tolerance = Ulp(8) if dtype in ("f64", "f32") else Ulp(1)
        cases.add("pow", [x, y], apply(np.power, dtype, x, y), tolerance=tolerance)
        x, y = all_pairs(dtype)
        finite = np.isfinite(x.values) & np.isfinite(y.values) & (np.abs(y.values) < 20)
        x, y = (Tensor(dtype, t.values[finite]) for t in (x, y))
        cases.add("pow", [x, y], apply(np.power, dtype, x, y), tolerance=tolerance)
        known_powers(cases, dtype)
    for n in LENGTHS:
        x, y = numbers("f32", (n,), "tail", "x"), numbers("f32", (n,), "tail", "y")
        cases.add("add", [x, y], apply(np.add, "f32", x, y))
        cases.add("exp", [x], apply(np.exp, "f32", x), tolerance=Ulp(4, tiny=True))


def bit_cases(cases):
    """In the dtype itself, which says how many bits there are."""
    for dtype in INTS:
        for op, function in {**BITS, **SHIFTS}.items():
            x, y = all_pairs(dtype)
            cases.add(op, [x, y], Tensor(dtype, function(x.values, y.values)))
            x, y = numbers(dtype, (5, 41), op, "x"), numbers(dtype, (5, 41), op, "y")
            if op in SHIFTS:
                y = Tensor(dtype, np.arange(205).reshape(5, 41) % 70)
            cases.add(op, [x, y], Tensor(dtype, function(x.values, y.values)))
        x = numbers(dtype, (5, 41), "bit_not")
        cases.add("bit_not", [x], Tensor(dtype, ~x.values))
        x = all_pairs(dtype)[0]
        cases.add("bit_not", [x], Tensor(dtype, ~x.values))
    for op, function in {**BITS, **SHIFTS}.items():
        for a, b in SHAPES:
            x, y = numbers("i32", a, op, b, "x"), numbers("i32", b, op, a, "y")
            cases.add(op, [x, y], Tensor("i32", function(x.values, y.values)))


def compare_cases(cases):
    for op, function in COMPARE.items():
        for dtype in EVERY if op in ("eq", "ne") else NUMBERS:
            if dtype == "bool":
                x, y = numbers("bool", (9,), op, "x"), numbers("bool", (9,), op, "y")
            else:
                x, y = all_pairs(dtype)
            cases.add(op, [x, y], Tensor("bool", function(x.values, y.values)))
        for a, b in SHAPES:
            x, y = numbers("i32", a, op, b, "x"), numbers("i32", b, op, a, "y")
            cases.add(op, [x, y], Tensor("bool", function(x.values, y.values)))


def logic_cases(cases):
    for op, function in LOGIC.items():
        for a, b in SHAPES if op != "not" else [((7,), ()), ((2, 33), ()), ((), ())]:
            inputs = [numbers("bool", a, op, b, "x")] + ([numbers("bool", b, op, a, "y")] if op != "not" else [])
            want = Tensor("bool", function(*(t.values for t in inputs)))
            cases.add(op, inputs, want, body=WRITTEN.get(op))


def select_cases(cases):
    def case(dtype, mask, x, y):
        inputs = [numbers("bool", mask, x, y, "mask"), numbers(dtype, x, mask, "x"), numbers(dtype, y, mask, "y")]
        cases.add("select", inputs, Tensor(dtype, np.where(*(t.values for t in inputs))))

    for dtype in EVERY:
        case(dtype, (3, 37), (3, 37), (3, 37))
    for a, b in SHAPES:
        case("f32", a, b, ())
        case("f32", a, (), b)
        case("f32", b, a, b)
    mask, x = Tensor("bool", [1, 0, 1]), Tensor("f32", [1, np.nan, np.inf])
    cases.add("select", [mask, x, Tensor("f32", 0)], Tensor("f32", [1, 0, np.inf]))  # NaN in the branch not taken


def converted(tensor, to):
    """Integers among themselves wrap; floats to integers truncate, take the nearest end, NaN is 0; bool is `not 0`."""
    values = tensor.values
    if to == "bool":
        return Tensor("bool", values != 0)
    if is_float(to) or not is_float(tensor.dtype):
        if to == "bf16" and not is_float(tensor.dtype):
            values = values.astype(np.float64)
        return Tensor(to, values)
    info = np.iinfo(NUMPY[to])
    exact = [0 if v != v else info.max if v >= info.max else info.min if v <= info.min else int(v)
             for v in values.astype(np.float64).ravel().tolist()]
    return Tensor(to, np.array(exact, NUMPY[to]).reshape(values.shape))


def cast_cases(cases):
    wide = [0.0, -0.0, 0.5, -0.5, 1.9, -1.9, 127.0, 128.5, -129.0, 255.9, 256.0, 32768.0, 65519.0, 65520.0, 1e5, 3e9,
            -3e9, 1e19, -1e19, np.inf, -np.inf, np.nan, 1 + 2.0**-11, 1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-8,
            1 + 2.0**-8 + 2.0**-30, 2.0**-24, 2.0**-25, 1.5 * 2.0**-25, 2.0**-14 - 2.0**-30, 6.1e-5]
    for source in EVERY:
        for to in EVERY:
            if is_float(source):
                x = Tensor(source, np.array(wide))
            elif source == "bool":
                x = Tensor("bool", [0, 1, 1])
            else:
                x = Tensor(source, np.array(corner_integers(source), NUMPY[source]))
            with np.errstate(all="ignore"):
                cases.add("cast", [x], converted(x, to), attrs=f"to = {to}")


def bitcast_cases(cases):
    """Bits that are numbers of every kind, and NaN where that does not change them."""
    for source in NUMBERS:
        for to in NUMBERS:
            size = NUMPY["i16" if source == "bf16" else source]().itemsize
            if size != NUMPY["i16" if to == "bf16" else to]().itemsize:
                continue
            bits = generator("bitcast", source, to).integers(0, 256, (3, 37, size), np.uint8)
            bits[..., -1] &= 0x3f  # no NaN, whose bits a float may lose on its way
            bits[0, 0, :] = [0] * (size - 1) + [0x80]
            x, want = (of_bits(dtype, bits) for dtype in (source, to))
            cases.add("bitcast", [x], want, f"to = {to}")
    cases.add("bitcast", [Tensor("f32", 1.5)], Tensor("i32", 0x3fc00000), "to = i32")
    cases.add("bitcast", [Tensor("bool", [0, 1])], Tensor("bool", [0, 1]), "to = bool")
    cases.add("bitcast", [Tensor("f32", np.zeros((0, 2)))], Tensor("u32", np.zeros((0, 2))), "to = u32")


def of_bits(dtype, bits):
    if dtype == "bf16":
        wide = bits.copy().view(np.uint16)[..., 0].astype(np.uint32) << 16
        return Tensor(dtype, wide.view(np.float32))
    return Tensor(dtype, bits.copy().view(NUMPY[dtype])[..., 0])


def add_cases(cases):
    bitcast_cases(cases)
    unary_cases(cases)
    binary_cases(cases)
    bit_cases(cases)
    compare_cases(cases)
    logic_cases(cases)
    select_cases(cases)
    cast_cases(cases)
