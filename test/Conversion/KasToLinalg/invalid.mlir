// RUN: kas-opt %s -kas-to-linalg -verify-diagnostics

kas.operator @copy<N>(%n: N) from [N] {
  kas.yield data(%n)
}
func.func @symbolic(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{requires a concrete operator (see -kas-specialize), got '@copy'}}
  %y = kas.apply @copy(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
