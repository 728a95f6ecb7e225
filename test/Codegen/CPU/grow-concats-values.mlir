// What is read of a tensor that grows is what a copy would have.

// RUN: kas-opt %s -kas-grow-concats | FileCheck %s
// RUN: kas-run %s --function=dense --check=%S/Inputs/nested-concats.mlir | FileCheck %s --check-prefix=VALUES
// CHECK-NOT: tensor.concat
// VALUES: {{^  ok$}}
func.func @dense(%a: tensor<1x4x5x3xf32> {kas.name = "a"}, %b: tensor<1x1x5x3xf32> {kas.name = "b"}) -> tensor<1x20x5x3xf32> {
  %ab = tensor.concat dim(1) %a, %b : (tensor<1x4x5x3xf32>, tensor<1x1x5x3xf32>) -> tensor<1x5x5x3xf32>
  %five = tensor.empty() : tensor<1x5x5x3xf32>
  %c = linalg.exp ins(%ab : tensor<1x5x5x3xf32>) outs(%five : tensor<1x5x5x3xf32>) -> tensor<1x5x5x3xf32>
  %abc = tensor.concat dim(1) %a, %b, %c : (tensor<1x4x5x3xf32>, tensor<1x1x5x3xf32>, tensor<1x5x5x3xf32>) -> tensor<1x10x5x3xf32>
  %ten = tensor.empty() : tensor<1x10x5x3xf32>
  %d = linalg.mul ins(%abc, %abc : tensor<1x10x5x3xf32>, tensor<1x10x5x3xf32>) outs(%ten : tensor<1x10x5x3xf32>) -> tensor<1x10x5x3xf32>
  %abcd = tensor.concat dim(1) %a, %b, %c, %d : (tensor<1x4x5x3xf32>, tensor<1x1x5x3xf32>, tensor<1x5x5x3xf32>, tensor<1x10x5x3xf32>) -> tensor<1x20x5x3xf32>
  return %abcd : tensor<1x20x5x3xf32>
}
