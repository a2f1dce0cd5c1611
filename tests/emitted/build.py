"""Builds emitted C and runs it: many models in one program, around host.c."""

import argparse
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CUDA = HERE.parent / "cuda"
NVCC = "nvcc"  # for a GPU; CUDA code by any other compiler is for the emulated device
RUNTIME = HERE.parent.parent / "runtime"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
C99, PLUS_PLUS_17 = ["-std=c99"], ["-x", "c++", "-std=c++17"]
SYMBOLS = {"memcpy", "memset", "memmove"}  # what may be called beside math.h; compilers make loops memmove


FEATURES = {"generic": set(), "x86-64-v2": {"sse4_2"}, "x86-64-v3": {"avx2", "fma", "bmi2", "f16c"},
            "x86-64-v4": {"avx2", "fma", "bmi2", "f16c", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}}
FEATURES["x86-64-v4-vnni"] = FEATURES["x86-64-v4"] | {"avx512_vnni", "avx512_bf16"}
FEATURES["x86-64-v4-amx"] = FEATURES["x86-64-v4-vnni"] | {"amx_tile", "amx_int8", "amx_bf16"}
MARCH = {"generic": [], "x86-64-v4-vnni": ["-march=x86-64-v4", "-mavx512vnni", "-mavx512bf16"]}
MARCH["x86-64-v4-amx"] = MARCH["x86-64-v4-vnni"] + ["-mamx-tile", "-mamx-int8", "-mamx-bf16"]

TARGETS = ["generic", "x86-64-v3", "x86-64-v4"]  # that tests take unless they are told


# Vectors wider than the machine's, which C compilers cut, and what stands for instructions that it lacks: tests whose
# environment says so take targets of AVX-512 for that, and only where the machine is none of them.
ANYWHERE = "NNC_TEST_ANYWHERE" in os.environ


def march(target):
    if ANYWHERE and target.startswith("x86-64-v4"):
        return ["-march=x86-64-v3", "-DNNC_ANY_MACHINE", "-Wno-psabi"]
    return MARCH.get(target, [f"-march={target}"])


def machine_has(target):
    try:
        here = set(pathlib.Path("/proc/cpuinfo").read_text().split())
    except OSError:
        return False
    if ANYWHERE:
        return target.startswith("x86-64-v4") and FEATURES["x86-64-v3"] <= here and not FEATURES[target] <= here
    return FEATURES[target] <= here

def available(target, cc):
    """Can this machine build for the target and run what it has built?"""
    if not shutil.which(cc.split()[0]):
        return False
    if target.startswith("cuda"):
        return cc != NVCC or (shutil.which("nvidia-smi") is not None and command(["nvidia-smi", "-L"]) is None)
    return (not FEATURES[target] and not ANYWHERE) or machine_has(target)


def command(words, folder=None):
    """None, or what a command that failed has said."""
    done = subprocess.run([str(w) for w in words], cwd=folder, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else f"{words[0]} ended with status {done.returncode}\n{done.stdout}{done.stderr}"


def report(cases, test):
    """TAP: a result for each of (label, target, compiler, what `test` takes before a folder), as many at once as there are
    cores.  It gives None or what is wrong, or fails an assertion; where the machine cannot build for the target nothing is asked.  Gives the exit
    status."""
    def attempt(case):
        _, target, cc, words = case
        if cc and not available(target, cc):
            return None, f" # SKIP no {cc}, or the machine is no {target}"
        try:
            with tempfile.TemporaryDirectory() as folder:
                return test(*words, pathlib.Path(folder)), ""
        except AssertionError as failed:
            return str(failed) or "failed", ""

    print(f"1..{len(cases)}")
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for number, ((label, *_), (error, skipped)) in enumerate(zip(cases, pool.map(attempt, cases)), 1):
            print(f"{'not ok' if error else 'ok'} {number} - {label}{skipped}", flush=True)
            for line in (error or "").splitlines()[:20]:
                print(f"# {line}")
            failed += bool(error)
    return 1 if failed else 0


def side_by_side(function, items):
    """function of each item, as many at once as there are cores."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(function, items))


def emit(nnc, model, folder, target, *flags):
    """NAME.c and NAME.h in a folder; None or the error."""
    return command([nnc, "compile", model, "-o", folder, "--target", target, "--emit", "c", *flags])


def library(nnc, source, folder, target, cc, *flags):
    """libNAME.so of a model in its folder, and NAME.c, which is C++ too; None or the error."""
    error = command([nnc, "compile", source, "-o", folder, "--target", target, "--emit", "c,shared", "--cc", cc, *flags])
    return error or check_plus_plus(folder / f"{source.stem}.c", target, cc.split()[0])


def take_arguments(doc, targets):
    """Those of a script that tests for some targets by some compilers."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--target", nargs="*", default=targets)
    parser.add_argument("--cc", nargs="*", default=["gcc", "clang"])
    arguments = parser.parse_args()
    arguments.nnc = arguments.nnc.resolve()
    return arguments


def compile_source(source, target, cc, *flags):
    """The object beside the source, made without a warning; None or the error."""
    return command([cc, *C99, *march(target), *WARNINGS, *flags, "-fPIC", "-I", source.parent, "-c", source,
                    "-o", source.with_suffix(".o")])


