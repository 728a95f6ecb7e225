// Of two layers the second one stays f32.

// RUN: kas-opt %s -kas-quantize="ranges=-1,2,0,4 kept=1" | FileCheck %s
// RUN: kas-opt %s -kas-quantize="ranges=-1,2,0,4 kept=0,1" | FileCheck %s --check-prefix=ALL

// CHECK-COUNT-1: arith.extui
// CHECK-NOT:     arith.extui
// CHECK:         linalg.matmul {{.*}} -> tensor<8x4xf32>
// ALL-NOT: arith.extui
func.func @forward(%x: tensor<8x16xf32>, %w: tensor<16x16xf32>, %v: tensor<16x4xf32>) -> tensor<8x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y = linalg.matmul ins(%x, %w : tensor<8x16xf32>, tensor<16x16xf32>) outs(%init : tensor<8x16xf32>) -> tensor<8x16xf32>
  %f = tensor.empty() : tensor<8x4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%f : tensor<8x4xf32>) -> tensor<8x4xf32>
  %z = linalg.matmul ins(%y, %v : tensor<8x16xf32>, tensor<16x4xf32>) outs(%start : tensor<8x4xf32>) -> tensor<8x4xf32>
  return %z : tensor<8x4xf32>
}
