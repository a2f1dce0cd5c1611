#!/usr/bin/python3
"""Where the time of several threads goes, deal by deal (docs/architecture.md, Dealing).

    deals.py BUILD MODEL [--threads N] [--runs N] [--target T] [--top K] [--cc CC] [-- FLAG ...]

The model is compiled for N threads and run by one thread and by N: how much the caller does alone, how much threads wait
for each other, and how much longer the parts take together than one thread takes for them: values that another core
has made.  Then the deals of which that is most.  Flags behind `--` are for `nnc compile`.
"""

import argparse
import pathlib
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def measure(program, weights, threads, runs):
    lines = subprocess.run([program, weights, str(threads), str(runs)], check=True, capture_output=True, text=True).stdout.split("\n")
    return float(lines[0]), [[float(x) for x in line.split()] for line in lines[1:] if line]


def build(arguments, folder):
    nnc = arguments.build / "nnc"
    subprocess.run([nnc, "compile", arguments.model, "--name", "m", "--target", arguments.target, "--threads", str(arguments.threads), "--cc", arguments.cc,
                    "--weights", "file", "--init-missing", "--emit", "c,static", "-o", folder, *arguments.flags], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    runtime = arguments.build / "runtime"
    subprocess.run([*shlex.split(arguments.cc), "-O2", "-DMODEL=m_model", f"-I{HERE.parents[1] / 'runtime'}", HERE / "deals.c", folder / "libm.a", "-o",
                    folder / "deals", f"-L{runtime}", f"-Wl,-rpath,{runtime}", "-lnnc-runtime", "-lm", "-lpthread"], check=True)


def show(one, many, deals_of_one, deals, threads, top):
    alone, alone_of_one = many - sum(d[2] for d in deals), one - sum(d[2] for d in deals_of_one)
    waits = [d[2] - sum(d[3:]) / threads for d in deals]
    grows = [sum(d[3:]) - o[2] for d, o in zip(deals, deals_of_one)]
    print(f"one thread {one / 1000:.3f} ms, {threads} threads {many / 1000:.3f} ms: {one / many:.2f} times as much work")
    print(f"{len(deals)} deals; the caller alone {alone / 1000:.3f} ms ({alone_of_one / 1000:.3f} of one thread's run), "
          f"waiting {sum(waits) / 1000:.3f} ms, parts {sum(grows) / 1000:+.3f} ms longer in all")
    for at in sorted(range(len(deals)), key=lambda i: -grows[i] - waits[i] - deals[i][1])[:top]:
        d = deals[at]
        print(f"  deal {at:4}: {int(d[0]):3} parts, one thread {deals_of_one[at][2]:8.1f} us, {threads} threads {d[2]:8.1f}, "
              f"waiting {waits[at]:6.1f}, parts {grows[at]:+7.1f}, before it {d[1]:6.1f}")


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("build", type=lambda path: pathlib.Path(path).resolve())
    words.add_argument("model")
    words.add_argument("--threads", type=int, default=2)
    words.add_argument("--runs", type=int, default=50)
    words.add_argument("--target", default="host")
    words.add_argument("--top", type=int, default=10)
    words.add_argument("--cc", default="clang -O3")
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    arguments = words.parse_args(sys.argv[1:end], argparse.Namespace(flags=sys.argv[end + 1:]))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        build(arguments, folder)
        one, deals_of_one = measure(folder / "deals", folder / "m.weights", 1, arguments.runs)
        many, deals = measure(folder / "deals", folder / "m.weights", arguments.threads, arguments.runs)
        show(one, many, deals_of_one, deals, arguments.threads, arguments.top)


if __name__ == "__main__":
    main()
