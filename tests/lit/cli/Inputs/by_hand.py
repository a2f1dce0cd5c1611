"""Compares `nnc plan --report` with what a user builds: by_hand.py "CC FLAGS" MODEL [NNC-FLAG]...

CC compiles what `nnc compile` writes, with no flag besides; gcc's own call graph tells the deepest stack below an entry."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

cc, model, *flags = sys.argv[1:]


def output(*words):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout


def deepest(graph, entries):
    """Bytes from the entries down, of a file of -fcallgraph-info=su, where static functions are called FILE:NAME."""
    frame = {name: int(size[1]) for name, label in re.findall(r'node: { title: "([^"]*)" label: "([^"]*)"', graph)
             if (size := re.search(r"(\d+) bytes", label))}
    calls = re.findall(r'edge: { sourcename: "([^"]*)" targetname: "([^"]*)"', graph)

    def below(name):
        return frame.get(name, 0) + max((below(callee) for caller, callee in calls if caller == name and callee != name), default=0)

    return max(below(name) for name in frame if ":" not in name and any(name.endswith("_" + entry) for entry in entries))


def size_of(file):
    tool = cc.split()[0]
    tool = tool[: -len("gcc")] + "size" if tool.endswith("-gcc") else "size"
    text, data = output(tool, file).split("\n")[1].split()[:2]
    return int(text) + int(data)


report = json.loads(output("nnc", "plan", model, *flags, "--report", "--format", "json", "--cc", cc))
with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    output("nnc", "compile", model, *flags, "-o", folder)
    (source,) = folder.glob("*.c")
    output(*cc.split(), "-fcallgraph-info=su", "-c", source, "-o", folder / "code.o")
    stack = deepest((folder / "code.ci").read_text(), [entry["name"] for entry in report["entries"]])
    flash = size_of(folder / "code.o")
    for assembly in folder.glob("*_weights.S"):
        output(*cc.split(), "-I", folder, "-c", assembly, "-o", folder / "weights.o")
        flash += size_of(folder / "weights.o")
told = report["ram"]["stack"], report["flash"]["bytes"]
print(f"stack {told[0]}, by hand {stack}; flash {told[1]}, by hand {flash}")
sys.exit(not (told[0] >= stack and told[1] == flash))
