"""Networks of models/ in ONNX's ops, as exporters write them, for peers.py: ONNX Runtime's optimiser finds the patterns it knows.

Weights are drawn, seeded, for the parameters that `nnc` names, and stored as .safetensors for nnc and inside the ONNX file.
"""

import json
import re
import subprocess

import numpy as np
import onnx

GPT2_PAST = 1023  # tokens that the cache holds

# ---- Weights ----


def draw_weights(nnc, model):
    """By name, an array for each parameter: matrices and filters keep the variance, vectors are near their defaults."""
    text = subprocess.check_output([nnc, "opt", model, "--passes=expand"], text=True)
    rng = np.random.default_rng(1)
    weights = {}
    for name, extents, value in re.findall(r"param (\S+): f32\[([\d, ]+)\] = ([-\d.e]+)?", text):
        shape = tuple(map(int, extents.split(", ")))
        noise = rng.standard_normal(shape, np.float32)
        fan_in = np.prod(shape[1:]) if len(shape) == 4 else shape[0]
        weights[name] = noise * np.float32((2 / fan_in) ** 0.5) if not value else np.float32(value) * (1 + noise / 20)
    return weights


def write_safetensors(weights, path):
    header, end = {}, 0
    for name, array in weights.items():
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": [end, end + array.nbytes]}
        end += array.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in weights.values():
            file.write(array.tobytes())


# ---- The networks in ONNX's ops ----


class Net:
    """An ONNX graph that grows node by node; values are names."""

    def __init__(self, weights):
        self.weights = weights
        self.nodes, self.stored = [], {}

    def op(self, kind, *inputs, **attributes):
        names = [x if isinstance(x, str) else self.constant(x) for x in inputs]
        for name in set(names) & self.weights.keys() - self.stored.keys():
            self.stored[name] = self.weights[name]
        y = f"v{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(kind, names, [y], **attributes))
        return y

    def constant(self, value):
        name = f"c{len(self.stored)}"
        self.stored[name] = np.asarray(value, None if isinstance(value, list) else np.float32)
        return name

    def save(self, name, inputs, outputs, path):
        def value(name, array):
            return onnx.helper.make_tensor_value_info(
                name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )

        graph = onnx.helper.make_graph(
            self.nodes,
            name,
            [value(n, a) for n, a in inputs.items()],
            [onnx.helper.make_empty_tensor_value_info(n) for n in outputs],
            [onnx.numpy_helper.from_array(a, n) for n, a in self.stored.items()],
        )
        for output in graph.output:
            output.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
        opset = [onnx.helper.make_opsetid("", 17)]
        model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=8)
        onnx.save(onnx.shape_inference.infer_shapes(model), path)  # IREE's importer wants the outputs' shapes


