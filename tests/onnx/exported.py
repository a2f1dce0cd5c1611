"""Networks that PyTorch exports, as emitted C against ONNX Runtime.

    exported.py --nnc NNC [--cc CC]      with a Python that has torch, onnx and onnxruntime; reports as TAP
"""

import argparse
import pathlib
import subprocess
import tempfile
import warnings

import numpy
import onnxruntime
import torch
from torch import nn
from torch.nn import functional

WITHIN = 1e-5  # of the largest element


class Unet(nn.Module):
    """Convolutions up and down, norms over groups and instances, resize"""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 32, 3, 2, 1)
        self.group, self.instance = nn.GroupNorm(4, 32), nn.InstanceNorm2d(16, affine=True)
        self.up, self.out = nn.ConvTranspose2d(32, 16, 2, 2), nn.Conv2d(32, 4, 1)

    def forward(self, x):
        a = functional.silu(self.instance(self.a(x)))
        b = functional.gelu(self.group(self.b(a)))
        wide = functional.interpolate(functional.avg_pool2d(b, 2), scale_factor=2, mode="bilinear", align_corners=False)
        y = torch.cat([self.up(b + wide), a], 1)
        return torch.softmax(self.out(y), 1), y.mean((2, 3))


class Encoder(nn.Module):
    """Transformer layers over embedded tokens"""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu")
        self.embed, self.place = nn.Embedding(100, 32), nn.Parameter(torch.randn(1, 20, 32))
        self.layers, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(32, 5)

    def forward(self, token):
        return self.head(self.layers(self.embed(token) + self.place)[:, 0])


class Recurrent(nn.Module):
    """Two bidirectional LSTMs, a GRU and a plain RNN"""

    def __init__(self):
        super().__init__()
        self.lstm, self.gru, self.rnn = nn.LSTM(8, 16, 2, bidirectional=True, batch_first=True), nn.GRU(32, 12), nn.RNN(12, 6)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        return self.rnn(self.gru(y.transpose(0, 1))[0])[0], h, c


class Mobile(nn.Module):
    """Depthwise convolutions, batch norm and clipped activations"""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU6(),
            nn.Conv2d(16, 16, 3, 1, 1, groups=16, bias=False), nn.BatchNorm2d(16), nn.Hardswish(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10), nn.LogSoftmax(1))

    def forward(self, x):
        return self.body(x)


class Causal(nn.Module):
    """Attention under a mask, the largest, and running sums"""

    def __init__(self):
        super().__init__()
        self.qkv, self.norm = nn.Linear(32, 96), nn.LayerNorm(32)

    def forward(self, x):
        n, t, d = x.shape
        q, k, v = self.qkv(self.norm(x)).view(n, t, 3, 4, 8).permute(2, 0, 3, 1, 4)
        mask = torch.tril(torch.ones(t, t, dtype=torch.bool))
        z = x + functional.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).reshape(n, t, d)
        return torch.gather(z, -1, torch.argmax(z, -1, keepdim=True)), torch.where(z > 0, z, z * z), z.cumsum(1)


class Positions(nn.Module):
    """What is read and written at positions, reflected, reversed, clamped and rounded"""

    def forward(self, x, at):
        y = functional.pad(x[:, at], (1, 2), mode="reflect")
        z = y.clone()
        z[:, 0] = 0
        return z.flip(1), torch.einsum("bij,bkj->bik", y, y), torch.clamp(z, min=-0.5), (z * 3).to(torch.int32) // 2


CASES = [
    (Unet, ["x"], lambda: (torch.randn(1, 3, 32, 32),)),
    (Encoder, ["token"], lambda: (torch.randint(0, 100, (2, 20)),)),
    (Recurrent, ["x"], lambda: (torch.randn(2, 7, 8),)),
    (Mobile, ["x"], lambda: (torch.randn(2, 3, 32, 32),)),
    (Causal, ["x"], lambda: (torch.randn(2, 6, 32),)),
    (Positions, ["x", "at"], lambda: (torch.randn(2, 5, 6), torch.tensor([3, 1, 0]))),
]


def compare(options, folder, network, names, inputs):
    path = folder / "m.onnx"
    count = len(network(*inputs)) if isinstance(network(*inputs), tuple) else 1
    outputs = [f"y{i}" for i in range(count)]
    torch.onnx.export(network, inputs, path, input_names=names, output_names=outputs, opset_version=17, dynamo=False)
    given = {name: value.numpy() for name, value in zip(names, inputs)}
    wanted = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, given)
    command = [options.nnc, "run", path, "--cc", options.cc]
    for name, value in given.items():
        numpy.save(folder / f"{name}.npy", value)
        command += ["--input", f"{name}={folder / name}.npy"]
    command += [word for name in outputs for word in ("--output", f"{name}={folder / name}.npy")]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for name, want in zip(outputs, wanted):
        got = numpy.load(folder / f"{name}.npy")
        assert got.shape == want.shape and got.dtype == want.dtype, f"{name}: {got.dtype}{got.shape}, not {want.dtype}{want.shape}"
        error = numpy.abs(got.astype("f8") - want).max() / max(numpy.abs(want).max(), 1e-9)
        assert error <= WITHIN, f"{name}: differs by {error:.2g} of the largest element"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--cc", default="gcc -O2")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    print(f"1..{len(CASES)}")
    for i, (network, names, inputs) in enumerate(CASES, 1):
        torch.manual_seed(i)
        with tempfile.TemporaryDirectory() as folder:
            try:
                compare(options, pathlib.Path(folder), network().eval(), names, inputs())
                print(f"ok {i} - {network.__name__}")
            except AssertionError as error:
                print("\n".join("# " + line for line in str(error).splitlines()))
                print(f"not ok {i} - {network.__name__}")


if __name__ == "__main__":
    main()
