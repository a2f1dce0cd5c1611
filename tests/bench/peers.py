"""nnc beside ONNX Runtime: convolutional networks and bert_base, f32, batch 1, in one process.

    peers.py BUILD [--turns N] [--threads N] [MODEL ...]      default: 25 turns, one thread, all of NETWORKS; or files: net.onnx, net.nnc

Of a file both read the same weights, and inputs are drawn; its extents must be fixed; one of text is exported for the peer.  Of a name the script draws weights (seeded) for the parameters that `nnc` names, stores them as .safetensors for nnc and in an
ONNX file built here, in the ops that exporters write, so that ONNX Runtime's optimiser finds the patterns it knows.
Both run on the same input, must agree, and are timed in turns: peak, nnc, peak, ONNX Runtime, ...  A turn is runs that
fill the caches, for 20 ms at least, and a run that counts, in the thread's processor time; the peak is the loop of multiply-adds of
`nnc bench`, of one thread.  With several threads time is that of the clock.  Shares, and the ratio of each pair, are taken within a turn; what is printed are medians.
"""

import argparse
import ctypes
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
    import onnx
    import onnxruntime
except ImportError as error:
    sys.exit(f"""peers.py: {error}
The peer is wanted here only.  In a virtual environment, or with `pip install --user`:
    python3 -m venv /tmp/peers && /tmp/peers/bin/pip install numpy onnx onnxruntime
    /tmp/peers/bin/python3 tests/bench/peers.py build""")

ROOT = pathlib.Path(__file__).resolve().parents[2]
REST = 0.3  # seconds, in which the other's threads cease to spin
WARM = 0.02  # seconds of runs before the one that counts
WORST = 1e-3  # of the largest value: how far the outputs may be apart

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
        onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), path)


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


NETWORKS = {
    "resnet50": (resnet50, resnet50_input),
    "densenet121": (densenet121, resnet50_input),
    "mobilenetv2": (mobilenetv2, resnet50_input),
    "mobilenetv1": (mobilenetv1, mobilenetv1_input),
    "ds_cnn": (ds_cnn, ds_cnn_input),
    "bert_base": (bert_base, bert_base_input),
}

# ---- The two runners: input arrays in, a function that runs and returns the outputs ----


class TensorInfo(ctypes.Structure):  # runtime/nnc_model.h
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_char_p),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("bytes", ctypes.c_size_t),
    ]


Pointers = ctypes.POINTER(ctypes.c_void_p)


Run = ctypes.CFUNCTYPE(ctypes.c_int, Pointers, Pointers, *[ctypes.c_void_p] * 5)


class Entry(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("input_count", ctypes.c_uint32),
        ("output_count", ctypes.c_uint32),
        ("input", ctypes.POINTER(TensorInfo)),
        ("output", ctypes.POINTER(TensorInfo)),
        ("updated_params", ctypes.c_uint32),
        ("updated_states", ctypes.c_uint32),
        ("packed", ctypes.c_int32),
        ("run", Run),
    ]


