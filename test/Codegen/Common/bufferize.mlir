// RUN: kas-opt %s -kas-bufferize | FileCheck %s

// Arguments are not written, although the slice could be inserted in place; the
// result is stored where the caller says; copies are linalg.copy.
// CHECK-LABEL: func.func @insert
// CHECK-SAME:    (%[[X:.*]]: memref<4x8xf32>, %[[Y:.*]]: memref<8xf32>, %[[R:.*]]: memref<4x8xf32>)
// CHECK:         linalg.copy ins(%[[X]] : memref<4x8xf32>) outs(%[[R]] : memref<4x8xf32>)
// CHECK:         %[[V:.*]] = memref.subview %[[R]][1, 0] [1, 8] [1, 1]
// CHECK:         linalg.copy ins(%[[Y]] : memref<8xf32>) outs(%[[V]]
// CHECK-NOT:     memref.copy
// CHECK:         return{{$}}
func.func @insert(%x: tensor<4x8xf32>, %y: tensor<8xf32>) -> tensor<4x8xf32> {
  %0 = tensor.insert_slice %y into %x[1, 0] [1, 8] [1, 1]
      : tensor<8xf32> into tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// An argument that is returned is copied.
// CHECK-LABEL: func.func @identity
// CHECK-SAME:    (%[[X:.*]]: memref<4xf32>, %[[R:.*]]: memref<4xf32>)
// CHECK:         linalg.copy ins(%[[X]] : memref<4xf32>) outs(%[[R]] : memref<4xf32>)
func.func @identity(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// What is returned twice is stored twice.
// CHECK-LABEL: func.func @twice
// CHECK-SAME:    (%[[X:.*]]: memref<4xf32>, %[[A:.*]]: memref<4xf32>, %[[B:.*]]: memref<4xf32>)
// CHECK:         linalg.exp ins(%[[X]] : memref<4xf32>) outs(%[[A]] : memref<4xf32>)
// CHECK:         linalg.copy ins(%[[A]] : memref<4xf32>) outs(%[[B]] : memref<4xf32>)
func.func @twice(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %0, %0 : tensor<4xf32>, tensor<4xf32>
}

// What is made of weights alone does not share a buffer, so that it can be made
// ahead; what is made of data does.
// CHECK-LABEL: func.func @weights
// CHECK-SAME:    (%[[X:.*]]: memref<4x4xf32>, %[[V:.*]]: memref<4x4xf32>, %[[W:.*]]: memref<16xf32>, %{{.*}}: memref<4x4xf32>)
// CHECK-DAG:     linalg.transpose ins(%[[V]] : memref<4x4xf32>) outs(%[[T:.*]] : memref<4x4xf32>)
// CHECK:         linalg.matmul ins(%[[X]], %[[T]]
// CHECK:         linalg.transpose ins(%{{.*}} : memref<4x4xf32>) outs(%[[U:.*]] : memref<4x4xf32>)
// CHECK-NOT:     linalg.matmul ins(%{{.*}}, %[[T]]
// CHECK:         linalg.matmul ins(%{{.*}}, %[[U]]
// CHECK-NOT:     linalg.matmul ins(%{{.*}}, %[[U]]
// CHECK:         return
func.func @weights(%x: tensor<4x4xf32>, %v: tensor<4x4xf32>, %w: tensor<16xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %out = tensor.empty() : tensor<4x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%out : tensor<4x4xf32>) -> tensor<4x4xf32>
  %0 = linalg.transpose ins(%v : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) permutation = [1, 0]
  %1 = linalg.matmul ins(%x, %0 : tensor<4x4xf32>, tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = tensor.expand_shape %w [[0, 1]] output_shape [4, 4] : tensor<16xf32> into tensor<4x4xf32>
  %3 = linalg.transpose ins(%2 : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) permutation = [1, 0]
  %4 = linalg.matmul ins(%1, %3 : tensor<4x4xf32>, tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %4 : tensor<4x4xf32>
}

// So it is with sums and maxima of weights, which begin with a filled tensor.
// CHECK-LABEL: func.func @sums
// CHECK-SAME:    (%[[X:.*]]: memref<4xf32>, %[[W:.*]]: memref<4x9xf32>, %[[R:.*]]: memref<4xf32>)
// CHECK:         linalg.exp ins(%[[X]] : memref<4xf32>) outs(%[[R]] : memref<4xf32>)
// CHECK:         linalg.log ins(%[[R]] : memref<4xf32>) outs(%[[R]] : memref<4xf32>)
// CHECK:         %[[MOST:.*]] = memref.alloc()
// CHECK:         linalg.fill ins({{.*}}) outs(%[[MOST]] : memref<4xf32>)
// CHECK:         linalg.reduce {{.*}} ins(%[[W]] : memref<4x9xf32>) outs(%[[MOST]] : memref<4xf32>)
// CHECK:         linalg.add ins(%[[R]], %[[MOST]] : memref<4xf32>, memref<4xf32>) outs(%[[R]] : memref<4xf32>)
func.func @sums(%x: tensor<4xf32>, %w: tensor<4x9xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %1 = linalg.log ins(%0 : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %2 = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %3 = linalg.reduce {arith.maximumf} ins(%w : tensor<4x9xf32>) outs(%2 : tensor<4xf32>) dimensions = [1]
  %4 = linalg.add ins(%1, %3 : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %4 : tensor<4xf32>
}

// The caller's buffer is filled, whatever shape it has then.
// CHECK-LABEL: func.func @reshaped
// CHECK-SAME:    (%[[X:.*]]: memref<6xf32>, %[[R:.*]]: memref<2x3xf32>)
// CHECK:         %[[FLAT:.*]] = memref.reinterpret_cast %[[R]] to offset: [0], sizes: [6], strides: [1]
// CHECK:         linalg.exp ins(%[[X]] : memref<6xf32>) outs(%[[FLAT]] : memref<6xf32>)
// CHECK-NOT:     linalg.copy
// CHECK:         return{{$}}
func.func @reshaped(%x: tensor<6xf32>) -> tensor<2x3xf32> {
  %e = tensor.empty() : tensor<6xf32>
  %0 = linalg.exp ins(%x : tensor<6xf32>) outs(%e : tensor<6xf32>) -> tensor<6xf32>
  %1 = tensor.expand_shape %0 [[0, 1]] output_shape [2, 3] : tensor<6xf32> into tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// Two shapes of one buffer are two results: one of them is a copy.
// CHECK-LABEL: func.func @two_shapes
// CHECK-SAME:    (%[[X:.*]]: memref<6xf32>, %[[A:.*]]: memref<2x3xf32>, %[[B:.*]]: memref<3x2xf32>)
// CHECK:         %[[FLAT:.*]] = memref.reinterpret_cast %[[A]]
// CHECK:         linalg.exp ins(%[[X]] : memref<6xf32>) outs(%[[FLAT]] : memref<6xf32>)
// CHECK:         linalg.copy ins(%{{.*}} : memref<3x2xf32>) outs(%[[B]] : memref<3x2xf32>)
func.func @two_shapes(%x: tensor<6xf32>) -> (tensor<2x3xf32>, tensor<3x2xf32>) {
  %e = tensor.empty() : tensor<6xf32>
  %0 = linalg.exp ins(%x : tensor<6xf32>) outs(%e : tensor<6xf32>) -> tensor<6xf32>
  %1 = tensor.expand_shape %0 [[0, 1]] output_shape [2, 3] : tensor<6xf32> into tensor<2x3xf32>
  %2 = tensor.expand_shape %0 [[0, 1]] output_shape [3, 2] : tensor<6xf32> into tensor<3x2xf32>
  return %1, %2 : tensor<2x3xf32>, tensor<3x2xf32>
}
