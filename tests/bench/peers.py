"""nnc beside ONNX Runtime, OpenVINO, PyTorch, JAX and IREE: f32, batch 1, in one process.

    peers.py BUILD [--turns N] [--threads N] [--peer NAME ...] [--worst W] [NETWORK ...]

A network is one of models/ (default: ROWS), or a file: net.onnx, net.nnc.  A peer reads the same weights: from the file built in
networks.py, in the ops that exporters write, where that has the network, and else from what `nnc export` writes.  PyTorch and
JAX, which read no such file, carry it out op by op (peers/graph.py) and compile what they trace.

All run on the same input, must agree, and are timed in turns: peak, nnc, peak, ONNX Runtime, peak, OpenVINO, ...  A turn is runs
that fill the caches, for 20 ms at least, and runs that count, for a millisecond at least, in the process's processor time; the
peak is the loop of multiply-adds of `nnc bench`, of one thread.  With several threads time is that of the clock.  Inputs and
outputs are bound before where a peer lets them, and a run is one call into the library.

Of the ways in which a peer can run a network (layouts, frozen weights) the fastest is taken, and named.  Shares, and the ratio of
each pair, are taken within a turn; what is printed are medians, and `faster` is the peer of the least.  What a peer cannot do is
told, with its reason, and does not end the others; the exit status is 1 where outputs differ.
"""

import argparse
import concurrent.futures
import ctypes
import json
import math
import multiprocessing
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

    import networks
    from descriptor import aligned, array_of, open_model, pointers, team_of
    from peers import PEERS, clock_of, environment, is_here, open_peer, reason
    from peers.graph import ends_of
except ImportError as error:
    sys.exit(f"""peers.py: {error}
The peers are wanted here only.  A script makes an environment for them:
    tests/bench/peers/install.sh /tmp/peers
    /tmp/peers/bin/python3 tests/bench/peers.py build""")

ROOT = pathlib.Path(__file__).resolve().parents[2]
REST = 0.3  # seconds, in which the other's threads cease to spin
WARM = 0.02  # seconds of runs before those that count
COUNTED = 0.001  # seconds of these

ROWS = """resnet50 resnext50 densenet121 squeezenet vgg16 inception_v3 mobilenetv2 mobilenetv3 efficientnet_b0 shufflenetv2
          vit_b16 bert_base gpt2.read gpt2.step resnet8 mobilenetv1 ds_cnn autoencoder lenet digits""".split()

# ---- Ours: input arrays in, a function that runs and returns the outputs ----


def fill_state(block, memory, first):
    """Writes what is known of the states' first values: the begin of each, along every dimension."""
    for slot in block.slot[: block.count]:
        value = first.get(slot.tensor.name.decode())
        if value is not None:
            array_of(slot.tensor, memory[slot.offset[0] :])[tuple(map(slice, value.shape))] = value


def open_nnc(folder, graph, inputs, state, team):
    model = open_model(folder / "libnet.so", "net")
    weights = np.memmap(folder / "net.weights", np.uint8, "r") if model.weights_bytes else aligned(0)
    arena, states = aligned(model.arena_bytes), aligned(model.state.bytes)
    fill_state(model.state, states, state)
    entry = next(e for e in model.entry[: model.entry_count] if graph in (None, e.name.decode()))
    named = {re.sub(r"[^\w.]+", ".", name): array for name, array in inputs.items()}  # as `nnc import` names them: onnx::Cast_0 is onnx.Cast_0
    x = [named[i.name.decode()] for i in entry.input[: entry.input_count]]
    y = [array_of(o, aligned(o.bytes)) for o in entry.output[: entry.output_count]]
    ins, outs = pointers(x), pointers(y)
    blocks = [arena.ctypes.data, weights.ctypes.data, None, states.ctypes.data if model.state.bytes else None, team]
    call = entry.run

    def run():
        if call(ins, outs, *blocks) != 0:
            sys.exit("peers.py: the compiled model failed")

    run.keep = model, x, arena, weights, states  # the addresses are theirs
    return run, y


def open_peak(target, cc, flags, folder):
    """The loop of frontends/cli/peak.c: returns a function that measures floating-point operations per second."""
    lanes, sums = (16, 24) if target.startswith("x86-64-v4") else (8, 12)
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


def seconds(run, clock=time.process_time, count=1):
    begin = clock()
    for _ in range(count):
        run()
    return (clock() - begin) / count


def difference(ours, theirs):
    """Of the outputs, by the largest value."""
    return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(ours, theirs, strict=True))


class OutputsDiffer(Exception):
    pass


def open_peers(names, how, y, *network):
    """By name: what runs each that can, how far its outputs are from ours at most, and why the others cannot."""
    runs, worst, cannot = {}, 0, {}
    for name in names:
        try:
            run, z = open_peer(name, *network)
            apart = difference(y, z)
            if not apart < how.worst:
                raise OutputsDiffer(f"by {apart:.1e} of the largest value")
            runs[name], worst = run, max(worst, apart)
        except Exception as error:  # whatever a library throws
            cannot[name] = f"{type(error).__name__}: {reason(error)}"
    return runs, worst, cannot


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


