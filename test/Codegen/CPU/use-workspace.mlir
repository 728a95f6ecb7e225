// Buffers become places of one that the caller gives: those in use at the same
// time do not overlap, others may.

// RUN: kas-opt %s -split-input-file -kas-use-workspace -verify-diagnostics | FileCheck %s

// %a and %b are in use together, %c after %a.
// CHECK-LABEL: func.func @reuse(
// CHECK-SAME: %[[W:[a-z0-9]+]]: memref<192xi8>)
// CHECK: %[[A:.+]] = arith.constant 0 : index
// CHECK: memref.view %[[W]][%[[A]]][] : memref<192xi8> to memref<16xf32>
// CHECK: %[[B:.+]] = arith.constant 128 : index
// CHECK: memref.view %[[W]][%[[B]]][] : memref<192xi8> to memref<16xf32>
// CHECK: %[[C:.+]] = arith.constant 0 : index
// CHECK: memref.view %[[W]][%[[C]]][] : memref<192xi8> to memref<32xf32>
// CHECK-NOT: memref.dealloc
// CHECK: func.func @reuse_workspace_bytes() -> i64
// CHECK-NEXT: arith.constant 192 : i64
func.func @reuse(%x: memref<16xf32>) {
  %a = memref.alloc() : memref<16xf32>
  memref.copy %x, %a : memref<16xf32> to memref<16xf32>
  %b = memref.alloc() : memref<16xf32>
  memref.copy %a, %b : memref<16xf32> to memref<16xf32>
  memref.dealloc %a : memref<16xf32>
  %c = memref.alloc() : memref<32xf32>
  %low = memref.subview %c[0] [16] [1] : memref<32xf32> to memref<16xf32, strided<[1]>>
  memref.copy %b, %low : memref<16xf32> to memref<16xf32, strided<[1]>>
  memref.dealloc %b : memref<16xf32>
  memref.copy %low, %x : memref<16xf32, strided<[1]>> to memref<16xf32>
  memref.dealloc %c : memref<32xf32>
  return
}

// -----

// What a private function needs is a part of its caller's; a function that
// needs nothing takes nothing, if it is private.
// CHECK-LABEL: func.func private @kernel(
// CHECK-SAME: memref<16xf32>, %{{.+}}: memref<64xi8>)
// CHECK-LABEL: func.func private @plain(
// CHECK-SAME: memref<16xf32>)
// CHECK-LABEL: func.func @caller(
// CHECK-SAME: %[[W:[a-z0-9]+]]: memref<128xi8>)
// CHECK: memref.view %[[W]][%{{.+}}][] : memref<128xi8> to memref<16xf32>
// CHECK: %[[PART:.+]] = memref.view %[[W]][%{{.+}}][] : memref<128xi8> to memref<64xi8>
// CHECK: call @kernel(%{{.+}}, %[[PART]])
// CHECK: call @plain(%{{.+}}) : (memref<16xf32>) -> ()
// CHECK: @caller_workspace_bytes
// CHECK-NEXT: arith.constant 128 : i64
func.func private @kernel(%x: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %c1 step %c1 {
    %a = memref.alloc() : memref<3xf32>
    %v = memref.load %x[%i] : memref<16xf32>
    memref.store %v, %a[%i] : memref<3xf32>
    memref.dealloc %a : memref<3xf32>
  }
  return
}
func.func private @plain(%x: memref<16xf32>) {
  return
}
func.func @caller(%x: memref<16xf32>) {
  %a = memref.alloc() : memref<16xf32>
  memref.copy %x, %a : memref<16xf32> to memref<16xf32>
  call @kernel(%a) : (memref<16xf32>) -> ()
  call @plain(%a) : (memref<16xf32>) -> ()
  memref.copy %a, %x : memref<16xf32> to memref<16xf32>
  memref.dealloc %a : memref<16xf32>
  return
}

// -----

// The count is of what prepacks weights, too.
// CHECK: @f_workspace_bytes
// CHECK-NEXT: arith.constant 256 : i64
// CHECK-NOT: @f_prepare_workspace_bytes
func.func @f(%x: memref<16xf32>) {
  return
}
func.func @f_prepack(%x: memref<16xf32>) {
  %a = memref.alloc() : memref<64xf32>
  %c0 = arith.constant 0 : index
  %v = memref.load %a[%c0] : memref<64xf32>
  memref.store %v, %x[%c0] : memref<16xf32>
  memref.dealloc %a : memref<64xf32>
  return
}
func.func @f_prepacked_elements() -> i64 {
  %c = arith.constant 16 : i64
  return %c : i64
}

// -----

func.func @dynamic(%x: memref<f32>, %n: index) {
  // expected-error @below {{requires buffers of static shape for a workspace, got 'memref<?xf32>'}}
  %a = memref.alloc(%n) : memref<?xf32>
  memref.dealloc %a : memref<?xf32>
  return
}

// -----

func.func @parallel(%x: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  scf.parallel (%i) = (%c0) to (%c16) step (%c1) {
    // expected-error @below {{requires serial code for a workspace (threads=1), got a buffer in a parallel loop}}
    %a = memref.alloc() : memref<3xf32>
    memref.dealloc %a : memref<3xf32>
  }
  return
}

// -----

func.func @escaping(%x: memref<16xf32>, %b: i1) {
  %r = scf.if %b -> memref<16xf32> {
    // expected-error @below {{requires buffers that one block makes and uses for a workspace, got one that leaves it}}
    %a = memref.alloc() : memref<16xf32>
    scf.yield %a : memref<16xf32>
  } else {
    scf.yield %x : memref<16xf32>
  }
  memref.copy %r, %x : memref<16xf32> to memref<16xf32>
  return
}

// -----

func.func @recursive(%x: memref<16xf32>) {
  // expected-error @below {{requires functions that do not call themselves for a workspace, got a call of 'recursive' within it}}
  func.call @recursive(%x) : (memref<16xf32>) -> ()
  return
}
