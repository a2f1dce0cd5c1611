#!/bin/sh
# archive.sh OUTPUT SCRATCH ARCHIVE...: joins archives into one with a single object, whose hidden symbols are local.
set -eu
output=$1 scratch=$2
shift 2
mkdir -p "$scratch"
ld -r -o "$scratch/nnc.o" --whole-archive "$@"
objcopy --localize-hidden "$scratch/nnc.o"
rm -f "$output"
ar rcsD "$output" "$scratch/nnc.o"
