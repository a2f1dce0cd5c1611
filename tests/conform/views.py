"""Cases of views, of what is put together, and of reads and writes at positions: exact for every dtype."""

import numpy as np

from cases import generator, lst, numbers
from tensors import EVERY, INTS, NUMBERS, Tensor, round_to, widen


def windows(x, axis, size, step=1, dilation=1):
    """As torch.Tensor.unfold: the axis counts windows, a new last dimension has what each sees"""
    span = (size - 1) * dilation + 1
    seen = np.moveaxis(np.lib.stride_tricks.sliding_window_view(x.values, span, axis=axis), axis, 0)[..., ::dilation]
    return Tensor(x.dtype, np.moveaxis(seen[::step], 0, axis))


def view_cases(cases):
    for dtype in EVERY:
        x = numbers(dtype, (3, 4, 5), "view")
        v = x.values
        cases.add("reshape", [x], Tensor(dtype, v.reshape(-1, 10)), "shape = [-1, 10]")
        cases.add("transpose", [x], Tensor(dtype, v.T))
        cases.add("broadcast", [x], Tensor(dtype, np.broadcast_to(v, (2, 3, 4, 5))), "shape = [2, 3, 4, 5]")
        cases.add("slice", [x], Tensor(dtype, v[:, 1:3, ::2]), "axes = [1, 2], begin = [1, 0], end = [3, 5], step = [1, 2]")
        cases.add("split", [x], [Tensor(dtype, p) for p in np.split(v, [1, 3], axis=1)], "axis = 1, sizes = [1, 2, 1]")
        cases.add("windows", [x], windows(x, 1, 2), "axis = 1, size = 2")
        cases.add("after", [x, x, numbers("i32", (2,), "after")], Tensor(dtype, v))
        cases.add("concat", [x, x], Tensor(dtype, np.concatenate([v, v], 1)), "axis = 1")
        cases.add("stack", [x, x], Tensor(dtype, np.stack([v, v], 1)), "axis = 1")
        cases.add("pad", [x], Tensor(dtype, np.pad(v, ((0, 1), (2, 0), (1, 1)), constant_values=1)),
                  "before = [0, 2, 1], after = [1, 0, 1], value = 1")
    x = numbers("f32", (3, 4, 5), "view")
    for shape in [(60,), (5, 4, 3), (3, 1, 20), (1, 1, 60)]:
        cases.add("reshape", [x], Tensor("f32", x.values.reshape(shape)), f"shape = {lst(shape)}")
    one = numbers("f32", (1, 1), "view")
    cases.add("reshape", [one], Tensor("f32", one.values.reshape(())), "shape = []")
    cases.add("reshape", [Tensor("f32", np.zeros((0, 3)))], Tensor("f32", np.zeros((3, 0))), "shape = [3, 0]")
    for axes in [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0), (-1, 0, 1)]:
        cases.add("transpose", [x], Tensor("f32", x.values.transpose(axes)), f"axes = {lst(axes)}")
    big = numbers("f32", (2, 3, 17, 19), "view")
    for axes in [(0, 2, 3, 1), (0, 3, 1, 2), (3, 2, 1, 0), (0, 1, 3, 2)]:
        cases.add("transpose", [big], Tensor("f32", big.values.transpose(axes)), f"axes = {lst(axes)}")
    for small, shape in [((), (3,)), ((1,), (4,)), ((3, 1), (3, 5)), ((1, 5), (4, 5)), ((2, 1, 3), (2, 2, 4, 3)), ((1,), (0,))]:
        y = numbers("f32", small, "broadcast", shape)
        cases.add("broadcast", [y], Tensor("f32", np.broadcast_to(y.values, shape)), f"shape = {lst(shape)}")
    for shape, axis, size, step, dilation in [((9,), 0, 3, 1, 1), ((9,), 0, 9, 5, 1), ((9,), 0, 1, 2, 7), ((9,), 0, 3, -2, 3), ((40,), 0, 17, -1, 1),
                                              ((3, 20, 4), 1, 5, 3, 1), ((2, 3, 33), 2, 16, 1, 1), ((5, 12), 0, 2, 3, 4), ((1, 8, 2, 3), 1, 4, -4, 1),
                                              ((2, 1, 2, 1, 2, 1, 9), 6, 4, 2, 2), ((0, 5), 1, 3, 1, 1), ((9,), 0, 2, 2**62, 1)]:
        y = numbers("f32", shape, "windows", size)
        cases.add("windows", [y], windows(y, axis, size, step, dilation),
                  f"axis = {axis if axis else -len(shape)}, size = {size}, step = {step}, dilation = {dilation}")


