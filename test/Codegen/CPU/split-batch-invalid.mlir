// RUN: not kas-opt %s -kas-split-batch=size=-2 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not kas-opt %s -kas-split-batch=threads=-1 2>&1 | FileCheck %s --check-prefix=THREADS

// SIZE: error: option 'size' requires a number of at least 0, got -2
// THREADS: error: option 'threads' requires a number of at least 0, got -1
func.func @forward(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %y = arith.addf %x, %x : tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}
