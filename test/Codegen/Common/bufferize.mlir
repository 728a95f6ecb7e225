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
