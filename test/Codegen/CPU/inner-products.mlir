// RUN: kas-opt %s -kas-attach-cpu-target=cpu=x86-64-v4 -kas-pack-operators --remarks-filter=kas-panels -o %t 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: FileCheck %s < %t
// RUN: kas-opt %s -kas-attach-cpu-target=cpu=x86-64-v4 -kas-pack-operators=prepacked=true | FileCheck %s --check-prefix=PREPARED

// A depthwise weight has too few elements for tiles along the output: vectors lie along the columns of the images. The
// three columns of the window are in registers together, so that masks of borders are constants; its rows bound the
// loop over the rows of the images.
// REMARK: remark: [Passed] InnerProducts | Category:kas-panels | block={{[0-9]+}}, lanes=16, registerSums={{[0-9]+}}
// CHECK-LABEL: func.func @depthwise(
// CHECK-NOT: kas.apply_gradient
// CHECK: arith.maxsi
// CHECK: arith.minsi
// CHECK: scf.for
// CHECK: vector.maskedload {{.*}} : memref<131072xf32>, vector<16xi1>, vector<16xf32>
// CHECK: vector.fma
// CHECK: vector.extract_strided_slice {{.*}} {offsets = [0], sizes = [8]
// CHECK: memref.store
func.func @depthwise(%x: tensor<8x16x32x32xf32>, %dy: tensor<8x16x32x32xf32>) -> tensor<16x3x3xf32> {
  %dw = kas.apply_gradient @depthwise_conv of 1(%x, %dy)
      : (tensor<8x16x32x32xf32>, tensor<8x16x32x32xf32>) -> tensor<16x3x3xf32>
  return %dw : tensor<16x3x3xf32>
}

kas.operator @depthwise_conv(%n: 8, %c: 16, %h: 32, %w: 32) from [8, 16, 32, 32] {
  %i = kas.reduce sum : 3
  %j = kas.reduce sum : 3
  %i_d, %i_w = kas.share %i : 3
  %j_d, %j_w = kas.share %j : 3
  %c_d, %c_w = kas.share %c : 16
  %y = kas.unfold %h, %i_d : 32, 3
  %x = kas.unfold %w, %j_d : 32, 3
  kas.yield data(%n, %c_d, %y, %x) weight(%c_w, %i_w, %j_w)
}

// The same of a layer in linalg: padded images are read where they are. Many tiles read what one tile reads: it stays in
// the first-level cache, one image at a time, and vectors of all 2304 sums wait in memory until those of all images are
// added up. Each thread has tiles of its own.
// REMARK: remark: [Passed] InnerProducts | Category:kas-panels | block=1, lanes=16, registerSums=24
// CHECK-LABEL: func.func @dense(
// CHECK-NOT: linalg.generic
// CHECK: %[[WAITING:.*]] = memref.alloc() {alignment = 64 : i64} : memref<36864xf32>
// CHECK: linalg.fill {{.*}} outs(%[[WAITING]] : memref<36864xf32>)
// CHECK: scf.parallel
// CHECK: scf.for {{.*}} to %c8{{[_0-9]*}} step %c1
// CHECK: vector.load %[[WAITING]]
// CHECK: vector.fma
// CHECK-NOT: vector.extract_strided_slice
// CHECK: vector.store {{.*}}, %[[WAITING]]
// CHECK: scf.for
// CHECK: vector.load %[[WAITING]]
// CHECK: vector.extract_strided_slice {{.*}} {offsets = [0], sizes = [8]
// CHECK: memref.store
#x = affine_map<(o, c, i, j, n, h, w) -> (n, c, h + i, w + j)>
#dy = affine_map<(o, c, i, j, n, h, w) -> (n, o, h, w)>
#dw = affine_map<(o, c, i, j, n, h, w) -> (o, c, i, j)>
func.func @dense(%x: tensor<8x16x32x32xf32>, %dy: tensor<8x16x32x32xf32>) -> tensor<16x16x3x3xf32> {
  %zero = arith.constant 0.0 : f32
  %pad = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<8x16x32x32xf32> to tensor<8x16x34x34xf32>
  %empty = tensor.empty() : tensor<16x16x3x3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x16x3x3xf32>) -> tensor<16x16x3x3xf32>
  %dw = linalg.generic {indexing_maps = [#x, #dy, #dw],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%pad, %dy : tensor<8x16x34x34xf32>, tensor<8x16x32x32xf32>) outs(%init : tensor<16x16x3x3xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %product = arith.mulf %a, %b : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<16x16x3x3xf32>
  return %dw : tensor<16x16x3x3xf32>
}

// A sum of everything has no index.
// CHECK-LABEL: func.func @dot
// CHECK: vector.fma
func.func @dot(%x: tensor<64x9xf32>, %y: tensor<64x9xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<f32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<f32>) -> tensor<f32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>],
      iterator_types = ["reduction", "reduction"]} ins(%x, %y : tensor<64x9xf32>, tensor<64x9xf32>) outs(%zeros : tensor<f32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %product = arith.mulf %a, %b : f32
    %more = arith.addf %o, %product : f32
    linalg.yield %more : f32
  } -> tensor<f32>
  return %sum : tensor<f32>
}

