#!/usr/bin/python3
"""chargpt: a small one learns by `nnc train`, and what it has learnt writes, against the same network in NumPy.

    chargpt.py --nnc build/nnc --models models [--target T ...] [--cc CC]

The loss that `judge` gives, and the characters that `write` draws at next to no temperature, which are the likeliest, are
those of NumPy with the weights that `nnc train` wrote; keys and values are computed anew there for each character.  And the
C program that learns by the library alone is built without a warning, and learns.  Speaks TAP.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

import build
from streams import Model, close, decoder, softmax

LAYERS, HEADS, WIDTH, CONTEXT, N = 2, 3, 24, 40, 4
DEFINES = [word for name, value in (("LAYERS", LAYERS), ("HEADS", HEADS), ("WIDTH", WIDTH), ("CONTEXT", CONTEXT), ("N", N), ("STEPS", 300))
           for word in ("-D", f"{name}={value}")]
TEXT = "She sells sea shells by the sea shore, and the shells she sells are sea shells, I am sure.\n" * 8


def read_safetensors(path):
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    tensors = {name: t for name, t in json.loads(data[8:8 + length]).items() if name != "__metadata__"}
    kinds = {"F32": np.float32, "I64": np.int64}
    return {name: np.frombuffer(data[8 + length:][slice(*t["data_offsets"])], kinds[t["dtype"]]).reshape(t["shape"])
            for name, t in tensors.items()}


# ---- The network in NumPy ----

def loss_of(w, windows):
    p = [softmax(decoder(w, window[:-1], LAYERS, HEADS, ".mlp"))[np.arange(CONTEXT), window[1:]] for window in windows]
    return -np.log(p).mean()


def written_by(w, prompt):
    """The likeliest characters after the prompt; stops where two are as likely as each other."""
    text = list(prompt)
    while len(text) < CONTEXT:
        logits = decoder(w, np.array(text), LAYERS, HEADS, ".mlp")[-1]
        second, first = np.sort(logits)[-2:]
        if first - second < 1e-3:
            break
        text.append(int(logits.argmax()))
    return text


# ---- What is tested ----

def train(arguments, folder):
    """Returns the windows, and the weights that were learnt."""
    (folder / "text").write_text(TEXT)
    subprocess.run([sys.executable, arguments.models / "chargpt/windows.py", "--train", folder / "train.npz", "--held-out",
                    folder / "held.npz", "--context", str(CONTEXT), "--windows", "300", folder / "text"], check=True)
    done = subprocess.run([arguments.nnc, "train", arguments.models / "chargpt.nnc", *DEFINES, "--data", folder / "train.npz",
                           "--validate", folder / "held.npz", "--epochs", "4", "-o", folder / "learnt.safetensors", "--save",
                           folder / "checkpoint"], capture_output=True, text=True, check=True)
    losses = [float(loss) for loss in re.findall(r"^epoch .*: loss ([\d.]+)", done.stdout + done.stderr, re.M)]
    assert len(losses) == 4 and losses[3] < 0.6 * losses[0], f"losses of the epochs: {losses}"
    return np.load(folder / "held.npz")["text"], read_safetensors(folder / "learnt.safetensors")


def writes(arguments, target, folder, held, weights):
    out = folder / target
    error = build.command([arguments.nnc, "compile", arguments.models / "chargpt.nnc", *DEFINES, "-o", out, "--target", target, "--cc",
                           arguments.cc, "--emit", "c,shared", "--weights", "c", "--weights-from", folder / "learnt.safetensors"])
    assert not error, error
    stream = Model(out / "libchargpt.so", "chargpt", {}).stream()
    close("the loss", stream.judge(held[:N]), loss_of(weights, held[:N]), 1e-5)
    for length in (1, 7, CONTEXT):
        prompt = np.frombuffer(TEXT.encode(), np.uint8)[2:2 + CONTEXT]
        theirs = written_by(weights, prompt[:length])
        assert len(theirs) >= min(CONTEXT, length + 12), "two characters are as likely as each other"
        ours = stream.write(prompt, length, 1, 1e-6)
        assert list(ours[:len(theirs)]) == theirs, f"{bytes(ours)}, not {bytes(theirs)}"
    drawn = {bytes(stream.write(prompt, 3, seed, 1.5)) for seed in (1, 2, 2, 3)}
    assert len(drawn) == 3 and all(text[:3] == bytes(prompt[:3]) for text in drawn), "draws do not go by their seed"


def learns(arguments, folder):
    """The program in C, of the same library."""
    out = folder / "program"
    error = build.emit(arguments.nnc, arguments.models / "chargpt.nnc", out, "generic", *DEFINES, "--weights", "c")
    error = error or build.command([*arguments.cc.split(), *build.C99, *build.WARNINGS, "-Wno-conversion", f"-DWINDOWS={N}",
                                    f"-DCONTEXT={CONTEXT}", "-I", out, arguments.models / "chargpt/learn.c", out / "chargpt.c",
                                    "-o", out / "learn", "-lm"])
    assert not error, error
    done = subprocess.run([out / "learn", folder / "text", "200", "100"], capture_output=True, text=True, check=True)
    losses = [float(loss) for loss in re.findall(r"^---- step \d+: loss ([\d.]+)", done.stdout, re.M)]
    assert len(losses) == 3 and losses[2] < 0.5 * losses[0], done.stdout
    refused = subprocess.run([out / "learn", "/dev/null"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "usage: learn FILE" in refused.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--models", required=True, type=pathlib.Path)
    parser.add_argument("--target", nargs="*", default=["generic", "x86-64-v4"])
    parser.add_argument("--cc", default="gcc -O1")
    arguments = parser.parse_args()
    arguments.nnc = arguments.nnc.resolve()  # Meson says ./nnc
    with tempfile.TemporaryDirectory() as temporary:
        shared = pathlib.Path(temporary)
        held, weights = train(arguments, shared)
        cases = [(f"write for {target}", target, arguments.cc.split()[0], (writes, arguments, target, shared, held, weights))
                 for target in arguments.target]
        cases.append(("learn.c", None, None, (learns, arguments, shared)))
        return build.report(cases, lambda function, *words: function(*words[:-1]))


if __name__ == "__main__":
    sys.exit(main())
