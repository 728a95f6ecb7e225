// A single version: there is nothing to choose, which LLVM's translation has to take.
// RUN: kas-opt %s -kas-attach-cpu-target=cpu=x86-64-v3 -kas-batch-versions=threads=1 | FileCheck %s
// RUN: kas-opt %s -kas-cpu-pipeline='cpu=x86-64-v3 threads=1 prepack-weights=true any-batch=true' | kas-translate -kas-to-object -o %t.o
// RUN: llvm-nm %t.o | FileCheck %s --check-prefix=SYMBOLS

// CHECK-LABEL: func.func @chain_batch1(
// CHECK-SAME:    samples = 1, most = 8
// CHECK-NOT:   func.func

// SYMBOLS-NOT: {{ T }}
// SYMBOLS:     {{ T }}chain
// SYMBOLS-NOT: {{ T }}

func.func @chain(%x: tensor<8x8x1024xf32>, %v: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8x1024xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8x1024xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8x1024xf32>) -> tensor<8x8x1024xf32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(n, o, i, c) -> (n, c, i)>, affine_map<(n, o, i, c) -> (o, c)>, affine_map<(n, o, i, c) -> (n, o, i)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"]
  } ins(%x, %v : tensor<8x8x1024xf32>, tensor<8x8xf32>) outs(%z : tensor<8x8x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %m, %s : f32
    linalg.yield %t : f32
  } -> tensor<8x8x1024xf32>
  %r = linalg.generic {
    indexing_maps = [affine_map<(n, o, i, c) -> (n, c, i)>, affine_map<(n, o, i, c) -> (o, c)>, affine_map<(n, o, i, c) -> (n, o, i)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"]
  } ins(%y, %w : tensor<8x8x1024xf32>, tensor<8x8xf32>) outs(%z : tensor<8x8x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %m, %s : f32
    linalg.yield %t : f32
  } -> tensor<8x8x1024xf32>
  return %r : tensor<8x8x1024xf32>
}
