// Loops of products that are all unrolled are in no loop of one thread alone: no scope of allocations is left around the
// instructions, which the lowering of loops in it could not take.

// RUN: kas-opt %s -kas-cpu-pipeline="cpu=znver5 threads=2 prepack-weights=true share-short-loops=true" | FileCheck %s

// CHECK-LABEL: llvm.func @f(
// CHECK:         omp.parallel
// CHECK:         llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// CHECK-NOT:     memref.alloca_scope

func.func @f(%x: tensor<2x52x6xi8>, %w: tensor<6x38x2x2xi8>) -> tensor<38x26x2xi32> {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<38x26x2xi32>
  %i = linalg.fill ins(%zero : i32) outs(%e : tensor<38x26x2xi32>) -> tensor<38x26x2xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1 * 2 + d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d3, d2, d4, d0)>, affine_map<(d0, d1, d2, d3, d4) -> (d2, d1, d0)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
    ins(%x, %w : tensor<2x52x6xi8>, tensor<6x38x2x2xi8>) outs(%i : tensor<38x26x2xi32>) {
  ^bb0(%a: i8, %b: i8, %o: i32):
    %c = arith.extui %a : i8 to i32
    %d = arith.extsi %b : i8 to i32
    %p = arith.muli %c, %d : i32
    %s = arith.addi %o, %p : i32
    linalg.yield %s : i32
  } -> tensor<38x26x2xi32>
  return %r : tensor<38x26x2xi32>
}
