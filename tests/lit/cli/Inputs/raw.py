"""The pixels of a raw 28 x 28 .pgm as 32-bit floats without a header: raw.py IMAGE OUTPUT."""

import sys

import numpy as np

np.frombuffer(open(sys.argv[1], "rb").read()[-784:], "u1").astype("f4").tofile(sys.argv[2])
