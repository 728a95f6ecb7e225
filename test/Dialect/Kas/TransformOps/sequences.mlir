// RUN: kas-opt %s -transform-preload-library=transform-library-paths=%kas_src_root/lib/Dialect/Kas/TransformOps/Library/nas-pte.mlir \
// RUN:   -transform-interpreter -canonicalize -cse | FileCheck %s
// RUN: kas-opt %s -transform-preload-library=transform-library-paths=%kas_src_root/lib/Dialect/Kas/TransformOps/Library/nas-pte.mlir \
// RUN:   -transform-interpreter -canonicalize -cse \
// RUN:   -one-shot-bufferize=bufferize-function-boundaries -cse -canonicalize | FileCheck %s --check-prefix=COPIES

// The sequences of the library, on layers of one network: a script declares what it includes.

// Slabs are padded each.
// CHECK-LABEL: func.func @first(
// CHECK-SAME: tensor<2x8x8x3x3xf32> {kas.init = "kaiming(72)", kas.name = "first.weight.0"}
// CHECK: %[[SLABS:.*]] = tensor.expand_shape %{{.*}} {{\[\[}}0], [1], [2, 3], [4]] output_shape [1, 8, 2, 3, 6]
// CHECK: tensor.pad %[[SLABS]] low[0, 0, 0, 1, 1] high[0, 0, 0, 1, 1]
// CHECK: linalg.generic

// Outputs of the parts go to where they belong: no concatenation, no copy.
// CHECK-LABEL: func.func @second(
// CHECK-SAME: tensor<4x8x1x1xf32> {kas.init = "kaiming(8)", kas.name = "second.weight.0"}
// CHECK-SAME: tensor<2x2x2x1x1xf32> {kas.init = "kaiming(2)", kas.name = "second.weight.1"}
// CHECK: linalg.conv_2d_nchw_fchw
// CHECK: tensor.extract_slice %{{.*}}[0, 4, 0, 0] [1, 4, 6, 6]
// CHECK: linalg.generic
// CHECK: tensor.insert_slice

// CHECK-LABEL: func.func @third(
// CHECK-SAME: tensor<2x2x4x1x1xf32> {kas.init = "kaiming(4)", kas.name = "third.weight.0"}
// CHECK-SAME: tensor<4x2x1x1xf32> {kas.init = "kaiming(2)", kas.name = "third.weight.1"}
// CHECK-COUNT-2: linalg.generic

// COPIES-LABEL: func.func @second(
// COPIES-COUNT-1: memref.alloc
// COPIES-NOT: memref.alloc
// COPIES-NOT: memref.copy
// COPIES-NOT: linalg.copy
// COPIES: return
// COPIES-LABEL: func.func @third(
// COPIES-COUNT-1: memref.alloc
// COPIES-NOT: memref.alloc
// COPIES-NOT: memref.copy
// COPIES-NOT: linalg.copy
// COPIES: return

module attributes {transform.with_named_sequence} {
  func.func @first(%x: tensor<1x8x6x6xf32>, %w: tensor<8x8x3x3xf32> {kas.name = "first.weight"}) -> tensor<1x8x6x6xf32> {
    %zero = arith.constant 0.0 : f32
    %pad = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%i: index, %j: index, %k: index, %l: index):
      tensor.yield %zero : f32
    } : tensor<1x8x6x6xf32> to tensor<1x8x8x8xf32>
    %empty = tensor.empty() : tensor<1x8x6x6xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x8x6x6xf32>) -> tensor<1x8x6x6xf32>
    %y = linalg.conv_2d_nchw_fchw {layer = 1} ins(%pad, %w : tensor<1x8x8x8xf32>, tensor<8x8x3x3xf32>)
        outs(%init : tensor<1x8x6x6xf32>) -> tensor<1x8x6x6xf32>
    return %y : tensor<1x8x6x6xf32>
  }
  func.func @second(%x: tensor<1x8x6x6xf32>, %w: tensor<8x8x1x1xf32> {kas.name = "second.weight"}) -> tensor<1x8x6x6xf32> {
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<1x8x6x6xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x8x6x6xf32>) -> tensor<1x8x6x6xf32>
    %y = linalg.conv_2d_nchw_fchw {layer = 2} ins(%x, %w : tensor<1x8x6x6xf32>, tensor<8x8x1x1xf32>)
        outs(%init : tensor<1x8x6x6xf32>) -> tensor<1x8x6x6xf32>
    return %y : tensor<1x8x6x6xf32>
  }
  func.func @third(%x: tensor<1x8x6x6xf32>, %w: tensor<8x8x1x1xf32> {kas.name = "third.weight"}) -> tensor<1x8x6x6xf32> {
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<1x8x6x6xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x8x6x6xf32>) -> tensor<1x8x6x6xf32>
    %y = linalg.conv_2d_nchw_fchw {layer = 3} ins(%x, %w : tensor<1x8x6x6xf32>, tensor<8x8x1x1xf32>)
        outs(%init : tensor<1x8x6x6xf32>) -> tensor<1x8x6x6xf32>
    return %y : tensor<1x8x6x6xf32>
  }

  transform.named_sequence private @nas_pte_sequence_1(
      %convolution: !transform.any_op {transform.consumed}, %slabs: !transform.param<i64> {transform.readonly})
      -> !transform.any_op
  transform.named_sequence private @nas_pte_sequence_2(
      %convolution: !transform.any_op {transform.consumed}, %unrolled: !transform.param<i64> {transform.readonly},
      %groups: !transform.param<i64> {transform.readonly}) -> (!transform.any_op, !transform.any_op)
  transform.named_sequence private @nas_pte_sequence_3(
      %convolution: !transform.any_op {transform.consumed}, %outputs: !transform.param<i64> {transform.readonly},
      %groups0: !transform.param<i64> {transform.readonly}, %groups1: !transform.param<i64> {transform.readonly})
      -> (!transform.any_op, !transform.any_op)

  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %two = transform.param.constant 2 -> !transform.param<i64>
    %four = transform.param.constant 4 -> !transform.param<i64>
    %conv1 = transform.structured.match attributes {layer = 1} in %root : (!transform.any_op) -> !transform.any_op
    %a = transform.include @nas_pte_sequence_1 failures(propagate) (%conv1, %two)
        : (!transform.any_op, !transform.param<i64>) -> !transform.any_op
    transform.kas.new_weights %a : (!transform.any_op) -> !transform.any_op
    %conv2 = transform.structured.match attributes {layer = 2} in %root : (!transform.any_op) -> !transform.any_op
    %b:2 = transform.include @nas_pte_sequence_2 failures(propagate) (%conv2, %four, %two)
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    transform.kas.new_weights %b#0 : (!transform.any_op) -> !transform.any_op
    transform.kas.new_weights %b#1 : (!transform.any_op) -> !transform.any_op
    %conv3 = transform.structured.match attributes {layer = 3} in %root : (!transform.any_op) -> !transform.any_op
    %c:2 = transform.include @nas_pte_sequence_3 failures(propagate) (%conv3, %four, %two, %four)
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>)
        -> (!transform.any_op, !transform.any_op)
    transform.kas.new_weights %c#0 : (!transform.any_op) -> !transform.any_op
    transform.kas.new_weights %c#1 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
