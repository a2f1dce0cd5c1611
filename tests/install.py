#!/usr/bin/python3
"""What `meson install` leaves, and the build snippets of docs/embedding.md, which use it.

    install.py --build BUILD --nnc BUILD/nnc --page docs/embedding.md --models models      reports as TAP

The projects are those of the page, in a folder with a space in its name.  They are built, run, built again without
anything to do, and once more after each of the model, its import and its weights has been touched.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

APP = """#include "digits.h"
#ifdef TWO
#include "digits8.h"
#endif
#include <stdio.h>

static unsigned char arena[262144 + 64];
static float image[8 * 784], probability[80];

int main(int argc, char **argv)
{
    unsigned char *aligned = arena + (64 - (uintptr_t)arena % 64) % 64;
    FILE *file = fopen(argv[argc - 1], "rb");
    int best = 0;

    if (!file || fread(image, sizeof *image, 784, file) != 784 || digits_run(image, probability, aligned))
        return 1;
    for (int i = 1; i < 10; i++)
        best = probability[i] > probability[best] ? i : best;
    printf("%d", best);
#ifdef TWO
    if (sizeof arena - 64 < DIGITS8_ARENA_BYTES || digits8_run(image, probability, aligned))
        return 1;
    printf(" %s", probability[best] > 0.5f ? "and 8" : "but 8");
#endif
    puts("");
    return 0;
}
"""


class Failure(Exception):
    pass


def run(command, folder, environment=None, fails=False):
    done = subprocess.run([str(c) for c in command], cwd=folder, env=environment, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if (done.returncode != 0) != fails:
        raise Failure(f"{' '.join(map(str, command))} ended with {done.returncode}\n{done.stdout}")
    return done.stdout


def expect(condition, why):
    if not condition:
        raise Failure(why)


def block(page, language, number=0):
    return re.findall(rf"```{language}\n(.*?)```", page, re.S)[number]


class Project:
    """A copy of the page's project, with a model that imports a file."""

    def __init__(self, root, name, options, prefix):
        self.folder = root / f"{name} app"
        (self.folder / "models").mkdir(parents=True)
        (self.folder / "app.c").write_text(APP)
        text = (options.models / "digits.nnc").read_text()
        text = text.replace('use "nn"', 'use "nn"\nuse "scale.nnc"').replace("image / 255.0", "scale(image)")
        (self.folder / "models/digits.nnc").write_text(text)
        (self.folder / "models/scale.nnc").write_text("nnc 1\nfn scale(x) -> (y) {\n    y = x / 255.0\n}\n")
        shutil.copy(options.models / "digits.safetensors", self.folder / "models")
        pixels = (options.models / "digits/3.pgm").read_bytes()[-784:]
        np.frombuffer(pixels, "u1").astype("f4").tofile(self.folder / "3.raw")
        self.environment = dict(os.environ, PATH=f"{prefix / 'bin'}{os.pathsep}{os.environ['PATH']}")

    def command(self, *words, **more):
        return run(words, self.folder, self.environment, **more)

    def check_rebuilds(self, build, source, app, output, touched=("digits.nnc", "scale.nnc", "digits.safetensors")):
        """`build` makes app; only what a touched file concerns is made again."""
        build()
        expect(self.command(app, "3.raw").strip() == output, f"{app} says {self.command(app, '3.raw')}")
        made = source.stat().st_mtime_ns
        build()
        expect(source.stat().st_mtime_ns == made, "the model is compiled again without a reason")
        for name in touched:
            time.sleep(0.02)
            os.utime(self.folder / "models" / name)
            build()
            expect(source.stat().st_mtime_ns != made, f"{name} does not compile the model again")
            made = source.stat().st_mtime_ns


def check_files(prefix):
    """Programs, headers, libraries, pages: and no test."""
    names = {p.relative_to(prefix).as_posix() for p in prefix.rglob("*") if p.is_file()}
    for name in ("bin/nnc", "include/nnc.h", "include/nnc_model.h", "include/nnc_compiler.h", "share/man/man1/nnc.1",
                 "share/cmake/nnc/nncConfig.cmake", "share/cmake/nnc/nncConfigVersion.cmake"):
        expect(name in names, f"{name} is not installed")
    expect(not [n for n in names if "test" in n], "tests are installed")