def cuda_words(cc, *flags):
    """What compiles CUDA sources: nvcc, or for the emulated device g++; their floats are not contracted."""
    if cc == NVCC:
        return [NVCC, "-arch=native", "-fmad=false", "-x", "cu", *flags]
    return ["g++", "-O1", "-fwrapv", "-ffp-contract=off", "-w", "-x", "c++", "-I", CUDA / "emulate", *flags]


def cuda_libraries(cc):
    """What programs with such objects are linked with."""
    if cc != NVCC:
        return ["-lstdc++"]
    toolkit = pathlib.Path(shutil.which(NVCC)).resolve().parent.parent
    return [f"-L{toolkit}/lib64", "-lcudart_static", "-lstdc++", "-ldl", "-lrt"]


def cuda_object(source, sizes, cc, *flags):
    """The object beside NAME.cu, a model for host.c of its function NAME_run; `sizes` are the bytes of its inputs, and of
    its outputs.  None or the error."""
    name = source.stem
    infos = [", ".join(f'{{"{kind}{i}", "", 0, nullptr, {bytes}}}' for i, bytes in enumerate(part)) or "{}"
             for kind, part in zip(("input", "output"), sizes)]
    text = f"""#include "{name}.cu"
#include "on_device.h"

static const nnc_tensor_info input_info[] = {{{infos[0]}}}, output_info[] = {{{infos[1]}}};
static int run_model(const void *const *, void *const *, void *, const void *, void *, void *, nnc_team *);
static const nnc_entry entries[] = {{
    {{"run", {len(sizes[0])}, {len(sizes[1])}, input_info, output_info, 0, 0, 0, run_model}}}};

static int run_model(const void *const *input, void *const *output, void *arena, const void *, void *, void *, nnc_team *)
{{
    return on_device::run({name}_run, entries[0], {name.upper()}_ARENA_BYTES, input, output, arena);
}}

extern "C" const nnc_model {name}_model = {{NNC_MODEL_ABI, "{name}", 1, entries, {name.upper()}_ARENA_BYTES, 64, 0, 0,
    {{0, 0, nullptr}}, {{0, 0, nullptr}}, 0, nullptr, nullptr, nullptr, 1}};
"""
    source.with_suffix(".cc").write_text(text)
    return command([*cuda_words(cc, *flags), "-I", CUDA, "-I", RUNTIME, "-c", source.with_suffix(".cc"), "-o", source.with_suffix(".o")])


def plus_plus(cc):
    """The C++ compiler beside a C compiler: g++-11 of gcc-11, clang++ of clang."""
    return cc.replace("gcc", "g++") if "gcc" in cc else cc.replace("clang", "clang++")


def check_plus_plus(source, target, cc):
    """Is the source C++17 too?  None or the error."""
    return command([plus_plus(cc), *PLUS_PLUS_17, *march(target), *WARNINGS, "-fsyntax-only", source])


def foreign_symbols(thing):
    """Functions that an object calls beside memcpy, memset and those of math.h."""
    done = subprocess.run(["nm", "-u", str(thing)], capture_output=True, text=True, check=True)
    names = {line.split()[-1].split("@")[0] for line in done.stdout.splitlines() if line.split()[:1] == ["U"]}
    return sorted(n for n in names - SYMBOLS - MATH if not n.endswith("_weights") and n != "_GLOBAL_OFFSET_TABLE_")


MATH = {name + suffix for suffix in ("", "f") for name in (
    "exp exp2 expm1 log log2 log1p cbrt asinh acosh atanh sin cos tan asin acos atan sinh cosh tanh erf floor ceil nearbyint rint trunc pow fmod sqrt fabs "
    "fmax fmin round ldexp frexp fma scalbn copysign").split()}


def link(folder, names, objects, cc, *flags):
    """The program `host` in the folder, of models by their names; None or the error."""
    table = '#include "nnc_model.h"\n' + "".join(f"extern const nnc_model {n}_model;\n" for n in names)
    table += "extern const nnc_model *const models[];\nextern const unsigned model_count;\n"
    table += "const nnc_model *const models[] = {" + ", ".join(f"&{n}_model" for n in names) + "};\n"
    table += f"const unsigned model_count = {len(names)};\n"
    (folder / "models.c").write_text(table)
    if cc == NVCC:
        cc = "gcc"
    return command([cc, "-std=gnu99", "-g", "-I", RUNTIME, HERE / "host.c", RUNTIME / "pool.c", folder / "models.c",
                    *objects, *flags, "-lm", "-lpthread", "-o", folder / "host"])


def run(folder, inputs, *tool):
    """(output bytes, None), or (None, what went wrong); under a tool that checks memory, when there are words for one."""
    (folder / "inputs").write_bytes(inputs)
    done = subprocess.run([*tool, str(folder / "host"), str(folder / "inputs"), str(folder / "outputs")],
                          capture_output=True, text=True, errors="replace", check=False)
    if done.returncode == 0:
        return (folder / "outputs").read_bytes(), None
    lines = done.stderr.splitlines()
    begun = max((i for i, line in enumerate(lines) if line.isdigit()), default=0)
    said = "\n".join(lines[begun:begun + 30])  # from the number of the model that ran
    return None, f"host ended with status {done.returncode}\n{said}"
