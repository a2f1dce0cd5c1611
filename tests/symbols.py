"""Who owns a function, its name tells: every external symbol of a library begins with a word of that library's.

    symbols.py NM LIBRARY...           checks libraries by their file names; reports as TAP
    symbols.py --test                  checks itself on symbols
"""

import pathlib
import subprocess
import sys

OWN = {  # the words of each library: modules, and the types that they serve
    "libnnc-base.a": "arena diag fatal file map names network str text",
    "libnnc-ir.a": "attr dtype graph kernel module node op shape tensor type value word",
    "libnnc-ops.a": "assembly branches contraction convolution cumulation elements eval family flow gather infer loop node op ops product random reduce "
                    "reduction reverse scalar sorting strided view window",
    "libnnc-passes.a": "constant extremes grad integers layout mixing pass remat rewrite rounds simplify widen",
    "libnnc-plan.a": "columns nnc plan runs sort",  # nnc: the allocator of that name
    "libnnc-codegen.a": "backend blas winograd block blocked carried constants crosswise cuda deal depthwise dots emit entry expr filter fit flow fuser gradient harness helper index inplace join judge keep kernel late layouts lower memory order outer owners pairs parts prelude print "
                        "program provider quarters reach recipe residues schedule share sharing snippet sorting source stage state step stmt strassen strip target tiled tune unit windows",
    "libnnc-text.a": "build const lex nnc parse printer",
    "libnnc-onnx.a": "export onnx wire",
    "libnnc-formats.a": "npy npz pnm safetensors weights",
    "libnnc-api.a": "budget files loops nnc prepare report savings session uses",
    "libnnc-runtime.a": "nnc",
    # What others link: nothing but the interface.
    "libnnc-runtime.so": "nnc",
    "libnnc.a": "nnc",
    "libnnc.so": "nnc",
}
PUBLIC = {"libnnc.a", "libnnc.so"}  # and all of it is in the header
HEADER = "frontends/api/nnc_compiler.h"


def strangers(library, symbols):
    """The symbols that the library should not have."""
    own = set(OWN.get(library, "").split())
    return [name for name in symbols if name.split("_")[0] not in own or "_" not in name]


def symbols_of(nm, path):
    scope = "-D" if ".so" in path.name else "-g"
    text = subprocess.run([nm, scope, "--defined-only", path], capture_output=True, text=True, check=True).stdout
    return sorted({line.split()[2] for line in text.splitlines() if len(line.split()) == 3} - {"_init", "_fini"})


def library_name(path):
    """libnnc.so.0.1.0 is libnnc.so"""
    return path.name[: path.name.index(".so") + 3] if ".so" in path.name else path.name


def check(number, nm, path):
    name = library_name(path)
    symbols = symbols_of(nm, path)
    wrong = [f"{symbol} has no prefix of {name}" for symbol in strangers(name, symbols)]
    if name in PUBLIC:
        header = pathlib.Path(HEADER).read_text()
        wrong += [f"{symbol} is not in {HEADER}" for symbol in symbols if f"{symbol}(" not in header]
    if not symbols:
        wrong.append(f"{name} has no symbols")
    for line in wrong:
        print("#", line)
    print(f"{'not ok' if wrong else 'ok'} {number} - {name}: {len(symbols)} symbols")
    return bool(wrong)


SAMPLES = [("libnnc-base.a", "arena_alloc", True), ("libnnc-base.a", "step", False), ("libnnc-base.a", "parse_step", False),
           ("libnnc.so", "nnc_session_new", True), ("libnnc.so", "arena_alloc", False), ("libnew.a", "arena_new", False)]


def test():
    print(f"1..{len(SAMPLES)}")
    failed = 0
    for number, (library, symbol, good) in enumerate(SAMPLES, 1):
        right = (not strangers(library, [symbol])) == good
        failed += not right
        print(f"{'ok' if right else 'not ok'} {number} - {symbol} in {library}")
    return 1 if failed else 0


def main(nm, paths):
    print(f"1..{len(paths)}")
    return 1 if sum(check(number, nm, pathlib.Path(path)) for number, path in enumerate(paths, 1)) else 0


if __name__ == "__main__":
    sys.exit(test() if sys.argv[1:] == ["--test"] else main(sys.argv[1], sys.argv[2:]))
