// RUN: kas-opt %s -split-input-file -kas-dispatch-batch=threads=1 | FileCheck %s --check-prefixes=CHECK,SERIAL
// RUN: kas-opt %s -split-input-file -kas-dispatch-batch=threads=2 | FileCheck %s --check-prefixes=CHECK,PARALLEL

// Versions by the number of samples: 1: once that for one sample; 2: that for two; 3: two, and one is left; 4: twice that for two.
// CHECK:       llvm.mlir.global internal constant @f_batch_plan(dense<{{\[\[1, 1\], \[0, 1\], \[0, 1\], \[0, 2\]\]}}>
// CHECK:       llvm.mlir.global internal constant @f_batch_message("requires a batch of at least 0 samples\00")
// CHECK-LABEL: llvm.func internal @f_batch2(
// CHECK-SAME:    attributes {sym_visibility = "private"}
// CHECK-LABEL: llvm.func internal @f_batch1(
// CHECK-LABEL: llvm.func @f(
// CHECK-SAME:    %[[X:.*]]: !llvm.ptr, %[[W:.*]]: !llvm.ptr, %[[Y:.*]]: !llvm.ptr, %[[SAMPLES:.*]]: i64) -> !llvm.ptr
// CHECK:         %[[MESSAGES:.*]] = llvm.alloca
// CHECK:         %[[NEGATIVE:.*]] = llvm.icmp "slt" %[[SAMPLES]], %{{.*}}
// CHECK:         llvm.cond_br %[[NEGATIVE]], ^[[REFUSE:.*]], ^[[LOOP:.*]](%[[SAMPLES]], %{{.*}} : i64, i64)
// CHECK:       ^[[REFUSE]]:
// CHECK:         %[[MESSAGE:.*]] = llvm.mlir.addressof @f_batch_message
// CHECK:         llvm.return %[[MESSAGE]]
// CHECK:       ^[[LOOP]](%[[LEFT:.*]]: i64, %[[DONE:.*]]: i64):
// CHECK:         %[[NOTHING:.*]] = llvm.icmp "eq" %[[LEFT]]
// CHECK:         llvm.cond_br %[[NOTHING]], ^[[FINISH:.*]](%{{.*}} : !llvm.ptr), ^[[CHOOSE:.*]]
// CHECK:       ^[[CHOOSE]]:
// CHECK:         %[[MOST:.*]] = llvm.mlir.constant(4 : i64)
// CHECK:         %[[ROW:.*]] = llvm.intr.smin(%[[LEFT]], %[[MOST]])
// CHECK:         llvm.switch %{{.*}} : i32, ^[[TWO:.*]](%[[COUNT:.*]] : i64) [
// CHECK-NEXT:      1: ^[[ONE:.*]](%[[COUNT]] : i64)
// CHECK:       ^[[TWO]](%[[TWOS:.*]]: i64):
// CHECK:         %[[BYTES:.*]] = llvm.mlir.constant(32 : i64)
// CHECK:         %[[OFFSET:.*]] = llvm.mul %[[DONE]], %[[BYTES]]
// CHECK:         %[[PART:.*]] = llvm.getelementptr %[[X]][%[[OFFSET]]] : (!llvm.ptr, i64) -> !llvm.ptr, i8
// PARALLEL:      omp.parallel
// SERIAL-NOT:    omp.parallel
// CHECK:         llvm.call @f_batch2(%{{.*}}, %[[W]], %{{.*}}) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> !llvm.ptr
// CHECK:       ^[[ONE]](%{{.*}}: i64):
// CHECK-NOT:     omp.parallel
// CHECK:         llvm.call @f_batch1(
// CHECK:       ^[[FINISH]](%[[RESULT:.*]]: !llvm.ptr):
// CHECK:         llvm.return %[[RESULT]]
llvm.func @f_batch2(%x: !llvm.ptr, %w: !llvm.ptr, %y: !llvm.ptr) -> !llvm.ptr
    attributes {kas_cpu.batch_version = #kas_cpu.batch_version<of = "f", samples = 2, most = 4, cycles = 150000, bytes = [64, 0, 8]>, kas_cpu.serial} {
  %none = llvm.mlir.zero : !llvm.ptr
  llvm.return %none : !llvm.ptr
}
llvm.func @f_batch1(%x: !llvm.ptr, %w: !llvm.ptr, %y: !llvm.ptr) -> !llvm.ptr
    attributes {kas_cpu.batch_version = #kas_cpu.batch_version<of = "f", samples = 1, most = 4, cycles = 100000, bytes = [32, 0, 4]>} {
  %none = llvm.mlir.zero : !llvm.ptr
  llvm.return %none : !llvm.ptr
}

