"""What library.py asks of functions of images: cases as there."""

import itertools
import math

import numpy as np

RANDOM = np.random.Generator(np.random.Philox(17))


def normal(*shape):
    return RANDOM.normal(size=shape) * 2


# ---- Resizing: element by element, as the specification of ONNX's Resize says it; the nearest is found in f32 ----


def source(i, n, count, scale, coordinates, roi):
    wide = scale * n
    if coordinates == "align_corners":
        return 0.0 if wide == 1 else i * (n - 1) / (wide - 1)
    if coordinates == "asymmetric":
        return i / scale
    if coordinates == "tf_crop_and_resize":
        span = (roi[1] - roi[0]) * (n - 1)
        return roi[0] * (n - 1) + (span / 2 if wide == 1 else i * span / (wide - 1))
    if coordinates == "pytorch_half_pixel" and count == 1:
        return 0.0
    shift = n / 2 * (1 - count / wide) if coordinates == "half_pixel_symmetric" else 0.0
    return shift + (i + 0.5) / scale - 0.5


def nearest(x, rounding):
    low, part = math.floor(x), x - math.floor(x)
    return {"round_prefer_floor": low + (part > 0.5 + 1e-6), "round_prefer_ceil": low + (part >= 0.5 - 1e-6), "floor": low,
            "ceil": math.ceil(x)}[rounding]


def cubic(t, a):
    t = abs(t)
    if t <= 1:
        return (a + 2) * t**3 - (a + 3) * t**2 + 1
    return a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a if t < 2 else 0.0


def row_of_weights(x, n, scale, mode, a, exclude, antialias, rounding):
    """How much each of n elements counts in the result at x."""
    row = np.zeros(n)
    if mode == "nearest":
        row[min(max(nearest(x, rounding), 0), n - 1)] = 1
        return row
    s = min(scale, 1) if antialias else 1
    kernel = (lambda t: max(1 - abs(t), 0)) if mode == "linear" else lambda t: cubic(t, a)
    reach = int(np.ceil(2 / s)) + 2
    for place in range(math.floor(x) - reach, math.floor(x) + reach + 1):
        if not exclude or 0 <= place < n:
            row[min(max(place, 0), n - 1)] += kernel((place - x) * s)
    return row / row.sum()


def resized(x, sizes, axes, mode="nearest", coordinates="half_pixel", scales=None, rounding="round_prefer_floor", a=-0.75,
            exclude=False, antialias=False, roi=None, extrapolation=0.0):
    for i, axis in enumerate(axes):
        n, count = x.shape[axis], sizes[i]
        scale = scales[i] if scales else count / n
        positions = np.arange(count, dtype=np.float32 if mode == "nearest" and scales else np.float64)
        places = [float(p) if scales or mode != "nearest" else round(float(p), 12) for k in range(count)
                  for p in np.broadcast_to(source(positions[k:k + 1], n, count, scale, coordinates, roi[i] if roi else None), 1)]
        matrix = np.array([row_of_weights(p, n, scale, mode, a, exclude, antialias, rounding) for p in places])
        x = np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis)
        if coordinates == "tf_crop_and_resize":
            outside = np.array([p < 0 or p > n - 1 for p in places])
            np.moveaxis(x, axis, 0)[outside] = extrapolation
    return x


IMAGE = normal(1, 2, 5, 7)
MODES = ("nearest", "linear", "cubic")
COORDINATES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def resize_case(sizes, attrs="", x=IMAGE, axes=(2, 3), **options):
    written = "".join(f", {name} = {value}" for name, value in
                      ((k, f'"{v}"' if isinstance(v, str) else str(v).lower()) for k, v in options.items()))
    given = {"exclude" if k == "exclude_outside" else k: v for k, v in options.items()}
    return (f"resize(x0, {list(sizes)}, axes = {list(axes)}{written})", [x], {},
            lambda x, p: resized(x, sizes, axes, **given))


