// RUN: kas-opt %s -kas-insert-profile-timestamps | FileCheck %s
// RUN: kas-opt %s -kas-insert-profile-timestamps -kas-outline-kernels=min-kernels=1 | FileCheck %s --check-prefix=OUTLINED

// A timestamp after each loop nest, linalg operation, copy and call; none inside of
// loops. A fill belongs to what follows it, an allocation takes no timestamp.
// CHECK:       func.func private @kas_profile_timestamp(i64)
// CHECK-LABEL: func.func @steps(
// CHECK-NEXT:    %[[BEGIN:.*]] = arith.constant -1 : i64
// CHECK-NEXT:    call @kas_profile_timestamp(%[[BEGIN]])
// CHECK:         memref.alloc()
// CHECK-NEXT:    linalg.fill
// CHECK-NEXT:    linalg.add
// CHECK-NEXT:    %[[L0:.*]] = arith.constant 0 : i64
// CHECK-NEXT:    call @kas_profile_timestamp(%[[L0]])
// CHECK-NEXT:    scf.parallel
// CHECK-NOT:     @kas_profile_timestamp
// CHECK:         scf.reduce
// CHECK:         %[[L1:.*]] = arith.constant 1 : i64
// CHECK-NEXT:    call @kas_profile_timestamp(%[[L1]])
// CHECK-NEXT:    memref.copy
// CHECK-NEXT:    %[[L2:.*]] = arith.constant 2 : i64
// CHECK-NEXT:    call @kas_profile_timestamp(%[[L2]])
// CHECK-NEXT:    call @other
// CHECK-NEXT:    %[[L3:.*]] = arith.constant 3 : i64
// CHECK-NEXT:    call @kas_profile_timestamp(%[[L3]])
// CHECK-NEXT:    memref.dealloc
// CHECK-NEXT:    return

// The kernels are those without timestamps.
// OUTLINED-LABEL: func.func private @steps_kernel(
// OUTLINED-NOT:   @kas_profile_timestamp
// OUTLINED-LABEL: func.func @steps(
// OUTLINED:         call @kas_profile_timestamp
// OUTLINED:         call @steps_kernel(
// OUTLINED:         call @kas_profile_timestamp
// OUTLINED:         call @steps_kernel_0(
// OUTLINED:         call @kas_profile_timestamp
func.func @steps(%x: memref<8xf32>, %y: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %sum = memref.alloc() : memref<8xf32>
  linalg.fill ins(%zero : f32) outs(%sum : memref<8xf32>)
  linalg.add ins(%x, %x : memref<8xf32>, memref<8xf32>) outs(%sum : memref<8xf32>)
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
    memref.store %zero, %x[%i] : memref<8xf32>
  }
  memref.copy %sum, %y : memref<8xf32> to memref<8xf32>
  call @other(%y) : (memref<8xf32>) -> ()
  memref.dealloc %sum : memref<8xf32>
  return
}

// Private functions have no timestamps.
// CHECK-LABEL: func.func private @other(
// CHECK-NOT:     @kas_profile_timestamp
func.func private @other(%x: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%x : memref<8xf32>)
  return
}
