// A network of products of matrices alone: two linear layers, one with a rectifier, the other with a residual, and scores of
// pairs of rows.
#matrix = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
#left = affine_map<(d0, d1, d2) -> (d0, d2)>
#right = affine_map<(d0, d1, d2) -> (d1, d2)>
#out = affine_map<(d0, d1, d2) -> (d0, d1)>

func.func @forward(%x: tensor<24x40xf32>, %w1: tensor<56x40xf32>, %b1: tensor<56xf32>, %w2: tensor<56x40xf32>,
                   %b2: tensor<40xf32>, %keys: tensor<12x40xf32>) -> tensor<24x12xf32> {
  %zero = arith.constant 0.0 : f32
  %empty1 = tensor.empty() : tensor<24x56xf32>
  %zeros1 = linalg.fill ins(%zero : f32) outs(%empty1 : tensor<24x56xf32>) -> tensor<24x56xf32>
  %sum1 = linalg.generic {indexing_maps = [#left, #right, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w1 : tensor<24x40xf32>, tensor<56x40xf32>) outs(%zeros1 : tensor<24x56xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %product = arith.mulf %a, %b : f32
      %next = arith.addf %c, %product : f32
      linalg.yield %next : f32
  } -> tensor<24x56xf32>
  %hidden = linalg.generic {indexing_maps = [#matrix, #row, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%sum1, %b1 : tensor<24x56xf32>, tensor<56xf32>) outs(%empty1 : tensor<24x56xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %biased = arith.addf %a, %b : f32
      %rectified = arith.maximumf %biased, %zero : f32
      linalg.yield %rectified : f32
  } -> tensor<24x56xf32>
  %empty2 = tensor.empty() : tensor<24x40xf32>
  %zeros2 = linalg.fill ins(%zero : f32) outs(%empty2 : tensor<24x40xf32>) -> tensor<24x40xf32>
  %sum2 = linalg.matmul ins(%hidden, %w2 : tensor<24x56xf32>, tensor<56x40xf32>) outs(%zeros2 : tensor<24x40xf32>)
      -> tensor<24x40xf32>
  %query = linalg.generic {indexing_maps = [#matrix, #row, #matrix, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%sum2, %b2, %x : tensor<24x40xf32>, tensor<40xf32>, tensor<24x40xf32>) outs(%empty2 : tensor<24x40xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
      %biased = arith.addf %a, %b : f32
      %all = arith.addf %biased, %c : f32
      linalg.yield %all : f32
  } -> tensor<24x40xf32>
  %empty3 = tensor.empty() : tensor<24x12xf32>
  %zeros3 = linalg.fill ins(%zero : f32) outs(%empty3 : tensor<24x12xf32>) -> tensor<24x12xf32>
  %scores = linalg.generic {indexing_maps = [#left, #right, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%query, %keys : tensor<24x40xf32>, tensor<12x40xf32>) outs(%zeros3 : tensor<24x12xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %product = arith.mulf %a, %b : f32
      %next = arith.addf %c, %product : f32
      linalg.yield %next : f32
  } -> tensor<24x12xf32>
  return %scores : tensor<24x12xf32>
}
