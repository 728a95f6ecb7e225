// RUN: kas-opt %s -kas-prepack-weights | FileCheck %s

// A buffer that holds one weight after another stays: in between it is read.
//
// CHECK-NOT:   @reused_prepack
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
// CHECK-LABEL: func.func @in_turn_prepack(
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

// A loop that prefetches what was packed does not write it.
//
// CHECK-LABEL: func.func @prefetched_prepack(
// CHECK:         linalg.transpose
// CHECK:       func.func @prefetched(
// CHECK-NOT:     linalg.transpose
// CHECK:         memref.prefetch
func.func @prefetched(%x: memref<8xf32>, %a: memref<8x8xf32>, %y: memref<8xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %eight = arith.constant 8 : index
  %t = memref.alloc() : memref<8x8xf32>
  linalg.transpose ins(%a : memref<8x8xf32>) outs(%t : memref<8x8xf32>) permutation = [1, 0]
  scf.for %i = %zero to %eight step %one {
    memref.prefetch %a[%i, %zero], read, locality<2>, data : memref<8x8xf32>
    memref.prefetch %t[%i, %zero], read, locality<2>, data : memref<8x8xf32>
    %0 = memref.load %x[%i] : memref<8xf32>
    %1 = memref.load %t[%i, %i] : memref<8x8xf32>
    %2 = arith.mulf %0, %1 : f32
    memref.store %2, %y[%i] : memref<8xf32>
  }
  memref.dealloc %t : memref<8x8xf32>
  return
}

// Data that is not the first argument is no weight.
//
// CHECK-LABEL: func.func @two_inputs_prepack(
// CHECK-SAME:    %[[B:.*]]: memref<8x8xf32>, %{{.*}}: memref<256xi8>)
// CHECK:         linalg.transpose ins(%[[B]] :
// CHECK-NOT:     linalg.transpose
// CHECK:       func.func @two_inputs(
// CHECK-SAME:    %{{.*}}: memref<8x8xf32>, %[[A:.*]]: memref<8x8xf32> {kas.data}
// CHECK:         linalg.transpose ins(%[[A]] :
// CHECK-NOT:     linalg.transpose
func.func @two_inputs(%x: memref<8x8xf32>, %a: memref<8x8xf32> {kas.data}, %b: memref<8x8xf32>, %y: memref<8x8xf32>) {
  %t = memref.alloc() : memref<8x8xf32>
  linalg.transpose ins(%a : memref<8x8xf32>) outs(%t : memref<8x8xf32>) permutation = [1, 0]
  %u = memref.alloc() : memref<8x8xf32>
  linalg.transpose ins(%b : memref<8x8xf32>) outs(%u : memref<8x8xf32>) permutation = [1, 0]
  linalg.add ins(%x, %t : memref<8x8xf32>, memref<8x8xf32>) outs(%y : memref<8x8xf32>)
  linalg.mul ins(%y, %u : memref<8x8xf32>, memref<8x8xf32>) outs(%y : memref<8x8xf32>)
  memref.dealloc %t : memref<8x8xf32>
  memref.dealloc %u : memref<8x8xf32>
  return
}

// A buffer that a condition selects is read by another name, so it stays.
//
// CHECK-NOT:   @selected_prepack
// CHECK-LABEL: func.func @selected(
// CHECK:         linalg.transpose
// CHECK:         arith.select
func.func @selected(%x: memref<8x8xf32>, %a: memref<8x8xf32>, %c: memref<i1>, %y: memref<8x8xf32>) {
  %p = memref.load %c[] : memref<i1>
  %t = memref.alloc() : memref<8x8xf32>
  linalg.transpose ins(%a : memref<8x8xf32>) outs(%t : memref<8x8xf32>) permutation = [1, 0]
  %s = arith.select %p, %t, %a : memref<8x8xf32>
  linalg.add ins(%x, %s : memref<8x8xf32>, memref<8x8xf32>) outs(%y : memref<8x8xf32>)
  memref.dealloc %t : memref<8x8xf32>
  return
}

// So does one that a loop carries, and one of which a view is yielded.
//
// CHECK-NOT:   @carried_prepack
// CHECK-LABEL: func.func @carried(
// CHECK-COUNT-2: linalg.transpose
func.func @carried(%x: memref<8x8xf32>, %a: memref<8x8xf32>, %c: memref<i1>, %y: memref<8x8xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %p = memref.load %c[] : memref<i1>
  %t = memref.alloc() : memref<8x8xf32>
  linalg.transpose ins(%a : memref<8x8xf32>) outs(%t : memref<8x8xf32>) permutation = [1, 0]
  %r = scf.for %i = %zero to %one step %one iter_args(%s = %t) -> memref<8x8xf32> {
    linalg.add ins(%x, %s : memref<8x8xf32>, memref<8x8xf32>) outs(%y : memref<8x8xf32>)
    scf.yield %s : memref<8x8xf32>
  }
  %u = memref.alloc() : memref<64xf32>
  %v = memref.expand_shape %u [[0, 1]] output_shape [8, 8] : memref<64xf32> into memref<8x8xf32>
  linalg.transpose ins(%a : memref<8x8xf32>) outs(%v : memref<8x8xf32>) permutation = [1, 0]
  %q = scf.if %p -> memref<8x8xf32> {
    scf.yield %v : memref<8x8xf32>
  } else {
    scf.yield %a : memref<8x8xf32>
  }
  linalg.add ins(%r, %q : memref<8x8xf32>, memref<8x8xf32>) outs(%y : memref<8x8xf32>)
  memref.dealloc %u : memref<64xf32>
  memref.dealloc %t : memref<8x8xf32>
  return
}
