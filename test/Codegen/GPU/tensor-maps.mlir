// RUN: kas-opt %s -split-input-file -verify-diagnostics -pass-pipeline='builtin.module(gpu.module(kas-gpu-pass-tensor-maps))' | FileCheck %s

// One parameter for each map of an argument, whatever the number of copies, after the buffers.
#s = #gpu.address_space<workgroup>
#rows = #kas_gpu.tensor_map<sizes = [64, 64], strides = [64], box = [64, 64]>
#columns = #kas_gpu.tensor_map<sizes = [64, 64], strides = [64], box = [64, 32]>
// CHECK-LABEL: gpu.func @copies(
// CHECK-SAME: %[[X:.*]]: memref<4096xf16>, %[[Y:.*]]: memref<4096xf16>, %[[A:.*]]: !llvm.ptr, %[[B:.*]]: !llvm.ptr, %[[C:.*]]: !llvm.ptr) workgroup
// CHECK-SAME: kas_gpu.num_tensor_maps = 3
// CHECK: kas_gpu.tensor_copy %[[Y]]{{.*}} through %[[A]] : !llvm.ptr
// CHECK: kas_gpu.tensor_copy %[[X]]{{.*}} through %[[B]] : !llvm.ptr
// CHECK: kas_gpu.tensor_copy %[[Y]]{{.*}} through %[[C]] : !llvm.ptr
// CHECK: kas_gpu.tensor_copy %[[Y]]{{.*}} through %[[A]] : !llvm.ptr
gpu.module @kernels {
  gpu.func @copies(%x: memref<4096xf16>, %y: memref<4096xf16>)
      workgroup(%m: memref<8192xf16, #s>, %b: memref<2xi64, #s>) kernel {
    %i = arith.constant 0 : index
    kas_gpu.tensor_copy %y[%i, %i] to %m[%i], %b[%i] {map = #rows} : memref<4096xf16>, memref<8192xf16, #s>, memref<2xi64, #s>
    kas_gpu.tensor_copy %x[%i, %i] to %m[%i], %b[%i] {map = #rows} : memref<4096xf16>, memref<8192xf16, #s>, memref<2xi64, #s>
    kas_gpu.tensor_copy %y[%i, %i] to %m[%i], %b[%i] {map = #columns} : memref<4096xf16>, memref<8192xf16, #s>, memref<2xi64, #s>
    kas_gpu.tensor_copy %y[%i, %i] to %m[%i], %b[%i] {map = #rows} : memref<4096xf16>, memref<8192xf16, #s>, memref<2xi64, #s>
    gpu.return
  }
}

// -----

#s = #gpu.address_space<workgroup>
gpu.module @kernels {
  gpu.func @other(%x: memref<4096xf16>) workgroup(%m: memref<8192xf16, #s>, %b: memref<2xi64, #s>) kernel {
    %i = arith.constant 0 : index
    // expected-error@below {{expected a copy from an argument of the kernel}}
    kas_gpu.tensor_copy %m[%i] to %m[%i], %b[%i] {map = #kas_gpu.tensor_map<sizes = [64], box = [64]>}
      : memref<8192xf16, #s>, memref<8192xf16, #s>, memref<2xi64, #s>
    gpu.return
  }
}
