// RUN: kas-opt %s -kas-lower-pooling=threads=1 | FileCheck %s
// RUN: kas-opt %s -kas-lower-pooling=threads=2 | FileCheck %s --check-prefix=THREADS

// Lines outside are the nearest ones inside; the first column has a loop of its own, the others stay inside.
//
// CHECK-DAG:   #[[COLUMN:.*]] = affine_map<(d0) -> (d0 * 2 - 1)>
// CHECK-LABEL: func.func @padded(
// CHECK-SAME:    %[[X:.*]]: tensor<1x4x8x8xf32>)
// CHECK:         %[[DATA:.*]] = bufferization.to_buffer %[[X]] read_only
// CHECK:         memref.alloc() {{.*}}: memref<1x4x4x4xf32>
// CHECK:         scf.for
// CHECK:           scf.for %[[LINE:.*]] =
// CHECK:             arith.maxsi
// CHECK:             arith.minsi
// CHECK-COUNT-6:     memref.load %[[DATA]]
// CHECK-NOT:         memref.load
// CHECK:             memref.store
// CHECK:             scf.for
// CHECK:               affine.apply #[[COLUMN]]
// CHECK-COUNT-9:       memref.load %[[DATA]]
// CHECK-NOT:           memref.load
// CHECK:               memref.store
// CHECK-NOT:     linalg.pooling
//
// THREADS-LABEL: func.func @padded(
// THREADS:         scf.parallel
func.func @padded(%x: tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32> {
  %low = arith.constant 0xFF800000 : f32
  %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%n: index, %c: index, %h: index, %w: index):
    tensor.yield %low : f32
  } : tensor<1x4x8x8xf32> to tensor<1x4x10x10xf32>
  %empty = tensor.empty() : tensor<1x4x4x4xf32>
  %init = linalg.fill ins(%low : f32) outs(%empty : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  %window = tensor.empty() : tensor<3x3xf32>
  %y = linalg.pooling_nchw_max {strides = dense<2> : vector<2xi64>}
      ins(%padded, %window : tensor<1x4x10x10xf32>, tensor<3x3xf32>) outs(%init : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  return %y : tensor<1x4x4x4xf32>
}

// A window without a point of the image is no maximum of points of the image.
//
// CHECK-LABEL: func.func @far_outside(
// CHECK:         linalg.pooling_nchw_max
func.func @far_outside(%x: tensor<1x4x8x8xf32>) -> tensor<1x4x6x6xf32> {
  %low = arith.constant 0xFF800000 : f32
  %padded = tensor.pad %x low[0, 0, 2, 2] high[0, 0, 2, 2] {
  ^bb0(%n: index, %c: index, %h: index, %w: index):
    tensor.yield %low : f32
  } : tensor<1x4x8x8xf32> to tensor<1x4x12x12xf32>
  %empty = tensor.empty() : tensor<1x4x6x6xf32>
  %init = linalg.fill ins(%low : f32) outs(%empty : tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  %window = tensor.empty() : tensor<2x2xf32>
  %y = linalg.pooling_nchw_max {strides = dense<2> : vector<2xi64>}
      ins(%padded, %window : tensor<1x4x12x12xf32>, tensor<2x2xf32>) outs(%init : tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  return %y : tensor<1x4x6x6xf32>
}

// Zeros are not what a maximum is padded with.
//
// CHECK-LABEL: func.func @padded_with_zeros(
// CHECK:         tensor.pad
// CHECK:         bufferization.to_buffer %{{.*}} read_only : tensor<1x4x10x10xf32>
// CHECK-NOT:     linalg.pooling
func.func @padded_with_zeros(%x: tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32> {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%n: index, %c: index, %h: index, %w: index):
    tensor.yield %zero : f32
  } : tensor<1x4x8x8xf32> to tensor<1x4x10x10xf32>
  %empty = tensor.empty() : tensor<1x4x4x4xf32>
  %init = linalg.fill ins(%low : f32) outs(%empty : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  %window = tensor.empty() : tensor<3x3xf32>
  %y = linalg.pooling_nchw_max {strides = dense<2> : vector<2xi64>}
      ins(%padded, %window : tensor<1x4x10x10xf32>, tensor<3x3xf32>) outs(%init : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  return %y : tensor<1x4x4x4xf32>
}
