// RUN: kas-opt %s -kas-gpu-to-spirv | FileCheck %s

// Validation counts the workgroup memory of a module, not of an entry point: kernels share one variable for each
// position and type, as large as the largest.
// CHECK: spirv.module
// CHECK-DAG: spirv.GlobalVariable @[[FIRST:[a-z_0-9]+]] : !spirv.ptr<!spirv.struct<(!spirv.array<96 x f32>)>, Workgroup>
// CHECK-DAG: spirv.GlobalVariable @[[SECOND:[a-z_0-9]+]] : !spirv.ptr<!spirv.struct<(!spirv.array<16 x f32>)>, Workgroup>
// CHECK-NOT: Workgroup>
// CHECK: spirv.func @small
// CHECK: spirv.mlir.addressof @[[FIRST]]
// CHECK: spirv.func @large
// CHECK-DAG: spirv.mlir.addressof @[[FIRST]]
// CHECK-DAG: spirv.mlir.addressof @[[SECOND]]
module attributes {gpu.container_module} {
gpu.module @kernels {
  gpu.func @small(%x: memref<64xf32> {kas_gpu.access = "write"})
      workgroup(%a : memref<32xf32, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: 16, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
    %i = gpu.thread_id x
    %v = memref.load %a[%i] : memref<32xf32, #gpu.address_space<workgroup>>
    memref.store %v, %x[%i] : memref<64xf32>
    gpu.return
  }
  gpu.func @large(%x: memref<64xf32> {kas_gpu.access = "write"})
      workgroup(%a : memref<96xf32, #gpu.address_space<workgroup>>, %b : memref<16xf32, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: 16, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
    %i = gpu.thread_id x
    %v = memref.load %a[%i] : memref<96xf32, #gpu.address_space<workgroup>>
    memref.store %v, %b[%i] : memref<16xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %w = memref.load %b[%i] : memref<16xf32, #gpu.address_space<workgroup>>
    memref.store %w, %x[%i] : memref<64xf32>
    gpu.return
  }
}
}
