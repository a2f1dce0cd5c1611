"""Draws docs/planning-scale.svg from what plan_scale prints.

    plan_scale >scale.txt; plot_scale.py scale.txt >docs/planning-scale.svg

Seconds to plan against tensors, both axes logarithmic, one panel for each kind of lives.
"""

import math
import sys

PANEL, HEIGHT, LEFT, TOP, GAP = 250, 250, 52, 40, 26
COUNTS, SECONDS = (2, 6), (-4, 2)  # powers of ten at the ends of the axes
STYLE = """
text { font: 12px sans-serif; fill: #333 }
.frame { fill: none; stroke: #888 } .grid { stroke: #8884 }
.best { stroke: #0b62c4 } .nnc { stroke: #c2410c; stroke-dasharray: 6 3 }
.best, .nnc { fill: none; stroke-width: 2 }
.linear { fill: none; stroke: #888; stroke-dasharray: 2 3 }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd } .best { stroke: #6db3ff } .nnc { stroke: #ff9a5c }
}
"""


def read(path):
    """{lives: {allocator: [(tensors, seconds)]}}, in the order of the file."""
    figures = {}
    with open(path, encoding="utf-8") as lines:
        for line in list(lines)[1:]:
            lives, tensors, allocator, seconds = line.split()[:4]
            figures.setdefault(lives, {}).setdefault(allocator, []).append((int(tensors), float(seconds)))
    return figures


def point(left, tensors, seconds):
    x = (math.log10(tensors) - COUNTS[0]) / (COUNTS[1] - COUNTS[0])
    y = (math.log10(max(seconds, 10 ** SECONDS[0])) - SECONDS[0]) / (SECONDS[1] - SECONDS[0])
    return f"{left + x * PANEL:.1f},{TOP + (1 - y) * HEIGHT:.1f}"


def curve(name, left, points):
    path = " ".join(point(left, *p) for p in points)
    return f'<polyline class="{name}" points="{path}"><title>{name}</title></polyline>'


def line(name, left, a, b):
    (x1, y1), (x2, y2) = (point(left, *p).split(",") for p in (a, b))
    return f'<line class="{name}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'


def label(x, y, text, anchor="middle"):
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>'


def power(exponent):
    return {0: "1", 1: "10", 2: "100"}.get(exponent, f'10<tspan dy="-5" font-size="9">{exponent}</tspan>')


def panel(number, lives, curves):
    left = LEFT + number * (PANEL + GAP)
    yield label(left + PANEL / 2, TOP - 8, lives)
    for n in range(COUNTS[0], COUNTS[1] + 1):
        yield line("grid", left, (10**n, 10 ** SECONDS[0]), (10**n, 10 ** SECONDS[1]))
        yield label(left + (n - COUNTS[0]) * PANEL / (COUNTS[1] - COUNTS[0]), TOP + HEIGHT + 18, power(n))
    for s in range(SECONDS[0], SECONDS[1] + 1):
        yield line("grid", left, (10 ** COUNTS[0], 10**s), (10 ** COUNTS[1], 10**s))
        if number == 0:
            y = TOP + (SECONDS[1] - s) * HEIGHT / (SECONDS[1] - SECONDS[0]) + 4
            yield label(left - 6, y, power(s), "end")
    yield f'<rect class="frame" x="{left}" y="{TOP}" width="{PANEL}" height="{HEIGHT}"/>'
    yield curve("linear", left, [(10 ** COUNTS[0], 1e-3), (10 ** COUNTS[1], 10)])
    for name, points in curves.items():
        yield curve(name, left, points)


def main(path):
    figures = read(path)
    width, height = LEFT + len(figures) * (PANEL + GAP), TOP + HEIGHT + 64
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">')
    print(f"<title>Seconds to plan, against tensors</title><style>{STYLE}</style>")
    for number, (lives, curves) in enumerate(figures.items()):
        print("\n".join(panel(number, lives, curves)))
    print(label(2, TOP - 8, "seconds", "start"))
    print(label(width / 2, height - 28, "tensors"))
    for number, (name, text) in enumerate([("best", "best"), ("nnc", "nnc"), ("linear", "10 µs a tensor")]):
        x = LEFT + number * 110
        print(f'<path class="{name}" d="M{x} {height - 12} h30"/>' + label(x + 36, height - 8, text, "start"))
    print("</svg>")


main(sys.argv[1])
