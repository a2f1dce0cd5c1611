"""The script of docs/weights.md, run as it stands there, with a stand-in for torch: torch.load gives a dict of arrays.

    weights.py --nnc build/nnc docs/weights.md      reports as TAP

The converted weights must give what the layers mean in PyTorch, computed here with NumPy.
"""

import argparse
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile

import numpy as np

MODEL = """nnc 1
use "nn"

graph net(image: f32[1, 3, 6, 6], word: i64[2]) -> (y: f32[1, 5], e: f32[2, 4]) {
    h = relu(batch_norm@bn1(conv@conv1(image, 4, [3, 3])))
    y = dense(flatten(h), 5)
    e = layer_norm@norm(embedding@embed(word, 7, 4))
}
"""
TORCH = "import pickle\n\n\ndef load(path, map_location=None):\n    return pickle.load(open(path, 'rb'))\n"


def state_dict(rng):
    def draw(*shape):
        return rng.normal(size=shape).astype("f4")
    return {"conv1.weight": draw(4, 3, 3, 3), "conv1.bias": draw(4), "bn1.weight": draw(4), "bn1.bias": draw(4),
            "bn1.running_mean": draw(4), "bn1.running_var": draw(4) ** 2 + 0.5,
            "bn1.num_batches_tracked": np.array(7), "fc.weight": draw(5, 64), "fc.bias": draw(5),
            "embed.weight": draw(7, 4), "norm.weight": draw(4), "norm.bias": draw(4)}


def expected(state, image, word):
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(2, 3))
    h = np.einsum("nchwij,ocij->nohw", windows, state["conv1.weight"])
    c = {name: state[name].reshape(1, -1, 1, 1) for name in state if state[name].shape == (4,)}
    h = h + c["conv1.bias"]
    h = (h - c["bn1.running_mean"]) / np.sqrt(c["bn1.running_var"] + 1e-5) * c["bn1.weight"] + c["bn1.bias"]
    y = np.maximum(h, 0).reshape(1, -1) @ state["fc.weight"].T + state["fc.bias"]
    e = state["embed.weight"][word]
    e = (e - e.mean(-1, keepdims=True)) / np.sqrt(e.var(-1, keepdims=True) + 1e-5)
    return y, e * state["norm.weight"] + state["norm.bias"]


def convert(script, folder, state):
    (folder / "torch.py").write_text(TORCH)
    (folder / "convert.py").write_text(script)
    (folder / "net.nnc").write_text(MODEL)
    with open(folder / "net.pt", "wb") as file:
        pickle.dump(state, file)
    subprocess.run([sys.executable, "convert.py", "net.pt", "net.safetensors"], cwd=folder, check=True)


def outputs(nnc, folder, image, word):
    np.save(folder / "image.npy", image)
    np.save(folder / "word.npy", word)
    command = [nnc, "run", "net.nnc", "--target", "reference"]
    for name in "image", "word":
        command += ["--input", f"{name}={name}.npy"]
    for name in "y", "e":
        command += ["--output", f"{name}={name}.npy"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done, [np.load(folder / f"{name}.npy") for name in "ye" if (folder / f"{name}.npy").exists()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nnc", required=True)
    parser.add_argument("page", type=pathlib.Path)
    options = parser.parse_args()
    script = re.search(r"```python\n(.*?)```", options.page.read_text(), re.S)[1]
    rng = np.random.default_rng(3)
    state, image, word = state_dict(rng), rng.normal(size=(1, 3, 6, 6)).astype("f4"), np.array([5, 2])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        convert(script, folder, state)
        done, got = outputs(os.path.abspath(options.nnc), folder, image, word)
    checks = [("the script has 20 to 25 lines", 20 <= len(script.splitlines()) <= 25),
              ("every param is found, nothing is left over", done.returncode == 0 and not done.stderr)]
    for what, a, b in zip(("conv, batch norm, dense", "embedding, layer norm"), got, expected(state, image, word)):
        checks.append((what, np.allclose(a, b, rtol=1e-4, atol=1e-5)))
    print(f"1..{len(checks)}")
    for number, (what, good) in enumerate(checks, 1):
        print(f"{'ok' if good else 'not ok'} {number} - {what}")
    if done.stderr:
        print("#", done.stderr.replace("\n", "\n# "))
    return 0 if all(good for _, good in checks) and len(checks) == 4 else 1


if __name__ == "__main__":
    sys.exit(main())
