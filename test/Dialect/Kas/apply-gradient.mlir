// RUN: kas-opt %s | kas-opt | FileCheck %s
// RUN: kas-opt %s -kas-pack-operators --remarks-filter=kas-panels -o %t 2>&1 | FileCheck %s --check-prefix=PACK
// RUN: FileCheck %s --check-prefix=PACKED --input-file=%t
// RUN: kas-opt %s -kas-to-affine | FileCheck %s --check-prefix=LOOPS
// RUN: kas-opt %s -kas-erase-operators | FileCheck %s --check-prefix=KEPT

// CHECK: kas.apply_gradient @conv of 0(%{{.*}}, %{{.*}}) : (tensor<8x4x3xf32>, tensor<2x8x32xf32>) -> tensor<2x4x32xf32>
// CHECK: kas.apply_gradient @conv of 1(%{{.*}}, %{{.*}}) : (tensor<2x4x32xf32>, tensor<2x8x32xf32>) -> tensor<8x4x3xf32>
// KEPT: kas.operator @conv

// Register tiles, as of any sum of products.
// PACK-COUNT-2: remark: [Passed]
// PACKED-NOT: kas.apply_gradient
// PACKED: vector.fma

// LOOPS-NOT: kas.apply_gradient
// LOOPS: affine.for
func.func @f(%x: tensor<2x4x32xf32>, %w: tensor<8x4x3xf32>, %dy: tensor<2x8x32xf32>)
    -> (tensor<2x4x32xf32>, tensor<8x4x3xf32>) {
  %dx = kas.apply_gradient @conv of 0(%w, %dy) : (tensor<8x4x3xf32>, tensor<2x8x32xf32>) -> tensor<2x4x32xf32>
  %dw = kas.apply_gradient @conv of 1(%x, %dy) : (tensor<2x4x32xf32>, tensor<2x8x32xf32>) -> tensor<8x4x3xf32>
  return %dx, %dw : tensor<2x4x32xf32>, tensor<8x4x3xf32>
}

kas.operator @conv(%n: 2, %o: 8, %w: 32) from [2, 4, 32] {
  %c = kas.reduce sum : 4
  %j = kas.reduce sum : 3
  %c_d, %c_w = kas.share %c : 4
  %j_d, %j_w = kas.share %j : 3
  %x = kas.unfold %w, %j_d : 32, 3
  kas.yield data(%n, %c_d, %x) weight(%o, %c_w, %j_w)
}
