// RUN: cat %kas_src_root/lib/Library/*.mlir %s > %t.mlir
// RUN: kas-opt %t.mlir -kas-specialize -kas-to-linalg -kas-to-affine -kas-erase-operators -o %t.linalg.mlir 2>&1 | count 0
// RUN: FileCheck %s --implicit-check-not=floordiv --implicit-check-not=" mod " --implicit-check-not=kas. --implicit-check-not=affine.for < %t.linalg.mlir
// RUN: kas-opt %t.linalg.mlir -one-shot-bufferize=bufferize-function-boundaries -o /dev/null

// Every named operator becomes linalg: no remark, no loop, and no map with
// floordiv or mod (tiling such maps is unsound). It bufferizes, too.

// CHECK-COUNT-51: func.func
// CHECK-NOT: func.func

func.func @run_average_pool2d(%x: tensor<1x16x8x12xf32>) -> tensor<1x16x4x6xf32> {
  %y = kas.apply @average_pool2d<N = 1, C = 16, H = 8, W = 12, s = 2>(%x)
      : (tensor<1x16x8x12xf32>) -> tensor<1x16x4x6xf32>
  return %y : tensor<1x16x4x6xf32>
}

func.func @run_batch_matmul(%x: tensor<2x12x20xf32>, %w0: tensor<2x20x1xf32>) -> tensor<2x12x1xf32> {
  %y = kas.apply @batch_matmul<B = 2, M = 12, N = 1, K = 20>(%x, %w0)
      : (tensor<2x12x20xf32>, tensor<2x20x1xf32>) -> tensor<2x12x1xf32>
  return %y : tensor<2x12x1xf32>
}

func.func @run_batched_linear(%x: tensor<1x16x16xf32>, %w0: tensor<32x16xf32>) -> tensor<1x16x32xf32> {
  %y = kas.apply @batched_linear<N = 1, L = 16, Cin = 16, Cout = 32>(%x, %w0)
      : (tensor<1x16x16xf32>, tensor<32x16xf32>) -> tensor<1x16x32xf32>
  return %y : tensor<1x16x32xf32>
}

func.func @run_bottleneck(%x: tensor<1x16x8x12xf32>, %w0: tensor<16x16xf32>, %w1: tensor<16x16x3x3xf32>, %w2: tensor<32x16xf32>) -> tensor<1x32x8x12xf32> {
  %y = kas.apply @bottleneck<N = 1, Cin = 16, Cout = 32, H = 8, W = 12, k = 3, r = 2>(%x, %w0, %w1, %w2)
      : (tensor<1x16x8x12xf32>, tensor<16x16xf32>, tensor<16x16x3x3xf32>, tensor<32x16xf32>) -> tensor<1x32x8x12xf32>
  return %y : tensor<1x32x8x12xf32>
}

func.func @run_channel_shuffle(%x: tensor<1x16x8x12xf32>) -> tensor<1x16x8x12xf32> {
  %y = kas.apply @channel_shuffle<N = 1, C = 16, H = 8, W = 12, g = 4>(%x)
      : (tensor<1x16x8x12xf32>) -> tensor<1x16x8x12xf32>
  return %y : tensor<1x16x8x12xf32>
}

func.func @run_conv1d(%x: tensor<1x16x16xf32>, %w0: tensor<32x16x3xf32>) -> tensor<1x32x16xf32> {
  %y = kas.apply @conv1d<N = 1, Cin = 16, Cout = 32, L = 16, k = 3>(%x, %w0)
      : (tensor<1x16x16xf32>, tensor<32x16x3xf32>) -> tensor<1x32x16xf32>
  return %y : tensor<1x32x16xf32>
}

