// RUN: kas-opt %s --split-input-file --verify-diagnostics -kas-substitute="same-weights bind=k=3 operator=@other" | FileCheck %s --implicit-check-not=kas.apply

// CHECK-LABEL: func.func @two_weights(
kas.operator @other<N, A, B | k>(%n: N, %b: B) from [N, A] {
  %a = kas.reduce sum : A
  %t = kas.reduce sum : k
  %a_d, %a_w = kas.share %a : A
  kas.yield data(%n, %a_d) weight(%t, %a_w) weight(%b)
}
kas.space @linear<N, Cin, Cout> [N, Cout] from [N, Cin] bindings [<Cin = 4, Cout = 3, N = 2>]
func.func @two_weights(%x: tensor<2x4xf32>, %w: tensor<4x3xf32>, %i: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-remark @+1 {{not replaced: requires one weight to keep the old one, got 2}}
  %y = linalg.matmul {kas.site = {binding = 0 : i64, space = @linear}} ins(%x, %w : tensor<2x4xf32>, tensor<4x3xf32>) outs(%i : tensor<2x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// -----

// CHECK-LABEL: func.func @more_dimensions(
kas.operator @other<N, A, B | k>(%n: N, %b: B) from [N, A] {
  %a = kas.reduce sum : A
  %t = kas.reduce sum : k
  %a_d, %a_w = kas.share %a : A
  kas.yield data(%n, %a_d) weight(%t, %a_w, %b)
}
kas.space @linear<N, Cin, Cout> [N, Cout] from [N, Cin] bindings [<Cin = 4, Cout = 3, N = 2>]
func.func @more_dimensions(%x: tensor<2x4xf32>, %w: tensor<4x3xf32>, %i: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-remark @+1 {{not replaced: requires the dimensions of the old weight (Cin, Cout), got one of size 3}}
  %y = linalg.matmul {kas.site = {binding = 0 : i64, space = @linear}} ins(%x, %w : tensor<2x4xf32>, tensor<4x3xf32>) outs(%i : tensor<2x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// -----

// CHECK-LABEL: func.func @fewer_dimensions(
kas.operator @other<N, A, B | k>(%n: N, %b: B) from [N, A] {
  %a = kas.reduce sum : A
  kas.yield data(%n, %a) weight(%b)
}
kas.space @linear<N, Cin, Cout> [N, Cout] from [N, Cin] bindings [<Cin = 4, Cout = 3, N = 2>]
func.func @fewer_dimensions(%x: tensor<2x4xf32>, %w: tensor<4x3xf32>, %i: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-remark @+1 {{not replaced: requires a weight with dimension Cin of the old one, got none}}
  %y = linalg.matmul {kas.site = {binding = 0 : i64, space = @linear}} ins(%x, %w : tensor<2x4xf32>, tensor<4x3xf32>) outs(%i : tensor<2x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}
