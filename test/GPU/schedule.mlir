// RUN: kas-opt %s -kas-gpu-schedule=device=sm_90 | FileCheck %s --check-prefixes=CHECK,SM90
// RUN: kas-opt %s -kas-gpu-schedule=device=vulkan | FileCheck %s --check-prefixes=CHECK,VULKAN
// RUN: kas-opt %s -kas-gpu-schedule="device=vulkan max-threads=1024 shared-bytes=32768" | FileCheck %s --check-prefix=LARGER
// RUN: kas-opt %s -kas-gpu-schedule=device=sm_90 | kas-opt -kas-gpu-schedule | FileCheck %s --check-prefixes=CHECK,SM90
// RUN: kas-opt %s -kas-gpu-schedule=road=direct | FileCheck %s --check-prefix=DIRECT
// RUN: not kas-opt %s -kas-gpu-schedule=road=other 2>&1 | FileCheck %s --check-prefix=ROAD
// RUN: not kas-opt %s -kas-gpu-schedule=max-threads=-1 2>&1 | FileCheck %s --check-prefix=THREADS

// SM90: kas_gpu.device = #kas_gpu.device<name = "sm_90", processors = 132, max_threads = 1024, shared_bytes = 49152
// VULKAN: kas_gpu.device = #kas_gpu.device<name = "vulkan", processors = 16, max_threads = 128, shared_bytes = 16384
// LARGER: kas_gpu.device = #kas_gpu.device<name = "vulkan", processors = 16, max_threads = 1024, shared_bytes = 32768
// ROAD: error: expected a road of direct, staged and tensor_core, got 'other'
// THREADS: error: expected max_threads of at least 1, got -1

// A large product is staged, with more threads where there may be more.
kas.operator @matmul(%m: 1024, %n: 1024) from [1024, 1024] {
  %k = kas.reduce sum : 1024
  %k_d, %k_w = kas.share %k : 1024
  kas.yield data(%m, %k_d) weight(%k_w, %n)
}
// CHECK-LABEL: func @staged
// CHECK: kas_gpu.schedule = #kas_gpu.schedule<road = staged, threads = {{[0-9]+}}, tile = [{{[48]}}, 8]
// DIRECT-LABEL: func @staged
// DIRECT: kas_gpu.schedule = #kas_gpu.schedule<road = direct
func.func @staged(%x: tensor<1024x1024xf32>, %w: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %y = kas.apply @matmul(%x, %w) : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  return %y : tensor<1024x1024xf32>
}

// What is used once is read where it is.
kas.operator @scale(%c: 64, %h: 4096) from [64, 4096] {
  %d, %w = kas.share %c : 64
  kas.yield data(%d, %h) weight(%w)
}
// CHECK-LABEL: func @direct
// CHECK: kas_gpu.schedule = #kas_gpu.schedule<road = direct, threads = {{[0-9]+}}, tile = [{{[0-9]+}}, 1]>
func.func @direct(%x: tensor<64x4096xf32>, %w: tensor<64xf32>) -> tensor<64x4096xf32> {
  %y = kas.apply @scale(%x, %w) : (tensor<64x4096xf32>, tensor<64xf32>) -> tensor<64x4096xf32>
  return %y : tensor<64x4096xf32>
}

// A schedule that is there stays.
// CHECK-LABEL: func @given
// CHECK: kas_gpu.schedule = #kas_gpu.schedule<road = direct, threads = 96, tile = [2, 1]>
func.func @given(%x: tensor<64x4096xf32>, %w: tensor<64xf32>) -> tensor<64x4096xf32> {
  %y = kas.apply @scale(%x, %w) {kas_gpu.schedule = #kas_gpu.schedule<road = direct, threads = 96, tile = [2, 1]>}
    : (tensor<64x4096xf32>, tensor<64xf32>) -> tensor<64x4096xf32>
  return %y : tensor<64x4096xf32>
}
