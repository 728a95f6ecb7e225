// RUN: kas-opt %s -kas-prepare-weights | FileCheck %s

// A buffer that holds one weight after another stays: in between it is read.
//
// CHECK-NOT:   @reused_prepare
// CHECK-LABEL: func.func @reused(
// CHECK-COUNT-2: linalg.transpose
func.func @reused(%x: memref<8x8xf32>, %a: memref<8x8xf32>, %b: memref<8x8xf32>, %y: memref<8x8xf32>) {
  %t = memref.alloc() : memref<8x8xf32>
  linalg.transpose ins(%a : memref<8x8xf32>) outs(%t : memref<8x8xf32>) permutation = [1, 0]
  linalg.add ins(%x, %t : memref<8x8xf32>, memref<8x8xf32>) outs(%y : memref<8x8xf32>)
  linalg.transpose ins(%b : memref<8x8xf32>) outs(%t : memref<8x8xf32>) permutation = [1, 0]
  linalg.mul ins(%y, %t : memref<8x8xf32>, memref<8x8xf32>) outs(%y : memref<8x8xf32>)
  memref.dealloc %t : memref<8x8xf32>
  return
}

// One that is filled before it is read moves, and so does what is made of it.
//
// CHECK-LABEL: func.func @in_turn_prepare(
// CHECK:         linalg.transpose
// CHECK:         linalg.add
// CHECK:       func.func @in_turn(
// CHECK-NOT:     linalg.transpose
// CHECK-NOT:     linalg.add
// CHECK:         linalg.mul
func.func @in_turn(%x: memref<8x8xf32>, %a: memref<8x8xf32>, %b: memref<8x8xf32>, %y: memref<8x8xf32>) {
  %t = memref.alloc() : memref<8x8xf32>
  linalg.transpose ins(%a : memref<8x8xf32>) outs(%t : memref<8x8xf32>) permutation = [1, 0]
  linalg.add ins(%b, %t : memref<8x8xf32>, memref<8x8xf32>) outs(%t : memref<8x8xf32>)
  linalg.mul ins(%x, %t : memref<8x8xf32>, memref<8x8xf32>) outs(%y : memref<8x8xf32>)
  memref.dealloc %t : memref<8x8xf32>
  return
}
