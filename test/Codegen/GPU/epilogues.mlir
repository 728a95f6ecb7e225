// RUN: kas-opt %s -kas-gpu-form-kernels -kas-gpu-schedule=device=sm_90 | FileCheck %s --check-prefix=SCHEDULE
// RUN: kas-opt %s -kas-gpu-front-half=device=sm_90 | FileCheck %s
// What follows a kernel and nothing else reads: part of it, and without a schedule. Its inputs are arguments after those
// of the sum, and its result is the kernel's.

#matrix = affine_map<(d0, d1) -> (d0, d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>
#row = affine_map<(d0, d1) -> (d1)>

// SCHEDULE-LABEL: func.func @forward
// SCHEDULE: linalg.generic {{.*}}"reduction"{{.*}}kas_gpu.schedule
// SCHEDULE: linalg.generic
// SCHEDULE-NOT: kas_gpu.schedule
// SCHEDULE: return
// CHECK-LABEL: func.func @forward
// CHECK: gpu.launch_func{{ +}}@kernels::@forward_0
// CHECK-SAME: args({{.*}} : memref<2048xf32>, {{.*}} : memref<4096xf32>, {{.*}} : memref<32xf32>, {{.*}} : memref<2048xf32>, {{.*}} : memref<2048xf32>)
// CHECK-NOT: gpu.launch_func
func.func @forward(%x: tensor<64x64xf32>, %w: tensor<64x32xf32>, %bias: tensor<32xf32>, %residual: tensor<64x32xf32>)
    -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x32xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x32xf32>) -> tensor<64x32xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>,
                                          affine_map<(d0, d1, d2) -> (d0, d1)>],
                         iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<64x64xf32>, tensor<64x32xf32>) outs(%zeros : tensor<64x32xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %product = arith.mulf %a, %b : f32
      %next = arith.addf %c, %product : f32
      linalg.yield %next : f32
  } -> tensor<64x32xf32>
  %y = linalg.generic {indexing_maps = [#matrix, #row, #matrix, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%sum, %bias, %residual : tensor<64x32xf32>, tensor<32xf32>, tensor<64x32xf32>)
      outs(%empty : tensor<64x32xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
      %biased = arith.addf %a, %b : f32
      %all = arith.addf %biased, %c : f32
      linalg.yield %all : f32
  } -> tensor<64x32xf32>
  return %y : tensor<64x32xf32>
}

// Two operations read the sums: each is a kernel.
// CHECK-LABEL: func.func @two_readers
// CHECK-COUNT-3: gpu.launch_func
// CHECK-NOT: gpu.launch_func
func.func @two_readers(%x: tensor<64x64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.reduce ins(%x : tensor<64x64xf32>) outs(%zeros : tensor<64xf32>) dimensions = [1]
    (%a: f32, %b: f32) {
      %next = arith.addf %a, %b : f32
      linalg.yield %next : f32
    }
  %y = linalg.abs ins(%sum : tensor<64xf32>) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  %z = linalg.exp ins(%sum : tensor<64xf32>) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  return %y, %z : tensor<64xf32>, tensor<64xf32>
}

// Read in another order than it is in: a kernel of its own.
// CHECK-LABEL: func.func @transposed
// CHECK-COUNT-2: gpu.launch_func
// CHECK-NOT: gpu.launch_func
func.func @transposed(%x: tensor<8x16x32xf32>) -> tensor<16x8xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x16xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x16xf32>) -> tensor<8x16xf32>
  %sum = linalg.reduce ins(%x : tensor<8x16x32xf32>) outs(%zeros : tensor<8x16xf32>) dimensions = [2]
    (%a: f32, %b: f32) {
      %next = arith.addf %a, %b : f32
      linalg.yield %next : f32
    }
  %other = tensor.empty() : tensor<16x8xf32>
  %y = linalg.generic {indexing_maps = [#turned, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<8x16xf32>) outs(%other : tensor<16x8xf32>) {
    ^bb0(%a: f32, %out: f32):
      %exp = math.exp %a : f32
      linalg.yield %exp : f32
  } -> tensor<16x8xf32>
  return %y : tensor<16x8xf32>
}

// Reads the sum at two places: a kernel of its own.
// CHECK-LABEL: func.func @symmetric
// CHECK-COUNT-2: gpu.launch_func
// CHECK-NOT: gpu.launch_func
func.func @symmetric(%x: tensor<16x16x32xf32>) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16x16xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x16xf32>) -> tensor<16x16xf32>
  %sum = linalg.reduce ins(%x : tensor<16x16x32xf32>) outs(%zeros : tensor<16x16xf32>) dimensions = [2]
    (%a: f32, %b: f32) {
      %next = arith.addf %a, %b : f32
      linalg.yield %next : f32
    }
  %y = linalg.generic {indexing_maps = [#matrix, #turned, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%sum, %sum : tensor<16x16xf32>, tensor<16x16xf32>) outs(%empty : tensor<16x16xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %both = arith.addf %a, %b : f32
      linalg.yield %both : f32
  } -> tensor<16x16xf32>
  return %y : tensor<16x16xf32>
}

// A residual of two kernels: the last one computes it, from what the other one has stored.
// CHECK-LABEL: func.func @two_kernels
// CHECK: gpu.launch_func {{.*}}, {{.*}} : memref<64xf32>)
// CHECK: gpu.launch_func {{.*}}, {{.*}} : memref<64xf32>, {{.*}} : memref<64xf32>)
// CHECK-NOT: gpu.launch_func
func.func @two_kernels(%x: tensor<64x128xf32>, %z: tensor<64x32xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  %first = linalg.reduce ins(%x : tensor<64x128xf32>) outs(%zeros : tensor<64xf32>) dimensions = [1]
    (%a: f32, %b: f32) {
      %next = arith.addf %a, %b : f32
      linalg.yield %next : f32
    }
  %second = linalg.reduce ins(%z : tensor<64x32xf32>) outs(%zeros : tensor<64xf32>) dimensions = [1]
    (%a: f32, %b: f32) {
      %next = arith.addf %a, %b : f32
      linalg.yield %next : f32
    }
  %y = linalg.add ins(%first, %second : tensor<64xf32>, tensor<64xf32>) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  return %y : tensor<64xf32>
}
