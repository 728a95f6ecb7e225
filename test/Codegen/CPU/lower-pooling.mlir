// RUN: kas-opt %s -kas-lower-pooling=threads=1 | FileCheck %s
// RUN: kas-opt %s -kas-lower-pooling='threads=2 min-parallel-work=144' | FileCheck %s --check-prefix=THREADS
// RUN: kas-opt %s -kas-lower-pooling='threads=2 min-parallel-work=577' | FileCheck %s --check-prefix=SHORT

// Lines outside are the nearest ones inside; the first column has a loop of its own, the others stay inside.
//
// CHECK-DAG:   #[[COLUMN:.*]] = affine_map<(d0) -> (d0 * 2 - 1)>
// CHECK-LABEL: func.func @padded(
// CHECK-SAME:    %[[X:.*]]: tensor<1x4x8x8xf32>)
// CHECK:         %[[DATA:.*]] = bufferization.to_buffer %[[X]] read_only
// CHECK:         memref.alloc() {{.*}}: memref<1x4x4x4xf32>
// CHECK:         scf.for
// CHECK:           scf.for %[[LINE:.*]] =
// CHECK:             arith.maxsi
// CHECK:             arith.minsi
// CHECK-COUNT-6:     memref.load %[[DATA]]
// CHECK-NOT:         memref.load
// CHECK:             memref.store
// CHECK:             scf.for
// CHECK:               affine.apply #[[COLUMN]]
// CHECK-COUNT-9:       memref.load %[[DATA]]
// CHECK-NOT:           memref.load
// CHECK:               memref.store
// CHECK-NOT:     linalg.pooling
//
// THREADS-LABEL: func.func @padded(
// THREADS:         scf.parallel
//
// What is short is not worth waking threads: 4 planes of 4x4 windows of 3x3 points.
// SHORT-LABEL: func.func @padded(
// SHORT-NOT:     scf.parallel
// SHORT:         return
func.func @padded(%x: tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32> {
  %low = arith.constant 0xFF800000 : f32
  %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%n: index, %c: index, %h: index, %w: index):
    tensor.yield %low : f32
  } : tensor<1x4x8x8xf32> to tensor<1x4x10x10xf32>
  %empty = tensor.empty() : tensor<1x4x4x4xf32>
  %init = linalg.fill ins(%low : f32) outs(%empty : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  %window = tensor.empty() : tensor<3x3xf32>
  %y = linalg.pooling_nchw_max {strides = dense<2> : vector<2xi64>}
      ins(%padded, %window : tensor<1x4x10x10xf32>, tensor<3x3xf32>) outs(%init : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  return %y : tensor<1x4x4x4xf32>
}

// A window without a point of the image is no maximum of points of the image.
//
// CHECK-LABEL: func.func @far_outside(
// CHECK:         linalg.pooling_nchw_max
func.func @far_outside(%x: tensor<1x4x8x8xf32>) -> tensor<1x4x6x6xf32> {
  %low = arith.constant 0xFF800000 : f32
  %padded = tensor.pad %x low[0, 0, 2, 2] high[0, 0, 2, 2] {
  ^bb0(%n: index, %c: index, %h: index, %w: index):
    tensor.yield %low : f32
  } : tensor<1x4x8x8xf32> to tensor<1x4x12x12xf32>
  %empty = tensor.empty() : tensor<1x4x6x6xf32>
  %init = linalg.fill ins(%low : f32) outs(%empty : tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  %window = tensor.empty() : tensor<2x2xf32>
  %y = linalg.pooling_nchw_max {strides = dense<2> : vector<2xi64>}
      ins(%padded, %window : tensor<1x4x12x12xf32>, tensor<2x2xf32>) outs(%init : tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  return %y : tensor<1x4x6x6xf32>
}

// Zeros are not what a maximum is padded with.
//
// CHECK-LABEL: func.func @padded_with_zeros(
// CHECK:         tensor.pad
// CHECK:         bufferization.to_buffer %{{.*}} read_only : tensor<1x4x10x10xf32>
// CHECK-NOT:     linalg.pooling
func.func @padded_with_zeros(%x: tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32> {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%n: index, %c: index, %h: index, %w: index):
    tensor.yield %zero : f32
  } : tensor<1x4x8x8xf32> to tensor<1x4x10x10xf32>
  %empty = tensor.empty() : tensor<1x4x4x4xf32>
  %init = linalg.fill ins(%low : f32) outs(%empty : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  %window = tensor.empty() : tensor<3x3xf32>
  %y = linalg.pooling_nchw_max {strides = dense<2> : vector<2xi64>}
      ins(%padded, %window : tensor<1x4x10x10xf32>, tensor<3x3xf32>) outs(%init : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  return %y : tensor<1x4x4x4xf32>
}

// A maximum of maxima: the second one reads what the first one has become.
//
// CHECK-LABEL: func.func @twice(
// CHECK:         %[[FIRST:.*]] = memref.alloc() {alignment = 64 : i64} : memref<1x4x4x4xf32>
// CHECK:         %[[TENSOR:.*]] = bufferization.to_tensor %[[FIRST]]
// CHECK:         bufferization.to_buffer %[[TENSOR]] read_only : tensor<1x4x4x4xf32>
// CHECK-NOT:     linalg.pooling
func.func @twice(%x: tensor<1x4x8x8xf32>) -> tensor<1x4x2x2xf32> {
  %low = arith.constant 0xFF800000 : f32
  %window = tensor.empty() : tensor<2x2xf32>
  %empty0 = tensor.empty() : tensor<1x4x4x4xf32>
  %init0 = linalg.fill ins(%low : f32) outs(%empty0 : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  %y0 = linalg.pooling_nchw_max {strides = dense<2> : vector<2xi64>}
      ins(%x, %window : tensor<1x4x8x8xf32>, tensor<2x2xf32>) outs(%init0 : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  %empty1 = tensor.empty() : tensor<1x4x2x2xf32>
  %init1 = linalg.fill ins(%low : f32) outs(%empty1 : tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32>
  %y1 = linalg.pooling_nchw_max {strides = dense<2> : vector<2xi64>}
      ins(%y0, %window : tensor<1x4x4x4xf32>, tensor<2x2xf32>) outs(%init1 : tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32>
  return %y1 : tensor<1x4x2x2xf32>
}

// Means are sums first: every other column is a vector of its own, and the points are added line by line.
//
// CHECK-LABEL: func.func @sums(
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             %[[ROW0:.*]] = vector.load {{.*}} vector<16xf32>
// CHECK:             %[[A:.*]], %[[B:.*]] = vector.deinterleave %[[ROW0]]
// CHECK:             %[[AB:.*]] = arith.addf %[[A]], %[[B]]
// CHECK:             %[[ROW1:.*]] = vector.load {{.*}} vector<16xf32>
// CHECK:             %[[C:.*]], %[[D:.*]] = vector.deinterleave %[[ROW1]]
// CHECK:             %[[ABC:.*]] = arith.addf %[[AB]], %[[C]]
// CHECK:             %[[SUM:.*]] = arith.addf %[[ABC]], %[[D]]
// CHECK:             vector.store %[[SUM]]
// CHECK-NOT:     linalg.pooling
func.func @sums(%x: tensor<1x4x16x16xf32>) -> tensor<1x4x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %window = tensor.empty() : tensor<2x2xf32>
  %empty = tensor.empty() : tensor<1x4x8x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %y = linalg.pooling_nchw_sum {strides = dense<2> : vector<2xi64>}
      ins(%x, %window : tensor<1x4x16x16xf32>, tensor<2x2xf32>) outs(%init : tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %y : tensor<1x4x8x8xf32>
}

// Of the third column nothing after the window is read; many vectors are a loop, and the last one computes some outputs
// again. The largest of each column is found before columns are separated.
//
// CHECK-LABEL: func.func @long_lines(
// CHECK:         %[[END:.*]] = arith.constant 81 : index
// CHECK:         scf.for %[[COLUMN:.*]] = %{{.*}} to %[[END]] step
// CHECK-COUNT-6:   vector.load {{.*}} vector<32xf32>
// CHECK-NOT:       vector.load
// CHECK-COUNT-2:   vector.deinterleave
// CHECK-NOT:       vector.deinterleave
// CHECK:           vector.store {{.*}} vector<16xf32>
// CHECK:         %[[LAST:.*]] = arith.constant 72 : index
// CHECK-COUNT-6: vector.load {{.*}} vector<32xf32>
// CHECK-NOT:     vector.load
// CHECK:         vector.store {{.*}}, %[[LAST]]] {{.*}} vector<16xf32>
// CHECK-NOT:     memref.store
// CHECK:         return
func.func @long_lines(%x: tensor<1x4x3x176xf32>) -> tensor<1x4x1x88xf32> {
  %low = arith.constant 0xFF800000 : f32
  %padded = tensor.pad %x low[0, 0, 0, 1] high[0, 0, 0, 0] {
  ^bb0(%n: index, %c: index, %h: index, %w: index):
    tensor.yield %low : f32
  } : tensor<1x4x3x176xf32> to tensor<1x4x3x177xf32>
  %window = tensor.empty() : tensor<3x3xf32>
  %empty = tensor.empty() : tensor<1x4x1x88xf32>
  %init = linalg.fill ins(%low : f32) outs(%empty : tensor<1x4x1x88xf32>) -> tensor<1x4x1x88xf32>
  %y = linalg.pooling_nchw_max {strides = dense<2> : vector<2xi64>}
      ins(%padded, %window : tensor<1x4x3x177xf32>, tensor<3x3xf32>) outs(%init : tensor<1x4x1x88xf32>) -> tensor<1x4x1x88xf32>
  return %y : tensor<1x4x1x88xf32>
}

// A sum over a whole image is too long to be unrolled and becomes a reduction, and what begins with something else is no
// sum of the points alone.
//
// CHECK-LABEL: func.func @other_sums(
// CHECK-SAME:    %[[X:.*]]: tensor<1x4x7x7xf32>
// CHECK:         linalg.generic
// CHECK-SAME:      iterator_types = ["parallel", "parallel", "reduction", "reduction"]
// CHECK-SAME:      ins(%[[X]] : tensor<1x4x7x7xf32>) outs(%{{.*}} : tensor<1x4x1x1xf32>)
// CHECK:           arith.addf
// CHECK:         linalg.pooling_nchw_sum
// CHECK-SAME:      outs(%{{.*}} : tensor<1x4x6x6xf32>)
func.func @other_sums(%x: tensor<1x4x7x7xf32>, %some: tensor<1x4x6x6xf32>) -> (tensor<1x4x1x1xf32>, tensor<1x4x6x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %all = tensor.empty() : tensor<7x7xf32>
  %empty = tensor.empty() : tensor<1x4x1x1xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x4x1x1xf32>) -> tensor<1x4x1x1xf32>
  %y = linalg.pooling_nchw_sum ins(%x, %all : tensor<1x4x7x7xf32>, tensor<7x7xf32>)
      outs(%init : tensor<1x4x1x1xf32>) -> tensor<1x4x1x1xf32>
  %window = tensor.empty() : tensor<2x2xf32>
  %z = linalg.pooling_nchw_sum ins(%x, %window : tensor<1x4x7x7xf32>, tensor<2x2xf32>)
      outs(%some : tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  return %y, %z : tensor<1x4x1x1xf32>, tensor<1x4x6x6xf32>
}

// A maximum that is quantized next: the image is, where another operation makes it, and padding is the least byte. Of the
// padded line of 56 the first maximum has a window of its own, and two vectors the others.
//
// CHECK-LABEL: func.func @quantized(
// CHECK-SAME:    %[[X:.*]]: tensor<1x4x112x112xf32>)
// CHECK:         %[[MADE:.*]] = linalg.generic {{.*}} ins(%[[X]]
// CHECK:         %[[BYTES:.*]] = linalg.generic {{.*}} ins(%[[MADE]] : tensor<1x4x112x112xf32>) outs(%{{.*}} : tensor<1x4x112x112xi8>)
// CHECK:           math.roundeven
// CHECK:           arith.trunci
// CHECK-NOT:     tensor.pad
// CHECK:         %[[DATA:.*]] = bufferization.to_buffer %[[BYTES]] read_only
// CHECK:         %[[OUTPUT:.*]] = memref.alloc() {{.*}}: memref<1x4x56x56xi8>
// CHECK:         memref.load %[[DATA]]
// CHECK:         arith.maxui {{.*}} : i8
// CHECK:         vector.load %[[DATA]]{{.*}} vector<64xi8>
// CHECK:         arith.maxui {{.*}} : vector<64xi8>
// CHECK-COUNT-2: vector.store {{.*}} vector<32xi8>
// CHECK-NOT:     vector.store
// CHECK:         %[[RESULT:.*]] = bufferization.to_tensor %[[OUTPUT]]
// CHECK:         return %[[RESULT]] : tensor<1x4x56x56xi8>
#same = affine_map<(n, c, h, w) -> (n, c, h, w)>
#elementwise = {
  indexing_maps = [#same, #same],
  iterator_types = ["parallel", "parallel", "parallel", "parallel"]
}
func.func @quantized(%x: tensor<1x4x112x112xf32>) -> tensor<1x4x56x56xi8> {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %most = arith.constant 255.0 : f32
  %step = arith.constant 40.0 : f32
  %point = arith.constant 3.0 : f32
  %image = tensor.empty() : tensor<1x4x112x112xf32>
  %made = linalg.generic #elementwise ins(%x : tensor<1x4x112x112xf32>) outs(%image : tensor<1x4x112x112xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = arith.addf %in, %step : f32
    linalg.yield %r : f32
  } -> tensor<1x4x112x112xf32>
  %padded = tensor.pad %made low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%n: index, %c: index, %h: index, %w: index):
    tensor.yield %low : f32
  } : tensor<1x4x112x112xf32> to tensor<1x4x114x114xf32>
  %window = tensor.empty() : tensor<3x3xf32>
  %empty = tensor.empty() : tensor<1x4x56x56xf32>
  %init = linalg.fill ins(%low : f32) outs(%empty : tensor<1x4x56x56xf32>) -> tensor<1x4x56x56xf32>
  %y = linalg.pooling_nchw_max {strides = dense<2> : vector<2xi64>}
      ins(%padded, %window : tensor<1x4x114x114xf32>, tensor<3x3xf32>) outs(%init : tensor<1x4x56x56xf32>) -> tensor<1x4x56x56xf32>
  %bytes = tensor.empty() : tensor<1x4x56x56xi8>
  %z = linalg.generic #elementwise ins(%y : tensor<1x4x56x56xf32>) outs(%bytes : tensor<1x4x56x56xi8>) {
  ^bb0(%in: f32, %out: i8):
    %0 = arith.mulf %in, %step : f32
    %1 = math.roundeven %0 : f32
    %2 = arith.addf %1, %point : f32
    %3 = arith.cmpf olt, %2, %zero : f32
    %4 = arith.select %3, %zero, %2 : f32
    %5 = arith.cmpf ogt, %4, %most : f32
    %6 = arith.select %5, %most, %4 : f32
    %7 = arith.fptosi %6 : f32 to i32
    %8 = arith.trunci %7 : i32 to i8
    linalg.yield %8 : i8
  } -> tensor<1x4x56x56xi8>
  return %z : tensor<1x4x56x56xi8>
}

// Steps that fall (a product with a negative number) do not commute with a maximum, an argument is no result of an operation
// that could make the bytes, and a maximum that others read is needed itself.
//
// CHECK-LABEL: func.func @quantized_otherwise(
// CHECK-COUNT-3: memref.alloc() {{.*}}: memref<1x4x8x8xf32>
// CHECK-NOT:     arith.maxui
// CHECK:         return
func.func @quantized_otherwise(%x: tensor<1x4x16x16xf32>)
    -> (tensor<1x4x8x8xi8>, tensor<1x4x8x8xi8>, tensor<1x4x8x8xi8>, tensor<1x4x8x8xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %most = arith.constant 255.0 : f32
  %step = arith.constant 40.0 : f32
  %fall = arith.constant -40.0 : f32
  %image = tensor.empty() : tensor<1x4x16x16xf32>
  %made = linalg.generic #elementwise ins(%x : tensor<1x4x16x16xf32>) outs(%image : tensor<1x4x16x16xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = arith.addf %in, %step : f32
    linalg.yield %r : f32
  } -> tensor<1x4x16x16xf32>
  %other = linalg.generic #elementwise ins(%x : tensor<1x4x16x16xf32>) outs(%image : tensor<1x4x16x16xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = arith.mulf %in, %step : f32
    linalg.yield %r : f32
  } -> tensor<1x4x16x16xf32>
  %window = tensor.empty() : tensor<2x2xf32>
  %empty = tensor.empty() : tensor<1x4x8x8xf32>
  %bytes = tensor.empty() : tensor<1x4x8x8xi8>
  %init = linalg.fill ins(%low : f32) outs(%empty : tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %a = linalg.pooling_nchw_max {strides = dense<2> : vector<2xi64>}
      ins(%made, %window : tensor<1x4x16x16xf32>, tensor<2x2xf32>) outs(%init : tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %b = linalg.pooling_nchw_max {strides = dense<2> : vector<2xi64>}
      ins(%x, %window : tensor<1x4x16x16xf32>, tensor<2x2xf32>) outs(%init : tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %c = linalg.pooling_nchw_max {strides = dense<2> : vector<2xi64>}
      ins(%other, %window : tensor<1x4x16x16xf32>, tensor<2x2xf32>) outs(%init : tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %za = linalg.generic #elementwise ins(%a : tensor<1x4x8x8xf32>) outs(%bytes : tensor<1x4x8x8xi8>) {
  ^bb0(%in: f32, %out: i8):
    %0 = arith.mulf %in, %fall : f32
    %1 = math.roundeven %0 : f32
    %2 = arith.maxnumf %1, %zero : f32
    %3 = arith.minnumf %2, %most : f32
    %4 = arith.fptosi %3 : f32 to i32
    %5 = arith.trunci %4 : i32 to i8
    linalg.yield %5 : i8
  } -> tensor<1x4x8x8xi8>
  %zb = linalg.generic #elementwise ins(%b : tensor<1x4x8x8xf32>) outs(%bytes : tensor<1x4x8x8xi8>) {
  ^bb0(%in: f32, %out: i8):
    %0 = arith.mulf %in, %step : f32
    %1 = math.roundeven %0 : f32
    %2 = arith.maxnumf %1, %zero : f32
    %3 = arith.minnumf %2, %most : f32
    %4 = arith.fptosi %3 : f32 to i32
    %5 = arith.trunci %4 : i32 to i8
    linalg.yield %5 : i8
  } -> tensor<1x4x8x8xi8>
  %zc = linalg.generic #elementwise ins(%c : tensor<1x4x8x8xf32>) outs(%bytes : tensor<1x4x8x8xi8>) {
  ^bb0(%in: f32, %out: i8):
    %0 = arith.mulf %in, %step : f32
    %1 = math.roundeven %0 : f32
    %2 = arith.maxnumf %1, %zero : f32
    %3 = arith.minnumf %2, %most : f32
    %4 = arith.fptosi %3 : f32 to i32
    %5 = arith.trunci %4 : i32 to i8
    linalg.yield %5 : i8
  } -> tensor<1x4x8x8xi8>
  return %za, %zb, %zc, %c : tensor<1x4x8x8xi8>, tensor<1x4x8x8xi8>, tensor<1x4x8x8xi8>, tensor<1x4x8x8xf32>
}
