// RUN: kas-opt %s -kas-return-assertions | FileCheck %s
// RUN: kas-opt %s -kas-cpu-pipeline=threads=2 -o /dev/null

// One string of all messages, each with its end.
// CHECK: llvm.mlir.global internal constant @kas_assertion_messages("{{.*}}return-assertions.mlir:[[#@LINE+12]]:3: first\00{{.*}}: second\00{{.*}}: third\00")

// The buffer that exists is freed, the one that is freed already is not.
// CHECK-LABEL: func.func @branches(
// CHECK-SAME:    %[[HOLDS:.*]]: i1, %{{.*}}: memref<f32>) -> !llvm.ptr
// CHECK:         memref.dealloc
// CHECK:         %[[LIVE:.*]] = memref.alloc() : memref<8xf32>
// CHECK-NEXT:    cf.cond_br %[[HOLDS]], ^[[REST:.*]], ^[[FAILURE:.*]]
func.func @branches(%holds: i1, %x: memref<f32>) {
  %0 = memref.alloc() : memref<4xf32>
  memref.dealloc %0 : memref<4xf32>
  %1 = memref.alloc() : memref<8xf32>
  cf.assert %holds, "first"
  memref.dealloc %1 : memref<8xf32>
  return
}
// CHECK:       ^[[REST]]:
// CHECK-NEXT:    memref.dealloc %[[LIVE]]
// CHECK-NEXT:    %[[NONE:.*]] = llvm.mlir.zero : !llvm.ptr
// CHECK-NEXT:    return %[[NONE]]
// CHECK:       ^[[FAILURE]]:
// CHECK-NEXT:    %[[ALL:.*]] = llvm.mlir.addressof @kas_assertion_messages
// CHECK-NEXT:    %[[MESSAGE:.*]] = llvm.getelementptr %[[ALL]][0]
// CHECK-NEXT:    memref.dealloc %[[LIVE]]
// CHECK-NOT:     memref.dealloc
// CHECK:         return %[[MESSAGE]]

// A function that cannot fail returns null if it is public, and nothing new else.
// CHECK-LABEL: func.func @cannotFail(
// CHECK-SAME:    -> !llvm.ptr
func.func @cannotFail(%x: memref<f32>) {
  return
}
// CHECK-LABEL: func.func private @neither(
// CHECK-SAME:    memref<f32>) {
func.func private @neither(%x: memref<f32>) {
  return
}
// CHECK-LABEL: func.func @count() -> i64 {
func.func @count() -> i64 {
  %0 = arith.constant 3 : i64
  return %0 : i64
}

// A private one gives its results and the message, which the caller passes on; buffers that it has returned before are the caller's.
// CHECK-LABEL: func.func private @make(
// CHECK-SAME:    -> (memref<4xf32>, !llvm.ptr)
// CHECK:         %[[NOTHING:.*]] = ub.poison : memref<4xf32>
// CHECK:         return %[[NOTHING]], %{{.*}} : memref<4xf32>, !llvm.ptr
func.func private @make(%holds: i1) -> memref<4xf32> {
  cf.assert %holds, "second"
  %0 = memref.alloc() : memref<4xf32>
  return %0 : memref<4xf32>
}
// CHECK-LABEL: func.func @calls(
// CHECK:         %[[FIRST:.*]]:2 = call @make
// CHECK:         llvm.icmp "eq" %[[FIRST]]#1
// CHECK:         %[[SECOND:.*]]:2 = call @make
// CHECK:       ^{{.*}}:
// CHECK-NEXT:    return %[[FIRST]]#1
// CHECK:       ^{{.*}}:
// CHECK-NEXT:    memref.dealloc %[[FIRST]]#0
// CHECK-NEXT:    return %[[SECOND]]#1
func.func @calls(%holds: i1, %other: i1) {
  %0 = call @make(%holds) : (i1) -> memref<4xf32>
  %1 = call @make(%other) : (i1) -> memref<4xf32>
  memref.dealloc %1 : memref<4xf32>
  memref.dealloc %0 : memref<4xf32>
  return
}

// An iteration that fails leaves its number, and the function returns after the loop.
// CHECK-LABEL: func.func @parallel(
// CHECK:         %[[SLOT:.*]] = llvm.alloca
// CHECK:         omp.parallel
// CHECK:           cf.cond_br %{{.*}}, ^[[GOES_ON:.*]], ^[[ENDS:.*]]
// CHECK:         ^[[GOES_ON]]:
// CHECK:           cf.br ^[[EXIT:.*]]
// CHECK:         ^[[EXIT]]:
// CHECK-NEXT:      omp.yield
// CHECK:         ^[[ENDS]]:
// CHECK:           memref.dealloc
// CHECK:           llvm.atomicrmw umin %[[SLOT]], %{{.*}} monotonic
// CHECK-NEXT:      cf.br ^[[EXIT]]
// CHECK:         llvm.load %[[SLOT]]
// CHECK:         cf.cond_br
func.func @parallel(%x: memref<8xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  omp.parallel {
    omp.wsloop {
      omp.loop_nest (%i) : index = (%c0) to (%c8) step (%c1) {
        %0 = memref.alloc() : memref<4xf32>
        %holds = memref.load %x[%i] : memref<8xi1>
        cf.assert %holds, "third"
        memref.dealloc %0 : memref<4xf32>
        omp.yield
      }
    }
    omp.terminator
  }
  return
}
