// Two arguments and a result, for tests of files and names.
func.func @forward(%x: tensor<2x3xf32> {kas.name = "input"},
                   %b: tensor<2x3xf32> {kas.name = "bias", kas.init = "constant(0.5)"}) -> tensor<2x3xf32> {
  %e = tensor.empty() : tensor<2x3xf32>
  %0 = linalg.add ins(%x, %b : tensor<2x3xf32>, tensor<2x3xf32>) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
func.func @integers(%x: tensor<2xi32>) -> tensor<2xi32> {
  return %x : tensor<2xi32>
}
