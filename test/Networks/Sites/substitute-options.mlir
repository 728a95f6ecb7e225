// RUN: kas-opt %s -kas-substitute="operator=kas.conv1x1 space=@a" | FileCheck %s --check-prefix=SPACE
// RUN: kas-opt %s -kas-substitute="operator=conv1x1_again space=a" 2>&1 | FileCheck %s --check-prefix=PLAIN
// RUN: kas-opt %s -kas-substitute="operator=kas.conv2d bind=k=3 space=@b" | FileCheck %s --check-prefix=BIND
// RUN: kas-opt %s -kas-substitute="same-weights" 2>&1 | FileCheck %s --check-prefix=NAMED
// RUN: kas-opt %s -kas-substitute="operator=kas.linear" 2>/dev/null | FileCheck %s --check-prefix=NOTHING
// RUN: not kas-opt %s -kas-substitute="operator=@nothing" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not kas-opt %s -kas-substitute="operator=@a" 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: not kas-opt %s -kas-substitute="operator=kas.nothing" 2>&1 | FileCheck %s --check-prefix=LIBRARY
// RUN: not kas-opt %s -kas-substitute="operator=kas.conv2d space=@nothing" 2>&1 | FileCheck %s --check-prefix=NOSPACE
// RUN: not kas-opt %s -kas-substitute="operator=kas.conv2d bind=q=3" 2>&1 | FileCheck %s --check-prefix=SYMBOL
// RUN: not kas-opt %s -kas-substitute="operator=kas.conv2d bind=k" 2>&1 | FileCheck %s --check-prefix=MALFORMED
// RUN: not kas-opt %s -kas-substitute="bind=k=3" 2>&1 | FileCheck %s --check-prefix=ALONE

// RUN: kas-opt %s -kas-substitute="operator=kas.conv1x1 layers=two" | FileCheck %s --check-prefix=LAYERS
// RUN: not kas-opt %s -kas-substitute="operator=kas.conv1x1 layers=one,three" 2>&1 | FileCheck %s --check-prefix=NOLAYER
// RUN: not kas-opt %s -kas-substitute="operator=kas.conv1x1 space=@a layers=two" 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not kas-opt %s -kas-substitute="kernel=@k layers=one" 2>&1 | FileCheck %s --check-prefix=KERNEL

// UNKNOWN: error: requires a kas.operator, got '@nothing'
// WRONG: error: requires a kas.operator, got '@a'
// LIBRARY: error: requires an operator of the library, got 'kas.nothing'
// NOSPACE: error: requires a kas.space, got '@nothing'
// NOLAYER: error: requires layers that are marked in 'layers', got 'three'
// OTHER: error: requires layers that are marked in 'layers', got 'two'
// KERNEL: error: requires an operator beside 'layers', got a kernel
// SYMBOL: error: requires symbols of operator 'kas.conv2d' in 'bind', got 'q'
// MALFORMED: error: option 'bind': a binding must have the form NAME=VALUE
// ALONE: error: requires an operator beside 'bind', got none

// Only the layers of one space. An operator of the library that no layer takes does not stay in the module.
// SPACE: kas.operator @kas.conv1x1<
// SPACE: func.func @forward(%{{.*}}: tensor<1x4x2x2xf32>, %[[W:.*]]: tensor<4x4xf32> {kas.init = "kaiming(4)", kas.name = "one.weight.0"}
// SPACE: kas.apply @kas.conv1x1(
// SPACE: linalg.conv_2d_nchw_fchw
// PLAIN: kas.apply @conv1x1_again(
// PLAIN: linalg.conv_2d_nchw_fchw
// NOTHING-NOT: kas.operator @kas
// NOTHING-NOT: kas.apply

// Only the layers of these names.
// LAYERS: kas.name = "one.weight"}
// LAYERS-SAME: kas.name = "two.weight.0"}
// LAYERS: linalg.conv_2d_nchw_fchw
// LAYERS: kas.apply @kas.conv1x1(

// BIND: kas.operator @kas.conv2d<
// BIND: tensor<4x4x3x3xf32> {kas.init = "kaiming(36)", kas.name = "two.weight.0"}
// BIND: linalg.conv_2d_nchw_fchw
// BIND: kas.apply @kas.conv2d<k = 3>(

// Without `operator`, each layer gets the one that its space names, or else one that computes the same.
// NAMED: kas.apply @conv1x1_again(
// NAMED: kas.apply @kas.conv1x1(

kas.operator @conv1x1_again<N, A, B, H, W>(%n: N, %b: B, %h: H, %w: W) from [N, A, H, W] {
  %a = kas.reduce sum : A
  %a_d, %a_w = kas.share %a : A
  kas.yield data(%n, %a_d, %h, %w) weight(%b, %a_w)
}
kas.space @a<N, Cin, Cout, H, W> [N, Cout, H, W] from [N, Cin, H, W] bindings [<N = 1, Cin = 4, Cout = 4, H = 2, W = 2>] attributes {kas.named_operator = "conv1x1_again"}
kas.space @b<N, Cin, Cout, H, W> [N, Cout, H, W] from [N, Cin, H, W] bindings [<N = 1, Cin = 4, Cout = 4, H = 2, W = 2>]
func.func @forward(%x: tensor<1x4x2x2xf32>, %w: tensor<4x4x1x1xf32> {kas.name = "one.weight"}, %u: tensor<4x4x1x1xf32> {kas.name = "two.weight"}) -> tensor<1x4x2x2xf32> {
  %y = linalg.conv_2d_nchw_fchw {kas.site = {binding = 0 : i64, name = "one", space = @a}} ins(%x, %w : tensor<1x4x2x2xf32>, tensor<4x4x1x1xf32>) outs(%x : tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32>
  %z = linalg.conv_2d_nchw_fchw {kas.site = {binding = 0 : i64, name = "two", space = @b}} ins(%y, %u : tensor<1x4x2x2xf32>, tensor<4x4x1x1xf32>) outs(%y : tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32>
  return %z : tensor<1x4x2x2xf32>
}
