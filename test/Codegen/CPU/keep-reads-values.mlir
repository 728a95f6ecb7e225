// What an operator reads is not overwritten before, although the slice could be inserted in place.
// RUN: kas-opt %s -kas-specialize -kas-to-linalg -kas-erase-operators -o %t.linalg.mlir
// RUN: kas-run %s --function=forward --check=%t.linalg.mlir --threads=1 | FileCheck %s
// RUN: kas-opt %s -kas-specialize -kas-to-affine -o %t.affine.mlir
// RUN: kas-run %t.affine.mlir --function=forward --check=%t.linalg.mlir --threads=1 | FileCheck %s

// CHECK: {{^ +ok}}

kas.operator @conv1d<N, Cin, Cout, W | k>
    (%n: N, %o: Cout, %w: W) from [N, Cin, W] {
  %c = kas.reduce sum : Cin
  %j = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : Cin
  %j_d, %j_w = kas.share %j : k
  %x = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %c_d, %x) weight(%o, %c_w, %j_w)
}
func.func @forward(%x: tensor<1x8x16xf32>, %v: tensor<8x8x3xf32>, %w: tensor<16x8x3xf32>, %b: tensor<1x4x16xf32>) -> (tensor<1x16x16xf32>, tensor<1x8x16xf32>) {
  %y = kas.apply @conv1d<k = 3>(%x, %v) : (tensor<1x8x16xf32>, tensor<8x8x3xf32>) -> tensor<1x8x16xf32>
  %s = tensor.insert_slice %b into %y[0, 2, 0] [1, 4, 16] [1, 1, 1] : tensor<1x4x16xf32> into tensor<1x8x16xf32>
  %z = kas.apply @conv1d<k = 3>(%y, %w) : (tensor<1x8x16xf32>, tensor<16x8x3xf32>) -> tensor<1x16x16xf32>
  return %z, %s : tensor<1x16x16xf32>, tensor<1x8x16xf32>
}
