// --bind=N=1,Cin=64,Cout=64,H=24,W=20,k=3,g=2
func.func @layer(%x: tensor<1x64x24x20xf32>, %w: tensor<2x32x32x3x3xf32>) -> tensor<1x64x24x20xf32> {
  %y = kas.apply @conv2d_grouped<k = 3, g = 2>(%x, %w)
      : (tensor<1x64x24x20xf32>, tensor<2x32x32x3x3xf32>) -> tensor<1x64x24x20xf32>
  return %y : tensor<1x64x24x20xf32>
}
