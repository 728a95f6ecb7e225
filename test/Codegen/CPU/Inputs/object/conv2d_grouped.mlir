// --bind=N=1,Cin=16,Cout=16,H=12,W=20,k=3,g=2
func.func @layer(%x: tensor<1x16x12x20xf32>, %w: tensor<2x8x8x3x3xf32>) -> tensor<1x16x12x20xf32> {
  %y = kas.apply @conv2d_grouped<k = 3, g = 2>(%x, %w)
      : (tensor<1x16x12x20xf32>, tensor<2x8x8x3x3xf32>) -> tensor<1x16x12x20xf32>
  return %y : tensor<1x16x12x20xf32>
}
