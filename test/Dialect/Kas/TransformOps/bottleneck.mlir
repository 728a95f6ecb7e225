// RUN: kas-opt %s --split-input-file -transform-interpreter -canonicalize | FileCheck %s

// A reduction keeps its first points.
// CHECK-LABEL: func.func @inputs(
// CHECK-SAME: %[[X:.*]]: tensor<1x8x6x6xf32>, %[[W:.*]]: tensor<12x8x3x3xf32>
// CHECK: %[[XS:.*]] = tensor.extract_slice %[[X]][0, 0, 0, 0] [1, 2, 6, 6] [1, 1, 1, 1]
// CHECK: %[[WS:.*]] = tensor.extract_slice %[[W]][0, 0, 0, 0] [12, 2, 3, 3] [1, 1, 1, 1]
// CHECK: linalg.generic {{.*}} ins(%[[XS]], %[[WS]] :
// CHECK-SAME: outs(%{{.*}} : tensor<1x12x4x4xf32>)
module attributes {transform.with_named_sequence} {
  func.func @inputs(%x: tensor<1x8x6x6xf32>, %w: tensor<12x8x3x3xf32>, %o: tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32> {
    %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x6x6xf32>, tensor<12x8x3x3xf32>)
        outs(%o : tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32>
    return %y : tensor<1x12x4x4xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %conv = transform.structured.match ops{["linalg.conv_2d_nchw_fchw"]} in %root : (!transform.any_op) -> !transform.any_op
    %fewer = transform.kas.bottleneck %conv iterator 4 by 4 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// A spatial iterator: a stride, and each result twice.
// CHECK: affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d2 * 2 + d5, d3 + d6)>
// CHECK-LABEL: func.func @rows(
// CHECK: %[[O:.*]] = tensor.extract_slice %{{.*}}[0, 0, 0, 0] [1, 12, 2, 4] [1, 1, 2, 1]
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} outs(%[[O]] : tensor<1x12x2x4xf32>)
// CHECK: %[[B:.*]] = linalg.broadcast ins(%[[Y]] : {{.*}}) outs(%{{.*}} : tensor<1x12x2x2x4xf32>) dimensions = [3]
// CHECK: tensor.collapse_shape %[[B]] {{\[\[}}0], [1], [2, 3], [4]]
module attributes {transform.with_named_sequence} {
  func.func @rows(%x: tensor<1x8x6x6xf32>, %w: tensor<12x8x3x3xf32>, %o: tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32> {
    %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x6x6xf32>, tensor<12x8x3x3xf32>)
        outs(%o : tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32>
    return %y : tensor<1x12x4x4xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %conv = transform.structured.match ops{["linalg.conv_2d_nchw_fchw"]} in %root : (!transform.any_op) -> !transform.any_op
    %fewer = transform.kas.bottleneck %conv iterator 2 by 2 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// The last input channels; the kernel without its first row: the data begins one row later.
// CHECK-LABEL: func.func @rest(
// CHECK-SAME: %[[X:.*]]: tensor<1x8x6x6xf32>, %[[W:.*]]: tensor<12x8x3x3xf32>
// CHECK-DAG: %[[XC:.*]] = tensor.extract_slice %[[X]][0, 5, 0, 0] [1, 3, 6, 6] [1, 1, 1, 1]
// CHECK-DAG: %[[WC:.*]] = tensor.extract_slice %[[W]][0, 5, 0, 0] [12, 3, 3, 3] [1, 1, 1, 1]
// CHECK-DAG: tensor.extract_slice %[[XC]][0, 0, 1, 0] [1, 3, 5, 6] [1, 1, 1, 1]
// CHECK-DAG: tensor.extract_slice %[[WC]][0, 0, 1, 0] [12, 3, 2, 3] [1, 1, 1, 1]
module attributes {transform.with_named_sequence} {
  func.func @rest(%x: tensor<1x8x6x6xf32>, %w: tensor<12x8x3x3xf32>, %o: tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32> {
    %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x6x6xf32>, tensor<12x8x3x3xf32>)
        outs(%o : tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32>
    return %y : tensor<1x12x4x4xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %conv = transform.structured.match ops{["linalg.conv_2d_nchw_fchw"]} in %root : (!transform.any_op) -> !transform.any_op
    %channels = transform.kas.restrict %conv iterator 4 from 5 : (!transform.any_op) -> !transform.any_op
    %rows = transform.kas.restrict %channels iterator 5 from 1 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
