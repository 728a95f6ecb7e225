// RUN: cat %kas_src_root/lib/Library/*.mlir %s | kas-opt -kas-specialize -kas-to-linalg -kas-erase-operators | FileCheck %s
// RUN: cat %kas_src_root/lib/Library/*.mlir %s | kas-opt -kas-specialize -kas-to-linalg=named-ops=false -kas-erase-operators | FileCheck %s --check-prefix=GENERIC

// Operators that are one named op become it.

// GENERIC-NOT: linalg.conv
// GENERIC-NOT: linalg.depthwise
// GENERIC-NOT: linalg.pooling
// GENERIC-NOT: linalg.matmul
// GENERIC-NOT: linalg.batch_matmul

// CHECK-DAG: #[[$ROWS:.+]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[$TRANSPOSED:.+]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[$RESULT:.+]] = affine_map<(d0, d1, d2) -> (d0, d1)>

// CHECK-LABEL: func @conv2d_run(
// CHECK-SAME:      %[[X:.+]]: tensor<1x16x9x7xf32>, %[[W:.+]]: tensor<8x16x3x3xf32>
// CHECK:         %[[PADDED:.+]] = tensor.pad %[[X]] low[0, 0, 1, 1] high[0, 0, 1, 1]
// CHECK-NOT:     tensor.pad
// CHECK:         %[[ZERO:.+]] = linalg.fill
// CHECK:         %[[Y:.+]] = linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
// CHECK-SAME:      ins(%[[PADDED]], %[[W]] : tensor<1x16x11x9xf32>, tensor<8x16x3x3xf32>) outs(%[[ZERO]] :
// CHECK:         return %[[Y]]
func.func @conv2d_run(%x: tensor<1x16x9x7xf32>, %w: tensor<8x16x3x3xf32>) -> tensor<1x8x9x7xf32> {
  %y = kas.apply @conv2d<k = 3>(%x, %w) : (tensor<1x16x9x7xf32>, tensor<8x16x3x3xf32>) -> tensor<1x8x9x7xf32>
  return %y : tensor<1x8x9x7xf32>
}

// Padding stops where the last window ends.

// CHECK-LABEL: func @strided_run(
// CHECK:         tensor.pad %{{.+}} low[0, 0, 3, 3] high[0, 0, 2, 2]
// CHECK:         linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
func.func @strided_run(%x: tensor<1x3x16x16xf32>, %w: tensor<8x3x7x7xf32>) -> tensor<1x8x8x8xf32> {
  %y = kas.apply @conv2d_strided<k = 7, s = 2>(%x, %w) : (tensor<1x3x16x16xf32>, tensor<8x3x7x7xf32>) -> tensor<1x8x8x8xf32>
  return %y : tensor<1x8x8x8xf32>
}

