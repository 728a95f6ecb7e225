// RUN: kas-opt %s -kas-attach-cpu-target=cpu=x86-64-v4 -kas-split-batch=threads=2 | FileCheck %s
// RUN: kas-opt %s -kas-attach-cpu-target=cpu=x86-64-v4 -kas-split-batch=threads=1 | FileCheck %s --check-prefix=SERIAL

// 16 MB for each sample do not remain in any cache; two threads share the samples.
// CHECK-LABEL: func.func @chain
// CHECK-SAME:    kas_cpu.batch_parts = #kas_cpu.batch_parts<count = 2
// SERIAL-LABEL: func.func @chain
// SERIAL-NOT:     kas_cpu.batch_parts
func.func @chain(%x: tensor<8x32768x64xf32>, %w: tensor<64x64xf32>, %v: tensor<64x64xf32>, %h: tensor<64x64xf32>) -> tensor<8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %f = tensor.collapse_shape %x [[0, 1], [2]] : tensor<8x32768x64xf32> into tensor<262144x64xf32>
  %e = tensor.empty() : tensor<262144x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<262144x64xf32>) -> tensor<262144x64xf32>
  %y = linalg.matmul ins(%f, %w : tensor<262144x64xf32>, tensor<64x64xf32>) outs(%z : tensor<262144x64xf32>) -> tensor<262144x64xf32>
  %y2 = linalg.matmul ins(%y, %v : tensor<262144x64xf32>, tensor<64x64xf32>) outs(%z : tensor<262144x64xf32>) -> tensor<262144x64xf32>
  %t = tensor.expand_shape %y2 [[0, 1], [2]] output_shape [8, 32768, 64] : tensor<262144x64xf32> into tensor<8x32768x64xf32>
  %e3 = tensor.empty() : tensor<8x64xf32>
  %z3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<8x64xf32>) -> tensor<8x64xf32>
  %m = linalg.reduce ins(%t : tensor<8x32768x64xf32>) outs(%z3 : tensor<8x64xf32>) dimensions = [1]
    (%a: f32, %b: f32) { %s = arith.addf %a, %b : f32
      linalg.yield %s : f32 }
  %o = linalg.matmul ins(%m, %h : tensor<8x64xf32>, tensor<64x64xf32>) outs(%z3 : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %o : tensor<8x64xf32>
}

// What all samples have together comes from memory, what a part has from the cache that cores share.
// CHECK-LABEL: func.func @images
// CHECK-SAME:    kas_cpu.batch_parts = #kas_cpu.batch_parts<count =
// SERIAL-LABEL: func.func @images
// SERIAL-SAME:    kas_cpu.batch_parts = #kas_cpu.batch_parts<count = 4,
func.func @images(%x: tensor<64x4096x16xf32>, %w: tensor<16x16xf32>, %v: tensor<16x16xf32>) -> tensor<64x4096x16xf32> {
  %zero = arith.constant 0.0 : f32
  %f = tensor.collapse_shape %x [[0, 1], [2]] : tensor<64x4096x16xf32> into tensor<262144x16xf32>
  %e = tensor.empty() : tensor<262144x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<262144x16xf32>) -> tensor<262144x16xf32>
  %y = linalg.matmul ins(%f, %w : tensor<262144x16xf32>, tensor<16x16xf32>) outs(%z : tensor<262144x16xf32>) -> tensor<262144x16xf32>
  %y2 = linalg.matmul ins(%y, %v : tensor<262144x16xf32>, tensor<16x16xf32>) outs(%z : tensor<262144x16xf32>) -> tensor<262144x16xf32>
  %t = tensor.expand_shape %y2 [[0, 1], [2]] output_shape [64, 4096, 16] : tensor<262144x16xf32> into tensor<64x4096x16xf32>
  return %t : tensor<64x4096x16xf32>
}

// A schedule was chosen for all of the batch.
// CHECK-LABEL: func.func @scheduled
// CHECK-NOT:     kas_cpu.batch_parts
func.func @scheduled(%x: tensor<8x32768x64xf32>, %w: tensor<64x64xf32>, %v: tensor<64x64xf32>, %h: tensor<64x64xf32>) -> tensor<8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %f = tensor.collapse_shape %x [[0, 1], [2]] : tensor<8x32768x64xf32> into tensor<262144x64xf32>
  %e = tensor.empty() : tensor<262144x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<262144x64xf32>) -> tensor<262144x64xf32>
  %y = linalg.matmul ins(%f, %w : tensor<262144x64xf32>, tensor<64x64xf32>) outs(%z : tensor<262144x64xf32>) -> tensor<262144x64xf32>
  %y2 = linalg.matmul ins(%y, %v : tensor<262144x64xf32>, tensor<64x64xf32>) outs(%z : tensor<262144x64xf32>) -> tensor<262144x64xf32>
  %t = tensor.expand_shape %y2 [[0, 1], [2]] output_shape [8, 32768, 64] : tensor<262144x64xf32> into tensor<8x32768x64xf32>
  %e3 = tensor.empty() : tensor<8x64xf32>
  %z3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<8x64xf32>) -> tensor<8x64xf32>
  %m = linalg.reduce ins(%t : tensor<8x32768x64xf32>) outs(%z3 : tensor<8x64xf32>) dimensions = [1]
    (%a: f32, %b: f32) { %s = arith.addf %a, %b : f32
      linalg.yield %s : f32 }
  %o = linalg.matmul {kas_cpu.schedule = #kas_cpu.schedule<strategy = panels, rows = 8, vectors = 1>} ins(%m, %h : tensor<8x64xf32>, tensor<64x64xf32>) outs(%z3 : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %o : tensor<8x64xf32>
}

// One layer alone is shared by threads as it is.
// CHECK-LABEL: func.func @layer
// CHECK-NOT:     kas_cpu.batch_parts
func.func @layer(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %y = linalg.matmul ins(%x, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%z : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// Channels at 16x16 of two samples remain in the cache from layer to layer.
// CHECK-LABEL: func.func @small
// CHECK-SAME:    kas_cpu.batch_parts = #kas_cpu.batch_parts<count = 32
// SERIAL-LABEL: func.func @small
// SERIAL-SAME:    kas_cpu.batch_parts = #kas_cpu.batch_parts<count = 32
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

// The stages of an operator are steps of their own, whose intermediate of 6 MB remains in the cache in parts; these fill vectors.
// SERIAL-LABEL: func.func @stages
// SERIAL-SAME:    kas_cpu.batch_parts = #kas_cpu.batch_parts<count = {{8|16|32}},
kas.operator private @monarch(%n: 512, %o: 3072) from [512, 768] {
  %g = kas.reduce sum : 16
  %i = kas.reduce sum : 48
  %g_1, %g_2 = kas.share %g : 16
  %i_d, %i_w = kas.share %i : 48
  %j, %p = kas.merge %o by 16 : 3072
  %j_1, %j_2 = kas.share %j : 192
  %g_d, %g_w = kas.share %g_1 : 16
  %x = kas.split %g_d, %i_d : 16, 48
  kas.yield data(%n, %x) weight(%g_w, %i_w, %j_1) weight(%j_2, %g_2, %p)
}
func.func @stages(%x: tensor<512x768xf32>, %v: tensor<16x48x192xf32>, %w: tensor<192x16x16xf32>) -> tensor<512x3072xf32> {
  %y = kas.apply @monarch(%x, %v, %w) : (tensor<512x768xf32>, tensor<16x48x192xf32>, tensor<192x16x16xf32>) -> tensor<512x3072xf32>
  return %y : tensor<512x3072xf32>
}
