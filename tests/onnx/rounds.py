"""Texts that go to a file of ONNX and come back: what a second round brings is what the first one did, so that nothing
grows, no name changes, and constants and params stay what they are.

    rounds.py --nnc NNC [FILE or FOLDER ...]     reports as TAP; with files: of their graphs instead
"""

import argparse
import difflib
import pathlib
import re
import subprocess
import sys
import tempfile

from harness import CASES, case, expect

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "emitted"))
import models

# Which texts a second round still changes, and a third no more: what a line takes in depends on the order of those
# before it, or two values were called alike.
SECOND = ("chargpt.step", "known.g")
HEAD = 'nnc 1\nuse "nn"\n'


class Tool:
    def __init__(self, nnc, folder):
        self.nnc, self.folder = nnc, folder

    def run(self, *command):
        done = subprocess.run([self.nnc, *map(str, command)], capture_output=True, text=True, cwd=self.folder, timeout=300)
        assert done.returncode == 0, f"{command[0]}: exit {done.returncode}: {done.stderr[:1000]}"

    def round(self, text, number, *flags):
        """What comes back, as a file beside its weights."""
        folder = self.folder / str(number)
        folder.mkdir()
        self.run("export", text, "-o", folder / "m.onnx", *flags)
        self.run("import", folder / "m.onnx", "-o", folder)
        return folder / "m.nnc"

    def rounds(self, text, *flags, last=2):
        """The text of the round before the last one, which has brought the same."""
        paths = [self.round(text, 1, *flags)]
        for number in range(2, last + 1):
            paths.append(self.round(paths[-1], number))
        one, two = [path.read_text().splitlines() for path in paths[-2:]]
        changed = [line for line in difflib.unified_diff(one, two, lineterm="", n=0)][2:]
        assert not changed, "\n".join(line[:160] for line in changed[:10])
        return one

    def lines(self, text):
        """The graph that comes back, and what stands in it."""
        (self.folder / "m.nnc").write_text(HEAD + text)
        lines = self.rounds(self.folder / "m.nnc")
        at = next(i for i, line in enumerate(lines) if line.startswith("graph "))
        return [line.strip() for line in lines[at + 1 : -1]]


# ---- Loops ----


@case
def a_loop_carries_what_it_carried(t):
    expect(t.lines("""graph g(x: f32[3]) -> (y) {
    (y, i) = while (i < 3) with (y = x, i = 0) {
        z = y * 2.0
    } next (y <- z, i <- i + 1)
}"""), "(y, i) = do with (y.y = x, y.i = i32(0)) {", "z = y.y * 2.0", "y.add = y.i + 1", "y.lt_2 = y.add < 3",
           "} next (y.y <- z, y.i <- y.add) while (y.lt_2)")


@case
def a_loop_of_so_many_rounds_has_no_counter(t):
    lines = t.lines("""graph g(x: f32[3], go: bool[]) -> (y) {
    y = while (go) with (v = x) max = 4 {
        w = exp(v)
    } next (v <- w)
}""")
    assert len(lines) == 3 and "max = 4" in lines[0] and lines[1] == "w = exp(v)" and lines[2].startswith("} next (v <- w"), lines


@case
def loops_in_loops_keep_their_names(t):
    lines = t.lines("""graph g(x: f32[3], n: i32[]) -> (y) {
    (y, i) = while (i < n) with (outer = x, i = 0) {
        (inner, j) = while (j < i) with (sum = outer, j = 0) {
            more = sum + 0.5
        } next (sum <- more, j <- j + 1)
        shrunk = inner * 0.25
    } next (outer <- shrunk, i <- i + 1)
}""")
    text = "\n".join(lines)
    for name in ("outer = x", "sum = outer", "more = sum + 0.5", "shrunk = inner * 0.25", "outer <- shrunk"):
        assert name in text, text


@case
def scans_go_over_what_they_went_over(t):
    t.lines("""graph g(x: f32[5, 3], s: f32[3]) -> (last, all) {
    (last, all) = scan (row in x) with (sum = s) {
        next_sum = sum * 0.5 + row
        out = tanh(next_sum)
    } next (sum <- next_sum) stack (out)
}""")


@case
def scans_may_count(t):
    t.lines("""graph g(x: f32[5, 3]) -> (y, squares) {
    (y, squares) = scan (i in iota(shape = [5])) with (v = x) {
        w = v + cast(i, to = f32)
    } next (v <- w) stack (i * i)
}""")