RESIZE = [resize_case(sizes, mode=m, coordinates=c) for sizes in ((3, 4), (11, 9), (1, 1), (5, 14)) for m in MODES for c in COORDINATES]
RESIZE += [resize_case(sizes, coordinates=c, rounding=r) for sizes in ((3, 4), (10, 9)) for c in COORDINATES for r in ROUNDINGS]
RESIZE += [resize_case((3, 5), mode=m, coordinates=c, scales=[0.65, 0.8]) for m in MODES for c in COORDINATES]
RESIZE += [resize_case((18,), x=normal(11), axes=(0,), coordinates="asymmetric", rounding="floor", scales=[float(np.float32(1.7))])]
RESIZE += [resize_case(sizes, mode=m, antialias=t, exclude_outside=e) for sizes in ((3, 4), (2, 11)) for m in MODES[1:]
           for t in (False, True) for e in (False, True)]
RESIZE += [resize_case((4, 6), mode=m, coordinates="tf_crop_and_resize", roi=[[0.25, 0.75], [-0.2, 1.3]], extrapolation=9.5)
           for m in MODES]
RESIZE += [resize_case((1, 6), mode="linear", coordinates="tf_crop_and_resize", roi=[[0.4, 0.6], [0.8, 0.2]]),
           resize_case((3, 4), mode="cubic", a=-0.5), resize_case((4,), x=normal(6), axes=(0,), mode="linear"),
           resize_case((4, 2, 5), x=normal(3, 3, 3), axes=(0, 1, 2), mode="linear", coordinates="align_corners"),
           resize_case((3,), x=normal(2, 1, 4), axes=(-2,), mode="cubic")]

# ---- Warping: pixel by pixel ----


def bounced(v, low, high):
    """Back and forth between two mirrors."""
    if high <= low:
        return low
    while not low <= v <= high:
        v = 2 * low - v if v < low else 2 * high - v
    return v


def pixel(x, place, padding, corners):
    index = []
    for v, n in zip(place, x.shape[1:]):
        if padding == "zeros" and not 0 <= v < n:
            return np.zeros(x.shape[0])
        v = bounced(v, *((0, n - 1) if corners else (-0.5, n - 0.5))) if padding == "reflection" else v
        index.append(int(min(max(v, 0), n - 1)))
    return x[(slice(None), *index)]


def sampled(x, grid, mode="linear", padding="zeros", corners=False):
    d = x.ndim - 2
    y = np.zeros((x.shape[0], x.shape[1], *grid.shape[1:-1]))
    for at in np.ndindex(grid.shape[:-1]):
        place = []
        for g, n in zip(grid[at][::-1], x.shape[2:]):
            v = (g + 1) / 2 * (n - 1) if corners else ((g + 1) * n - 1) / 2
            v = np.rint(v) if mode == "nearest" else v
            low, high = (0, n - 1) if corners else (-0.5, n - 0.5)
            outside = padding == "border" and mode != "cubic" and not low <= v <= high  # of cubic each tap goes to the border
            place.append(min(max(v, 0), n - 1) if outside else bounced(v, low, high) if padding == "reflection" else v)
        if mode == "nearest":
            y[(at[0], slice(None), *at[1:])] = pixel(x[at[0]], [np.rint(v) for v in place], padding, corners)
            continue
        kernel = (lambda t: max(1 - abs(t), 0)) if mode == "linear" else lambda t: cubic(t, -0.75)
        for taps in itertools.product(range(2) if mode == "linear" else range(-1, 3), repeat=d):
            corner = [math.floor(v) + t for v, t in zip(place, taps)]
            weight = math.prod(kernel(v - c) for v, c in zip(place, corner))
            y[(at[0], slice(None), *at[1:])] += weight * pixel(x[at[0]], corner, padding, corners)
    return y


def affine(theta, size, corners):
    grid = np.zeros((theta.shape[0], *size, len(size)))
    for at in np.ndindex(*size):
        base = [2 * i / (n - 1) - 1 if corners else (2 * i + 1) / n - 1 for i, n in zip(at, size)][::-1] + [1]
        grid[(slice(None), *at)] = theta @ base
    return grid


PHOTOS, VOLUME = normal(2, 3, 4, 5), normal(1, 2, 3, 4, 3)
GRID, CUBE = RANDOM.uniform(-1.6, 1.6, (2, 3, 4, 2)), RANDOM.uniform(-1.3, 1.3, (1, 2, 3, 2, 3))
GRIDS = [(f'grid_sample(x0, x1, "{m}", "{b}", {str(c).lower()})', [x, g], {}, lambda x, g, p, m=m, b=b, c=c: sampled(x, g, m, b, c))
         for m in MODES for b in ("zeros", "border", "reflection") for c in (False, True) for x, g in [(PHOTOS, GRID)]]
