// RUN: kas-opt %s -kas-proxies | FileCheck %s

// CHECK-LABEL: func.func @forward_synflow(
// CHECK-SAME: -> tensor<1xf32> attributes {kas.parameters = ["conv.weight"]}
// CHECK: math.absf

// Per layer and per parameter, and the kernel of the samples: no rectifier, so nothing is added to it.
// CHECK-LABEL: func.func @forward_proxies(
// CHECK-SAME: %{{.*}}: tensor<2x3x4x4xf32>, %{{.*}}: tensor<5x3x3x3xf32> {kas.name = "conv.weight"},
// CHECK-SAME: %{{.*}}: tensor<2x5xf32> {kas.name = "labels"})
// CHECK-SAME: -> (tensor<2x5xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<2x2xf32>)
// CHECK-SAME: attributes {kas.layers = ["conv"], kas.parameters = ["conv.weight"]}
// CHECK: math.absf
// CHECK: math.sqrt
func.func @forward(%x: tensor<2x3x4x4xf32>, %w: tensor<5x3x3x3xf32> {kas.name = "conv.weight"}) -> tensor<2x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x2x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x2x2xf32>) -> tensor<2x5x2x2xf32>
  %c = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<2x3x4x4xf32>, tensor<5x3x3x3xf32>)
      outs(%f : tensor<2x5x2x2xf32>) -> tensor<2x5x2x2xf32>
  %g = tensor.empty() : tensor<2x5xf32>
  %h = linalg.fill ins(%zero : f32) outs(%g : tensor<2x5xf32>) -> tensor<2x5xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c)>],
      iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%c : tensor<2x5x2x2xf32>) outs(%h : tensor<2x5xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<2x5xf32>
  return %r : tensor<2x5xf32>
}
