#!/usr/bin/python3
"""digits: the stored weights on 10,000 held-out renders, of which 99.2 % must be recognised, and `nnc train` from scratch.

    digits.py --nnc build/nnc --models models
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

COUNT = 10000
FEW = 6000  # images, on which three epochs come to some 88 %


def run(*words):
    subprocess.run([str(w) for w in words], check=True, stdout=subprocess.DEVNULL)


def recognised(arguments, folder, *flags):
    """The share of the held-out renders that the compiled model tells."""
    held = np.load(folder / "held.npz")
    np.save(folder / "image.npy", held["image"].astype(np.float32))
    run(arguments.nnc, "run", arguments.models / "digits.nnc", "-D", f"N={COUNT}", "--input", f"image={folder}/image.npy",
        "--output", f"probability={folder}/probability.npy", *flags)
    guess = np.load(folder / "probability.npy").argmax(axis=1)
    assert len(guess) == COUNT
    return float(np.mean(guess == held["label"]))


def stored(arguments, folder):
    return recognised(arguments, folder), 0.992


def trained(arguments, folder):
    """By the command that made the stored weights, on fewer images."""
    sys.path.append(str(arguments.models / "digits"))
    import render  # pylint: disable=import-outside-toplevel
    render.write_set(folder / "few.npz", FEW, 77)
    run(arguments.nnc, "train", arguments.models / "digits/train.nnc", "--data", folder / "few.npz", "--epochs", 3, "-o",
        folder / "few.safetensors", "--save", folder / "checkpoint", "-D", f"STEPS={3 * FEW // 50}")
    return recognised(arguments, folder, "--weights-from", folder / "few.safetensors"), 0.85


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--models", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.nnc = arguments.nnc.resolve()  # Meson says ./nnc
    print("1..2")
    good = True
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        run(sys.executable, arguments.models / "digits/render.py", "--held-out", folder / "held.npz")
        for number, test in enumerate([stored, trained], 1):
            share, least = test(arguments, folder)
            good &= share >= least
            print(f"{'ok' if share >= least else 'not ok'} {number} - {test.__name__}: {share:.2%} of {COUNT} renders recognised")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
