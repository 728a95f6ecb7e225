// Functions that apply operators are inlined.

// RUN: kas-opt %s -inline -symbol-dce | FileCheck %s

kas.operator @linear<N, Cin, Cout>(%n: N, %o: Cout) from [N, Cin] {
  %r = kas.reduce sum : Cin
  %a, %b = kas.share %r : Cin
  kas.yield data(%n, %a) weight(%o, %b)
}

// CHECK-NOT: func.func private
func.func private @layer(%x: tensor<2x3xf32>, %w: tensor<4x3xf32>) -> tensor<2x4xf32> {
  %y = kas.apply @linear<N = 2, Cin = 3, Cout = 4>(%x, %w) : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @network
// CHECK-NEXT: %[[Y:.*]] = kas.apply @linear<Cin = 3, Cout = 4, N = 2>(%arg0, %arg1)
// CHECK-NEXT: return %[[Y]]
func.func @network(%x: tensor<2x3xf32>, %w: tensor<4x3xf32>) -> tensor<2x4xf32> {
  %y = call @layer(%x, %w) : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
