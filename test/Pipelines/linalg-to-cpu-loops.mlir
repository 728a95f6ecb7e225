// RUN: kas-opt %s -kas-linalg-to-cpu-loops=min-parallel-work=1000 -canonicalize | FileCheck %s
// RUN: kas-opt %s -kas-linalg-to-cpu-loops=parallel=false -canonicalize | FileCheck %s --check-prefix=SERIAL

// The columns, which lie one beside the other, are walked through innermost,
// behind the reduction; the rows are done in parallel.
// CHECK-LABEL: func.func @matmul
// CHECK:         scf.parallel (%[[I:.*]]) =
// CHECK:           scf.for %[[K:.*]] =
// CHECK:             scf.for %[[J:.*]] =
// CHECK:               memref.load %{{.*}}[%[[I]], %[[K]]]
// CHECK:               memref.load %{{.*}}[%[[K]], %[[J]]]
// CHECK:               memref.store %{{.*}}, %{{.*}}[%[[I]], %[[J]]]
// SERIAL-LABEL: func.func @matmul
// SERIAL-NOT:   scf.parallel
func.func @matmul(%a: memref<16x32xf32>, %b: memref<32x64xf32>, %c: memref<16x64xf32>) {
  linalg.matmul ins(%a, %b : memref<16x32xf32>, memref<32x64xf32>) outs(%c : memref<16x64xf32>)
  return
}

// Too little work for threads.
// CHECK-LABEL: func.func @small
// CHECK-NOT:     scf.parallel
func.func @small(%x: memref<4x8xf32>, %y: memref<4x8xf32>) {
  linalg.copy ins(%x : memref<4x8xf32>) outs(%y : memref<4x8xf32>)
  return
}

// A loop that runs once is no loop to share: the next one is.
// CHECK-LABEL: func.func @unit
// CHECK:         scf.parallel
func.func @unit(%x: memref<1x64x64xf32>, %y: memref<1x64x64xf32>) {
  linalg.copy ins(%x : memref<1x64x64xf32>) outs(%y : memref<1x64x64xf32>)
  return
}
