// RUN: kas-opt %s -one-shot-bufferize -split-input-file -verify-diagnostics

kas.operator @copy<N>(%n: N) from [N] {
  kas.yield data(%n)
}
func.func @symbolic(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+2 {{requires a concrete operator (see -kas-specialize), got '@copy'}}
  // expected-error @+1 {{failed to bufferize op}}
  %y = kas.apply @copy(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
