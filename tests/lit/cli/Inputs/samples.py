"""Samples of many kinds for `nnc train`, in the working folder, and checkpoints that are damaged."""

import io
import json
import sys
import zipfile

import numpy as np


def damage(name, to, **changes):
    """The checkpoint with other words on the training; None takes one away."""
    raw = open(name, "rb").read()
    begin = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:begin])
    if changes:
        progress = json.loads(header["__metadata__"]["nnc.train"])
        progress.update(changes)
        header["__metadata__"]["nnc.train"] = json.dumps({k: v for k, v in progress.items() if v is not None})
    else:
        header["__metadata__"]["nnc.train"] = "{"
    text = json.dumps(header).encode()
    open(to, "wb").write(len(text).to_bytes(8, "little") + text + raw[begin:])


if len(sys.argv) > 1:
    damage("c", "json.c")
    damage("c", "step.c", step="77")
    damage("c", "epoch.c", epoch="-1")
    damage("c", "curve.c", train=[{"name": "loss", "sum": [0, 0], "curve": [1, 2, 3]}])
    damage("c", "scores.c", train=[])
    damage("c", "seed.c", seed="many")
    damage("c", "no_graph.c", graph=None)
    damage("c", "older.c", digest=None, in_order=None)
    damage("c", "digest.c", digest="many")
    open("cut.c", "wb").write(open("c", "rb").read()[:-5])
else:
    x, label = np.zeros((6, 3), "f4"), np.arange(6) % 2
    np.savez("good.npz", x=x, label=label)
    np.savez("changed.npz", x=x + 1, label=label)
    np.savez("more.npz", x=np.zeros((8, 3), "f4"), label=np.arange(8) % 2)
    np.savez("missing.npz", x=x, y=label)
    np.savez("dtype.npz", x=x.astype("f8"), label=label)
    np.savez("extent.npz", x=x[:, :2], label=label)
    np.savez("rank.npz", x=x[0, 0], label=label)
    np.savez("counts.npz", x=x, label=label[:5])
    np.savez("label.npz", x=x, label=label + 1)
    np.savez("ignored.npz", x=x, label=label - 1)
    np.savez("none.npz", x=x[:0], label=label[:0])
    np.savez("few.npz", x=x[:1], label=label[:1])
    open("empty.npz", "w").close()
    with zipfile.ZipFile("packed.npz", "w", zipfile.ZIP_LZMA) as packed:
        for name, array in (("x", x), ("label", label)):
            file = io.BytesIO()
            np.save(file, array)
            packed.writestr(name + ".npy", file.getvalue())
