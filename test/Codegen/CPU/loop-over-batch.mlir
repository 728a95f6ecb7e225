// RUN: kas-opt %s -kas-loop-over-batch=threads=1 | FileCheck %s --check-prefixes=CHECK,SERIAL
// RUN: kas-opt %s -kas-loop-over-batch=threads=2 | FileCheck %s --check-prefixes=CHECK,PARALLEL
// RUN: kas-opt %s -kas-loop-over-batch | FileCheck %s --check-prefixes=CHECK,UNKNOWN

// Data and results are read and written part by part, weights are shared.
// CHECK-LABEL: llvm.func internal @f_part(
// CHECK-SAME:    attributes {{.*}}sym_visibility = "private"
// CHECK-LABEL: llvm.func @f(
// CHECK-SAME:    %[[X:.*]]: !llvm.ptr, %[[W:.*]]: !llvm.ptr, %[[Y:.*]]: !llvm.ptr)
// CHECK-NOT:     attributes
// CHECK:         %[[COUNT:.*]] = llvm.mlir.constant(4 : i64)
// CHECK:         %[[ZERO:.*]] = llvm.mlir.constant(0 : i64)
// CHECK:         %[[ONE:.*]] = llvm.mlir.constant(1 : i64)
// SERIAL:        llvm.br ^[[LOOP:.*]](%[[ZERO]] : i64)
// SERIAL:      ^[[LOOP]](%[[I:.*]]: i64):
// PARALLEL:      %[[THREADS:.*]] = llvm.mlir.constant(2 : i32)
// PARALLEL:      omp.parallel num_threads(%[[THREADS]] : i32)
// UNKNOWN:       omp.parallel {
// PARALLEL:        omp.loop_nest (%[[I:.*]]) : i64 = (%[[ZERO]]) to (%[[COUNT]]) step (%[[ONE]])
// UNKNOWN:         omp.loop_nest (%[[I:.*]]) : i64 = (%[[ZERO]]) to (%[[COUNT]]) step (%[[ONE]])
// CHECK:         %[[XBYTES:.*]] = llvm.mlir.constant(64 : i64)
// CHECK:         %[[XOFFSET:.*]] = llvm.mul %[[I]], %[[XBYTES]]
// CHECK:         %[[XPART:.*]] = llvm.getelementptr %[[X]][%[[XOFFSET]]] : (!llvm.ptr, i64) -> !llvm.ptr, i8
// CHECK:         %[[YBYTES:.*]] = llvm.mlir.constant(8 : i64)
// CHECK:         %[[YOFFSET:.*]] = llvm.mul %[[I]], %[[YBYTES]]
// CHECK:         %[[YPART:.*]] = llvm.getelementptr %[[Y]][%[[YOFFSET]]]
// CHECK:         llvm.call @f_part(%[[XPART]], %[[W]], %[[YPART]])
// SERIAL:        %[[NEXT:.*]] = llvm.add %[[I]], %[[ONE]]
// SERIAL:        %[[LAST:.*]] = llvm.icmp "eq" %[[NEXT]], %[[COUNT]]
// SERIAL:        llvm.cond_br %[[LAST]], ^{{.*}}, ^[[LOOP]](%[[NEXT]] : i64)
// CHECK:         llvm.return
llvm.func @f(%x: !llvm.ptr, %w: !llvm.ptr, %y: !llvm.ptr)
    attributes {kas_cpu.batch_parts = #kas_cpu.batch_parts<count = 4, bytes = [64, 0, 8]>, kas_cpu.serial} {
  %0 = llvm.load %x : !llvm.ptr -> f32
  llvm.store %0, %y : f32, !llvm.ptr
  llvm.return
}

// Messages are kept by part, and the first of them is returned.
// CHECK-LABEL: llvm.func internal @g_part(
// CHECK-LABEL: llvm.func @g(
// CHECK:         %[[MESSAGES:.*]] = llvm.alloca %{{.*}} x !llvm.ptr
// CHECK:         %[[MESSAGE:.*]] = llvm.call @g_part(
// CHECK:         %[[PLACE:.*]] = llvm.getelementptr %[[MESSAGES]][%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
// CHECK:         llvm.store %[[MESSAGE]], %[[PLACE]]
// CHECK:         %[[NONE:.*]] = llvm.mlir.zero
// CHECK:         ^[[LOOP:.*]](%[[I:.*]]: i64, %[[LATER:.*]]: !llvm.ptr):
// CHECK:         %[[BACKWARD:.*]] = llvm.sub %{{.*}}, %[[I]]
// CHECK:         %[[PLACE:.*]] = llvm.getelementptr %[[MESSAGES]][%[[BACKWARD]]]
// CHECK:         %[[READ:.*]] = llvm.load %[[PLACE]]
// CHECK:         %[[ISNONE:.*]] = llvm.icmp "eq" %[[READ]], %[[NONE]]
// CHECK:         %[[FIRST:.*]] = llvm.select %[[ISNONE]], %[[LATER]], %[[READ]]
// CHECK:         llvm.cond_br %{{.*}}, ^{{.*}}, ^[[LOOP]](%{{.*}}, %[[FIRST]] : i64, !llvm.ptr)
// CHECK:         llvm.return %[[FIRST]]
llvm.func @g(%x: !llvm.ptr) -> !llvm.ptr
    attributes {kas_cpu.batch_parts = #kas_cpu.batch_parts<count = 2, bytes = [4]>} {
  %none = llvm.mlir.zero : !llvm.ptr
  llvm.return %none : !llvm.ptr
}
