#!/usr/bin/env python3
"""Handwritten digits, drawn from strokes: training data that needs no download and has no licence.

A glyph is a few pen strokes through control points. To draw one, jitter the points, run a Catmull-Rom spline
through them, bend and slant the curve, place it on the canvas and stroke it with a round pen of varying pressure.
An image is u8[28, 28], white ink (255) on black (0), as in MNIST. Equal seeds give equal images.

    python3 render.py --samples DIR     write 0.pgm ... 9.pgm and a few harder ones
    python3 render.py --sheet FILE      write a contact sheet, 20 x 20 digits, as one .pgm
    python3 render.py --train FILE      write 240,000 of them as .npz, image u8[n, 1, 28, 28] and label i64[n]
    python3 render.py --held-out FILE   the same for 10,000 others, on which digits is judged
    python3 render.py --stream FILE     write 1,000 tidier ones one after another, each a byte of its label and its 784 pixels
"""
import argparse
import pathlib

import numpy as np

SIZE = 28                               # pixels along a side of the canvas
SAMPLES = 128                           # points along a glyph: two or more to a pixel, so the ink has no gaps

# The ways to write each digit, in a box 70 wide and 100 high, y down. Points "x y" separated by commas are joined
# smoothly, "/" is a corner that both its curves share, ";" lifts the pen.
GLYPHS = {
    0: ["38 2, 14 16, 4 50, 14 86, 36 98, 58 84, 67 50, 58 14, 38 2",                  # oval
        "50 6, 24 6, 5 34, 5 68, 24 95, 50 94, 66 70, 66 34, 46 7",                    # round
        "56 14, 36 2, 12 18, 4 52, 16 88, 40 97, 62 76, 64 38, 48 10, 30 8",           # ends overlap
        "28 3, 54 6, 67 36, 64 74, 42 98, 16 90, 4 56, 10 20, 34 2"],                  # clockwise
    1: ["35 0, 35 100",                                                                # a bare stem
        "40 0, 37 50, 34 100",
        "18 24, 38 0 / 38 100",                                                        # flag
        "6 40, 24 24, 42 0 / 40 100",                                                  # long flag
        "18 22, 38 0 / 38 100 ; 12 100, 64 100"],                                      # flag and foot
    2: ["6 24, 18 6, 38 1, 58 10, 62 30, 48 56, 26 78, 4 98 / 66 97",                  # round top, straight foot
        "8 22, 22 4, 44 3, 58 18, 56 40, 40 66, 20 90, 8 96, 6 84, 18 80, 36 90, 52 97, 68 90",       # loop
        "6 14, 34 2, 56 8, 56 26, 34 58, 4 98 / 66 98",                                # nearly a Z
        "4 30, 12 8, 36 0, 60 14, 58 38, 34 70, 6 94 / 26 90, 48 98, 68 90"],          # swan with a wavy foot
    3: ["6 12, 26 1, 50 6, 58 24, 48 42, 26 48 / 50 53, 65 72, 54 92, 28 99, 4 88",    # cusp
        "8 10, 30 0, 54 10, 54 32, 36 46, 24 47, 32 44, 52 54, 64 74, 48 96, 22 98, 4 86",            # small loop
        "6 3, 60 3 / 28 40 / 50 46, 64 66, 56 90, 30 99, 4 88",                        # flat top
        "10 6, 36 0, 58 16, 48 38, 28 47, 52 56, 64 78, 44 98, 6 94"],                 # soft waist
    4: ["16 2, 4 60 / 68 60 ; 48 20, 46 100",                                          # open
        "14 0, 10 52 / 66 50 ; 56 0, 52 100",                                          # open, arms of equal height
        "10 2, 6 30, 14 50, 36 54, 58 46 ; 60 2, 58 50, 54 100",                       # open, round
        "50 100, 50 0 / 2 66 / 70 66",                                                 # closed
        "46 2, 4 62 / 70 62 ; 46 40, 44 100"],                                         # open at the top only
    5: ["60 3, 16 3 / 10 44 / 34 36, 58 48, 64 70, 50 94, 24 99, 4 88",                # one stroke
        "16 4, 12 44 / 36 38, 60 52, 62 78, 40 98, 6 92 ; 16 4, 64 2",                 # bar last
        "60 6, 36 2, 14 14, 16 38, 40 46, 60 60, 60 82, 36 98, 6 90",                  # an S
        "62 4, 14 4 / 12 48 / 44 44, 64 66, 50 94, 6 97"],                             # angular
    6: ["52 2, 26 18, 8 48, 6 78, 24 98, 50 95, 64 74, 52 54, 30 54, 10 72",           # curved
        "46 0, 18 40, 5 70, 16 94, 42 98, 62 82, 58 60, 36 50, 12 62",                 # straight back
        "62 12, 46 2, 22 12, 6 42, 6 76, 24 98, 50 96, 64 76, 54 56, 32 52, 10 68",    # curled top
        "40 0, 18 30, 6 66, 14 92, 36 99, 54 86, 50 68, 30 64, 10 78"],                # small loop
    7: ["4 4, 64 4 / 44 48, 26 100",                                                   # plain
        "4 4, 64 4 / 44 48, 26 100 ; 18 50, 60 48",                                    # barred
        "6 18, 6 4 / 64 4 / 40 50, 28 100",                                            # serif
        "4 10, 30 4, 64 6 / 40 44, 30 72, 28 100",                                     # curved
        "6 18, 6 4 / 64 4 / 40 50, 28 100 ; 14 52, 58 48"],                            # serif and bar
    8: ["58 14, 36 1, 12 14, 16 36, 36 48, 58 64, 60 86, 36 99, 10 86, 14 64, 36 48, 54 34, 58 14",   # one stroke
        "36 1, 14 12, 14 36, 36 47, 58 36, 58 12, 36 1 ; 36 47, 10 60, 8 86, 36 99, 64 86, 62 60, 36 47",
        "62 8, 40 1, 14 10, 14 32, 36 48, 60 66, 58 92, 34 99, 8 88, 12 64, 36 48, 62 20",            # open top
        "36 48, 14 34, 14 10, 38 1, 58 12, 56 34, 36 48, 12 64, 10 88, 34 99, 60 90, 60 64, 36 48"],
    9: ["60 14, 38 1, 12 12, 6 36, 22 54, 44 48, 60 14 / 60 60, 56 100",               # straight stem
        "60 18, 40 2, 14 10, 8 36, 26 52, 50 44, 62 16, 64 50, 54 86, 28 99, 8 90",    # curved tail
        "58 10, 32 1, 8 16, 10 42, 34 52, 56 40, 60 8 / 60 100",                       # closed, upright
        "56 24, 40 4, 16 8, 8 30, 24 46, 46 38, 58 10, 46 60, 30 100"],                # slanted
}


