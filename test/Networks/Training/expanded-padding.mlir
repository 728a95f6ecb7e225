// RUN: kas-opt %s -kas-training-step="momentum=0 loss=mse" | FileCheck %s

// Channels are cut into groups before lines are padded: the gradient of the
// image is computed for what is inside alone.

// CHECK-LABEL: func.func @train_step
// CHECK:         %[[GROUPS:.*]] = tensor.expand_shape %{{.*}} {{\[\[}}0], [1, 2], [3]] {{.*}} : tensor<2x4x8xf32> into tensor<2x2x2x8xf32>
// CHECK:         tensor.pad %[[GROUPS]] low[0, 0, 0, 1] high[0, 0, 0, 1]
// CHECK:         outs(%{{.*}} : tensor<2x2x2x8xf32>)
// CHECK-NOT:     outs(%{{.*}} : tensor<2x2x2x10xf32>)
// CHECK:         return


#data = affine_map<(n, g, o, w, c, j) -> (n, g, c, w + j)>
#weight = affine_map<(n, g, o, w, c, j) -> (g, o, c, j)>
#result = affine_map<(n, g, o, w, c, j) -> (n, g, o, w)>
#all = affine_map<(n, c, w) -> (n, c, w)>
func.func @forward(%x: tensor<2x4x8xf32>, %s: tensor<2x4x8xf32>, %w: tensor<2x2x2x3xf32>) -> tensor<2x32xf32> {
  %zero = arith.constant 0.0 : f32
  %whole = tensor.empty() : tensor<2x4x8xf32>
  %scaled = linalg.mul ins(%x, %s : tensor<2x4x8xf32>, tensor<2x4x8xf32>) outs(%whole : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %padded = tensor.pad %scaled low[0, 0, 1] high[0, 0, 1] {
  ^bb0(%a: index, %b: index, %c: index):
    tensor.yield %zero : f32
  } : tensor<2x4x8xf32> to tensor<2x4x10xf32>
  %groups = tensor.expand_shape %padded [[0], [1, 2], [3]] output_shape [2, 2, 2, 10] : tensor<2x4x10xf32> into tensor<2x2x2x10xf32>
  %empty = tensor.empty() : tensor<2x2x2x8xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x2x2x8xf32>) -> tensor<2x2x2x8xf32>
  %y = linalg.generic {
      indexing_maps = [#data, #weight, #result],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%groups, %w : tensor<2x2x2x10xf32>, tensor<2x2x2x3xf32>) outs(%zeros : tensor<2x2x2x8xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %product = arith.mulf %a, %b : f32
    %more = arith.addf %sum, %product : f32
    linalg.yield %more : f32
  } -> tensor<2x2x2x8xf32>
  %logits = tensor.collapse_shape %y [[0], [1, 2, 3]] : tensor<2x2x2x8xf32> into tensor<2x32xf32>
  return %logits : tensor<2x32xf32>
}
