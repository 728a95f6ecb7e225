// RUN: kas-opt %s -split-input-file -verify-diagnostics -kas-dispatch-batch

// expected-error@below {{expected a function with a body that takes pointers and returns nothing or a pointer, for kas_cpu.batch_version of '@number' got '!llvm.func<void (i64)>'}}
llvm.func @number(%x: i64) attributes {kas_cpu.batch_version = #kas_cpu.batch_version<of = "f", samples = 1, most = 4, cycles = 1, bytes = [4]>} {
  llvm.return
}

// -----

// expected-error@below {{expected a version of '@f' for 1 sample, got none}}
llvm.func @f2(%x: !llvm.ptr) attributes {kas_cpu.batch_version = #kas_cpu.batch_version<of = "f", samples = 2, most = 4, cycles = 1, bytes = [8]>} {
  llvm.return
}

// -----

llvm.func @f1(%x: !llvm.ptr) attributes {kas_cpu.batch_version = #kas_cpu.batch_version<of = "f", samples = 1, most = 4, cycles = 1, bytes = [4]>} {
  llvm.return
}
// expected-error@below {{expected versions of '@f' for as many samples, with as many pointers, got '@f2'}}
llvm.func @f2(%x: !llvm.ptr) attributes {kas_cpu.batch_version = #kas_cpu.batch_version<of = "f", samples = 2, most = 8, cycles = 1, bytes = [8]>} {
  llvm.return
}

// -----

// expected-error@below {{expected no other '@f' than its versions, got one}}
llvm.func @f1(%x: !llvm.ptr) attributes {kas_cpu.batch_version = #kas_cpu.batch_version<of = "f", samples = 1, most = 4, cycles = 1, bytes = [4]>} {
  llvm.return
}
llvm.func @f()

// -----

// expected-error@below {{expected a function that fills the last argument of '@f1', got none}}
llvm.func @f1(%x: !llvm.ptr, %packed: !llvm.ptr) attributes {kas_cpu.batch_version = #kas_cpu.batch_version<of = "f", samples = 1, most = 4, cycles = 1, bytes = [4]>} {
  llvm.return
}
