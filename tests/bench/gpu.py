#!/usr/bin/env python3
"""Networks on this machine's GPU beside PyTorch, in f32: microseconds of a run, and where they go.

    gpu.py [--batch N] [--kernels N] [--turns N] build/nnc [NETWORK ...]

Both run as captured CUDA graphs on weights that lie in device memory; PyTorch eagerly, with cuDNN's own search for the fastest
algorithm, once in full f32 as nnc computes and once with tf32 products, and each as the faster of NCHW and channels last.
Networks take turns, and medians are compared.  --kernels prints the N slowest kernels of each network, too.  What cannot
run beside PyTorch (it is not here, or has no such network) runs alone.
"""

import argparse
import concurrent.futures
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
STEPS = ROOT / "tests/bench/gpu/steps.cu"

VISION = {"resnet50": "resnet50", "resnext50": "resnext50_32x4d", "densenet121": "densenet121", "inception_v3": "inception_v3",
          "mobilenetv2": "mobilenet_v2", "mobilenetv3": "mobilenet_v3_large", "shufflenetv2": "shufflenet_v2_x1_0",
          "squeezenet": "squeezenet1_1", "efficientnet_b0": "efficientnet_b0", "vgg16": "vgg16", "vit_b16": "vit_b_16"}
TEXT = {"bert_base": "run", "gpt2": "read"}


