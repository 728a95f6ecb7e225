// RUN: kas-opt %s -kas-fisher | FileCheck %s
// RUN: not kas-opt %s -kas-fisher=function=none 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not kas-opt %s -kas-fisher=residual-only 2>&1 | FileCheck %s --check-prefix=RESIDUAL

// NONE: error: option 'function' requires a function with a body, got 'none'
// RESIDUAL: error: for Fisher Potential, requires a convolution, got none

// CHECK-LABEL: func.func @forward_fisher(
// CHECK-SAME: %[[X:.*]]: tensor<2x3x6x6xf32>, %[[W:.*]]: tensor<5x3x3x3xf32> {kas.name = "conv.weight"},
// CHECK-SAME: %[[LABELS:.*]]: tensor<2x5xf32> {kas.name = "labels"})
// CHECK-SAME: -> (tensor<2x5xf32>, tensor<1xf32>) attributes {kas.layers = ["conv"]}
// CHECK: %[[A:.*]] = linalg.conv_2d_nchw_fchw
// CHECK: %[[Y:.*]] = linalg.generic
// The cross entropy's gradient, that of the layer, and the sums of the score.
// CHECK: math.exp
// CHECK: %[[DY:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %{{.*}}, %[[LABELS]] :
// CHECK: %[[DA:.*]] = linalg.generic {{.*}} ins(%[[DY]] :
// CHECK: %[[S:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%[[A]], %[[DA]] :
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "reduction"]} ins(%[[S]] :
// CHECK: return %[[Y]],
func.func @forward(%x: tensor<2x3x6x6xf32>, %w: tensor<5x3x3x3xf32> {kas.name = "conv.weight"}) -> tensor<2x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x4x4xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x4x4xf32>) -> tensor<2x5x4x4xf32>
  %a = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<2x3x6x6xf32>, tensor<5x3x3x3xf32>)
      outs(%i : tensor<2x5x4x4xf32>) -> tensor<2x5x4x4xf32>
  %f = tensor.empty() : tensor<2x5xf32>
  %j = linalg.fill ins(%zero : f32) outs(%f : tensor<2x5xf32>) -> tensor<2x5xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c)>],
      iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%a : tensor<2x5x4x4xf32>) outs(%j : tensor<2x5xf32>) {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %q, %p : f32
    linalg.yield %s : f32
  } -> tensor<2x5xf32>
  return %y : tensor<2x5xf32>
}
