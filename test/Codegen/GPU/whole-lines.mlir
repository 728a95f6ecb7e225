// Results of 16 bits whose rows are no multiple of a vector, such as images of 7x7: a block has whole images of some
// channels, which follow each other in memory, and stores vectors across them.
// RUN: kas-opt %s -kas-gpu-front-half='device=sm_90 elements=f16 precision=f16' | FileCheck %s
// RUN: kas-opt %s -kas-nvvm-pipeline='chip=sm_90 elements=f16 precision=f16' | kas-translate -kas-gpu-to-binary | FileCheck %s --check-prefix=PTX
// DEFINE: %{run} = kas-run %s --args=2 --check=%s --elements=f16 --precision=f16 --tolerance=1e-2
// RUN: %{run} --function=images --device=emulator:sm_90 | FileCheck %s --check-prefix=VALUES
// RUN: %{run} --function=epilogue --device=emulator:sm_80 | FileCheck %s --check-prefix=VALUES
// RUN: %{run} --function=epilogue --device=emulator:sm_90 | FileCheck %s --check-prefix=VALUES
// RUN: %{run} --function=slabs --device=emulator:sm_80 | FileCheck %s --check-prefix=VALUES
// RUN: %{run} --function=exchanged --device=emulator:sm_90 | FileCheck %s --check-prefix=VALUES
// RUN: %{run} --function=parts --device=emulator:sm_90 | FileCheck %s --check-prefix=VALUES
// RUN: %{run} --function=smallParts --device=emulator:sm_80 | FileCheck %s --check-prefix=VALUES
// RUN: %{run} --function=few --device=emulator:sm_90 | FileCheck %s --check-prefix=VALUES
// VALUES: ok

kas.operator @pointwise<N, Cin, Cout, H, W> (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %c_d, %c_w = kas.share %c : Cin
  kas.yield data(%n, %c_d, %h, %w) weight(%o, %c_w)
}
kas.operator @product<M, N, K> (%m: M, %n: N) from [M, K] {
  %k = kas.reduce sum : K
  %k_d, %k_w = kas.share %k : K
  kas.yield data(%m, %k_d) weight(%k_w, %n)
}

// Two images by two blocks of 32 of the 40 channels. Results lie in workgroup memory as in the result, in lines of 49
// elements; what a fragment has beyond is left out, and so are vectors beyond the last channel.
// CHECK-LABEL: gpu.func @images_0
// CHECK-SAME: known_grid_size = array<i32: 4, 1, 1>
// CHECK: %[[RESULTS:.*]] = memref.view %{{.*}} to memref<1568xf16
// CHECK-NOT: kas_gpu.store_matrix
// CHECK: memref.store %{{.*}}, %[[RESULTS]]
// CHECK: gpu.barrier
// CHECK: vector.load %[[RESULTS]]{{.*}} {alignment = 16 : i64} {{.*}} vector<8xf16>
// CHECK: vector.store %{{.*}}, %arg2{{.*}} {alignment = 16 : i64} : memref<3920xf16>, vector<8xf16>
// CHECK-NOT: memref.store %{{.*}}, %arg2
// PTX-LABEL: .entry images_0(
// PTX-NOT: st.global{{.*}}.b16
// PTX: st.global.v4.b32
// PTX-NOT: st.global{{.*}}.b16
func.func @images(%x: tensor<2x32x7x7xf32>, %w: tensor<40x32xf32>) -> tensor<2x40x7x7xf32> {
  %y = kas.apply @pointwise(%x, %w)
    {kas_gpu.schedule = #kas_gpu.schedule<strategy = tensor_core, threads = 64, tile = [16, 64], block = [32, 64],
                                          depth = 16, padding = 8, stages = 2, precision = f16>}
    : (tensor<2x32x7x7xf32>, tensor<40x32xf32>) -> tensor<2x40x7x7xf32>
  return %y : tensor<2x40x7x7xf32>
}

