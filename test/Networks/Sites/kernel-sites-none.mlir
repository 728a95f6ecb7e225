// RUN: kas-opt %s -kas-extract=kernel=true | FileCheck %s

// No convolution, no kernel.
// CHECK-NOT:   kas.kernel
// CHECK-LABEL: func.func @nothing
func.func @nothing(%x: tensor<2x8x6x4xf32>) -> tensor<2x8x6x4xf32> {
  return %x : tensor<2x8x6x4xf32>
}
