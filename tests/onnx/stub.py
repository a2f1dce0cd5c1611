"""An nnc that was built without protobuf says so, for every .onnx file that it is to read or to write.

    stub.py --nnc NNC        reports as TAP
"""

import subprocess
import sys
import tempfile

with tempfile.TemporaryDirectory() as folder:
    open(f"{folder}/m.onnx", "wb").close()
    done = subprocess.run([sys.argv[2], "import", f"{folder}/m.onnx"], capture_output=True, text=True)
    good = done.returncode == 1 and "built without libprotobuf-c, and reads no ONNX" in done.stderr
    print("1..2")
    print(f"{'ok' if good else 'not ok'} 1 - the stub says so")
    with open(f"{folder}/m.nnc", "w") as text:
        text.write("nnc 1\ngraph g(x: f32[2]) -> (y) { y = exp(x) }\n")
    done = subprocess.run([sys.argv[2], "export", f"{folder}/m.nnc", "-o", f"{folder}/n.onnx"], capture_output=True, text=True)
    good = done.returncode == 1 and "built without libprotobuf-c, and writes no ONNX" in done.stderr
    print(f"{'ok' if good else 'not ok'} 2 - also of what it cannot write")
