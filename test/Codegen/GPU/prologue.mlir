// The mean of an image and the linear layer after it are one kernel where that is expected to take less time: each block computes all means.
// RUN: kas-opt %s -kas-gpu-front-half=device=sm_90 | FileCheck %s
// RUN: kas-opt %s -kas-gpu-front-half='device=sm_90a libraries=auto precision=f16 elements=f16' | FileCheck %s --check-prefix=HALF
// DEFINE: %{run} = kas-run %s --check=%s --device=emulator:sm_90
// RUN: %{run} --function=classify --args=2 | FileCheck %s --check-prefix=VALUES
// RUN: %{run} --function=classify --args=3 --precision=f16 --elements=f16 --tolerance=1e-2 | FileCheck %s --check-prefix=VALUES
// RUN: %{run} --function=byHand --args=4 | FileCheck %s --check-prefix=VALUES
// RUN: kas-run %s --check=%s --device=vulkan --function=byHand --args=5 | FileCheck %s --check-prefix=VALUES
// RUN: %{run} --function=scale --args=6 | FileCheck %s --check-prefix=VALUES
// VALUES: ok

#image = affine_map<(n, c, h, w) -> (n, c, h, w)>
#channels = affine_map<(n, c, h, w) -> (n, c)>
#row = affine_map<(n, o, c) -> (n, c)>
#weight = affine_map<(n, o, c) -> (o, c)>
#result = affine_map<(n, o, c) -> (n, o)>
#pair = affine_map<(n, c) -> (n, c)>

// Means lie in workgroup memory, of 16 bits where tensors have 16 bits; the kernel has no argument for them.
// CHECK-LABEL: func.func @classify
// CHECK-COUNT-1: gpu.launch_func
// CHECK-NOT: gpu.launch_func
// HALF-LABEL: func.func @classify
// HALF-COUNT-1: gpu.launch_func
// HALF-NOT: gpu.launch_func
// HALF-LABEL: func.func @batch
func.func @classify(%x: tensor<1x128x4x4xf32>, %w: tensor<40x128xf32> {kas.name = "w"}) -> tensor<1x40xf32> {
  %zero = arith.constant 0.0 : f32
  %size = arith.constant 16.0 : f32
  %e = tensor.empty() : tensor<1x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x128xf32>) -> tensor<1x128xf32>
  %sum = linalg.generic {indexing_maps = [#image, #channels],
                         iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x : tensor<1x128x4x4xf32>) outs(%f : tensor<1x128xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<1x128xf32>
  %mean = linalg.generic {indexing_maps = [#pair, #pair], iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<1x128xf32>) outs(%e : tensor<1x128xf32>) {
  ^bb0(%in: f32, %out: f32):
    %d = arith.divf %in, %size : f32
    linalg.yield %d : f32
  } -> tensor<1x128xf32>
  %e1 = tensor.empty() : tensor<1x40xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<1x40xf32>) -> tensor<1x40xf32>
  %y = linalg.generic {indexing_maps = [#row, #weight, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%mean, %w : tensor<1x128xf32>, tensor<40x128xf32>) outs(%f1 : tensor<1x40xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  } -> tensor<1x40xf32>
  return %y : tensor<1x40xf32>
}

// Many images are not computed by each block.
// CHECK-LABEL: func.func @batch
// CHECK-COUNT-2: gpu.launch_func
func.func @batch(%x: tensor<64x128x4x4xf32>, %w: tensor<40x128xf32> {kas.name = "w"}) -> tensor<64x40xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %sum = linalg.generic {indexing_maps = [#image, #channels],
                         iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x : tensor<64x128x4x4xf32>) outs(%f : tensor<64x128xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<64x128xf32>
  %e1 = tensor.empty() : tensor<64x40xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<64x40xf32>) -> tensor<64x40xf32>
  %y = linalg.generic {indexing_maps = [#row, #weight, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%sum, %w : tensor<64x128xf32>, tensor<40x128xf32>) outs(%f1 : tensor<64x40xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  } -> tensor<64x40xf32>
  return %y : tensor<64x40xf32>
}

// A mean that something else reads as well is stored.
// CHECK-LABEL: func.func @scale
// CHECK-COUNT-2: gpu.launch_func
func.func @scale(%x: tensor<1x128x4x4xf32>, %w: tensor<128x128xf32> {kas.name = "w"}) -> tensor<1x128xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x128xf32>) -> tensor<1x128xf32>
  %sum = linalg.generic {indexing_maps = [#image, #channels],
                         iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x : tensor<1x128x4x4xf32>) outs(%f : tensor<1x128xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<1x128xf32>
  %y = linalg.generic {indexing_maps = [#row, #weight, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%sum, %w : tensor<1x128xf32>, tensor<128x128xf32>) outs(%f : tensor<1x128xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  } -> tensor<1x128xf32>
  %z = linalg.generic {indexing_maps = [#pair, #pair, #pair], iterator_types = ["parallel", "parallel"]}
      ins(%y, %sum : tensor<1x128xf32>, tensor<1x128xf32>) outs(%e : tensor<1x128xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<1x128xf32>
  return %z : tensor<1x128xf32>
}

// By hand, for two images, a maximum in place of a sum, and more points than threads, whose number does not divide theirs.
// CHECK-LABEL: func.func @byHand
// CHECK-COUNT-1: gpu.launch_func
// CHECK-NOT: gpu.launch_func
// CHECK: gpu.func @classify_0
// CHECK-SAME: workgroup(%[[MEANS:arg[0-9]+]] : memref<128xf32
// CHECK: arith.divf
// CHECK: memref.store %{{.*}}, %[[MEANS]]
// CHECK: gpu.barrier
// CHECK: memref.load %[[MEANS]]
// CHECK: gpu.func @byHand_0
// CHECK: scf.for
// CHECK: scf.if
// CHECK: arith.maximumf
func.func @byHand(%x: tensor<2x24x3x3xf32>, %w: tensor<6x24xf32> {kas.name = "w"}) -> tensor<2x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x24xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x24xf32>) -> tensor<2x24xf32>
  %max = linalg.generic {indexing_maps = [#image, #channels],
                         iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x : tensor<2x24x3x3xf32>) outs(%f : tensor<2x24xf32>) attrs = {kas_gpu.prologue} {
  ^bb0(%in: f32, %out: f32):
    %s = arith.maximumf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<2x24xf32>
  %e1 = tensor.empty() : tensor<2x6xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<2x6xf32>) -> tensor<2x6xf32>
  %y = linalg.generic {indexing_maps = [#row, #weight, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%max, %w : tensor<2x24xf32>, tensor<6x24xf32>) outs(%f1 : tensor<2x6xf32>)
      attrs = {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 32, tile = [1, 1], depth = 8>} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  } -> tensor<2x6xf32>
  return %y : tensor<2x6xf32>
}
