"""The peers of nnc, each opened on an ONNX file: open(path, inputs, threads, folder) returns a function that runs it once, with
inputs and outputs bound where that can be, and its outputs as arrays.  `run.way`, where there is one, says which way was taken.
"""

import importlib
import importlib.util
import statistics
import time

PEERS = {  # name: (modules that it is made of, the module here, its function)
    "onnxruntime": (["onnxruntime"], "runtimes", "open_onnxruntime"),
    "openvino": (["openvino"], "runtimes", "open_openvino"),
    "torch": (["torch"], "pytorch", "open_torch"),
    "jax": (["jax"], "xla", "open_jax"),
    "iree": (["iree", "iree.compiler", "iree.runtime"], "iree_cpu", "open_iree"),
}
TRIED = 0.3  # seconds that tell which of several ways is fastest


def environment(threads):
    """Variables that give a library this many threads; they are read when it is loaded."""
    xla = "" if threads > 1 else "--xla_cpu_multi_thread_eigen=false"
    return {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads), "XLA_FLAGS": xla}


def is_here(name):
    return all(importlib.util.find_spec(module) for module in PEERS[name][0])


def open_peer(name, *how):
    _, module, function = PEERS[name]
    return getattr(importlib.import_module(f"peers.{module}"), function)(*how)


def clock_of(threads):
    """Processor time of all threads, which other work on the machine touches least, where one does the work."""
    return time.perf_counter if threads > 1 else time.process_time


def reason(error):
    """The first line of a compiler's error, or of what is said at all, short enough for a table's foot."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return next((line for line in lines if "error: " in line), lines[0])[:200]


def fastest(ways, threads):
    """`ways` are functions by label that make a run: the run that takes the least time, its label as `run.way`."""
    clock, found, failed = clock_of(threads), {}, {}
    for label, make in ways.items():
        try:
            run = make()
            run()
        except Exception as error:  # whatever a peer's compiler throws; another way may do
            failed[label] = error
            continue
        times, end = [], time.perf_counter() + TRIED
        while not times or time.perf_counter() < end:
            begin = clock()
            run()
            times.append(clock() - begin)
        found[statistics.median(times), label] = run
    if not found:
        raise next(iter(failed.values()))
    (_, label), run = min(found.items(), key=lambda item: item[0])
    run.way = "; ".join([label, *(f"not {other}: {reason(error)}" for other, error in failed.items())])
    return run
