#!/usr/bin/env python3
"""Stands in for `nnc run` and runs what comes back when the model is exported and imported again:

    NNC=build/nnc again.py run MODEL [--graph NAME] [flag of nnc run ...]
    NNC=build/nnc again.py ops
"""

import os
import re
import subprocess
import sys
import tempfile


def command(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


def outputs_of(nnc, model, graph, *constants):
    """An import may call outputs otherwise: those that are constants, or another's value."""
    text = command(nnc, "opt", "--passes=", model, *constants)
    found = re.search(rf"^graph {re.escape(graph) or '.*?'}\(.*?\) -> \((.*?)\) {{$", text, re.MULTILINE | re.DOTALL)
    return re.findall(r"[\w.]+(?=: \w+\[)", found[1])


def main():
    nnc = os.environ["NNC"]
    if sys.argv[1] != "run":
        os.execv(nnc, [nnc, *sys.argv[1:]])
    model, words = sys.argv[2], sys.argv[3:]
    graph = words[words.index("--graph") + 1] if "--graph" in words else ""
    chosen = ["--graph", graph] if graph else []
    if graph:
        at = words.index("--graph")
        del words[at:at + 2]
    constants = [word for at in range(1, len(words)) if words[at - 1] == "-D" for word in ("-D", words[at])]
    words = [word for at, word in enumerate(words) if word != "-D" and (not at or words[at - 1] != "-D")]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        command(nnc, "export", model, *chosen, *constants, "-o", path)
        name = dict(zip(outputs_of(nnc, model, graph, *constants), outputs_of(nnc, path, "")))
        for i in range(1, len(words)):
            if words[i - 1] == "--output":
                output, file = words[i].split("=", 1)
                words[i] = f"{name[output]}={file}"
        command(nnc, "run", path, *words)


if __name__ == "__main__":
    main()
