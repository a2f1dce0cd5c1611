"""PyTorch: eager, and compiled ahead of time by its inductor, which leaves one call into C++; the weights as they are, or frozen,
when they are folded and packed for its kernels.  The fastest of these is taken.
"""

import math

import torch
import torch.nn.functional as F

from peers import fastest, graph

DTYPES = {graph.FLOAT: torch.float32, graph.INT32: torch.int32, graph.INT64: torch.int64}


def padded(x, pads, value=0.0):
    """The image, and what is left for the op to pad: the same on both sides."""
    top, left, bottom, right = pads
    if (top, left) == (bottom, right):
        return x, (top, left)
    return F.pad(x, (left, right, top, bottom), value=value), (0, 0)


def conv(x, w, b=None, strides=(1, 1), pads=(0, 0, 0, 0), dilations=(1, 1), group=1, kernel_shape=None):
    x, pads = padded(x, pads)
    return F.conv2d(x, w, b, strides, pads, dilations, group)


def max_pool(x, kernel_shape, strides=(1, 1), pads=(0, 0, 0, 0), dilations=(1, 1)):
    x, pads = padded(x, pads, -math.inf)
    return F.max_pool2d(x, kernel_shape, strides, pads, dilations)


def average_pool(x, kernel_shape, strides=(1, 1), pads=(0, 0, 0, 0), dilations=(1, 1), count_include_pad=0):
    if list(dilations) != [1, 1] or pads[:2] != pads[2:]:
        raise NotImplementedError("an average over a dilated window, or one padded unevenly")
    return F.avg_pool2d(x, kernel_shape, strides, pads[:2], count_include_pad=bool(count_include_pad))


def hard_sigmoid(x, alpha=0.2, beta=0.5):
    return F.hardsigmoid(x) if math.isclose(alpha, 1 / 6, rel_tol=1e-6) and beta == 0.5 else (x * alpha + beta).clip(0, 1)


OPS = {
    **graph.shared_ops(torch),
    "Conv": conv,
    "MaxPool": max_pool,
    "AveragePool": average_pool,
    "BatchNormalization": lambda x, s, b, m, v, epsilon=1e-5: F.batch_norm(x, m, v, s, b, eps=epsilon),
    "LayerNormalization": lambda x, s, b, axis=-1, epsilon=1e-5: F.layer_norm(x, x.shape[axis:], s, b, epsilon),
    "Relu": F.relu,
    "Sigmoid": torch.sigmoid,
    "HardSigmoid": hard_sigmoid,
    "HardSwish": F.hardswish,
    "Gelu": lambda x, approximate="none": F.gelu(x, approximate=approximate),
    "Erf": torch.erf,
    "Softmax": lambda x, axis=-1: F.softmax(x, axis),
    "Transpose": lambda x, perm: x.permute(perm),
    "Split": lambda x, sizes, axis=0: x.split(sizes, axis),
    "Gather": lambda x, i, axis=0: x.index_select(axis, i.flatten()).reshape(*x.shape[:axis], *i.shape, *x.shape[axis + 1 :]),
    "Cast": lambda x, to: torch.as_tensor(x).to(DTYPES[to]),
}


class Network(torch.nn.Module):
    def __init__(self, read):
        super().__init__()
        self.read, self.named = read, {}
        for i, (name, array) in enumerate(read.weights.items()):
            self.named[name] = f"weight{i}"
            self.register_buffer(self.named[name], torch.from_numpy(array.copy()))

    def forward(self, *inputs):
        return self.read.run(OPS, {name: getattr(self, own) for name, own in self.named.items()}, inputs)


def channels_last(tensor):
    return tensor.contiguous(memory_format=torch.channels_last) if tensor.ndim == 4 else tensor


def compiled(network, inputs, path, frozen):
    exported = torch.export.export(network, tuple(inputs))
    torch._inductor.aoti_compile_and_package(exported, package_path=str(path), inductor_configs={"freezing": frozen})
    call = torch._inductor.aoti_load_package(str(path)).loader.run
    return lambda: call(inputs)


def ways_of(network, inputs, folder):
    """Frozen weights get a layout of the inductor's choice, so the images may come in any."""
    ways = {
        "eager": lambda: lambda: network(*inputs),
        "compiled, frozen": lambda: compiled(network, inputs, folder / "frozen.pt2", True),
    }
    if "Conv" not in network.read.kinds():
        return {**ways, "compiled": lambda: compiled(network, inputs, folder / "compiled.pt2", False)}
    other, images = Network(network.read)._apply(channels_last), [channels_last(tensor) for tensor in inputs]
    return {
        **ways,
        "eager, channels last": lambda: lambda: other(*images),
        "compiled, channels last": lambda: compiled(other, images, folder / "compiled.pt2", False),
    }


def open_torch(path, inputs, threads, folder):
    torch.set_grad_enabled(False)
    torch.set_num_threads(threads)
    network = Network(graph.open_graph(path, OPS))
    run = fastest(ways_of(network, [torch.from_numpy(inputs[name]) for name in network.read.inputs], folder), threads)
    return run, [y.numpy() for y in run()]
