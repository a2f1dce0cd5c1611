#!/usr/bin/python3
"""The C of the target `generic` under several compilers and levels: is any of them much slower than the best?

    levels.py NNC [MODEL ...] [--flag OPTION ...] [--parts x86 arm text] [--rounds N]

x86: microseconds of a run, medians of rounds in which every binary takes a turn, and each by the best of the row.
arm: thousands of instructions of a run on Cortex-M7 and M4, counted by QEMU (-icount), and bytes of code (.text without
constants) of the model's object on a Cortex-M7.  text: lines and kB of the emitted C, without weights.
--flag hands an option on to `nnc compile` (--flag=--size).  What is not installed is left out.
"""

import argparse
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent / "levels"
EMBED = ROOT / "tests/embed"
MODELS = ["digits", "lenet", "resnet8", "ds_cnn", "mobilenetv1", "autoencoder"]
LEVELS = ["-Os", "-O2", "-O3"]
HOSTS = ["gcc", "clang"]
BOARDS = {"cortex-m7": ("mps2-an500", "fpv5-sp-d16"), "cortex-m4": ("mps2-an386", "fpv4-sp-d16")}
FLASH = 4 << 20  # of the boards, for weights and code


def output_of(words):
    return subprocess.run(list(map(str, words)), check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout


def find_model(name):
    for path in (pathlib.Path(name), ROOT / "models" / f"{name}.nnc"):
        if path.is_file():
            return path
    raise SystemExit(f"there is no model {name}")


def compile_model(nnc, model, weights, flags, folder):
    """The C source; its header lies beside it."""
    subprocess.run([nnc, "compile", model, "--weights", weights, *flags, "-o", folder], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (source,) = pathlib.Path(folder).glob("*.c")
    return source


def harness_flags(source):
    name = source.stem
    return [f"-I{source.parent}", f"-DLEVELS_MODEL={name}_model", f'-DLEVELS_HEADER="{name}.h"',
            f"-DLEVELS_ARENA={name.upper()}_ARENA_BYTES"]


# x86


def build_host(cc, level, source):
    binary = source.parent / f"{source.stem}{cc}{level}"
    assembly = list(source.parent.glob("*.S"))
    output_of([cc, "-std=c99", "-D_POSIX_C_SOURCE=200809L", level, *harness_flags(source), HERE / "main.c", source, *assembly,
               "-lm", "-o", binary])
    return binary


def times_of_hosts(source, rounds):
    """Medians, by (compiler, level)."""
    binaries = {(cc, level): build_host(cc, level, source) for cc in HOSTS if shutil.which(cc) for level in LEVELS}
    calls = max(1, int(20000 / float(output_of([binaries[next(iter(binaries))]]))))
    spent = {key: [] for key in binaries}
    for number in range(rounds):
        for key in list(binaries)[::1 if number % 2 else -1]:
            spent[key].append(float(output_of([binaries[key], calls])))
    return {key: statistics.median(values) for key, values in spent.items()}


def show_hosts(models, options):
    columns = [(cc, level) for cc in HOSTS if shutil.which(cc) for level in LEVELS]
    print("us of a run; worst by best" + "".join(f"{cc + ' ' + level:>12}" for cc, level in columns))
    for model in models:
        with tempfile.TemporaryDirectory() as folder:
            # from the folder, for the assembler's file of weights
            source = compile_model(options.nnc, model, "blob", options.flag, folder)
            here = os.getcwd()
            os.chdir(folder)
            times = times_of_hosts(source, options.rounds)
            os.chdir(here)
        ratio = max(times.values()) / min(times.values())
        print(f"{model.stem:20} {ratio:5.2f}" + "".join(f"{times[key]:12.1f}" for key in columns), flush=True)


# Cortex-M


def flags_for(cpu):
    return [f"-mcpu={cpu}", "-mthumb", "-mfloat-abi=hard", f"-mfpu={BOARDS[cpu][1]}", "-std=gnu99"]


def code_bytes(cpu, level, source):
    binary = source.parent / "model.o"
    output_of(["arm-none-eabi-gcc", *flags_for(cpu), level, "-c", source, "-o", binary])
    sections = output_of(["arm-none-eabi-size", "-A", binary])
    return sum(int(size) for size in re.findall(r"^\.text\S*\s+(\d+)", sections, re.M))


def count_instructions(cpu, level, source):
    binary = source.parent / f"{source.stem}.elf"
    support = [EMBED / "startup.c", EMBED / "semihost.c"]
    output_of(["arm-none-eabi-gcc", *flags_for(cpu), level, "-nostartfiles", "--specs=nano.specs", "-T", EMBED / "mps2.ld",
               "-ffunction-sections", "-Wl,--gc-sections", f"-I{EMBED}", *harness_flags(source), *support,
               HERE / "main.c", source, "-lm", "-o", binary])
    return int(output_of(["qemu-system-arm", "-M", BOARDS[cpu][0], "-kernel", binary, "-nographic", "-monitor", "none",
                          "-icount", "shift=0", "-semihosting-config", "enable=on,target=native"]))


def weights_bytes(source):
    return sum(path.stat().st_size for path in source.parent.glob("*.weights"))


def show_boards(models, options):
    columns = [(cpu, level) for cpu in BOARDS for level in LEVELS]
    print("1000 instructions of a run" + "".join(f"{cpu + ' ' + level:>15}" for cpu, level in columns)
          + "".join(f"{'code ' + level:>10}" for level in LEVELS) + f"{'weights':>10}")
    for model in models:
        with tempfile.TemporaryDirectory() as folder:
            flash = weights_bytes(compile_model(options.nnc, model, "file", options.flag, folder))
        if flash > FLASH * 3 // 4:
            print(f"{model.stem:26} weights of {flash >> 20} MiB do not fit")
            continue
        with tempfile.TemporaryDirectory() as folder:
            source = compile_model(options.nnc, model, "c", options.flag, folder)
            row = "".join(f"{count_instructions(cpu, level, source):15,}" for cpu, level in columns)
            row += "".join(f"{code_bytes('cortex-m7', level, source):10,}" for level in LEVELS)
        print(f"{model.stem:26}{row}{flash:10,}", flush=True)


# Text


def show_text(models, options):
    print("emitted C             lines     kB  lines of kernels")
    for model in models:
        with tempfile.TemporaryDirectory() as folder:
            text = compile_model(options.nnc, model, "file", options.flag, folder).read_text()
        kernels = re.findall(r"^static void .*?^}\n", text, re.M | re.S)
        print(f"{model.stem:20}{text.count(chr(10)):7}{len(text) / 1e3:7.1f}{sum(k.count(chr(10)) for k in kernels):18}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nnc", type=pathlib.Path)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--flag", action="append", default=[])
    parser.add_argument("--parts", nargs="+", choices=["x86", "arm", "text"], default=["x86", "arm", "text"])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    options.nnc = options.nnc.resolve()
    models = [find_model(name) for name in options.models]
    if "text" in options.parts:
        show_text(models, options)
    if "arm" in options.parts and shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm"):
        show_boards(models, options)
    if "x86" in options.parts:
        show_hosts(models, options)


if __name__ == "__main__":
    main()