func.func @run_conv1d_patch1d(%x: tensor<1x16x8x12xf32>, %w0: tensor<32x16x3x2x2xf32>) -> tensor<1x32x8x12xf32> {
  %y = kas.apply @conv1d_patch1d<N = 1, Cin = 16, Cout = 32, H = 8, W = 12, k = 3, p = 2>(%x, %w0)
      : (tensor<1x16x8x12xf32>, tensor<32x16x3x2x2xf32>) -> tensor<1x32x8x12xf32>
  return %y : tensor<1x32x8x12xf32>
}

func.func @run_conv1d_shift1d(%x: tensor<1x16x8x12xf32>, %w0: tensor<32x16x3xf32>) -> tensor<1x32x8x12xf32> {
  %y = kas.apply @conv1d_shift1d<N = 1, Cin = 16, Cout = 32, H = 8, W = 12, k = 3>(%x, %w0)
      : (tensor<1x16x8x12xf32>, tensor<32x16x3xf32>) -> tensor<1x32x8x12xf32>
  return %y : tensor<1x32x8x12xf32>
}

func.func @run_conv1x1(%x: tensor<1x16x8x12xf32>, %w0: tensor<32x16xf32>) -> tensor<1x32x8x12xf32> {
  %y = kas.apply @conv1x1<N = 1, Cin = 16, Cout = 32, H = 8, W = 12>(%x, %w0)
      : (tensor<1x16x8x12xf32>, tensor<32x16xf32>) -> tensor<1x32x8x12xf32>
  return %y : tensor<1x32x8x12xf32>
}

func.func @run_conv1x1_strided(%x: tensor<1x16x8x12xf32>, %w0: tensor<32x16xf32>) -> tensor<1x32x4x6xf32> {
  %y = kas.apply @conv1x1_strided<N = 1, Cin = 16, Cout = 32, H = 8, W = 12, s = 2>(%x, %w0)
      : (tensor<1x16x8x12xf32>, tensor<32x16xf32>) -> tensor<1x32x4x6xf32>
  return %y : tensor<1x32x4x6xf32>
}

func.func @run_conv2d(%x: tensor<1x16x8x12xf32>, %w0: tensor<32x16x3x3xf32>) -> tensor<1x32x8x12xf32> {
  %y = kas.apply @conv2d<N = 1, Cin = 16, Cout = 32, H = 8, W = 12, k = 3>(%x, %w0)
      : (tensor<1x16x8x12xf32>, tensor<32x16x3x3xf32>) -> tensor<1x32x8x12xf32>
  return %y : tensor<1x32x8x12xf32>
}

func.func @run_conv2d_depthwise(%x: tensor<1x16x8x12xf32>, %w0: tensor<16x3x3xf32>) -> tensor<1x16x8x12xf32> {
  %y = kas.apply @conv2d_depthwise<N = 1, C = 16, H = 8, W = 12, k = 3>(%x, %w0)
      : (tensor<1x16x8x12xf32>, tensor<16x3x3xf32>) -> tensor<1x16x8x12xf32>
  return %y : tensor<1x16x8x12xf32>
}

func.func @run_conv2d_depthwise_separable(%x: tensor<1x16x8x12xf32>, %w0: tensor<16x3x3xf32>, %w1: tensor<32x16xf32>) -> tensor<1x32x8x12xf32> {
  %y = kas.apply @conv2d_depthwise_separable<N = 1, Cin = 16, Cout = 32, H = 8, W = 12, k = 3>(%x, %w0, %w1)
      : (tensor<1x16x8x12xf32>, tensor<16x3x3xf32>, tensor<32x16xf32>) -> tensor<1x32x8x12xf32>
  return %y : tensor<1x32x8x12xf32>
}

func.func @run_conv2d_depthwise_strided(%x: tensor<1x16x8x12xf32>, %w0: tensor<16x3x3xf32>) -> tensor<1x16x4x6xf32> {
  %y = kas.apply @conv2d_depthwise_strided<N = 1, C = 16, H = 8, W = 12, k = 3, s = 2>(%x, %w0)
      : (tensor<1x16x8x12xf32>, tensor<16x3x3xf32>) -> tensor<1x16x4x6xf32>
  return %y : tensor<1x16x4x6xf32>
}

