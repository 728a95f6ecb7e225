// RUN: kas-opt %s -kas-gpu-expand-math | FileCheck %s

// No library is needed: square roots are instructions.
// CHECK-LABEL: gpu.func @functions
// CHECK-NOT: math.{{exp|erf|tanh|sin|log|powf|rsqrt}}
// CHECK: math.sqrt
gpu.module @kernels {
  gpu.func @functions(%x: memref<8xf32>) kernel {
    %zero = arith.constant 0 : index
    %0 = memref.load %x[%zero] : memref<8xf32>
    %1 = math.exp %0 : f32
    %2 = math.erf %1 : f32
    %3 = math.tanh %2 : f32
    %4 = math.sin %3 : f32
    %5 = math.log %4 : f32
    %6 = math.rsqrt %5 : f32
    %7 = math.powf %6, %0 : f32
    memref.store %7, %x[%zero] : memref<8xf32>
    gpu.return
  }
}
