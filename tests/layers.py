"""Checks of the house's order, file by file.

Includes only go down: base < ir < ops < passes < kernel < storage < program < c, cuda < frontends; plan needs base only and
stands below storage; runtime stands apart.  Within frontends the readers and writers (nnc, onnx, trace, formats) stand
below api, the compiler as a library, and that below cli.

What an op means is said in ops/ alone: elsewhere nobody reads an attribute by name, and nobody switches on an op's code
or compares it, except `simplify`, whose rules are about single ops.  Others ask ops/meaning.h.

    layers.py          checks all sources; run in the root of the project
    layers.py --test   checks itself on snippets, reports as TAP
"""

import pathlib
import re
import subprocess
import sys

LAYERS = ["base", "ir", "ops", "passes", "codegen", "codegen/kernel", "codegen/storage", "codegen/program", "codegen/c",
          "codegen/cuda", "frontends", "frontends/api", "frontends/cli"]  # codegen itself: the table of targets


ROOTS = ["", "compiler", "codegen", "frontends"]  # where includes are looked for

KNOW_OPS = ("compiler/ops/", "compiler/ir/", "compiler/passes/simplify", "tests/")
READS_ATTRIBUTE = re.compile(r'\b(attr_ints?|attr_float|attr_bool|attr_of)\s*\(|#\s*include\s+"ir/attr\.h"')
ASKS_OP = re.compile(r"\bcase\s+OP_[A-Z]|[=!]=\s*OP_[A-Z]|\bOP_[A-Z0-9_]+\s*[=!]="
                     r"|(->|\.)op\s*[=!]=(?!\s*T_)|switch\s*\((?!op_info).*(->|\.)op\)")  # T_: tokens of the text


def layer_of(path):
    """The rank of a file's layer; None for what may use everything (tests, tools), and for the runtime."""
    parts = pathlib.PurePath(path).parts
    if parts[0] == "compiler":
        parts = parts[1:]
    for name in ("/".join(parts[:2]), parts[0]):
        if name in LAYERS:
            return LAYERS.index(name)
    return None


def included(path, name):
    """The file of the project that an include names, or None for headers of the system."""
    for root in [pathlib.Path(path).parent, *map(pathlib.Path, ROOTS)]:
        if (root / name).exists():
            return (root / name).as_posix()
    return None


def include_complaint(path, line):
    found = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
    target = included(path, found[1]) if found and not path.startswith("tests/") else None
    if not target:
        return None
    own, other = layer_of(path), layer_of(target)
    if path.startswith("compiler/plan/") and not target.startswith(("compiler/plan/", "compiler/base/")):
        return "plan knows base only"
    if target.startswith("compiler/plan/") and own is not None and own < LAYERS.index("codegen/storage"):
        return "plan stands above this layer"
    if path.startswith("runtime/") and other is not None:
        return "runtime includes nothing of the compiler"
    if own is not None and other is not None and other > own:
        return "includes go down the layers only"
    return None


def meaning_complaint(path, line):
    if path.startswith(KNOW_OPS):
        return None
    code = re.sub(r'//.*|/\*.*?(\*/|$)', "", line)
    if READS_ATTRIBUTE.search(code):
        return "reads an attribute by name; ask ops/meaning.h"
    if ASKS_OP.search(code):
        return "asks which op a node is; ask ops/meaning.h what it means"
    return None


def complaints(path, text):
    """Pairs of a line's number and what is wrong with it."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        found += [(number, line, why) for why in (include_complaint(path, line), meaning_complaint(path, line)) if why]
    return found


SNIPPETS = [  # path, line, a word of the complaint or None
    ("compiler/base/text.c", '#include "ir/graph.h"', "down"),
    ("compiler/passes/fold.c", '#include "ir/graph.h"', None),
    ("compiler/plan/place.c", '#include "ir/graph.h"', "base only"),
    ("codegen/kernel/lower/map.c", '#include "storage/memory.h"', "down"),
    ("codegen/kernel/lower/map.c", '#include "plan/problem.h"', "plan stands"),
    ("codegen/storage/memory.c", '#include "plan/problem.h"', None),
    ("frontends/api/module.c", '#include "cli/cli.h"', "down"),
    ("frontends/cli/model.c", '#include "api/prepare.h"', None),
    ("runtime/nnc_pool.c", '#include "base/arena.h"', "runtime"),
    ("codegen/kernel/lower/map.c", '    int64_t axis = attr_int(node, "axis");', "attribute"),
    ("compiler/passes/layout.c", '    const Attr *before = attr_of(node, "before");', "attribute"),
    ("codegen/kernel/lower/map.c", '#include "ir/attr.h"', "attribute"),
    ("codegen/kernel/lower/map.c", "    if (node->op == OP_CONCAT)", "which op"),
    ("codegen/kernel/lower/map.c", "    bool pads = OP_PAD != node->op;", "which op"),
    ("codegen/kernel/lower/map.c", "    case OP_CONV2D: {", "which op"),
    ("codegen/kernel/fuse.c", "    if (node->op == other->op)", "which op"),
    ("codegen/kernel/fuse.c", "    switch (node->op) {", "which op"),
    ("codegen/kernel/fuse.c", "    switch (op_info(node->op)->family) {", None),
    ("codegen/kernel/fuse.c", "    op_build(graph, OP_RELAYOUT, value, 1, attr, place); /* op == OP_RELAYOUT */", None),
    ("compiler/passes/simplify_view.c", '    if (node->op == OP_PAD && attr_int(node, "x"))', None),
    ("compiler/ops/contract_form.c", '    return attr_bool(node, "transpose_y") && node->op == OP_MATMUL;', None),
    ("tests/unit/ops_test.c", "    if (node->op == OP_PAD)", None),
]


def test():
    """Each snippet is found fault with for the reason it should be, or not at all."""
    failed = 0
    print(f"1..{len(SNIPPETS)}")
    for number, (path, line, word) in enumerate(SNIPPETS, 1):
        found = " ".join(why for _, _, why in complaints(path, line))
        good = word in found if word else not found
        failed += not good
        print(f"{'ok' if good else 'not ok'} {number} - {path}: {line.strip()}")
    return 1 if failed else 0


def sources():
    """What git knows or would add; all there is where this is no checkout."""
    names = ["*.c", "*.h", "*.def"]
    git = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *names], capture_output=True, text=True)
    if git.returncode == 0:
        return [path for path in git.stdout.split() if pathlib.Path(path).exists()]
    roots = ["compiler", "codegen", "frontends", "runtime", "tests"]
    return sorted(path.as_posix() for root in roots for name in names for path in pathlib.Path(root).rglob(name))


def main():
    wrong = 0
    for path in sources():
        for number, line, why in complaints(path, pathlib.Path(path).read_text()):
            wrong += 1
            print(f"{path}:{number}: {line.strip()}: {why}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(test() if sys.argv[1:] == ["--test"] else main())
