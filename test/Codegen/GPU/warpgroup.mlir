// RUN: kas-opt %s -split-input-file -pass-pipeline='builtin.module(kas-gpu-outline,gpu.module(gpu.func(canonicalize,cse)))' | FileCheck %s
// RUN: kas-opt %s -split-input-file -pass-pipeline='builtin.module(kas-gpu-outline,gpu.module(gpu.func(canonicalize,cse)),kas-gpu-to-cpu-loops)' | FileCheck %s --check-prefix=CPU

#device = #kas_gpu.device<name = "sm_90a", processors = 1, max_threads = 256, shared_bytes = 49152, max_blocks = 64,
  max_bytes = 65536, processor_threads = 2048, processor_shared_bytes = 233472, registers = 65536, thread_registers = 255,
  subgroup = 32>

module attributes {kas_gpu.device = #device} {
kas.operator @product(%m: 96, %n: 136) from [96, 200] {
  %k = kas.reduce sum : 200
  %d, %w = kas.share %k : 200
  kas.yield data(%m, %d) weight(%w, %n)
}

func.func @layer(%x: tensor<96x200xf16>, %w: tensor<200x136xf16>) -> tensor<96x136xf16> {
  %y = kas.apply @product(%x, %w)
    {kas_gpu.schedule = #kas_gpu.schedule<strategy = warpgroup, threads = 128, tile = [64, 128], block = [64, 128],
                                          depth = 64, stages = 3, precision = f16>}
    : (tensor<96x200xf16>, tensor<200x136xf16>) -> tensor<96x136xf16>
  return %y : tensor<96x136xf16>
}

// Steps are neighbours in the data, columns in the weight: a box of 64 rows and two of 64 columns for each block of
// steps.
// CHECK-LABEL: gpu.func @layer_0
// CHECK-SAME: workgroup(%[[B:.*]] : memref<3xi64, #gpu.address_space<workgroup>>)
// CHECK-SAME: kas_gpu.dynamic_bytes = 73728
// CHECK-SAME: known_grid_size = array<i32: 4, 1, 1>
// CHECK: %[[ROWS:.*]] = memref.view {{.*}} to memref<12288xf16
// CHECK: %[[COLUMNS:.*]] = memref.view {{.*}} to memref<24576xf16
// One thread makes the barriers and asks for two blocks of steps.
// CHECK: scf.if
// CHECK: kas_gpu.init_barriers %[[B]]
// CHECK: kas_gpu.expect_bytes %[[B]][%{{.*}}], 24576
// CHECK: kas_gpu.tensor_copy %arg0{{.*}} to %[[ROWS]]{{.*}} {map = #kas_gpu.tensor_map<sizes = [200, 96], strides = [200], box = [64, 64]>}
// CHECK: kas_gpu.tensor_copy %arg1{{.*}} to %[[COLUMNS]]{{.*}} {map = #kas_gpu.tensor_map<sizes = [136, 200], strides = [136], box = [64, 64]>}
// CHECK: kas_gpu.tensor_copy %arg1{{.*}} to %[[COLUMNS]]
// CHECK: kas_gpu.expect_bytes
// CHECK-COUNT-3: kas_gpu.tensor_copy
// CHECK: gpu.barrier
// 200 steps are four blocks, the last one with zeros.
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c4
// CHECK: kas_gpu.await_phase %[[B]]
// CHECK: kas_gpu.matrix_descriptor %[[ROWS]]{{.*}}, leading = 16, stride = 1024
// CHECK: kas_gpu.matrix_descriptor %[[COLUMNS]]{{.*}}, leading = 8192, stride = 1024
// CHECK: kas_gpu.warpgroup_fence
// CHECK-COUNT-4: kas_gpu.warpgroup_mma {{.*}} {transpose_columns}
// CHECK: kas_gpu.warpgroup_commit
// The products of the last block still run when its buffer's predecessor is filled again.
// CHECK: kas_gpu.warpgroup_wait 1,
// CHECK-NEXT: gpu.barrier
// CHECK: scf.if
// CHECK: kas_gpu.expect_bytes
// CHECK-COUNT-3: kas_gpu.tensor_copy
// CHECK: scf.yield
// CHECK: kas_gpu.warpgroup_wait 0,
// Results go to where the matrices were, once all warpgroups are done, and are stored as 16 bytes.
// CHECK: gpu.barrier
// CHECK-COUNT-8: kas_gpu.store_matrix %{{.*}} to %[[RESULTS:.*]][{{.*}} vector<4x2xf16>, memref<8704xf16
// CHECK: gpu.barrier
// CHECK: vector.load %[[RESULTS]]{{.*}} vector<8xf16>
// CHECK: vector.store %{{.*}}, %arg2{{.*}} {alignment = 16 : i64} : memref<13056xf16>, vector<8xf16>
// CHECK-NOT: memref.store

// Threads one after another: descriptors are decoded, and waiting for what is not on its way is an error.
// CPU: func private @kas_wgmma_f16_plain_transposed_n128_128_12288_128_24576_128_128
// CPU-LABEL: func private @layer_0
// CPU-NOT: kas_gpu.{{tensor_copy|warpgroup}}
// CPU: cf.assert
// CPU: call @kas_wgmma_f16
}
