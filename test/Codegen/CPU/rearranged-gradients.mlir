// RUN: kas-opt %s -kas-attach-cpu-target=cpu=x86-64-v4 -kas-specialize -kas-pack-operators='threads=1' --remarks-filter=kas-panels -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK
// RUN: kas-run %s --function=weights_by_place --check=%S/Inputs/plain-gradients.mlir --threads=1 | FileCheck %s --check-prefix=VALUES
// RUN: kas-run %s --function=weights_by_place --check=%S/Inputs/plain-gradients.mlir --threads=2 | FileCheck %s --check-prefix=VALUES
// RUN: kas-run %s --function=short_columns --check=%S/Inputs/plain-gradients.mlir --threads=1 | FileCheck %s --check-prefix=VALUES

// VALUES: {{^  ok$}}

// Vectors may run along any input. The gradient of a weight ends with the place in a line, with which the data does not step; and the
// data, which lies beyond its borders for some terms, cannot be read one by one. Its sums end with what the data steps with, and are
// transposed after.
//
// REMARK: Rearranged{{.*}}copiedWeights=0, transposedOutput=true
kas.operator private @by_place(%n: 4, %c: 16, %h: 8, %w: 8) from [4, 8, 8, 8] {
  %i = kas.reduce sum : 8
  %j = kas.reduce sum : 3
  %l = kas.reduce sum : 4
  %id, %iw = kas.share %i : 8
  %jd, %jw = kas.share %j : 3
  %ld, %lw = kas.share %l : 4
  %u = kas.unfold %h, %jd : 8, 3
  %q, %m = kas.merge %w by 4 : 8
  %s = kas.split %q, %ld : 2, 4
  kas.yield data(%n, %id, %u, %s) weight(%c, %iw, %jw, %lw, %m)
}
func.func @weights_by_place(%x: tensor<4x8x8x8xf32>, %dy: tensor<4x16x8x8xf32>) -> tensor<16x8x3x4x4xf32> {
  %dw = kas.apply_gradient @by_place of 1(%x, %dy) : (tensor<4x8x8x8xf32>, tensor<4x16x8x8xf32>) -> tensor<16x8x3x4x4xf32>
  return %dw : tensor<16x8x3x4x4xf32>
}

// Inner products come first: what another layout takes is underestimated beside them, and this gradient was three times slower with it.
//
// REMARK-NOT: Rearranged
// REMARK: InnerProducts
kas.operator private @few_outputs(%n: 64, %c: 12, %h: 16, %w: 16) from [64, 64, 16, 16] {
  %i = kas.reduce sum : 64
  %id, %iw = kas.share %i : 64
  kas.yield data(%n, %id, %h, %w) weight(%c, %iw)
}
func.func @inner_products(%x: tensor<64x64x16x16xf32>, %dy: tensor<64x12x16x16xf32>) -> tensor<12x64xf32> {
  %dw = kas.apply_gradient @few_outputs of 1(%x, %dy) : (tensor<64x64x16x16xf32>, tensor<64x12x16x16xf32>) -> tensor<12x64xf32>
  return %dw : tensor<12x64xf32>
}

// A sum whose output ends with four columns.
//
// REMARK: Rearranged{{.*}}copiedWeights=0, transposedOutput=true
func.func @short_columns(%x: tensor<16x8x4x4xf32>, %y: tensor<8x16x4x4x16xf32>) -> tensor<8x8x16x4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x8x16x4x4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x8x16x4x4xf32>) -> tensor<8x8x16x4x4xf32>
  %sum = linalg.generic {
    indexing_maps = [affine_map<(n, r, s, h, w, i, j) -> (r, i, j, s)>,
                     affine_map<(n, r, s, h, w, i, j) -> (n, r, s, h, w)>,
                     affine_map<(n, r, s, h, w, i, j) -> (n, i, w, j, h)>],
    iterator_types = ["parallel", "reduction", "reduction", "parallel", "parallel", "parallel", "parallel"]
  } ins(%x, %y : tensor<16x8x4x4xf32>, tensor<8x16x4x4x16xf32>) outs(%zeros : tensor<8x8x16x4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %product = arith.mulf %a, %b : f32
    %next = arith.addf %c, %product : f32
    linalg.yield %next : f32
  } -> tensor<8x8x16x4x4xf32>
  return %sum : tensor<8x8x16x4x4xf32>
}
