"""Training steps of nnc beside PyTorch, JAX and llm.c: f32, the same networks, in turns, on one core or several.

    training.py BUILD [--turns N] [--threads N] [--llmc FOLDER] [MODEL ...]      default: 5 turns, one thread, all of MODELS

Each peer is a process of its own, which builds the network, makes its steps on batches that differ, and is asked for
a few steps at a time: nnc, PyTorch, JAX, nnc, ...  Times are medians over the turns of the mean of a turn's steps, of one
thread those of the processor, so that other work on the machine counts little, of several those of the clock;
memory is what the process takes at most above what it took once the library was loaded.  PyTorch is eager, in
channels_last and with fused optimisers; JAX is compiled and gives its state away; of llm.c, train_gpt2.c of the
folder is built with gcc -Ofast, and makes the steps of gpt2 alone.  A peer that is not here is left out.
"""

import argparse
import ctypes
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from peers import environment

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = {  # name: (file, constants of the graph, what they are called in the networks below)
    "mnist": ROOT / "models/owl/mnist.nnc",
    "resnet8": ROOT / "tests/bench/training/resnet8.nnc",
    "lstm": ROOT / "tests/bench/training/lstm.nnc",
    "gpt": ROOT / "tests/bench/training/gpt.nnc",
    "gpt2": ROOT / "tests/bench/training/gpt2.nnc",
}
STEPS = {"mnist": 5, "resnet8": 10, "lstm": 5, "gpt": 1, "gpt2": 1}  # in a turn
BATCHES = 4
PEERS = {"nnc": "nnc", "torch": "PyTorch", "jax": "JAX", "llmc": "llm.c"}


def batches(name):
    """Arrays of some batches, in the order of the graph's inputs."""
    import numpy as np

    rng = np.random.default_rng(1)
    normal = lambda *shape: rng.standard_normal(shape, np.float32)
    index = lambda most, *shape: rng.integers(0, most, shape)
    make = {
        "mnist": lambda i: [normal(100, 1, 28, 28), index(10, 100), np.int64(i)],
        "resnet8": lambda i: [normal(32, 3, 32, 32), index(10, 32)],
        "lstm": lambda i: [normal(100, 32, 128), normal(32, 256)],
        "gpt": lambda i: [index(65, 4, 256), index(65, 4, 256)],
        "gpt2": lambda i: [index(50257, 1, 64), index(50257, 1, 64)],
    }[name]
    return [make(i) for i in range(BATCHES)]


# ---- nnc ----