// -----

// A single version is called without a choice.
// CHECK-LABEL: llvm.func @h(
// CHECK-NOT:     llvm.switch
// CHECK:         %[[COUNT:.*]] = llvm.sext
// CHECK-NEXT:    llvm.br ^{{.*}}(%[[COUNT]] : i64)
// CHECK:         llvm.call @h_batch1(
llvm.func @h_batch1(%x: !llvm.ptr, %y: !llvm.ptr) -> !llvm.ptr
    attributes {kas_cpu.batch_version = #kas_cpu.batch_version<of = "h", samples = 1, most = 2, cycles = 1, bytes = [32, 4]>, kas_cpu.serial} {
  %none = llvm.mlir.zero : !llvm.ptr
  llvm.return %none : !llvm.ptr
}

// -----

// The weights of all versions are prepacked together, each at a line of the cache.
// CHECK-LABEL: llvm.func internal @g_batch1_prepack(
// CHECK-NOT:   g_batch1_prepacked_elements
// CHECK-LABEL: llvm.func internal @g_batch1(
// CHECK-LABEL: llvm.func @g_prepacked_elements() -> i64
// CHECK:         llvm.mlir.constant(36 : i64)
// CHECK-LABEL: llvm.func @g_prepack(
// CHECK-SAME:    %[[W:.*]]: !llvm.ptr, %[[ALL:.*]]: !llvm.ptr) -> !llvm.ptr
// CHECK:         %[[FIRST:.*]] = llvm.getelementptr %[[ALL]]
// CHECK:         %[[MESSAGE:.*]] = llvm.call @g_batch2_prepack(%[[W]], %[[FIRST]])
// CHECK:         %[[FINE:.*]] = llvm.icmp "eq" %[[MESSAGE]]
// CHECK:         llvm.cond_br %[[FINE]]
// CHECK:         %[[BYTES:.*]] = llvm.mlir.constant(128 : i64)
// CHECK:         %[[SECOND:.*]] = llvm.getelementptr %[[ALL]][%[[BYTES]]]
// CHECK:         llvm.call @g_batch1_prepack(%[[W]], %[[SECOND]])
// CHECK-LABEL: llvm.func @g(
// CHECK-SAME:    %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %[[PACKED:.*]]: !llvm.ptr, %{{.*}}: i64)
// CHECK:         %[[OFFSET:.*]] = llvm.mlir.constant(128 : i64)
// CHECK:         llvm.getelementptr %[[PACKED]][%[[OFFSET]]]
llvm.func @g_batch2_prepack(%w: !llvm.ptr, %packed: !llvm.ptr) -> !llvm.ptr {
  %none = llvm.mlir.zero : !llvm.ptr
  llvm.return %none : !llvm.ptr
}
llvm.func @g_batch2_prepacked_elements() -> i64 {
  %n = llvm.mlir.constant(20 : i64) : i64
  llvm.return %n : i64
}
llvm.func @g_batch2(%x: !llvm.ptr, %w: !llvm.ptr, %y: !llvm.ptr, %packed: !llvm.ptr) -> !llvm.ptr
    attributes {kas_cpu.batch_version = #kas_cpu.batch_version<of = "g", samples = 2, most = 2, cycles = 150000, bytes = [64, 0, 8]>, kas_cpu.serial} {
  %none = llvm.mlir.zero : !llvm.ptr
  llvm.return %none : !llvm.ptr
}
llvm.func @g_batch1_prepack(%w: !llvm.ptr, %packed: !llvm.ptr) -> !llvm.ptr {
  %none = llvm.mlir.zero : !llvm.ptr
  llvm.return %none : !llvm.ptr
}
llvm.func @g_batch1_prepacked_elements() -> i64 {
  %n = llvm.mlir.constant(4 : i64) : i64
  llvm.return %n : i64
}
llvm.func @g_batch1(%x: !llvm.ptr, %w: !llvm.ptr, %y: !llvm.ptr, %packed: !llvm.ptr) -> !llvm.ptr
    attributes {kas_cpu.batch_version = #kas_cpu.batch_version<of = "g", samples = 1, most = 2, cycles = 100000, bytes = [32, 0, 4]>, kas_cpu.serial} {
  %none = llvm.mlir.zero : !llvm.ptr
  llvm.return %none : !llvm.ptr
}