def catmull_rom(indices, t, count):
    """Rows of weights [len(t), count]: the uniform Catmull-Rom spline through the control points `indices`, at
    parameters t in [0, len(indices) - 1]. An end point is its own neighbour."""
    last = len(indices) - 1
    i = np.minimum(t.astype(int), last - 1)
    u = t - i
    basis = 0.5 * np.stack([-u + 2*u**2 - u**3, 2 - 5*u**2 + 3*u**3, u + 4*u**2 - 3*u**3, u**3 - u**2])
    weights = np.zeros((len(t), count))
    for k in range(4):
        np.add.at(weights, (np.arange(len(t)), np.take(indices, np.clip(i + k - 1, 0, last))), basis[k])
    return weights


def compile_glyph(text):
    """A glyph as a linear map: control points [k, 2], centred and 1 high, and weights [SAMPLES, k] which turn them,
    jittered or not, into points evenly spaced along the strokes."""
    control, curves = [], []
    for stroke in text.split(";"):
        start = len(control)
        for part in stroke.split("/"):
            first = max(len(control) - 1, start)        # after a corner: begin where the last curve ended
            control += [[float(v) for v in point.split()] for point in part.split(",")]
            curves.append(np.arange(first, len(control)))
    control = (np.array(control) - [35, 50]) / 100

    fine = [catmull_rom(c, np.linspace(0, len(c) - 1, 400), len(control)) for c in curves]
    steps = [np.linalg.norm(np.diff(f @ control, axis=0), axis=1) for f in fine]
    total = sum(s.sum() for s in steps)
    bounds = np.round(SAMPLES * np.cumsum([s.sum() for s in steps]) / total).astype(int)
    weights = []
    for c, s, n in zip(curves, steps, np.diff(bounds, prepend=0)):
        along = np.append(0, np.cumsum(s)) / s.sum()
        t = np.interp(np.linspace(0, 1, n), along, np.linspace(0, len(c) - 1, 400))
        weights.append(catmull_rom(c, t, len(control)))
    return control, np.concatenate(weights)


