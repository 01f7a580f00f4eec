#!/usr/bin/env bash
# Builds wasm/kernels.o from the C sources beside this script, and prints its SHA-256.
#
#   wasm/kernels/build.sh [OUTPUT]      default: wasm/kernels.o
#
# Needs Debian's clang-19, whose output is committed: users need no compiler. The result is the same bytes on every
# machine, so that anyone can check what is committed.
set -euo pipefail
if [[ ${1:-} == --help ]]; then sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0; fi
output=$(realpath -m "${1:-$(dirname "$0")/../kernels.o}")
cd "$(dirname "$0")"
# Without loop strength reduction LLVM keeps a pointer for each stream, and constant offsets stay in the loads: V8 checks
# the bounds of those with two instructions instead of three. Without jump tables it makes no table of what a switch returns,
# which would be data.
clang-19 --target=wasm64-unknown-unknown -O3 -msimd128 -mrelaxed-simd -matomics -mbulk-memory -fno-builtin \
  -ffp-contract=off -fno-jump-tables -mllvm -disable-lsr -nostdlib -fno-ident -Wall -Wextra -Wno-unused-function -c kernels.c -o "$output"
sha256sum "$output"
