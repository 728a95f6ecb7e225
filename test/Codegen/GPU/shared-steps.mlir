// Direct kernels whose threads share the steps of a tile: chosen for products of a matrix and a vector, right for all sums of products.
// RUN: kas-opt %s -kas-gpu-front-half=device=sm_90 | FileCheck %s
// DEFINE: %{run} = kas-run %s --args=2 --check=%s --device=emulator:sm_90
// RUN: %{run} --function=vector | FileCheck %s --check-prefix=VALUES
// RUN: %{run} --function=vector --precision=f16 --elements=f16 --tolerance=1e-2 | FileCheck %s --check-prefix=VALUES
// RUN: %{run} --function=window | FileCheck %s --check-prefix=VALUES
// RUN: %{run} --function=window --elements=f16 --tolerance=1e-2 | FileCheck %s --check-prefix=VALUES
// RUN: %{run} --function=narrow | FileCheck %s --check-prefix=VALUES
// RUN: %{run} --function=columns | FileCheck %s --check-prefix=VALUES
// RUN: kas-run %s --args=2 --check=%s --device=vulkan --function=columns | FileCheck %s --check-prefix=VALUES
// RUN: kas-run %s --args=2 --check=%s --device=vulkan --function=window | FileCheck %s --check-prefix=VALUES
// RUN: kas-run %s --args=2 --check=%s --device=vulkan --function=narrow | FileCheck %s --check-prefix=VALUES
// VALUES: ok

kas.operator @product<M, N, K> (%m: M, %n: N) from [M, K] {
  %k = kas.reduce sum : K
  %k_d, %k_w = kas.share %k : K
  kas.yield data(%m, %k_d) weight(%n, %k_w)
}
kas.operator @columnwise<M, N, K> (%m: M, %n: N) from [M, K] {
  %k = kas.reduce sum : K
  %k_d, %k_w = kas.share %k : K
  kas.yield data(%m, %k_d) weight(%k_w, %n)
}
kas.operator @windows<N, Cin, Cout, W | k>
    (%n: N, %o: Cout, %w: W) from [N, Cin, W] {
  %j = kas.reduce mean : k
  %c = kas.reduce sum : Cin
  %c_d, %c_w = kas.share %c : Cin
  %j_d, %j_w = kas.share %j : k
  %x = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %c_d, %x) weight(%o, %c_w, %j_w)
}

// A thread reads each 32nd element of a row; 16 sums of a half are added to those of the other, then 8, 4, 2 and 1.
// CHECK-LABEL: gpu.func @vector_0
// CHECK: scf.for {{.*}} to %c3 step
// CHECK: memref.store %{{.*}}, %[[SUMS:arg[0-9]+]]
// CHECK-COUNT-5: gpu.barrier
// CHECK-NOT: gpu.barrier
func.func @vector(%x: tensor<1x96xf32>, %w: tensor<50x96xf32>) -> tensor<1x50xf32> {
  %y = kas.apply @product(%x, %w) : (tensor<1x96xf32>, tensor<50x96xf32>) -> tensor<1x50xf32>
  return %y : tensor<1x50xf32>
}

// The sum of channels is shared, that of windows, whose ends are guarded, is not. Tiles end beyond the last point; the
// last block has threads beyond the last tile.
// CHECK-LABEL: gpu.func @window_0
// CHECK: arith.minui
func.func @window(%x: tensor<2x24x7xf32>, %w: tensor<5x24x3xf32>) -> tensor<2x5x7xf32> {
  %y = kas.apply @windows<k = 3>(%x, %w)
    {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 32, tile = [1, 2, 4], depth = 8>}
    : (tensor<2x24x7xf32>, tensor<5x24x3xf32>) -> tensor<2x5x7xf32>
  return %y : tensor<2x5x7xf32>
}

// Neighbours in memory are columns here, so neighbouring threads have those, and each fourth one the same.
// CHECK-LABEL: gpu.func @columns_0
// CHECK: %[[LANE:.*]] = arith.divui %thread_id_x, %c4
func.func @columns(%x: tensor<1x64xf32>, %w: tensor<64x12xf32>) -> tensor<1x12xf32> {
  %y = kas.apply @columnwise(%x, %w)
    {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 32, tile = [1, 1], depth = 8>}
    : (tensor<1x64xf32>, tensor<64x12xf32>) -> tensor<1x12xf32>
  return %y : tensor<1x12xf32>
}

// As many steps as threads: there is no loop.
// CHECK-LABEL: gpu.func @narrow_0
// CHECK-NOT: scf.for
func.func @narrow(%x: tensor<3x16xf32>, %w: tensor<8x16xf32>) -> tensor<3x8xf32> {
  %y = kas.apply @product(%x, %w)
    {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 64, tile = [1, 1], depth = 16>}
    : (tensor<3x16xf32>, tensor<8x16xf32>) -> tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}
