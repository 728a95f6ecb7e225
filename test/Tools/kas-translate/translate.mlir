// RUN: kas-translate --mlir-to-llvmir %s | FileCheck %s
// RUN: kas-translate --mlir-to-llvmir %s | kas-translate --import-llvm | FileCheck %s --check-prefix=BACK
// RUN: not kas-translate --no-such-translation %s 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// CHECK: define float @twice(float
// CHECK: fadd float
// BACK: llvm.func @twice
// UNKNOWN: Unknown command line argument '--no-such-translation'
llvm.func @twice(%x: f32) -> f32 {
  %y = llvm.fadd %x, %x : f32
  llvm.return %y : f32
}