// With an epilogue sums of 32 bits lie there; its operands are read for the channel that each lane is of.
// CHECK-LABEL: gpu.func @epilogue_0
// CHECK: memref.view %{{.*}} to memref<784xf32
// CHECK: vector.load %arg3{{.*}} vector<8xf16>
// CHECK: vector.store %{{.*}}, %arg4{{.*}} {alignment = 16 : i64} {{.*}} vector<8xf16>
// PTX-LABEL: .entry epilogue_0(
// PTX-NOT: st.global{{.*}}.b16
// PTX: st.global.v4.b32
// PTX-NOT: st.global{{.*}}.b16
#all = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#channel = affine_map<(d0, d1, d2, d3) -> (d1)>
func.func @epilogue(%x: tensor<3x32x7x7xf32>, %w: tensor<48x32xf32>, %b: tensor<48xf32>, %r: tensor<3x48x7x7xf32> {kas.data})
    -> tensor<3x48x7x7xf32> {
  %s = kas.apply @pointwise(%x, %w)
    {kas_gpu.schedule = #kas_gpu.schedule<strategy = tensor_core, threads = 64, tile = [16, 32], block = [16, 64],
                                          depth = 32, padding = 8, stages = 2, precision = f16>}
    : (tensor<3x32x7x7xf32>, tensor<48x32xf32>) -> tensor<3x48x7x7xf32>
  %e = tensor.empty() : tensor<3x48x7x7xf32>
  %zero = arith.constant 0.0 : f32
  %y = linalg.generic {indexing_maps = [#all, #channel, #all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s, %b, %r : tensor<3x48x7x7xf32>, tensor<48xf32>, tensor<3x48x7x7xf32>) outs(%e : tensor<3x48x7x7xf32>) {
  ^bb0(%p: f32, %q: f32, %t: f32, %o: f32):
    %1 = arith.addf %p, %q : f32
    %2 = arith.addf %1, %t : f32
    %3 = arith.maximumf %2, %zero : f32
    linalg.yield %3 : f32
  } -> tensor<3x48x7x7xf32>
  return %y : tensor<3x48x7x7xf32>
}

// Less memory than a block has sums: each warp has 16 of its rows there at once. Images of 15x15.
// CHECK-LABEL: gpu.func @slabs_0
// CHECK: memref.view %{{.*}} to memref<7200xf32
// CHECK-COUNT-2: vector.store %{{.*}}, %arg2{{.*}} {alignment = 16 : i64} {{.*}} vector<8xf16>
// PTX-LABEL: .entry slabs_0(
// PTX-NOT: st.global{{.*}}.b16
// PTX: st.global.v4.b32
// PTX-NOT: st.global{{.*}}.b16
func.func @slabs(%x: tensor<2x16x15x15xf32>, %w: tensor<64x16xf32>) -> tensor<2x64x15x15xf32> {
  %s = kas.apply @pointwise(%x, %w)
    {kas_gpu.schedule = #kas_gpu.schedule<strategy = tensor_core, threads = 256, tile = [32, 64], block = [64, 256],
                                          depth = 16, padding = 8, stages = 2, precision = f16>}
    : (tensor<2x16x15x15xf32>, tensor<64x16xf32>) -> tensor<2x64x15x15xf32>
  %e = tensor.empty() : tensor<2x64x15x15xf32>
  %zero = arith.constant 0.0 : f32
  %y = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s : tensor<2x64x15x15xf32>) outs(%e : tensor<2x64x15x15xf32>) {
  ^bb0(%p: f32, %o: f32):
    %1 = arith.maximumf %p, %zero : f32
    linalg.yield %1 : f32
  } -> tensor<2x64x15x15xf32>
  return %y : tensor<2x64x15x15xf32>
}

