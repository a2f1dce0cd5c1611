"""Checks that includes only go down: base < ir < ops < passes < plan < codegen < frontends; runtime stands apart.

Within frontends the readers and writers (nnc, onnx, trace, formats) stand below cli.
"""

import pathlib
import re
import subprocess
import sys

LAYERS = ["base", "ir", "ops", "passes", "plan", "codegen", "frontends", "frontends/cli"]


ROOTS = ["", "compiler", "codegen", "frontends"]  # where includes are looked for


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


def main():
    files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.c", "*.h", "*.def"],
                           capture_output=True, text=True, check=True)
    wrong = 0
    for path in files.stdout.split():
        if path.startswith("tests/") or not pathlib.Path(path).exists():
            continue
        own = layer_of(path)
        for number, line in enumerate(pathlib.Path(path).read_text().splitlines(), 1):
            found = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            target = included(path, found[1]) if found else None
            if not target:
                continue
            other = layer_of(target)
            apart = path.startswith("runtime/") and other is not None
            up = own is not None and other is not None and other > own
            if apart or up:
                wrong += 1
                why = "runtime includes nothing of the compiler" if apart else "includes go down the layers only"
                print(f"{path}:{number}: {found[0].strip()}: {why}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
