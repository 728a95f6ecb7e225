// RUN: kas-opt %s -kas-delay-deallocations | FileCheck %s

// The bias was computed, the weights were scaled: both are needed until the sums
// and what is computed of them are there.
// CHECK-LABEL: func.func @layer
// CHECK:         %[[BIAS:.*]] = memref.alloc() : memref<8xf32>
// CHECK:         %[[WEIGHTS:.*]] = memref.alloc() : memref<2x8xf32>
// CHECK:         linalg.broadcast
// CHECK-NEXT:    %{{.*}} = memref.alloc() : memref<4x8xf32>
// CHECK-NEXT:    linalg.matmul
// CHECK-NEXT:    linalg.exp
// CHECK-NEXT:    memref.dealloc %[[BIAS]]
// CHECK-NEXT:    memref.dealloc %[[WEIGHTS]]
// CHECK-NEXT:    return
func.func @layer(%x: memref<4x2xf32>, %w: memref<2x8xf32>, %b: memref<8xf32>, %y: memref<4x8xf32>) {
  %bias = memref.alloc() : memref<8xf32>
  linalg.exp ins(%b : memref<8xf32>) outs(%bias : memref<8xf32>)
  %weights = memref.alloc() : memref<2x8xf32>
  linalg.exp ins(%w : memref<2x8xf32>) outs(%weights : memref<2x8xf32>)
  linalg.broadcast ins(%bias : memref<8xf32>) outs(%y : memref<4x8xf32>) dimensions = [0]
  memref.dealloc %bias : memref<8xf32>
  %other = memref.alloc() : memref<4x8xf32>
  linalg.matmul ins(%x, %weights : memref<4x2xf32>, memref<2x8xf32>) outs(%y : memref<4x8xf32>)
  memref.dealloc %weights : memref<2x8xf32>
  linalg.exp ins(%y : memref<4x8xf32>) outs(%other : memref<4x8xf32>)
  return
}

// What follows does something else, or not with the sums.
// CHECK-LABEL: func.func @others
// CHECK:         linalg.exp
// CHECK-NEXT:    memref.dealloc
// CHECK-NEXT:    linalg.matmul
// CHECK-NEXT:    memref.dealloc
// CHECK-NEXT:    linalg.exp
// CHECK-NEXT:    return
func.func @others(%x: memref<2x2xf32>, %w: memref<2x2xf32>, %y: memref<2x2xf32>, %z: memref<2x2xf32>) {
  %a = memref.alloc() : memref<2x2xf32>
  %b = memref.alloc() : memref<2x2xf32>
  linalg.exp ins(%x : memref<2x2xf32>) outs(%y : memref<2x2xf32>)
  memref.dealloc %a : memref<2x2xf32>
  linalg.matmul ins(%y, %w : memref<2x2xf32>, memref<2x2xf32>) outs(%y : memref<2x2xf32>)
  memref.dealloc %b : memref<2x2xf32>
  linalg.exp ins(%x : memref<2x2xf32>) outs(%z : memref<2x2xf32>)
  return
}

// What follows overwrites something else that it reads.
// CHECK-LABEL: func.func @in_place
// CHECK:         linalg.matmul
// CHECK-NEXT:    memref.dealloc
// CHECK-NEXT:    linalg.add
// CHECK-NEXT:    return
func.func @in_place(%x: memref<2x2xf32>, %w: memref<2x2xf32>, %y: memref<2x2xf32>, %z: memref<2x2xf32>) {
  %a = memref.alloc() : memref<2x2xf32>
  linalg.matmul ins(%x, %w : memref<2x2xf32>, memref<2x2xf32>) outs(%y : memref<2x2xf32>)
  memref.dealloc %a : memref<2x2xf32>
  linalg.add ins(%y, %z : memref<2x2xf32>, memref<2x2xf32>) outs(%z : memref<2x2xf32>)
  return
}
