// RUN: kas-opt %s --split-input-file -transform-interpreter -canonicalize | FileCheck %s
// RUN: %mlir_plugin_opt %s --load-dialect-plugin=%kas_plugin --load-pass-plugin=%kas_plugin --split-input-file \
// RUN:   -transform-interpreter -canonicalize | FileCheck %s

// Groups of a convolution: the form of linalg.conv_2d_ngchw_gfchw, with a weight of its own.
// CHECK-DAG: #[[$X:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d5, d3 + d6, d4 + d7)>
// CHECK-DAG: #[[$W:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d1, d2, d5, d6, d7)>
// CHECK-DAG: #[[$Y:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d2, d3, d4)>
// CHECK-LABEL: func.func @grouped(
// CHECK-SAME: %[[X:.*]]: tensor<1x8x6x6xf32>,
// CHECK-SAME: %[[W:.*]]: tensor<4x3x2x3x3xf32> {kas.init = "kaiming(18)", kas.name = "conv.weight.0"},
// CHECK-SAME: %[[O:.*]]: tensor<1x12x4x4xf32>)
// CHECK: %[[XG:.*]] = tensor.expand_shape %[[X]] {{\[\[}}0], [1, 2], [3], [4]] output_shape [1, 4, 2, 6, 6]
// CHECK: %[[OG:.*]] = tensor.expand_shape %[[O]] {{\[\[}}0], [1, 2], [3], [4]] output_shape [1, 4, 3, 4, 4]
// CHECK: %[[Y:.*]] = linalg.generic {indexing_maps = [#[[$X]], #[[$W]], #[[$Y]]]
// CHECK-SAME: ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]
// CHECK-SAME: ins(%[[XG]], %[[W]] :
// CHECK-SAME: outs(%[[OG]] :
// CHECK: %[[R:.*]] = tensor.collapse_shape %[[Y]] {{\[\[}}0], [1, 2], [3], [4]]
// CHECK: return %[[R]]
module attributes {transform.with_named_sequence} {
  func.func @grouped(%x: tensor<1x8x6x6xf32>, %w: tensor<12x8x3x3xf32> {kas.name = "conv.weight"},
                     %o: tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32> {
    %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x6x6xf32>, tensor<12x8x3x3xf32>)
        outs(%o : tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32>
    return %y : tensor<1x12x4x4xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %conv = transform.structured.match ops{["linalg.conv_2d_nchw_fchw"]} in %root : (!transform.any_op) -> !transform.any_op
    %grouped = transform.kas.group %conv by 4 : (!transform.any_op) -> !transform.any_op
    %trained = transform.kas.new_weights %grouped : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// Without new weights, the diagonal blocks of the old ones. Iterators may be named, and the count a parameter.
// CHECK-DAG: #[[$BLOCKS:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d0, d2)>
// CHECK-LABEL: func.func @inherited(
// CHECK-SAME: %[[X:.*]]: tensor<5x6xf32>, %[[W:.*]]: tensor<6x4xf32>
// CHECK: %[[E:.*]] = tensor.expand_shape %[[W]] {{\[\[}}0, 1], [2, 3]] output_shape [2, 3, 2, 2]
// CHECK: %[[B:.*]] = linalg.generic {indexing_maps = [#[[$BLOCKS]], #{{.*}}], iterator_types = ["parallel", "parallel", "parallel"]} ins(%[[E]] :
// CHECK-SAME: outs(%{{.*}} : tensor<2x3x2xf32>)
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%{{.*}}, %[[B]] :
module attributes {transform.with_named_sequence} {
  func.func @inherited(%x: tensor<5x6xf32>, %w: tensor<6x4xf32>, %o: tensor<5x4xf32>) -> tensor<5x4xf32> {
    %y = linalg.matmul ins(%x, %w : tensor<5x6xf32>, tensor<6x4xf32>) outs(%o : tensor<5x4xf32>) -> tensor<5x4xf32>
    return %y : tensor<5x4xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %product = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %two = transform.param.constant 2 -> !transform.param<i64>
    %grouped = transform.kas.group %product iterators [1, 2] by %two
        : (!transform.any_op, !transform.param<i64>) -> !transform.any_op
    transform.yield
  }
}

// -----

// As many groups as channels: a depthwise convolution, whose iterators over the channels of a group are gone.
// CHECK-LABEL: func.func @depthwise(
// CHECK-SAME: %[[X:.*]]: tensor<1x8x6x6xf32>, %[[W:.*]]: tensor<8x3x3xf32> {kas.init = "kaiming(9)"}, %[[O:.*]]: tensor<1x8x4x4xf32>)
// CHECK: %[[Y:.*]] = linalg.generic
// CHECK-SAME: ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]
// CHECK-SAME: ins(%[[X]], %[[W]] :
// CHECK-SAME: outs(%[[O]] :
// CHECK: return %[[Y]]
module attributes {transform.with_named_sequence} {
  func.func @depthwise(%x: tensor<1x8x6x6xf32>, %w: tensor<8x8x3x3xf32>, %o: tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32> {
    %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x6x6xf32>, tensor<8x8x3x3xf32>)
        outs(%o : tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
    return %y : tensor<1x8x4x4xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %conv = transform.structured.match ops{["linalg.conv_2d_nchw_fchw"]} in %root : (!transform.any_op) -> !transform.any_op
    %depthwise = transform.kas.depthwise %conv : (!transform.any_op) -> !transform.any_op
    %trained = transform.kas.new_weights %depthwise : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
