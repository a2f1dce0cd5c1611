"""nnc beside ONNX Runtime and OpenVINO: f32, batch 1, in one process.

    peers.py BUILD [--turns N] [--threads N] [--peer NAME ...] [--worst W] [NETWORK ...]

A network is one of models/ (default: the nineteen rows of ROWS), or a file: net.onnx, net.nnc.  A peer reads the same weights: from the
file built in networks.py, in the ops that exporters write, where that has the network, and else from what `nnc export` writes.
All run on the same input, must agree, and are timed in turns: peak, nnc, peak, ONNX Runtime, peak, OpenVINO, ...  A turn is runs that
fill the caches, for 20 ms at least, and runs that count, for a millisecond at least, in the thread's processor time; the peak is the
loop of multiply-adds of `nnc bench`, of one thread.  With several threads time is that of the clock.  Inputs and outputs are bound
before, and a run is one call into the library.  Shares, and the ratio of each pair, are taken within a turn; what is printed are
medians, and `faster` is the peer of the lesser median.
"""

import argparse
import ctypes
import importlib.util
import json
import math
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
    import onnxruntime

    import networks
except ImportError as error:
    sys.exit(f"""peers.py: {error}
The peers are wanted here only.  In a virtual environment, or with `pip install --user`:
    python3 -m venv /tmp/peers && /tmp/peers/bin/pip install numpy onnx onnxruntime openvino
    /tmp/peers/bin/python3 tests/bench/peers.py build""")

ROOT = pathlib.Path(__file__).resolve().parents[2]
REST = 0.3  # seconds, in which the other's threads cease to spin
WARM = 0.02  # seconds of runs before those that count
COUNTED = 0.001  # seconds of these

ROWS = """resnet50 resnext50 densenet121 squeezenet vgg16 inception_v3 mobilenetv2 mobilenetv3 efficientnet_b0 shufflenetv2
          vit_b16 bert_base gpt2.read gpt2.step resnet8 mobilenetv1 ds_cnn autoencoder lenet digits""".split()

# ---- Ours: input arrays in, a function that runs and returns the outputs ----


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


class Slot(ctypes.Structure):
    _fields_ = [("tensor", TensorInfo), ("offset", ctypes.c_size_t * 2), ("flag", ctypes.c_int32)]


class Block(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_size_t), ("count", ctypes.c_uint32), ("slot", ctypes.POINTER(Slot))]


class Model(ctypes.Structure):  # what stands behind its state is not read
    _fields_ = [
        ("abi", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("entry_count", ctypes.c_uint32),
        ("entry", ctypes.POINTER(Entry)),
        ("arena_bytes", ctypes.c_size_t),
        ("arena_alignment", ctypes.c_size_t),
        ("weights_bytes", ctypes.c_size_t),
        ("weights_checksum", ctypes.c_uint64),
        ("params", Block),
        ("state", Block),
    ]


def aligned(size, alignment=64):
    memory = np.zeros(size + alignment, np.uint8)
    begin = -memory.ctypes.data % alignment
    return memory[begin : begin + size]


def array_of(info, memory):
    """A view of the tensor that lies in the memory, which are bytes."""
    shape = info.shape[: info.rank]
    return memory[: info.bytes].view({b"f32": np.float32, b"i32": np.int32}[info.dtype]).reshape(shape)


def fill_state(block, memory, first):
    """Writes what is known of the states' first values: the begin of each, along every dimension."""
    for slot in block.slot[: block.count]:
        value = first.get(slot.tensor.name.decode())
        if value is not None:
            array_of(slot.tensor, memory[slot.offset[0] :])[tuple(map(slice, value.shape))] = value


def team_of(build, threads):
    """What a run takes to be shared; None for one thread."""
    if threads == 1:
        return None
    runtime = ctypes.CDLL(str(build / "runtime" / "libnnc-runtime.so"))
    runtime.nnc_pool_new.argtypes, runtime.nnc_pool_new.restype = [ctypes.c_uint32], ctypes.c_void_p
    runtime.nnc_pool_team.argtypes, runtime.nnc_pool_team.restype = [ctypes.c_void_p], ctypes.c_void_p
    return runtime.nnc_pool_team(runtime.nnc_pool_new(threads)) or sys.exit("peers.py: no threads to have")


def pointers(arrays):
    return (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))


