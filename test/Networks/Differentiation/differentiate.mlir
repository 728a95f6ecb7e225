// RUN: kas-opt %s --split-input-file -kas-differentiate=function=f -canonicalize | FileCheck %s
// RUN: kas-opt %s --split-input-file -kas-differentiate='function=f arguments=0' | FileCheck %s --check-prefix=FIRST

// The results, then the gradients, by all arguments or by some.
// CHECK-LABEL: func.func @f_gradient(
// CHECK-SAME: %[[X:.*]]: tensor<4x6xf32>, %[[Y:.*]]: tensor<6xf32>, %[[DR:.*]]: tensor<4x6xf32>)
// CHECK-SAME: -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<6xf32>)
// CHECK: %[[R:.*]] = linalg.generic
// CHECK: math.tanh
// What is summed over is the other one's dimension; what is not needed is not read.
// CHECK: %[[DX:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins(%[[X]], %[[Y]], %[[DR]] :
// CHECK: %[[DY:.*]] = linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]} ins(%[[X]], %[[DR]] :
// CHECK: return %[[R]], %[[DX]], %[[DY]]

// FIRST-LABEL: func.func @f_gradient(
// FIRST-SAME: -> (tensor<4x6xf32>, tensor<4x6xf32>)
func.func @f(%x: tensor<4x6xf32>, %y: tensor<6xf32>) -> tensor<4x6xf32> {
  %e = tensor.empty() : tensor<4x6xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<4x6xf32>, tensor<6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %t = math.tanh %a : f32
    %v = arith.mulf %t, %b : f32
    linalg.yield %v : f32
  } -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

// The gradient of a convolution by its data is a sum over windows again, for each remainder of rows and columns by the
// stride: of the parts of the weight that reach it, the last one first, with the channels of the data outermost.
// CHECK-DAG: #[[LAST:.*]] = affine_map<(d0, d1, d2, d3) -> (d1, d0, (-d2 + 1) * 2, (-d3 + 1) * 2)>
// CHECK-DAG: #[[WINDOW:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2 + d5, d3 + d6)>
// CHECK-LABEL: func.func @f_gradient(
// CHECK-SAME: %[[DR:[a-z0-9]+]]: tensor<2x4x3x3xf32>)
// CHECK: linalg.conv_2d_nchw_fchw
// CHECK: %[[W:.*]] = linalg.generic {indexing_maps = [#[[LAST]], {{.*}} outs(%{{.*}} : tensor<3x4x2x2xf32>)
// CHECK: %[[P:.*]] = tensor.pad %[[DR]] low[0, 0, 1, 1] high[0, 0, 1, 1]
// CHECK: %[[S:.*]] = linalg.generic {indexing_maps = [{{.*}}, #[[WINDOW]], {{.*}}ins(%[[W]], %[[P]] :
// CHECK: tensor.insert_slice %[[S]] into %{{.*}}[0, 0, 0, 0] [2, 3, 4, 4] [1, 1, 2, 2]

// FIRST-LABEL: func.func @f_gradient(
// FIRST-SAME: -> (tensor<2x4x3x3xf32>, tensor<2x3x7x8xf32>)
func.func @f(%x: tensor<2x3x7x8xf32>, %w: tensor<4x3x3x3xf32>, %o: tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32> {
  %r = linalg.conv_2d_nchw_fchw {strides = dense<2> : tensor<2xi64>}
      ins(%x, %w : tensor<2x3x7x8xf32>, tensor<4x3x3x3xf32>) outs(%o : tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
  return %r : tensor<2x4x3x3xf32>
}

// -----

// A maximum that comes with its position is the maximum alone: its gradient goes to the elements that equal it.
// CHECK-LABEL: func.func @f_gradient(
// CHECK-SAME: %[[X:.*]]: tensor<2x3xf32>, %[[DR:.*]]: tensor<2xf32>)
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[X]] :
// CHECK: arith.maximumf
// CHECK-NOT: linalg.index
// CHECK: %[[MAX:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[X]] :
// CHECK: %[[DX:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[MAX]], %{{.*}} :
// CHECK: arith.cmpf oeq
// CHECK: return %{{.*}}, %[[DX]]
#in = affine_map<(i, j) -> (i, j)>
#out = affine_map<(i, j) -> (i)>
func.func @f(%x: tensor<2x3xf32>) -> tensor<2xf32> {
  %least = arith.constant dense<0xFF800000> : tensor<2xf32>
  %zero = arith.constant dense<0> : tensor<2xi64>
  %r:2 = linalg.generic {indexing_maps = [#in, #out, #out], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<2x3xf32>) outs(%least, %zero : tensor<2xf32>, tensor<2xi64>) {
  ^bb0(%a: f32, %b: f32, %p: i64):
    %j = linalg.index 1 : index
    %q = arith.index_cast %j : index to i64
    %v = arith.maximumf %a, %b : f32
    %c = arith.cmpf ogt, %a, %b : f32
    %w = arith.select %c, %q, %p : i64
    linalg.yield %v, %w : f32, i64
  } -> (tensor<2xf32>, tensor<2xi64>)
  return %r#0 : tensor<2xf32>
}
