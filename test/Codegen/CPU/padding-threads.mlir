// RUN: kas-opt %s -kas-linalg-to-cpu-loops='threads=2' -canonicalize | FileCheck %s

// Threads fill the border of an image and copy to its inside in one parallel loop over the channels.
//
// CHECK-LABEL: func.func @image(
// CHECK-SAME:    %[[X:.*]]: memref<1x64x28x28xf32>, %[[Y:.*]]: memref<1x64x30x30xf32>
// CHECK:         %[[INSIDE:.*]] = memref.subview %[[Y]]
// CHECK-NEXT:    scf.parallel (%[[C:.*]]) =
// CHECK:           memref.store %{{.*}}, %[[Y]][%{{.*}}, %[[C]],
// CHECK:           %[[V:.*]] = memref.load %[[X]][%{{.*}}, %[[C]],
// CHECK-NEXT:      memref.store %[[V]], %[[INSIDE]][%{{.*}}, %[[C]],
// CHECK-NOT:     scf.parallel
// CHECK:         return
func.func @image(%x: memref<1x64x28x28xf32>, %y: memref<1x64x30x30xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<1x64x30x30xf32>)
  %inside = memref.subview %y[0, 0, 1, 1] [1, 64, 28, 28] [1, 1, 1, 1]
      : memref<1x64x30x30xf32> to memref<1x64x28x28xf32, strided<[57600, 900, 30, 1], offset: 31>>
  linalg.copy ins(%x : memref<1x64x28x28xf32>) outs(%inside : memref<1x64x28x28xf32, strided<[57600, 900, 30, 1], offset: 31>>)
  return
}

// Not where the channels are padded: another thread may fill what one copies to.
//
// CHECK-LABEL: func.func @channels(
// CHECK-COUNT-2: scf.parallel
// CHECK:         return
func.func @channels(%x: memref<1x64x28x28xf32>, %y: memref<1x66x28x28xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<1x66x28x28xf32>)
  %inside = memref.subview %y[0, 1, 0, 0] [1, 64, 28, 28] [1, 1, 1, 1]
      : memref<1x66x28x28xf32> to memref<1x64x28x28xf32, strided<[51744, 784, 28, 1], offset: 784>>
  linalg.copy ins(%x : memref<1x64x28x28xf32>) outs(%inside : memref<1x64x28x28xf32, strided<[51744, 784, 28, 1], offset: 784>>)
  return
}

// Nor where something in between may read or write.
//
// CHECK-LABEL: func.func @between(
// CHECK:         scf.parallel
// CHECK:         call @other
// CHECK:         scf.parallel
// CHECK:         return
func.func private @other(memref<1x64x30x30xf32>)
func.func @between(%x: memref<1x64x28x28xf32>, %y: memref<1x64x30x30xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<1x64x30x30xf32>)
  call @other(%y) : (memref<1x64x30x30xf32>) -> ()
  %inside = memref.subview %y[0, 0, 1, 1] [1, 64, 28, 28] [1, 1, 1, 1]
      : memref<1x64x30x30xf32> to memref<1x64x28x28xf32, strided<[57600, 900, 30, 1], offset: 31>>
  linalg.copy ins(%x : memref<1x64x28x28xf32>) outs(%inside : memref<1x64x28x28xf32, strided<[57600, 900, 30, 1], offset: 31>>)
  return
}
