"""What a compiled model says of itself (runtime/nnc_model.h) to Python, and the memory and threads that its runs take."""

import ctypes

import numpy as np


class TensorInfo(ctypes.Structure):
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


class Model(ctypes.Structure):  # what stands behind these is not read
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
        ("packed_bytes", ctypes.c_size_t),
        ("params_init", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)),
        ("state_init", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
    ]


def open_model(path, name):
    """The descriptor in a library; it keeps that loaded."""
    library = ctypes.CDLL(str(path))
    model = Model.in_dll(library, f"{name}_model")
    if model.abi != 5:
        raise RuntimeError("the model's descriptor is of another version")
    model.library = library
    return model


def aligned(size, alignment=64):
    size = max(size, 1)  # the address of an empty array is that of its base
    memory = np.zeros(size + alignment, np.uint8)
    begin = -memory.ctypes.data % alignment
    return memory[begin : begin + size]


NUMPY = {b"f32": np.float32, b"f64": np.float64, b"i32": np.int32, b"i64": np.int64, b"u8": np.uint8, b"bool": np.bool_}


def array_of(info, memory):
    """A view of the tensor that lies in the memory, which are bytes."""
    shape = info.shape[: info.rank]
    return memory[: info.bytes].view(NUMPY[info.dtype]).reshape(shape)


def pointers(arrays):
    return (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))


def team_of(runtime, threads):
    """What a run takes to be shared, by the path of the runtime's library; None for one thread."""
    if threads == 1:
        return None
    library = ctypes.CDLL(str(runtime))
    library.nnc_pool_new.argtypes, library.nnc_pool_new.restype = [ctypes.c_uint32], ctypes.c_void_p
    library.nnc_pool_team.argtypes, library.nnc_pool_team.restype = [ctypes.c_void_p], ctypes.c_void_p
    team = library.nnc_pool_team(library.nnc_pool_new(threads))
    if not team:
        raise RuntimeError("no threads to have")
    return team
