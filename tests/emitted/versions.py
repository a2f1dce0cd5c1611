#!/usr/bin/python3
"""A library for several targets: it takes the best that the machine has, or what NNC_CPU names, and computes the bits of a
library for that target alone.

    versions.py --nnc build/nnc --models models

What the machine has is asked of the C library's loader; machines of other kinds are qemu-user's.  Speaks TAP.
"""

import argparse
import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys

import build

LEVELS = ["x86-64-v2", "x86-64-v3", "x86-64-v4"]
EVERY = ["generic", *LEVELS, "x86-64-v4-vnni", "x86-64-v4-amx"]
TARGETS = [t for t in EVERY if t in ("generic", *LEVELS) or build.machine_has(t)]  # of the libraries whose bits are compared
FLAGS = ["-O0", "-ffp-contract=fast", "-fno-math-errno"]
RUNTIME = [build.RUNTIME / name for name in ("call.c", "pool.c", "weights.c")]
LOADER = "/lib64/ld-linux-x86-64.so.2"

# With 8 lanes the last vector of a row overlaps the one before, so that the state has memory twice; with 4 it has not.
TURNS = """nnc 1
graph g(x: f32[1, 3, 14, 14], w: f32[3, 1, 3, 3]) -> (y: f32[1, 3, 14, 14]) {
    state t: f32[1, 3, 14, 14] = 0.25
    n = conv2d(x, w, pad = 1, groups = 3) + t
    t <- n
    y = n * 2.0
}
graph look() -> (y: f32[1, 3, 14, 14]) {
    state t: f32[1, 3, 14, 14] = 0.25
    y = t * 1.0
}
"""
# Params that one entry learns and others read packed, with the optimiser's moments as states.
LEARNS = """nnc 1
use "nn"
fn net(x) -> (y) {
    h = relu(conv@first(x, 20, 3, pad = 1))
    y = dense@out(flatten(max_pool(relu(depthwise_conv@depth(h, 3, pad = 1)), window = 2)), 4)
}
graph look(x: f32[2, 3, 16, 14]) -> (y) { y = net@net(x) }
graph step(x: f32[2, 3, 16, 14], label: i64[2]) -> (loss) {
    loss = mean(cross_entropy(net@net(x), label))
    minimize(loss, with = adam(rate = 0.01))
}
"""


def levels_here():
    """Those of the machine, as the C library's loader tells."""
    said = subprocess.run([LOADER, "--help"], capture_output=True, text=True, check=False).stdout
    return [level for level in LEVELS if re.search(rf"{level} \(supported", said)] + TARGETS[len(LEVELS) + 1:]


def objects(folder, name, target, cc, *flags):
    """Compiles NAME.c for a target, or what chooses among several and the source of each: objects, and None or the error."""
    sources = [(folder / f"{name}.c", target)]
    if target is None:
        sources = [(folder / f"{name}.c", "generic")]
        sources += [(folder / f"{name}_{t.replace('-', '_')}.c", t) for t in TARGETS]
        sources = [(source, t) for source, t in sources if source.exists()]
    errors = [build.compile_source(source, t, cc, *FLAGS, *flags) for source, t in sources]
    found = [source.with_suffix(".o") for source, _ in sources]
    return found + list(folder.glob(f"{name}_weights.S")), next((e for e in errors if e), None)


class Library:
    """A model for several targets, compiled once, beside which it is linked for one of them."""

    def __init__(self, arguments, model, cc, folder, *flags, targets=tuple(TARGETS), sanitize=()):
        self.nnc, self.model, self.cc, self.folder, self.flags, self.sanitize = arguments.nnc, model, cc, folder, flags, sanitize
        error = self.emit("many", ",".join(targets))
        self.many, wrong = ([], None) if error else objects(folder, "many", None, cc, *sanitize)
        self.error = error or wrong

    def emit(self, name, target):
        return build.emit(self.nnc, self.model, self.folder, target, "--name", name, *self.flags)

    def link(self, target):
        """The program for comparing with a library of this target alone; None or the error."""
        error = self.emit("alone", target)
        alone, wrong = ([], None) if error else objects(self.folder, "alone", target, self.cc)
        words = [self.cc, "-std=gnu99", "-g", *self.sanitize, "-I", build.RUNTIME, build.HERE / "versions.c", *RUNTIME, *alone, *self.many]
        words += ["-lm", "-lpthread", "-o", "versions"]
        return error or wrong or build.command(["sh", "-c", f"cd '{self.folder}' && {' '.join(map(str, words))}"])

    def run(self, expected, wanted, *emulator, status=0):
        """What the program says of the target that runs; `wanted` is NNC_CPU."""
        environment = {**os.environ, "NNC_CPU": wanted or ""}
        if wanted is None:
            del environment["NNC_CPU"]
        weights = [self.folder / f"{n}.weights" for n in ("alone", "many") if (self.folder / f"{n}.weights").exists()]
        done = subprocess.run([*emulator, self.folder / "versions", expected, str(status), "3", *weights], env=environment,
                              capture_output=True, text=True, check=False)
        return None if done.returncode == 0 else f"NNC_CPU={wanted}: status {done.returncode}: {done.stderr}"


