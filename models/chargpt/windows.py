#!/usr/bin/env python3
"""Windows of text for chargpt.nnc: of the licences that every Debian system has (package base-files), or of other files.

    python3 windows.py --train train.npz --held-out held.npz [--context N] [--windows N] [FILE ...]

`text` is u8[windows, context + 1], of characters below 128: windows of the files at random places, drawn by the same seed
each time.  The last file is the one held out, of which all windows are taken, side by side.
"""
import argparse
import pathlib

import numpy as np

LICENCES = "/usr/share/common-licenses"
SEED = 1


def read(path):
    """The characters, tabs and newlines as they are; what is no ASCII becomes a question mark."""
    data = np.frombuffer(path.read_bytes(), np.uint8)
    return np.where(data < 128, data, ord("?")).astype(np.uint8)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--train", required=True)
    parser.add_argument("--held-out")
    parser.add_argument("--context", type=int, default=256)
    parser.add_argument("--windows", type=int, default=8000)
    given = parser.parse_args()
    files = given.files or sorted(p for p in pathlib.Path(LICENCES).iterdir() if not p.is_symlink())
    *texts, last = [read(path) for path in files]
    length = given.context + 1
    everything = np.concatenate(texts) if texts else last
    if min(len(everything), len(last)) < length:
        parser.error(f"a window has {length} characters, more than the text")
    starts = np.random.default_rng(SEED).integers(0, len(everything) - length + 1, given.windows)
    np.savez_compressed(given.train, text=everything[starts[:, None] + np.arange(length)])
    if given.held_out:
        whole = len(last) // length
        np.savez_compressed(given.held_out, text=last[:whole * length].reshape(whole, length))


if __name__ == "__main__":
    main()
