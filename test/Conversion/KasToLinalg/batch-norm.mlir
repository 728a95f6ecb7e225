// RUN: kas-opt %s | kas-opt | FileCheck %s
// RUN: kas-opt %s -kas-to-linalg | FileCheck %s --check-prefix=LOWER
// RUN: kas-opt %s --emit-bytecode | kas-opt | FileCheck %s

// CHECK-LABEL: func.func @images(
// CHECK: kas.batch_norm %{{.*}}, %{{.*}}, %{{.*}} epsilon 1.000000e-05 : tensor<8x16x4x4xf32>, tensor<16xf32>
// LOWER-LABEL: func.func @images(
// LOWER-SAME: %[[X:.*]]: tensor<8x16x4x4xf32>
// LOWER-NOT: kas.batch_norm
// One pass over the data: for each sample and channel the sums of the distances from the middle element and of their squares.
// LOWER: %[[MIDDLE:.*]] = tensor.extract_slice %[[X]][0, 0, 2, 2] [8, 16, 1, 1] [1, 1, 1, 1]
// LOWER: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%[[X]], %[[MIDDLE]] :
// LOWER:   %[[D:.*]] = arith.subf
// LOWER:   %[[S:.*]] = arith.mulf %[[D]], %[[D]]
// LOWER:   arith.addf %{{.*}}, %[[D]] fastmath<reassoc>
// LOWER:   arith.addf %{{.*}}, %[[S]] fastmath<reassoc>
// LOWER-NOT: ins(%[[X]]
// LOWER: linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]}
// LOWER-NOT: ins(%[[X]]
// LOWER: linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]}
// LOWER: math.sqrt
// LOWER: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%[[X]],
func.func @images(%x: tensor<8x16x4x4xf32>, %scale: tensor<16xf32>, %offset: tensor<16xf32>)
    -> (tensor<8x16x4x4xf32>, tensor<16xf32>, tensor<16xf32>) {
  %y, %mean, %variance = kas.batch_norm %x, %scale, %offset epsilon 1.0e-05
      : tensor<8x16x4x4xf32>, tensor<16xf32>
  return %y, %mean, %variance : tensor<8x16x4x4xf32>, tensor<16xf32>, tensor<16xf32>
}

// LOWER-LABEL: func.func @rows(
// LOWER-NOT: kas.batch_norm
func.func @rows(%x: tensor<8x16xf32>, %scale: tensor<16xf32>) -> tensor<8x16xf32> {
  %y, %mean, %variance = kas.batch_norm %x, %scale, %scale epsilon 1.0e-05 : tensor<8x16xf32>, tensor<16xf32>
  return %y : tensor<8x16xf32>
}