// CHECK-LABEL: func @dilated_run(
// CHECK:         tensor.pad %{{.+}} low[0, 0, 2, 2] high[0, 0, 2, 2]
// CHECK:         linalg.conv_2d_nchw_fchw {dilations = dense<2> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
func.func @dilated_run(%x: tensor<1x4x9x9xf32>, %w: tensor<8x4x3x3xf32>) -> tensor<1x8x9x9xf32> {
  %y = kas.apply @conv2d_dilated<k = 3, d = 2, p = 2>(%x, %w) : (tensor<1x4x9x9xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x9x9xf32>
  return %y : tensor<1x8x9x9xf32>
}

// The channels of both sides become groups and channels of a group.

// CHECK-LABEL: func @grouped_run(
// CHECK:         %[[PADDED:.+]] = tensor.pad
// CHECK:         %[[X:.+]] = tensor.expand_shape %[[PADDED]] {{\[}}[0], [1, 2], [3], [4]] output_shape [1, 4, 2, 11, 9]
// CHECK:         %[[Y:.+]] = linalg.conv_2d_ngchw_gfchw {{.*}} ins(%[[X]], %{{.+}} : tensor<1x4x2x11x9xf32>, tensor<4x4x2x3x3xf32>)
// CHECK:         tensor.collapse_shape %[[Y]] {{\[}}[0], [1, 2], [3], [4]] : tensor<1x4x4x9x7xf32> into tensor<1x16x9x7xf32>
func.func @grouped_run(%x: tensor<1x8x9x7xf32>, %w: tensor<4x4x2x3x3xf32>) -> tensor<1x16x9x7xf32> {
  %y = kas.apply @conv2d_grouped<k = 3, g = 4>(%x, %w) : (tensor<1x8x9x7xf32>, tensor<4x4x2x3x3xf32>) -> tensor<1x16x9x7xf32>
  return %y : tensor<1x16x9x7xf32>
}

// CHECK-LABEL: func @depthwise_run(
// CHECK:         linalg.depthwise_conv_2d_nchw_chw
func.func @depthwise_run(%x: tensor<1x8x9x7xf32>, %w: tensor<8x3x3xf32>) -> tensor<1x8x9x7xf32> {
  %y = kas.apply @conv2d_depthwise<k = 3>(%x, %w) : (tensor<1x8x9x7xf32>, tensor<8x3x3xf32>) -> tensor<1x8x9x7xf32>
  return %y : tensor<1x8x9x7xf32>
}

// CHECK-LABEL: func @conv1d_run(
// CHECK:         linalg.conv_1d_ncw_fcw
func.func @conv1d_run(%x: tensor<2x8x9xf32>, %w: tensor<4x8x3xf32>) -> tensor<2x4x9xf32> {
  %y = kas.apply @conv1d<k = 3>(%x, %w) : (tensor<2x8x9xf32>, tensor<4x8x3xf32>) -> tensor<2x4x9xf32>
  return %y : tensor<2x4x9xf32>
}

// Named ops accumulate small elements in f32, too.

// CHECK-LABEL: func @matmul_run(
// CHECK:         %[[Y:.+]] = linalg.matmul ins(%{{.+}}, %{{.+}} : tensor<4x5xf16>, tensor<5x6xf16>) outs(%{{.+}} : tensor<4x6xf32>)
// CHECK:         linalg.generic {{.*}} ins(%[[Y]] : tensor<4x6xf32>)
// CHECK:         arith.truncf
func.func @matmul_run(%x: tensor<4x5xf16>, %w: tensor<5x6xf16>) -> tensor<4x6xf16> {
  %y = kas.apply @matmul(%x, %w) : (tensor<4x5xf16>, tensor<5x6xf16>) -> tensor<4x6xf16>
  return %y : tensor<4x6xf16>
}

// The weight of a linear layer is transposed by the map, not by a copy.

// CHECK-LABEL: func @linear_run(
// CHECK-NOT:     linalg.transpose
// CHECK:         linalg.matmul indexing_maps = [#[[$ROWS]], #[[$TRANSPOSED]], #[[$RESULT]]]
func.func @linear_run(%x: tensor<4x5xf32>, %w: tensor<6x5xf32>) -> tensor<4x6xf32> {
  %y = kas.apply @linear(%x, %w) : (tensor<4x5xf32>, tensor<6x5xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// CHECK-LABEL: func @batch_matmul_run(
// CHECK:         linalg.batch_matmul ins(
func.func @batch_matmul_run(%x: tensor<2x4x5xf32>, %w: tensor<2x5x6xf32>) -> tensor<2x4x6xf32> {
  %y = kas.apply @batch_matmul(%x, %w) : (tensor<2x4x5xf32>, tensor<2x5x6xf32>) -> tensor<2x4x6xf32>
  return %y : tensor<2x4x6xf32>
}

// The neutral element of max pads.

// CHECK-LABEL: func @max_pool_run(
// CHECK:         %[[LOWEST:.+]] = arith.constant 0xFF800000 : f32
// CHECK:         tensor.pad %{{.+}} low[0, 0, 1, 1] high[0, 0, 0, 0] {
// CHECK:           tensor.yield %[[LOWEST]]
// CHECK:         %[[WINDOW:.+]] = tensor.empty() : tensor<3x3xf32>
// CHECK:         linalg.pooling_nchw_max {{.*}} ins(%{{.+}}, %[[WINDOW]] :
func.func @max_pool_run(%x: tensor<1x4x8x6xf32>) -> tensor<1x4x4x3xf32> {
  %y = kas.apply @max_pool2d<k = 3, s = 2>(%x) : (tensor<1x4x8x6xf32>) -> tensor<1x4x4x3xf32>
  return %y : tensor<1x4x4x3xf32>
}

// A convolution whose weight has its dimensions in another order.

kas.operator @conv_hwcf<N, C, F, H, W | k> (%n: N, %f: F, %h: H, %w: W) from [N, C, H, W] {
  %c = kas.reduce sum : C
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : C
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %y = kas.unfold %h, %i_d : H, k
  %x = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %c_d, %y, %x) weight(%i_w, %j_w, %c_w, %f)
}

// CHECK-LABEL: func @permuted_run(
// CHECK-SAME:      %{{.+}}: tensor<1x4x9x9xf32>, %[[W:.+]]: tensor<3x3x4x8xf32>
// CHECK:         %[[T:.+]] = linalg.transpose ins(%[[W]] : tensor<3x3x4x8xf32>) outs(%{{.+}} : tensor<8x4x3x3xf32>) permutation = [3, 2, 0, 1]
// CHECK:         linalg.conv_2d_nchw_fchw {{.*}} ins(%{{.+}}, %[[T]] :
func.func @permuted_run(%x: tensor<1x4x9x9xf32>, %w: tensor<3x3x4x8xf32>) -> tensor<1x8x9x9xf32> {
  %y = kas.apply @conv_hwcf<k = 3>(%x, %w) : (tensor<1x4x9x9xf32>, tensor<3x3x4x8xf32>) -> tensor<1x8x9x9xf32>
  return %y : tensor<1x8x9x9xf32>
}
