// RUN: kas-opt %s -kas-gpu-front-half=device=sm_90 | FileCheck %s
// RUN: kas-opt %s -kas-nvvm-pipeline=chip=sm_90 | kas-translate -kas-gpu-to-manifest | FileCheck %s --check-prefix=MANIFEST
// RUN: kas-run %s --function=forward --args=1 --device=vulkan --check=%s | FileCheck %s --check-prefix=VALUES
// RUN: kas-run %s --function=two_inputs --args=1 --device=vulkan --check=%s | FileCheck %s --check-prefix=VALUES
// With CUDA, on a stand-in for the driver: once, however often the function is called.
// RUN: env KAS_RT_LIBCUDA=%kas_obj_root/lib/libkas-cuda-stand-in.so KAS_STAND_IN_REPORT=1 kas-run %s --function=forward \
// RUN:   --args=1 --device=cuda --time 2>&1 | FileCheck %s --check-prefix=CALLS
// What depends on weights alone is launched first, and what it writes keeps its memory.
// VALUES: ok
// CALLS-COUNT-1: cuLaunchKernel(
// CALLS: cuGraphLaunch(
// CALLS-COUNT-3: cuLaunchKernel(
// CALLS-COUNT-3: cuGraphLaunch(
// CALLS-NOT: cuLaunchKernel(
// CALLS: violations: none

// CHECK-LABEL: func.func @forward
// CHECK-SAME: kas_gpu.num_prepack_launches = 1 : i64
// CHECK: memref.view %{{.*}}[%c0]
// CHECK: gpu.launch_func{{ +}}@kernels::@forward_0 {{.*}} args(%{{.*}} : memref<256xf32>, %{{.*}} : memref<256xf32>, %[[PACKED:.*]] : memref<256xf32>)
// CHECK-NOT: memref.view %{{.*}}[%c0]
// CHECK: gpu.launch_func
// CHECK-NOT: memref.view %{{.*}}[%c0]
// CHECK: gpu.launch_func
// CHECK: gpu.launch_func{{.*}} args(%[[PACKED]] : memref<256xf32>
// CHECK-NOT: gpu.launch_func
// MANIFEST: "name":"forward"
// MANIFEST-SAME: "prepack_launches":1,"launches":[
func.func @forward(%x: tensor<8x16xf32>, %v: tensor<16x16xf32>, %w: tensor<16x16xf32>) -> tensor<8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x16xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x16xf32>) -> tensor<8x16xf32>
  %square = tensor.empty() : tensor<16x16xf32>
  %square_zeros = linalg.fill ins(%zero : f32) outs(%square : tensor<16x16xf32>) -> tensor<16x16xf32>
  %first = linalg.matmul ins(%x, %v : tensor<8x16xf32>, tensor<16x16xf32>) outs(%zeros : tensor<8x16xf32>) -> tensor<8x16xf32>
  %second = linalg.matmul ins(%first, %v : tensor<8x16xf32>, tensor<16x16xf32>) outs(%zeros : tensor<8x16xf32>) -> tensor<8x16xf32>
  %packed = linalg.matmul ins(%v, %w : tensor<16x16xf32>, tensor<16x16xf32>) outs(%square_zeros : tensor<16x16xf32>) -> tensor<16x16xf32>
  %y = linalg.matmul ins(%second, %packed : tensor<8x16xf32>, tensor<16x16xf32>) outs(%zeros : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// Data is what the attribute says, too, and results are written in each call.
// CHECK-LABEL: func.func @two_inputs
// CHECK-NOT: num_prepack_launches
// CHECK: gpu.launch_func
func.func @two_inputs(%x: tensor<8x16xf32>, %v: tensor<16x16xf32> {kas.data}, %w: tensor<16x16xf32>)
    -> (tensor<8x16xf32>, tensor<16x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x16xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x16xf32>) -> tensor<8x16xf32>
  %square = tensor.empty() : tensor<16x16xf32>
  %square_zeros = linalg.fill ins(%zero : f32) outs(%square : tensor<16x16xf32>) -> tensor<16x16xf32>
  %product = linalg.matmul ins(%v, %w : tensor<16x16xf32>, tensor<16x16xf32>) outs(%square_zeros : tensor<16x16xf32>) -> tensor<16x16xf32>
  %y = linalg.matmul ins(%x, %product : tensor<8x16xf32>, tensor<16x16xf32>) outs(%zeros : tensor<8x16xf32>) -> tensor<8x16xf32>
  %z = linalg.exp ins(%w : tensor<16x16xf32>) outs(%square : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %y, %z : tensor<8x16xf32>, tensor<16x16xf32>
}
