kas.operator @matmul<M, N, K>
    (%m: M, %n: N) from [M, K] {
  %k = kas.reduce sum : K
  %k_d, %k_w = kas.share %k : K
  kas.yield data(%m, %k_d) weight(%k_w, %n)
}

func.func @layer(%x: tensor<2048x2048xf32>, %w: tensor<2048x2048xf32>) -> tensor<2048x2048xf32> {
  %y = kas.apply @matmul(%x, %w) : (tensor<2048x2048xf32>, tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  return %y : tensor<2048x2048xf32>
}
