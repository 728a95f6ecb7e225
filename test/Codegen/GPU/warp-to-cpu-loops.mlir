// RUN: kas-opt %s -kas-gpu-to-cpu-loops -canonicalize | FileCheck %s

// All lanes have their operands before any has a result: what a lane gives, and what it gets, is in memory.
// CHECK-LABEL: func private @product
// CHECK: scf.for
// CHECK: memref.store %{{.*}} : memref<32xindex>
// CHECK: call @kas_ldmatrix_f16_x4_256_32_32
// CHECK: call @kas_ldmatrix_f16_x2_transposed_256_32_32
// CHECK: call @kas_mma_k16_f16_32_32_32_32
// CHECK: scf.for
// CHECK: vector.extract
// CHECK-NOT: nvgpu
gpu.module @kernels {
  gpu.func @product(%z: memref<32xf32>) workgroup(%m : memref<256xf16, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: 32, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
    %zero = arith.constant dense<0.0> : vector<2x2xf32>
    %c8 = arith.constant 8 : index
    %lane = gpu.thread_id x
    %line = arith.muli %lane, %c8 : index
    %a = nvgpu.ldmatrix %m[%line] {numTiles = 4 : i32, transpose = false}
      : memref<256xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
    %b = nvgpu.ldmatrix %m[%line] {numTiles = 2 : i32, transpose = true}
      : memref<256xf16, #gpu.address_space<workgroup>> -> vector<2x2xf16>
    %c = nvgpu.mma.sync (%a, %b, %zero) {mmaShape = [16, 8, 16]}
      : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
    %first = vector.extract %c[0, 0] : f32 from vector<2x2xf32>
    memref.store %first, %z[%lane] : memref<32xf32>
    gpu.return
  }
}

// Parts of the memory that a launch asks for are parts of one buffer.
// CHECK-LABEL: func private @dynamic
// CHECK: %[[M:.*]] = memref.alloca() {alignment = 64 : i64} : memref<192xi8>
// CHECK-DAG: memref.view %[[M]][%c0][] : memref<192xi8> to memref<64xf16>
// CHECK-DAG: memref.view %[[M]][%c128][] : memref<192xi8> to memref<32xf16>
// CHECK-NOT: gpu.
gpu.module @more {
  gpu.func @dynamic(%z: memref<32xf16>) kernel
      attributes {kas_gpu.dynamic_bytes = 192, known_block_size = array<i32: 32, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c128 = arith.constant 128 : index
    %memory = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %a = memref.view %memory[%c0][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<64xf16, #gpu.address_space<workgroup>>
    %b = memref.view %memory[%c128][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<32xf16, #gpu.address_space<workgroup>>
    %lane = gpu.thread_id x
    %value = memref.load %z[%lane] : memref<32xf16>
    memref.store %value, %a[%lane] : memref<64xf16, #gpu.address_space<workgroup>>
    memref.store %value, %b[%lane] : memref<32xf16, #gpu.address_space<workgroup>>
    gpu.barrier
    %x = memref.load %a[%c0] : memref<64xf16, #gpu.address_space<workgroup>>
    %y = memref.load %b[%c0] : memref<32xf16, #gpu.address_space<workgroup>>
    %other = arith.addf %x, %y : f16
    memref.store %other, %z[%lane] : memref<32xf16>
    gpu.return
  }
}
