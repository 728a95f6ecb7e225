// RUN: kas-opt %s -kas-attach-cpu-target=cpu=x86-64-v4 -kas-winograd=threads=1 -split-input-file | FileCheck %s
// RUN: kas-opt %s -kas-attach-cpu-target=cpu=x86-64-v4 -kas-winograd=threads=2 -split-input-file | FileCheck %s --check-prefix=SHARED
// RUN: kas-opt %s -kas-attach-cpu-target=cpu=x86-64-v3 -kas-winograd=threads=1 -split-input-file | FileCheck %s --check-prefix=SHORT
// RUN: kas-opt %s -kas-attach-cpu-target=cpu=neoverse-n1 -kas-winograd=threads=1 -split-input-file | FileCheck %s --check-prefix=NEON

#data = affine_map<(n, k, y, x, c, i, j) -> (n, c, y + i, x + j)>
#gradient = affine_map<(n, k, y, x, c, i, j) -> (n, k, y, x)>
#result = affine_map<(n, k, y, x, c, i, j) -> (k, c, i, j)>

// The image of 32x32 with zeros around it is transposed to 34x34 lines of 16 channels, the gradient, which has none, to 32x32. Tiles of
// three of the twelve images at a time: 3 x 64 tiles of 16 channels for each of 36 points, an odd number of cache lines apart. Sums begin
// with zeros, and the windows have their outputs last, until they are transposed.
// CHECK-LABEL: func.func @by_weight(
// CHECK-SAME:    %[[X:[a-z0-9]*]]: tensor<12x16x32x32xf32>, %[[G:[a-z0-9]*]]: tensor<12x16x32x32xf32>
// CHECK-DAG:     bufferization.to_buffer %[[X]]
// CHECK-DAG:     bufferization.to_buffer %[[G]]
// CHECK:         scf.for %{{.*}} = %{{.*}} to %c12{{[_0-9]*}} step %c3{{[_0-9]*}} {
// CHECK:           memref.alloc() {alignment = 64 : i64} : memref<18496xf32>
// CHECK:           vector.shuffle
// CHECK-COUNT-36:  vector.load
// CHECK-COUNT-36:  vector.store
// CHECK:           memref.alloc() {alignment = 64 : i64} : memref<16384xf32>
// CHECK:         memref.alloc() {alignment = 64 : i64} : memref<16x3x3x16xf32>
// CHECK:         linalg.transpose ins(%{{.*}} : tensor<16x3x3x16xf32>) outs(%{{.*}} : tensor<16x16x3x3xf32>) permutation = [3, 0, 1, 2]
// CHECK-NOT:     linalg.generic
// CHECK:         return
// SHARED-LABEL: func.func @by_weight(
// SHARED:         scf.parallel
// SHARED-NOT:     linalg.generic
// SHARED:         return
// NEON-LABEL: func.func @by_weight(
// NEON:         linalg.generic
func.func @by_weight(%x: tensor<12x16x32x32xf32>, %g: tensor<12x16x32x32xf32>) -> tensor<16x16x3x3xf32> {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<12x16x32x32xf32> to tensor<12x16x34x34xf32>
  %empty = tensor.empty() : tensor<16x16x3x3xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x16x3x3xf32>) -> tensor<16x16x3x3xf32>
  %y = linalg.generic {indexing_maps = [#data, #gradient, #result],
      iterator_types = ["reduction", "parallel", "reduction", "reduction", "parallel", "parallel", "parallel"]}
      ins(%padded, %g : tensor<12x16x34x34xf32>, tensor<12x16x32x32xf32>) outs(%fill : tensor<16x16x3x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %c, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<16x16x3x3xf32>
  return %y : tensor<16x16x3x3xf32>
}

// -----

#data = affine_map<(n, k, y, x, c, i, j) -> (n, c, y + i, x + j)>
#gradient = affine_map<(n, k, y, x, c, i, j) -> (n, k, y, x)>
#result = affine_map<(n, k, y, x, c, i, j) -> (k, c, i, j)>

// Sums that do not begin with zeros are added to what they begin with. Seven of 20 lanes would be empty on 512 bits: they are too few
// channels for 16 lanes, and enough for 8.
// CHECK-LABEL: func.func @other_begin(
// CHECK:         linalg.generic
// SHORT-LABEL: func.func @other_begin(
// SHORT:         linalg.transpose
// SHORT:         linalg.add
func.func @other_begin(%x: tensor<4x22x10x10xf32>, %g: tensor<4x22x8x8xf32>, %init: tensor<22x22x3x3xf32>) -> tensor<22x22x3x3xf32> {
  %y = linalg.generic {indexing_maps = [#gradient, #data, #result],
      iterator_types = ["reduction", "parallel", "reduction", "reduction", "parallel", "parallel", "parallel"]}
      ins(%g, %x : tensor<4x22x8x8xf32>, tensor<4x22x10x10xf32>) outs(%init : tensor<22x22x3x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %c, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<22x22x3x3xf32>
  return %y : tensor<22x22x3x3xf32>
}

// -----

#data = affine_map<(n, k, y, x, c, i, j) -> (n, c, y * 2 + i, x * 2 + j)>
#gradient = affine_map<(n, k, y, x, c, i, j) -> (n, k, y, x)>
#result = affine_map<(n, k, y, x, c, i, j) -> (k, c, i, j)>

// A stride stays.
// CHECK-LABEL: func.func @strided(
// CHECK:         linalg.generic
func.func @strided(%x: tensor<4x16x17x17xf32>, %g: tensor<4x16x8x8xf32>, %init: tensor<16x16x3x3xf32>) -> tensor<16x16x3x3xf32> {
  %y = linalg.generic {indexing_maps = [#data, #gradient, #result],
      iterator_types = ["reduction", "parallel", "reduction", "reduction", "parallel", "parallel", "parallel"]}
      ins(%x, %g : tensor<4x16x17x17xf32>, tensor<4x16x8x8xf32>) outs(%init : tensor<16x16x3x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %c, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<16x16x3x3xf32>
  return %y : tensor<16x16x3x3xf32>
}

// -----

#data = affine_map<(n, k, y, x, c, i, j) -> (n, c, y + i, x + j)>
#gradient = affine_map<(n, k, y, x, c, i, j) -> (n, k, y, x)>
#turned = affine_map<(n, k, y, x, c, i, j) -> (k, c, j, i)>

// So do windows whose lines are columns, and fewer than 16 tiles.
// CHECK-LABEL: func.func @turned(
// CHECK:         linalg.generic
func.func @turned(%x: tensor<4x16x10x10xf32>, %g: tensor<4x16x8x8xf32>, %init: tensor<16x16x3x3xf32>) -> tensor<16x16x3x3xf32> {
  %y = linalg.generic {indexing_maps = [#data, #gradient, #turned],
      iterator_types = ["reduction", "parallel", "reduction", "reduction", "parallel", "parallel", "parallel"]}
      ins(%x, %g : tensor<4x16x10x10xf32>, tensor<4x16x8x8xf32>) outs(%init : tensor<16x16x3x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %c, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<16x16x3x3xf32>
  return %y : tensor<16x16x3x3xf32>
}

// -----

#data = affine_map<(n, k, y, x, c, i, j) -> (n, c, y + i, x + j)>
#gradient = affine_map<(n, k, y, x, c, i, j) -> (n, k, y, x)>
#result = affine_map<(n, k, y, x, c, i, j) -> (k, c, i, j)>

// CHECK-LABEL: func.func @few_tiles(
// CHECK:         linalg.generic
func.func @few_tiles(%x: tensor<3x16x10x10xf32>, %g: tensor<3x16x8x8xf32>, %init: tensor<16x16x3x3xf32>) -> tensor<16x16x3x3xf32> {
  %y = linalg.generic {indexing_maps = [#data, #gradient, #result],
      iterator_types = ["reduction", "parallel", "reduction", "reduction", "parallel", "parallel", "parallel"]}
      ins(%x, %g : tensor<3x16x10x10xf32>, tensor<3x16x8x8xf32>) outs(%init : tensor<16x16x3x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %c, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<16x16x3x3xf32>
  return %y : tensor<16x16x3x3xf32>
}