class Model(ctypes.Structure):
    _fields_ = [
        ("abi", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("entry_count", ctypes.c_uint32),
        ("entry", ctypes.POINTER(Entry)),
        ("arena_bytes", ctypes.c_size_t),
        ("arena_alignment", ctypes.c_size_t),
        ("weights_bytes", ctypes.c_size_t),
        ("weights_checksum", ctypes.c_uint64),
    ]


def aligned(size, alignment=64):
    memory = np.zeros(size + alignment, np.uint8)
    begin = -memory.ctypes.data % alignment
    return memory[begin : begin + size]


def team_of(build, threads):
    """What a run takes to be shared; None for one thread."""
    if threads == 1:
        return None
    runtime = ctypes.CDLL(str(build / "runtime" / "libnnc-runtime.so"))
    runtime.nnc_pool_new.argtypes, runtime.nnc_pool_new.restype = [ctypes.c_uint32], ctypes.c_void_p
    runtime.nnc_pool_team.argtypes, runtime.nnc_pool_team.restype = [ctypes.c_void_p], ctypes.c_void_p
    return runtime.nnc_pool_team(runtime.nnc_pool_new(threads)) or sys.exit("peers.py: no threads to have")


def open_nnc(folder, name, inputs, team):
    model = Model.in_dll(ctypes.CDLL(str(folder / f"lib{name}.so")), f"{name}_model")
    if model.abi != 5:
        sys.exit("peers.py: the model's descriptor is of another version")
    weights = np.memmap(folder / f"{name}.weights", np.uint8, "r")
    arena = aligned(model.arena_bytes)
    entry = model.entry[0]
    x = [inputs[entry.input[i].name.decode()] for i in range(entry.input_count)]
    y = [np.zeros(entry.output[i].shape[: entry.output[i].rank], np.float32) for i in range(entry.output_count)]
    ins = (ctypes.c_void_p * len(x))(*(a.ctypes.data for a in x))
    outs = (ctypes.c_void_p * len(y))(*(a.ctypes.data for a in y))

    def run():
        if entry.run(ins, outs, arena.ctypes.data, weights.ctypes.data, None, None, team) != 0:
            sys.exit("peers.py: the compiled model failed")
        return y

    run.keep = x  # the addresses in `ins` are theirs
    return run


def open_onnx(path, inputs, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, inputs)


def open_peak(target, cc, flags, folder):
    """The loop of frontends/cli/peak.c: returns a function that measures floating-point operations per second."""
    lanes, sums = {"x86-64-v4": (16, 24), "x86-64-v3": (8, 12)}[target]
    names = [f"s{i}" for i in range(sums)]
    source = folder / "peak.c"
    source.write_text(
        f"typedef float v __attribute__((vector_size({4 * lanes})));\n"
        "float peak(float seed, long steps)\n{\n    v x = (v){0} + seed, y = (v){0} + 1e-9f;\n"
        + "".join(f"    v {s} = (v){{0}} + {i};\n" for i, s in enumerate(names))
        + "    for (long i = 0; i < steps; i++) {\n"
        + "".join(f"        {s} = {s} * x + y;\n" for s in names)
        + f"    }}\n    v sum = {' + '.join(names)};\n    return sum[0];\n}}\n"
    )
    subprocess.run([cc, *flags, "-ffp-contract=fast", "-shared", "-fPIC", source, "-o", folder / "peak.so"], check=True)
    loop = ctypes.CDLL(str(folder / "peak.so")).peak
    loop.argtypes, loop.restype = [ctypes.c_float, ctypes.c_long], ctypes.c_float
    steps = 200000
    return lambda: 2 * lanes * sums * steps / seconds(lambda: loop(0.5, steps))


# ---- Measuring ----


def seconds(run, clock=time.thread_time):
    begin = clock()
    run()
    return clock() - begin


def compare(ours, theirs):
    """Shows that both are the same network."""
    worst = max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(ours, theirs))
    if not worst < WORST:
        sys.exit(f"peers.py: the outputs differ by {worst:.1e} of the largest value")
    return worst


def warm(run):
    """Caches filled, and threads awake."""
    begin = time.perf_counter()
    run()
    while time.perf_counter() - begin < WARM:
        run()


def measure(ours, theirs, peak, turns, clock):
    """Per turn: seconds of both, and the peak around each."""
    rows = []
    for _ in range(turns):
        row, before = [], peak()
        for run in (ours, theirs):
            if clock is time.perf_counter:
                time.sleep(REST)
            warm(run)
            second, after = seconds(run, clock), peak()
            row += [second, (before + after) / 2]
            before = after
        rows.append(row)
    return rows


