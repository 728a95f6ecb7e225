// RUN: kas-opt %s -kas-pack-operators="threads=1 prepacked=true" | FileCheck %s

// Each sum has one source twice: it is looked at once, not 2^40 times.
// CHECK-LABEL: func.func @weights
// CHECK:         linalg.matmul
func.func @weights(%x: tensor<4x8xf32>, %w0: tensor<8x16xf32>)
    -> tensor<4x16xf32> {
  %w1 = arith.addf %w0, %w0 : tensor<8x16xf32>
  %w2 = arith.addf %w1, %w1 : tensor<8x16xf32>
  %w3 = arith.addf %w2, %w2 : tensor<8x16xf32>
  %w4 = arith.addf %w3, %w3 : tensor<8x16xf32>
  %w5 = arith.addf %w4, %w4 : tensor<8x16xf32>
  %w6 = arith.addf %w5, %w5 : tensor<8x16xf32>
  %w7 = arith.addf %w6, %w6 : tensor<8x16xf32>
  %w8 = arith.addf %w7, %w7 : tensor<8x16xf32>
  %w9 = arith.addf %w8, %w8 : tensor<8x16xf32>
  %w10 = arith.addf %w9, %w9 : tensor<8x16xf32>
  %w11 = arith.addf %w10, %w10 : tensor<8x16xf32>
  %w12 = arith.addf %w11, %w11 : tensor<8x16xf32>
  %w13 = arith.addf %w12, %w12 : tensor<8x16xf32>
  %w14 = arith.addf %w13, %w13 : tensor<8x16xf32>
  %w15 = arith.addf %w14, %w14 : tensor<8x16xf32>
  %w16 = arith.addf %w15, %w15 : tensor<8x16xf32>
  %w17 = arith.addf %w16, %w16 : tensor<8x16xf32>
  %w18 = arith.addf %w17, %w17 : tensor<8x16xf32>
  %w19 = arith.addf %w18, %w18 : tensor<8x16xf32>
  %w20 = arith.addf %w19, %w19 : tensor<8x16xf32>
  %w21 = arith.addf %w20, %w20 : tensor<8x16xf32>
  %w22 = arith.addf %w21, %w21 : tensor<8x16xf32>
  %w23 = arith.addf %w22, %w22 : tensor<8x16xf32>
  %w24 = arith.addf %w23, %w23 : tensor<8x16xf32>
  %w25 = arith.addf %w24, %w24 : tensor<8x16xf32>
  %w26 = arith.addf %w25, %w25 : tensor<8x16xf32>
  %w27 = arith.addf %w26, %w26 : tensor<8x16xf32>
  %w28 = arith.addf %w27, %w27 : tensor<8x16xf32>
  %w29 = arith.addf %w28, %w28 : tensor<8x16xf32>
  %w30 = arith.addf %w29, %w29 : tensor<8x16xf32>
  %w31 = arith.addf %w30, %w30 : tensor<8x16xf32>
  %w32 = arith.addf %w31, %w31 : tensor<8x16xf32>
  %w33 = arith.addf %w32, %w32 : tensor<8x16xf32>
  %w34 = arith.addf %w33, %w33 : tensor<8x16xf32>
  %w35 = arith.addf %w34, %w34 : tensor<8x16xf32>
  %w36 = arith.addf %w35, %w35 : tensor<8x16xf32>
  %w37 = arith.addf %w36, %w36 : tensor<8x16xf32>
  %w38 = arith.addf %w37, %w37 : tensor<8x16xf32>
  %w39 = arith.addf %w38, %w38 : tensor<8x16xf32>
  %w40 = arith.addf %w39, %w39 : tensor<8x16xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x16xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x16xf32>)
      -> tensor<4x16xf32>
  %y = linalg.matmul ins(%x, %w40 : tensor<4x8xf32>, tensor<8x16xf32>)
      outs(%zeros : tensor<4x16xf32>) -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}
