// RUN: kas-opt %s -kas-serialize-loops | FileCheck %s

// CHECK-LABEL: func.func @serial
// CHECK-NOT:     scf.parallel
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             memref.store
func.func @serial(%x: memref<4x8xf32>) attributes {kas_cpu.serial} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    scf.parallel (%j) = (%c0) to (%c8) step (%c1) {
      memref.store %zero, %x[%i, %j] : memref<4x8xf32>
      scf.reduce
    }
    scf.reduce
  }
  return
}

// Others remain.
// CHECK-LABEL: func.func @shared
// CHECK:         scf.parallel
func.func @shared(%x: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    memref.store %zero, %x[%i] : memref<4xf32>
    scf.reduce
  }
  return
}
