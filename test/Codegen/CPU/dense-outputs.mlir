// RUN: kas-opt %s -split-input-file -kas-dense-outputs -canonicalize -cse | FileCheck %s
// RUN: kas-opt %s -split-input-file -kas-cpu-pipeline='threads=1 cpu=x86-64-v3 prepack-weights=true' --remarks-filter=kas-panels -o /dev/null 2>&1 | FileCheck %s --check-prefix=TILES --implicit-check-not=NotPacked

// Every contraction gets register tiles.
// TILES-COUNT-8: remark: [Passed]

#data = affine_map<(n, o, h, w, c, p, q) -> (n, c, h + p, w * 2 + q)>
#weight = affine_map<(n, o, h, w, c, p, q) -> (o, c, p, q)>
#output = affine_map<(n, o, h, w, c, p, q) -> (n, o, h, w)>

// Every second column of a bias: a smaller bias.
// CHECK-LABEL: func.func @columns
// CHECK-SAME:    %[[BIAS:[^ ]*]]: tensor<8xf32>
// CHECK:         %[[EMPTY:.*]] = tensor.empty() : tensor<1x8x16x8xf32>
// CHECK:         %[[INIT:.*]] = linalg.broadcast ins(%[[BIAS]] : tensor<8xf32>) outs(%[[EMPTY]] : tensor<1x8x16x8xf32>) dimensions = [0, 2, 3]
// CHECK:         linalg.generic {{.*}} outs(%[[INIT]] : tensor<1x8x16x8xf32>)
func.func @columns(%x: tensor<1x4x18x18xf32>, %w: tensor<8x4x3x3xf32>, %bias: tensor<8xf32>) -> tensor<1x8x16x8xf32> {
  %e = tensor.empty() : tensor<1x8x16x16xf32>
  %init = linalg.broadcast ins(%bias : tensor<8xf32>) outs(%e : tensor<1x8x16x16xf32>) dimensions = [0, 2, 3]
  %some = tensor.extract_slice %init[0, 0, 0, 0] [1, 8, 16, 8] [1, 1, 1, 2] : tensor<1x8x16x16xf32> to tensor<1x8x16x8xf32>
  %y = linalg.generic {indexing_maps = [#data, #weight, #output],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x4x18x18xf32>, tensor<8x4x3x3xf32>) outs(%some : tensor<1x8x16x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<1x8x16x8xf32>
  return %y : tensor<1x8x16x8xf32>
}

// Of any other tensor: a copy.
// CHECK-LABEL: func.func @copied
// CHECK:         %[[SOME:.*]] = tensor.extract_slice %{{.*}} [1, 1, 1, 2]
// CHECK:         %[[INIT:.*]] = linalg.copy ins(%[[SOME]]
// CHECK:         linalg.generic {{.*}} outs(%[[INIT]]
func.func @copied(%x: tensor<1x4x18x18xf32>, %w: tensor<8x4x3x3xf32>, %init: tensor<1x8x16x16xf32>) -> tensor<1x8x16x8xf32> {
  %some = tensor.extract_slice %init[0, 0, 0, 0] [1, 8, 16, 8] [1, 1, 1, 2] : tensor<1x8x16x16xf32> to tensor<1x8x16x8xf32>
  %y = linalg.generic {indexing_maps = [#data, #weight, #output],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x4x18x18xf32>, tensor<8x4x3x3xf32>) outs(%some : tensor<1x8x16x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<1x8x16x8xf32>
  return %y : tensor<1x8x16x8xf32>
}

// -----

#data = affine_map<(n, g, o, h, w, c, p, q) -> (n, g, c, h + p, w * 2 + q)>
#weight = affine_map<(n, g, o, h, w, c, p, q) -> (g, o, c, p, q)>
#output = affine_map<(n, g, o, h, w, c, p, q) -> (n, g, o, h, w)>

// The bias of a group after a split: what was inserted elsewhere is no part of it.
// CHECK-LABEL: func.func @groups
// CHECK-SAME:    %[[BIAS:[^ ]*]]: tensor<32xf32>
// CHECK:         %[[PART:.*]] = tensor.extract_slice %[[BIAS]][16] [16] [1]
// CHECK:         %[[PARTS:.*]] = tensor.expand_shape %[[PART]] {{\[\[}}0, 1]] output_shape [2, 8]
// CHECK:         %[[INIT:.*]] = linalg.broadcast ins(%[[PARTS]] : tensor<2x8xf32>) outs(%{{.*}} : tensor<1x2x8x16x8xf32>) dimensions = [0, 3, 4]
// CHECK:         linalg.generic {{.*}} outs(%[[INIT]]
func.func @groups(%x: tensor<1x2x4x18x18xf32>, %w: tensor<2x8x4x3x3xf32>, %first: tensor<1x16x16x16xf32>, %bias: tensor<32xf32>) -> tensor<1x2x8x16x8xf32> {
  %e = tensor.empty() : tensor<1x32x16x16xf32>
  %init = linalg.broadcast ins(%bias : tensor<32xf32>) outs(%e : tensor<1x32x16x16xf32>) dimensions = [0, 2, 3]
  %inserted = tensor.insert_slice %first into %init[0, 0, 0, 0] [1, 16, 16, 16] [1, 1, 1, 1] : tensor<1x16x16x16xf32> into tensor<1x32x16x16xf32>
  %part = tensor.extract_slice %inserted[0, 16, 0, 0] [1, 16, 16, 16] [1, 1, 1, 1] : tensor<1x32x16x16xf32> to tensor<1x16x16x16xf32>
  %parts = tensor.expand_shape %part [[0], [1, 2], [3], [4]] output_shape [1, 2, 8, 16, 16] : tensor<1x16x16x16xf32> into tensor<1x2x8x16x16xf32>
  %some = tensor.extract_slice %parts[0, 0, 0, 0, 0] [1, 2, 8, 16, 8] [1, 1, 1, 1, 2] : tensor<1x2x8x16x16xf32> to tensor<1x2x8x16x8xf32>
  %y = linalg.generic {indexing_maps = [#data, #weight, #output],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x2x4x18x18xf32>, tensor<2x8x4x3x3xf32>) outs(%some : tensor<1x2x8x16x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<1x2x8x16x8xf32>
  return %y : tensor<1x2x8x16x8xf32>
}

// What was inserted at the same place is.
// CHECK-LABEL: func.func @overwritten
// CHECK:         %[[INSERTED:.*]] = tensor.insert_slice
// CHECK:         tensor.extract_slice %[[INSERTED]]
// CHECK:         linalg.copy
func.func @overwritten(%x: tensor<1x2x4x18x18xf32>, %w: tensor<2x8x4x3x3xf32>, %first: tensor<1x24x16x16xf32>, %bias: tensor<32xf32>) -> tensor<1x2x8x16x8xf32> {
  %e = tensor.empty() : tensor<1x32x16x16xf32>
  %init = linalg.broadcast ins(%bias : tensor<32xf32>) outs(%e : tensor<1x32x16x16xf32>) dimensions = [0, 2, 3]
  %inserted = tensor.insert_slice %first into %init[0, 0, 0, 0] [1, 24, 16, 16] [1, 1, 1, 1] : tensor<1x24x16x16xf32> into tensor<1x32x16x16xf32>
  %part = tensor.extract_slice %inserted[0, 16, 0, 0] [1, 16, 16, 16] [1, 1, 1, 1] : tensor<1x32x16x16xf32> to tensor<1x16x16x16xf32>
  %parts = tensor.expand_shape %part [[0], [1, 2], [3], [4]] output_shape [1, 2, 8, 16, 16] : tensor<1x16x16x16xf32> into tensor<1x2x8x16x16xf32>
  %some = tensor.extract_slice %parts[0, 0, 0, 0, 0] [1, 2, 8, 16, 8] [1, 1, 1, 1, 2] : tensor<1x2x8x16x16xf32> to tensor<1x2x8x16x8xf32>
  %y = linalg.generic {indexing_maps = [#data, #weight, #output],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x2x4x18x18xf32>, tensor<2x8x4x3x3xf32>) outs(%some : tensor<1x2x8x16x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<1x2x8x16x8xf32>
  return %y : tensor<1x2x8x16x8xf32>
}

// -----

#data = affine_map<(n, o, h, s, w, c, p, q) -> (n, c, h + p, s, w + q)>
#weight = affine_map<(n, o, h, s, w, c, p, q) -> (s, o, c, p, q)>
#output = affine_map<(n, o, h, s, w, c, p, q) -> (n, o, h, s, w)>
#slabs = affine_map<(n, o, h, s, w, c, p, q) -> (s, n, o, h, w)>

// Slabs of columns come first and are put back afterwards.
// CHECK: #[[FIRST:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d3, d0, d1, d2, d4)>
// CHECK-LABEL: func.func @slabs
// CHECK:         %[[INIT:.*]] = linalg.broadcast {{.*}} outs(%{{.*}} : tensor<4x1x8x16x4xf32>) dimensions = [0, 1, 3, 4]
// CHECK:         %[[SUMS:.*]] = linalg.generic {indexing_maps = [{{.*}}, #[[FIRST]]]{{.*}} outs(%[[INIT]]
// CHECK:         linalg.transpose ins(%[[SUMS]] : tensor<4x1x8x16x4xf32>) {{.*}} permutation = [1, 2, 3, 0, 4]
func.func @slabs(%x: tensor<1x4x18x4x6xf32>, %w: tensor<4x8x4x3x3xf32>, %bias: tensor<8xf32>) -> tensor<1x8x16x4x4xf32> {
  %e = tensor.empty() : tensor<1x8x16x4x4xf32>
  %init = linalg.broadcast ins(%bias : tensor<8xf32>) outs(%e : tensor<1x8x16x4x4xf32>) dimensions = [0, 2, 3, 4]
  %y = linalg.generic {indexing_maps = [#data, #weight, #output],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x4x18x4x6xf32>, tensor<4x8x4x3x3xf32>) outs(%init : tensor<1x8x16x4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<1x8x16x4x4xf32>
  return %y : tensor<1x8x16x4x4xf32>
}

// -----

#data = affine_map<(n, h, w, c, p, q) -> (n, h + p, w + q, c)>
#weight = affine_map<(n, h, w, c, p, q) -> (p, q, c)>
#output = affine_map<(n, h, w, c, p, q) -> (n, h, w, c)>

// Channels after columns fill vectors by themselves, parts without holes are written in place, and what has a schedule stays.
// CHECK-LABEL: func.func @channels_last
// CHECK-NOT:     linalg.transpose
// CHECK:         return
func.func @channels_last(%x: tensor<1x10x10x16xf32>, %w: tensor<3x3x16xf32>, %init: tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32> {
  %y = linalg.generic {indexing_maps = [#data, #weight, #output],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x10x10x16xf32>, tensor<3x3x16xf32>) outs(%init : tensor<1x8x8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<1x8x8x16xf32>
  return %y : tensor<1x8x8x16xf32>
}

// CHECK-LABEL: func.func @part
// CHECK:         %[[PART:.*]] = tensor.extract_slice
// CHECK:         linalg.matmul {{.*}} outs(%[[PART]]
func.func @part(%x: tensor<8x16xf32>, %w: tensor<16x32xf32>, %init: tensor<16x32xf32>) -> tensor<8x32xf32> {
  %part = tensor.extract_slice %init[8, 0] [8, 32] [1, 1] : tensor<16x32xf32> to tensor<8x32xf32>
  %y = linalg.matmul ins(%x, %w : tensor<8x16xf32>, tensor<16x32xf32>) outs(%part : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}

// CHECK-LABEL: func.func @scheduled
// CHECK:         %[[PART:.*]] = tensor.extract_slice
// CHECK:         linalg.matmul {{.*}} outs(%[[PART]]
func.func @scheduled(%x: tensor<8x16xf32>, %w: tensor<16x32xf32>, %init: tensor<16x32xf32>) -> tensor<8x32xf32> {
  %part = tensor.extract_slice %init[0, 0] [8, 32] [2, 1] : tensor<16x32xf32> to tensor<8x32xf32>
  %y = linalg.matmul {kas_cpu.schedule = #kas_cpu.schedule<strategy = panels>} ins(%x, %w : tensor<8x16xf32>, tensor<16x32xf32>)
      outs(%part : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}
