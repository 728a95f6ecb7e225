// RUN: kas-opt %s -kas-pass-sizes -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @copy(
// CHECK-SAME:    %[[X:.*]]: memref<f32> {llvm.noalias}, %{{.*}}: i32, %[[Y:.*]]: memref<f32>, %[[N:[^:]*]]: index, %[[C:[^:]*]]: index, %[[M:[^:]*]]: index) {
// CHECK:         memref.reinterpret_cast %[[X]] to offset: [0], sizes: [%[[N]], 8, %[[C]]], strides: [%{{.*}}, %{{.*}}, 1]
// CHECK:         memref.reinterpret_cast %[[Y]] to offset: [0], sizes: [%[[M]], 2], strides: [2, 1]
func.func @copy(%x: memref<?x8x?xf32> {llvm.noalias}, %i: i32, %y: memref<?x2xf32>) {
  %c0 = arith.constant 0 : index
  %0 = memref.load %x[%c0, %c0, %c0] : memref<?x8x?xf32>
  memref.store %0, %y[%c0, %c0] : memref<?x2xf32>
  return
}

// CHECK-LABEL: func.func @caller(
// CHECK-SAME:    %[[X:.*]]: memref<f32>, %[[Y:.*]]: memref<4x2xf32>, %[[N:.*]]: index)
// CHECK:         call @copy(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (memref<f32>, i32, memref<f32>, index, index, index) -> ()
func.func @caller(%x: memref<?x8x5xf32>, %y: memref<4x2xf32>) {
  %i = arith.constant 1 : i32
  %0 = memref.cast %x : memref<?x8x5xf32> to memref<?x8x?xf32>
  %1 = memref.cast %y : memref<4x2xf32> to memref<?x2xf32>
  call @copy(%0, %i, %1) : (memref<?x8x?xf32>, i32, memref<?x2xf32>) -> ()
  return
}

// No size is passed of what has no elements.
// CHECK-LABEL: func.func @empty(
// CHECK-SAME:    %{{[^:]*}}: memref<f32>) {
func.func @empty(%x: memref<4x0xf32>) {
  return
}

// CHECK-LABEL: func.func private @outside(memref<f32>, index)
func.func private @outside(memref<?xf32>)

// -----

// expected-error @+1 {{requires rows that follow each other of the arguments of compiled functions, for argument 0 of '@strided' got 'memref<?x4xf32, strided<[?, 1]>>'}}
func.func @strided(%x: memref<?x4xf32, strided<[?, 1]>>) {
  return
}

// -----

// expected-error @+1 {{requires results of static shape and with elements of functions that are called, for result 0 of '@result' got 'memref<?xf32>'}}
func.func @result(%x: memref<?xf32>) -> memref<?xf32> {
  return %x : memref<?xf32>
}
