#!/usr/bin/python3
"""Models on machines of other word lengths, byte orders and vectors: cross compiled, run by qemu-user.

    machines.py --nnc build/nnc --models FOLDER [--forms c blob file] [--machine M ...] [--name MODEL ...] [--share N]
                [--level L] [--threads N]

Each model runs in its own harness, with its weights in each of the forms, in each dialect in which floats are others.  Where they lie in a file, code made for the
other byte order must not compile, the runtime must open the file, and refuse it when a byte of it is another.
Speaks TAP: one result per machine and model; those whose compiler or emulator is not here are skipped.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

import build

# riscv64-v is compiled to vectors by clang, of 16 bytes in registers of 16 or more; gcc 12 makes scalars of them.
CLANG_V = "clang-19 --target=riscv64-linux-gnu -march=rv64gcv"
MACHINES = {  # compiler, emulator, byte order, target
    "s390x": ("s390x-linux-gnu-gcc", "qemu-s390x", "big", "generic"),
    "i686": ("i686-linux-gnu-gcc", "qemu-i386", "little", "generic"),
    "armhf": ("arm-linux-gnueabihf-gcc", "qemu-arm", "little", "generic"),
    "riscv64": ("riscv64-linux-gnu-gcc", "qemu-riscv64", "little", "generic"),
    "aarch64": ("aarch64-linux-gnu-gcc", "qemu-aarch64", "little", "aarch64"),
    "riscv64-v": (CLANG_V, "qemu-riscv64 -cpu rv64,v=true,vlen=128", "little", "riscv64-v"),
    "riscv64-v256": (CLANG_V, "qemu-riscv64 -cpu rv64,v=true,vlen=256", "little", "riscv64-v"),
    "riscv64-v-gcc": ("riscv64-linux-gnu-gcc -march=rv64gcv", "qemu-riscv64 -cpu rv64,v=true", "little", "riscv64-v"),
}
# What is asked of a machine whose like is asked all: forms of weights, and models.
BRIEF = {"i686": (["c", "file"], None), "armhf": (["blob"], None), "riscv64": (["file"], None), "aarch64": (["c"], None),
         "riscv64-v256": (["blob"], ["digits"]), "riscv64-v-gcc": (["blob"], ["digits"]), "riscv64-v": (["blob"], None)}
GNU99, C99 = ["-std=gnu99"], ["-std=c99"]
# gcc's own dialect leaves floats in x87 registers unrounded; C99 computes in wider ones on purpose, also on s390x.
DIALECTS = {"i686": [GNU99, C99], "s390x": [GNU99, C99]}
XXHASH = pathlib.Path("/usr/include/xxhash.h")  # a header only; a cross compiler does not look there
EMULATOR_FAULT = "decode_save_opc"  # an assertion of qemu before 8.0 at vfcvt.rtz.x.f.v, a cast of floats to integers
RUNTIME = [build.RUNTIME / name for name in ("weights.c", "call.c", "example/host.c")]


class Case:
    """A model on a machine, with its weights in one form."""

    def __init__(self, arguments, machine, model, form, folder):
        self.nnc, self.model, self.form, self.folder = arguments.nnc, model, form, folder
        self.level, self.threads, self.dialects = f"-O{arguments.level}", arguments.threads, DIALECTS.get(machine, [GNU99])
        cc, emulator, self.order, self.target = MACHINES[machine]
        self.cc, self.emulator = cc.split(), emulator.split()
        self.name = model.stem

    def emit(self, order, parts="c,test"):
        return build.command([self.nnc, "compile", self.model, "-o", self.folder, "--emit", parts, "--weights", self.form,
                              "--byte-order", order, "--target", self.target, "--threads", self.threads])

    def link(self, sources, program, *flags):
        return build.command([*self.cc, self.level, "-static", "-I", self.folder, *flags, *sources, self.folder / f"{self.name}.o",
                              *self.folder.glob("*_weights.S"), "-lm", "-o", self.folder / program])

    def harness_in(self, dialect):
        error = build.command([*self.cc, self.level, *dialect, *build.WARNINGS, "-c", self.folder / f"{self.name}.c", "-o",
                               self.folder / f"{self.name}.o"])
        error = error or self.link([self.folder / f"{self.name}_test.c"], "harness", *dialect, *build.WARNINGS)
        error = error or build.command([*self.emulator, self.folder / "harness", self.folder / f"{self.name}.weights"])
        return error and f"{' '.join(dialect)}: {error}"

    def harness(self):
        error = self.emit(self.order)
        for dialect in self.dialects:
            error = error or self.harness_in(dialect)
        return error or (self.vectors() if self.cc[0].startswith("clang") and self.name == "digits" else None)

    def vectors(self):
        """Multiply-adds of vectors in the source are instructions of vectors."""
        code = subprocess.run(["riscv64-linux-gnu-objdump", "-d", self.folder / f"{self.name}.o"], capture_output=True, text=True,
                              check=True).stdout
        return None if code.count("vfmacc") > 20 else f"{code.count('vfmacc')} vfmacc in the object"

    def other_order(self):
        """Code for the other byte order is refused by the compiler."""
        error = self.emit("little" if self.order == "big" else "big", "c")
        said = build.command([*self.cc, "-std=c99", "-fsyntax-only", self.folder / f"{self.name}.c"])
        if error or not (self.folder / f"{self.name}.weights").exists():
            return error  # no weights: nothing to refuse
        return None if said and "--byte-order" in said else f"{self.order}-endian weights are expected, and not missed"

    def runtime(self):
        """nnc_weights_open takes the file, and no other; the generic host runs the model on zeros."""
        (self.folder / "runtime").mkdir()
        shutil.copy(XXHASH, self.folder / "runtime")
        weights, damaged, zeros = self.folder / f"{self.name}.weights", self.folder / "damaged", self.folder / "zeros"
        header = (self.folder / f"{self.name}.h").read_text()
        data = bytearray(weights.read_bytes())
        data[len(data) // 2] ^= 1
        damaged.write_bytes(data)
        zeros.write_bytes(bytes(1 << 24))
        inputs = [zeros] * sum(line[3:].startswith("input ") for line in header.splitlines())
        error = self.link(RUNTIME, "host", f"-DMODEL={self.name}_model", "-I", build.RUNTIME, "-I", self.folder / "runtime")
        error = error or build.command([*self.emulator, self.folder / "host", weights, *inputs])
        said = error or build.command([*self.emulator, self.folder / "host", damaged, *inputs])
        if not error and "checksum" not in (said or ""):
            return f"damaged weights: {said or 'taken'}"
        return error

    def go(self):
        error = self.harness()
        if self.form == "file" and not error and XXHASH.exists() and (self.folder / f"{self.name}.weights").exists():
            error = self.runtime()
        return error or (self.other_order() if self.form != "c" and self.target == "generic" else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--models", required=True, type=pathlib.Path)
    parser.add_argument("--forms", nargs="*", default=["c", "blob", "file"])
    parser.add_argument("--machine", nargs="*", default=list(MACHINES))
    parser.add_argument("--name", nargs="*", help="only these models")
    parser.add_argument("--share", type=int, default=1, help="a machine takes one model of N, the next machine others; the first takes all")
    parser.add_argument("--level", default="1", help="of optimization: 0, 1, 2, 3, s")
    parser.add_argument("--threads", default="1", help="that share a run")
    arguments = parser.parse_args()
    arguments.nnc = arguments.nnc.resolve()  # Meson says ./nnc
    models = [m for m in sorted(arguments.models.glob("*.nnc")) if not arguments.name or m.stem in arguments.name]
    jobs = [(machine, model) for m, machine in enumerate(arguments.machine) for i, model in enumerate(models)
            if (m == 0 or (m + i) % arguments.share == 0) and (not BRIEF.get(machine, (None, None))[1] or model.stem in BRIEF[machine][1])]

    def available(machine):
        return all(shutil.which(tool.split()[0]) for tool in MACHINES[machine][:2])

    print(f"1..{len(jobs)}")
    with tempfile.TemporaryDirectory() as temporary:
        def run(job):
            machine, model = job
            brief = [form for form in BRIEF.get(machine, ([], None))[0] if form in arguments.forms]
            for form in (brief or arguments.forms) if available(machine) else []:
                folder = pathlib.Path(temporary) / machine / model.stem / form
                error = Case(arguments, machine, model, form, folder).go()
                if error:
                    return f"weights {form}: {error}"
            return None
        errors = build.side_by_side(run, jobs)
    failed = 0
    for number, ((machine, model), error) in enumerate(zip(jobs, errors), 1):
        skip = "" if available(machine) else f" # SKIP no {' or no '.join(MACHINES[machine][:2])}"
        if EMULATOR_FAULT in (error or ""):
            error, skip = None, " # SKIP this qemu cannot cast vectors"
        failed += bool(error)
        print(f"{'not ok' if error else 'ok'} {number} - {model.stem} on {machine}{skip}")
        for line in (error or "").splitlines()[:30]:
            print(f"# {line[:300]}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
