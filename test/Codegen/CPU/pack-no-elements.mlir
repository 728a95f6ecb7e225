// Sums without a term, or without an element to sum up to, are not packed.
// RUN: kas-opt %s -kas-pack-operators -kas-cpu-pipeline=threads=1 | FileCheck %s

// CHECK: llvm.func @no_columns(
func.func @no_columns(%x: tensor<4294967296x5xf32>, %w: tensor<5x0xf32>) -> tensor<4294967296x0xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4294967296x0xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<4294967296x0xf32>) -> tensor<4294967296x0xf32>
  %r = linalg.matmul ins(%x, %w : tensor<4294967296x5xf32>, tensor<5x0xf32>) outs(%f : tensor<4294967296x0xf32>) -> tensor<4294967296x0xf32>
  return %r : tensor<4294967296x0xf32>
}

// CHECK: llvm.func @no_terms(
func.func @no_terms(%x: tensor<6x0xf32>, %w: tensor<0x8xf32>) -> tensor<6x8xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x8xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  %r = linalg.matmul ins(%x, %w : tensor<6x0xf32>, tensor<0x8xf32>) outs(%f : tensor<6x8xf32>) -> tensor<6x8xf32>
  return %r : tensor<6x8xf32>
}
