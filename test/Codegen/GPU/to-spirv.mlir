// RUN: kas-opt %s -kas-gpu-to-spirv | FileCheck %s
// RUN: kas-opt %s -pass-pipeline='builtin.module(kas-gpu-to-spirv,spirv.module(spirv-lower-abi-attrs,spirv-update-vce),kas-gpu-serialize-spirv)' \
// RUN:   | FileCheck %s --check-prefix=BINARY
// RUN: not kas-opt %s -kas-gpu-serialize-spirv 2>&1 | FileCheck %s --check-prefix=ALONE

// BINARY: gpu.binary @kernels [#gpu.object<#spirv.target_env<{{.*}}>, bin = "\03\02#\07
// BINARY-NOT: gpu.module
// BINARY-NOT: spirv.module
// ALONE: error: expected a spirv.module after the module of kernels (see -kas-gpu-to-spirv), got none

module attributes {gpu.container_module} {
// The kernels stay until they are serialized.
// CHECK: gpu.module @kernels
gpu.module @kernels {
  // Workgroup memory is a variable of its storage class, indices are 32 bits wide, and vectors are loaded element by
  // element.
  // CHECK: spirv.module @{{.*}} Logical GLSL450
  // CHECK-DAG: spirv.GlobalVariable @{{.*}} : !spirv.ptr<!spirv.struct<(!spirv.array<64 x f32>)>, Workgroup>
  // CHECK: spirv.func @kernel
  // CHECK-SAME: !spirv.ptr<!spirv.struct<(!spirv.array<64 x f32, stride=4> [0])>, StorageBuffer>
  // CHECK-SAME: spirv.entry_point_abi = #spirv.entry_point_abi<workgroup_size = [16, 1, 1]>
  // CHECK-NOT: spirv.Constant {{.*}} : i64
  // CHECK-COUNT-4: spirv.Load "StorageBuffer" %{{.*}} : f32
  // CHECK: spirv.CompositeConstruct
  // CHECK: spirv.ControlBarrier <Workgroup>
  gpu.func @kernel(%x: memref<64xf32> {kas_gpu.access = "read"}, %y: memref<64xf32> {kas_gpu.access = "write"})
      workgroup(%shared : memref<64xf32, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: 16, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
    %c4 = arith.constant 4 : index
    %i = gpu.thread_id x
    %at = arith.muli %i, %c4 : index
    %a = vector.load %x[%at] : memref<64xf32>, vector<4xf32>
    vector.store %a, %shared[%at] : memref<64xf32, #gpu.address_space<workgroup>>, vector<4xf32>
    gpu.barrier
    %b = vector.load %shared[%i] : memref<64xf32, #gpu.address_space<workgroup>>, vector<4xf32>
    vector.store %b, %y[%at] : memref<64xf32>, vector<4xf32>
    gpu.return
  }
}
}