func.func @run_conv2d_dilated(%x: tensor<1x16x8x12xf32>, %w0: tensor<32x16x3x3xf32>) -> tensor<1x32x8x12xf32> {
  %y = kas.apply @conv2d_dilated<N = 1, Cin = 16, Cout = 32, H = 8, W = 12, k = 3, d = 2, p = 2>(%x, %w0)
      : (tensor<1x16x8x12xf32>, tensor<32x16x3x3xf32>) -> tensor<1x32x8x12xf32>
  return %y : tensor<1x32x8x12xf32>
}

func.func @run_conv2d_group_oas(%x: tensor<1x16x8x12xf32>, %w0: tensor<4x16x3x3xf32>, %w1: tensor<32x4x4xf32>) -> tensor<1x32x8x12xf32> {
  %y = kas.apply @conv2d_group_oas<N = 1, Cin = 16, Cout = 32, H = 8, W = 12, k = 3, g = 4, s = 2>(%x, %w0, %w1)
      : (tensor<1x16x8x12xf32>, tensor<4x16x3x3xf32>, tensor<32x4x4xf32>) -> tensor<1x32x8x12xf32>
  return %y : tensor<1x32x8x12xf32>
}

func.func @run_conv2d_group_shared(%x: tensor<1x16x8x12xf32>, %w0: tensor<8x4x3x3xf32>) -> tensor<1x32x8x12xf32> {
  %y = kas.apply @conv2d_group_shared<N = 1, Cin = 16, Cout = 32, H = 8, W = 12, k = 3, g = 4>(%x, %w0)
      : (tensor<1x16x8x12xf32>, tensor<8x4x3x3xf32>) -> tensor<1x32x8x12xf32>
  return %y : tensor<1x32x8x12xf32>
}

func.func @run_conv2d_grouped(%x: tensor<1x16x8x12xf32>, %w0: tensor<4x8x4x3x3xf32>) -> tensor<1x32x8x12xf32> {
  %y = kas.apply @conv2d_grouped<N = 1, Cin = 16, Cout = 32, H = 8, W = 12, k = 3, g = 4>(%x, %w0)
      : (tensor<1x16x8x12xf32>, tensor<4x8x4x3x3xf32>) -> tensor<1x32x8x12xf32>
  return %y : tensor<1x32x8x12xf32>
}

func.func @run_conv2d_input_bottleneck(%x: tensor<1x16x8x12xf32>, %w0: tensor<32x4x3x3xf32>) -> tensor<1x32x8x12xf32> {
  %y = kas.apply @conv2d_input_bottleneck<N = 1, Cin = 16, Cout = 32, H = 8, W = 12, k = 3, b = 4>(%x, %w0)
      : (tensor<1x16x8x12xf32>, tensor<32x4x3x3xf32>) -> tensor<1x32x8x12xf32>
  return %y : tensor<1x32x8x12xf32>
}

func.func @run_conv2d_output_bottleneck(%x: tensor<1x16x8x12xf32>, %w0: tensor<8x16x3x3xf32>) -> tensor<1x32x8x12xf32> {
  %y = kas.apply @conv2d_output_bottleneck<N = 1, Cin = 16, Cout = 32, H = 8, W = 12, k = 3, b = 4>(%x, %w0)
      : (tensor<1x16x8x12xf32>, tensor<8x16x3x3xf32>) -> tensor<1x32x8x12xf32>
  return %y : tensor<1x32x8x12xf32>
}

func.func @run_conv2d_slabs(%x: tensor<1x16x8x12xf32>, %w0: tensor<2x32x16x3x3xf32>) -> tensor<1x32x8x12xf32> {
  %y = kas.apply @conv2d_slabs<N = 1, Cin = 16, Cout = 32, H = 8, W = 12, k = 3, s = 2>(%x, %w0)
      : (tensor<1x16x8x12xf32>, tensor<2x32x16x3x3xf32>) -> tensor<1x32x8x12xf32>
  return %y : tensor<1x32x8x12xf32>
}

