#!/usr/bin/env bash
# Installs build/wheel/kas-*.whl in a fresh environment, with nothing of the build tree, and uses it there; for
# tools/wheel.sh. $1: the interpreter (default: python3).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
wheels=("$root"/build/wheel/kas-*.whl)
[[ -e ${wheels[0]} ]] || { echo "error: requires build/wheel/kas-*.whl, got none: run tools/wheel.sh first" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
unset PYTHONPATH LD_LIBRARY_PATH
start=$SECONDS
"${1:-python3}" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check "${wheels[0]}"
venv/bin/python - <<'END_OF_PYTHON'
import numpy

import kas

binding = {"N": 1, "Cin": 8, "Cout": 16, "H": 14, "W": 14, "k": 3}
conv = kas.operator("conv2d")
assert conv.compile(binding, check="exact").check
x = numpy.random.default_rng(0).standard_normal((1, 8, 14, 14), dtype=numpy.float32)
w = numpy.random.default_rng(1).standard_normal((16, 8, 3, 3), dtype=numpy.float32)
assert numpy.allclose(conv.compile(binding)(x, w), conv.evaluate(binding, x, w), atol=1e-4)

# With loops that threads share, of OpenMP's runtime library in the wheel.
binding |= {"Cin": 64, "Cout": 64, "H": 56, "W": 56}
x = numpy.random.default_rng(0).standard_normal((1, 64, 56, 56), dtype=numpy.float32)
w = numpy.random.default_rng(1).standard_normal((64, 64, 3, 3), dtype=numpy.float32)
assert numpy.allclose(*(conv.compile(binding, threads=threads)(x, w) for threads in (1, 2)), atol=1e-3)
with open("/proc/self/maps") as maps:
    (library,) = {line.split()[-1] for line in maps if "libomp.so" in line}
assert library.startswith(kas.__path__[0]), library
END_OF_PYTHON
echo "kas: from the environment to the first operator $((SECONDS - start)) s"
cat >pool.mlir <<'END_OF_MLIR'
kas.operator @pool<C, H | s>(%c: C, %h: H/s) from [C, H] {
  %r = kas.reduce mean : s
  %i = kas.split %h, %r : H/s, s
  kas.yield data(%c, %i)
}
END_OF_MLIR
venv/bin/kas-opt pool.mlir -kas-canonicalize >canonical.mlir
venv/bin/kas-run pool.mlir --operator=pool --bind=C=4,H=12,s=3 --check=exact
# LLVM's targets that kas compiles for are in the wheel.
for cpu in x86-64-v3 neoverse-n1 sifive-u74; do
  cat <<'END_OF_MLIR' | venv/bin/kas-opt -kas-cpu-pipeline="cpu=$cpu" | venv/bin/kas-translate -kas-to-object -o "$cpu.o"
func.func @product(%x: tensor<8x16xf32>, %w: tensor<16x32xf32>, %init: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<8x16xf32>, tensor<16x32xf32>) outs(%init : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}
END_OF_MLIR
  [[ $(head -c 4 "$cpu.o" | tail -c 3) == ELF ]] || { echo "error: requires an object for $cpu" >&2; exit 1; }
done
venv/bin/kas doctor | head -n 2
