// RUN: kas-opt %s --split-input-file -transform-interpreter -canonicalize | FileCheck %s

// Applications of operators become those of other operators, whose weights are parts of the old ones.

// Groups of channels: the group is shared, and the rest goes to the weight alone.
// CHECK-LABEL: kas.operator private @conv2d_group2_0
// CHECK-SAME: (%[[N:.*]]: 1, %[[O:.*]]: 8, %[[H:.*]]: 6, %[[W:.*]]: 6) from [1, 4, 6, 6]
// CHECK-DAG: %[[G:.*]], %[[R:.*]] = kas.merge %[[O]] by 4 : 8
// CHECK-DAG: %[[GW:.*]], %[[GD:.*]] = kas.share %[[G]] : 2
// CHECK-DAG: %[[C:.*]] = kas.reduce sum : 2
// CHECK-DAG: kas.split
// CHECK: kas.yield data(
// CHECK-LABEL: func.func @group(
// CHECK-SAME: %[[X:.*]]: tensor<1x4x6x6xf32>, %[[W:.*]]: tensor<2x4x2x3x3xf32> {kas.init = "kaiming(18)", kas.name = "conv.weight.0"})
// CHECK: kas.apply @conv2d_group2_0(%[[X]], %[[W]])
module attributes {transform.with_named_sequence} {
  kas.operator @conv2d<N, Cin, Cout, H, W | k>
      (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
    %c = kas.reduce sum : Cin
    %i = kas.reduce sum : k
    %j = kas.reduce sum : k
    %c_d, %c_w = kas.share %c : Cin
    %i_d, %i_w = kas.share %i : k
    %j_d, %j_w = kas.share %j : k
    %y = kas.unfold %h, %i_d : H, k
    %x = kas.unfold %w, %j_d : W, k
    kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
  }
  func.func @group(%x: tensor<1x4x6x6xf32>, %w: tensor<8x4x3x3xf32> {kas.name = "conv.weight"}) -> tensor<1x8x6x6xf32> {
    %y = kas.apply @conv2d<k = 3>(%x, %w) : (tensor<1x4x6x6xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32>
    return %y : tensor<1x8x6x6xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %apply = transform.structured.match ops{["kas.apply"]} in %root : (!transform.any_op) -> !transform.any_op
    %grouped = transform.kas.group %apply by 2 : (!transform.any_op) -> !transform.any_op
    %trained = transform.kas.new_weights %grouped : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// Slabs of rows, each clipped by itself.
// CHECK-LABEL: kas.operator private @conv2d_slabs2_0
// CHECK-DAG: %[[Q:.*]], %[[R:.*]] = kas.merge %{{.*}} by 3 : 6
// CHECK-DAG: %[[S:.*]], %[[SW:.*]] = kas.share %[[Q]] : 2
// CHECK: %[[U:.*]] = kas.unfold %[[R]], %{{.*}} : 3, 3
// CHECK: %[[Y:.*]] = kas.split %[[S]], %[[U]] : 2, 3
// CHECK: kas.yield data(%{{.*}}, %{{.*}}, %[[Y]], %{{.*}}) weight(%[[SW]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}})
// CHECK-LABEL: func.func @f(
// CHECK-SAME: tensor<2x8x4x3x3xf32>
module attributes {transform.with_named_sequence} {
  kas.operator @conv2d<N, Cin, Cout, H, W | k>
      (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
    %c = kas.reduce sum : Cin
    %i = kas.reduce sum : k
    %j = kas.reduce sum : k
    %c_d, %c_w = kas.share %c : Cin
    %i_d, %i_w = kas.share %i : k
    %j_d, %j_w = kas.share %j : k
    %y = kas.unfold %h, %i_d : H, k
    %x = kas.unfold %w, %j_d : W, k
    kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
  }
  func.func @f(%x: tensor<1x4x6x6xf32>, %w: tensor<8x4x3x3xf32> {kas.name = "conv.weight"}) -> tensor<1x8x6x6xf32> {
    %y = kas.apply @conv2d<k = 3>(%x, %w) : (tensor<1x4x6x6xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32>
    return %y : tensor<1x8x6x6xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["kas.apply"]} in %root : (!transform.any_op) -> !transform.any_op
    %r = transform.kas.slabs %op iterator 2 by 2 : (!transform.any_op) -> !transform.any_op
    %n = transform.kas.new_weights %r : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// Half of the output channels and every second row.
// CHECK-LABEL: kas.operator private @conv2d_bottleneck2_0_bottleneck2_0
// CHECK-DAG: kas.expand %{{.*}} : 2
// CHECK-DAG: kas.stride %{{.*}} by 2 : 3
// CHECK-LABEL: func.func @f(
// CHECK: %[[S:.*]] = tensor.extract_slice %{{.*}}[0, 0, 0, 0] [4, 4, 3, 3] [2, 1, 1, 1]
// CHECK: kas.apply @conv2d_bottleneck2_0_bottleneck2_0(%{{.*}}, %[[S]])
module attributes {transform.with_named_sequence} {
  kas.operator @conv2d<N, Cin, Cout, H, W | k>
      (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
    %c = kas.reduce sum : Cin
    %i = kas.reduce sum : k
    %j = kas.reduce sum : k
    %c_d, %c_w = kas.share %c : Cin
    %i_d, %i_w = kas.share %i : k
    %j_d, %j_w = kas.share %j : k
    %y = kas.unfold %h, %i_d : H, k
    %x = kas.unfold %w, %j_d : W, k
    kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
  }
  func.func @f(%x: tensor<1x4x6x6xf32>, %w: tensor<8x4x3x3xf32> {kas.name = "conv.weight"}) -> tensor<1x8x6x6xf32> {
    %y = kas.apply @conv2d<k = 3>(%x, %w) : (tensor<1x4x6x6xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32>
    return %y : tensor<1x8x6x6xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["kas.apply"]} in %root : (!transform.any_op) -> !transform.any_op
    %r = transform.kas.bottleneck %op iterator 1 by 2 : (!transform.any_op) -> !transform.any_op
    %s = transform.kas.bottleneck %r iterator 2 by 2 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// Part of the input channels: no primitive cuts data, so it is cut before.
// CHECK-LABEL: func.func @f(
// CHECK-SAME: %[[X:.*]]: tensor<1x4x6x6xf32>, %[[W:.*]]: tensor<8x4x3x3xf32>
// CHECK-DAG: %[[XS:.*]] = tensor.extract_slice %[[X]][0, 1, 0, 0] [1, 3, 6, 6]
// CHECK-DAG: %[[WS:.*]] = tensor.extract_slice %[[W]][0, 1, 0, 0] [8, 3, 3, 3]
// CHECK: kas.apply @conv2d_part_0(%[[XS]], %[[WS]])
module attributes {transform.with_named_sequence} {
  kas.operator @conv2d<N, Cin, Cout, H, W | k>
      (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
    %c = kas.reduce sum : Cin
    %i = kas.reduce sum : k
    %j = kas.reduce sum : k
    %c_d, %c_w = kas.share %c : Cin
    %i_d, %i_w = kas.share %i : k
    %j_d, %j_w = kas.share %j : k
    %y = kas.unfold %h, %i_d : H, k
    %x = kas.unfold %w, %j_d : W, k
    kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
  }
  func.func @f(%x: tensor<1x4x6x6xf32>, %w: tensor<8x4x3x3xf32> {kas.name = "conv.weight"}) -> tensor<1x8x6x6xf32> {
    %y = kas.apply @conv2d<k = 3>(%x, %w) : (tensor<1x4x6x6xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32>
    return %y : tensor<1x8x6x6xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["kas.apply"]} in %root : (!transform.any_op) -> !transform.any_op
    %r = transform.kas.restrict %op iterator 4 from 1 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
