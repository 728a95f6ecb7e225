// RUN: kas-opt %s -split-input-file -pass-pipeline='builtin.module(kas-gpu-outline,gpu.module(gpu.func(canonicalize,cse)))' | FileCheck %s

#device = #kas_gpu.device<name = "sm_80", processors = 1, max_threads = 64, shared_bytes = 49152, max_blocks = 64,
  max_bytes = 65536, processor_threads = 64, processor_shared_bytes = 49152, registers = 1024, thread_registers = 64,
  subgroup = 32>

module attributes {kas_gpu.device = #device} {
kas.operator @product(%m: 40, %n: 48) from [40, 96] {
  %k = kas.reduce sum : 96
  %d, %w = kas.share %k : 96
  kas.yield data(%m, %d) weight(%w, %n)
}

func.func @layer(%x: tensor<40x96xf16>, %w: tensor<96x48xf16>) -> tensor<40x48xf16> {
  %y = kas.apply @product(%x, %w)
    {kas_gpu.schedule = #kas_gpu.schedule<strategy = tensor_core, threads = 32, tile = [16, 32], block = [16, 32],
                                          depth = 16, padding = 8, stages = 3, precision = f16>}
    : (tensor<40x96xf16>, tensor<96x48xf16>) -> tensor<40x48xf16>
  return %y : tensor<40x48xf16>
}

// Steps are neighbours in the data, columns in the weight: 16 lines of 16 + 8 steps, 16 lines of 32 + 8 columns, each
// three times.
// CHECK-LABEL: gpu.func @layer_0
// CHECK-SAME: workgroup(%[[M:.*]] : memref<6144xi8, #gpu.address_space<workgroup>>)
// CHECK-SAME: known_grid_size = array<i32: 6, 1, 1>
// CHECK: %[[A:.*]] = memref.view %[[M]][%c0][] {{.*}} to memref<1152xf16
// CHECK: %[[B:.*]] = memref.view %[[M]][%c2304][] {{.*}} to memref<1920xf16
// CHECK: %[[RESULTS:.*]] = memref.view %[[M]][%c0][] {{.*}} to memref<640xf16
// Two groups of copies ahead; what is beyond the last of 40 rows is filled with zeros.
// CHECK: nvgpu.device_async_copy %{{.*}}, %[[A]][%{{.*}}], 8, %{{.*}} {bypassL1}
// CHECK: nvgpu.device_async_copy %{{.*}}, %[[B]]
// CHECK: nvgpu.device_async_create_group
// CHECK: nvgpu.device_async_copy
// CHECK: %[[LAST:.*]] = nvgpu.device_async_create_group
// CHECK: scf.for
// All but the last group are there: one barrier for each block of steps.
// CHECK: nvgpu.device_async_wait %[[LAST]] {numGroups = 1 : i32}
// CHECK-NEXT: gpu.barrier
// CHECK: nvgpu.device_async_copy
// CHECK: nvgpu.device_async_create_group
// CHECK: nvgpu.ldmatrix %[[A]]{{.*}} {numTiles = 4 : i32, transpose = false}
// CHECK: nvgpu.ldmatrix %[[B]]{{.*}} {numTiles = 4 : i32, transpose = true}
// CHECK: nvgpu.ldmatrix %[[B]]{{.*}} {numTiles = 4 : i32, transpose = true}
// CHECK-COUNT-4: nvgpu.mma.sync{{.*}} {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>)
// CHECK-NOT: gpu.barrier
// CHECK: scf.yield
// Results go to where the matrices were, and are stored as 16 bytes; of the last block, 8 rows.
// CHECK: gpu.barrier
// CHECK-COUNT-8: vector.store %{{.*}}, %[[RESULTS]]{{.*}} vector<2xf16>
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK: vector.load %[[RESULTS]]{{.*}} vector<8xf16>
// CHECK: vector.store %{{.*}}, %arg2{{.*}} {alignment = 16 : i64} : memref<1920xf16>, vector<8xf16>
// CHECK-NOT: memref.store
}

// -----

#device = #kas_gpu.device<name = "sm_80", processors = 1, max_threads = 64, shared_bytes = 49152, max_blocks = 64,
  max_bytes = 65536, processor_threads = 64, processor_shared_bytes = 49152, registers = 1024, thread_registers = 64,
  subgroup = 32>