func.func @run_conv2d_spatial_bottleneck(%x: tensor<1x16x8x12xf32>, %w0: tensor<32x16x3x3xf32>) -> tensor<1x32x8x12xf32> {
  %y = kas.apply @conv2d_spatial_bottleneck<N = 1, Cin = 16, Cout = 32, H = 8, W = 12, k = 3, b = 4>(%x, %w0)
      : (tensor<1x16x8x12xf32>, tensor<32x16x3x3xf32>) -> tensor<1x32x8x12xf32>
  return %y : tensor<1x32x8x12xf32>
}

func.func @run_conv2d_spatially_separable(%x: tensor<1x16x8x12xf32>, %w0: tensor<32x16x3xf32>, %w1: tensor<32x32x3xf32>) -> tensor<1x32x8x12xf32> {
  %y = kas.apply @conv2d_spatially_separable<N = 1, Cin = 16, Cout = 32, H = 8, W = 12, k = 3>(%x, %w0, %w1)
      : (tensor<1x16x8x12xf32>, tensor<32x16x3xf32>, tensor<32x32x3xf32>) -> tensor<1x32x8x12xf32>
  return %y : tensor<1x32x8x12xf32>
}

func.func @run_conv2d_strided(%x: tensor<1x16x8x12xf32>, %w0: tensor<32x16x3x3xf32>) -> tensor<1x32x4x6xf32> {
  %y = kas.apply @conv2d_strided<N = 1, Cin = 16, Cout = 32, H = 8, W = 12, k = 3, s = 2>(%x, %w0)
      : (tensor<1x16x8x12xf32>, tensor<32x16x3x3xf32>) -> tensor<1x32x4x6xf32>
  return %y : tensor<1x32x4x6xf32>
}

func.func @run_global_average_pool2d(%x: tensor<1x16x8x12xf32>) -> tensor<1x16xf32> {
  %y = kas.apply @global_average_pool2d<N = 1, C = 16, H = 8, W = 12>(%x)
      : (tensor<1x16x8x12xf32>) -> tensor<1x16xf32>
  return %y : tensor<1x16xf32>
}

func.func @run_gpt2_projection(%x: tensor<1x16x192xf32>, %w0: tensor<72x96x4xf32>) -> tensor<1x16x576xf32> {
  %y = kas.apply @gpt2_projection<N = 1, L = 16, H = 192, k = 2, t = 3>(%x, %w0)
      : (tensor<1x16x192xf32>, tensor<72x96x4xf32>) -> tensor<1x16x576xf32>
  return %y : tensor<1x16x576xf32>
}

func.func @run_kernel_07923(%x: tensor<1x16x8x12xf32>, %w0: tensor<2x32x3x16xf32>) -> tensor<1x32x8x12xf32> {
  %y = kas.apply @kernel_07923<N = 1, Cin = 16, Cout = 32, H = 8, W = 12, k = 3, s = 2>(%x, %w0)
      : (tensor<1x16x8x12xf32>, tensor<2x32x3x16xf32>) -> tensor<1x32x8x12xf32>
  return %y : tensor<1x32x8x12xf32>
}

func.func @run_linear(%x: tensor<1x16xf32>, %w0: tensor<32x16xf32>) -> tensor<1x32xf32> {
  %y = kas.apply @linear<N = 1, Cin = 16, Cout = 32>(%x, %w0)
      : (tensor<1x16xf32>, tensor<32x16xf32>) -> tensor<1x32xf32>
  return %y : tensor<1x32xf32>
}

