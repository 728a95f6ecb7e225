// RUN: kas-opt %s -kas-label-operations --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s
// RUN: kas-opt %s -kas-label-operations -kas-fuse-elementwise --mlir-print-debuginfo --mlir-print-local-scope \
// RUN:   | FileCheck %s --check-prefix=FUSED

// Operations are numbered in their order, with all in their regions; constants
// and empty tensors have no number.
// CHECK-LABEL: func.func @layer
// CHECK:         arith.constant 0.000000e+00 : f32 loc("{{.*}}":[[#]]:[[#]])
// CHECK-NEXT:    tensor.empty() : tensor<4x8xf32> loc("{{.*}}":[[#]]:[[#]])
// CHECK-NEXT:    linalg.fill {{.*}} loc(fused<{kas_cpu.operation = 0 : i64}>["{{.*}}":[[#]]:[[#]]])
// CHECK-NEXT:    linalg.matmul {{.*}} loc(fused<{kas_cpu.operation = 1 : i64}>[
// CHECK:         linalg.generic
// CHECK:           math.exp {{.*}} loc(fused<{kas_cpu.operation = 2 : i64}>[
// CHECK:         } {{.*}} loc(fused<{kas_cpu.operation = 2 : i64}>[
// CHECK:           arith.negf {{.*}} loc(fused<{kas_cpu.operation = 3 : i64}>[

// What is fused keeps the numbers of both.
// FUSED-LABEL: func.func @layer
// FUSED:         linalg.matmul
// FUSED:         linalg.generic
// FUSED:           math.exp {{.*}} loc(fused<{kas_cpu.operation = 2 : i64}>[
// FUSED-NEXT:      arith.negf {{.*}} loc(fused<{kas_cpu.operation = 3 : i64}>[
// FUSED-NOT:     linalg.generic
#id = affine_map<(i, j) -> (i, j)>
func.func @layer(%x: tensor<4x6xf32>, %w: tensor<6x8xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x8xf32>) -> tensor<4x8xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<4x6xf32>, tensor<6x8xf32>) outs(%init : tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<4x8xf32>) outs(%empty : tensor<4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %e = math.exp %in : f32
    linalg.yield %e : f32
  } -> tensor<4x8xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%1 : tensor<4x8xf32>) outs(%empty : tensor<4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %n = arith.negf %in : f32
    linalg.yield %n : f32
  } -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}