def slice_cases(cases):
    x = numbers("f32", (7, 9), "slice")
    lowest = -(2**62)
    for begin, end, step in [(0, 7, 1), (2, 5, 1), (-3, -1, 1), (0, 100, 3), (-100, 100, 2), (5, 2, 1), (6, lowest, -1),
                             (-1, lowest, -2), (5, 1, -1), (100, 3, -3), (1, 5, -1), (3, 4, 100), (6, 0, -100)]:
        stop = None if end == lowest else end
        cases.add("slice", [x], Tensor("f32", x.values[begin:stop:step]),
                  f"axes = [0], begin = [{begin}], end = [{end}], step = [{step}]")
        cases.add("slice", [x], Tensor("f32", x.values[:, begin:stop:step]),
                  f"axes = [-1], begin = [{begin}], end = [{end}], step = [{step}]")
    cases.add("slice", [x], Tensor("f32", x.values[1:6:2, 1:6:2]), "axes = [0, 1], begin = 1, end = 6, step = 2")
    cases.add("slice", [x], Tensor("f32", x.values[::-1, 3:4]),
              f"axes = [1, 0], begin = [3, 6], end = [4, {lowest}], step = [1, -1]")
    for axis, sizes in [(0, [7]), (0, [3, 4]), (1, [2, 3, 4]), (-1, [1, 0, 8]), (1, [1] * 9)]:
        parts = np.split(x.values, np.cumsum(sizes)[:-1], axis=axis)
        cases.add("split", [x], [Tensor("f32", p) for p in parts], f"axis = {axis}, sizes = {lst(sizes)}",
                  body=None if len(sizes) > 1 else f"{{r[0]}} = split({{x[0]}}, axis = {axis}, sizes = {lst(sizes)})")


def assemble_cases(cases):
    for axis, shapes in [(0, [(2, 3), (4, 3), (1, 3)]), (1, [(2, 3), (2, 1)]), (-1, [(2, 2, 3), (2, 2, 5)]), (0, [(3,)]),
                         (1, [(1, 3, 5, 5), (1, 17, 5, 5), (1, 2, 5, 5)]), (0, [(0, 3), (2, 3)]), (2, [(2, 3, 4)] * 4)]:
        parts = [numbers("f32", s, "concat", i) for i, s in enumerate(shapes)]
        cases.add("concat", parts, Tensor("f32", np.concatenate([p.values for p in parts], axis)), f"axis = {axis}")
    for axis, shape, count in [(0, (2, 3), 3), (1, (2, 3), 2), (2, (2, 3), 2), (-1, (2, 3, 4), 3), (-4, (2, 3, 4), 2),
                               (0, (), 4), (0, (17,), 1), (1, (0, 3), 2), (2, (1, 5, 1, 4), 9), (3, (2, 1, 2, 1, 2, 1, 3), 2)]:
        parts = [numbers("f32", shape, "stack", i) for i in range(count)]
        cases.add("stack", parts, Tensor("f32", np.stack([p.values for p in parts], axis)), f"axis = {axis}")
    x = numbers("f32", (2, 3, 4), "pad")
    for before, after, value in [((1, 1, 1), (1, 1, 1), 0), ((0, 0, 2), (0, 0, 3), -1.5), ((0, 3, 0), (0, 0, 0), 2.5),
                                 ((0, 0, 0), (0, 0, 0), 7)]:
        cases.add("pad", [x], Tensor("f32", np.pad(x.values, list(zip(before, after)), constant_values=value)),
                  f"before = {lst(before)}, after = {lst(after)}, value = {value}")
    cases.add("pad", [x], Tensor("f32", np.pad(x.values, 2)), "before = 2, after = 2")
    empty = Tensor("f32", np.zeros((0, 2)))
    cases.add("pad", [empty], Tensor("f32", np.full((2, 3), 4)), "before = [1, 0], after = [1, 1], value = 4")


def gather_cases(cases):
    def case(table, index, axis):
        rows = table.shape[axis]
        where = index.values.astype(np.int64)
        where = np.clip(np.where(where < 0, where + rows, where), 0, rows - 1)
        cases.add("gather", [table, index], Tensor(table.dtype, np.take(table.values, where, axis=axis)),
                  f"axis = {axis}")

    for dtype in EVERY:
        case(numbers(dtype, (6, 5), "gather"), Tensor("i64", [0, 5, 2, 2]), 0)
    for index_dtype in INTS:
        case(numbers("f32", (6, 5), "gather"), Tensor(index_dtype, [[0, 3], [5, 1], [2, 2]]), 0)
    table = numbers("f32", (4, 5, 6), "gather")
    for axis in (0, 1, 2, -1):
        for shape in [(), (3,), (2, 2)]:
            case(table, Tensor("i64", generator("gather", axis, shape).integers(-4, 4, shape)), axis)
    case(table, Tensor("i64", [-1, -4, -100, 100, 4]), 0)  # from the end, and clamped
    case(table, Tensor("i64", np.zeros((0,))), 1)


SCATTERS = {"scatter": lambda x, u: u, "scatter_add": np.add, "scatter_mul": np.multiply, "scatter_max": np.maximum,
            "scatter_min": np.minimum}