def open_nnc(folder, graph, inputs, state, team):
    model = Model.in_dll(ctypes.CDLL(str(folder / "libnet.so")), "net_model")
    if model.abi != 5:
        sys.exit("peers.py: the model's descriptor is of another version")
    weights = np.memmap(folder / "net.weights", np.uint8, "r")
    arena, states = aligned(model.arena_bytes), aligned(model.state.bytes)
    fill_state(model.state, states, state)
    entry = next(e for e in model.entry[: model.entry_count] if graph in (None, e.name.decode()))
    x = [inputs[i.name.decode()] for i in entry.input[: entry.input_count]]
    y = [np.zeros(o.shape[: o.rank], np.float32) for o in entry.output[: entry.output_count]]
    ins, outs = pointers(x), pointers(y)
    blocks = [arena.ctypes.data, weights.ctypes.data, None, states.ctypes.data if model.state.bytes else None, team]
    call = entry.run

    def run():
        if call(ins, outs, *blocks) != 0:
            sys.exit("peers.py: the compiled model failed")

    run.keep = x, arena, weights, states  # the addresses are theirs
    return run, y


# ---- The peers, alike ----


def open_onnxruntime(path, inputs, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    binding, names = session.io_binding(), [o.name for o in session.get_outputs()]
    kept = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in inputs.items()}
    for i in session.get_inputs():
        binding.bind_ortvalue_input(i.name, kept[i.name])
    results = [onnxruntime.OrtValue.ortvalue_from_numpy(y) for y in session.run(None, inputs)]
    for name, result in zip(names, results):
        binding.bind_ortvalue_output(name, result)

    def run():
        session.run_with_iobinding(binding)

    run.keep = kept
    run()
    return run, [result.numpy() for result in results]


class OpenVino:
    """OpenVINO's library in C, of which we need six functions; all return a status."""

    def __init__(self, folder):
        self.library = ctypes.CDLL(str(next((folder / "libs").glob("libopenvino_c.so*"))))

    def __call__(self, name, *arguments):
        if status := getattr(self.library, "ov_" + name)(*arguments):
            sys.exit(f"peers.py: OpenVINO's {name} returned {status}")

    def make(self, name, *arguments):
        made = ctypes.c_void_p()
        self(name, *arguments, ctypes.byref(made))
        return made

    def compile(self, path, options):
        """An infer request.  The order of arguments is that of a C function with varying ones."""
        core, made = self.make("core_create"), ctypes.c_void_p()
        model = self.make("core_read_model", core, str(path).encode(), None)
        words = [ctypes.c_char_p(word.encode()) for option in options.items() for word in option]
        count = ctypes.c_size_t(len(words))
        self("core_compile_model", core, model, b"CPU", count, ctypes.byref(made), *words)
        return self.make("compiled_model_create_infer_request", made)

    def memory(self, request, name, like):
        """The request's own tensor as an array."""
        tensor = self.make("infer_request_get_tensor", request, name.encode())
        at = self.make("tensor_data", tensor)
        return np.ctypeslib.as_array(ctypes.cast(at, ctypes.POINTER(ctypes.c_uint8)), (like.nbytes,)).view(like.dtype)