// Rows of the weight are the columns of a block here: 13 classes.
// CHECK-LABEL: gpu.func @exchanged_0
// CHECK: memref.view %{{.*}} to memref<416xf16
// CHECK: vector.store %{{.*}}, %arg2{{.*}} vector<8xf16>
// PTX-LABEL: .entry exchanged_0(
// PTX-NOT: st.global{{.*}}.b16
// PTX: st.global.v4.b32
// PTX-NOT: st.global{{.*}}.b16
func.func @exchanged(%x: tensor<40x32xf32>, %w: tensor<32x13xf32>) -> tensor<40x13xf32> {
  %y = kas.apply @product(%x, %w)
    {kas_gpu.schedule = #kas_gpu.schedule<strategy = tensor_core, threads = 64, tile = [16, 16], block = [32, 16],
                                          depth = 16, padding = 8, stages = 2, precision = f16>}
    : (tensor<40x32xf32>, tensor<32x13xf32>) -> tensor<40x13xf32>
  return %y : tensor<40x13xf32>
}

// Blocks that are narrower than a row take columns of both images, in parts: pairs at even addresses, and by themselves
// the first or last element of a part: 4 places in each of 32 rows, two for each of 64 threads.
// CHECK-LABEL: gpu.func @parts_0
// CHECK-SAME: known_grid_size = array<i32: 8, 1, 1>
// CHECK: vector.store %{{.*}}, %arg2{{.*}} {alignment = 4 : i64} {{.*}} vector<2xf16>
// CHECK-COUNT-2: vector.store %{{.*}}, %arg2{{.*}} {alignment = 2 : i64} {{.*}} vector<1xf16>
// CHECK-NOT: vector.store %{{.*}}, %arg2
// PTX-LABEL: .entry parts_0(
// PTX: st.global.b32
// PTX-COUNT-2: st.global.b16
// PTX-NOT: st.global.b16
func.func @parts(%x: tensor<2x32x7x7xf32>, %w: tensor<40x32xf32>) -> tensor<2x40x7x7xf32> {
  %y = kas.apply @pointwise(%x, %w)
    {kas_gpu.schedule = #kas_gpu.schedule<strategy = tensor_core, threads = 64, tile = [16, 32], block = [32, 32],
                                          depth = 16, padding = 8, stages = 2, precision = f16>}
    : (tensor<2x32x7x7xf32>, tensor<40x32xf32>) -> tensor<2x40x7x7xf32>
  return %y : tensor<2x40x7x7xf32>
}

// Images that begin at multiples of four elements have vectors of four.
// CHECK-LABEL: gpu.func @few_0
// CHECK: vector.store %{{.*}}, %arg2{{.*}} {alignment = 8 : i64} {{.*}} vector<4xf16>
// PTX-LABEL: .entry few_0(
// PTX-NOT: st.global{{.*}}.b16
// PTX: st.global.v2.b32
func.func @few(%x: tensor<2x32x7x7xf32>, %w: tensor<20x32xf32>) -> tensor<2x20x7x7xf32> {
  %y = kas.apply @pointwise(%x, %w)
    {kas_gpu.schedule = #kas_gpu.schedule<strategy = tensor_core, threads = 64, tile = [16, 64], block = [32, 64],
                                          depth = 16, padding = 8, stages = 2, precision = f16>}
    : (tensor<2x32x7x7xf32>, tensor<20x32xf32>) -> tensor<2x20x7x7xf32>
  return %y : tensor<2x20x7x7xf32>
}

// Several images in a block, none of which begins at a multiple of two elements, and channels that no block divides.
func.func @smallParts(%x: tensor<5x16x3x3xf32>, %w: tensor<21x16xf32>, %b: tensor<21xf32>) -> tensor<5x21x3x3xf32> {
  %s = kas.apply @pointwise(%x, %w)
    {kas_gpu.schedule = #kas_gpu.schedule<strategy = tensor_core, threads = 64, tile = [16, 16], block = [16, 32],
                                          depth = 16, padding = 8, stages = 2, precision = f16>}
    : (tensor<5x16x3x3xf32>, tensor<21x16xf32>) -> tensor<5x21x3x3xf32>
  %e = tensor.empty() : tensor<5x21x3x3xf32>
  %y = linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s, %b : tensor<5x21x3x3xf32>, tensor<21xf32>) outs(%e : tensor<5x21x3x3xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %1 = arith.addf %p, %q : f32
    linalg.yield %1 : f32
  } -> tensor<5x21x3x3xf32>
  return %y : tensor<5x21x3x3xf32>
}
