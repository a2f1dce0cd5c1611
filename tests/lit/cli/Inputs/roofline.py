"""roofline.py json|triad|svg|html: checks what `nnc bench --kernels` has printed in that format, on standard input."""

import html.parser
import json
import sys
import xml.etree.ElementTree as tree

BOUNDS = {"compute", "overhead", "L1", "L2", "L3", "memory"}


def check_json(text):
    """Levels and kernels; what is said of a kernel follows from its figures."""
    report = json.loads(text)
    levels = {level["name"]: level for level in report["levels"]}
    assert "memory" in levels and "bytes" not in levels["memory"], levels
    assert levels["L1"]["bytes_per_s"] > levels["memory"]["bytes_per_s"] > 1e8, levels
    for kernel in report["kernels"]:
        moved, weights = kernel["bytes_moved"], kernel["weights"]
        far, near = report["weights_from"], next(l for l in report["levels"] if moved / kernel["calls"] <= l.get("bytes", moved))
        times = weights and weights / far["bytes_per_s"], (moved - weights) / near["bytes_per_s"]
        assert 0 <= weights <= moved and kernel["level"] == (far if times[0] > times[1] else near)["name"], kernel
        compute, memory = kernel["work"] / report["peak_flop_per_s"], sum(times)
        assert kernel["median_s"] > 0, kernel  # however short: the clock's resolution, at the least
        share = max(compute, memory) / kernel["median_s"]
        assert abs(kernel["share_of_roof"] - share) < 1e-3 + 1e-3 * share, (kernel, share)
        assert abs(kernel["flop_per_byte"] * moved - kernel["flop"]) < 1e-4 * kernel["flop"], kernel
        assert kernel["bound_by"] in BOUNDS
        if kernel["bound_by"] != "overhead":
            assert kernel["bound_by"] == ("compute" if compute >= memory else kernel["level"]), kernel
    counted = [kernel for kernel in report["kernels"] if "cycles" in kernel]
    assert bool(counted) == (report["uncounted"] is None), report["uncounted"]
    assert all(kernel["instructions"] > 0 for kernel in counted)
    return report


def check_triad(text):
    """12 bytes and two operations for each of 8 Mi elements; it is far from compute, and near the roof."""
    (kernel,) = check_json(text)["kernels"]
    assert kernel["bytes_moved"] == 12 << 23 and kernel["flop"] == 2 << 23, kernel
    assert kernel["bound_by"] in ("L3", "memory"), kernel
    assert 0.25 < kernel["share_of_roof"] < 1.6, kernel


def check_svg(text):
    """A slope for each level, and a dot with a story for each of three kernels beside those of the legend."""
    root = tree.fromstring(text)
    names = "{http://www.w3.org/2000/svg}"
    width, height = map(float, root.get("viewBox").split()[2:])
    dots = [c for c in root.iter(names + "circle") if c.find(names + "title") is not None]
    assert len(dots) == 3 and len({d.get("cx") for d in dots}) == 3, len(dots)
    assert all(0 < float(d.get("cx")) < width and 0 < float(d.get("cy")) < height for d in dots)
    assert any("bound by" in d.find(names + "title").text for d in dots)
    words = " ".join(t.text or "" for t in root.iter(names + "text"))
    assert all(word in words for word in ("digits", "peak", "L1", "memory", "overhead", "softmax")), words


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.rows, self.cells = [], 0, 0

    def handle_starttag(self, tag, attributes):
        if tag != "meta":
            self.open.append(tag)
        self.rows += tag == "tr"
        self.cells += tag == "td"

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag


def check_html(text):
    """One page, whose drawing is the SVG, with a row for each kernel and nothing from elsewhere."""
    page = Page()
    page.feed(text)
    assert not page.open and page.rows == 4 and page.cells % 3 == 0, (page.open, page.rows)
    check_svg(text[text.index("<svg"):text.index("</svg>") + 6])
    assert "src=" not in text and "href=" not in text


{"json": check_json, "triad": check_triad, "svg": check_svg, "html": check_html}[sys.argv[1]](sys.stdin.read())