def nnc_stepper(name, folder, threads=1):
    import numpy as np

    from descriptor import aligned, open_model, pointers, team_of

    folder = pathlib.Path(folder)
    model = open_model(folder / f"lib{name}.so", name)
    block = lambda size: aligned(max(size, 1))
    weights = block(model.weights_bytes)
    if model.weights_bytes:
        (file,) = folder.glob("*.weights")
        weights[:] = np.fromfile(file, np.uint8, model.weights_bytes)
    keep = [weights, *(block(size) for size in (model.arena_bytes, model.params.bytes, model.state.bytes))]
    weights, arena, params, state = (memory.ctypes.data for memory in keep)
    if model.params_init and model.params_init(params, 1, weights) or model.state_init and model.state_init(state, weights):
        sys.exit("the blocks cannot be filled")
    entry = model.entry[0]
    outputs = [np.empty(max(1, info.bytes // 4), np.float32) for info in entry.output[: entry.output_count]]
    out, team = pointers(outputs), team_of(folder / "libnnc-runtime.so", threads)

    def step(arrays):
        arrays = [np.ascontiguousarray(a) for a in arrays]
        if entry.run(pointers(arrays), out, arena, weights, params, state, team):
            sys.exit("the step fails")
        return float(outputs[0][0])

    step.keep = keep, model
    step.planned = model.arena_bytes + model.params.bytes + model.state.bytes + model.weights_bytes
    return step


# ---- PyTorch ----


def torch_network(name):
    import torch
    from torch import nn
    import torch.nn.functional as F

    class Mnist(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.hidden, self.out = nn.Conv2d(1, 32, 5, padding=2), nn.Linear(6272, 1024), nn.Linear(1024, 10)

        def forward(self, image, label, seed):
            h = F.dropout(F.max_pool2d(F.relu(self.conv(image / 256)), 2), 0.1)
            return F.cross_entropy(self.out(F.relu(self.hidden(h.flatten(1)))), label)

    class Norm(nn.Module):
        def __init__(self, cin, cout, size, stride=1, norm=True):
            super().__init__()
            self.conv = nn.Conv2d(cin, cout, size, stride, size // 2)
            self.norm = nn.BatchNorm2d(cout) if norm else nn.Identity()

        def forward(self, x):
            return self.norm(self.conv(x))

    class Block(nn.Module):
        def __init__(self, cin, cout, stride):
            super().__init__()
            self.a, self.b = Norm(cin, cout, 3, stride), Norm(cout, cout, 3)
            self.short = nn.Identity() if stride == 1 and cin == cout else nn.Conv2d(cin, cout, 1, stride)

        def forward(self, x):
            return F.relu(self.b(F.relu(self.a(x))) + self.short(x))

    class ResNet8(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = Norm(3, 16, 3)
            self.stack = nn.Sequential(Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2))
            self.out = nn.Linear(64, 10)

        def forward(self, image, label):
            return F.cross_entropy(self.out(self.stack(F.relu(self.first(image))).mean((2, 3))), label)

    class Lstm(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(128, 256)

        def forward(self, x, target):
            return F.mse_loss(self.lstm(x)[1][0][0], target)

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(384), nn.LayerNorm(384)
            self.q, self.k, self.v, self.o = (nn.Linear(384, 384) for _ in range(4))
            self.inner, self.outer = nn.Linear(384, 1536), nn.Linear(1536, 384)

        def forward(self, x):
            n = self.norm1(x)
            heads = [f(n).view(x.shape[0], -1, 6, 64).transpose(1, 2) for f in (self.q, self.k, self.v)]
            a = F.scaled_dot_product_attention(*heads, is_causal=True)
            x = x + self.o(a.transpose(1, 2).reshape(x.shape))
            return x + self.outer(F.gelu(self.inner(self.norm2(x)), approximate="tanh"))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.position = nn.Embedding(65, 384), nn.Embedding(256, 384)
            self.layers, self.norm = nn.Sequential(*(Layer() for _ in range(6))), nn.LayerNorm(384)
            self.head = nn.Linear(384, 65, bias=False)

        def forward(self, token, after):
            x = self.token(token) + self.position(torch.arange(256))
            return F.cross_entropy(self.head(self.norm(self.layers(x))).view(-1, 65), after.view(-1))

    net = {"mnist": Mnist, "resnet8": ResNet8, "lstm": Lstm, "gpt": Gpt}[name]()
    optimiser = {
        "mnist": lambda p: torch.optim.Adagrad(p, 0.005, fused=True),
        "resnet8": lambda p: torch.optim.SGD(p, 0.01, momentum=0.9, fused=True),
        "lstm": lambda p: torch.optim.Adam(p, 1e-3, fused=True),
        "gpt": lambda p: torch.optim.AdamW(p, 1e-3, fused=True),
    }[name](net.parameters())
    return net, optimiser


def torch_stepper(name):
    import torch

    net, optimiser = torch_network(name)
    if name in ("mnist", "resnet8"):
        net = net.to(memory_format=torch.channels_last)

    def step(arrays):
        tensors = [torch.as_tensor(a) for a in arrays]
        if name in ("mnist", "resnet8"):
            tensors[0] = tensors[0].contiguous(memory_format=torch.channels_last)
        optimiser.zero_grad(set_to_none=True)
        loss = net(*tensors)
        loss.backward()
        optimiser.step()
        return loss.item()

    return step


# ---- JAX ----


def jax_loss(name):
    import jax
    import jax.numpy as jnp
    import numpy as np

    rng = np.random.default_rng(2)
    draw = lambda *shape: rng.standard_normal(shape, np.float32) * np.float32(np.prod(shape[1:]) ** -0.5 if len(shape) > 2 else shape[0] ** -0.5)
    dense = lambda i, o: {"w": draw(i, o), "b": np.zeros(o, np.float32)}
    apply = lambda p, x: x @ p["w"] + p["b"]
    conv = lambda x, w, s=1: jax.lax.conv_general_dilated(x, w, (s, s), [(w.shape[0] // 2,) * 2] * 2, dimension_numbers=("NHWC", "HWIO", "NHWC"))
    entropy = lambda z, label: -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(z), label[..., None], -1))

    if name == "mnist":
        params = {"c": draw(5, 5, 1, 32), "cb": np.zeros(32, np.float32), "h": dense(6272, 1024), "o": dense(1024, 10)}

        def loss(p, image, label, seed):
            h = jax.nn.relu(conv(jnp.transpose(image, (0, 2, 3, 1)) / 256, p["c"]) + p["cb"])
            h = jax.lax.reduce_window(h, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
            h = jnp.where(jax.random.bernoulli(jax.random.key(seed), 0.9, h.shape), h / 0.9, 0)
            return entropy(apply(p["o"], jax.nn.relu(apply(p["h"], h.reshape(100, -1)))), label)
    elif name == "resnet8":
        unit = lambda i, o, n: {"w": draw(n, n, i, o), "b": np.zeros(o, np.float32), "g": np.ones(o, np.float32), "s": np.zeros(o, np.float32)}
        params = {"first": unit(3, 16, 3), "out": dense(64, 10)}
        shapes = ((16, 16, 1), (16, 32, 2), (32, 64, 2))
        for i, (cin, cout, stride) in enumerate(shapes):
            params[f"a{i}"], params[f"b{i}"] = unit(cin, cout, 3), unit(cout, cout, 3)
            if cin != cout:
                params[f"s{i}"] = {"w": draw(1, 1, cin, cout), "b": np.zeros(cout, np.float32)}

        def norm(p, x, stride=1):
            y = conv(x, p["w"], stride) + p["b"]
            return (y - y.mean((0, 1, 2))) * jax.lax.rsqrt(y.var((0, 1, 2)) + 1e-5) * p["g"] + p["s"]

        def loss(p, image, label):
            x = jax.nn.relu(norm(p["first"], jnp.transpose(image, (0, 2, 3, 1))))
            for i, (cin, cout, stride) in enumerate(shapes):
                short = x if cin == cout else conv(x, p[f"s{i}"]["w"], stride) + p[f"s{i}"]["b"]
                x = jax.nn.relu(norm(p[f"b{i}"], jax.nn.relu(norm(p[f"a{i}"], x, stride))) + short)
            return entropy(apply(p["out"], x.mean((1, 2))), label)
    elif name == "lstm":
        params = {"x": draw(128, 1024), "h": draw(256, 1024), "b": np.zeros(1024, np.float32)}

        def loss(p, xs, target):
            def cell(carry, x):
                h, c = carry
                i, f, o, g = jnp.split(x + h @ p["h"], 4, -1)
                c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
                return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

            zero = jnp.zeros((32, 256), jnp.float32)
            (h, _), _ = jax.lax.scan(cell, (zero, zero), xs @ p["x"] + p["b"])
            return jnp.mean((h - target) ** 2)
    else:
        scale = lambda: {"g": np.ones(384, np.float32), "s": np.zeros(384, np.float32)}
        params = {"token": draw(65, 384), "position": draw(256, 384), "norm": scale(), "head": draw(384, 65)}
        for i in range(6):
            params[f"l{i}"] = {"n1": scale(), "n2": scale(), "qkv": dense(384, 1152), "o": dense(384, 384),
                               "inner": dense(384, 1536), "outer": dense(1536, 384)}

        def norm(p, x):
            return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * p["g"] + p["s"]

        def layer(p, x):
            q, k, v = (t.reshape(4, 256, 6, 64).transpose(0, 2, 1, 3) for t in jnp.split(apply(p["qkv"], norm(p["n1"], x)), 3, -1))
            score = jnp.where(jnp.tril(jnp.ones((256, 256), bool)), q @ k.transpose(0, 1, 3, 2) / 8, -1e9)
            x = x + apply(p["o"], (jax.nn.softmax(score) @ v).transpose(0, 2, 1, 3).reshape(x.shape))
            return x + apply(p["outer"], jax.nn.gelu(apply(p["inner"], norm(p["n2"], x))))

        def loss(p, token, after):
            x = p["token"][token] + p["position"]
            for i in range(6):
                x = layer(p[f"l{i}"], x)
            return entropy(norm(p["norm"], x) @ p["head"], after)
    return params, loss


def jax_stepper(name):
    import jax
    import jax.numpy as jnp
    from functools import partial

    params, loss = jax_loss(name)
    zeros = lambda: jax.tree.map(jnp.zeros_like, params)
    tree = jax.tree.map

    def adam(p, m, v, g, t, decay):
        m, v = tree(lambda a, b: 0.9 * a + 0.1 * b, m, g), tree(lambda a, b: 0.999 * a + 0.001 * b * b, v, g)
        rate = 1e-3 * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        return tree(lambda p, m, v: p * (1 - 1e-3 * decay) - rate * m / (jnp.sqrt(v) + 1e-8), p, m, v), m, v

    @partial(jax.jit, donate_argnums=(0, 1, 2))
    def update(p, m, v, t, *batch):
        value, g = jax.value_and_grad(loss)(p, *batch)
        if name == "mnist":
            m = tree(lambda a, b: a + b * b, m, g)
            p = tree(lambda p, g, m: p - 0.005 * g / (jnp.sqrt(m) + 1e-10), p, g, m)
        elif name == "resnet8":
            m = tree(lambda a, b: 0.9 * a + b, m, g)
            p = tree(lambda p, m: p - 0.01 * m, p, m)
        else:
            p, m, v = adam(p, m, v, g, t, 0.01 if name == "gpt" else 0.0)
        return value, p, m, v

    kept = [tree(jnp.asarray, params), zeros(), zeros() if name in ("lstm", "gpt") else jnp.zeros(())]
    count = [0]

    def step(arrays):
        count[0] += 1
        value, *kept[:] = update(*kept, jnp.float32(count[0]), *arrays)
        return float(value)

    return step


# ---- llm.c ----


def llmc_library(folder):
    return os.path.join(folder, "libllmc.so")


def build_llmc(source, folder, threads):
    openmp = ["-fopenmp", "-DOMP"] if threads > 1 else []
    subprocess.run(["gcc", "-Ofast", "-march=native", "-shared", "-fPIC", "-w", "-DTESTING", *openmp, source / "train_gpt2.c", "-o",
                    llmc_library(folder), "-lm"], check=True)


def write_llmc_checkpoint(path):
    """Weights of GPT-2 124M that are drawn: what it is of, then its tensors, each of all layers."""
    import numpy as np

    rng = np.random.default_rng(2)
    header = np.zeros(256, np.int32)
    header[:8] = 20240326, 3, 1024, 50257, 12, 12, 768, 50304
    width, layers = 768, 12
    weights = [50304 * width, 1024 * width] + [layers * n for n in (width, width, 3 * width * width, 3 * width, width * width, width, width,
                                                                    width, 4 * width * width, 4 * width, 4 * width * width, width)]
    with open(path, "wb") as file:
        file.write(header.tobytes())
        for elements in weights + [width, width]:
            file.write((0.02 * rng.standard_normal(elements, np.float32)).tobytes())


def llmc_stepper(name, folder):
    library = ctypes.CDLL(llmc_library(folder))
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_float
    library.gpt2_forward.argtypes = [pointer, pointer, pointer, size, size]
    library.gpt2_update.argtypes = [pointer, *[number] * 5, ctypes.c_int]
    path = os.path.join(folder, "checkpoint")
    write_llmc_checkpoint(path)
    model = ctypes.create_string_buffer(1 << 16)  # more than its struct has
    library.gpt2_build_from_checkpoint(model, path.encode())
    os.remove(path)
    count = [0]

    def step(arrays):
        token, target = (a.astype("int32") for a in arrays)
        count[0] += 1
        library.gpt2_forward(model, token.ctypes.data, target.ctypes.data, *token.shape)
        library.gpt2_zero_grad(model)
        library.gpt2_backward(model)
        library.gpt2_update(model, 1e-4, 0.9, 0.999, 1e-8, 0.0, count[0])
        return float("nan")  # the loss is somewhere in its struct

    return step


# ---- Processes ----


def peak_mb():
    return int(next(l for l in open("/proc/self/status") if l.startswith("VmHWM")).split()[1]) / 1024


def serve(peer, name, folder, threads):
    """Prints a line when ready, then for each line that comes the mean of the steps, the loss and the memory."""
    import numpy  # noqa: F401, it belongs to what is loaded

    data = batches(name)
    if peer == "torch":
        import torch

        torch.set_num_threads(threads)
        torch.zeros(1)
    if peer == "jax":
        import jax

        jax.numpy.zeros(1).block_until_ready()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # llm.c tells of itself
    before = peak_mb()
    step = {"nnc": lambda: nnc_stepper(name, folder, threads), "torch": lambda: torch_stepper(name), "jax": lambda: jax_stepper(name),
            "llmc": lambda: llmc_stepper(name, folder)}[peer]()
    for i in range(BATCHES):
        step(data[i])
    clock = time.perf_counter if threads > 1 else time.process_time
    print("ready", file=answers, flush=True)
    for _ in sys.stdin:
        begin = clock()
        for i in range(STEPS[name]):
            loss = step(data[i % BATCHES])
        took = (clock() - begin) / STEPS[name]
        print(json.dumps([took, loss, peak_mb() - before]), file=answers, flush=True)


class Peer:
    def __init__(self, peer, name, folder, threads):
        words = [sys.executable, __file__, "--serve", peer, name, folder, str(threads)]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        env={**os.environ, **environment(threads)}, preexec_fn=lambda: os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:threads])))
        self.here = self.process.stdout.readline() == "ready\n"
        self.turns = []

    def turn(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.turns.append(json.loads(self.process.stdout.readline()))

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def measure(nnc, name, turns, threads, llmc):
    with tempfile.TemporaryDirectory() as folder:
        target = "x86-64-v4" if "avx512f" in open("/proc/cpuinfo").read() else "x86-64-v3"
        subprocess.run([nnc, "compile", MODELS[name], "--graph", "step", "--name", name, "--target", target, "--threads", str(threads),
                        "--emit", "lib", "-o", folder], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.symlink(nnc.parent / "runtime/libnnc-runtime.so", os.path.join(folder, "libnnc-runtime.so"))
        if name == "gpt2" and llmc:
            build_llmc(llmc, folder, threads)
        peers = {p: Peer(p, name, folder, threads) for p in PEERS}
        here = {p: peer for p, peer in peers.items() if peer.here}
        for _ in range(turns):
            for peer in here.values():
                peer.turn()
        for peer in peers.values():
            peer.end()
    return {p: [statistics.median(column) for column in zip(*peer.turns)] for p, peer in here.items()}


def main():
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:5], int(sys.argv[5]))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("models", nargs="*", choices=[*MODELS, []], default=[])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--llmc", type=pathlib.Path)
    arguments = parser.parse_intermixed_args()
    heading = lambda width: "".join(f"{word:>{width}}" for word in PEERS.values())
    print(f"{'':8} {'ms a step':>40}   {'MB above the library':>32}   best peer / nnc")
    print(f"{'model':8} {heading(10)}   {heading(8)}   {'time':>6} {'memory':>8}")
    for name in arguments.models or MODELS:
        found = measure(arguments.build.resolve() / "nnc", name, arguments.turns, arguments.threads, arguments.llmc)
        column = lambda i, scale, width: "".join(f"{found[p][i] * scale:{width}.1f}" if p in found else f"{'-':>{width}}" for p in PEERS)
        peers = [found[p] for p in found if p != "nnc"]
        ratios = [min(p[i] for p in peers) / found["nnc"][i] for i in (0, 2)] if peers else []
        print(f"{name:8} {column(0, 1e3, 10)}   {column(2, 1, 8)}   " + "".join(f"{r:7.2f}" for r in ratios), flush=True)


if __name__ == "__main__":
    main()
