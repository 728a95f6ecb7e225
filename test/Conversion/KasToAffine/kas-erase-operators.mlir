// RUN: kas-opt %s -kas-to-affine -kas-erase-operators | FileCheck %s --check-prefix=ERASED
// RUN: kas-opt %s -kas-erase-operators | FileCheck %s --check-prefix=KEPT

// ERASED-NOT: kas.
// KEPT: kas.operator @copy
// KEPT: kas.space @layers
// KEPT: kas.apply @copy
kas.operator @copy(%n: 4) from [4] {
  kas.yield data(%n)
}
kas.space @layers<N> [N] from [N] bindings [<N = 4> x 1]
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = kas.apply @copy(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
