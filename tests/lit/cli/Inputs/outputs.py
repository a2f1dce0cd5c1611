"""Reads back what `nnc run` wrote, with NumPy."""

import numpy as np

y, z = np.arange(6, dtype="f4").reshape(2, 3) * 2, np.array([3, 4, 5], "i4")
for got, want in (np.load("y.npy"), y), (np.load("all.npz")["y"], y), (np.load("all.npz")["z"], z):
    assert got.dtype == want.dtype and np.array_equal(got, want), got
assert sorted(np.load("all.npz").files) == ["y", "z"]
assert open("y.pgm", "rb").read() == b"P5\n3 2\n255\n" + bytes([0, 2, 4, 6, 8, 10])
