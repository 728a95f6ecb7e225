// RUN: kas-opt %s -kas-cpu-pipeline='threads=2 share-short-loops=true' | FileCheck %s --check-prefixes=CHECK,PARALLEL
// RUN: kas-opt %s -kas-cpu-pipeline=threads=1 | FileCheck %s --check-prefixes=CHECK,SERIAL
// Sooner done by one thread than shared.
// RUN: kas-opt %s -kas-cpu-pipeline=threads=2 | FileCheck %s --check-prefixes=CHECK,SERIAL

// Plain pointers: two arguments, one result.
// CHECK-LABEL: llvm.func @matmul
// CHECK-SAME:    (%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr)
// PARALLEL:      omp.parallel num_threads(%{{.*}} : i32)
// SERIAL-NOT:    omp.
// CHECK-NOT:     unrealized_conversion_cast
// CHECK:         llvm.return
func.func @matmul(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<64x64xf32>, tensor<64x64xf32>)
      outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
