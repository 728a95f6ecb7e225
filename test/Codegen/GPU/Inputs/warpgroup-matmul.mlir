kas.operator @product<M, N, K>
    (%m: M, %n: N) from [M, K] {
  %k = kas.reduce sum : K
  %k_d, %k_w = kas.share %k : K
  kas.yield data(%m, %k_d) weight(%k_w, %n)
}

func.func @layer(%x: tensor<512x1024xf16>, %w: tensor<1024x768xf16>) -> tensor<512x768xf16> {
  %y = kas.apply @product(%x, %w)
    {kas_gpu.schedule = #kas_gpu.schedule<strategy = warpgroup, threads = 256, tile = [64, 256], block = [128, 256],
                                          depth = 64, stages = 4, precision = f16>}
    : (tensor<512x1024xf16>, tensor<1024x768xf16>) -> tensor<512x768xf16>
  return %y : tensor<512x768xf16>
}
