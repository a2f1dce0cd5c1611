"""Cases of positions in order, beside NumPy's stable sort."""

import numpy as np

from cases import numbers
from tensors import NUMBERS, Tensor, is_float, round_to, widen


def sorted_positions(values, axis, count, largest):
    """Stable, NaN as the largest: of rank numbers, which have neither NaN nor the least integer, descending is the negative."""
    rank = np.unique(values, return_inverse=True, equal_nan=True)[1].reshape(values.shape).astype(np.int64)
    places = np.argsort(-rank if largest else rank, axis=axis, kind="stable")
    return np.take(places, range(places.shape[axis] if count < 0 else count), axis=axis)


def add_cases(cases):
    def case(x, axis=-1, count=-1, mark=""):
        for largest in (False, True):
            want = Tensor("i64", sorted_positions(widen(x.values), axis, count, largest))
            flags = ", ".join([f"axis = {axis}"] * (axis != -1) + [f"count = {count}"] * (count >= 0) + ["largest = true"] * largest)
            body = f"{{r[0]}} = sorted_positions({{x[0]}}{', ' * bool(flags)}{flags}){mark}"
            cases.add("sorted_positions", [x], want, body=body)

    def special(dtype, extent):
        """Ties, and what is at the ends of a dtype."""
        values = numbers(dtype, (3, extent), "sort").values.copy()
        if is_float(dtype):
            ends = round_to(dtype, np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, -np.nan, 1e-40, -1e-40, 3.0, -3.0]))
        else:
            ends = np.array([np.iinfo(values.dtype).min, np.iinfo(values.dtype).max, 0, 1])
        for at in range(extent):
            if at % 3:
                values[at % 2, at] = ends[at * 7 % len(ends)]
        values[2] = values[2, 0]
        return Tensor(dtype, values)

    for dtype in NUMBERS:
        for extent, count in [(9, -1), (9, 3), (300, -1), (300, 5), (300, 120), (2500, 60)]:
            case(special(dtype, extent), count=count)
        for extent, count in [(1, -1), (2, -1), (3, 2), (9, -1), (100, 7)]:
            case(special(dtype, extent), count=count, mark=" @kernel(0, merging)")
    for shape in [(1,), (2,), (0,), (3, 0), (0, 3), (1, 1), (1, 40), (40, 1), (257,), (4, 5, 6)]:
        for axis in range(len(shape)):
            case(numbers("f32", shape, "sort"), axis)
            case(numbers("f32", shape, "sort"), axis, 0)
            if shape[axis] > 1:
                case(numbers("f32", shape, "sort"), axis, shape[axis] // 2, " @kernel(0, merging)")
    case(numbers("f32", (3, 400, 2), "sort"), 1)
    case(numbers("f32", (3, 400, 2), "sort"), 1, 100)
    for x in (np.arange(3000.0), -np.arange(3000.0), np.zeros(3000)):  # each better than all before it, and none
        for count in (1, 6, 1000, 3000):
            case(Tensor("f32", x), 0, count)