def open_openvino(path, inputs, threads):
    import openvino

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    library = OpenVino(pathlib.Path(openvino.__file__).parent)
    request = library.compile(
        path,
        {
            "INFERENCE_NUM_THREADS": str(threads),
            "NUM_STREAMS": "1",
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32",
            "ENABLE_CPU_PINNING": "NO",
        },
    )
    for i in session.get_inputs():
        library.memory(request, i.name, inputs[i.name])[:] = inputs[i.name].ravel()
    call = library.library.ov_infer_request_infer

    def run():
        if call(request):
            sys.exit("peers.py: OpenVINO failed")

    run()
    shapes = [(o.name, np.empty(o.shape, np.float32)) for o in session.get_outputs()]
    return run, [library.memory(request, name, like).reshape(like.shape) for name, like in shapes]


PEERS = {"onnxruntime": open_onnxruntime, "openvino": open_openvino}


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


def seconds(run, clock=time.thread_time, count=1):
    begin = clock()
    for _ in range(count):
        run()
    return (clock() - begin) / count


def compare(ours, theirs, most):
    """Shows that both are the same network."""
    worst = max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(ours, theirs, strict=True))
    if not worst < most:
        sys.exit(f"peers.py: the outputs differ by {worst:.1e} of the largest value")
    return worst


def warm(run):
    """Caches filled, and threads awake; returns how many runs count."""
    begin, runs = time.perf_counter(), 0
    while runs < 1 or time.perf_counter() - begin < WARM:
        run()
        runs += 1
    return math.ceil(COUNTED / WARM * runs)


def measure(runs, peak, turns, clock):
    """Per turn and runner: seconds, and the peak around it."""
    rows = []
    for _ in range(turns):
        row, before = [], peak()
        for run in runs:
            if clock is time.perf_counter:
                time.sleep(REST)
            second, after = seconds(run, clock, warm(run)), peak()
            row.append((second, (before + after) / 2))
            before = after
        rows.append(row)
    return rows


def show(name, flop, worst, rows, peers):
    """Prints the row; returns the ratio of the faster peer's time by ours."""
    median = statistics.median
    print(f"{name}: {flop * 1e-9:.2f} GFLOP, peak {median(r[0][1] for r in rows) * 1e-9:.1f} GFLOP/s, "
          f"outputs within {worst:.0e}, {len(rows)} turns")  # fmt: skip
    medians, ratios = [], []
    for i, label in enumerate(["nnc", *peers]):
        times, pairs = [r[i][0] for r in rows], sorted(r[i][0] / r[0][0] for r in rows)
        share = median(flop / r[i][0] / r[i][1] for r in rows)
        tenth = len(pairs) // 10
        beside = f", {median(pairs):6.3f} of nnc's time (80 % between {pairs[tenth]:.3f} and {pairs[-1 - tenth]:.3f})"
        print(f"  {label:12} {median(times) * 1e3:9.3f} ms, least {min(times) * 1e3:9.3f}"
              f" {share * 100:8.1f} % of the peak{beside if i else ''}")  # fmt: skip
        medians.append(median(times))
        ratios.append(median(pairs))
    faster = min(range(1, len(medians)), key=medians.__getitem__)
    print(f"  faster: {peers[faster - 1]}, {ratios[faster]:.3f} of nnc's time", flush=True)
    return medians, ratios, faster


def drawn_inputs(path):
    """By name, of the model's inputs: floats, and integers that may be tokens."""
    rng = np.random.default_rng(2)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    types = {"tensor(int32)": np.int32, "tensor(int64)": np.int64}
    return {i.name: rng.standard_normal(i.shape, np.float32) if i.type == "tensor(float)"
            else rng.integers(0, 2, i.shape).astype(types[i.type]) for i in session.get_inputs()}  # fmt: skip