def check_pkg_config(prefix):
    """xxhash is inlined: who links the runtime does not need it."""
    folder = next(prefix.rglob("nnc.pc")).parent
    environment = dict(os.environ, PKG_CONFIG_PATH=str(folder))
    expect("xxhash" not in (folder / "nnc.pc").read_text(), "nnc.pc requires xxhash")
    flags = run(["pkg-config", "--static", "--libs", "--cflags", f"--define-variable=prefix={prefix}", "nnc"], folder,
                environment).split()
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch) / "m.c"
        source.write_text("#include <nnc.h>\nint main(void) { return !nnc_status_text(NNC_OK); }\n")
        run(["gcc", source, *flags, "-o", "m"], scratch)


def check_default_build(options):
    """Without the option `tests`, what is built is what is installed; and configuring needs nothing of the tests."""
    with tempfile.TemporaryDirectory() as scratch:
        build = pathlib.Path(scratch) / "plain"
        poor = pathlib.Path(scratch) / "bin"  # a PATH without FileCheck; python3 without NumPy stands first
        poor.mkdir()
        (poor / "python3").write_text('#!/bin/sh\nexec /usr/bin/env -u PYTHONPATH /usr/bin/python3 -S "$@"\n')
        (poor / "python3").chmod(0o755)
        environment = dict(os.environ, PATH=f"{poor}{os.pathsep}{os.environ['PATH']}")
        run(["meson", "setup", build], options.page.parent.parent, environment)
        inputs = run(["ninja", "-C", build, "-t", "inputs", "all"], scratch)
        expect("/tests/" not in inputs, "the default build has tests in it")


def check_cmake(root, page, options, prefix, generator):
    project = Project(root, f"cmake {generator}", options, prefix)
    (project.folder / "CMakeLists.txt").write_text(
        block(page, "cmake") + "target_compile_definitions(app PRIVATE TWO)\n")
    project.command("cmake", "-S", ".", "-B", "out", "-G", generator, f"-DCMAKE_PREFIX_PATH={prefix}")
    project.check_rebuilds(lambda: project.command("cmake", "--build", "out"),
                           project.folder / "out/nnc/digits/digits.c", "out/app", "3 and 8", ["scale.nnc"])


def check_cmake_weights(root, options, prefix):
    """The other forms of weights, a machine with flags of its own, and what is refused."""
    project = Project(root, "weights", options, prefix)
    head = "cmake_minimum_required(VERSION 3.20)\nproject(app LANGUAGES {})\nfind_package(nnc REQUIRED)\n"
    tail = "add_executable(app app.c)\ntarget_link_libraries(app PRIVATE digits)\n"
    cases = [("C ASM", "digits models/digits.nnc WEIGHTS blob FOR x86-64-v3", None),
             ("C", "model models/digits.nnc NAME digits OPTIONS --allocator greedy)\nadd_library(digits ALIAS model", None),
             ("C ASM", "digits models/digits.nnc FOR generic x86-64-v3 x86-64-v4 WEIGHTS blob", None),
             ("C", "digits models/digits.nnc WEIGHTS blob", "needs the language ASM"),
             ("C", "digits models/digits.nnc WEIGHTS text", "WEIGHTS is c, blob or file, not text"),
             ("C", "digits models/digits.nnc BATCH 8", "unknown words: BATCH;8")]
    for number, (languages, words, complaint) in enumerate(cases):
        (project.folder / "CMakeLists.txt").write_text(head.format(languages) + f"nnc_add_model({words})\n" + tail)
        configure = ["cmake", "-S", ".", "-B", f"w{number}", f"-DCMAKE_PREFIX_PATH={prefix}"]
        said = project.command(*configure, fails=complaint is not None)
        if complaint:
            expect(complaint in said.replace("\n", " ").replace("  ", " "), f"not said: {complaint}\n{said}")
            continue
        project.command("cmake", "--build", f"w{number}")
        if "FOR x86-64-v3" not in words or "avx2" in pathlib.Path("/proc/cpuinfo").read_text():
            expect(project.command(f"w{number}/app", "3.raw").strip() == "3", f"wrong result with {words}")


