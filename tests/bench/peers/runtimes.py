"""ONNX Runtime by its Python, with inputs and outputs bound, and OpenVINO by its C, of which a run is one call."""

import ctypes
import pathlib

import numpy as np

from peers.graph import ends_of


def open_onnxruntime(path, inputs, threads, folder):
    import onnxruntime

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
            raise RuntimeError(f"OpenVINO's {name} returned {status}")

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


def open_openvino(path, inputs, threads, folder):
    import openvino

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
    for name, array in inputs.items():
        library.memory(request, name, array)[:] = array.ravel()
    call = library.library.ov_infer_request_infer

    def run():
        if call(request):
            raise RuntimeError("OpenVINO failed")

    run()
    results = [(name, np.empty(shape, dtype)) for name, dtype, shape in ends_of(path)[1]]
    return run, [library.memory(request, name, like).reshape(like.shape) for name, like in results]