def model_of(arguments, name, folder):
    texts = {"turns": TURNS, "learns": LEARNS}
    if name not in texts:
        return arguments.models / f"{name}.nnc"
    (folder / f"{name}.nnc").write_text(texts[name])
    return folder / f"{name}.nnc"


def test_bits(arguments, name, cc, flags, folder):
    """Each target that the machine has, by its name."""
    library = Library(arguments, model_of(arguments, name, folder), cc, folder, *flags)
    error = library.error
    for target in ["generic", *levels_here()]:
        error = error or library.link(target) or library.run(target, target)
    return error


def test_choice(arguments, folder):
    """Without a word, or with one that is none of the machine's, the best is taken, by threads that ask at once."""
    library = Library(arguments, model_of(arguments, "turns", folder), "gcc", folder, sanitize=["-fsanitize=thread"])
    best = ["generic", *levels_here()][-1]
    error = library.error or library.link(best)
    for wanted in [None, "", "x86-64-v9", "host", *(t for t in EVERY[1:] if t not in levels_here())]:
        error = error or library.run(best, wanted)
    return error


def test_machines(arguments, targets, machines, folder):
    """Machines by qemu's names, and what each takes; `none` is refused with 6."""
    library = Library(arguments, model_of(arguments, "turns", folder), "gcc", folder, targets=targets)
    error = library.error
    for machine, expected in machines.items():
        alone = "generic" if expected == "none" else expected
        error = error or library.link(alone)
        error = error or library.run(expected, None, "qemu-x86_64", "-cpu", machine, status=6 if expected == "none" else 0)
        error = error or library.run(expected, "x86-64-v4", "qemu-x86_64", "-cpu", machine, status=6 if expected == "none" else 0)
    return error


# What CPUID and XGETBV tell of server processors, as far as targets ask: ebx and ecx of leaf 7, eax of its second part, XCR0, edx of
# leaf 7; whether the system gives tile registers to who asks; and what is to run.
V4_EBX7, AVX_512_BF16, VNNI, ALL_STATES, TILES, AMX = 0xD0030128, 1 << 5, 1 << 11, 0xE7, 3 << 17, 1 << 22 | 1 << 24 | 1 << 25
SERVERS = {"Skylake": (V4_EBX7, 0, 0, ALL_STATES, 0, 0, "x86-64-v4"), "Ice Lake": (V4_EBX7, VNNI, 0, ALL_STATES, 0, 0, "x86-64-v4"),
           "Zen 4": (V4_EBX7, VNNI, AVX_512_BF16, ALL_STATES, 0, 0, "x86-64-v4-vnni"),
           "Zen 4 whose system keeps no masks": (V4_EBX7, VNNI, AVX_512_BF16, 7, 0, 0, "x86-64-v3"),
           "Sapphire Rapids": (V4_EBX7, VNNI, AVX_512_BF16, ALL_STATES | TILES, AMX, 1, "x86-64-v4-amx"),
           "Sapphire Rapids whose system keeps no tiles": (V4_EBX7, VNNI, AVX_512_BF16, ALL_STATES, AMX, 1, "x86-64-v4-vnni"),
           "Sapphire Rapids whose system refuses tiles": (V4_EBX7, VNNI, AVX_512_BF16, ALL_STATES | TILES, AMX, 0, "x86-64-v4-vnni"),
           "Zen 2": (0x128, 0, 0, 7, 0, 0, "x86-64-v3")}


