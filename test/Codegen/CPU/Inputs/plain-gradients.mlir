// The functions of rearranged-gradients.mlir as sums whose outputs suit their vectors.
func.func @weights_by_place(%x: tensor<4x8x8x8xf32>, %dy: tensor<4x16x8x8xf32>) -> tensor<16x8x3x4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[0, 0, 1, 0] high[0, 0, 1, 0] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<4x8x8x8xf32> to tensor<4x8x10x8xf32>
  %xs = tensor.expand_shape %padded [[0], [1], [2], [3, 4]] output_shape [4, 8, 10, 2, 4]
      : tensor<4x8x10x8xf32> into tensor<4x8x10x2x4xf32>
  %dys = tensor.expand_shape %dy [[0], [1], [2], [3, 4]] output_shape [4, 16, 8, 2, 4]
      : tensor<4x16x8x8xf32> into tensor<4x16x8x2x4xf32>
  %empty = tensor.empty() : tensor<16x4x8x3x4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x4x8x3x4xf32>) -> tensor<16x4x8x3x4xf32>
  %sum = linalg.generic {
    indexing_maps = [affine_map<(c, m, i, j, l, n, h, q) -> (n, i, h + j, q, l)>,
                     affine_map<(c, m, i, j, l, n, h, q) -> (n, c, h, q, m)>,
                     affine_map<(c, m, i, j, l, n, h, q) -> (c, m, i, j, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]
  } ins(%xs, %dys : tensor<4x8x10x2x4xf32>, tensor<4x16x8x2x4xf32>) outs(%zeros : tensor<16x4x8x3x4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %product = arith.mulf %a, %b : f32
    %next = arith.addf %c, %product : f32
    linalg.yield %next : f32
  } -> tensor<16x4x8x3x4xf32>
  %other = tensor.empty() : tensor<16x8x3x4x4xf32>
  %dw = linalg.transpose ins(%sum : tensor<16x4x8x3x4xf32>) outs(%other : tensor<16x8x3x4x4xf32>) permutation = [0, 2, 3, 4, 1]
  return %dw : tensor<16x8x3x4x4xf32>
}
func.func @short_columns(%x: tensor<16x8x4x4xf32>, %y: tensor<8x16x4x4x16xf32>) -> tensor<8x8x16x4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x4x4x8x16xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x4x4x8x16xf32>) -> tensor<8x4x4x8x16xf32>
  %sum = linalg.generic {
    indexing_maps = [affine_map<(n, j, h, i, w, r, s) -> (r, i, j, s)>,
                     affine_map<(n, j, h, i, w, r, s) -> (n, r, s, h, w)>,
                     affine_map<(n, j, h, i, w, r, s) -> (n, j, h, i, w)>],
    iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]
  } ins(%x, %y : tensor<16x8x4x4xf32>, tensor<8x16x4x4x16xf32>) outs(%zeros : tensor<8x4x4x8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %product = arith.mulf %a, %b : f32
    %next = arith.addf %c, %product : f32
    linalg.yield %next : f32
  } -> tensor<8x4x4x8x16xf32>
  %other = tensor.empty() : tensor<8x8x16x4x4xf32>
  %out = linalg.transpose ins(%sum : tensor<8x4x4x8x16xf32>) outs(%other : tensor<8x8x16x4x4xf32>) permutation = [0, 3, 4, 1, 2]
  return %out : tensor<8x8x16x4x4xf32>
}
