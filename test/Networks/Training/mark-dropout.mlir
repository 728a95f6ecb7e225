// RUN: kas-opt %s --split-input-file --verify-diagnostics -kas-mark-dropout | FileCheck %s

#map = affine_map<(n, c) -> (n, c)>
#none = affine_map<(n, c) -> ()>

// CHECK-LABEL: func.func @forward(
// CHECK-SAME: %[[X:.*]]: tensor<4x3xf32>, %[[W:.*]]: tensor<4x3xf32> {kas.name = "w"}) -> tensor<4x3xf32>
// CHECK: %[[Y:.*]] = kas.dropout %[[X]] probability 2.500000e-01 : tensor<4x3xf32>
// CHECK-NEXT: linalg.add ins(%[[Y]], %[[W]]
func.func @forward(%x: tensor<4x3xf32>, %d: tensor<f32> {kas.dropout = 0.25}, %w: tensor<4x3xf32> {kas.name = "w"}) -> tensor<4x3xf32> {
  %e = tensor.empty() : tensor<4x3xf32>
  %y = linalg.generic {indexing_maps = [#map, #none, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x, %d : tensor<4x3xf32>, tensor<f32>) outs(%e : tensor<4x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<4x3xf32>
  %r = linalg.add ins(%y, %w : tensor<4x3xf32>, tensor<4x3xf32>) outs(%e : tensor<4x3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// -----

#map = affine_map<(n, c) -> (n, c)>
#none = affine_map<(n, c) -> ()>

// Another use than a multiplication.
// expected-error@below {{requires arguments with 'kas.dropout' that are used once, to multiply all elements of one tensor, got argument 1}}
func.func @forward(%x: tensor<4x3xf32>, %d: tensor<f32> {kas.dropout = 0.25}) -> tensor<4x3xf32> {
  %e = tensor.empty() : tensor<4x3xf32>
  %y = linalg.generic {indexing_maps = [#map, #none, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x, %d : tensor<4x3xf32>, tensor<f32>) outs(%e : tensor<4x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.addf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}

// -----

// expected-error@below {{requires arguments with 'kas.dropout' that are used once, to multiply all elements of one tensor, got argument 1}}
func.func @forward(%x: tensor<4x3xf32>, %d: tensor<f32> {kas.dropout = 0.25}) -> tensor<4x3xf32> {
  return %x : tensor<4x3xf32>
}