def show(name, flop, worst, rows):
    median = statistics.median
    print(f"{name}: {flop * 1e-9:.2f} GFLOP, peak {median(r[1] for r in rows) * 1e-9:.1f} GFLOP/s, "
          f"outputs within {worst:.0e}, {len(rows)} turns")  # fmt: skip
    for label, i in (("nnc", 0), ("onnxruntime " + onnxruntime.__version__, 2)):
        share = median(flop / r[i] / r[i + 1] for r in rows)
        least = min(r[i] for r in rows)
        print(f"  {label:20} {median(r[i] for r in rows) * 1e3:9.2f} ms, least {least * 1e3:9.2f}"
              f" {share * 100:8.1f} % of the peak")  # fmt: skip
    ratios = sorted(r[2] / r[0] for r in rows)
    tenth = len(ratios) // 10
    print(f"  onnxruntime's time by nnc's, pair by pair: {median(ratios):.3f}"
          f" (80 % between {ratios[tenth]:.3f} and {ratios[-1 - tenth]:.3f})", flush=True)  # fmt: skip


def drawn_inputs(path):
    """By name, of the model's inputs: floats, and integers that may be tokens."""
    rng = np.random.default_rng(2)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return {i.name: rng.standard_normal(i.shape, np.float32) if i.type == "tensor(float)"
            else rng.integers(0, 2, i.shape).astype(i.type[7:-1]) for i in session.get_inputs()}  # fmt: skip


def bench_file(nnc, path, cc, how, folder):
    peer = path
    if path.suffix == ".nnc":
        peer = folder / "model.onnx"
        subprocess.run([nnc, "export", path, "-o", peer], check=True, stdout=subprocess.DEVNULL)
    inputs, options = drawn_inputs(peer), ["--target", "host", "--cc", cc, "--threads", str(how.threads)]
    subprocess.run([nnc, "compile", path, *options, "--name", "net", "--emit", "c,lib", "--weights", "file", "-o", folder],
                   check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    show_turns(nnc, path, peer, inputs, path.stem, "net", cc, how, folder)


def bench(nnc, name, cc, how, folder):
    build, make_input = NETWORKS[name]
    model = ROOT / "models" / f"{name}.nnc"
    weights, inputs = draw_weights(nnc, model), make_input(np.random.default_rng(2))
    write_safetensors(weights, folder / "drawn.safetensors")
    net = Net(weights)
    net.save(name, inputs, build(net), folder / "model.onnx")
    words = [nnc, "compile", model, "--target", "host", "--emit", "c,lib", "--weights", "file", "--cc", cc, "--threads", str(how.threads)]
    subprocess.run([*words, "--weights-from", folder / "drawn.safetensors", "-o", folder],
                   check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    show_turns(nnc, model, folder / "model.onnx", inputs, name, name, cc, how, folder)


def show_turns(nnc, model, peer, inputs, label, name, cc, how, folder):
    source = (folder / f"{name}.c").read_text()
    target = re.search(r" for (\S+)\. \*/", source).group(1)
    flags = re.search(r"Compile with: (.*) \*/", source).group(1).split()
    counted = subprocess.check_output([nnc, "bench", model, "--seconds", "0", "--format", "json", "--target", target])
    team, clock = team_of(how.build, how.threads), time.perf_counter if how.threads > 1 else time.thread_time
    ours, theirs = open_nnc(folder, name, inputs, team), open_onnx(peer, inputs, how.threads)
    worst = compare(ours(), theirs())
    rows = measure(ours, theirs, open_peak(target, cc, flags, folder), how.turns, clock)
    show(f"{label} for {target}", json.loads(counted)["flop"], worst, rows)


def main():
    parser = argparse.ArgumentParser(description="nnc beside ONNX Runtime, f32, batch 1")
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("model", nargs="*", help=" or ".join(NETWORKS) + ", or a file that ends with .onnx or .nnc")
    parser.add_argument("--turns", type=int, default=25)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cc", default="clang", help="the C compiler for nnc's library and the peak's loop")
    args = parser.parse_args()
    args.build = args.build.resolve()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-args.threads:])
    for name in args.model or NETWORKS:
        with tempfile.TemporaryDirectory() as folder:
            run, what = (bench_file, pathlib.Path(name)) if name.endswith((".onnx", ".nnc")) else (bench, name)
            run(args.build / "nnc", what, args.cc, args, pathlib.Path(folder))


if __name__ == "__main__":
    main()