@case
def branches_come_back(t):
    t.lines("""graph g(x: f32[4], k: i32[]) -> (y, z) {
    y = case (k) { 1: exp(x)
                   2: { twice = x * 2.0
                        yield twice }
                   else: x }
    z = if (k > 0) { half = x * 0.5
                     yield half + y } else { yield -x }
}""")


# ---- Constants and params ----


@case
def constants_stay_constants(t):
    lines = t.lines("""graph g(x: f32[3]) -> (y) {
    const shift: f32[3] = [1.0, 2.0, 3.0]
    param w: f32[3] = [0.5, 0.5, 0.5]
    y = x * w + shift
}""")
    expect(lines, "param w: f32[3]", "mul = x * w", "const shift: f32[3] = [1.0, 2.0, 3.0]", "y = mul + shift")


@case
def constants_of_functions_and_loops_stay_constants(t):
    lines = t.lines("""fn moved(x) -> (y) {
    const table: f32[3] = [0.25, 0.5, 0.125]
    y = x * table
}
graph g(x: f32[3], n: i32[]) -> (y) {
    const step: f32[3] = [1.0, 0.0, 2.0]
    first = moved(moved(x))
    (y, i) = while (i < n) with (v = first, i = 0) {
        w = tanh(v) + step
    } next (v <- w, i <- i + 1)
}""")
    assert not any(line.startswith("param ") for line in lines), lines


@case
def params_of_functions_stay_params(t):
    lines = t.lines("""fn layer(x) -> (y) {
    param w: f32[4, 4] = he_normal(seed = 3)
    param s: f32[4] = 1.0
    y = tanh(x @ w) * s
}
graph g(x: f32[2, 4]) -> (y) {
    a = layer@one(x)
    y = layer@two(a) + a
}""")
    assert not any(line.startswith("const ") for line in lines), lines


@case
def scales_of_narrow_weights_stay_params(t):
    lines = t.lines("""graph g(x: f32[2, 64]) -> (y) {
    const w: i8[64, 48] = 2
    param s: f32[48] = 0.5
    y = x @ dequantize(w, s, axis = 1)
}""")
    assert "param s: f32[48]" in lines and "y = x @ dequantize(w, s, axis = 1)" in lines, lines


# ---- What ONNX says in several nodes ----


@case
def guards_do_not_pile_up(t):
    expect(t.lines("""graph g(x: f32[6], a: i32[3], b: i32[3], i: i32[2]) -> (u, v, w, y, z) {
    u = a / b
    v = fmod(a, b)
    w = shift_left(a, b)
    y = cast(x, to = u8)
    z = gather(x, i)
}"""), "u = a / b", "v = fmod(a, b)", "w = shift_left(a, b)", "y = cast(x, to = u8)", "z = gather(x, i)")


@case
def results_are_called_so_where_they_are_computed(t):
    expect(sorted(t.lines("""graph g(x: f32[4, 3]) -> (a, b, c, d) {
    const two: f32[4, 3] = 2.0
    a = two * two
    h = exp(x)
    b = h
    c = h + 1.0
    d = x[:, 1]
}""")), "b = exp(x)", "c = b + 1.0", "const a: f32[4, 3] = 4.0", "d = x[:, 1]")


def graphs(path):
    return re.findall(r"^graph ([\w.]+)\(", path.read_text(), re.M)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    paths = []
    for path in options.files:
        paths += sorted(path.resolve().glob("*.nnc")) if path.is_dir() else [path.resolve()]
    jobs = [(run.__name__, run) for run in CASES] if not paths else []
    for path in paths:
        for graph in graphs(path):
            name = f"{path.stem}.{graph}"
            flags = ["--graph", graph, *models.words(path, False)]
            last = 3 if name in SECOND else 2
            jobs.append((name, lambda t, path=path, flags=flags, last=last: t.rounds(path, *flags, last=last)))
    print(f"1..{len(jobs)}")
    for i, (name, run) in enumerate(jobs, 1):
        with tempfile.TemporaryDirectory() as folder:
            try:
                run(Tool(options.nnc.resolve(), pathlib.Path(folder)))
                print(f"ok {i} - {name}", flush=True)
            except (AssertionError, OSError) as error:
                print("\n".join("# " + line for line in str(error).splitlines()[:12]))
                print(f"not ok {i} - {name}", flush=True)


if __name__ == "__main__":
    main()