VARIANTS = {digit: [compile_glyph(text) for text in texts] for digit, texts in GLYPHS.items()}


def write_strokes(labels, rng, wild):
    """Points [n, SAMPLES, 2] of one glyph per label, in glyph units, its control points jittered."""
    points = np.empty((len(labels), SAMPLES, 2))
    choice = rng.random(len(labels))
    for digit, variants in VARIANTS.items():
        for v, (control, weights) in enumerate(variants):
            rows = np.flatnonzero((labels == digit) & ((choice * len(variants)).astype(int) == v))
            jitter = rng.normal(0, 0.022 * wild, (len(rows), *control.shape))
            points[rows] = weights @ (control + jitter)
    return points


def bend(points, rng, wild):
    """Elastic distortion: two plane waves of random direction and phase push the points about; then the tremor of
    a hand, which is finer and runs along the stroke."""
    n = len(points)
    for _ in range(2):
        wave = rng.normal(0, 3.5, (n, 2, 1))                                    # radians per glyph height
        phase = points @ wave + rng.uniform(0, 2 * np.pi, (n, 1, 1))
        points = points + np.sin(phase) * rng.normal(0, 0.035 * wild, (n, 1, 2))
    along = np.linspace(0, 2 * np.pi, SAMPLES)[:, None]
    tremor = np.sin(rng.uniform(4, 14, (n, 1, 2)) * along + rng.uniform(0, 2 * np.pi, (n, 1, 2)))
    return points + tremor * rng.normal(0, 0.006 * wild, (n, 1, 2))


def slant(points, rng, wild):
    """Stretch, shear and rotate. Writing leans to the right more often than to the left."""
    n = len(points)
    angle = np.radians(np.clip(rng.normal(0, 8 * wild, n), -24, 24))
    shear = np.clip(rng.normal(0.08, 0.16 * wild, n), -0.35, 0.45)
    stretch = np.exp(rng.normal(0, 0.15 * wild, n))
    c, s = np.cos(angle), np.sin(angle)
    affine = np.stack([stretch * c, stretch * s, -shear * c - s, -shear * s + c], axis=1).reshape(n, 2, 2)
    return points @ affine


def place(points, rng, wild):
    """Scale to a random size and put somewhere on the canvas, more often near its centre. Returns pixels, and
    the pen's radius [n] in pixels."""
    n = len(points)
    low, high = points.min(axis=1), points.max(axis=1)                          # [n, 2]
    extent = high - low
    size = rng.uniform(20 - 6 * wild, 21 + 3 * wild, n)                         # the longer side, pen excluded
    radius = np.maximum(size * rng.uniform(0.055 - 0.025 * wild, 0.065 + 0.02 * wild, n), 0.55)
    scale = size / extent.max(axis=1)
    room = SIZE / 2 - 0.5 * extent * scale[:, None] - radius[:, None]
    shift = rng.triangular(-1, 0, 1, (n, 2)) * np.maximum(room, 0) * wild
    middle = (low + high) / 2
    return (points - middle[:, None]) * scale[:, None, None] + (SIZE / 2 + shift)[:, None], radius


def stroke(points, radius, rng, wild):
    """Coverage [n, SIZE, SIZE] in [0, 1] of a round pen. A pixel's distance to the nearest point, in units of the
    radius there, decides; the edge is from one tenth of a pixel (a paint program) to two pixels (a scan) wide."""
    n = len(points)
    along = np.linspace(0, 2 * np.pi, SAMPLES)
    pressure = np.sin(rng.uniform(0.3, 2, (n, 1)) * along + rng.uniform(0, 2 * np.pi, (n, 1)))
    pressure = 1 + pressure * rng.uniform(0, 0.28 * wild, (n, 1))
    edge = rng.uniform(1 - 0.9 * wild, 1.2 + 0.8 * wild, n).astype("f4")[:, None, None]

    pen = (radius[:, None] * pressure).T[..., None]                             # [SAMPLES, n, 1]
    offset = (np.arange(SIZE) + 0.5 - points.T[..., None]) / pen                # [2, SAMPLES, n, SIZE]
    nearest = np.full((n, SIZE, SIZE), np.inf, "f4")
    for dx2, dy2 in zip(*(offset ** 2).astype("f4")):
        np.minimum(nearest, dx2[:, None, :] + dy2[:, :, None], out=nearest)
    inside = (1 - np.sqrt(nearest)) * radius.astype("f4")[:, None, None]        # pixels from the outline
    return np.clip(inside / edge + 0.5, 0, 1)


