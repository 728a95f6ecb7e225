// RUN: kas-opt %s -pass-pipeline='builtin.module(kas-gpu-outline,gpu.module(gpu.func(canonicalize,cse)))' | FileCheck %s

// Rows: 20 outputs in blocks of 16; columns: 40 in blocks of 32; 24 steps in three blocks of 8.

#device = #kas_gpu.device<name = "any", processors = 1, max_threads = 64, shared_bytes = 4096, max_blocks = 8,
  max_bytes = 16384, processor_threads = 64, processor_shared_bytes = 4096, registers = 1024, thread_registers = 64,
  subgroup = 32>

module attributes {kas_gpu.device = #device} {
kas.operator @pointwise(%o: 20, %h: 40) from [24, 40] {
  %c = kas.reduce sum : 24
  %d, %w = kas.share %c : 24
  kas.yield data(%d, %h) weight(%o, %w)
}

func.func @layer(%x: tensor<24x40xf32>, %w: tensor<20x24xf32>) -> tensor<20x40xf32> {
  %y = kas.apply @pointwise(%x, %w)
    {kas_gpu.schedule = #kas_gpu.schedule<strategy = staged, threads = 32, tile = [4, 4], block = [16, 32], depth = 8,
                                          padding = 4, stages = 2>}
    : (tensor<24x40xf32>, tensor<20x24xf32>) -> tensor<20x40xf32>
  return %y : tensor<20x40xf32>
}

// Lines of workgroup memory are padded; two halves of it take turns.
// CHECK: gpu.func @layer_0
// CHECK-SAME: workgroup(%[[A:.*]] : memref<320xf32, #gpu.address_space<workgroup>>, %[[B:.*]] : memref<576xf32, #gpu.address_space<workgroup>>)
// CHECK-SAME: known_grid_size = array<i32: 4, 1, 1>
// Steps are neighbours in the weight: four are loaded at once, and stored to lines of their own. Columns are in the data.
// CHECK: vector.load %arg1[%{{.*}}] {alignment = 16 : i64} : memref<480xf32>, vector<4xf32>
// CHECK: vector.load %arg0[%{{.*}}] {alignment = 16 : i64} : memref<960xf32>, vector<4xf32>
// CHECK-COUNT-4: memref.store %{{.*}}, %[[A]]
// CHECK: vector.store %{{.*}}, %[[B]][%{{.*}}] {alignment = 16 : i64}
// CHECK: gpu.barrier
// One barrier for each block of steps; loads are before the products, stores after them.
// CHECK: scf.for
// CHECK: vector.load %arg
// CHECK: scf.for
// CHECK: vector.load %[[A]]{{.*}} vector<4xf32>
// CHECK: vector.load %[[B]]{{.*}} vector<4xf32>
// CHECK-COUNT-4: math.fma %{{.*}} : vector<4xf32>
// CHECK: vector.store %{{.*}}, %[[B]]
// CHECK: gpu.barrier
// CHECK-NOT: gpu.barrier
// The last block, then what is inside of the output.
// CHECK: scf.for
// CHECK-COUNT-4: math.fma
// CHECK: scf.if
// CHECK: vector.store %{{.*}}, %arg2[%{{.*}}] {alignment = 16 : i64} : memref<800xf32>, vector<4xf32>
}
