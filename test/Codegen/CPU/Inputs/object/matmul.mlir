// --bind=M=13,N=40,K=17
func.func @layer(%x: tensor<13x17xf32>, %w: tensor<17x40xf32>) -> tensor<13x40xf32> {
  %y = kas.apply @matmul(%x, %w) : (tensor<13x17xf32>, tensor<17x40xf32>) -> tensor<13x40xf32>
  return %y : tensor<13x40xf32>
}
