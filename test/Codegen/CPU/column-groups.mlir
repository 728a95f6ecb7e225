// RUN: kas-opt %s -kas-cpu-pipeline='cpu=znver5 threads=2 prepack-weights=true' --remarks-filter=kas-panels -o /dev/null 2>&1 | FileCheck %s

// Five blocks of 32 rows for two threads: three for the busiest one, with 21 tiles of 14 columns each. With a group for each of 17 divisions of 289
// columns no thread would wait, but each would have 85 tiles.
//
// CHECK: [[@LINE+5]]:{{.*}} columnGroups=1, {{.*}} registerColumns=14, registerVectors=2,
func.func @five_blocks(%x: tensor<1x768x17x17xf32>, %w: tensor<160x768x1x1xf32>) -> tensor<1x160x17x17xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x160x17x17xf32>
  %y = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x160x17x17xf32>) -> tensor<1x160x17x17xf32>
  %z = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x768x17x17xf32>, tensor<160x768x1x1xf32>) outs(%y : tensor<1x160x17x17xf32>)
    -> tensor<1x160x17x17xf32>
  return %z : tensor<1x160x17x17xf32>
}

// One block for two threads: two groups of columns.
//
// CHECK: [[@LINE+5]]:{{.*}} columnGroups=2, {{.*}} registerColumns=14, registerVectors=2,
func.func @one_block(%x: tensor<1x256x28x28xf32>, %w: tensor<32x256x1x1xf32>) -> tensor<1x32x28x28xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x32x28x28xf32>
  %y = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x32x28x28xf32>) -> tensor<1x32x28x28xf32>
  %z = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x256x28x28xf32>, tensor<32x256x1x1xf32>) outs(%y : tensor<1x32x28x28xf32>)
    -> tensor<1x32x28x28xf32>
  return %z : tensor<1x32x28x28xf32>
}