module attributes {kas_gpu.device = #device} {
// Windows are not at multiples of 16 bytes, and end at the border: elements go through registers, one by one.
kas.operator @conv(%o: 16, %w: 24) from [16, 24] {
  %c = kas.reduce sum : 16
  %j = kas.reduce sum : 3
  %c_d, %c_w = kas.share %c : 16
  %j_d, %j_w = kas.share %j : 3
  %x = kas.unfold %w, %j_d : 24, 3
  kas.yield data(%c_d, %x) weight(%o, %j_w, %c_w)
}

func.func @layer(%x: tensor<16x24xf32>, %w: tensor<16x3x16xf32>) -> tensor<16x24xf32> {
  %y = kas.apply @conv(%x, %w)
    {kas_gpu.schedule = #kas_gpu.schedule<strategy = tensor_core, threads = 32, tile = [16, 16], block = [16, 16],
                                          depth = 16, padding = 4, stages = 2, precision = tf32>}
    : (tensor<16x24xf32>, tensor<16x3x16xf32>) -> tensor<16x24xf32>
  return %y : tensor<16x24xf32>
}

// A thread collects four steps of a column: one guard for all of them.
// CHECK-LABEL: gpu.func @layer_0
// CHECK-SAME: workgroup(%[[M:.*]] : memref<5120xi8, #gpu.address_space<workgroup>>)
// CHECK: %[[A:.*]] = memref.view %[[M]][%c0][] {{.*}} to memref<640xf32
// CHECK: %[[B:.*]] = memref.view %[[M]][%c2560][] {{.*}} to memref<640xf32
// CHECK: scf.for
// CHECK: nvgpu.device_async_wait %{{.*}} {numGroups = 0 : i32}
// CHECK: nvgpu.device_async_copy %{{.*}}, %[[A]]
// CHECK: %[[EXISTS:.*]] = arith.cmpi ult
// CHECK-COUNT-4: memref.load %arg0
// CHECK: nvgpu.ldmatrix %[[A]]{{.*}} vector<4x1xf32>
// CHECK: nvgpu.ldmatrix %[[B]]{{.*}} vector<4x1xf32>
// CHECK: nvgpu.mma.sync{{.*}} {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>)
// CHECK: vector.store %{{.*}}, %[[B]]{{.*}} {alignment = 16 : i64}
// CHECK: scf.yield
// Two neighbours of 32 bits are stored at once, from fragments: they fill sectors.
// CHECK: vector.store %{{.*}}, %arg2{{.*}} {alignment = 8 : i64} : memref<384xf32>, vector<2xf32>
}

// -----

#device = #kas_gpu.device<name = "sm_80", processors = 1, max_threads = 64, shared_bytes = 49152, max_blocks = 64,
  max_bytes = 65536, processor_threads = 64, processor_shared_bytes = 49152, registers = 1024, thread_registers = 64,
  subgroup = 32>

module attributes {kas_gpu.device = #device} {
// ldmatrix exchanges halves of numbers of 32 bits, so lines of columns in tf32 are read one by one; they are padded
// twice, as lanes read four lines of eight.
kas.operator @product(%m: 16, %n: 16) from [16, 32] {
  %k = kas.reduce sum : 32
  %d, %w = kas.share %k : 32
  kas.yield data(%m, %d) weight(%w, %n)
}

func.func @layer(%x: tensor<16x32xf32>, %w: tensor<32x16xf32>) -> tensor<16x16xf32> {
  %y = kas.apply @product(%x, %w)
    {kas_gpu.schedule = #kas_gpu.schedule<strategy = tensor_core, threads = 32, tile = [16, 16], block = [16, 16],
                                          depth = 16, padding = 4, stages = 2, precision = tf32>}
    : (tensor<16x32xf32>, tensor<32x16xf32>) -> tensor<16x16xf32>
  return %y : tensor<16x16xf32>
}

// CHECK-LABEL: gpu.func @layer_0
// CHECK-SAME: workgroup(%[[M:.*]] : memref<5632xi8, #gpu.address_space<workgroup>>)
// CHECK: %[[A:.*]] = memref.view %[[M]][%c0][] {{.*}} to memref<640xf32
// CHECK: %[[B:.*]] = memref.view %[[M]][%c2560][] {{.*}} to memref<768xf32
// CHECK: scf.for
// CHECK: nvgpu.ldmatrix %[[A]]
// CHECK-COUNT-4: memref.load %[[B]]
// CHECK: nvgpu.mma.sync
}

// -----

#device = #kas_gpu.device<name = "sm_90", processors = 1, max_threads = 128, shared_bytes = 49152, max_blocks = 64,
  max_bytes = 65536, processor_threads = 128, processor_shared_bytes = 49152, registers = 1024, thread_registers = 64,
  subgroup = 32>

module attributes {kas_gpu.device = #device} {
// Of an image of 6x10, four neighbours are the most at multiples of as many, across its rows: 60 is no multiple of eight.
// Warps have 64 rows, of which the memory of the matrices holds 32 at a time.
kas.operator @conv1x1(%o: 64, %h: 6, %w: 10) from [16, 6, 10] {
  %c = kas.reduce sum : 16
  %c_d, %c_w = kas.share %c : 16
  kas.yield data(%c_d, %h, %w) weight(%o, %c_w)
}

func.func @layer(%x: tensor<16x6x10xbf16>, %w: tensor<64x16xbf16>) -> tensor<64x6x10xbf16> {
  %y = kas.apply @conv1x1(%x, %w)
    {kas_gpu.schedule = #kas_gpu.schedule<strategy = tensor_core, threads = 128, tile = [64, 64], block = [128, 128],
                                          depth = 16, padding = 8, stages = 2, precision = bf16>}
    : (tensor<16x6x10xbf16>, tensor<64x16xbf16>) -> tensor<64x6x10xbf16>
  return %y : tensor<64x6x10xbf16>
}

// CHECK-LABEL: gpu.func @layer_0
// CHECK: %[[RESULTS:.*]] = memref.view {{.*}} to memref<8704xbf16
// CHECK: gpu.barrier
// CHECK-COUNT-8: kas_gpu.store_matrix %{{.*}} to %[[RESULTS]]{{.*}} vector<4x2xbf16>
// CHECK-NEXT: gpu.barrier
// CHECK: vector.load %[[RESULTS]]{{.*}} vector<4xbf16>
// CHECK: vector.store %{{.*}}, %arg2{{.*}} {alignment = 8 : i64}
// CHECK: gpu.barrier
// CHECK-COUNT-8: kas_gpu.store_matrix
// CHECK-NEXT: gpu.barrier
// CHECK: vector.store
}