def check_machine_flags(root, options, prefix):
    """The package's flags for a machine are those that the emitted source asks for."""
    package = (prefix / "share/cmake/nnc/nncConfig.cmake").read_text()
    for machine in "x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v4-vnni", "x86-64-v4-amx", "aarch64", "riscv64-v":
        folder = root / machine
        run([options.nnc, "compile", options.models / "digits.nnc", "--target", machine, "-o", folder], root)
        wanted = re.search(r"Compile with: -O3 (.*) \*/", (folder / "digits.c").read_text())[1]
        expect(f"set(flags {wanted})" in package, f"{machine} wants {wanted}")


def check_meson(root, page, options, prefix):
    project = Project(root, "meson", options, prefix)
    (project.folder / "meson.build").write_text(block(page, "meson"))
    project.command("meson", "setup", "out")
    project.check_rebuilds(lambda: project.command("ninja", "-C", "out"), project.folder / "out/digits.c", "out/app", "3")


def check_meson_versions(root, page, options, prefix):
    """Several targets: a library for each source."""
    project = Project(root, "meson versions", options, prefix)
    (project.folder / "meson.build").write_text(
        "project('app', 'c')\n" + block(page, "meson", 1) +
        "executable('app', 'app.c', several[0], link_with: digits,\n"
        "    dependencies: meson.get_compiler('c').find_library('m'))\n")
    project.command("meson", "setup", "out")
    project.command("ninja", "-C", "out")
    expect(project.command("out/app", "3.raw").strip() == "3", "wrong result of one of several targets")


def check_make(root, page, options, prefix):
    project = Project(root, "make", options, prefix)
    (project.folder / "Makefile").write_text(block(page, "make"))
    project.check_rebuilds(lambda: project.command("make"), project.folder / "build/digits.c", "./app", "3")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--page", required=True, type=pathlib.Path)
    parser.add_argument("--models", required=True, type=pathlib.Path)
    options = parser.parse_args()
    options.page, options.models, options.nnc = (p.resolve() for p in (options.page, options.models, options.nnc))
    page = options.page.read_text()
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        run(["meson", "install", "-C", options.build, "--no-rebuild", "--quiet", "--destdir", root / "destination"], root)
        prefix = next((root / "destination").rglob("bin/nnc")).parent.parent
        checks = [
            ("files", None, lambda: check_files(prefix)),
            ("pkg-config", "pkg-config", lambda: check_pkg_config(prefix)),
            ("what is built by default", None, lambda: check_default_build(options)),
            ("flags of machines", None, lambda: check_machine_flags(root, options, prefix)),
            ("CMake with make", "cmake", lambda: check_cmake(root, page, options, prefix, "Unix Makefiles")),
            ("CMake with ninja", "cmake", lambda: check_cmake(root, page, options, prefix, "Ninja")),
            ("CMake: weights", "cmake", lambda: check_cmake_weights(root, options, prefix)),
            ("Meson", "meson", lambda: check_meson(root, page, options, prefix)),
            ("Meson with several targets", "meson", lambda: check_meson_versions(root, page, options, prefix)),
            ("make", "make", lambda: check_make(root, page, options, prefix)),
        ]
        print(f"1..{len(checks)}")
        failed = 0
        for number, (name, needs, check) in enumerate(checks, 1):
            if needs and not shutil.which(needs):
                print(f"ok {number} - {name} # SKIP {needs} is not installed")
                continue
            try:
                check()
                print(f"ok {number} - {name}", flush=True)
            except Failure as failure:
                failed += 1
                print(f"not ok {number} - {name}\n# " + str(failure).replace("\n", "\n# "), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
