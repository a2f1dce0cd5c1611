"""IREE: its importer of ONNX, its compiler for this processor, and its runtime: the caller's thread, or a pool of workers.

Convolutions in ONNX's layout take it ten times as long as products of matrices do, so that passes of its own which turn them into
these are tried, too.
"""

import pathlib
import subprocess
import sys

import iree.compiler.tools
import iree.runtime
import numpy as np
from iree.runtime.flags import parse_flags

from peers import fastest
from peers.graph import Graph

FLAGS = [
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
    "--iree-opt-level=O3",
    "--iree-llvmcpu-stack-allocation-limit=262144",  # its default ends BERT's normalisations with an error
]
CHANNELS_LAST, IMG2COL = "iree-preprocessing-convert-conv-to-channels-last", "iree-global-opt-convert-conv2d-to-img2col"
PASSES = {
    "as imported": [],
    "img2col": [IMG2COL],
    "channels last, img2col": [CHANNELS_LAST, IMG2COL],
}


def import_onnx(path, folder):
    text = folder / "iree.mlir"
    words = [sys.executable, "-m", "iree.compiler.tools.import_onnx", path, "-o", text]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError("the importer of ONNX failed: " + done.stderr.strip().splitlines()[-1])
    return text


def compile_text(text, passes):
    """The path of what the runtime loads."""
    library = text.with_name("-".join([text.stem, *passes]) + ".vmfb")
    pipeline = f"--iree-preprocessing-pass-pipeline=builtin.module(util.func({','.join(passes)}))"
    iree.compiler.tools.compile_file(str(text), output_file=str(library), extra_args=[*FLAGS, *[pipeline] * bool(passes)])
    return library


def context_of(instance, device, library):
    """The context, and the network's function: neither an initializer nor the form that takes fences."""
    module = iree.runtime.VmModule.mmap(instance, str(library))
    (name,) = [n for n in module.function_names if not n.startswith("__") and not n.endswith("$async")]
    context = iree.runtime.VmContext(instance, [iree.runtime.create_hal_module(instance, device), module])
    return context, module.lookup_function(name)


def device_of(threads):
    if threads == 1:
        return iree.runtime.get_device("local-sync")
    parse_flags(f"--task_topology_group_count={threads}")
    return iree.runtime.get_device("local-task")


def open_iree(path, inputs, threads, folder):
    read, text = Graph(path), import_onnx(path, pathlib.Path(folder))
    instance, device = iree.runtime.VmInstance(), device_of(threads)
    arrays = [iree.runtime.asdevicearray(device, inputs[name]) for name in read.inputs]
    arguments = iree.runtime.VmVariantList(len(arrays))
    for array in arrays:
        arguments.push_ref(array._buffer_view)

    def compiled(passes):
        context, function = context_of(instance, device, compile_text(text, passes))

        def run():
            results = iree.runtime.VmVariantList(len(read.outputs))
            context.invoke(function, arguments, results)
            return results

        return run

    tried = PASSES if "Conv" in read.kinds() else ["as imported"]
    run = fastest({label: lambda label=label: compiled(PASSES[label]) for label in tried}, threads)
    run.keep = arrays
    views = [run().get_as_object(i, iree.runtime.HalBufferView) for i in range(len(read.outputs))]
    return run, [np.array(iree.runtime.DeviceArray(device, view, implicit_host_transfer=True).to_host()) for view in views]
