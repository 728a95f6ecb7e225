// A network of two convolutions as ResNets have them: a bias and a rectifier, then a bias, a residual and a rectifier.
#all = affine_map<(n, o, h, w) -> (n, o, h, w)>
#channel = affine_map<(n, o, h, w) -> (o)>

func.func @forward(%x: tensor<2x64x28x28xf32>, %w1: tensor<64x64x3x3xf32>, %b1: tensor<64xf32>, %w2: tensor<64x64x3x3xf32>,
                   %b2: tensor<64xf32>) -> tensor<2x64x28x28xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x64x28x28xf32>
  %zeros1 = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x64x28x28xf32>) -> tensor<2x64x28x28xf32>
  %pad1 = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%d0: index, %d1: index, %d2: index, %d3: index):
      tensor.yield %zero : f32
  } : tensor<2x64x28x28xf32> to tensor<2x64x30x30xf32>
  %sum1 = linalg.conv_2d_nchw_fchw ins(%pad1, %w1 : tensor<2x64x30x30xf32>, tensor<64x64x3x3xf32>)
      outs(%zeros1 : tensor<2x64x28x28xf32>) -> tensor<2x64x28x28xf32>
  %hidden = linalg.generic {indexing_maps = [#all, #channel, #all],
                            iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%sum1, %b1 : tensor<2x64x28x28xf32>, tensor<64xf32>) outs(%empty : tensor<2x64x28x28xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %biased = arith.addf %a, %b : f32
      %rectified = arith.maximumf %biased, %zero : f32
      linalg.yield %rectified : f32
  } -> tensor<2x64x28x28xf32>
  %zeros2 = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x64x28x28xf32>) -> tensor<2x64x28x28xf32>
  %pad2 = tensor.pad %hidden low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%d0: index, %d1: index, %d2: index, %d3: index):
      tensor.yield %zero : f32
  } : tensor<2x64x28x28xf32> to tensor<2x64x30x30xf32>
  %sum2 = linalg.conv_2d_nchw_fchw ins(%pad2, %w2 : tensor<2x64x30x30xf32>, tensor<64x64x3x3xf32>)
      outs(%zeros2 : tensor<2x64x28x28xf32>) -> tensor<2x64x28x28xf32>
  %y = linalg.generic {indexing_maps = [#all, #channel, #all, #all],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%sum2, %b2, %x : tensor<2x64x28x28xf32>, tensor<64xf32>, tensor<2x64x28x28xf32>)
      outs(%empty : tensor<2x64x28x28xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
      %biased = arith.addf %a, %b : f32
      %added = arith.addf %biased, %c : f32
      %rectified = arith.maximumf %added, %zero : f32
      linalg.yield %rectified : f32
  } -> tensor<2x64x28x28xf32>
  return %y : tensor<2x64x28x28xf32>
}