func.func @run_linear_blast(%x: tensor<1x16xf32>, %w0: tensor<4x2x4xf32>, %w1: tensor<4x4x2xf32>, %w2: tensor<4x8x2xf32>) -> tensor<1x32xf32> {
  %y = kas.apply @linear_blast<N = 1, Cin = 16, Cout = 32, b = 4, r = 2>(%x, %w0, %w1, %w2)
      : (tensor<1x16xf32>, tensor<4x2x4xf32>, tensor<4x4x2xf32>, tensor<4x8x2xf32>) -> tensor<1x32xf32>
  return %y : tensor<1x32xf32>
}

func.func @run_linear_block_diagonal(%x: tensor<1x16xf32>, %w0: tensor<4x8x4xf32>) -> tensor<1x32xf32> {
  %y = kas.apply @linear_block_diagonal<N = 1, Cin = 16, Cout = 32, g = 4>(%x, %w0)
      : (tensor<1x16xf32>, tensor<4x8x4xf32>) -> tensor<1x32xf32>
  return %y : tensor<1x32xf32>
}

func.func @run_linear_block_tensor_train(%x: tensor<1x16xf32>, %w0: tensor<4x8x2x4xf32>, %w1: tensor<8x4x4x2xf32>) -> tensor<1x32xf32> {
  %y = kas.apply @linear_block_tensor_train<N = 1, Cin = 16, Cout = 32, g = 4, p = 8, r = 2>(%x, %w0, %w1)
      : (tensor<1x16xf32>, tensor<4x8x2x4xf32>, tensor<8x4x4x2xf32>) -> tensor<1x32xf32>
  return %y : tensor<1x32xf32>
}

func.func @run_linear_butterfly3(%x: tensor<1x16xf32>, %w0: tensor<2x2x4x4xf32>, %w1: tensor<2x2x4x2xf32>, %w2: tensor<2x2x4x2xf32>) -> tensor<1x16xf32> {
  %y = kas.apply @linear_butterfly3<N = 1, C = 16, r = 2>(%x, %w0, %w1, %w2)
      : (tensor<1x16xf32>, tensor<2x2x4x4xf32>, tensor<2x2x4x2xf32>, tensor<2x2x4x2xf32>) -> tensor<1x16xf32>
  return %y : tensor<1x16xf32>
}

func.func @run_linear_kronecker(%x: tensor<1x16xf32>, %w0: tensor<8x2xf32>, %w1: tensor<4x8xf32>) -> tensor<1x32xf32> {
  %y = kas.apply @linear_kronecker<N = 1, Cin = 16, Cout = 32, p = 8, g = 2>(%x, %w0, %w1)
      : (tensor<1x16xf32>, tensor<8x2xf32>, tensor<4x8xf32>) -> tensor<1x32xf32>
  return %y : tensor<1x32xf32>
}

func.func @run_linear_low_rank(%x: tensor<1x16xf32>, %w0: tensor<4x16xf32>, %w1: tensor<32x4xf32>) -> tensor<1x32xf32> {
  %y = kas.apply @linear_low_rank<N = 1, Cin = 16, Cout = 32, r = 4>(%x, %w0, %w1)
      : (tensor<1x16xf32>, tensor<4x16xf32>, tensor<32x4xf32>) -> tensor<1x32xf32>
  return %y : tensor<1x32xf32>
}

func.func @run_linear_monarch(%x: tensor<1x16xf32>, %w0: tensor<4x8x4xf32>, %w1: tensor<8x4x4xf32>) -> tensor<1x32xf32> {
  %y = kas.apply @linear_monarch<N = 1, Cin = 16, Cout = 32, g = 4, p = 8>(%x, %w0, %w1)
      : (tensor<1x16xf32>, tensor<4x8x4xf32>, tensor<8x4x4xf32>) -> tensor<1x32xf32>
  return %y : tensor<1x32xf32>
}

