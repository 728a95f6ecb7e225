// A function that returns, for each layer, the squares of what bytes change in its result and those of the result: both
// layers read f32, whose bytes nothing else reads.

// RUN: kas-opt %s -kas-quantization-errors="ranges=-1,2,0,4" | FileCheck %s
// RUN: kas-opt %s -kas-quantization-errors="ranges=-1,2,0,4" -kas-cpu-pipeline=threads=1 -o /dev/null

// CHECK-LABEL: func.func @forward(
// CHECK-LABEL: func.func @forward_errors(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<8x16xf32>, %[[W:[^:]*]]: tensor<16x16xf32>) -> tensor<2x2xf32>
// CHECK:       arith.extui
// CHECK:       %[[ROUNDED:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<8x16xf32>)
// CHECK:         arith.sitofp
// CHECK:       %[[EXACT:.*]] = linalg.matmul ins(%[[X]], %[[W]] :
// CHECK:       linalg.generic {{.*}} iterator_types = ["reduction", "reduction"]} ins(%[[ROUNDED]], %[[EXACT]] :
// CHECK:         arith.subf
// CHECK:       %[[ERROR:.*]] = tensor.extract
// CHECK:       linalg.generic {{.*}} ins(%[[EXACT]] :
// CHECK:       %[[SIZE:.*]] = tensor.extract
// CHECK:       %[[SUM:.*]] = linalg.add ins(%[[X]], %[[EXACT]] :
// CHECK:       linalg.matmul ins(%[[SUM]], %[[W]] :
// CHECK:       tensor.from_elements %[[ERROR]], %[[SIZE]], %{{.*}}, %{{.*}} : tensor<2x2xf32>
func.func @forward(%x: tensor<8x16xf32>, %w: tensor<16x16xf32>) -> tensor<8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y = linalg.matmul ins(%x, %w : tensor<8x16xf32>, tensor<16x16xf32>) outs(%init : tensor<8x16xf32>) -> tensor<8x16xf32>
  %s = linalg.add ins(%x, %y : tensor<8x16xf32>, tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %z = linalg.matmul ins(%s, %w : tensor<8x16xf32>, tensor<16x16xf32>) outs(%init : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %z : tensor<8x16xf32>
}
