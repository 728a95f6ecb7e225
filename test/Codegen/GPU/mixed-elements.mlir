// RUN: kas-opt %s -kas-gpu-front-half='device=sm_90 elements=f16 strategy=staged' | FileCheck %s
// RUN: kas-opt %s -kas-gpu-front-half='device=sm_90 elements=bf16 precision=bf16 strategy=tensor_core' \
// RUN:   | FileCheck %s --check-prefix=CORES
// RUN: kas-run %s --function=forward --device=emulator:sm_90 --elements=f16 --check=%s --tolerance=1e-3 | FileCheck %s --check-prefix=VALUES
// RUN: kas-run %s --function=forward --device=emulator:sm_90 --elements=bf16 --precision=bf16 --check=%s --tolerance=1e-2 \
// RUN:   | FileCheck %s --check-prefix=VALUES

// A contraction has inputs of 16 bits and sums of 32, which are rounded after the bias is added; vectors are of the
// inputs' type.
// CHECK: gpu.func @{{.*}}memref<5120xf16>{{.*}}memref<10xf16>{{.*}}memref<10xf16>
// CHECK: vector.load {{.*}} : memref<5120xf16>, vector<{{[248]}}xf16>
// CHECK: arith.extf {{.*}} to vector<{{[248]}}xf32>
// CHECK: arith.addf
// CHECK: arith.truncf
// CHECK-NOT: gpu.func
// CORES: gpu.func @{{.*}}memref<5120xbf16>{{.*}}memref<10xbf16>{{.*}}memref<10xbf16>
// CORES-NOT: vector.load {{.*}} : memref<{{[0-9]+}}xf32>,
// VALUES: ok

#matrix = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
func.func @forward(%x: tensor<1x512xf32>, %w: tensor<512x10xf32>, %b: tensor<10xf32>) -> tensor<1x10xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x10xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x10xf32>) -> tensor<1x10xf32>
  %sums = linalg.matmul ins(%x, %w : tensor<1x512xf32>, tensor<512x10xf32>) outs(%zeros : tensor<1x10xf32>)
    -> tensor<1x10xf32>
  %y = linalg.generic {indexing_maps = [#matrix, #row, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%sums, %b : tensor<1x10xf32>, tensor<10xf32>) outs(%empty : tensor<1x10xf32>) {
    ^bb0(%sum: f32, %bias: f32, %out: f32):
      %all = arith.addf %sum, %bias : f32
      linalg.yield %all : f32
  } -> tensor<1x10xf32>
  return %y : tensor<1x10xf32>
}
