// RUN: kas-opt %s --verify-roundtrip | FileCheck %s
// RUN: kas-opt %s --emit-bytecode | kas-opt | FileCheck %s
// RUN: kas-opt %s -kas-to-linalg | FileCheck %s --check-prefix=LOWER
// RUN: kas-opt %s -kas-cpu-pipeline -o /dev/null

// CHECK-LABEL: func.func @training(
// CHECK: kas.dropout %{{.*}} probability 2.500000e-01 seed %{{.*}} stream 3 : tensor<8x16xf32>, tensor<2xf32>
// LOWER-LABEL: func.func @training(
// LOWER-SAME: %[[X:.*]]: tensor<8x16xf32>, %[[S:.*]]: tensor<2xf32>
// LOWER-DAG: %[[FIRST:.*]] = tensor.extract_slice %[[S]][0] [1] [1] : tensor<2xf32> to tensor<f32>
// LOWER-DAG: %[[SECOND:.*]] = tensor.extract_slice %[[S]][1] [1] [1] : tensor<2xf32> to tensor<f32>
// LOWER: linalg.generic {{.*}} ins(%[[X]], %[[FIRST]], %[[SECOND]] :
// LOWER-COUNT-20: arith.mului_extended
// LOWER-NOT: arith.mului_extended
// A quarter of 2^32; the others by 4/3.
// LOWER: arith.cmpi uge, %{{.*}}, %{{.*}} : i32
// LOWER: arith.select
func.func @training(%x: tensor<8x16xf32>, %seed: tensor<2xf32>) -> tensor<8x16xf32> {
  %y = kas.dropout %x probability 0.25 seed %seed stream 3 : tensor<8x16xf32>, tensor<2xf32>
  return %y : tensor<8x16xf32>
}

// CHECK-LABEL: func.func @evaluation(
// CHECK: kas.dropout %{{.*}} probability 2.500000e-01 : tensor<8x16xf32>
// LOWER-LABEL: func.func @evaluation(
// LOWER-SAME: %[[X:.*]]: tensor<8x16xf32>
// LOWER-NEXT: return %[[X]]
func.func @evaluation(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %y = kas.dropout %x probability 0.25 : tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}