def test_refused(arguments, folder):
    """A library for tile registers alone, on a machine that gives it none: 6, and no instruction that would end the program."""
    model = folder / "tiles.nnc"
    model.write_text("nnc 1\ngraph g(x: u8[32, 64]) -> (y: f32[32, 32]) {\n    param w: i8[64, 32] = 3\n    y = f32(x) @ f32(w)\n}\n")
    error = build.emit(arguments.nnc, model, folder, "x86-64-v4-amx", "--name", "tiles", "--weights", "c")
    if error:
        return error
    text, asks = (folder / "tiles.c").read_text(), "nnc_cpu_tiles() ? 1 : -1;"
    assert text.count(asks) == 1, "it asks otherwise"
    (folder / "tiles.c").write_text(text.replace(asks, "0 ? 1 : -1;"))
    (folder / "main.c").write_text('#include "tiles.h"\nstatic unsigned char x[2048];\nstatic float y[1024];\n'
                                   "static _Alignas(64) unsigned char arena[1 << 16];\n"
                                   "int main(void)\n{\n    return sizeof arena < TILES_ARENA_BYTES ? 1 : tiles_run(x, y, arena);\n}\n")
    flags = ["-std=gnu11", "-O0", "-I", folder, "-I", build.RUNTIME]
    error = build.command(["gcc", *flags, *build.MARCH["x86-64-v4-amx"], "-c", folder / "tiles.c", "-o", folder / "tiles.o"])
    error = error or build.command(["gcc", *flags, folder / "main.c", folder / "tiles.o", "-lm", "-o", folder / "tiles"])
    if error:
        return error
    status = subprocess.run([folder / "tiles"], check=False).returncode
    return None if status == 6 else f"it gives {status}"