def show(name, flop, worst, rows, peers, cannot):
    """Prints the row; returns by name the median and the ratio by ours."""
    median = statistics.median
    print(f"{name}: {flop * 1e-9:.2f} GFLOP, peak {median(r[0][1] for r in rows) * 1e-9:.1f} GFLOP/s, "
          f"outputs within {worst:.0e}, {len(rows)} turns")  # fmt: skip
    found = {}
    for i, (label, run) in enumerate(peers.items()):
        times, pairs = [r[i][0] for r in rows], sorted(r[i][0] / r[0][0] for r in rows)
        share = median(flop / r[i][0] / r[i][1] for r in rows)
        tenth = len(pairs) // 10
        beside = f", {median(pairs):6.3f} of nnc's time (80 % between {pairs[tenth]:.3f} and {pairs[-1 - tenth]:.3f})"
        print(f"  {label:12} {median(times) * 1e3:9.3f} ms, least {min(times) * 1e3:9.3f}"
              f" {share * 100:8.1f} % of the peak{beside if i else ''}"
              f"{' - ' + run.way if hasattr(run, 'way') else ''}")  # fmt: skip
        found[label] = median(times), median(pairs)
    for label, why in cannot.items():
        print(f"  {label:12} cannot: {why}")
    if len(found) > 1:
        print(f"  faster: {faster_of(found)}, {found[faster_of(found)][1]:.3f} of nnc's time")
    sys.stdout.flush()
    return found


def faster_of(found):
    return min((peer for peer in found if peer != "nnc"), key=found.get, default=None)


def drawn_inputs(path):
    """By name, of the model's inputs: floats, and integers that may be tokens."""
    rng = np.random.default_rng(2)
    return {name: rng.standard_normal(shape, np.float32) if dtype == np.float32 else rng.integers(0, 2, shape).astype(dtype)
            for name, dtype, shape in ends_of(path)[0]}  # fmt: skip


def quiet(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def export(nnc, model, graph, folder):
    """The peers' file of a model, and inputs."""
    if model.suffix == ".onnx":
        return model, drawn_inputs(model), []
    peer = folder / "model.onnx"
    quiet(nnc, "export", model, "-o", peer, "--flat", *(["--graph", graph] if graph else []))
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
    ours, y = open_nnc(folder, graph or None, inputs, state, team_of(how.build / "runtime/libnnc-runtime.so", how.threads))
    ours()
    runs, worst, cannot = open_peers(how.peer, how, y, peer, inputs, how.threads, folder)
    peak, runs = open_peak(target, how.cc, cc_flags, folder), {"nnc": ours, **runs}
    rows = measure(runs.values(), peak, how.turns, clock_of(how.threads))
    return show(f"{name} for {target}", flop, worst, rows, runs, cannot), cannot


def alone(function, *arguments):
    """What it returns, from a process of its own: memory is given back, and a peer that crashes leaves the other networks."""
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        try:
            return pool.submit(function, *arguments).result()
        except concurrent.futures.process.BrokenProcessPool:
            print("  a peer has ended the process", flush=True)
            return {}, {"one of them": "it has ended the process; ask for one at a time by --peer"}


def mean(ratios):
    return math.exp(statistics.fmean(map(math.log, ratios)))


def show_table(table, peers):
    """As it stands in docs/performance.md: times, and in parentheses how many of ours they are."""
    print(f"\n| | nnc | {' | '.join(peers)} |\n|---|---|{'---|' * len(peers)}")
    for name, (found, _) in table.items():
        cells = [f"{found[p][0] * 1e3:.3f} ms ({found[p][1]:.2f})" if p in found else "-" for p in peers]
        print(f"| {name} | {found['nnc'][0] * 1e3:.3f} ms | {' | '.join(cells)} |" if found else f"| {name} | - |")
    for name, (_, cannot) in table.items():
        for peer, why in cannot.items():
            print(f"{name}, {peer}: {why}")
    rows = [found for found, _ in table.values() if len(found) > 1]
    ratios = {p: [found[p][1] for found in rows if p in found] for p in peers}
    ratios["the faster"] = [found[faster_of(found)][1] for found in rows]
    for label, values in ratios.items():
        if values:
            print(f"{label}: geometric mean {mean(values):.3f} of {len(values)}, least {min(values):.3f}")


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
    args.build, here = args.build.resolve(), [p for p in PEERS if is_here(p)]
    if left := [p for p in args.peer or PEERS if p not in here]:
        print(f"not here, and left out: {', '.join(left)}")
    args.peer = [p for p in args.peer or here if p in here]
    os.environ.update(environment(args.threads))
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-args.threads :])
    table = {}
    for name in args.network or ROWS:
        with tempfile.TemporaryDirectory() as folder:
            table[name] = alone(bench, args.build / "nnc", name, args, pathlib.Path(folder))
    show_table(table, args.peer)
    sys.exit(any(why.startswith(OutputsDiffer.__name__) for _, cannot in table.values() for why in cannot.values()))


if __name__ == "__main__":
    main()
