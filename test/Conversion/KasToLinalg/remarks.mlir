// RUN: kas-opt %s -kas-to-linalg=max-elements=100 -verify-diagnostics -split-input-file | FileCheck %s

// What linalg cannot express stays a kas.apply, with the reason.

// CHECK-LABEL: func @mixed(
// CHECK-NEXT:    kas.apply
kas.operator @max_of_sum(%a: 4) from [4, 5, 6] {
  %m = kas.reduce max : 5
  %s = kas.reduce sum : 6
  kas.yield data(%a, %m, %s)
}
func.func @mixed(%x: tensor<4x5x6xf32>) -> tensor<4xf32> {
  // expected-remark @+1 {{left to -kas-to-affine, since linalg ops cannot express operator '@max_of_sum': it reduces by max and by sum}}
  %y = kas.apply @max_of_sum(%x) : (tensor<4x5x6xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// CHECK-LABEL: func @weighted(
// CHECK-NEXT:    kas.apply
kas.operator @weighted_max(%a: 4) from [4] {
  %k = kas.reduce max : 3
  %k_d, %k_w = kas.share %k : 3
  %x = kas.unfold %a, %k_d : 4, 3
  kas.yield data(%x) weight(%k_w)
}
func.func @weighted(%x: tensor<4xf32>, %w: tensor<3xf32>) -> tensor<4xf32> {
  // expected-remark @+1 {{it clips under a max of products}}
  %y = kas.apply @weighted_max(%x, %w) : (tensor<4xf32>, tensor<3xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// CHECK-LABEL: func @empty_max(
// CHECK-NEXT:    kas.apply
kas.operator @max_without_points(%a: 4, %k: 3) from [4, 2] {
  %m = kas.reduce max : 2
  %x = kas.unfold %a, %k : 4, 3
  kas.yield data(%x, %m)
}
func.func @empty_max(%x: tensor<4x2xf32>) -> tensor<4x3xf32> {
  // expected-remark @+1 {{a max may have no points for some outputs}}
  %y = kas.apply @max_without_points(%x) : (tensor<4x2xf32>) -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}

// -----

// CHECK-LABEL: func @large(
// CHECK-NEXT:    kas.apply
kas.operator @pad_large(%a: 99) from [99] {
  %k = kas.reduce sum : 3
  %x = kas.unfold %a, %k : 99, 3
  kas.yield data(%x)
}
func.func @large(%x: tensor<99xf32>) -> tensor<99xf32> {
  // expected-remark @+1 {{it needs a copy of shape 101, of more than 100 elements}}
  %y = kas.apply @pad_large(%x) : (tensor<99xf32>) -> tensor<99xf32>
  return %y : tensor<99xf32>
}

// -----

// A max over one value is none.

// CHECK-LABEL: func @trivial_max(
// CHECK:         linalg.generic
kas.operator @max_of_one(%a: 4) from [4, 1, 6] {
  %m = kas.reduce max : 1
  %s = kas.reduce sum : 6
  kas.yield data(%a, %m, %s)
}
func.func @trivial_max(%x: tensor<4x1x6xf32>) -> tensor<4xf32> {
  %y = kas.apply @max_of_one(%x) : (tensor<4x1x6xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