def resnet50(net):
    """What models/resnet50.nnc says; returns the outputs."""

    def unit(x, label, stride=1):
        weight = label + ".conv.weight"
        side = net.weights[weight].shape[-1]
        y = net.op("Conv", x, weight, kernel_shape=[side] * 2, strides=[stride] * 2, pads=[side // 2] * 4)
        return net.op(
            "BatchNormalization", y, *(f"{label}.bn.{p}" for p in ("scale", "bias", "mean", "variance")), epsilon=1e-5
        )

    def bottleneck(x, label, stride):
        y = net.op("Relu", unit(x, label + ".reduce"))
        y = unit(net.op("Relu", unit(y, label + ".spatial", stride)), label + ".expand")
        if label.endswith("block0"):
            x = unit(x, label + ".shortcut", stride)
        return net.op("Relu", net.op("Add", y, x))

    x = net.op("Relu", unit("image", "stem", 2))
    x = net.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for stage, blocks in enumerate((3, 4, 6, 3), 1):
        for block in range(blocks):
            x = bottleneck(x, f"stage{stage}.block{block}", 2 if stage > 1 and block == 0 else 1)
    x = net.op("Flatten", net.op("GlobalAveragePool", x))
    x = net.op("Gemm", x, "classifier.weight", "classifier.bias")
    return [net.op("Softmax", x, axis=1)]


def densenet121(net, layers=(6, 12, 24, 16)):
    """What models/densenet121.nnc says."""

    def norm(x, label):
        y = net.op("BatchNormalization", x, *(f"{label}.{p}" for p in ("scale", "bias", "mean", "variance")), epsilon=1e-5)
        return net.op("Relu", y)

    def conv(x, label, stride=1, pad=0):
        side = net.weights[label + ".weight"].shape[-1]
        return net.op("Conv", x, label + ".weight", kernel_shape=[side] * 2, strides=[stride] * 2, pads=[pad] * 4)

    def unit(x, label, pad=0):
        return conv(norm(x, label + ".bn"), label + ".conv", pad=pad)

    x = norm(conv("image", "stem", 2, 3), "stem.bn")
    x = net.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for block, count in enumerate(layers, 1):
        for i in range(count):
            label = f"block{block}.layer{i}"
            x = net.op("Concat", x, unit(unit(x, label + ".bottleneck"), label + ".grow", 1), axis=1)
        if block < len(layers):
            x = net.op("AveragePool", unit(x, f"transition{block}.unit"), kernel_shape=[2, 2], strides=[2, 2])
    x = net.op("Flatten", net.op("GlobalAveragePool", norm(x, "last.bn")))
    return [net.op("Softmax", net.op("Gemm", x, "classifier.weight", "classifier.bias"), axis=1)]


def norm_of(net, x, label):
    return net.op(
        "BatchNormalization", x, *(f"{label}.{p}" for p in ("scale", "bias", "mean", "variance")), epsilon=1e-5
    )


def conv_of(net, x, label, stride=1, pads=None, depthwise=False):
    """With the weight of that label, and its bias if there is one; `pads` are top, left, bottom, right."""
    weight = net.weights[label + ".weight"]
    bias = [label + ".bias"] if label + ".bias" in net.weights else []
    return net.op("Conv", x, label + ".weight", *bias, kernel_shape=list(weight.shape[2:]), strides=[stride] * 2,
                  pads=pads or [weight.shape[2] // 2] * 4, group=weight.shape[0] if depthwise else 1)  # fmt: skip


def mobilenetv2(net):
    """What models/mobilenetv2.nnc says."""

    def unit(x, label, stride=1, depthwise=False):
        return norm_of(net, conv_of(net, x, label + ".conv", stride, None, depthwise), label + ".bn")

    def relu6(x):
        return net.op("Clip", x, 0, 6)

    x, channels = relu6(unit("image", "stem", 2)), 32
    stages = zip((16, 24, 32, 64, 96, 160, 320), (1, 2, 3, 4, 3, 3, 1), (1, 2, 2, 2, 1, 2, 1))
    for stage, (wanted, blocks, stride) in enumerate(stages):
        for block in range(blocks):
            label, here = f"stage{stage}.block{block}", stride if block == 0 else 1
            h = relu6(unit(x, label + ".expand")) if stage else x
            h = unit(relu6(unit(h, label + ".depthwise", here, True)), label + ".project")
            x, channels = net.op("Add", x, h) if here == 1 and channels == wanted else h, wanted
    x = net.op("Flatten", net.op("GlobalAveragePool", relu6(unit(x, "last"))))
    return [net.op("Softmax", net.op("Gemm", x, "classifier.weight", "classifier.bias"), axis=1)]


def separable(net, x, label, stride=1):
    """A depthwise convolution and a pointwise one."""
    h = conv_of(net, x, label + ".depthwise", stride, None, True)
    h = conv_of(net, net.op("Relu", norm_of(net, h, label + ".bn1")), label + ".pointwise")
    return net.op("Relu", norm_of(net, h, label + ".bn2"))


def mobilenetv1(net):
    """What models/mobilenetv1.nnc says."""
    x = net.op("Relu", norm_of(net, conv_of(net, "image", "stem", 2), "bn"))
    for i, stride in enumerate((1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1)):
        x = separable(net, x, f"block{i}", stride)
    x = net.op("Flatten", net.op("GlobalAveragePool", x))
    return [net.op("Softmax", net.op("Gemm", x, "classifier.weight", "classifier.bias"), axis=1)]


def ds_cnn(net):
    """What models/ds_cnn.nnc says."""
    x = net.op("Relu", norm_of(net, conv_of(net, "sound", "stem", 2, [4, 1, 5, 1]), "bn"))
    for i in range(4):
        x = separable(net, x, f"block{i}")
    x = net.op("Flatten", net.op("GlobalAveragePool", x))
    return [net.op("Softmax", net.op("Gemm", x, "classifier.weight", "classifier.bias"), axis=1)]


def bert_base(net, tokens=128, layers=12, heads=12, hidden=768):
    """What models/bert_base.nnc says, in the ops of PyTorch's exporter."""

    def dense(x, label):
        return net.op("Add", net.op("MatMul", x, label + ".weight"), label + ".bias")

    def norm(x, label):
        return net.op("LayerNormalization", x, label + ".scale", label + ".bias", axis=-1, epsilon=1e-12)

    def split(x, axes):
        return net.op("Transpose", net.op("Reshape", x, [0, 0, heads, hidden // heads]), perm=axes)

    def attention(x, label, bias):
        q, k, v = (
            split(dense(x, f"{label}.{part}"), axes)
            for part, axes in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3]))
        )
        scores = net.op("Div", net.op("MatMul", q, k), (hidden / heads) ** 0.5)
        weights = net.op("Softmax", net.op("Add", scores, bias), axis=-1)
        y = net.op("Transpose", net.op("MatMul", weights, v), perm=[0, 2, 1, 3])
        return dense(net.op("Reshape", y, [0, 0, hidden]), label + ".output")

    def gelu(x):
        y = net.op("Add", net.op("Erf", net.op("Div", x, 2**0.5)), 1)
        return net.op("Mul", net.op("Mul", x, y), 0.5)

    mask = net.op("Unsqueeze", net.op("Unsqueeze", "mask", [1]), [2])
    bias = net.op("Mul", net.op("Sub", 1, net.op("Cast", mask, to=onnx.TensorProto.FLOAT)), -10000)
    x = net.op("Add", net.op("Gather", "embeddings.word.table", "token"),
               net.op("Gather", "embeddings.segment.table", "segment"))  # fmt: skip
    x = norm(net.op("Add", x, net.op("Slice", "embeddings.position", [0], [tokens], [0])), "embeddings.norm")
    for i in range(layers):
        a = norm(net.op("Add", attention(x, f"layer{i}.attention", bias), x), f"layer{i}.norm1")
        f = dense(gelu(dense(a, f"layer{i}.inner")), f"layer{i}.outer")
        x = norm(net.op("Add", f, a), f"layer{i}.norm2")
    first = net.op("Squeeze", net.op("Slice", x, [0], [1], [1]), [1])
    return [x, net.op("Tanh", dense(first, "pooler"))]


def gpt2_step(net, layers=12, heads=12, hidden=768):
    """What `step` of models/gpt2.nnc says at the last position of its context, in the form that costs a peer least: keys and values of
    the tokens before are inputs, and are neither copied nor returned, as where a runtime keeps them in place."""

    def dense(x, label):
        return net.op("Add", net.op("MatMul", x, label + ".weight"), label + ".bias")

    def norm(x, label):
        return net.op("LayerNormalization", x, label + ".scale", label + ".bias", axis=-1, epsilon=1e-5)

    def split(x):
        names = [f"{x}.{part}" for part in "qkv"]
        sizes = net.constant([hidden] * 3)
        net.nodes.append(onnx.helper.make_node("Split", [x, sizes], names, axis=1))
        return [net.op("Reshape", y, [heads, 1, hidden // heads]) for y in names]

    def attention(x, label, i):
        q, k, v = split(dense(x, label + ".qkv"))
        before = net.op("MatMul", q, net.op("Transpose", f"keys{i}", perm=[0, 2, 1]))
        itself = net.op("MatMul", q, net.op("Transpose", k, perm=[0, 2, 1]))
        scores = net.op("Div", net.op("Concat", before, itself, axis=2), (hidden / heads) ** 0.5)
        weights, names = net.op("Softmax", scores, axis=-1), [f"{label}.before", f"{label}.itself"]
        net.nodes.append(onnx.helper.make_node("Split", [weights, net.constant([GPT2_PAST, 1])], names, axis=2))
        mixed = net.op("Add", net.op("MatMul", names[0], f"values{i}"), net.op("MatMul", names[1], v))
        return dense(net.op("Reshape", mixed, [1, hidden]), label + ".output")

    def gelu(x):
        cubed = net.op("Mul", net.op("Add", x, net.op("Mul", net.op("Pow", x, 3.0), 0.044715)), (2 / np.pi) ** 0.5)
        return net.op("Mul", net.op("Mul", x, net.op("Add", net.op("Tanh", cubed), 1)), 0.5)

    x = net.op("Add", net.op("Gather", "word.table", "token"), net.op("Gather", "position.table", "at"))
    x = net.op("Reshape", x, [1, hidden])
    for i in range(layers):
        x = net.op("Add", x, attention(norm(x, f"layer{i}.norm1"), f"layer{i}.attention", i))
        h = dense(gelu(dense(norm(x, f"layer{i}.norm2"), f"layer{i}.mlp.inner")), f"layer{i}.mlp.outer")
        x = net.op("Add", x, h)
    logits = net.op("MatMul", norm(x, "norm"), net.op("Transpose", "word.table", perm=[1, 0]))
    return [net.op("Reshape", logits, [-1])]


def resnet50_input(rng):
    return {"image": rng.standard_normal((1, 3, 224, 224), np.float32)}


def bert_base_input(rng):
    mask = np.ones((1, 128), np.int64)
    mask[0, 100:] = 0
    return {"token": rng.integers(0, 30522, (1, 128)), "segment": (np.arange(128)[None] >= 60) * 1, "mask": mask}


def mobilenetv1_input(rng):
    return {"image": rng.standard_normal((1, 3, 96, 96), np.float32)}


def ds_cnn_input(rng):
    return {"sound": rng.standard_normal((1, 1, 49, 10), np.float32)}


def gpt2_step_input(rng):
    """The state's first values, too, which the peers have as inputs of each layer."""
    past = rng.standard_normal((2, 12, 12, GPT2_PAST, 64), np.float32)
    layers = {f"{part}{i}": past[p, i] for p, part in enumerate(("keys", "values")) for i in range(12)}
    return {"token": np.array([1234], np.int32), "at": np.array([GPT2_PAST], np.int32), **layers}


def gpt2_step_state(inputs):
    """By name, what goes to the begin of each head's part of the state."""
    return {part: np.stack([inputs[f"{part}{i}"] for i in range(12)]) for part in ("keys", "values")}


NETWORKS = {
    "resnet50": (resnet50, resnet50_input),
    "densenet121": (densenet121, resnet50_input),
    "mobilenetv2": (mobilenetv2, resnet50_input),
    "mobilenetv1": (mobilenetv1, mobilenetv1_input),
    "ds_cnn": (ds_cnn, ds_cnn_input),
    "bert_base": (bert_base, bert_base_input),
    "gpt2.step": (gpt2_step, gpt2_step_input),
}
