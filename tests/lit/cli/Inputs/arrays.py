"""Input files of many kinds in the working folder, written by NumPy."""

import numpy as np

x = np.arange(6, dtype="f4").reshape(2, 3)
np.save("x.npy", x)
np.save("fortran.npy", np.asfortranarray(x))
np.save("big.npy", x.astype(">f4"))
np.save("double.npy", x.astype("f8"))
np.save("flat.npy", x.reshape(1, 2, 1, 3))
np.save("wrong.npy", x.T.copy())
np.savez("one.npz", anything=x)
np.savez_compressed("many.npz", x=x, other=x + 1)
open("x.pgm", "wb").write(b"P5\n3 2\n255\n" + bytes(range(6)))
open("plain.pgm", "w").write("P2\n# grey\n3 2\n5\n0 1 2\n3 4 5\n")
open("cut.npy", "wb").write(open("x.npy", "rb").read()[:-1])
open("cut.npz", "wb").write(open("many.npz", "rb").read()[:-30])
open("notes.txt", "w").write("no tensor")
