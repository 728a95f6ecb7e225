// Rows of any length are planned in no time: the tiles of a row are not counted one by one.
// RUN: timeout 10 kas-opt %s -kas-cpu-pipeline='cpu=x86-64-v3 threads=2 prepack-weights=true' | FileCheck %s

// CHECK: llvm.func @long
func.func @long(%x: tensor<2x16x8x2147483680xf32>, %w: tensor<16x16x5x33xf32>, %o: tensor<2x16x4x2147483648xf32>) -> tensor<2x16x4x2147483648xf32> {
  %0 = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<2x16x8x2147483680xf32>, tensor<16x16x5x33xf32>) outs(%o : tensor<2x16x4x2147483648xf32>) -> tensor<2x16x4x2147483648xf32>
  return %0 : tensor<2x16x4x2147483648xf32>
}
