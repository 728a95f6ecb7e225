// RUN: kas-opt %s -kas-grow-concats -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @dense(
// CHECK-SAME:    %[[A:.*]]: tensor<1x4x8xf32>, %[[B:.*]]: tensor<1x4x8xf32>)
// CHECK:         %[[ALL:.*]] = tensor.empty() : tensor<1x24x8xf32>
// CHECK:         %[[FIRST:.*]] = tensor.insert_slice %[[A]] into %[[ALL]][0, 0, 0] [1, 4, 8] [1, 1, 1]
// CHECK:         %[[BOTH:.*]] = tensor.insert_slice %[[B]] into %[[FIRST]][0, 4, 0] [1, 4, 8] [1, 1, 1]
// CHECK:         %[[AB:.*]] = tensor.extract_slice %[[BOTH]][0, 0, 0] [1, 8, 8] [1, 1, 1]
// CHECK:         %[[C:.*]] = math.exp %[[AB]]
// CHECK:         %[[THREE:.*]] = tensor.insert_slice %[[C]] into %[[BOTH]][0, 8, 0] [1, 8, 8] [1, 1, 1]
// CHECK:         %[[ABC:.*]] = tensor.extract_slice %[[THREE]][0, 0, 0] [1, 16, 8] [1, 1, 1]
// CHECK:         %[[D:.*]] = math.sqrt
// CHECK:         %[[FOUR:.*]] = tensor.insert_slice %[[D]] into %[[THREE]][0, 16, 0] [1, 8, 8] [1, 1, 1]
// CHECK:         return %[[FOUR]]
func.func @dense(%a: tensor<1x4x8xf32>, %b: tensor<1x4x8xf32>) -> tensor<1x24x8xf32> {
  %ab = tensor.concat dim(1) %a, %b : (tensor<1x4x8xf32>, tensor<1x4x8xf32>) -> tensor<1x8x8xf32>
  %c = math.exp %ab : tensor<1x8x8xf32>
  %abc = tensor.concat dim(1) %a, %b, %c : (tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x8x8xf32>) -> tensor<1x16x8xf32>
  %part = tensor.extract_slice %abc[0, 8, 0] [1, 8, 8] [1, 1, 1] : tensor<1x16x8xf32> to tensor<1x8x8xf32>
  %d = math.sqrt %part : tensor<1x8x8xf32>
  %abcd = tensor.concat dim(1) %a, %b, %c, %d : (tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x8x8xf32>, tensor<1x8x8xf32>) -> tensor<1x24x8xf32>
  return %abcd : tensor<1x24x8xf32>
}

// -----

// The first one is read after the second: a copy of its own.
// CHECK-LABEL: func.func @read_later(
// CHECK-COUNT-2: tensor.concat
func.func @read_later(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>) -> (tensor<8x8xf32>, tensor<16x8xf32>) {
  %ab = tensor.concat dim(0) %a, %b : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %c = math.exp %ab : tensor<8x8xf32>
  %abc = tensor.concat dim(0) %a, %b, %c : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %e = math.sqrt %ab : tensor<8x8xf32>
  return %e, %abc : tensor<8x8xf32>, tensor<16x8xf32>
}

// -----

// Slices of two samples do not lie together; the order of the inputs counts.
// CHECK-LABEL: func.func @others(
// CHECK-COUNT-4: tensor.concat
func.func @others(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) -> (tensor<2x12xf32>, tensor<6x4xf32>) {
  %ab = tensor.concat dim(1) %a, %b : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x8xf32>
  %abb = tensor.concat dim(1) %a, %b, %b : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x12xf32>
  %ba = tensor.concat dim(0) %b, %a : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %aba = tensor.concat dim(0) %a, %b, %a : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<6x4xf32>
  return %abb, %aba : tensor<2x12xf32>, tensor<6x4xf32>
}
