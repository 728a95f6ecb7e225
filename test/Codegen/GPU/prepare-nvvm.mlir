// RUN: kas-opt %s -pass-pipeline='builtin.module(gpu.module(kas-gpu-prepare-nvvm))' | FileCheck %s

// CHECK: #loop_unroll = #llvm.loop_unroll<disable = true>
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

  // A loop with a barrier stays one: a few rounds of it at once would take all registers. Others may be unrolled.
  // CHECK: gpu.func @steps
  // CHECK: scf.for
  // CHECK: scf.for
  // CHECK: memref.store
  // CHECK-NEXT: }
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: } {llvm.loop_annotation = #loop_annotation
  gpu.func @steps(%x: memref<64xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %zero = arith.constant 0.0 : f32
    scf.for %i = %c0 to %c4 step %c1 {
      scf.for %j = %c0 to %c4 step %c1 {
        memref.store %zero, %x[%j] : memref<64xf32>
      }
      gpu.barrier
    }
    gpu.return
  }
}