def command(words, folder):
    done = subprocess.run([str(w) for w in words], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{words[0]}: {done.stderr[-2000:]}")
    return done.stdout


def call_of(header, entry, name):
    """(what fills the arguments, the call) of an entry, by its prototype."""
    text = header.read_text()
    arguments = re.search(rf"^int {entry}\((.*)\);", text, re.M).group(1).split(", ")
    begin, call, shout = [], [], name.upper()
    for i, words in enumerate(arguments):
        array = re.fullmatch(r"(?:const )?(\w+) \w+\[(\d+)\]", words)
        block = words.rpartition("*")[2]
        if array:
            begin.append(f"{array[1]} *const a{i} = filled<{array[1]}>({array[2]});")
        elif block == "weights":
            begin.append(f'void *const weights = read_file("{name}.weights", {shout}_WEIGHTS_BYTES);')
        elif block in ("params", "state", "arena"):
            begin.append(f"void *const {block} = device_memory({shout}_{block.upper()}_BYTES);")
        call.append(f"a{i}" if array else block.split()[-1])
    for block in ("params", "state"):
        if block in call:
            own = re.search(rf"^int {name}_{block}_init\((.*)\);", text, re.M).group(1)
            first = ["0" if "seed" in w else w.rpartition("*")[2].split()[-1] for w in own.split(", ")]
            begin.append(f'check({name}_{block}_init({", ".join(first)}), "{block}");')
    return begin, f"{entry}({', '.join(call)})"


def build(nnc, name, batch, folder):
    """The program that times a network."""
    entry = f"{name}_{TEXT.get(name, 'run')}"
    constants = ["-D", f"N={batch}"] if batch > 1 else []
    command([nnc, "compile", ROOT / f"models/{name}.nnc", "-o", folder, "--target", "cuda:sm_90", "--emit", "cuda", *constants], ROOT)
    begin, call = call_of(folder / f"{name}.h", entry, name)
    fields = "".join(f"static {line.partition(' = ')[0].replace('const ', '')};\n" for line in begin if " = " in line)
    fills = "".join(f"    {re.sub(r'^.*const ', '', line)}\n" for line in begin)
    (folder / "call.h").write_text(f"""#include "{name}.cu"

{fields}
static void begin()
{{
{fills}}}

static int call()
{{
    return {call};
}}
""")
    command(["nvcc", "-O3", "-arch=native", "-std=c++17", "-I", folder, STEPS, "-o", folder / "steps"], folder)


class Peer:
    """A PyTorch network in a CUDA graph."""

    def __init__(self, torch, name, batch, tf32, last):
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
        torch.backends.cudnn.benchmark = True
        self.torch = torch
        network, inputs = self.network(name, batch)
        network = network.eval().cuda()
        if last:
            network, inputs = network.to(memory_format=torch.channels_last), [x.to(memory_format=torch.channels_last) for x in inputs]
        self.stream, self.graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.stream(self.stream):
            for _ in range(3):
                network(*inputs)
            self.stream.synchronize()
            with torch.cuda.graph(self.graph, stream=self.stream):
                self.out = network(*inputs)
        self.kept = network, inputs

    def network(self, name, batch):
        torch = self.torch
        if name in VISION:
            import torchvision
            size = 299 if name == "inception_v3" else 224
            extra = {"init_weights": False} if name == "inception_v3" else {}
            return getattr(torchvision.models, VISION[name])(weights=None, **extra), [torch.randn(batch, 3, size, size, device="cuda")]
        import transformers
        tokens = torch.randint(0, 1000, (batch, 128), device="cuda")
        if name == "bert_base":
            return transformers.BertModel(transformers.BertConfig(), add_pooling_layer=False), [tokens]

        class Last(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = transformers.GPT2LMHeadModel(transformers.GPT2Config())

            def forward(self, tokens):
                return self.inner(tokens, use_cache=False, logits_to_keep=1).logits
        return Last(), [tokens]

    def time(self):
        torch, times = self.torch, []
        with torch.cuda.stream(self.stream):
            for _ in range(60):
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                begin.record()
                self.graph.replay()
                end.record()
                self.stream.synchronize()
                times.append(1e3 * begin.elapsed_time(end))
        return statistics.median(times[10:])


def peers_of(name, batch):
    """Of (tf32) False and True, the networks to take the faster of; empty without PyTorch."""
    try:
        import torch
        if not torch.cuda.is_available():
            return {}
    except ImportError:
        return {}
    peers = {}
    for tf32 in (False, True):
        for last in ((False, True) if name in VISION else (False,)):
            try:
                peers.setdefault(tf32, []).append(Peer(torch, name, batch, tf32, last))
            except Exception as error:  # whatever a network lacks there
                print(f"# {name}, PyTorch: {str(error).splitlines()[0][:150]}", file=sys.stderr)
    return peers


def slowest(lines, count):
    """The kernels that take the most time, launches of the same name together."""
    total, times, blocks = {}, {}, {}
    for line in lines:
        us, _, grid, _, kernel = line.split(maxsplit=4)
        total[kernel] = total.get(kernel, 0) + float(us)
        times[kernel] = times.get(kernel, 0) + 1
        blocks[kernel] = grid
    for kernel in sorted(total, key=total.get, reverse=True)[:count]:
        print(f"      {total[kernel]:9.1f} us  {times[kernel]:3} x {kernel}, {blocks[kernel]} blocks")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("nnc")
    parser.add_argument("network", nargs="*", help="of models/; all that PyTorch has")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--kernels", type=int, default=0)
    arguments = parser.parse_intermixed_args()
    arguments.nnc = pathlib.Path(arguments.nnc).resolve()
    names = arguments.network or [*VISION, *(TEXT if arguments.batch == 1 else [])]
    print(f"{'':16} {'nnc':>10} {'PyTorch':>10} {'ratio':>7} {'tf32':>10} {'ratio':>7}   (us; ratios: PyTorch by nnc)")
    with tempfile.TemporaryDirectory() as temporary:
        folders = {name: pathlib.Path(temporary) / name for name in names}
        for folder in folders.values():
            folder.mkdir()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(lambda name: build(arguments.nnc, name, arguments.batch, folders[name]), names))
        for name in names:
            peers, ours, theirs = peers_of(name, arguments.batch), [], {False: [], True: []}
            for _ in range(arguments.turns):
                said = command(["./steps"], folders[name]).split()
                ours.append(float(said[0]))
                for tf32, those in peers.items():
                    theirs[tf32].append(min(peer.time() for peer in those))
            mine = statistics.median(ours)
            line = f"{name:16} {mine:10.1f}"
            for tf32 in (False, True):
                if theirs[tf32]:
                    other = statistics.median(theirs[tf32])
                    line += f" {other:10.1f} {other / mine:7.2f}"
            print(line + ("" if said[1] == "graph" else "  (calls)"), flush=True)
            if arguments.kernels:
                slowest(command(["./steps", "kernels"], folders[name]).splitlines(), arguments.kernels)


if __name__ == "__main__":
    main()
