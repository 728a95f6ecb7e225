// --bind=N=1,C=16,H=14,W=16,k=3
func.func @layer(%x: tensor<1x16x14x16xf32>, %w: tensor<16x3x3xf32>) -> tensor<1x16x14x16xf32> {
  %y = kas.apply @conv2d_depthwise<k = 3>(%x, %w)
      : (tensor<1x16x14x16xf32>, tensor<16x3x3xf32>) -> tensor<1x16x14x16xf32>
  return %y : tensor<1x16x14x16xf32>
}
