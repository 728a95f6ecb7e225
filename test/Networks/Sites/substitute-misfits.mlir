// Layers that the operator does not fit stay as they are; a remark says why.
// RUN: kas-opt %s --split-input-file --verify-diagnostics -kas-substitute="operator=@other" | FileCheck %s
// RUN: kas-opt %s --split-input-file -kas-substitute="operator=@other" 2>/dev/null | kas-opt --split-input-file -kas-substitute="operator=@other" 2>/dev/null | FileCheck %s

// Two of three layers fit: the operator halves the channels only where there are two at least.
// CHECK-LABEL: func.func @partly(
// CHECK: kas.apply @other(
// CHECK: linalg.matmul {kas.site
// CHECK: kas.apply @other(
kas.operator @other<N, A, B>(%n: N, %b: B) from [N, A] {
  // expected-note @+1 {{required here}}
  %a = kas.reduce sum : A/2
  %t = kas.reduce sum : 2
  %a_d, %a_w = kas.share %a : A/2
  %ad = kas.split %a_d, %t : A/2, 2
  kas.yield data(%n, %ad) weight(%b, %a_w)
}
kas.space @linear<N, Cin, Cout> [N, Cout] from [N, Cin] bindings [<Cin = 4, Cout = 3, N = 2>, <Cin = 3, Cout = 4, N = 2>]
func.func @partly(%x: tensor<2x4xf32>, %w0: tensor<4x3xf32>, %w1: tensor<3x4xf32>, %w2: tensor<4x3xf32>, %i: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %y = linalg.matmul {kas.site = {binding = 0 : i64, space = @linear}} ins(%x, %w0 : tensor<2x4xf32>, tensor<4x3xf32>) outs(%i : tensor<2x3xf32>) -> tensor<2x3xf32>
  // expected-remark @+1 {{not replaced: requires size 'A/2' of operator 'other' to be an integer}}
  %z = linalg.matmul {kas.site = {binding = 1 : i64, space = @linear}} ins(%y, %w1 : tensor<2x3xf32>, tensor<3x4xf32>) outs(%x : tensor<2x4xf32>) -> tensor<2x4xf32>
  %u = linalg.matmul {kas.site = {binding = 0 : i64, space = @linear}} ins(%z, %w2 : tensor<2x4xf32>, tensor<4x3xf32>) outs(%i : tensor<2x3xf32>) -> tensor<2x3xf32>
  return %u : tensor<2x3xf32>
}

// -----

// CHECK-LABEL: func.func @rank(
// CHECK: linalg.matmul {kas.site
kas.operator @other<N, A, H>(%n: N, %a: A, %h: H) from [N, A, H] {
  kas.yield data(%n, %a, %h)
}
kas.space @linear<N, Cin, Cout> [N, Cout] from [N, Cin] bindings [<Cin = 4, Cout = 3, N = 2>]
func.func @rank(%x: tensor<2x4xf32>, %w: tensor<4x3xf32>, %i: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-remark @+1 {{not replaced: requires rank 3 for the data, got 2}}
  %y = linalg.matmul {kas.site = {binding = 0 : i64, space = @linear}} ins(%x, %w : tensor<2x4xf32>, tensor<4x3xf32>) outs(%i : tensor<2x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// -----

// CHECK-LABEL: func.func @channels(
// CHECK: linalg.matmul {kas.site
kas.operator @other<N, A>(%n: N, %a: A) from [N, A] {
  kas.yield data(%n, %a)
}
kas.space @linear<N, Cin, Cout> [N, Cout] from [N, Cin] bindings [<Cin = 4, Cout = 3, N = 2>]
func.func @channels(%x: tensor<2x4xf32>, %w: tensor<4x3xf32>, %i: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-remark @+1 {{not replaced: requires one value for symbol 'A', got 4 and 3}}
  %y = linalg.matmul {kas.site = {binding = 0 : i64, space = @linear}} ins(%x, %w : tensor<2x4xf32>, tensor<4x3xf32>) outs(%i : tensor<2x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// -----

// CHECK-LABEL: func.func @missing_coefficient(
// CHECK: linalg.matmul {kas.site
kas.operator @other<N, A | q>(%n: N, %a: A) from [N, A] {
  %x = kas.reduce sum : q
  %y = kas.unfold %a, %x : A, q
  kas.yield data(%n, %y)
}
kas.space @linear<N, Cin, Cout> [N, Cout] from [N, Cin] bindings [<Cin = 4, Cout = 4, N = 2>]
func.func @missing_coefficient(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  // expected-remark @+1 {{not replaced: requires a value for symbol 'q' of operator 'other', got none}}
  %y = linalg.matmul {kas.site = {binding = 0 : i64, space = @linear}} ins(%x, %w : tensor<2x4xf32>, tensor<4x4xf32>) outs(%x : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

// What a mark is on may have changed since.
// CHECK-LABEL: func.func @no_layer(
// CHECK: linalg.matmul {kas.site
// CHECK: linalg.negf {kas.site
kas.operator @other<N, A>(%n: N, %a: A) from [N, A] {
  kas.yield data(%n, %a)
}
kas.space @linear<N, Cin, Cout> [N, Cout] from [N, Cin] bindings [<Cin = 4, Cout = 4, N = 2>]
func.func @no_layer(%x: tensor<?x4xf32>, %w: tensor<4x4xf32>) -> tensor<?x4xf32> {
  // expected-remark @+1 {{not replaced: requires static shapes, got tensor<?x4xf32>}}
  %y = linalg.matmul {kas.site = {binding = 0 : i64, space = @linear}} ins(%x, %w : tensor<?x4xf32>, tensor<4x4xf32>) outs(%x : tensor<?x4xf32>) -> tensor<?x4xf32>
  // expected-remark @+1 {{not replaced: requires a layer}}
  %z = linalg.negf {kas.site = {binding = 0 : i64, space = @linear}} ins(%y : tensor<?x4xf32>) outs(%x : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %z : tensor<?x4xf32>
}

// -----

// CHECK-LABEL: func.func @called(
// CHECK: linalg.matmul {kas.site
kas.operator @other<N, A>(%n: N, %a: A) from [N, A] {
  kas.yield data(%n, %a)
}
kas.space @linear<N, Cin, Cout> [N, Cout] from [N, Cin] bindings [<Cin = 4, Cout = 4, N = 2>]
func.func @called(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  // expected-remark @+1 {{not replaced: requires a function that is not called, because its arguments change}}
  %y = linalg.matmul {kas.site = {binding = 0 : i64, space = @linear}} ins(%x, %w : tensor<2x4xf32>, tensor<4x4xf32>) outs(%x : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
func.func @caller(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  %y = func.call @called(%x, %w) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
