"""No two files of the libraries call each other, directly or around, but where what they handle is nested.

A circle of files is one thing that stands in several places.  Text nests in text and bodies in nodes, so there what is
about a whole calls what is about its parts, which calls it again: those circles are named below, with the reason.

    circles.py NM LIBRARY...           checks the files of static libraries; reports as TAP
    circles.py --test                  checks itself on calls
"""

import fnmatch
import pathlib
import subprocess
import sys

NESTED = {  # files, by library
    "expressions and statements of a text nest": ["text/parse*", "text/build*", "text/arith", "text/foreign", "text/library_list"],
    "so do bodies that are printed": ["text/print", "text/print_control"],
    "a loop means what its bodies mean: the table of families has both": ["ops/family", "ops/control*", "ops/eval", "ops/cost",
                                                                         "ops/reverse*"],
    "a model of ONNX has bodies, whose nodes are looked up in the same table": ["onnx/block", "onnx/body", "onnx/branch", "onnx/control",
                                                                               "onnx/scan", "onnx/sequence",
                                                                               "onnx/attention_more", "onnx/table"]
    # and ops that are written as others
    + ["onnx/cover", "onnx/activation", "onnx/fused", "onnx/contrib_*", "onnx/qlinear", "onnx/quantised"],
    "and so has one that is written, and functions": ["onnx/write_graph", "onnx/write_control", "onnx/write_elementwise",
                                                      "onnx/write_function"],
    "the gradient of a loop is that of its bodies": ["passes/grad", "passes/grad_control"],
}


def is_nested(circle):
    return any(all(any(fnmatch.fnmatch(file, name) for name in names) for file in circle) for names in NESTED.values())


def circles(calls):
    """The sets of files that reach each other, of {file: files that it calls}: Tarjan's algorithm."""
    number, low, stack, found = {}, {}, [], []

    def visit(file):
        number[file] = low[file] = len(number)
        stack.append(file)
        for other in sorted(calls[file]):
            if other not in number:
                visit(other)
            if other in stack:
                low[file] = min(low[file], low[other])
        if low[file] == number[file]:
            circle = [stack.pop()]
            while circle[-1] != file:
                circle.append(stack.pop())
            if len(circle) > 1:
                found.append(sorted(circle))

    for file in sorted(calls):
        if file not in number:
            visit(file)
    return found


def calls_of(symbols):
    """{file: files it calls} of (file, kind of symbol, name): kind U is a use."""
    maker = {name: file for file, kind, name in symbols if kind != "U"}
    calls = {file: set() for file, _, _ in symbols}
    for file, kind, name in symbols:
        if kind == "U" and maker.get(name, file) != file:
            calls[file].add(maker[name])
    return calls


def symbols_of(nm, library):
    """Of the lines `DIR/libnnc-ops.a:eval.c.o:0000 T eval_graph`."""
    folder = pathlib.PurePath(library).stem.rpartition("-")[2]
    for line in subprocess.run([nm, "-A", "-g", library], capture_output=True, text=True, check=True).stdout.splitlines():
        where, _, rest = line.rpartition(":")
        member = pathlib.PurePath(where.rpartition(":")[2]).name.removesuffix(".o").removesuffix(".c")
        if len(rest.split()) >= 2:
            yield f"{folder}/{member}", *rest.split()[-2:]


def main(nm, libraries):
    symbols = [symbol for library in libraries for symbol in symbols_of(nm, library)]
    calls = calls_of(symbols)
    wrong = [circle for circle in circles(calls) if not is_nested(circle)]
    print("1..1")
    for circle in wrong:
        for file in circle:
            print(f"# {file} calls {', '.join(sorted(calls[file] & set(circle)))}")
    print(f"{'not ok' if wrong or len(calls) < 100 else 'ok'} 1 - {len(calls)} files, {len(wrong)} circles")
    return 1 if wrong else 0


SAMPLES = [
    ("a line", [("a", "T", "f"), ("a", "U", "g"), ("b", "T", "g"), ("b", "U", "memcpy")], []),
    ("two files", [("a", "T", "f"), ("a", "U", "g"), ("b", "T", "g"), ("b", "U", "f")], [["a", "b"]]),
    ("around a third", [("a", "T", "f"), ("a", "U", "g"), ("b", "T", "g"), ("b", "U", "h"), ("c", "D", "h"), ("c", "U", "f")],
     [["a", "b", "c"]]),
    ("parts of a text", [("text/parse", "T", "f"), ("text/parse", "U", "g"), ("text/parse_expr", "T", "g"), ("text/parse_expr", "U", "f")], []),
    ("a text and a stranger", [("text/parse", "T", "f"), ("text/parse", "U", "g"), ("ir/parse", "T", "g"), ("ir/parse", "U", "f")],
     [["ir/parse", "text/parse"]]),
]


def test():
    print(f"1..{len(SAMPLES)}")
    failed = 0
    for number, (name, symbols, expected) in enumerate(SAMPLES, 1):
        right = [circle for circle in circles(calls_of(symbols)) if not is_nested(circle)] == expected
        failed += not right
        print(f"{'ok' if right else 'not ok'} {number} - {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.setrecursionlimit(10000)
    sys.exit(test() if sys.argv[1:] == ["--test"] else main(sys.argv[1], sys.argv[2:]))
