// RUN: kas-opt %s -split-input-file -kas-gpu-outline | FileCheck %s

// Tiles of 4 of 7 outputs: edges are computed at the last index and not stored, and what lies outside of the window is
// not read.

#device = #kas_gpu.device<name = "any", processors = 1, max_threads = 64, shared_bytes = 1024, max_blocks = 8,
  max_bytes = 1024, processor_threads = 64, processor_shared_bytes = 1024, registers = 1024, thread_registers = 64,
  subgroup = 32>

module attributes {kas_gpu.device = #device} {

kas.operator @window(%c: 8, %w: 7) from [8, 7] {
  %j = kas.reduce sum : 3
  %x = kas.unfold %w, %j : 7, 3
  kas.yield data(%c, %x)
}

// CHECK-LABEL: func @direct
// CHECK-SAME: %[[X:.*]]: tensor<8x7xf32>
// CHECK-DAG: %[[IN:.*]] = bufferization.to_buffer %[[X]] read_only
// CHECK-DAG: %[[FLAT:.*]] = memref.collapse_shape %[[IN]] {{.*}} into memref<56xf32>
// CHECK-DAG: %[[OUT:.*]] = memref.alloc
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1
// CHECK: gpu.launch_func @kernels::@direct_0 blocks in (%{{.*}}, %{{.*}}, %{{.*}}) threads in
// CHECK-SAME: args(%[[FLAT]] : memref<56xf32>, %{{.*}} : memref<56xf32>)
// CHECK: bufferization.to_tensor %[[OUT]] restrict writable
func.func @direct(%x: tensor<8x7xf32>) -> tensor<8x7xf32> {
  %y = kas.apply @window(%x)
    {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 12, tile = [1, 4]>}
    : (tensor<8x7xf32>) -> tensor<8x7xf32>
  return %y : tensor<8x7xf32>
}

// CHECK: gpu.module @kernels
// CHECK: gpu.func @direct_0(%[[A:.*]]: memref<56xf32> {kas_gpu.access = "read"}, %[[B:.*]]: memref<56xf32> {kas_gpu.access = "write"})
// CHECK-SAME: known_block_size = array<i32: 12, 1, 1>, known_grid_size = array<i32: 2, 1, 1>
// 16 tiles, 24 threads
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %[[ID:.*]], %c16
// CHECK: scf.if %[[INSIDE]]
// CHECK: arith.minui
// CHECK: %[[SUMS:.*]]:4 = scf.for
// CHECK: %[[ADDRESS:.*]] = arith.select %[[EXISTS:.*]], %{{.*}}, %c0
// CHECK: %[[VALUE:.*]] = memref.load %[[A]][%[[ADDRESS]]]
// CHECK: arith.select %[[EXISTS]], %[[VALUE]], %cst
// CHECK: memref.store %[[SUMS]]#0, %[[B]]
// CHECK: scf.if %{{.*}} {
// CHECK: memref.store %[[SUMS]]#3, %[[B]]
}

// -----

// Equal operators with equal schedules share a kernel. The order of arguments is that of the operator, whatever the
// order of uses.

#device = #kas_gpu.device<name = "any", processors = 1, max_threads = 64, shared_bytes = 1024, max_blocks = 8,
  max_bytes = 1024, processor_threads = 64, processor_shared_bytes = 1024, registers = 1024, thread_registers = 64,
  subgroup = 32>

module attributes {kas_gpu.device = #device} {

kas.operator @scale(%c: 8) from [8] {
  %d, %w = kas.share %c : 8
  kas.yield data(%d) weight(%w)
}

// CHECK-LABEL: func @twice
// CHECK: gpu.launch_func @kernels::@twice_0
// CHECK: gpu.launch_func @kernels::@twice_0
// CHECK: gpu.func @twice_0
// CHECK-NOT: gpu.func
func.func @twice(%x: tensor<8xf32>, %w: tensor<8xf32>) -> tensor<8xf32> {
  %y = kas.apply @scale(%x, %w) {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 8, tile = [1]>}
    : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %z = kas.apply @scale(%y, %w) {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 8, tile = [1]>}
    : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %z : tensor<8xf32>
}
}

// -----

// Dimensions of 1 need no loops and no index arithmetic.

#device = #kas_gpu.device<name = "any", processors = 1, max_threads = 64, shared_bytes = 1024, max_blocks = 8,
  max_bytes = 1024, processor_threads = 64, processor_shared_bytes = 1024, registers = 1024, thread_registers = 64,
  subgroup = 32>

module attributes {kas_gpu.device = #device} {

kas.operator @one(%n: 1, %h: 1) from [1, 1] {
  %k = kas.reduce sum : 1
  %k_d, %k_w = kas.share %k : 1
  kas.yield data(%n, %k_d) weight(%k_w, %h)
}

// CHECK: gpu.func @single_0
// CHECK-NOT: scf.for
// CHECK: %[[A:.*]] = memref.load %arg0[%c0
// CHECK: %[[B:.*]] = memref.load %arg1[%c0
// CHECK: math.fma %[[A]], %[[B]]
// CHECK-NOT: arith.divui
// CHECK: gpu.return
func.func @single(%x: tensor<1x1xf32>, %w: tensor<1x1xf32>) -> tensor<1x1xf32> {
  %y = kas.apply @one(%x, %w) {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 32, tile = [1, 1]>}
    : (tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x1xf32>
  return %y : tensor<1x1xf32>
}
}
