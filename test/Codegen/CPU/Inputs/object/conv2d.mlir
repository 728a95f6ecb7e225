// --bind=N=1,Cin=8,Cout=16,H=14,W=14,k=3
func.func @layer(%x: tensor<1x8x14x14xf32> {kas.name = "x"}, %w: tensor<16x8x3x3xf32> {kas.name = "conv1.weight"})
    -> tensor<1x16x14x14xf32> {
  %y = kas.apply @conv2d<k = 3>(%x, %w) : (tensor<1x8x14x14xf32>, tensor<16x8x3x3xf32>) -> tensor<1x16x14x14xf32>
  return %y : tensor<1x16x14x14xf32>
}