def scan(ink, rng, wild):
    """Fainter ink on many, sensor noise on a third, a few specks on a tenth."""
    n = len(ink)
    ink = ink * (1 - 0.5 * wild * rng.random((n, 1, 1)) ** 2)
    noise = rng.uniform(0, 0.1, (n, 1, 1)) * (rng.random((n, 1, 1)) < wild / 3)
    speck = (rng.random((n, 1, 1)) < wild / 10) & (rng.random(ink.shape) < 0.004)
    ink = np.maximum(ink + noise * rng.standard_normal(ink.shape), speck * 0.8)
    return np.round(255 * np.clip(ink, 0, 1)).astype("u1")


def render(labels, rng, wild=1.0):
    """Images u8[n, SIZE, SIZE] of the digits `labels`. wild runs from 0, copybook writing, to 1, everyone's."""
    images = np.empty((len(labels), SIZE, SIZE), "u1")
    for at in range(0, len(labels), 100):               # what one chunk needs stays in the cache
        chunk = slice(at, at + 100)
        points = slant(bend(write_strokes(labels[chunk], rng, wild), rng, wild), rng, wild)
        points, radius = place(points, rng, wild)
        images[chunk] = scan(stroke(points, radius, rng, wild), rng, wild)
    return images


def dataset(n, seed):
    """images u8[n, 1, SIZE, SIZE] and labels i64[n], every digit equally often, in random order."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % 10)
    return render(labels, rng)[:, None], labels


def write_pgm(path, image):
    height, width = image.shape
    pathlib.Path(path).write_bytes(b"P5\n%d %d\n255\n" % (width, height) + image.tobytes())


# The samples beside this file: name, which begins with the digit, to seed and wildness. Picked by eye; no seed is one
# of those below.
PICKED = {"0": (2_000_008, 0.6), "1": (2_000_001, 0.6), "2": (2_000_007, 0.6), "3": (2_000_003, 0.6),
          "4": (2_000_001, 0.6), "5": (2_000_008, 0.6), "6": (2_000_012, 0.6), "7": (2_000_006, 0.6),
          "8": (2_000_006, 0.6), "9": (2_000_008, 0.6),
          "0_large": (3_000_018, 1), "2_noisy": (3_000_024, 1), "3_tilted": (3_000_009, 1), "4_open": (3_000_014, 1),
          "5_curved": (3_000_003, 1), "7_barred": (3_000_006, 1), "8_faint": (3_000_007, 1)}


def write_samples(directory):
    for name, (seed, wild) in PICKED.items():
        image = render(np.array([int(name[0])]), np.random.default_rng(seed), wild)[0]
        write_pgm(pathlib.Path(directory, name + ".pgm"), image)


def write_sheet(path, side=20):
    labels = np.arange(side * side) * 10 // side % 10         # two columns for each digit
    images = render(labels, np.random.default_rng(7))
    write_pgm(path, images.reshape(side, side, SIZE, SIZE).swapaxes(1, 2).reshape(side * SIZE, side * SIZE))


# Seeds of sets: each its own, far from those of samples.
TRAIN, HELD_OUT = (240_000, 1), (10_000, 1_000_000)


def write_set(path, size, seed):
    images, labels = dataset(size, seed)
    np.savez(path, image=images, label=labels)


def write_stream(path, size=1000, seed=4_000_000, wild=0.6):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(size) % 10)
    images = render(labels, rng, wild).reshape(size, -1)
    pathlib.Path(path).write_bytes(np.hstack([labels[:, None].astype(np.uint8), images]).tobytes())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Render handwritten digits.")
    parser.add_argument("--samples", metavar="DIR", help="write 0.pgm ... 9.pgm and a few harder ones")
    parser.add_argument("--sheet", metavar="FILE", help="write a contact sheet of 20 x 20 digits as .pgm")
    parser.add_argument("--train", metavar="FILE", help="write what digits is trained on as .npz")
    parser.add_argument("--held-out", metavar="FILE", help="write what it is judged on as .npz")
    parser.add_argument("--stream", metavar="FILE", help="write what learner.nnc learns from")
    options = parser.parse_args()
    if options.samples:
        write_samples(options.samples)
    if options.sheet:
        write_sheet(options.sheet)
    if options.train:
        write_set(options.train, *TRAIN)
    if options.held_out:
        write_set(options.held_out, *HELD_OUT)
    if options.stream:
        write_stream(options.stream)
    if not any(vars(options).values()):
        parser.print_help()