GRIDS += [(f'grid_sample(x0, x1, mode = "{m}")', [VOLUME, CUBE], {}, lambda x, g, p, m=m: sampled(x, g, m)) for m in MODES[:2]]
GRIDS += [("grid_sample(x0, x1)", [normal(1, 2, 6), RANDOM.uniform(-1.2, 1.2, (1, 5, 1))], {}, lambda x, g, p: sampled(x, g))]
AFFINE = [(f"affine_grid(x0, {list(size)}, {str(c).lower()})", [normal(2, len(size), len(size) + 1)], {},
           lambda t, p, s=size, c=c: affine(t, s, c)) for size in ((3, 4), (2, 3, 4)) for c in (False, True)]

# ---- Regions: sample by sample ----


def regions(x, boxes, image, height, width, samples, scale=1.0, mode="avg", half_pixel=True):
    y = np.zeros((len(boxes), x.shape[1], height, width))
    h, w = x.shape[2:]
    for r, box in enumerate(boxes * scale - (0.5 if half_pixel else 0.0)):
        wide, high = (box[2:] - box[:2]) if half_pixel else np.maximum(box[2:] - box[:2], 1.0)
        for i, j in np.ndindex(height, width):
            each = []
            down, across = (samples, samples) if samples else [max(0, int(np.ceil(s))) for s in (high / height, wide / width)]
            for k, l in np.ndindex(down, across):
                v = box[1] + high / height * (i + (k + 0.5) / down)
                u = box[0] + wide / width * (j + (l + 0.5) / across)
                if v < -1 or v > h or u < -1 or u > w:
                    each.append([np.zeros(x.shape[1])] * 4)
                    continue
                v, u = max(v, 0.0), max(u, 0.0)
                t, s = min(int(v), h - 1), min(int(u), w - 1)
                fv, fu = (0 if t == h - 1 else v - t), (0 if s == w - 1 else u - s)
                t1, s1 = min(t + 1, h - 1), min(s + 1, w - 1)
                part = x[image[r]]
                each.append([part[:, t, s] * (1 - fv) * (1 - fu), part[:, t, s1] * (1 - fv) * fu,
                             part[:, t1, s] * fv * (1 - fu), part[:, t1, s1] * fv * fu])
            each = np.array(each) if each else np.zeros((1, 4, x.shape[1]))
            y[r, :, i, j] = each.sum(1).mean(0) if mode == "avg" else each.max(1).max(0)
    return y


BOXES = np.array([[0.5, 0.3, 4.2, 3.1], [-2.0, -3.0, 2.0, 1.5], [3.0, 2.0, 9.0, 8.0], [1.0, 1.0, 1.2, 1.1]])
OWNERS = np.array([0, 1, 1, 0])
REGIONS = [(f'roi_align(x0, x1, x2, {h}, {w}, {s}, scale = {k}, mode = "{m}", half_pixel = {str(half).lower()})', [PHOTOS, BOXES, OWNERS],
            {}, lambda x, b, i, p, a=(h, w, s, k, m, half): regions(x, b, i, *a))
           for h, w, s, k in [(2, 3, 2, 1.0), (3, 3, 1, 0.75)] for m in ("avg", "max") for half in (True, False)]

UNEVEN = np.array([[0.5, 0.3, 8.3, 3.1], [-2.0, -3.0, 2.0, 1.5], [3.0, 2.0, 3.0, 1.0], [1.0, 1.0, 1.2, 1.1]])
ADAPTIVE = [(f'roi_align_adaptive(x0, x1, x2, {h}, {w}, scale = {k}, mode = "{m}", half_pixel = {str(half).lower()})', [PHOTOS, UNEVEN, OWNERS],
             {}, lambda x, b, i, p, a=(h, w, 0, k, m, half): regions(x, b, i, *a))
            for h, w, k in [(2, 3, 1.0), (1, 1, 0.75)] for m in ("avg", "max") for half in (True, False)]



