"""The demo: digits.nnc becomes a library, which this script loads and runs on real images.

Only the standard library is needed: the model's descriptor (runtime/nnc_model.h) tells a host all it must know.
"""

import array
import ctypes
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import textwrap
import time

HERE = pathlib.Path(__file__).resolve().parent
SAMPLES = ["3_tilted", "4_open", "7_barred", "2_noisy", "8_faint", "5_curved"]
BAR, MARGIN, GAP = 14, 3, 5
COLUMNS = shutil.get_terminal_size((80, 24)).columns
SHADES = " .:-=+*#%@"
ABI = 5  # NNC_MODEL_ABI


class TensorInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_char_p), ("rank", ctypes.c_int32),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("bytes", ctypes.c_size_t)]


class Entry(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("input_count", ctypes.c_uint32), ("output_count", ctypes.c_uint32),
                ("input", ctypes.POINTER(TensorInfo)), ("output", ctypes.POINTER(TensorInfo)),
                ("updated_params", ctypes.c_uint32), ("updated_states", ctypes.c_uint32), ("packed", ctypes.c_int32),
                ("run", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p),
                                         ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p, ctypes.c_void_p,
                                         ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p))]


class Model(ctypes.Structure):
    _fields_ = [("abi", ctypes.c_uint32), ("name", ctypes.c_char_p), ("entry_count", ctypes.c_uint32),
                ("entry", ctypes.POINTER(Entry)), ("arena_bytes", ctypes.c_size_t),
                ("arena_alignment", ctypes.c_size_t)]


class Host:
    """A loaded model with its arena and output."""

    def __init__(self, library, name):
        self.model = Model.in_dll(ctypes.CDLL(str(library)), name + "_model")
        assert self.model.abi == ABI, "the library's descriptor is of another version"
        self.entry = self.model.entry[0]
        alignment = max(self.model.arena_alignment, 1)
        self.memory = ctypes.create_string_buffer(self.model.arena_bytes + alignment)
        self.arena = (ctypes.addressof(self.memory) + alignment - 1) // alignment * alignment
        self.output = (ctypes.c_float * (self.entry.output[0].bytes // 4))()

    def run(self, pixels):
        """The outputs, and how long the call took in seconds."""
        image = (ctypes.c_float * len(pixels))(*pixels)
        inputs = (ctypes.c_void_p * 1)(ctypes.addressof(image))
        outputs = (ctypes.c_void_p * 1)(ctypes.addressof(self.output))
        begin = time.perf_counter()
        status = self.entry.run(inputs, outputs, self.arena, None, None, None, None)
        end = time.perf_counter()
        assert status == 0, status
        return list(self.output), end - begin


def read_pgm(path):
    """Width, height and samples of a raw grey map."""
    data = path.read_bytes()
    kind, width, height, most = data.split(maxsplit=4)[:4]
    assert kind == b"P5" and most == b"255", path
    width, height = int(width), int(height)
    return width, height, array.array("B", data[-width * height:])


def picture(width, height, samples):
    """One line of text for two rows of pixels; shades of grey on a terminal."""
    lines = []
    for y in range(0, height, 2):
        upper = samples[y * width:(y + 1) * width]
        lower = samples[(y + 1) * width:(y + 2) * width] or array.array("B", [0] * width)
        if sys.stdout.isatty():
            cells = [f"\033[38;5;{232 + a * 23 // 255};48;5;{232 + b * 23 // 255}m▀" for a, b in zip(upper, lower)]
            lines.append("".join(cells) + "\033[0m")
        else:
            lines.append("".join(SHADES[(a + b) * (len(SHADES) - 1) // 510] for a, b in zip(upper, lower)))
    return lines


def bars(probability, width):
    best = sorted(range(len(probability)), key=lambda k: -probability[k])[:3]
    lines = []
    for k in best:
        bar = "█" * round(probability[k] * BAR)
        lines.append(f"{k}  {bar:<{BAR}} {probability[k] * 100:5.1f} %".ljust(width))
    return lines


def show(host, names):
    columns = []
    for name in names:
        width, height, samples = read_pgm(HERE / "digits" / f"{name}.pgm")
        probability, _ = host.run(samples)
        columns.append([f"{name}.pgm".ljust(width), *picture(width, height, samples), "".ljust(width),
                        *bars(probability, width)])
    for row in zip(*columns):
        print(" " * MARGIN + (" " * GAP).join(row))
    print()


def nnc(build, *words):
    done = subprocess.run([build / "nnc", *words], stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "COLUMNS": str(COLUMNS)})
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout


def main(build):
    out = pathlib.Path("out/demo")
    command = ["compile", "models/digits.nnc", "-o", str(out), "--target", "host", "--emit", "c,lib"]
    print("$ nnc " + " ".join(command))
    print(nnc(build, *command))
    host = Host(out / "libdigits.so", "digits")
    across = max(1, (COLUMNS - MARGIN + GAP) // (28 + GAP))
    for first in range(0, len(SAMPLES), across):
        show(host, SAMPLES[first:first + across])
    _, _, samples = read_pgm(HERE / "digits" / "3.pgm")
    pixels = list(samples)
    times = [host.run(pixels)[1] for _ in range(2000)]
    told = (f"latency {statistics.median(times) * 1e6:.0f} µs, median of {len(times)} runs on one core; the library has "
            f"{(out / 'libdigits.so').stat().st_size / 1024:.0f} KiB and writes to {host.model.arena_bytes:,} bytes that "
            f"the caller lends")
    print(textwrap.fill(told, COLUMNS, initial_indent=" " * MARGIN, subsequent_indent=" " * MARGIN) + "\n")
    command = ["plan", "models/digits.nnc", "--target", "host", "--format", "chart"]
    print("$ nnc " + " ".join(command))
    print(nnc(build, *command))
    print("Draw your own: 28 x 28 pixels, white on black, as .pgm, then\n"
          "$ build/nnc run models/digits.nnc --input mine.pgm --top 3")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
