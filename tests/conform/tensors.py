"""Tensors of every dtype of the language on top of NumPy, rounding, and tolerances.

A tensor is (dtype name, array).  NumPy has no bfloat16: such a tensor holds its values as float32.
"""

import numpy as np

FLOATS = ["f64", "f32", "f16", "bf16"]
INTS = ["i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8"]
NUMBERS = FLOATS + INTS
EVERY = NUMBERS + ["bool"]
NUMPY = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": np.float32, "i64": np.int64,
         "i32": np.int32, "i16": np.int16, "i8": np.int8, "u64": np.uint64, "u32": np.uint32, "u16": np.uint16, "u8": np.uint8, "bool": np.bool_}
FRACTION_BITS = {"f64": 52, "f32": 23, "f16": 10, "bf16": 7}
SMALLEST_NORMAL = {"f64": 2.0**-1022, "f32": 2.0**-126, "f16": 2.0**-14, "bf16": 2.0**-126}


class Tensor:
    def __init__(self, dtype, values):
        self.dtype = dtype
        self.values = round_to(dtype, np.asarray(values))

    @property
    def shape(self):
        return self.values.shape

    def type(self):
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


def is_float(dtype):
    return dtype in FLOATS


def to_bf16(values):
    """float64 or float32 to the nearest bfloat16, ties to even, rounding once; held as float32."""
    wide = np.asarray(values, np.float64)
    near = wide.astype(np.float32)
    odd = near.view(np.uint32).copy()
    inexact = (near.astype(np.float64) != wide) & np.isfinite(near)
    odd = np.where(inexact & (np.abs(near.astype(np.float64)) > np.abs(wide)), odd - 1, odd)
    odd = np.where(inexact, odd | 1, odd).astype(np.uint64)  # rounded to odd, so that the next rounding is the only one
    bits = ((odd + 0x7FFF + ((odd >> 16) & 1)) & 0xFFFF0000).astype(np.uint32)
    return np.where(np.isnan(near), np.float32(np.nan), bits.view(np.float32)).astype(np.float32).reshape(wide.shape)


def round_to(dtype, values):
    """Wide results to the dtype; integers wrap."""
    with np.errstate(all="ignore"):
        if dtype == "bf16":
            return to_bf16(values)
        return np.asarray(values).astype(NUMPY[dtype])


def widen(values):
    """What references compute in: float64, int64 or uint64."""
    if values.dtype == np.uint64:
        return values
    return values.astype(np.float64 if values.dtype.kind == "f" else np.int64)


def save(path, tensor):
    values = tensor.values
    if tensor.dtype == "bf16":
        values = (np.ascontiguousarray(values).view(np.uint32) >> 16).astype(np.uint16).view("V2").reshape(tensor.shape)
    np.save(path, values)


def to_bytes(tensor):
    """The elements as they lie in memory."""
    values = np.ascontiguousarray(tensor.values)
    return ((values.view(np.uint32) >> 16).astype(np.uint16) if tensor.dtype == "bf16" else values).tobytes()


def from_bytes(data, at, like):
    """Elements at a position of raw bytes, as an array, and the position after them."""
    dtype = np.dtype(np.uint16 if like.dtype == "bf16" else NUMPY[like.dtype])
    count = like.values.size
    values = np.frombuffer(data, dtype, count, at).reshape(like.shape)
    if like.dtype == "bf16":
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return values, at + count * dtype.itemsize


def load(path, dtype):
    values = np.load(path)
    if dtype == "bf16":
        values = (values.view(np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(values.shape)
    return values


class Exact:
    """The same numbers; NaN where NaN."""

    def __str__(self):
        return "exactly this"

    def allowed(self, dtype, want):
        return 0.0


class Ulp:
    """So many units in the last place of the wanted value; `tiny` forgives a result below the normal range."""

    def __init__(self, count, tiny=False):
        self.count, self.tiny = count, tiny

    def __str__(self):
        below = ", or anything below the normal range" if self.tiny else ""
        return f"within {self.count} unit{'' if self.count == 1 else 's'} in the last place{below}"

    def allowed(self, dtype, want):
        if not is_float(dtype):
            return 0.0
        smallest = SMALLEST_NORMAL[dtype]
        magnitude = np.maximum(np.abs(want.astype(np.float64)), smallest)
        magnitude = np.where(np.isfinite(magnitude), magnitude, 0)
        ulp = 2.0 ** (np.floor(np.log2(np.maximum(magnitude, smallest))) - FRACTION_BITS[dtype])
        return self.count * ulp + (smallest if self.tiny else 0.0)


class Sum:
    """For a sum of `count` terms whose magnitudes add up to `size`: what float32 (or a wider float) accumulators may
    lose, in any order, and one rounding.  A strict target (the reference evaluator sums in double) gets an ulp."""

    def __init__(self, count, size):
        self.count, self.size = count, size

    def __str__(self):
        return f"what a sum of {self.count} terms may lose in any order, and one unit in the last place"

    def allowed(self, dtype, want):
        if not is_float(dtype):
            return 0.0
        accumulator = 2.0 ** -(52 if dtype == "f64" else 23)
        loss = (4 + np.sqrt(self.count)) * accumulator * np.where(np.isfinite(self.size), self.size, 0)
        return loss + Ulp(1).allowed(dtype, want)


def element(tensor, at, shape):
    """The element of an operand that makes the result at this position; of an operand with another shape, its type."""
    try:
        value = np.atleast_1d(np.broadcast_to(tensor.values, shape))[at]
    except ValueError:
        return tensor.type()
    return f"{tensor.dtype}({value!s})"


def mismatch(dtype, got, want, tolerance, strict, operands=()):
    """None, or what differs, in words: the first wrong element, what made it, and the rule that it breaks."""
    if got.shape != want.shape:
        return f"shape {list(got.shape)}, expected {list(want.shape)}"
    if got.dtype != want.dtype:
        return f"dtype {got.dtype}, expected {want.dtype}"
    if strict and isinstance(tolerance, Sum) and dtype != "f64":
        tolerance = Ulp(1)
    with np.errstate(all="ignore"):
        same = (got == want) | ((got != got) & (want != want))
        if is_float(dtype):
            error = np.abs(got.astype(np.float64) - want.astype(np.float64))
            same |= error <= tolerance.allowed(dtype, want)
    if np.all(same):
        return None
    at = tuple(int(i) for i in np.argwhere(~np.atleast_1d(same))[0])
    g, w = np.atleast_1d(got)[at], np.atleast_1d(want)[at]
    text = f"{np.count_nonzero(~same)} of {same.size} differ; first at {list(at)}: got {g!s}, expected {w!s} ({tolerance}"
    if is_float(dtype):
        allowed = np.broadcast_to(tolerance.allowed(dtype, want), want.shape)
        text += f": {np.atleast_1d(error)[at]:.3g} off, {np.atleast_1d(allowed)[at]:.3g} allowed"
    made = ", ".join(f"operand {i} {element(o, at, want.shape)}" for i, o in enumerate(operands))
    return text + ")" + (f"; {made}" if made else "")
