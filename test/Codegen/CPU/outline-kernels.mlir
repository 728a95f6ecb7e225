// RUN: kas-opt %s -kas-outline-kernels=min-kernels=2 -split-input-file \
// RUN:   --mlir-print-local-scope | FileCheck %s
// RUN: kas-opt %s -kas-outline-kernels -split-input-file | FileCheck %s --check-prefix=SMALL
// SMALL-NOT: kernel

// Equal kernels are one function, whatever their buffers; constants and views
// are inside. What fills a buffer belongs to the loops that work on it.
// CHECK-LABEL: func.func private @equal_kernel(
// CHECK-SAME:    %[[Y:.*]]: memref<2x8xf32> {llvm.noalias}, %[[X:.*]]: memref<2x8xf32> {llvm.noalias}
// CHECK-SAME:    attributes {no_inline}
// CHECK-DAG:     %[[VIEW:.*]] = memref.collapse_shape %[[X]]
// CHECK-DAG:     %[[OUT:.*]] = memref.collapse_shape %[[Y]]
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0.0
// CHECK:         linalg.fill ins(%[[ZERO]] : f32) outs(%[[OUT]]
// CHECK:         linalg.add ins(%[[VIEW]], %[[VIEW]] {{.*}} outs(%[[OUT]]
// CHECK-NEXT:    return
// CHECK-LABEL: func.func private @equal_kernel_0(
// CHECK-SAME:    f32, %{{.*}}: memref<2x8xf32> {llvm.noalias})
// CHECK:         scf.for
// CHECK-LABEL: func.func @equal(
// CHECK-SAME:    %[[A:.*]]: memref<2x8xf32>, %[[B:.*]]: memref<2x8xf32>, %[[S:.*]]: memref<f32>
// CHECK:         %[[SUM:.*]] = memref.alloc
// CHECK:         call @equal_kernel(%[[SUM]], %[[A]])
// CHECK:         call @equal_kernel(%[[B]], %[[SUM]])
// CHECK-NEXT:    memref.dealloc %[[SUM]]
// CHECK:         %[[V:.*]] = memref.load %[[S]]
// CHECK:         call @equal_kernel_0(%[[V]], %[[B]])
// CHECK-NEXT:    return
func.func @equal(%a: memref<2x8xf32>, %b: memref<2x8xf32>, %s: memref<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %sum = memref.alloc() : memref<2x8xf32>
  %0 = memref.collapse_shape %a [[0, 1]] : memref<2x8xf32> into memref<16xf32>
  %1 = memref.collapse_shape %sum [[0, 1]] : memref<2x8xf32> into memref<16xf32>
  linalg.fill ins(%zero : f32) outs(%1 : memref<16xf32>)
  linalg.add ins(%0, %0 : memref<16xf32>, memref<16xf32>) outs(%1 : memref<16xf32>)
  %2 = memref.collapse_shape %b [[0, 1]] : memref<2x8xf32> into memref<16xf32>
  linalg.fill ins(%zero : f32) outs(%2 : memref<16xf32>)
  linalg.add ins(%1, %1 : memref<16xf32>, memref<16xf32>) outs(%2 : memref<16xf32>)
  memref.dealloc %sum : memref<2x8xf32>
  %v = memref.load %s[] : memref<f32>
  scf.for %i = %c0 to %c2 step %c1 {
    memref.store %v, %b[%i, %c0] : memref<2x8xf32>
  }
  return
}

// -----

// Other constants make other kernels. Loops with results, assertions or calls,
// and those on buffers of dynamic shape, stay.
// CHECK-LABEL: func.func private @others_kernel(
// CHECK:         arith.constant 1.0
// CHECK-LABEL: func.func private @others_kernel_0(
// CHECK:         arith.constant 2.0
// CHECK-LABEL: func.func @others(
// CHECK:         call @others_kernel(
// CHECK:         call @others_kernel_0(
// CHECK:         scf.for
// CHECK:           cf.assert
// CHECK:         scf.for {{.*}} iter_args
// CHECK:         linalg.fill {{.*}} memref<?xf32>
func.func @others(%a: memref<4xf32>, %b: memref<4xf32>, %d: memref<?xf32>, %r: memref<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %one = arith.constant 1.0 : f32
  %two = arith.constant 2.0 : f32
  linalg.fill ins(%one : f32) outs(%a : memref<4xf32>)
  linalg.fill ins(%two : f32) outs(%b : memref<4xf32>)
  scf.for %i = %c0 to %c4 step %c1 {
    %0 = memref.load %a[%i] : memref<4xf32>
    %1 = arith.cmpf ogt, %0, %one : f32
    cf.assert %1, "requires more than 1"
  }
  %sum = scf.for %i = %c0 to %c4 step %c1 iter_args(%s = %one) -> f32 {
    %0 = memref.load %a[%i] : memref<4xf32>
    %1 = arith.addf %s, %0 : f32
    scf.yield %1 : f32
  }
  memref.store %sum, %r[] : memref<f32>
  linalg.fill ins(%one : f32) outs(%d : memref<?xf32>)
  return
}

// -----

// The arguments of private functions may overlap; one loop nest is too few.
// CHECK-LABEL: func.func private @helper(
// CHECK-NEXT:    linalg.exp
// CHECK-NEXT:    linalg.exp
// CHECK-LABEL: func.func @single(
// CHECK:         linalg.exp
// CHECK:         call @helper
func.func private @helper(%a: memref<4xf32>, %b: memref<4xf32>) {
  linalg.exp ins(%a : memref<4xf32>) outs(%b : memref<4xf32>)
  linalg.exp ins(%b : memref<4xf32>) outs(%a : memref<4xf32>)
  return
}
func.func @single(%a: memref<4xf32>, %b: memref<4xf32>) {
  linalg.exp ins(%a : memref<4xf32>) outs(%b : memref<4xf32>)
  call @helper(%a, %b) : (memref<4xf32>, memref<4xf32>) -> ()
  return
}

// -----

// Where a view begins is an argument: layers that are equal but for the place of
// their weights are one function.
// CHECK-LABEL: func.func private @places_kernel(
// CHECK-SAME:    %[[X:.*]]: memref<8xf32> {llvm.noalias}, %[[POOL:.*]]: memref<1024xi8> {llvm.noalias}, %[[PLACE:.*]]: index)
// CHECK:         %[[VIEW:.*]] = memref.view %[[POOL]][%[[PLACE]]][] : memref<1024xi8> to memref<8xf32>
// CHECK:         linalg.add ins(%[[X]], %[[VIEW]]
// CHECK-NOT:   func.func private
// CHECK-LABEL: func.func @places(
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[LAST:.*]] = arith.constant 512 : index
// CHECK:         call @places_kernel(%{{.*}}, %{{.*}}, %[[ZERO]])
// CHECK:         call @places_kernel(%{{.*}}, %{{.*}}, %[[LAST]])
func.func @places(%pool: memref<1024xi8>, %x: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c512 = arith.constant 512 : index
  %first = memref.view %pool[%c0][] : memref<1024xi8> to memref<8xf32>
  linalg.add ins(%x, %first : memref<8xf32>, memref<8xf32>) outs(%x : memref<8xf32>)
  %last = memref.view %pool[%c512][] : memref<1024xi8> to memref<8xf32>
  linalg.add ins(%x, %last : memref<8xf32>, memref<8xf32>) outs(%x : memref<8xf32>)
  return
}
