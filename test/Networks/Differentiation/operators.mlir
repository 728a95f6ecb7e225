// RUN: kas-opt %s -kas-differentiate="function=window" -canonicalize | FileCheck %s --check-prefix=WINDOW
// RUN: kas-opt %s -kas-differentiate="function=strided" -canonicalize | FileCheck %s --check-prefix=STRIDED
// RUN: kas-opt %s -kas-differentiate="function=shifted" -canonicalize | FileCheck %s --check-prefix=SHIFTED

// Which form the gradient of an operator has.

// Tiles suit both gradients of a window.
// WINDOW-LABEL: func.func @window_gradient(
// WINDOW: kas.apply_gradient @conv of 0
// WINDOW: kas.apply_gradient @conv of 1
kas.operator @conv(%n: 2, %o: 4, %w: 8) from [2, 6, 8] {
  %c = kas.reduce sum : 6
  %k = kas.reduce sum : 3
  %c_d, %c_w = kas.share %c : 6
  %k_d, %k_w = kas.share %k : 3
  %x = kas.unfold %w, %k_d : 8, 3
  kas.yield data(%n, %c_d, %x) weight(%o, %c_w, %k_w)
}
func.func @window(%x: tensor<2x6x8xf32>, %w: tensor<4x6x3xf32>) -> tensor<2x4x8xf32> {
  %y = kas.apply @conv(%x, %w) : (tensor<2x6x8xf32>, tensor<4x6x3xf32>) -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}

// Where the data was read at every other place, the gradient by it is divided by 2: sums over windows in linalg, one
// for each remainder. Nothing is left of the operator's value that the gradient does not need.
// STRIDED-LABEL: func.func @strided_gradient(
// STRIDED: kas.apply @strided_conv
// STRIDED-NOT: kas.apply_gradient @strided_conv of 0
// STRIDED: tensor.insert_slice {{.*}} [1, 1, 2]
// STRIDED: kas.apply_gradient @strided_conv of 1
kas.operator @strided_conv(%n: 2, %o: 4, %w: 4) from [2, 6, 8] {
  %c = kas.reduce sum : 6
  %k = kas.reduce sum : 3
  %c_d, %c_w = kas.share %c : 6
  %k_d, %k_w = kas.share %k : 3
  %s = kas.stride %w by 2 : 4
  %x = kas.unfold %s, %k_d : 8, 3
  kas.yield data(%n, %c_d, %x) weight(%o, %c_w, %k_w)
}
func.func @strided(%x: tensor<2x6x8xf32>, %w: tensor<4x6x3xf32>) -> tensor<2x4x4xf32> {
  %y = kas.apply @strided_conv(%x, %w) : (tensor<2x6x8xf32>, tensor<4x6x3xf32>) -> tensor<2x4x4xf32>
  return %y : tensor<2x4x4xf32>
}

// SHIFTED-LABEL: func.func @shifted_gradient(
// SHIFTED-NOT: kas.apply_gradient
// SHIFTED: tensor.insert_slice
kas.operator @shift(%n: 2, %c: 6, %w: 8) from [2, 6, 8] {
  %t = kas.shift %w by 1 : 8
  kas.yield data(%n, %c, %t)
}
func.func @shifted(%x: tensor<2x6x8xf32>) -> tensor<2x6x8xf32> {
  %y = kas.apply @shift(%x) : (tensor<2x6x8xf32>) -> tensor<2x6x8xf32>
  return %y : tensor<2x6x8xf32>
}
