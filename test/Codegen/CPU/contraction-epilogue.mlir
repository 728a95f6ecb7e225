// RUN: kas-opt %s -kas-attach-cpu-target=cpu=x86-64-v4 -kas-bufferize -kas-pack-contractions='threads=1 prepacked=true' | FileCheck %s
// RUN: kas-opt %s -kas-attach-cpu-target=cpu=x86-64-v3 -kas-bufferize -kas-pack-contractions='threads=1 prepacked=true' | FileCheck %s --check-prefix=AVX2

// The bias is what the sums begin with, and the residual and the rectifier are computed before they are stored.
//
// CHECK-LABEL: func.func @bias_residual_relu(
// CHECK-SAME:    %{{.*}}: memref<1x16x9x9xf32>, %{{.*}}: memref<32x16x3x3xf32>, %[[BIAS:.*]]: memref<32xf32>, %[[OLD:.*]]: memref<1x32x7x7xf32>,
// CHECK-NOT:     linalg.broadcast
// CHECK-NOT:     linalg.generic
// CHECK:         vector.load %{{.*}} : memref<32xf32>
// CHECK:         vector.fma
// CHECK:         vector.maskedload
// CHECK-NEXT:    arith.addf %{{.*}} : vector<16xf32>
// CHECK:         arith.maximumf %{{.*}} : vector<16xf32>
// CHECK:         vector.maskedstore
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @bias_residual_relu(%x: tensor<1x16x9x9xf32>, %w: tensor<32x16x3x3xf32>, %b: tensor<32xf32>, %old: tensor<1x32x7x7xf32>)
    -> tensor<1x32x7x7xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x32x7x7xf32>
  %init = linalg.broadcast ins(%b : tensor<32xf32>) outs(%empty : tensor<1x32x7x7xf32>) dimensions = [0, 2, 3]
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x16x9x9xf32>, tensor<32x16x3x3xf32>)
      outs(%init : tensor<1x32x7x7xf32>) -> tensor<1x32x7x7xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, h, w)>,
                                        affine_map<(n, c, h, w) -> (n, c, h, w)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%y, %old : tensor<1x32x7x7xf32>, tensor<1x32x7x7xf32>) outs(%empty : tensor<1x32x7x7xf32>) {
  ^bb0(%sum: f32, %more: f32, %out: f32):
    %added = arith.addf %sum, %more : f32
    %kept = arith.maximumf %added, %zero : f32
    linalg.yield %kept : f32
  } -> tensor<1x32x7x7xf32>
  return %z : tensor<1x32x7x7xf32>
}

// An exponential takes more constants than 16 registers have place for beside the sums.
//
// CHECK-LABEL: func.func @swish(
// CHECK-NOT:     linalg.generic
// CHECK:         vector.fma
// CHECK:         math.exp %{{.*}} : vector<16xf32>
// CHECK:         vector.maskedstore
// CHECK-NOT:     linalg.generic
// CHECK:         return
// AVX2-LABEL: func.func @swish(
// AVX2:         vector.fma
// AVX2-NOT:     math.exp %{{.*}} : vector
// AVX2:         linalg.generic
// AVX2:         math.exp %{{.*}} : f32
// AVX2:         return
func.func @swish(%x: tensor<1x16x9x9xf32>, %w: tensor<32x16x3x3xf32>) -> tensor<1x32x7x7xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %empty = tensor.empty() : tensor<1x32x7x7xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x32x7x7xf32>) -> tensor<1x32x7x7xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x16x9x9xf32>, tensor<32x16x3x3xf32>)
      outs(%init : tensor<1x32x7x7xf32>) -> tensor<1x32x7x7xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, h, w)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%y : tensor<1x32x7x7xf32>) outs(%empty : tensor<1x32x7x7xf32>) {
  ^bb0(%sum: f32, %out: f32):
    %negative = arith.negf %sum : f32
    %power = math.exp %negative : f32
    %more = arith.addf %power, %one : f32
    %gated = arith.divf %sum, %more : f32
    linalg.yield %gated : f32
  } -> tensor<1x32x7x7xf32>
  return %z : tensor<1x32x7x7xf32>
}

