// RUN: kas-opt %s -kas-gpu-form-kernels -split-input-file | FileCheck %s

#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>

// The bias is added after the contractions, with the rectifier: two kernels. Padding, bias and zeros are views.
// CHECK-LABEL: func @layer
// CHECK: %[[PADDED:.*]] = tensor.pad
// CHECK: %[[BIAS:.*]] = linalg.broadcast
// CHECK: %[[ZEROS:.*]] = linalg.fill
// CHECK: %[[SUMS:.*]] = linalg.generic {{.*}} ins(%[[PADDED]], %{{.*}}) outs(%[[ZEROS]]
// CHECK: arith.mulf
// CHECK: %[[RESULT:.*]] = linalg.generic {{.*}} ins(%[[SUMS]], %[[BIAS]]
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.constant 0.0
// CHECK-NEXT: arith.addf
// CHECK-NEXT: arith.maximumf
// CHECK: return %[[RESULT]]
func.func @layer(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %b: tensor<4xf32>) -> tensor<1x4x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x3x8x8xf32> to tensor<1x3x10x10xf32>
  %empty = tensor.empty() : tensor<1x4x8x8xf32>
  %bias = linalg.broadcast ins(%b : tensor<4xf32>) outs(%empty : tensor<1x4x8x8xf32>) dimensions = [0, 2, 3]
  %sums = linalg.conv_2d_nchw_fchw ins(%padded, %w : tensor<1x3x10x10xf32>, tensor<4x3x3x3xf32>)
    outs(%bias : tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%sums : tensor<1x4x8x8xf32>) outs(%empty : tensor<1x4x8x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %max = arith.maximumf %in, %zero : f32
    linalg.yield %max : f32
  } -> tensor<1x4x8x8xf32>
  return %y : tensor<1x4x8x8xf32>
}

// -----

// What is returned is a kernel's: of arguments, views and what is returned twice there are copies.
// CHECK-LABEL: func @returned
// CHECK-SAME: (%[[X:.*]]: tensor<2x3xf32>
// CHECK: %[[NEGATIVE:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<2x3xf32>)
// CHECK: arith.negf
// CHECK: %[[VIEW:.*]] = linalg.transpose ins(%[[NEGATIVE]]
// CHECK: %[[COPY0:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<2x3xf32>)
// CHECK: %[[COPY1:.*]] = linalg.generic {{.*}} ins(%[[VIEW]] : tensor<3x2xf32>)
// CHECK: %[[COPY2:.*]] = linalg.generic {{.*}} ins(%[[NEGATIVE]] : tensor<2x3xf32>)
// CHECK: return %[[COPY0]], %[[COPY1]], %[[NEGATIVE]], %[[COPY2]]
func.func @returned(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3x2xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
  %empty = tensor.empty() : tensor<2x3xf32>
  %a = linalg.negf ins(%x : tensor<2x3xf32>) outs(%empty : tensor<2x3xf32>) -> tensor<2x3xf32>
  %other = tensor.empty() : tensor<3x2xf32>
  %b = linalg.transpose ins(%a : tensor<2x3xf32>) outs(%other : tensor<3x2xf32>) permutation = [1, 0]
  return %x, %b, %a, %a : tensor<2x3xf32>, tensor<3x2xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

// An inserted slice is selected, point by point.
// CHECK-LABEL: func @inserted
// CHECK: tensor.pad %{{.*}} low[2, 1] high[1, 2]
// CHECK: linalg.generic
// CHECK: linalg.index 0
// CHECK: linalg.index 1
// CHECK: arith.select
func.func @inserted(%x: tensor<4x6xf32>, %y: tensor<3xf32>) -> tensor<4x6xf32> {
  %z = tensor.insert_slice %y into %x[2, 1] [1, 3] [1, 1] : tensor<3xf32> into tensor<4x6xf32>
  return %z : tensor<4x6xf32>
}

// -----

// Decomposed first; nothing is left of what is not read.
// CHECK-LABEL: func @softmax
// CHECK-COUNT-4: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK-NOT: arith.cosf
func.func @softmax(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %empty = tensor.empty() : tensor<4x6xf32>
  %unused = linalg.tanh ins(%x : tensor<4x6xf32>) outs(%empty : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<4x6xf32>) outs(%empty : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}
