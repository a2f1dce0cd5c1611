"""An nnc that was built without protobuf says so, for every .onnx file.

    stub.py --nnc NNC        reports as TAP
"""

import subprocess
import sys
import tempfile

with tempfile.TemporaryDirectory() as folder:
    open(f"{folder}/m.onnx", "wb").close()
    done = subprocess.run([sys.argv[2], "import", f"{folder}/m.onnx"], capture_output=True, text=True)
    good = done.returncode == 1 and "built without libprotobuf-c" in done.stderr
    print("1..1")
    print(f"{'ok' if good else 'not ok'} 1 - the stub says so")