// Every other element of a line is two vectors and a permutation; of the second one nothing after the last is read.
// CHECK-LABEL: func.func @depthwise_of_stride_two
// CHECK-DAG: arith.constant dense<[true, false, true, false,
// CHECK: %[[LOW:.*]] = vector.maskedload
// CHECK: %[[HIGH:.*]] = vector.maskedload
// CHECK: vector.shuffle %[[LOW]], %[[HIGH]] [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30] : vector<16xf32>, vector<16xf32>
#channels = affine_map<(n, h, w, c, i, j) -> (n, c, 2 * h + i, 2 * w + j)>
#places = affine_map<(n, h, w, c, i, j) -> (n, c, h, w)>
#window = affine_map<(n, h, w, c, i, j) -> (c, i, j)>
func.func @depthwise_of_stride_two(%x: tensor<16x4x32x32xf32>, %g: tensor<16x4x16x16xf32>) -> tensor<4x3x3xf32> {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%n: index, %c: index, %h: index, %w: index):
    tensor.yield %zero : f32
  } : tensor<16x4x32x32xf32> to tensor<16x4x34x34xf32>
  %empty = tensor.empty() : tensor<4x3x3xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x3x3xf32>) -> tensor<4x3x3xf32>
  %sums = linalg.generic {
      indexing_maps = [#channels, #places, #window],
      iterator_types = ["reduction", "reduction", "reduction", "parallel", "parallel", "parallel"]}
      ins(%padded, %g : tensor<16x4x34x34xf32>, tensor<16x4x16x16xf32>) outs(%zeros : tensor<4x3x3xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %product = arith.mulf %a, %b : f32
    %more = arith.addf %sum, %product : f32
    linalg.yield %more : f32
  } -> tensor<4x3x3xf32>
  return %sums : tensor<4x3x3xf32>
}

// Weights that are packed ahead suit other tiles; a gradient is none, also where weights are packed.
// PREPARED-LABEL: func.func @dot
// PREPARED: linalg.generic
// PREPARED-LABEL: func.func @squares
// PREPARED-NOT: linalg.generic
// PREPARED: vector.fma
func.func @squares(%x: tensor<64x9xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<f32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<f32>) -> tensor<f32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>],
      iterator_types = ["reduction", "reduction"]} ins(%x, %x : tensor<64x9xf32>, tensor<64x9xf32>) outs(%zeros : tensor<f32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %product = arith.mulf %a, %b : f32
    %more = arith.addf %o, %product : f32
    linalg.yield %more : f32
  } -> tensor<f32>
  return %sum : tensor<f32>
}