def scattered(x, index, update, axis, op="scatter_add"):
    """Slice after slice, each result rounded."""
    rows = x.shape[axis]
    flat = index.values.astype(np.int64).reshape(-1)
    where = np.clip(np.where(flat < 0, flat + rows, flat), 0, rows - 1)
    result = np.moveaxis(x.values.copy(), axis, 0)
    axis %= x.values.ndim
    slices = np.moveaxis(update.values.reshape(x.shape[:axis] + (flat.size,) + x.shape[axis + 1:]), axis, 0)
    for row, part in zip(where, slices):
        with np.errstate(all="ignore"):
            result[row:row + 1] = round_to(x.dtype, SCATTERS[op](widen(result[row:row + 1]), widen(part[None])))
    return np.moveaxis(result, 0, axis)


def scatter_kinds(cases, often):
    """Those that combine otherwise, which share all else with scatter_add."""
    def case(op, x, index, axis):
        at = axis % x.values.ndim
        update = numbers(x.dtype, x.shape[:at] + index.shape + x.shape[at + 1:], "scatter_update")
        cases.add(op, [x, index, update], Tensor(x.dtype, scattered(x, index, update, axis, op)), f"axis = {axis}")

    for op in SCATTERS:
        if op == "scatter_add":
            continue
        for dtype in EVERY if op == "scatter" else NUMBERS:
            case(op, numbers(dtype, (6, 19), "scatter"), often, 0)
            case(op, numbers(dtype, (9,), "scatter"), often, 0)
        for axis in (0, 1, -1):
            for shape in [(), (3,), (2, 2), (0,)]:
                case(op, numbers("f32", (4, 5, 6), "scatter"), Tensor("i32", generator("scatter", axis, shape).integers(-4, 4, shape)), axis)
        x, update = Tensor("f32", [[np.nan, 1, -np.inf, -0.0]] * 2), Tensor("f32", [[1, np.nan, np.inf, 0.0], [2, 3, 4, 5]])
        cases.add(op, [x, Tensor("i64", [1, 1]), update], Tensor("f32", scattered(x, Tensor("i64", [1, 1]), update, 0, op)))
        cases.add(op, [numbers("f32", (0, 2), "scatter"), Tensor("i64", np.zeros((0,))), Tensor("f32", np.zeros((0, 2)))],
                  Tensor("f32", np.zeros((0, 2))))


def scatter_cases(cases):
    def case(x, index, axis, body=None):
        at = axis % x.values.ndim
        shape = x.shape[:at] + index.shape + x.shape[at + 1:]
        update = numbers(x.dtype, shape, "scatter_update")
        cases.add("scatter_add", [x, index, update], Tensor(x.dtype, scattered(x, index, update, axis)),
                  f"axis = {axis}", body=body)

    often = Tensor("i64", [0, 5, 2, 2, -1, 2, 0])  # equal ones add up
    scatter_kinds(cases, often)
    for dtype in NUMBERS:
        case(numbers(dtype, (6, 5), "scatter"), often, 0)
        case(numbers(dtype, (6, 19), "scatter"), often, 0)  # vectors and a rest
        case(numbers(dtype, (9,), "scatter"), often, 0)
    for index_dtype in INTS:
        case(numbers("f32", (6, 5), "scatter"), Tensor(index_dtype, [[0, 3], [5, 1], [3, 3]]), 0)
    x = numbers("f32", (4, 5, 6), "scatter")
    for axis in (0, 1, 2, -1, -3):
        for shape in [(), (1,), (3,), (2, 2), (0,), (2, 0)]:
            case(x, Tensor("i64", generator("scatter", axis, shape).integers(-4, 4, shape)), axis)
    case(x, Tensor("i64", [-1, -4, -100, 100, 4, 2**62, -2**63]), 0)  # from the end, and clamped
    case(numbers("f32", (1, 1, 1), "scatter"), often, 1)
    case(numbers("f32", (3, 0, 2), "scatter"), often, 0)
    case(numbers("f32", (0, 2), "scatter"), Tensor("i64", np.zeros((0,))), 0)
    case(numbers("f32", (300, 40), "scatter"), Tensor("i32", generator("scatter").integers(0, 300, 500)), 0)
    case(numbers("f32", (7,), "scatter"), Tensor("i32", generator("scatter").integers(0, 7, 3000)), 0)
    # Made in the memory of what dies here, and of what others still read.
    case(x, Tensor("i64", [3, 1, 3]), 0, body="{id} = {x[0]} + 0\n    {r[0]} = scatter_add({id}, {x[1]}, {x[2]})")
    wide = numbers("f32", (8, 6), "scatter")
    index, update = Tensor("i64", [7, 0, 7]), numbers("f32", (3, 6), "scatter_update")
    first = Tensor("f32", scattered(wide, index, update, 0))
    cases.add("scatter_add", [wide, index, update], [first, Tensor("f32", first.values * first.values)],
              body="{r[0]} = scatter_add({x[0]}, {x[1]}, {x[2]})\n    {r[1]} = square({r[0]})")
    every = Tensor("i64", [2, 0, 2])  # the index, and what is added, are x itself
    cases.add("scatter_add", [every], Tensor("i64", [2, 0, 6]), body="{r[0]} = scatter_add({x[0]}, {x[0]}, {x[0]})")


def add_cases(cases):
    view_cases(cases)
    slice_cases(cases)
    assemble_cases(cases)
    gather_cases(cases)
    scatter_cases(cases)
