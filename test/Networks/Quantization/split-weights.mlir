// RUN: kas-opt %s -split-input-file -kas-split-weights -canonicalize | FileCheck %s

// What is computed of weights alone moves, whichever reads it; what the data
// meets, and weights that are still read, stay.

// CHECK-LABEL: func.func @forward(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<2x4xf32>, %[[B:[^:]*]]: tensor<8xf32> {kas.name = "b"}, %[[W:[^:]*]]: tensor<4x8xi8>) -> tensor<2x8xf32>
// CHECK-NOT:     arith.fptosi
// CHECK:         linalg.broadcast ins(%[[B]] : tensor<8xf32>)
// CHECK:         linalg.generic {{.*}} ins(%[[X]], %[[W]] :
// CHECK-LABEL: func.func @forward_weights(
// CHECK-SAME:    %[[OLD:[^:]*]]: tensor<4x8xf32> {kas.name = "w"}, %[[BIAS:[^:]*]]: tensor<8xf32> {kas.name = "b"}) -> (tensor<8xf32>, tensor<4x8xi8>)
// CHECK:         %[[BYTES:.*]] = linalg.generic {{.*}} ins(%[[OLD]] :
// CHECK:         return %[[BIAS]], %[[BYTES]]
#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @forward(%x: tensor<2x4xf32>, %w: tensor<4x8xf32> {kas.name = "w"},
                   %b: tensor<8xf32> {kas.name = "b"}) -> tensor<2x8xf32> {
  %e = tensor.empty() : tensor<4x8xi8>
  %bytes = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<4x8xf32>) outs(%e : tensor<4x8xi8>) {
  ^bb0(%in: f32, %out: i8):
    %v = arith.fptosi %in : f32 to i8
    linalg.yield %v : i8
  } -> tensor<4x8xi8>
  %f = tensor.empty() : tensor<2x8xf32>
  %start = linalg.broadcast ins(%b : tensor<8xf32>) outs(%f : tensor<2x8xf32>) dimensions = [0]
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                                        affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %bytes : tensor<2x4xf32>, tensor<4x8xi8>) outs(%start : tensor<2x8xf32>) {
  ^bb0(%a: f32, %c: i8, %out: f32):
    %d = arith.sitofp %c : i8 to f32
    %p = arith.mulf %a, %d : f32
    %s = arith.addf %p, %out : f32
    linalg.yield %s : f32
  } -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// A result may depend on weights alone, a second argument may be data, and a
// function may have no weights.

// CHECK-LABEL: func.func @forward(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<4xf32>, %[[Z:[^:]*]]: tensor<4xf32> {kas.data}, %[[V:[^:]*]]: tensor<4xf32>)
// CHECK:         %[[S:.*]] = arith.addf %[[X]], %[[Z]]
// CHECK:         return %[[S]], %[[V]]
// CHECK-LABEL: func.func @forward_weights(
// CHECK-SAME:    %[[W:[^:]*]]: tensor<4xf32>) -> tensor<4xf32>
// CHECK:         arith.negf %[[W]]
func.func @forward(%x: tensor<4xf32>, %z: tensor<4xf32> {kas.data}, %w: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>) {
  %s = arith.addf %x, %z : tensor<4xf32>
  %v = arith.negf %w : tensor<4xf32>
  return %s, %v : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @forward(%{{.*}}: tensor<4xf32>) -> tensor<4xf32>
// CHECK-LABEL: func.func @forward_weights() {
func.func @forward(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
