// RUN: kas-opt %s -split-input-file -verify-diagnostics -kas-loop-over-batch

// expected-error@below {{expected a function with a body that takes pointers and returns nothing or a pointer, for kas_cpu.batch_parts of '@number' got '!llvm.func<void (i64)>'}}
llvm.func @number(%x: i64) attributes {kas_cpu.batch_parts = #kas_cpu.batch_parts<count = 2, bytes = [4]>} {
  llvm.return
}

// -----

// expected-error@below {{for kas_cpu.batch_parts of '@result' got '!llvm.func<f32 (ptr)>'}}
llvm.func @result(%x: !llvm.ptr) -> f32 attributes {kas_cpu.batch_parts = #kas_cpu.batch_parts<count = 2, bytes = [4]>} {
  %0 = llvm.load %x : !llvm.ptr -> f32
  llvm.return %0 : f32
}

// -----

// expected-error@below {{for kas_cpu.batch_parts of '@declared' got '!llvm.func<void (ptr)>'}}
llvm.func @declared(!llvm.ptr) attributes {kas_cpu.batch_parts = #kas_cpu.batch_parts<count = 2, bytes = [4]>}
