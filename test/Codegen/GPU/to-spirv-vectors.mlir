// Buffers that are accessed as aligned vectors alone hold vectors, of as many lanes as all accesses have in common.
// RUN: kas-opt %s -kas-gpu-to-spirv='profile=f16' | FileCheck %s

module attributes {gpu.container_module} {
gpu.module @kernels {
  // CHECK: spirv.func @kernel
  // CHECK-SAME: %[[FOURS:[a-z0-9]+]]: !spirv.ptr<!spirv.struct<(!spirv.array<16 x vector<4xf32>, stride=16> [0])>, StorageBuffer>
  // CHECK-SAME: %[[TWOS:[a-z0-9]+]]: !spirv.ptr<!spirv.struct<(!spirv.array<32 x vector<2xf32>, stride=8> [0])>, StorageBuffer>
  // CHECK-SAME: %[[ONES:[a-z0-9]+]]: !spirv.ptr<!spirv.struct<(!spirv.array<64 x f32, stride=4> [0])>, StorageBuffer>
  // CHECK-SAME: %[[UNALIGNED:[a-z0-9]+]]: !spirv.ptr<!spirv.struct<(!spirv.array<64 x f32, stride=4> [0])>, StorageBuffer>
  // CHECK-SAME: %[[HALVES:[a-z0-9]+]]: !spirv.ptr<!spirv.struct<(!spirv.array<16 x vector<4xf16>, stride=8> [0])>, StorageBuffer>
  // CHECK-SAME: %[[RESULT:[a-z0-9]+]]: !spirv.ptr<!spirv.struct<(!spirv.array<16 x vector<4xf32>, stride=16> [0])>, StorageBuffer>
  // CHECK: spirv.AccessChain %[[FOURS]]
  // CHECK-COUNT-1: spirv.Load "StorageBuffer" %{{.*}} : vector<4xf32>
  // CHECK: spirv.AccessChain %[[TWOS]]
  // CHECK-COUNT-2: spirv.Load "StorageBuffer" %{{.*}} : vector<2xf32>
  // CHECK: spirv.Load "StorageBuffer" %{{.*}} : vector<2xf32>
  // CHECK: spirv.AccessChain %[[ONES]]
  // CHECK-COUNT-5: spirv.Load "StorageBuffer" %{{.*}} : f32
  // CHECK: spirv.AccessChain %[[UNALIGNED]]
  // CHECK-COUNT-4: spirv.Load "StorageBuffer" %{{.*}} : f32
  // CHECK: spirv.AccessChain %[[HALVES]]
  // CHECK: spirv.Load "StorageBuffer" %{{.*}} : vector<4xf16>
  // CHECK: spirv.Store "StorageBuffer" %{{.*}} : vector<4xf32>
  gpu.func @kernel(%fours: memref<64xf32>, %twos: memref<64xf32>, %ones: memref<64xf32>, %unaligned: memref<64xf32>,
                   %halves: memref<66xf16>, %result: memref<64xf32>)
      kernel attributes {known_block_size = array<i32: 16, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
    %c4 = arith.constant 4 : index
    %i = gpu.thread_id x
    %at = arith.muli %i, %c4 : index
    %a = vector.load %fours[%at] {alignment = 16 : i64} : memref<64xf32>, vector<4xf32>
    %b = vector.load %twos[%at] {alignment = 16 : i64} : memref<64xf32>, vector<4xf32>
    %c = vector.load %twos[%at] {alignment = 8 : i64} : memref<64xf32>, vector<2xf32>
    %c1 = vector.extract %c[1] : f32 from vector<2xf32>
    %d = vector.load %ones[%at] {alignment = 16 : i64} : memref<64xf32>, vector<4xf32>
    %d1 = memref.load %ones[%i] : memref<64xf32>
    %e = vector.load %unaligned[%i] : memref<64xf32>, vector<4xf32>
    %f = vector.load %halves[%at] {alignment = 8 : i64} : memref<66xf16>, vector<4xf16>
    %f32 = arith.extf %f : vector<4xf16> to vector<4xf32>
    %ab = arith.addf %a, %b : vector<4xf32>
    %de = arith.addf %d, %e : vector<4xf32>
    %s = arith.addf %c1, %d1 : f32
    %v = vector.broadcast %s : f32 to vector<4xf32>
    %abde = arith.addf %ab, %de : vector<4xf32>
    %vf = arith.addf %v, %f32 : vector<4xf32>
    %sum = arith.addf %abde, %vf : vector<4xf32>
    vector.store %sum, %result[%at] {alignment = 16 : i64} : memref<64xf32>, vector<4xf32>
    gpu.return
  }

  // A buffer of any size has one of any size in vectors; the distances of a layout are those of elements.
  // CHECK: spirv.func @sizes
  // CHECK-SAME: %{{[a-z0-9]+}}: !spirv.ptr<!spirv.struct<(!spirv.rtarray<vector<4xf32>, stride=16> [0])>, StorageBuffer>
  // CHECK-SAME: %[[APART:[a-z0-9]+]]: !spirv.ptr<!spirv.struct<(!spirv.array<{{[0-9]+}} x f32, stride=4> [0])>, StorageBuffer>
  // CHECK: spirv.AccessChain %[[APART]]
  // CHECK-COUNT-4: spirv.Load "StorageBuffer" %{{.*}} : f32
  gpu.func @sizes(%any: memref<?xf32>, %apart: memref<64xf32, strided<[1], offset: 2>>, %result: memref<64xf32>)
      kernel attributes {known_block_size = array<i32: 16, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
    %c4 = arith.constant 4 : index
    %i = gpu.thread_id x
    %at = arith.muli %i, %c4 : index
    %a = vector.load %any[%at] {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
    %b = vector.load %apart[%at] {alignment = 16 : i64} : memref<64xf32, strided<[1], offset: 2>>, vector<4xf32>
    %sum = arith.addf %a, %b : vector<4xf32>
    vector.store %sum, %result[%at] {alignment = 16 : i64} : memref<64xf32>, vector<4xf32>
    gpu.return
  }
}
}
