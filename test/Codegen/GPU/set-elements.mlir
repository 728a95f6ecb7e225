// RUN: kas-opt %s -kas-gpu-set-elements=elements=f16 -split-input-file | FileCheck %s
// RUN: kas-opt %s -kas-gpu-set-elements=elements=bf16 -split-input-file | FileCheck %s --check-prefix=BF16
// RUN: kas-opt %s -kas-gpu-set-elements -split-input-file | FileCheck %s --check-prefix=NONE
// NONE-NOT: f16

#rows = affine_map<(d0, d1) -> (d0, d1)>
#sums = affine_map<(d0, d1) -> (d0)>
#id = affine_map<(d0) -> (d0)>

// Sums stay wide; what is handed on, padding and constants included, is rounded.
// CHECK-LABEL: func @sums
// CHECK-SAME: (%[[X:.*]]: tensor<4x6xf16> {kas.name = "x"}) -> tensor<4xf16>
// CHECK: %[[VALUE:.*]] = arith.constant 9.997550e-02 : f16
// CHECK: %[[PADDED:.*]] = tensor.pad %[[X]]
// CHECK: tensor.yield %[[VALUE]] : f16
// CHECK: %[[SUMS:.*]] = linalg.generic {{.*}} ins(%[[PADDED]] : tensor<4x8xf16>) outs(%{{.*}} : tensor<4xf32>)
// CHECK-NEXT: ^bb0(%[[IN:.*]]: f16, %[[OUT:.*]]: f32)
// CHECK-NEXT: %[[WIDE:.*]] = arith.extf %[[IN]] : f16 to f32
// CHECK-NEXT: arith.addf %[[WIDE]], %[[OUT]] : f32
// CHECK: linalg.generic {{.*}} ins(%[[SUMS]], %{{.*}} : tensor<4xf32>, tensor<4xf16>)
// CHECK: arith.truncf %{{.*}} : f32 to f16
// BF16: func @sums(%{{.*}}: tensor<4x6xbf16> {kas.name = "x"}) -> tensor<4xbf16>
func.func @sums(%x: tensor<4x6xf32> {kas.name = "x"}) -> tensor<4xf32> {
  %value = arith.constant 0.1 : f32
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<[1.0, 2.0, 3.0, 0.1]> : tensor<4xf32>
  %padded = tensor.pad %x low[0, 1] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %value : f32
  } : tensor<4x6xf32> to tensor<4x8xf32>
  %empty = tensor.empty() : tensor<4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  %sums = linalg.generic {indexing_maps = [#rows, #sums], iterator_types = ["parallel", "reduction"]}
    ins(%padded : tensor<4x8xf32>) outs(%zeros : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %in, %out : f32
    linalg.yield %sum : f32
  } -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
    ins(%sums, %w : tensor<4xf32>, tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%in: f32, %factor: f32, %out: f32):
    %product = arith.mulf %in, %factor : f32
    linalg.yield %product : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// Operators read and write narrow tensors; sums that the function returns are rounded by a kernel of their own.
kas.operator @identity(%n: 8) from [8] {
  kas.yield data(%n)
}
// CHECK-LABEL: func @operator
// CHECK: kas.apply @identity(%{{.*}}) : (tensor<8xf16>) -> tensor<8xf16>
// CHECK: %[[MAX:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<f32>)
// CHECK: %[[ROUNDED:.*]] = linalg.generic {{.*}} ins(%[[MAX]] : tensor<f32>) outs(%{{.*}} : tensor<f16>)
// CHECK: return %[[ROUNDED]] : tensor<f16>
func.func @operator(%x: tensor<8xf32>) -> tensor<f32> {
  %least = arith.constant 0xFF800000 : f32
  %0 = kas.apply @identity(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %empty = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%least : f32) outs(%empty : tensor<f32>) -> tensor<f32>
  %max = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]}
    ins(%0 : tensor<8xf32>) outs(%init : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %larger = arith.maximumf %in, %out : f32
    linalg.yield %larger : f32
  } -> tensor<f32>
  return %max : tensor<f32>
}

// -----

// Views of sums, which stay in f32, are of f32, too.
// CHECK-LABEL: func @transposed_sums
// CHECK: %[[SUMS:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<4x8xf32>)
// CHECK: %[[INIT:.*]] = tensor.empty() : tensor<8x4xf32>
// CHECK: linalg.transpose ins(%[[SUMS]] : tensor<4x8xf32>) outs(%[[INIT]] : tensor<8x4xf32>)
// CHECK: return {{.*}} : tensor<8x4xf16>
func.func @transposed_sums(%x: tensor<4x8x16xf32>) -> tensor<8x4xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x8xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x8xf32>) -> tensor<4x8xf32>
  %sums = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>],
                          iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%x : tensor<4x8x16xf32>) outs(%zeros : tensor<4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %next = arith.addf %in, %out : f32
    linalg.yield %next : f32
  } -> tensor<4x8xf32>
  %other = tensor.empty() : tensor<8x4xf32>
  %turned = linalg.transpose ins(%sums : tensor<4x8xf32>) outs(%other : tensor<8x4xf32>) permutation = [1, 0]
  return %turned : tensor<8x4xf32>
}