func.func @run_linear_monarch_transposed(%x: tensor<1x16xf32>, %w0: tensor<8x4x2xf32>, %w1: tensor<4x8x8xf32>) -> tensor<1x32xf32> {
  %y = kas.apply @linear_monarch_transposed<N = 1, Cin = 16, Cout = 32, g = 4, p = 8>(%x, %w0, %w1)
      : (tensor<1x16xf32>, tensor<8x4x2xf32>, tensor<4x8x8xf32>) -> tensor<1x32xf32>
  return %y : tensor<1x32xf32>
}

func.func @run_linear_shuffled_groups(%x: tensor<1x16xf32>, %w0: tensor<4x4x2x4xf32>, %w1: tensor<4x8x4x2xf32>) -> tensor<1x32xf32> {
  %y = kas.apply @linear_shuffled_groups<N = 1, Cin = 16, Cout = 32, g = 4>(%x, %w0, %w1)
      : (tensor<1x16xf32>, tensor<4x4x2x4xf32>, tensor<4x8x4x2xf32>) -> tensor<1x32xf32>
  return %y : tensor<1x32xf32>
}

func.func @run_linear_toeplitz(%x: tensor<1x16xf32>, %w0: tensor<3xf32>) -> tensor<1x16xf32> {
  %y = kas.apply @linear_toeplitz<N = 1, C = 16, k = 3>(%x, %w0)
      : (tensor<1x16xf32>, tensor<3xf32>) -> tensor<1x16xf32>
  return %y : tensor<1x16xf32>
}

func.func @run_matmul(%x: tensor<12x20xf32>, %w0: tensor<20x1xf32>) -> tensor<12x1xf32> {
  %y = kas.apply @matmul<M = 12, N = 1, K = 20>(%x, %w0)
      : (tensor<12x20xf32>, tensor<20x1xf32>) -> tensor<12x1xf32>
  return %y : tensor<12x1xf32>
}

func.func @run_max_pool2d(%x: tensor<1x16x8x12xf32>) -> tensor<1x16x4x6xf32> {
  %y = kas.apply @max_pool2d<N = 1, C = 16, H = 8, W = 12, k = 3, s = 2>(%x)
      : (tensor<1x16x8x12xf32>) -> tensor<1x16x4x6xf32>
  return %y : tensor<1x16x4x6xf32>
}

func.func @run_multi_query_projection(%x: tensor<1x16x8xf32>, %w0: tensor<8x8xf32>) -> tensor<1x16x24xf32> {
  %y = kas.apply @multi_query_projection<N = 1, L = 16, H = 8, t = 3>(%x, %w0)
      : (tensor<1x16x8xf32>, tensor<8x8xf32>) -> tensor<1x16x24xf32>
  return %y : tensor<1x16x24xf32>
}

func.func @run_nearest_upsample2d(%x: tensor<1x16x8x12xf32>) -> tensor<1x16x16x24xf32> {
  %y = kas.apply @nearest_upsample2d<N = 1, C = 16, H = 8, W = 12, s = 2>(%x)
      : (tensor<1x16x8x12xf32>) -> tensor<1x16x16x24xf32>
  return %y : tensor<1x16x16x24xf32>
}

func.func @run_pixel_shuffle(%x: tensor<1x64x8x12xf32>) -> tensor<1x16x16x24xf32> {
  %y = kas.apply @pixel_shuffle<N = 1, C = 16, H = 8, W = 12, r = 2>(%x)
      : (tensor<1x64x8x12xf32>) -> tensor<1x16x16x24xf32>
  return %y : tensor<1x16x16x24xf32>
}

func.func @run_pixel_unshuffle(%x: tensor<1x16x16x24xf32>) -> tensor<1x64x8x12xf32> {
  %y = kas.apply @pixel_unshuffle<N = 1, C = 16, H = 8, W = 12, r = 2>(%x)
      : (tensor<1x16x16x24xf32>) -> tensor<1x64x8x12xf32>
  return %y : tensor<1x64x8x12xf32>
}

