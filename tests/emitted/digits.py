#!/usr/bin/python3
"""The trained digits through compiled code: at least 98 % of 10,000 held-out renders must be recognised.

    digits.py --nnc build/nnc --models models
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

COUNT = 10000


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--models", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.nnc = arguments.nnc.resolve()  # Meson says ./nnc
    print("1..1")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        subprocess.run([sys.executable, arguments.models / "digits/train.py", "--export", folder / "held.npz"], check=True,
                       stdout=subprocess.DEVNULL)
        held = np.load(folder / "held.npz")
        np.save(folder / "image.npy", held["images"].astype(np.float32))
        subprocess.run([arguments.nnc, "run", arguments.models / "digits.nnc", "-D", f"N={COUNT}", "--input",
                        f"image={folder}/image.npy", "--output", f"probability={folder}/probability.npy"], check=True,
                       stdout=subprocess.DEVNULL)
        guess = np.load(folder / "probability.npy").argmax(axis=1)
    right = float(np.mean(guess == held["labels"]))
    print(f"{'ok' if len(guess) == COUNT and right >= 0.98 else 'not ok'} 1 - {right:.2%} of {len(guess)} renders recognised")
    return 0 if right >= 0.98 else 1


if __name__ == "__main__":
    sys.exit(main())
