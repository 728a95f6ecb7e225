// RUN: kas-opt %s -kas-extract | FileCheck %s
// RUN: kas-opt %s -kas-extract -kas-substitute=operator=kas.conv2d_strided -kas-cpu-pipeline=threads=1 -o /dev/null

// Convolutions with their channels last, as TOSA and TensorFlow have them, are layers of the same kinds as those with their
// channels first; padding moves with them, weights stay.
//
// CHECK: kas.space @conv2d<
// CHECK: kas.space @conv2d_strided<
// CHECK: kas.space @conv2d_depthwise<
// CHECK: kas.space @conv1x1_stem<

// CHECK-LABEL: func.func @forward(
// CHECK-SAME:    %[[X:.*]]: tensor<2x8x8x16xf32>
// CHECK:         %[[T:.*]] = linalg.transpose ins(%[[X]] : tensor<2x8x8x16xf32>) outs(%{{.*}} : tensor<2x16x8x8xf32>) permutation = [0, 3, 1, 2]
// CHECK:         tensor.pad %[[T]] low[0, 0, 1, 1] high[0, 0, 1, 1]
// CHECK:         linalg.generic
// CHECK-SAME:      kas.site = {binding = 0 : i64, name = "a", space = @conv2d}
// CHECK:         linalg.transpose {{.*}} permutation = [0, 2, 3, 1]
// CHECK:         kas.site = {binding = 0 : i64, name = "b", space = @conv2d_strided}
// CHECK:         kas.site = {binding = 0 : i64, name = "c", space = @conv2d_depthwise}
// CHECK:         return %{{.*}} : tensor<2x4x4x24xf32>
func.func @forward(%x: tensor<2x8x8x16xf32> {kas.name = "x"},
                   %a: tensor<3x3x16x16xf32> {kas.name = "a.weight"},
                   %b: tensor<24x3x3x16xf32> {kas.name = "b.weight"},
                   %c: tensor<3x3x24xf32> {kas.name = "c.weight"}) -> tensor<2x4x4x24xf32> {
  %z = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %z : f32
  } : tensor<2x8x8x16xf32> to tensor<2x10x10x16xf32>
  %e0 = tensor.empty() : tensor<2x8x8x16xf32>
  %f0 = linalg.fill ins(%z : f32) outs(%e0 : tensor<2x8x8x16xf32>) -> tensor<2x8x8x16xf32>
  %0 = linalg.conv_2d_nhwc_hwcf ins(%p, %a : tensor<2x10x10x16xf32>, tensor<3x3x16x16xf32>) outs(%f0 : tensor<2x8x8x16xf32>) -> tensor<2x8x8x16xf32>
  %q = tensor.pad %0 low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %z : f32
  } : tensor<2x8x8x16xf32> to tensor<2x10x10x16xf32>
  %e1 = tensor.empty() : tensor<2x4x4x24xf32>
  %f1 = linalg.fill ins(%z : f32) outs(%e1 : tensor<2x4x4x24xf32>) -> tensor<2x4x4x24xf32>
  %1 = linalg.conv_2d_nhwc_fhwc {strides = dense<2> : tensor<2xi64>} ins(%q, %b : tensor<2x10x10x16xf32>, tensor<24x3x3x16xf32>) outs(%f1 : tensor<2x4x4x24xf32>) -> tensor<2x4x4x24xf32>
  %r = tensor.pad %1 low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %z : f32
  } : tensor<2x4x4x24xf32> to tensor<2x6x6x24xf32>
  %2 = linalg.depthwise_conv_2d_nhwc_hwc ins(%r, %c : tensor<2x6x6x24xf32>, tensor<3x3x24xf32>) outs(%f1 : tensor<2x4x4x24xf32>) -> tensor<2x4x4x24xf32>
  return %2 : tensor<2x4x4x24xf32>
}

// Without a window.
// CHECK-LABEL: func.func @pointwise(
// CHECK:         kas.site = {binding = 0 : i64, space = @conv1x1_stem}
func.func @pointwise(%x: tensor<1x8x8x4xf32>, %w: tensor<1x1x4x4xf32>, %init: tensor<1x8x8x4xf32>) -> tensor<1x8x8x4xf32> {
  %y = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x8x8x4xf32>, tensor<1x1x4x4xf32>) outs(%init : tensor<1x8x8x4xf32>) -> tensor<1x8x8x4xf32>
  return %y : tensor<1x8x8x4xf32>
}

// What is no layer, here convolutions of computed weights, stays as it was, though its neighbours are: the padding of @a
// and of the second one is one.
// CHECK-LABEL: func.func @mixed(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<1x8x8x3xf32>
// CHECK:         linalg.transpose ins(%[[X]]
// CHECK:         linalg.generic
// CHECK-SAME:      kas.site = {{.*}}name = "a"
// CHECK:         %[[A:.*]] = linalg.transpose
// CHECK-NOT:     linalg.transpose
// CHECK:         %[[P:.*]] = tensor.pad %[[X]]
// CHECK-NOT:     linalg.transpose
// CHECK:         %[[D:.*]] = linalg.conv_2d_nhwc_hwcf ins(%[[P]], {{.*}} outs(%[[A]]
// CHECK-NOT:     linalg.transpose
// CHECK:         %[[Q:.*]] = tensor.pad %[[A]]
// CHECK-NOT:     linalg.transpose
// CHECK:         %[[U:.*]] = linalg.conv_2d_nhwc_hwcf ins(%[[Q]],
// CHECK:         linalg.transpose ins(%[[U]]
// CHECK:         tensor.pad
// CHECK:         kas.site = {{.*}}name = "c"
// CHECK:         %[[C:.*]] = linalg.transpose
// CHECK-NEXT:    return %[[C]], %[[D]]
func.func @mixed(%x: tensor<1x8x8x3xf32> {kas.name = "x"},
                 %a: tensor<3x3x3x16xf32> {kas.name = "a.weight"},
                 %b: tensor<3x3x16x16xf32> {kas.name = "b.weight"},
                 %c: tensor<3x3x16x16xf32> {kas.name = "c.weight"}) -> (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>) {
  %z = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %z : f32
  } : tensor<1x8x8x3xf32> to tensor<1x10x10x3xf32>
  %e = tensor.empty() : tensor<1x8x8x16xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32>
  %0 = linalg.conv_2d_nhwc_hwcf ins(%p, %a : tensor<1x10x10x3xf32>, tensor<3x3x3x16xf32>) outs(%f : tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32>
  %t = math.exp %a : tensor<3x3x3x16xf32>
  %1 = linalg.conv_2d_nhwc_hwcf ins(%p, %t : tensor<1x10x10x3xf32>, tensor<3x3x3x16xf32>) outs(%0 : tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32>
  %q = tensor.pad %0 low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %z : f32
  } : tensor<1x8x8x16xf32> to tensor<1x10x10x16xf32>
  %s = math.exp %b : tensor<3x3x16x16xf32>
  %2 = linalg.conv_2d_nhwc_hwcf ins(%q, %s : tensor<1x10x10x16xf32>, tensor<3x3x16x16xf32>) outs(%f : tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32>
  %r = tensor.pad %2 low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %z : f32
  } : tensor<1x8x8x16xf32> to tensor<1x10x10x16xf32>
  %3 = linalg.conv_2d_nhwc_hwcf ins(%r, %c : tensor<1x10x10x16xf32>, tensor<3x3x16x16xf32>) outs(%f : tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32>
  return %3, %1 : tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>
}