def largest_of_regions(x, rois, height, width, scale=1.0):
    y = np.zeros((len(rois), x.shape[1], height, width))
    for r, roi in enumerate(rois):
        left, top, right, bottom = [int(np.sign(v) * np.floor(abs(v) + 0.5)) for v in roi[1:] * scale]
        for i, j in np.ndindex(height, width):
            part = x[int(roi[0])]
            for axis, at, parts, first, last in ((1, i, height, top, bottom), (2, j, width, left, right)):
                size = max(last - first + 1, 1) / parts
                begin, end = np.clip([np.floor(at * size) + first, np.ceil((at + 1) * size) + first], 0, x.shape[axis + 1]).astype(int)
                part = part.take(np.arange(begin, end), axis)
            y[r, :, i, j] = part.max((1, 2)) if part.size else 0
    return y


ROIS = np.array([[0, 0.5, 0.3, 3.2, 3.1], [1, -2.0, -3.0, 2.0, 1.5], [0, 3.0, 2.0, 9.0, 8.0], [1, 1.0, 1.0, 1.2, 1.1], [0, 8.0, 8.0, 9.0, 9.0]])
LARGEST = [(f"max_roi_pool(x0, x1, {h}, {w}, scale = {k})", [PHOTOS, ROIS], {}, lambda x, b, p, a=(h, w, k): largest_of_regions(x, b, *a))
           for h, w, k in [(2, 3, 1.0), (3, 2, 0.75), (1, 1, 1.0)]]

# ---- Pooling: window by window ----


