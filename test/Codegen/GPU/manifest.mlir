// RUN: kas-opt %s -split-input-file -verify-diagnostics -kas-gpu-write-manifest="api=vulkan format=spirv capabilities=Shader,Float16" | FileCheck %s

module attributes {gpu.container_module} {
gpu.module @kernels {
  gpu.func @half(%a: memref<100xf32> {kas_gpu.access = "read"}, %b: memref<100xf32> {kas_gpu.access = "write"})
      workgroup(%shared : memref<10xf32, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: 50, 1, 1>, known_grid_size = array<i32: 2, 1, 1>} {
    gpu.return
  }
}

// CHECK: kas_gpu.manifest = "{\22version\22:1,\22target\22:{\22api\22:\22vulkan\22,\22chip\22:\22\22,\22format\22:\22spirv\22,\22capabilities\22:[\22Shader\22,\22Float16\22]}
// CHECK-SAME: \22kernels\22:[{\22name\22:\22half\22,\22grid\22:[2,1,1],\22block\22:[50,1,1],\22shared_bytes\22:48,\22dynamic_shared_bytes\22:0
// CHECK-SAME: {\22name\22:\22argument0\22,\22kind\22:\22argument\22,\22dtype\22:\22f32\22,\22shape\22:[10,10],\22bytes\22:400}
// CHECK-SAME: {\22name\22:\22result0\22,\22kind\22:\22result\22
// CHECK-SAME: {\22kind\22:\22scratch\22,\22dtype\22:\22f32\22,\22shape\22:[100],\22bytes\22:400,\22offset\22:256}
// CHECK-SAME: \22scratch_bytes\22:656,\22launches\22:[{\22kernel\22:0,\22arguments\22:[0,2]},{\22kernel\22:0,\22arguments\22:[2,1]}]
func.func @twice(%x: memref<10x10xf32>, %y: memref<100xf32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c50 = arith.constant 50 : index
  %c256 = arith.constant 256 : index
  %all = memref.alloc() {kas_gpu.scratch} : memref<656xi8>
  %t = memref.view %all[%c256][] : memref<656xi8> to memref<100xf32>
  %flat = memref.collapse_shape %x [[0, 1]] : memref<10x10xf32> into memref<100xf32>
  gpu.launch_func @kernels::@half blocks in (%c2, %c1, %c1) threads in (%c50, %c1, %c1)
    args(%flat : memref<100xf32>, %t : memref<100xf32>)
  gpu.launch_func @kernels::@half blocks in (%c2, %c1, %c1) threads in (%c50, %c1, %c1)
    args(%t : memref<100xf32>, %y : memref<100xf32>)
  return
}
}

// -----

func.func @host(%x: memref<10xf32>, %y: memref<10xf32>) {
  // expected-error@below {{expected a function that launches kernels and does nothing else, got memref.copy}}
  memref.copy %x, %y : memref<10xf32> to memref<10xf32>
  return
}
