// RUN: kas-opt %s -split-input-file -kas-attach-cpu-target=cpu=x86-64-v4 -kas-batch-versions=threads=1 | FileCheck %s
// RUN: kas-opt %s -split-input-file -kas-attach-cpu-target=cpu=x86-64-v4 -kas-batch-versions=threads=2 | FileCheck %s --check-prefix=THREADS

// A large batch, a middle one, and one sample. A single step is not cut, and threads share it.
// CHECK-NOT:   func.func @forward(
// CHECK-LABEL: func.func @forward_batch64(
// CHECK-SAME:    %{{.*}}: tensor<64x32xf32>, %{{.*}}: tensor<32x16xf32>) -> tensor<64x16xf32>
// CHECK-SAME:    kas_cpu.batch_version = #kas_cpu.batch_version<of = "forward", samples = 64, most = 64, cycles = {{[0-9]+}}, bytes = [8192, 0, 4096]>, kas_cpu.serial
// CHECK:         linalg.matmul {{.*}} outs(%{{.*}} : tensor<64x16xf32>)
// CHECK-LABEL: func.func @forward_batch8(
// CHECK-SAME:    samples = 8, most = 64, cycles = {{[0-9]+}}, bytes = [1024, 0, 512]>, kas_cpu.serial
// CHECK:         linalg.matmul {{.*}} outs(%{{.*}} : tensor<8x16xf32>)
// CHECK-LABEL: func.func @forward_batch1(
// CHECK-SAME:    %{{.*}}: tensor<1x32xf32>, %{{.*}}: tensor<32x16xf32>) -> tensor<1x16xf32>
// CHECK-SAME:    samples = 1, most = 64, cycles = {{[0-9]+}}, bytes = [128, 0, 64]>, kas_cpu.serial
// CHECK:         linalg.matmul {{.*}} outs(%{{.*}} : tensor<1x16xf32>)
// CHECK-LABEL: func.func private @helper
// CHECK-NOT:     kas_cpu
// THREADS:       samples = 64
// THREADS-NOT:   kas_cpu.serial
func.func @forward(%x: tensor<64x32xf32>, %w: tensor<32x16xf32>) -> tensor<64x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x16xf32>) -> tensor<64x16xf32>
  %y = linalg.matmul ins(%x, %w : tensor<64x32xf32>, tensor<32x16xf32>) outs(%z : tensor<64x16xf32>) -> tensor<64x16xf32>
  return %y : tensor<64x16xf32>
}

func.func private @helper(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  return %x : tensor<2x2xf32>
}

// -----

// Two samples remain in the cache from layer to layer: 64 samples are parts of two, as are 8. Threads share these parts, or what there is of
// a single sample.
// CHECK-LABEL: func.func @small_batch2(
// CHECK-SAME:    samples = 2, most = 64, {{.*}} kas_cpu.serial
// CHECK-LABEL: func.func @small_batch1(
// CHECK-SAME:    samples = 1, most = 64, {{.*}} kas_cpu.serial
// CHECK-NOT:   func.func @small
// THREADS-LABEL: func.func @small_batch2(
// THREADS-SAME:    samples = 2, most = 64, {{.*}} kas_cpu.serial
// THREADS-LABEL: func.func @small_batch1(
// THREADS-SAME:    samples = 1, most = 64
// THREADS-NOT:     kas_cpu.serial
// THREADS-SAME:    {
func.func @small(%x: tensor<64x48x256xf32>, %v: tensor<48x48xf32>, %w: tensor<48x48xf32>) -> tensor<64x48x256xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x48x256xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x48x256xf32>) -> tensor<64x48x256xf32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(n, o, i, c) -> (n, c, i)>, affine_map<(n, o, i, c) -> (o, c)>, affine_map<(n, o, i, c) -> (n, o, i)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"]
  } ins(%x, %v : tensor<64x48x256xf32>, tensor<48x48xf32>) outs(%z : tensor<64x48x256xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %m, %s : f32
    linalg.yield %t : f32
  } -> tensor<64x48x256xf32>
  %r = linalg.generic {
    indexing_maps = [affine_map<(n, o, i, c) -> (n, c, i)>, affine_map<(n, o, i, c) -> (o, c)>, affine_map<(n, o, i, c) -> (n, o, i)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"]
  } ins(%y, %w : tensor<64x48x256xf32>, tensor<48x48xf32>) outs(%z : tensor<64x48x256xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %m, %s : f32
    linalg.yield %t : f32
  } -> tensor<64x48x256xf32>
  return %r : tensor<64x48x256xf32>
}

// -----

// A function of that name may be there.
// CHECK-LABEL: func.func @forward_batch2_0(
// CHECK-SAME:    of = "forward", samples = 2, most = 2
// CHECK-LABEL: func.func @forward_batch1(
func.func private @forward_batch2()
func.func @forward(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %y = arith.addf %x, %x : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