def test_servers(arguments, folder):
    """Processors that are not here, by what they would tell: the same choice, and NNC_CPU within what they have."""
    model = folder / "small.nnc"
    model.write_text("nnc 1\ngraph g(x: f32[8]) -> (y: f32[8]) {\n    y = x * 2.0\n}\n")
    error = build.emit(arguments.nnc, model, folder, ",".join(EVERY), "--name", "many")
    if error:
        return error
    asks = "const nnc_cpu here = nnc_cpu_here();"
    text = (folder / "many.c").read_text()
    gives = "nnc_cpu_tiles());"
    assert text.count(asks) == text.count(gives) == 1, "it asks otherwise"
    (folder / "main.c").write_text("#include <stdio.h>\nconst char *many_cpu(void);\nint main(void)\n{\n    puts(many_cpu());\n    return 0;\n}\n")
    for server, (ebx7, ecx7, eax7_1, xcr0, edx7, given, expected) in SERVERS.items():
        told = f"const nnc_cpu here = {{0x38d83201u, {ebx7}u, {ecx7}u, {eax7_1}u, 0x21u, {xcr0}u, {edx7}u}};"
        (folder / "asked.c").write_text(text.replace(asks, told).replace(gives, f"{given});"))
        error = build.command(["gcc", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", folder / "main.c", folder / "asked.c", "-o", folder / "asked"])
        if error:
            return error
        for wanted in EVERY:
            said = subprocess.run([folder / "asked"], env={**os.environ, "NNC_CPU": wanted}, capture_output=True, text=True, check=True).stdout.strip()
            right = wanted if EVERY.index(wanted) <= EVERY.index(expected) else expected
            assert said == right, f"{server}, NNC_CPU={wanted}: {said}, not {right}"
    return None


def test_shared_library(arguments, cc, folder):
    """libNAME.so and libNAME.a: what is inside stays inside."""
    error = build.command([arguments.nnc, "compile", arguments.models / "digits.nnc", "-o", folder, "--target", ",".join(LEVELS),
                           "--emit", "lib", "--cc", cc])
    if error:
        return error
    left = {p.name for p in folder.iterdir()}
    if left != {"libdigits.so", "libdigits.a", "digits.h"}:
        return f"files: {left}"
    names = subprocess.run(["nm", "-D", "--defined-only", folder / "libdigits.so"], capture_output=True, text=True, check=True)
    names = {line.split()[-1] for line in names.stdout.splitlines()}
    if not {"digits_run", "digits_cpu", "digits_model"} <= names or any("x86_64" in n for n in names):
        return f"exported: {sorted(names)}"
    library = ctypes.CDLL(str(folder / "libdigits.so"))
    library.digits_cpu.restype = ctypes.c_char_p
    expected = next((level for level in reversed(LEVELS) if level in levels_here()), None)
    got = (library.digits_cpu() or b"").decode() or None
    return None if got == expected else f"{got} runs, not {expected}"


def test_dialects(arguments, folder):
    """What chooses, and what it chooses from, is C99 and C++17 without a warning."""
    error = build.emit(arguments.nnc, arguments.models / "running_mean.nnc", folder, "x86-64-v2,x86-64-v3", "--name", "many")
    for cc in ("gcc", "clang"):
        for source, target in (("many.c", "generic"), ("many_x86_64_v2.c", "x86-64-v2"), ("many_x86_64_v3.c", "x86-64-v3")):
            error = error or build.check_plus_plus(folder / source, target, cc)
        error = error or build.compile_source(folder / "many.c", "generic", cc, "-Os", "-Wconversion", "-Wshadow",
                                              "-Wstrict-prototypes", "-Wmissing-prototypes")
    return error


def test_harness(arguments, name, form, cc, folder):
    """--emit test: compared with the reference evaluator, whichever runs."""
    model = model_of(arguments, name, folder)
    error = build.command([arguments.nnc, "compile", model, "-o", folder, "--target", ",".join(TARGETS), "--emit", "c,test",
                           "--name", "many", "--weights", form])
    many, wrong = ([], None) if error else objects(folder, "many", None, cc)
    words = [cc, *build.C99, *build.WARNINGS, "many_test.c", *map(str, many), "-lm", "-o", "harness"]
    error = error or wrong or build.command(["sh", "-c", f"cd '{folder}' && {' '.join(words)}"])
    for target in ["generic", *levels_here()]:
        error = error or build.command(["sh", "-c", f"cd '{folder}' && NNC_CPU={target} ./harness"])
    return error


def test_shares(arguments, folder):
    """Weights that several read are in the file once."""
    model = folder / "table.nnc"
    model.write_text("nnc 1\ngraph g(i: i64[3]) -> (y: f32[3, 16]) {\n    param w: f32[500, 16] = he_normal(seed = 1)\n"
                     "    y = gather(w, i)\n}\n")
    sizes = []
    for name, target in (("alone", "x86-64-v3"), ("many", ",".join(TARGETS))):
        error = build.emit(arguments.nnc, model, folder, target, "--weights", "file", "--name", name)
        if error:
            return error
        sizes.append((folder / f"{name}.weights").stat().st_size)
    return None if sizes[0] == sizes[1] == 32000 else f"{sizes[1]} bytes, alone {sizes[0]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--models", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.nnc = arguments.nnc.resolve()  # Meson says ./nnc
    bits = [("digits", "gcc", ["--weights", "file"]), ("gru_stream", "clang", ["--threads", "2"]), ("turns", "gcc", []),
            ("decoder", "clang", ["--weights", "blob"]), ("learns", "gcc", ["--pack"]), ("lenet", "gcc", ["--threads", "2"])]
    cases = [(f"the bits of {name} by {cc} {' '.join(flags)}".strip(), test_bits, (name, cc, flags)) for name, cc, flags in bits]
    cases += [("what is taken without a word", test_choice, ()), ("processors that are not here", test_servers, ()), ("no tile registers", test_refused, ()), ("libraries", test_shared_library, ("gcc",)),
              ("dialects", test_dialects, ()), ("shared weights", test_shares, ()),
              ("harness with a file", test_harness, ("digits", "file", "clang")),
              ("harness with params and packed ones", test_harness, ("learns", "blob", "gcc"))]
    machines = {"qemu64": "none", "Nehalem": "x86-64-v2", "Haswell": "x86-64-v3", "max": "x86-64-v3"}
    with_generic = {"qemu64": "generic", "Nehalem": "generic"}
    cases += [("machines that qemu knows", test_machines, (LEVELS, machines)),
              ("machines that fall back", test_machines, (["generic", "x86-64-v3"], with_generic))]
    qemu = shutil.which("qemu-x86_64")

    def go(test, words, folder):
        return test(arguments, *words, folder)

    return build.report([(label, "x86-64-v2", "gcc" if qemu or test is not test_machines else "qemu-x86_64", (test, words))
                         for label, test, words in cases], go)


if __name__ == "__main__":
    sys.exit(main())