func.func @run_pool_conv1d(%x: tensor<1x16x8x12xf32>, %w0: tensor<32x16x3x3xf32>) -> tensor<1x32x8x12xf32> {
  %y = kas.apply @pool_conv1d<N = 1, Cin = 16, Cout = 32, H = 8, W = 12, k = 3, s = 2>(%x, %w0)
      : (tensor<1x16x8x12xf32>, tensor<32x16x3x3xf32>) -> tensor<1x32x8x12xf32>
  return %y : tensor<1x32x8x12xf32>
}

func.func @run_pool_conv2d(%x: tensor<1x16x8x12xf32>, %w0: tensor<32x16x3x3xf32>) -> tensor<1x32x8x12xf32> {
  %y = kas.apply @pool_conv2d<N = 1, Cin = 16, Cout = 32, H = 8, W = 12, k = 3, s = 2>(%x, %w0)
      : (tensor<1x16x8x12xf32>, tensor<32x16x3x3xf32>) -> tensor<1x32x8x12xf32>
  return %y : tensor<1x32x8x12xf32>
}

func.func @run_shift2d(%x: tensor<1x16x8x12xf32>, %w0: tensor<32x16xf32>) -> tensor<1x32x8x12xf32> {
  %y = kas.apply @shift2d<N = 1, Cin = 16, Cout = 32, H = 8, W = 12>(%x, %w0)
      : (tensor<1x16x8x12xf32>, tensor<32x16xf32>) -> tensor<1x32x8x12xf32>
  return %y : tensor<1x32x8x12xf32>
}

func.func @run_shift_conv2d(%x: tensor<1x16x8x12xf32>, %w0: tensor<32x16xf32>) -> tensor<1x32x8x12xf32> {
  %y = kas.apply @shift_conv2d<N = 1, Cin = 16, Cout = 32, H = 8, W = 12>(%x, %w0)
      : (tensor<1x16x8x12xf32>, tensor<32x16xf32>) -> tensor<1x32x8x12xf32>
  return %y : tensor<1x32x8x12xf32>
}

func.func @run_stacked_conv2d(%x: tensor<1x16x8x12xf32>, %w0: tensor<16x3x4xf32>, %w1: tensor<4x3x3x32x4xf32>) -> tensor<1x32x8x12xf32> {
  %y = kas.apply @stacked_conv2d<N = 1, Cin = 16, Cout = 32, H = 8, W = 12, k = 3, g = 4, s = 2>(%x, %w0, %w1)
      : (tensor<1x16x8x12xf32>, tensor<16x3x4xf32>, tensor<4x3x3x32x4xf32>) -> tensor<1x32x8x12xf32>
  return %y : tensor<1x32x8x12xf32>
}

func.func @run_syno_operator1(%x: tensor<1x16x8x12xf32>, %w0: tensor<16x3x4xf32>, %w1: tensor<4x3x3x32x4xf32>) -> tensor<1x32x8x12xf32> {
  %y = kas.apply @syno_operator1<N = 1, Cin = 16, Cout = 32, H = 8, W = 12, k = 3, g = 4, s = 2>(%x, %w0, %w1)
      : (tensor<1x16x8x12xf32>, tensor<16x3x4xf32>, tensor<4x3x3x32x4xf32>) -> tensor<1x32x8x12xf32>
  return %y : tensor<1x32x8x12xf32>
}

func.func @run_syno_operator2(%x: tensor<1x16x8x12xf32>, %w0: tensor<16x3x4xf32>, %w1: tensor<4x3x32x4xf32>) -> tensor<1x32x8x12xf32> {
  %y = kas.apply @syno_operator2<N = 1, Cin = 16, Cout = 32, H = 8, W = 12, k = 3, g = 4, s = 2>(%x, %w0, %w1)
      : (tensor<1x16x8x12xf32>, tensor<16x3x4xf32>, tensor<4x3x32x4xf32>) -> tensor<1x32x8x12xf32>
  return %y : tensor<1x32x8x12xf32>
}
