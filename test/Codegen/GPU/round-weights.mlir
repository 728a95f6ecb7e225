// Factors that depend on weights alone are rounded by kernels of their own, once for all calls.
// RUN: kas-opt %s -kas-gpu-form-kernels -kas-gpu-schedule='device=sm_90 precision=f16 strategy=tensor_core' -kas-gpu-round-weights | FileCheck %s --check-prefixes=CHECK,F16
// RUN: kas-opt %s -kas-gpu-form-kernels -kas-gpu-schedule='device=sm_90 precision=tf32 strategy=tensor_core' -kas-gpu-round-weights | FileCheck %s --check-prefixes=CHECK,TF32
// Other kernels round nothing.
// RUN: kas-opt %s -kas-gpu-form-kernels -kas-gpu-schedule='device=sm_90 precision=tf32 strategy=staged' -kas-gpu-round-weights | FileCheck %s --check-prefix=NONE
// NONE-NOT: arith.bitcast
// NONE-NOT: kas_gpu.rounded
// Of six launches two round.
// RUN: kas-opt %s -kas-gpu-front-half='device=sm_90 precision=bf16 strategy=tensor_core' | FileCheck %s --check-prefix=LAUNCHES
// LAUNCHES: func.func @forward
// LAUNCHES-SAME: kas_gpu.num_prepack_launches = 2 : i64
// LAUNCHES-COUNT-6: gpu.launch_func
// LAUNCHES-NOT: gpu.launch_func

// Values are those of kernels that round what they read.
// DEFINE: %{run} = kas-run %s --function=forward --args=5 --check=%s
// RUN: %{run} --device=emulator:sm_90 --precision=f16 --tolerance=1e-2 | FileCheck %s --check-prefix=VALUES
// RUN: %{run} --device=emulator:sm_90 --precision=bf16 --tolerance=4e-2 | FileCheck %s --check-prefix=VALUES
// RUN: %{run} --device=emulator:sm_80 --precision=tf32 --tolerance=2e-3 | FileCheck %s --check-prefix=VALUES
// VALUES: ok

// CHECK-LABEL: func.func @forward
// CHECK-SAME: (%[[X:.*]]: tensor<64x32xf32>, %[[V:.*]]: tensor<48x32xf32>, %[[W:.*]]: tensor<48x48xf32>, %[[D:.*]]: tensor<48x48xf32>
// One tensor for both readers, through a view.
// F16: %[[RV:.*]] = linalg.generic {{.*}} ins(%[[V]] : tensor<48x32xf32>) outs(%{{.*}} : tensor<48x32xf16>)
// F16: arith.truncf %{{.*}} : f32 to f16
// TF32: %[[RV:.*]] = linalg.generic {{.*}} ins(%[[V]] : tensor<48x32xf32>) outs(%{{.*}} : tensor<48x32xf32>)
// TF32: arith.addi %{{.*}}, %c4096
// TF32: arith.andi %{{.*}}, %c-8192
// CHECK-NOT: ins(%[[V]]
// What computes a factor for one reader rounds it.
// F16: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[W]] : tensor<48x48xf32>) outs(%{{.*}} : tensor<48x48xf16>)
// F16: arith.addf
// F16: arith.truncf
// TF32: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[W]] : tensor<48x48xf32>) outs(%{{.*}} : tensor<48x48xf32>)
// TF32: arith.addf
// TF32: arith.bitcast
// F16: linalg.generic {{.*}} ins(%[[X]], %{{.*}} : tensor<64x32xf32>, tensor<32x48xf16>)
// TF32: linalg.generic {{.*}} ins(%[[X]], %{{.*}} : tensor<64x32xf32>, tensor<32x48xf32>)
// TF32-SAME: kas_gpu.rounded = array<i64: 1>
// F16: linalg.generic {{.*}} ins(%{{.*}}, %[[SUM]] : tensor<64x48xf32>, tensor<48x48xf16>)
// TF32: linalg.generic {{.*}} ins(%{{.*}}, %[[SUM]] : tensor<64x48xf32>, tensor<48x48xf32>)
// TF32-SAME: kas_gpu.rounded = array<i64: 1>
// Data is rounded by the kernel.
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[D]] : tensor<64x48xf32>, tensor<48x48xf32>)
// CHECK-NOT: kas_gpu.rounded
// CHECK: ^bb0

#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @forward(%x: tensor<64x32xf32>, %v: tensor<48x32xf32>, %w: tensor<48x48xf32>, %d: tensor<48x48xf32> {kas.data},
                   %k: tensor<64x32xf32> {kas.data}) -> (tensor<64x48xf32>, tensor<64x48xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x48xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<64x48xf32>) -> tensor<64x48xf32>
  %et = tensor.empty() : tensor<32x48xf32>
  %vt = linalg.transpose ins(%v : tensor<48x32xf32>) outs(%et : tensor<32x48xf32>) permutation = [1, 0]
  %es = tensor.empty() : tensor<48x48xf32>
  %sum = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<48x48xf32>) outs(%es : tensor<48x48xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<48x48xf32>
  %1 = linalg.matmul ins(%x, %vt : tensor<64x32xf32>, tensor<32x48xf32>) outs(%zeros : tensor<64x48xf32>) -> tensor<64x48xf32>
  %2 = linalg.matmul ins(%1, %sum : tensor<64x48xf32>, tensor<48x48xf32>) outs(%zeros : tensor<64x48xf32>) -> tensor<64x48xf32>
  %3 = linalg.matmul ins(%2, %d : tensor<64x48xf32>, tensor<48x48xf32>) outs(%zeros : tensor<64x48xf32>) -> tensor<64x48xf32>
  %4 = linalg.matmul ins(%k, %vt : tensor<64x32xf32>, tensor<32x48xf32>) outs(%zeros : tensor<64x48xf32>) -> tensor<64x48xf32>
  return %3, %4 : tensor<64x48xf32>, tensor<64x48xf32>
}
