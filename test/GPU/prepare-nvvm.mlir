// RUN: kas-opt %s -pass-pipeline='builtin.module(gpu.module(kas-gpu-prepare-nvvm))' | FileCheck %s

gpu.module @kernels {
  // CHECK: gpu.func @kernel
  // CHECK-SAME: memref<64xf32> {llvm.align = 16 : i64, llvm.noalias}
  // CHECK-SAME: workgroup(%{{.*}} : memref<64xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64})
  gpu.func @kernel(%x: memref<64xf32>) workgroup(%shared : memref<64xf32, #gpu.address_space<workgroup>>) kernel {
    %i = gpu.thread_id x
    %a = memref.load %x[%i] : memref<64xf32>
    // CHECK: llvm.intr.fma(%{{.*}}, %{{.*}}, %{{.*}}) : (f32, f32, f32) -> f32
    %b = math.fma %a, %a, %a : f32
    memref.store %b, %x[%i] : memref<64xf32>
    gpu.return
  }
}