// The sums themselves are read again: they must be stored.
//
// CHECK-LABEL: func.func @sums_needed(
// CHECK:         vector.maskedstore
// CHECK:         linalg.generic
// CHECK:         return
func.func @sums_needed(%x: tensor<1x16x9x9xf32>, %w: tensor<32x16x3x3xf32>, %b: tensor<32xf32>)
    -> (tensor<1x32x7x7xf32>, tensor<1x32x7x7xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x32x7x7xf32>
  %init = linalg.broadcast ins(%b : tensor<32xf32>) outs(%empty : tensor<1x32x7x7xf32>) dimensions = [0, 2, 3]
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x16x9x9xf32>, tensor<32x16x3x3xf32>)
      outs(%init : tensor<1x32x7x7xf32>) -> tensor<1x32x7x7xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, h, w)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%y : tensor<1x32x7x7xf32>) outs(%empty : tensor<1x32x7x7xf32>) {
  ^bb0(%sum: f32, %out: f32):
    %kept = arith.maximumf %sum, %zero : f32
    linalg.yield %kept : f32
  } -> tensor<1x32x7x7xf32>
  return %y, %z : tensor<1x32x7x7xf32>, tensor<1x32x7x7xf32>
}

// The next iteration reads the sums of this one: they must be stored.
//
// CHECK-LABEL: func.func @sums_of_last_iteration(
// CHECK:         scf.for
// CHECK:           memref.copy
// CHECK:           linalg.generic
// CHECK:         return
func.func @sums_of_last_iteration(%x: memref<1x16x9x9xf32>, %w: memref<32x16x3x3xf32>, %b: memref<32xf32>,
    %last: memref<1x32x7x7xf32>, %z: memref<1x32x7x7xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %sums = memref.alloc() {alignment = 64 : i64} : memref<1x32x7x7xf32>
  scf.for %i = %c0 to %c2 step %c1 {
    memref.copy %sums, %last : memref<1x32x7x7xf32> to memref<1x32x7x7xf32>
    linalg.broadcast ins(%b : memref<32xf32>) outs(%sums : memref<1x32x7x7xf32>) dimensions = [0, 2, 3]
    linalg.conv_2d_nchw_fchw ins(%x, %w : memref<1x16x9x9xf32>, memref<32x16x3x3xf32>) outs(%sums : memref<1x32x7x7xf32>)
    linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, h, w)>],
                    iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%sums : memref<1x32x7x7xf32>) outs(%z : memref<1x32x7x7xf32>) {
    ^bb0(%sum: f32, %out: f32):
      %kept = arith.maximumf %sum, %zero : f32
      linalg.yield %kept : f32
    }
  }
  return
}

// The next iteration begins with the bias: nobody needs the sums.
//
// CHECK-LABEL: func.func @sums_overwritten(
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @sums_overwritten(%x: memref<1x16x9x9xf32>, %w: memref<32x16x3x3xf32>, %b: memref<32xf32>, %z: memref<1x32x7x7xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %sums = memref.alloc() {alignment = 64 : i64} : memref<1x32x7x7xf32>
  scf.for %i = %c0 to %c2 step %c1 {
    linalg.broadcast ins(%b : memref<32xf32>) outs(%sums : memref<1x32x7x7xf32>) dimensions = [0, 2, 3]
    linalg.conv_2d_nchw_fchw ins(%x, %w : memref<1x16x9x9xf32>, memref<32x16x3x3xf32>) outs(%sums : memref<1x32x7x7xf32>)
    linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, h, w)>],
                    iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%sums : memref<1x32x7x7xf32>) outs(%z : memref<1x32x7x7xf32>) {
    ^bb0(%sum: f32, %out: f32):
      %kept = arith.maximumf %sum, %zero : f32
      linalg.yield %kept : f32
    }
  }
  return
}

// The sums are read by another name of their buffer, which is older than they are.
//
// CHECK-LABEL: func.func @sums_by_another_name(
// CHECK:         linalg.generic
// CHECK:         memref.copy
// CHECK:         return
func.func @sums_by_another_name(%x: memref<1x16x9x9xf32>, %w: memref<32x16x3x3xf32>, %b: memref<32xf32>,
    %last: memref<32x49xf32>, %z: memref<1x32x7x7xf32>) {
  %zero = arith.constant 0.0 : f32
  %sums = memref.alloc() {alignment = 64 : i64} : memref<1x32x7x7xf32>
  %flat = memref.collapse_shape %sums [[0, 1], [2, 3]] : memref<1x32x7x7xf32> into memref<32x49xf32>
  linalg.broadcast ins(%b : memref<32xf32>) outs(%sums : memref<1x32x7x7xf32>) dimensions = [0, 2, 3]
  linalg.conv_2d_nchw_fchw ins(%x, %w : memref<1x16x9x9xf32>, memref<32x16x3x3xf32>) outs(%sums : memref<1x32x7x7xf32>)
  linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, h, w)>],
                  iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%sums : memref<1x32x7x7xf32>) outs(%z : memref<1x32x7x7xf32>) {
  ^bb0(%sum: f32, %out: f32):
    %kept = arith.maximumf %sum, %zero : f32
    linalg.yield %kept : f32
  }
  memref.copy %flat, %last : memref<32x49xf32> to memref<32x49xf32>
  return
}