class Pool:
    """A window, what moves it, and the same as arguments."""

    def __init__(self, window, stride=None, pad=0, dilation=1, up=False):
        self.words = f"{window}" + (f", stride = {stride}" if stride else "") + (f", pad = {pad}" if pad else "")
        self.words += (f", dilation = {dilation}" if dilation != 1 else "") + (", up = true" if up else "")
        self.given = window, stride or window, pad, dilation, up

    def windows(self, shape):
        """For each result its position, and the positions of the elements that it sees."""
        every = lambda v: [v] * len(shape) if isinstance(v, int) else list(v)
        window, stride, pad, dilation, up = (every(v) if i < 4 else v for i, v in enumerate(self.given))
        before, after = pad[:len(shape)], pad[-len(shape):]
        sides = []
        for n, k, s, b, a, d in zip(shape, window, stride, before, after, dilation):
            room = n + b + a - d * (k - 1) - 1
            count = (-(-room // s) if up else room // s) + 1
            count -= up and (count - 1) * s >= n + b
            sides.append([[i * s - b + t * d for t in range(k) if 0 <= i * s - b + t * d < n] for i in range(count)])
        self.results = [len(side) for side in sides]
        for at in itertools.product(*map(range, self.results)):
            yield at, list(itertools.product(*(side[i] for side, i in zip(sides, at))))


def pooled(x, windows, results, choose):
    y = np.zeros(x.shape[:2] + tuple(results))
    for at, seen in windows:
        for plane in np.ndindex(x.shape[:2]):
            y[plane + at] = choose([(x[plane + place], np.ravel_multi_index(plane + place, x.shape)) for place in seen])
    return y


def by_window(pool, choose, dtype=np.float64):
    def wanted(x, p):
        windows = list(pool.windows(x.shape[2:]))
        return pooled(x, windows, pool.results, choose).astype(dtype)
    return wanted


def largest(seen):
    return max(seen, key=lambda each: (each[0], -each[1]))


def even(size, choose):
    """Windows of PyTorch's adaptive pools."""
    def wanted(x, p):
        counts = [size] * (x.ndim - 2) if isinstance(size, int) else size
        sides = [[range(i * n // c, -(-(i + 1) * n // c)) for i in range(c)] for n, c in zip(x.shape[2:], counts)]
        windows = [(at, list(itertools.product(*(side[i] for side, i in zip(sides, at)))))
                   for at in itertools.product(*map(range, counts))]
        return pooled(x, windows, counts, lambda seen: choose([v for v, _ in seen]))
    return wanted


STEPS = np.floor(normal(2, 2, 7, 8))  # with ties
POOLS = [Pool(2), Pool(3, 2, 1), Pool([3, 2], [1, 2], [1, 0, 0, 1]), Pool(2, 1, 0, [2, 3]), Pool(3, 2, up=True), Pool([2, 3], 3, [0, 1], up=True)]
LINE, BLOCK = (np.floor(normal(2, 3, 9)), Pool(4, 3, 1, 2)), (np.floor(normal(1, 2, 4, 5, 4)), Pool([2, 3, 2], 1, 1))
SEEN = [(STEPS, pool) for pool in POOLS] + [LINE, BLOCK]
POOLING = {
    "max_pool_indices": [(f"({r}) = max_pool_indices(x0, {pool.words})", [x], {}, by_window(pool, lambda seen, i=i: largest(seen)[i], (np.float64, np.int64)[i]))
                         for x, pool in SEEN for i, r in enumerate(("y, at", "most, y"))],
    "max_unpool": [("(most, at) = max_pool_indices(x0, 2)\n    y = max_unpool(most, at, x0.shape)", [normal(1, 2, 4, 6)], {}, lambda x, p:
                    np.where(x == x.reshape(1, 2, 2, 2, 3, 2).max((3, 5)).repeat(2, 2).repeat(2, 3), x, 0))],
    "sum_pool": [(f"sum_pool(x0, {pool.words})", [x], {}, by_window(pool, lambda seen: sum(v for v, _ in seen))) for x, pool in SEEN],
    "lp_pool": [(f"lp_pool(x0, {pool.words}, p = {q})", [x], {}, by_window(pool, lambda seen, q=q: sum(abs(v) ** q for v, _ in seen) ** (1 / q)))
                for x, pool in SEEN[:3] + SEEN[4:5] for q in (1, 2, 3)],
    "global_lp_pool": [("global_lp_pool(x0)", [STEPS], {}, lambda x, p: np.sqrt((x * x).sum((2, 3)))),
                       ("global_lp_pool(x0, 3, keep = true)", [STEPS], {}, lambda x, p: (np.abs(x)**3).sum((2, 3), keepdims=True) ** (1 / 3))],
    "adaptive_avg_pool": [(f"adaptive_avg_pool(x0, {size})", [x], {}, even(size, np.mean))
                          for x, size in [(STEPS, 3), (STEPS, [7, 4]), (STEPS, [1, 2]), (STEPS, [5, 8]), (LINE[0], 4), (BLOCK[0], [3, 2, 4])]],
    "adaptive_max_pool": [(f"adaptive_max_pool(x0, {size})", [x], {}, even(size, np.max))
                          for x, size in [(STEPS, 3), (STEPS, [7, 4]), (STEPS, [1, 2]), (STEPS, [5, 8]), (LINE[0], 4), (BLOCK[0], [3, 2, 4])]],
    "shares": [("(y, end) = shares(7, 3)", [], {}, lambda p: np.array([0, 2, 4])), ("(begin, y) = shares(7, 3)", [], {}, lambda p: np.array([3, 5, 7]))],
    "shares_alike": [(f"y = i64({n}) if shares_alike([4, 6], {c}) else i64(0)", [], {}, lambda p, n=n: np.array(n)) for n, c in [(1, [2, 3]), (0, [2, 4])]],
    "pad_ends": [("(b, a) = pad_ends([1, 2, 3, 4], 2)\n    y = i64(b[0] * 1000 + b[1] * 100 + a[0] * 10 + a[1])", [], {}, lambda p: np.array(1234)),
                 ("(b, a) = pad_ends([1, 2], 2)\n    y = i64(b[0] * 1000 + b[1] * 100 + a[0] * 10 + a[1])", [], {}, lambda p: np.array(1212)),
                 ("(b, a) = pad_ends(3, 2)\n    y = i64(b[0] * 1000 + b[1] * 100 + a[0] * 10 + a[1])", [], {}, lambda p: np.array(3333))],
    "window_count": [("y = i64(window_count(9, 2, 3, 1, 1, 1, true))", [], {}, lambda p: np.array(4)), ("y = i64(window_count(8, 3, 2, 0, 0))", [], {}, lambda p: np.array(3))],
}

# What these are made of has cases of its own.
PLACES = np.array([-0.5, 0.0, 0.5, 1.0, 1.5, 4.75])
PARTS = {
    "resize_coordinates": [(f'resize_coordinates(5, 4, 0.85, "{c}")', [], {}, lambda p, c=c: np.array(
        [source(i, 5, 4, 0.85, c, None) for i in range(4)])) for c in COORDINATES],
    "nearest_elements": [(f'nearest_elements(x0, 5, "{r}")', [PLACES], {}, lambda x, p, r=r: np.clip([nearest(v, r) for v in x], 0, 4))
                         for r in ROUNDINGS],
    "resize_weight": [('resize_weight(x0, "cubic", -0.5)', [PLACES], {}, lambda x, p: np.array([cubic(v, -0.5) for v in x])),
                      ('resize_weight(x0, "linear", none)', [PLACES], {}, lambda x, p: np.maximum(1 - np.abs(x), 0))],
    "resize_sum": [('resize_sum(x0, x1, 0, 1.0, "linear", none, false, false)', [normal(5), PLACES[1:-1]], {},
                    lambda x, at, p: np.interp(at, np.arange(5), x))],
    "reflected": [("reflected(x0, -0.5, 2.5)", [np.array([-7.0, -1.0, 0.0, 2.0, 3.0, 9.5])], {},
                   lambda x, p: np.array([bounced(v, -0.5, 2.5) for v in x])), ("reflected(x0, 1.0, 1.0)", [PLACES], {}, lambda x, p: x * 0 + 1)],
    "pixels_at": [('pixels_at(x0, [x1, x1], [2, 3], "zeros", false)', [normal(12, 2), np.array([[0.0, 1.0, 2.0], [-1.0, 1.0, 0.0]])], {},
                   lambda x, at, p: np.array([[x[i * 6 + int(v) * 4] if 0 <= v < 2 else x[0] * 0 for v in row] for i, row in enumerate(at)]))],
    "roi_parts": [("(y, any) = roi_parts(x0, x1, 2, 5)", [np.array([[0.0], [-3.0]]), np.array([[2.0], [-2.0]])], {},
                   lambda a, b, p: np.array([[[1, 1, 0, 0, 0], [0, 1, 1, 0, 0]], [[0] * 5] * 2], bool))],
    "roi_elements": [(f"({r}) = roi_elements(x0, 2, 4, 0.5, {half})", [np.array([[2.0, 4.0, 10.0, 5.0]])], {}, lambda b, p, v=v: np.full((1, 1, 1), v))
                     for r, half, v in [("y, a, b, c", "true", 0.5), ("a, y, b, c", "false", 2), ("a, b, y, c", "true", 1), ("a, b, c, y", "false", 0.5)]],
    "roi_counts": [(f"({r}) = roi_counts(x0, x1)", [PLACES, PLACES * 1000], {}, lambda w, h, p, v=v: np.array(v, "i4"))
                   for r, v in [("y, a", [0, 0, 1, 1, 2, 5]), ("a, y", [0, 0, 500, 1000, 1000, 1000])]],
    "roi_sample": [("(a, y, b, c) = roi_sample(x0, i64(x1), x2, x2, x3, x3, 3, 3, 4, 1, 1)",
                    [np.arange(24.0).reshape(24, 1), np.array([1]), np.full((1, 1, 1), 0.25), np.full((1, 1, 1), 2.0)], {},
                    lambda x, i, at, size, p: np.full((1, 1, 1, 1), 0.25 * 0.75 * (12 + 4 * 1 + 2)))],  # at 1.75 down and across: one below, two right
    "roi_neighbours": [("(a, b, y, c) = roi_neighbours(x0, 4)", [PLACES], {}, lambda x, p: np.where(x < 0, 0, np.where(x >= 3, 0, x % 1)))],
}

# ---- What windows see ----


def unfolded(x, window, stride, pad, dilation):
    """Window by window, as PyTorch's unfold, in any number of dimensions"""
    before, after = pad[:len(pad) // 2], pad[len(pad) // 2:]
    x = np.pad(x, [(0, 0), (0, 0), *zip(before, after)])
    counts = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], window, stride, dilation)]
    seen = [x[(slice(None), slice(None), *(slice(i * s, i * s + d * (k - 1) + 1, d) for i, k, s, d in zip(at, window, stride, dilation)))]
            for at in np.ndindex(*counts)]
    return np.stack([part.reshape(len(x), x.shape[1] * np.prod(window)) for part in seen], -1)


UNFOLDED = [(call, [x], {}, lambda x, p, told=told: unfolded(x, *told)) for call, x, told in [
    ("unfold(x0, 3)", normal(2, 3, 5, 6), ([3, 3], [1, 1], [0] * 4, [1, 1])),
    ("unfold(x0, [3, 2], stride = [2, 1], pad = [1, 0, 2, 1], dilation = [1, 3])", normal(1, 2, 7, 8), ([3, 2], [2, 1], [1, 0, 2, 1], [1, 3])),
    ("unfold(x0, 4, 3, pad = 1)", normal(2, 1, 11), ([4], [3], [1, 1], [1])),
    ("unfold(x0, 2, pad = 1, dilation = 2)", normal(1, 2, 3, 4, 5), ([2] * 3, [1] * 3, [1] * 6, [2] * 3)),
    ("unfold(x0, 2)", normal(0, 2, 3, 4), ([2, 2], [1, 1], [0] * 4, [1, 1])),
    ("unfold(x0, 1)", normal(1, 2, 3, 1), ([1, 1], [1, 1], [0] * 4, [1, 1]))]]

def folded(y, size, window, stride, pad, dilation):
    """Taps added where they were seen, element by element"""
    k, rank = np.prod(window), len(size)
    x = np.zeros((y.shape[0], y.shape[1] // k, *(n + pad[d] + pad[rank + d] for d, n in enumerate(size))))
    counts = [(n - (window[d] - 1) * dilation[d] - 1) // stride[d] + 1 for d, n in enumerate(x.shape[2:])]
    y = y.reshape(y.shape[0], -1, *window, *counts)
    for tap in np.ndindex(*window):
        for at in np.ndindex(*counts):
            x[(slice(None), slice(None), *(a * s + t * b for a, s, t, b in zip(at, stride, tap, dilation)))] += y[(slice(None), slice(None), *tap, *at)]
    return x[(..., *(slice(pad[d], pad[d] + n) for d, n in enumerate(size)))]


FOLDED = [(call, [y], {}, lambda y, p, told=told: folded(y, *told)) for call, y, told in [
    ("fold(x0, [5, 6], 3)", normal(2, 18, 12), ([5, 6], [3, 3], [1, 1], [0] * 4, [1, 1])),
    ("fold(x0, [7, 8], [3, 2], stride = [2, 1], pad = [1, 0, 2, 1], dilation = [1, 3])", normal(1, 12, 24), ([7, 8], [3, 2], [2, 1], [1, 0, 2, 1], [1, 3])),
    ("fold(x0, [11], 4, stride = 3, pad = 1)", normal(2, 8, 4), ([11], [4], [3], [1, 1], [1])),
    ("fold(x0, [9], 2, stride = 4)", normal(1, 4, 2), ([9], [2], [4], [0, 0], [1]))]]
# By the factors of the extents whole numbers are whole: 14 elements to 2 are those at 0 and 7.
WHOLE = [(f'resize(x0, [{count}], axes = [0], coordinates = "asymmetric", rounding = "{r}")', [np.arange(float(n))], {},
          lambda x, p, n=n, count=count, r=r: np.clip([i * n // count if r == "floor" else -(-i * n // count) for i in range(count)], 0, n - 1).astype(float))
         for n, count in ((14, 2), (12, 7), (98, 7), (49, 147), (1000, 3), (91, 13), (4099, 4099 // 7)) for r in ("floor", "ceil")]
RESIZE += WHOLE

CASES = {"fold": FOLDED, "resize": RESIZE, "grid_sample": GRIDS, "affine_grid": AFFINE, "roi_align": REGIONS, "roi_align_adaptive": ADAPTIVE, "max_roi_pool": LARGEST, **POOLING, **PARTS, "unfold": UNFOLDED}
# Built for targets, too.
BUILT = ["grid_sample", "affine_grid", "roi_align", "roi_align_adaptive", "max_roi_pool", "max_pool_indices", "max_unpool", "lp_pool", "adaptive_avg_pool", "unfold"]