def quiet(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def export(nnc, model, graph, folder):
    """The peers' file of a model, and inputs."""
    if model.suffix == ".onnx":
        return model, drawn_inputs(model), []
    peer = folder / "model.onnx"
    quiet(nnc, "export", model, "-o", peer, *(["--graph", graph] if graph else []))
    return peer, drawn_inputs(peer), []


def build(nnc, name, model, folder):
    """That of a network of networks.py, inputs, and flags that give nnc the same weights."""
    make, make_input = networks.NETWORKS[name]
    weights, inputs = networks.draw_weights(nnc, model), make_input(np.random.default_rng(2))
    networks.write_safetensors(weights, folder / "drawn.safetensors")
    net = networks.Net(weights)
    net.save(model.stem, inputs, make(net), folder / "model.onnx")
    return folder / "model.onnx", inputs, ["--weights-from", folder / "drawn.safetensors"]


def bench(nnc, name, how, folder):
    stem, _, graph = name.partition(".")
    model = pathlib.Path(name) if name.endswith((".onnx", ".nnc")) else ROOT / "models" / f"{stem}.nnc"
    graph = graph if model.stem == stem else ""
    if name in networks.NETWORKS:
        peer, inputs, flags = build(nnc, name, model, folder)
    else:
        peer, inputs, flags = export(nnc, model, graph, folder)
    quiet(nnc, "compile", model, "--target", "host", "--cc", how.cc, "--threads", str(how.threads), "--name", "net",
          "--emit", "c,lib", "--weights", "file", *flags, "-o", folder)  # fmt: skip
    source = (folder / "net.c").read_text()
    target = re.search(r" for (\S+)\. \*/", source).group(1)
    cc_flags = re.search(r"Compile with: (.*) \*/", source).group(1).split()
    words = ["--seconds", "0", "--format", "json", "--target", target, *(["--graph", graph] if graph else [])]
    flop = json.loads(subprocess.check_output([nnc, "bench", model, *words], stderr=subprocess.DEVNULL))["flop"]
    state = networks.gpt2_step_state(inputs) if name == "gpt2.step" else {}
    ours, y = open_nnc(folder, graph or None, inputs, state, team_of(how.build, how.threads))
    peers = [PEERS[p](peer, inputs, how.threads) for p in how.peer]
    ours()
    worst = max(compare(y, z, how.worst) for _, z in peers)
    clock = time.perf_counter if how.threads > 1 else time.thread_time
    peak = open_peak(target, how.cc, cc_flags, folder)
    rows = measure([ours, *(run for run, _ in peers)], peak, how.turns, clock)
    return show(f"{name} for {target}", flop, worst, rows, how.peer)


def show_table(found, peers):
    """As it stands in docs/performance.md."""
    print(f"\n| | nnc | {' | '.join(peers)} | the faster's time by ours |\n|---|---|{'---|' * len(peers)}---|")
    for name, (medians, ratios, faster) in found.items():
        theirs = " | ".join(f"{m * 1e3:.3f} ms" for m in medians[1:])
        print(f"| {name} | {medians[0] * 1e3:.3f} ms | {theirs} | {ratios[faster]:.2f} |")
    ratios = [ratios[faster] for _, ratios, faster in found.values()]
    print(f"geometric mean {math.exp(statistics.fmean(map(math.log, ratios))):.3f}, least {min(ratios):.3f}")


def main():
    parser = argparse.ArgumentParser(description="nnc beside its peers, f32, batch 1")
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("network", nargs="*", help="one of models/, gpt2.read, gpt2.step, or a file: .onnx or .nnc")
    parser.add_argument("--turns", type=int, default=25)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--peer", action="append", choices=PEERS, help="default: all that there are")
    parser.add_argument("--worst", type=float, default=1e-3, help="how far the outputs may be apart, of the largest value")
    parser.add_argument("--cc", default="clang", help="the C compiler for nnc's library and the peak's loop")
    args = parser.parse_intermixed_args()
    args.build, args.peer = args.build.resolve(), args.peer or [p for p in PEERS if importlib.util.find_spec(p)]
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-args.threads :])
    found = {}
    for name in args.network or ROWS:
        with tempfile.TemporaryDirectory() as folder:
            found[name] = bench(args.build / "nnc", name, args, pathlib.Path(folder))
    show_table(found, args.peer)


if __name__ == "__main__":
    main()
