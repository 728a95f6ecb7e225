// --bind=N=1,Cin=64,Cout=64,H=14,W=14,k=3,g=32,s=2
func.func @layer(%x: tensor<1x64x14x14xf32>, %w1: tensor<64x3x1xf32>, %w2: tensor<32x3x3x64x1xf32>)
    -> tensor<1x64x14x14xf32> {
  %y = kas.apply @syno_operator1<k = 3, g = 32, s = 2>(%x, %w1, %w2)
      : (tensor<1x64x14x14xf32>, tensor<64x3x1xf32>, tensor<32x3x3x64x1xf32>) -> tensor<1x64x14x14xf32>
  return %y : tensor<1x64x14x14xf32>
}
