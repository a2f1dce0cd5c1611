#!/bin/sh
# An environment with the peers of tests/bench/peers.py, by pip.  Nothing else needs them, neither to build nor to test.
#
#     install.sh FOLDER [OPTION OF PIP...]
#
# Options say where pip finds packages, where its own settings do not: PyTorch's wheels without CUDA, for one, which are
# a tenth in size, are found where PyTorch says (--extra-index-url).  What this machine cannot have is told and left out.
set -eu

[ $# -ge 1 ] || { sed -n '4p' "$0" | tr -d '#' >&2; exit 2; }
folder=$1
shift
[ -x "$folder/bin/python3" ] || python3 -m venv "$folder"

install() { # install PACKAGE... OPTION...: as one, since their versions hang together
    "$folder/bin/python3" -m pip install --quiet --disable-pip-version-check "$@" >"$folder/pip.log" 2>&1
}

# here NAME MODULE PACKAGE... OPTION...
here() {
    name=$1 module=$2
    shift 2
    if install "$@" && version=$("$folder/bin/python3" -c "
import importlib, importlib.metadata
importlib.import_module('$module')
print(importlib.metadata.version('$1'))" 2>>"$folder/pip.log"); then
        echo "$name: $version"
    else
        echo "$name: left out: $(grep . "$folder/pip.log" | tail -n 1)"
        return 1
    fi
}

here NumPy numpy numpy "$@"
here ONNX onnx onnx "$@"
here 'ONNX Runtime' onnxruntime onnxruntime "$@" || true
here OpenVINO openvino openvino "$@" || true
here PyTorch torch torch "$@" || true
here JAX jax jax "$@" || true
here IREE iree.runtime iree-base-runtime iree-base-compiler "$@" || true
