// RUN: kas-opt %s | kas-opt | FileCheck %s
// RUN: kas-opt %s -kas-to-linalg | FileCheck %s --check-prefix=LOWER
// RUN: kas-opt %s --emit-bytecode | kas-opt | FileCheck %s

// CHECK-LABEL: func.func @images(
// CHECK: kas.batch_norm %{{.*}}, %{{.*}}, %{{.*}} epsilon 1.000000e-05 : tensor<8x16x4x4xf32>, tensor<16xf32>
// LOWER-LABEL: func.func @images(
// LOWER-SAME: %[[X:.*]]: tensor<8x16x4x4xf32>
// LOWER-NOT: kas.batch_norm
// The sum over samples runs along rows and columns.
// LOWER: %[[C:.*]] = tensor.collapse_shape %[[X]] {{\[\[}}0], [1], [2, 3]]
// LOWER: linalg.generic {{.*}} iterator_types = ["reduction", "parallel", "parallel"]} ins(%[[C]] :
// LOWER: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]}
// LOWER: math.sqrt
// LOWER: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%[[X]],
func.func @images(%x: tensor<8x16x4x4xf32>, %scale: tensor<16xf32>, %offset: tensor<16xf32>)
    -> (tensor<8x16x4x4xf32>, tensor<16xf32>, tensor<16xf32>) {
  %y, %mean, %variance = kas.batch_norm %x, %scale, %offset epsilon 1.0e-05
      : tensor<8x16x4x4xf32>, tensor<16xf32>
  return %y, %mean, %variance : tensor<8x16x4x4xf32>, tensor<16xf32>, tensor<16xf32>
}

// LOWER-LABEL: func.func @rows(
// LOWER-NOT: tensor.collapse_shape
func.func @rows(%x: tensor<8x16xf32>, %scale: tensor<16xf32>) -> tensor<8x16xf32> {
  %y, %mean, %variance = kas.batch_norm %x, %scale, %scale epsilon 1.0e-05 : tensor<8x16xf32>, tensor<16xf32>
  return %y : tensor<8x16xf32>
}
