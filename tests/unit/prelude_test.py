"""The helpers of emitted sources: clean under every compiler, only what is needed, and right.

    prelude_test.py PRELUDE_PRINT [STEP]

Compiles the prelude of each target with every compiler found, and prelude_check.c with gcc and clang; runs that where
the processor can.  With STEP the checks look at every STEP-th float (default 65521; 257 takes some minutes, and its
figures are those of docs/math.md).
"""

import itertools
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
WARNINGS = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror".split()
TARGETS = {  # flags, lanes, what the processor must have
    "generic": ([], 4, []),
    "generic without vectors": (["-DNNC_NO_VECTORS"], 4, []),
    "x86-64-v2": (["-march=x86-64-v2"], 4, ["sse4_2"]),
    "x86-64-v3": (["-march=x86-64-v3"], 8, ["avx2", "fma"]),
    "x86-64-v4": (["-march=x86-64-v4", "-mprefer-vector-width=512"], 16, ["avx512f", "avx512dq", "avx512vl"]),
    "x86-64-v4-vnni": (["-march=x86-64-v4", "-mavx512vnni", "-mavx512bf16", "-mprefer-vector-width=512"], 16, []),
    "x86-64-v4 anywhere": (["-march=x86-64-v3", "-DNNC_ANY_MACHINE", "-Wno-psabi"], 16, ["avx2", "fma"]),
}
C, CXX = ["-xc", "-std=c99"], ["-xc++", "-std=c++17"]
COMPILERS = {"gcc": C, "clang": C, "g++": CXX, "clang++": CXX}

count = failed = 0


def check(name, problem):
    global count, failed
    count += 1
    if problem:
        failed += 1
        print("".join(f"# {line}\n" for line in problem.splitlines()), end="")
    print(f"{'not ok' if problem else 'ok'} {count} - {name}", flush=True)


def run(*command):
    """What went wrong, or nothing."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    return (done.stdout + done.stderr)[-3000:] or "failed" if done.returncode else ""


def printed(printer, *arguments):
    return subprocess.run([printer, *arguments], capture_output=True, text=True, check=True).stdout


def processor_has(features):
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    flags = re.search(r"^flags\s*:(.*)", cpuinfo.read_text(), re.M) if cpuinfo.exists() else None
    return not features or (flags and set(features) <= set(flags[1].split()))


def compiles(folder, header, target):
    flags, _, _ = TARGETS[target]
    source = folder / "all.c"
    source.write_text(f'#include "{header}"\ntypedef int some_declaration;\n')
    for compiler, language in COMPILERS.items():
        if shutil.which(compiler):
            check(f"{target}: {compiler} accepts every helper",
                  run(compiler, *language, "-O1", *flags, *WARNINGS, "-c", source, "-o", folder / "all.o"))


def is_right(folder, header, target, step):
    flags, lanes, features = TARGETS[target]
    program = folder / "check"
    for compiler in ("gcc", "clang"):
        if not shutil.which(compiler):
            continue
        name = f"{target}: results of {compiler}"
        problem = run(compiler, "-std=c99", "-O2", *flags, f"-I{HERE}", f'-DPRELUDE="{header}"', f"-DLANES={lanes}",
                      *(["-DCALLS"] if target.startswith("generic") else []),
                      *WARNINGS, "-Wno-conversion", HERE / "prelude_check.c", "-o", program, "-lm")
        if problem or not processor_has(features):
            check(name + ("" if problem else " # SKIP not on this processor"), problem)
            continue
        done = subprocess.run([program, step], capture_output=True, text=True)
        print("".join(line + "\n" for line in done.stdout.splitlines() if line.startswith("#")), end="")
        check(name, "\n".join(re.findall("^not ok.*", done.stdout, re.M)) or (done.returncode and done.stderr))


def prints_only_what_is_needed(folder, printer, target):
    """In a source of its own, the one function that nothing calls must be the one that was asked for."""
    flags, _, _ = TARGETS[target]
    source = folder / "one.c"
    for number in itertools.count():
        done = subprocess.run([printer, target, str(number)], capture_output=True, text=True)
        if done.returncode:
            break
        source.write_text(done.stdout)
        asked = set(done.stdout.splitlines()[0].strip("/* ").split())
        warned = subprocess.run(["clang", *C, *flags, "-Wunused-function", "-fsyntax-only", source],
                                capture_output=True, text=True)
        extra = set(re.findall(r"unused function '(\w+)'", warned.stderr)) - asked
        if extra or warned.returncode:
            return f"helper {number} ({asked}): {extra or warned.stderr[:500]}"
    return ""


def refuses_wrong_flags(folder, header):
    source = folder / "flags.c"
    source.write_text(f'#include "{header}"\n')
    told = run("gcc", *C, "-c", source, "-o", folder / "flags.o")
    return "" if "made for the target x86-64-v4: compile with" in told else "no clear error:\n" + told


def main():
    printer, step = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "65521"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for target in TARGETS:
            header = folder / f"{target.replace(' ', '_')}.h"
            header.write_text(printed(printer, target.split()[0]))
            compiles(folder, header, target)
            if target != "x86-64-v4-vnni":  # whose other helpers are those of x86-64-v4
                is_right(folder, header, target, step)
        check("a source without AVX-512 is refused with the flags to use", refuses_wrong_flags(folder, folder / "x86-64-v4.h"))
        if shutil.which("clang"):
            for target in ("generic", "x86-64-v4"):
                check(f"{target}: only what is needed is printed", prints_only_what_is_needed(folder, printer, target))
    print(f"1..{count}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
