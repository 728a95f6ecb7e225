// RUN: kas-opt %s -kas-gpu-schedule=device=sm_90 | FileCheck %s --check-prefixes=CHECK,SM90
// RUN: kas-opt %s -kas-gpu-schedule=device=vulkan | FileCheck %s --check-prefixes=CHECK,VULKAN
// RUN: kas-opt %s -kas-gpu-schedule="device=vulkan max-threads=1024 shared-bytes=32768" | FileCheck %s --check-prefix=LARGER
// RUN: kas-opt %s -kas-gpu-schedule=device=vulkan-cpu | FileCheck %s --check-prefix=HOST
// RUN: kas-opt %s -kas-gpu-schedule=device=sm_90 | kas-opt -kas-gpu-schedule | FileCheck %s --check-prefixes=CHECK,SM90
// RUN: kas-opt %s -kas-gpu-schedule=strategy=direct | FileCheck %s --check-prefix=DIRECT
// The former name of the option, for one release.
// RUN: kas-opt %s -kas-gpu-schedule=road=direct | FileCheck %s --check-prefix=DIRECT
// RUN: kas-opt %s -kas-gpu-schedule="device=sm_90 road=direct" | FileCheck %s --check-prefix=DIRECT
// RUN: not kas-opt %s -kas-gpu-schedule=road=other 2>&1 | FileCheck %s --check-prefixes=STRATEGY,FORMER
// RUN: not kas-opt %s -kas-gpu-schedule=strategy=other 2>&1 | FileCheck %s --check-prefix=STRATEGY --implicit-check-not=road
// RUN: not kas-opt %s -kas-gpu-schedule=max-threads=-1 2>&1 | FileCheck %s --check-prefix=THREADS

// SM90: kas_gpu.device = #kas_gpu.device<name = "sm_90", processors = 132, max_threads = 1024, shared_bytes = 49152
// VULKAN: kas_gpu.device = #kas_gpu.device<name = "vulkan", processors = 16, max_threads = 128, shared_bytes = 16384
// LARGER: kas_gpu.device = #kas_gpu.device<name = "vulkan", processors = 16, max_threads = 1024, shared_bytes = 32768
// STRATEGY: for the --strategy option: Cannot find option named 'other'!
// FORMER: error: '-kas-gpu-schedule' does not take 'road=other': the option 'road' is now called 'strategy'
// THREADS: error: expected max_threads of at least 1, got -1

// A large product is staged, with more threads where there may be more.
kas.operator @matmul(%m: 1024, %n: 1024) from [1024, 1024] {
  %k = kas.reduce sum : 1024
  %k_d, %k_w = kas.share %k : 1024
  kas.yield data(%m, %k_d) weight(%k_w, %n)
}
// CHECK-LABEL: func @staged
// CHECK: kas_gpu.schedule = #kas_gpu.schedule<strategy = staged, threads = {{[0-9]+}}, tile = [{{[48]}}, 8]
// HOST-LABEL: func @staged
// HOST: kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = {{[0-9]+}}, tile = [8, 8]>
// DIRECT-LABEL: func @staged
// DIRECT: kas_gpu.schedule = #kas_gpu.schedule<strategy = direct
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
// CHECK: kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = {{[0-9]+}}, tile = [{{[0-9]+}}, 1]>
func.func @direct(%x: tensor<64x4096xf32>, %w: tensor<64xf32>) -> tensor<64x4096xf32> {
  %y = kas.apply @scale(%x, %w) : (tensor<64x4096xf32>, tensor<64xf32>) -> tensor<64x4096xf32>
  return %y : tensor<64x4096xf32>
}

// A schedule that is there stays.
// CHECK-LABEL: func @given
// CHECK: kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 96, tile = [2, 1]>
func.func @given(%x: tensor<64x4096xf32>, %w: tensor<64xf32>) -> tensor<64x4096xf32> {
  %y = kas.apply @scale(%x, %w) {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 96, tile = [2, 1]>}
    : (tensor<64x4096xf32>, tensor<64xf32>) -> tensor<64x4096xf32>
  return %y : tensor<64x4096xf32>
}

// Eight output channels are of one group and read the same data, and so do neighbours along a row, in part.
kas.operator @grouped(%o: 32, %h: 16, %w: 16) from [16, 16, 16] {
  %c = kas.reduce sum : 4
  %j = kas.reduce sum : 3
  %g, %p = kas.merge %o by 8 : 32
  %g_d, %g_w = kas.share %g : 4
  %c_d, %c_w = kas.share %c : 4
  %j_d, %j_w = kas.share %j : 3
  %in = kas.split %g_d, %c_d : 4, 4
  %x = kas.unfold %w, %j_d : 16, 3
  kas.yield data(%in, %h, %x) weight(%g_w, %p, %c_w, %j_w)
}
// HOST-LABEL: func @groups
// HOST: kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = {{[0-9]+}}, tile = [8, 1, 8]>
func.func @groups(%x: tensor<16x16x16xf32>, %w: tensor<4x8x4x3xf32>) -> tensor<32x16x16xf32> {
  %y = kas.apply @grouped(%x, %w) : (tensor<16x16x16xf32>, tensor<4x8x4x3xf32>) -> tensor<32x16x16xf32>
  return %y : tensor<32x16x16xf32>
}

// Elements without a width, which later passes refuse.
// CHECK-LABEL: func.func @places
// CHECK: kas_gpu.schedule = #kas_gpu.schedule<strategy = direct
func.func @places(%o: tensor<1x4xindex>) -> tensor<1x4xindex> {
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%o : tensor<1x4xindex>) {
  ^bb0(%c: index):
    %1 = linalg.index 1 : index
    linalg.yield %1 : index
  } -> tensor<1x4xindex>
  return %0 : tensor<1x4xindex>
}
