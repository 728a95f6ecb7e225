// RUN: kas-opt %s -kas-cpu-pipeline='threads=1 cpu=x86-64-v3' | FileCheck %s --check-prefix=TILES
// RUN: kas-opt %s -kas-cpu-pipeline='threads=1 cpu=x86-64-v3 register-tiles=false' | FileCheck %s --check-prefix=LOOPS

// Plain loops have no vectors: LLVM may make some.

// TILES: llvm.intr.fmuladd{{.*}}vector<8xf32>
// LOOPS-LABEL: llvm.func @forward
// LOOPS-NOT: vector<
func.func @forward(%x: tensor<16x32xf32>, %w: tensor<32x64xf32>) -> tensor<16x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x64xf32>) -> tensor<16x64xf32>
  %y = linalg.matmul ins(%x, %w : tensor<16x32xf32>, tensor<32x64xf32>) outs(%init : tensor<16x64xf32>) -> tensor<16x64xf32>
  return %y : tensor<16x64xf32>
}
