// RUN: cat %kas_src_root/lib/Library/*.mlir %s | kas-opt --verify-roundtrip | FileCheck %s

// What a call has to say beside the types: coefficients, and primaries that no shape shows by themselves.

// CHECK-LABEL: func.func @rearrange
func.func @rearrange(%x: tensor<1x12x5x7xf32>) -> tensor<1x12x5x7xf32> {
  // CHECK: kas.apply @pixel_shuffle<r = 2>(%{{.*}}) : (tensor<1x12x5x7xf32>) -> tensor<1x3x10x14xf32>
  %0 = kas.apply @pixel_shuffle<r = 2>(%x) : (tensor<1x12x5x7xf32>) -> tensor<1x3x10x14xf32>
  // CHECK: kas.apply @pixel_unshuffle<r = 2>
  %1 = kas.apply @pixel_unshuffle<r = 2>(%0) : (tensor<1x3x10x14xf32>) -> tensor<1x12x5x7xf32>
  // CHECK: kas.apply @channel_shuffle<g = 3>
  %2 = kas.apply @channel_shuffle<g = 3>(%1) : (tensor<1x12x5x7xf32>) -> tensor<1x12x5x7xf32>
  // CHECK: kas.apply @nearest_upsample2d<s = 2>
  %3 = kas.apply @nearest_upsample2d<s = 2>(%2) : (tensor<1x12x5x7xf32>) -> tensor<1x12x10x14xf32>
  // CHECK: kas.apply @max_pool2d<k = 3, s = 2>
  %4 = kas.apply @max_pool2d<k = 3, s = 2>(%3) : (tensor<1x12x10x14xf32>) -> tensor<1x12x5x7xf32>
  return %4 : tensor<1x12x5x7xf32>
}

// CHECK-LABEL: func.func @convolve
func.func @convolve(%x: tensor<1x64x28x28xf32>, %w7: tensor<64x64x7x7xf32>, %w3: tensor<64x64x3x3xf32>,
                    %wg: tensor<4x16x16x3x3xf32>, %w1: tensor<64x3x1xf32>, %w2: tensor<32x3x3x64x1xf32>)
    -> tensor<1x64x14x14xf32> {
  // CHECK: kas.apply @conv2d_strided<k = 7, s = 2>
  %0 = kas.apply @conv2d_strided<k = 7, s = 2>(%x, %w7)
      : (tensor<1x64x28x28xf32>, tensor<64x64x7x7xf32>) -> tensor<1x64x14x14xf32>
  // CHECK: kas.apply @conv2d_dilated<d = 2, k = 3, p = 2>
  %1 = kas.apply @conv2d_dilated<k = 3, d = 2, p = 2>(%0, %w3)
      : (tensor<1x64x14x14xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x14x14xf32>
  // CHECK: kas.apply @conv2d_grouped<g = 4, k = 3>
  %2 = kas.apply @conv2d_grouped<k = 3, g = 4>(%1, %wg)
      : (tensor<1x64x14x14xf32>, tensor<4x16x16x3x3xf32>) -> tensor<1x64x14x14xf32>
  // CHECK: kas.apply @syno_operator1<g = 32, k = 3, s = 2>
  %3 = kas.apply @syno_operator1<k = 3, g = 32, s = 2>(%2, %w1, %w2)
      : (tensor<1x64x14x14xf32>, tensor<64x3x1xf32>, tensor<32x3x3x64x1xf32>) -> tensor<1x64x14x14xf32>
  return %3 : tensor<1x64x14x14xf32>
}
