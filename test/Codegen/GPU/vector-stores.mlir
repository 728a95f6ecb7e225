// Results of 16 bits: threads of direct kernels exchange them, and one of an elementwise kernel has all of a vector.
// RUN: kas-opt %s -split-input-file -pass-pipeline='builtin.module(kas-gpu-outline,gpu.module(gpu.func(canonicalize,cse)))' | FileCheck %s

#device = #kas_gpu.device<name = "sm_90", processors = 1, max_threads = 64, shared_bytes = 49152, max_blocks = 64,
  max_bytes = 65536, processor_threads = 64, processor_shared_bytes = 49152, registers = 1024, thread_registers = 64,
  subgroup = 32>

module attributes {kas_gpu.device = #device} {
// An image of 6x10 has 60 points, 15 vectors of four. The last of three blocks has threads without a point, which take part in the
// exchange.
kas.operator @scale(%c: 6, %h: 6, %w: 10) from [6, 6, 10] {
  %c_d, %c_w = kas.share %c : 6
  kas.yield data(%c_d, %h, %w) weight(%c_w)
}

func.func @layer(%x: tensor<6x6x10xf16>, %w: tensor<6xf16>) -> tensor<6x6x10xf16> {
  %y = kas.apply @scale(%x, %w) {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 64, tile = [2, 1, 1]>}
    : (tensor<6x6x10xf16>, tensor<6xf16>) -> tensor<6x6x10xf16>
  return %y : tensor<6x6x10xf16>
}

// CHECK-LABEL: gpu.func @layer_0
// CHECK-SAME: workgroup(%[[M:.*]] : memref<128xf16, #gpu.address_space<workgroup>>)
// CHECK: scf.if
// CHECK-COUNT-2: memref.store %{{.*}}, %[[M]]
// CHECK-NOT: scf.if
// CHECK: gpu.barrier
// Two channels of 64 points are 32 vectors.
// CHECK: arith.cmpi ult, %{{.*}}, %c32
// CHECK: vector.load %[[M]]{{.*}} {alignment = 8 : i64} {{.*}} vector<4xf16>
// CHECK: vector.store %{{.*}}, %arg2{{.*}} {alignment = 8 : i64} : memref<360xf16>, vector<4xf16>
// CHECK-NOT: memref.store
}

// -----

#device = #kas_gpu.device<name = "sm_90", processors = 1, max_threads = 64, shared_bytes = 49152, max_blocks = 64,
  max_bytes = 65536, processor_threads = 64, processor_shared_bytes = 49152, registers = 1024, thread_registers = 64,
  subgroup = 32>

module attributes {kas_gpu.device = #device} {
// Neighbours of one thread need no exchange.
kas.operator @scale(%c: 6, %w: 12) from [6, 12] {
  %c_d, %c_w = kas.share %c : 6
  kas.yield data(%c_d, %w) weight(%c_w)
}

func.func @layer(%x: tensor<6x12xbf16>, %w: tensor<6xbf16>) -> tensor<6x12xbf16> {
  %y = kas.apply @scale(%x, %w) {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 64, tile = [2, 4]>}
    : (tensor<6x12xbf16>, tensor<6xbf16>) -> tensor<6x12xbf16>
  return %y : tensor<6x12xbf16>
}

// CHECK-LABEL: gpu.func @layer_0
// CHECK-NOT: workgroup
// CHECK-COUNT-2: vector.store %{{.*}}, %arg2{{.*}} {alignment = 8 : i64} : memref<72xbf16>, vector<4xbf16>
// CHECK-NOT: memref.store
}

// -----

#device = #kas_gpu.device<name = "sm_90", processors = 1, max_threads = 64, shared_bytes = 49152, max_blocks = 64,
  max_bytes = 65536, processor_threads = 64, processor_shared_bytes = 49152, registers = 1024, thread_registers = 64,
  subgroup = 32>
#map = affine_map<(d0, d1) -> (d0, d1)>

module attributes {kas_gpu.device = #device} {
func.func @exchange(%x: tensor<6x14xf16>, %y: tensor<6x14xf16>) -> tensor<6x14xf16> {
  %e = tensor.empty() : tensor<6x14xf16>
  %z = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"],
                       kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 32, tile = [1, 4]>}
      ins(%x, %y : tensor<6x14xf16>, tensor<6x14xf16>) outs(%e : tensor<6x14xf16>) {
  ^bb0(%a: f16, %b: f16, %o: f16):
    %s = arith.addf %a, %b : f16
    linalg.yield %s : f16
  } -> tensor<6x14xf16>
  return %z : tensor<6x14xf16>
}

// Points that follow each other, across rows; 84 of them are 21 threads.
// CHECK-LABEL: gpu.func @exchange_0
// CHECK-SAME: known_grid_size = array<i32: 1, 1, 1>
// CHECK: arith.cmpi ult, %{{.*}}, %c21
// CHECK-COUNT-4: arith.addf
// CHECK: vector.store %{{.*}}, %arg2{{.*}} {alignment = 8 : i64} : memref<84xf16>, vector<4xf16>
}
