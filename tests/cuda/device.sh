#!/bin/sh
# Everything that needs a GPU: every op, random graphs, and the models, as nvcc compiles them for this machine's.
#     device.sh PYTHON BUILD
# BUILD has nnc and tests/emitted/random_emit. Exit status 1 when anything is wrong.
python=$1 build=$2 status=0
PATH=$PATH:/usr/local/cuda/bin # where nvcc is, when nobody has said so
cd "$(dirname "$0")/../.." || exit

check() {
    echo "# $*"
    "$python" "$@" || status=1
}

random() {
    check tests/emitted/random_graphs.py --emit "$build/tests/emitted/random_emit" --target cuda:sm_90 --cc nvcc "$@"
}

models() {
    check tests/cuda/cuda.py --nnc "$build/nnc" --device "$@"
}

check tests/conform/conform.py --nnc "$build/nnc" --target cuda:sm_90 --cc nvcc
random --first 901 --count 60
random --first 301 --count 40 --control
random --first 1901 --count 10 --sanitize
random --first 1301 --count 10 --control --races
check tests/emitted/random_loops.py --nnc "$build/nnc" --target cuda:sm_90 --cc nvcc --first 301 --count 40

large=$(ls models/*.nnc models/owl/*.nnc models/digits/*.nnc | grep -v chargpt)
odd=$(ls tests/emitted/odd/*.nnc)
# shellcheck disable=SC2086
models models/chargpt.nnc,LAYERS=2,CONTEXT=64 $large $odd

small="tests/cuda/rows.nnc tests/cuda/sort.nnc tests/cuda/contract.nnc models/digits.nnc models/lenet.nnc models/resnet8.nnc
models/keywords.nnc models/gru_stream.nnc models/running_mean.nnc models/spirals.nnc models/digits/learner.nnc
models/resnet50.nnc,SIZE=32,CLASSES=50 models/bert_base.nnc,LAYERS=1,S=40,HIDDEN=96,HEADS=4,VOCABULARY=100 models/decoder.nnc"
# shellcheck disable=SC2086
for tool in memcheck racecheck initcheck synccheck; do
    models --tool $tool $small
done
exit $status
