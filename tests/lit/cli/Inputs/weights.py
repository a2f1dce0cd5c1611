"""Models with stored weights, good and bad, in the working folder."""

import json
import struct

import numpy as np

MODEL = """nnc 1
graph g(x: f32[1, 2]) -> (y: f32[1, 3]) {
    param w: f32[2, 3]
    param b: f32[3]
    y = x @ w + b
}
"""


def write(path, tensors, cut=0):
    """The safetensors format, written out here: an oracle that shares nothing with the compiler."""
    kinds = {"float32": "F32", "float64": "F64"}
    header, data = {}, b""
    for name, array in tensors.items():
        begin = len(data)
        data += array.tobytes()
        header[name] = {"dtype": kinds[str(array.dtype)], "shape": list(array.shape),
                        "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data[:len(data) - cut])


w, b = np.arange(6, dtype="f4").reshape(2, 3), np.array([10, 20, 30], "f4")
for name in "good", "bad", "missing":
    open(name + ".nnc", "w").write(MODEL)
write("good.safetensors", {"w": w, "b": b})
write("bad.safetensors", {"w": w.T.copy(), "b": b.astype("f8"), "more": b, "still.more": b})
write("missing.safetensors", {"b": b})
write("cut.safetensors", {"w": w}, cut=4)
np.save("x.npy", np.array([[1, 2]], "f4"))
