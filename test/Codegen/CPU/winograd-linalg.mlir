// RUN: kas-opt %s -kas-attach-cpu-target=cpu=x86-64-v4 -kas-winograd=threads=1 | FileCheck %s
// RUN: kas-opt %s -kas-attach-cpu-target=cpu=x86-64-v4 -kas-winograd=threads=2 | FileCheck %s --check-prefix=SHARED
// RUN: kas-opt %s -kas-attach-cpu-target=cpu=znver5 -kas-winograd=threads=1 | FileCheck %s --check-prefix=WIDE

#weight = affine_map<(n, i, y, x, o, ky, kx) -> (i, o, ky, kx)>
#window = affine_map<(n, i, y, x, o, ky, kx) -> (n, i, y + ky, x + kx)>
#result = affine_map<(n, i, y, x, o, ky, kx) -> (n, o, y, x)>
#strided = affine_map<(n, i, y, x, o, ky, kx) -> (n, i, y * 2 + ky, x * 2 + kx)>

// A gradient by the data is a contraction with its loops and inputs in another order. The zeros around the image are not
// stored; as many images at a time as have their tiles in the cache, where one thread computes all. The matrices of 36
// points, of 3 x 16 x 64 elements, are an odd number of cache lines apart: 193 of 16 elements.
// CHECK-LABEL: func.func @gradient(
// CHECK-SAME:    %[[X:[a-z0-9]*]]: tensor<12x16x32x32xf32>
// CHECK-DAG:     bufferization.to_buffer %[[X]]
// CHECK:         scf.for %{{.*}} = %{{.*}} to %c12{{[_0-9]*}} step %c3{{[_0-9]*}} {
// CHECK:           memref.alloc() {alignment = 64 : i64} : memref<36x3088xf32>
// CHECK:           vector.maskedload
// CHECK:           vector.maskedstore
// CHECK:         bufferization.to_tensor
// CHECK-NOT:     linalg.generic
// SHARED-LABEL: func.func @gradient(
// SHARED:         memref.alloc() {alignment = 64 : i64} : memref<36x12304xf32>
func.func @gradient(%x: tensor<12x16x32x32xf32>, %w: tensor<16x16x3x3xf32>) -> tensor<12x16x32x32xf32> {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<12x16x32x32xf32> to tensor<12x16x34x34xf32>
  %empty = tensor.empty() : tensor<12x16x32x32xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<12x16x32x32xf32>) -> tensor<12x16x32x32xf32>
  %y = linalg.generic {indexing_maps = [#weight, #window, #result],
      iterator_types = ["parallel", "reduction", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%w, %padded : tensor<16x16x3x3xf32>, tensor<12x16x34x34xf32>) outs(%fill : tensor<12x16x32x32xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %c, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<12x16x32x32xf32>
  return %y : tensor<12x16x32x32xf32>
}

// Windows of stride 2 stay, and so do three channels, whose transforms take longer than their products.
// CHECK-LABEL: func.func @strided(
// CHECK:         linalg.generic
func.func @strided(%x: tensor<1x16x65x65xf32>, %w: tensor<16x16x3x3xf32>, %init: tensor<1x16x32x32xf32>) -> tensor<1x16x32x32xf32> {
  %y = linalg.generic {indexing_maps = [#weight, #strided, #result],
      iterator_types = ["parallel", "reduction", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%w, %x : tensor<16x16x3x3xf32>, tensor<1x16x65x65xf32>) outs(%init : tensor<1x16x32x32xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %c, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<1x16x32x32xf32>
  return %y : tensor<1x16x32x32xf32>
}

// CHECK-LABEL: func.func @few_channels(
// CHECK:         linalg.conv_2d_nchw_fchw
func.func @few_channels(%x: tensor<1x3x34x34xf32>, %w: tensor<16x3x3x3xf32>, %init: tensor<1x16x32x32xf32>) -> tensor<1x16x32x32xf32> {
  %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%x, %w : tensor<1x3x34x34xf32>, tensor<16x3x3x3xf32>) outs(%init : tensor<1x16x32x32xf32>) -> tensor<1x16x32x32xf32>
  return %y : tensor<1x16x32x32xf32>
}

// Images of few tiles need more channels, because their vectors are not full: 16 and not 12.
// CHECK-LABEL: func.func @few_tiles(
// CHECK:         linalg.conv_2d_nchw_fchw
func.func @few_tiles(%x: tensor<64x12x10x10xf32>, %w: tensor<12x12x3x3xf32>, %init: tensor<64x12x8x8xf32>) -> tensor<64x12x8x8xf32> {
  %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%x, %w : tensor<64x12x10x10xf32>, tensor<12x12x3x3xf32>) outs(%init : tensor<64x12x8x8xf32>) -> tensor<64x12x8x8xf32>
  return %y : tensor<64x12x8x8xf32>
}

// CHECK-LABEL: func.func @more_channels(
// CHECK-NOT:     linalg.conv_2d_nchw_fchw
func.func @more_channels(%x: tensor<64x16x10x10xf32>, %w: tensor<16x16x3x3xf32>, %init: tensor<64x16x8x8xf32>) -> tensor<64x16x8x8xf32> {
  %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%x, %w : tensor<64x16x10x10xf32>, tensor<16x16x3x3xf32>) outs(%init : tensor<64x16x8x8xf32>) -> tensor<64x16x8x8xf32>
  return %y : tensor<64x16x8x8xf32>
}

// Cores that begin two products on vectors of 512 bits per cycle need more of them for each element that is transformed.
// CHECK-LABEL: func.func @wide_arithmetic(
// CHECK-NOT:     linalg.conv_2d_nchw_fchw
// WIDE-LABEL:  func.func @wide_arithmetic(
// WIDE:          linalg.conv_2d_nchw_fchw
func.func @wide_arithmetic(%x: tensor<64x8x34x34xf32>, %w: tensor<8x8x3x3xf32>, %init: tensor<64x8x32x32xf32>) -> tensor<64x8x32x32xf32> {
  %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%x, %w : tensor<64x8x34x34xf32>, tensor<8x8x3x3xf32>) outs(%init : tensor<64x8x32x32xf32>) -> tensor<64x8x32x32xf32>
  return %y : tensor<64x8x32x32xf32>
}
