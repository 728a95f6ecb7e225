// Functions that apply operators: two in a row, the same data twice, two results, and one with something else between.
kas.operator @linear<N, C, O>(%n: N, %o: O) from [N, C] {
  %c = kas.reduce sum : C
  %d, %w = kas.share %c : C
  kas.yield data(%n, %d) weight(%o, %w)
}
kas.operator @mean<N, C>(%n: N) from [N, C] {
  %c = kas.reduce mean : C
  kas.yield data(%n, %c)
}
func.func @chain(%x: tensor<3x8xf32> {kas.name = "input"}, %v: tensor<6x8xf32>, %w: tensor<5x6xf32>) -> tensor<3x5xf32> {
  %0 = kas.apply @linear(%x, %v) : (tensor<3x8xf32>, tensor<6x8xf32>) -> tensor<3x6xf32>
  %1 = kas.apply @linear(%0, %w) : (tensor<3x6xf32>, tensor<5x6xf32>) -> tensor<3x5xf32>
  return %1 : tensor<3x5xf32>
}
func.func @squares(%x: tensor<4x7xf32>) -> (tensor<4x4xf32>, tensor<4xf32>) {
  %0 = kas.apply @linear(%x, %x) : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x4xf32>
  %1 = kas.apply @mean(%x) : (tensor<4x7xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4x4xf32>, tensor<4xf32>
}
func.func @means(%x: tensor<2x3xf32>, %y: tensor<2x4xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = kas.apply @mean(%x) : (tensor<2x3xf32>) -> tensor<2xf32>
  %1 = kas.apply @mean(%y) : (tensor<2x4xf32>) -> tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}
func.func @sine(%x: tensor<3x8xf32>, %v: tensor<6x8xf32>) -> tensor<3x6xf32> {
  %0 = math.sin %x : tensor<3x8xf32>
  %1 = kas.apply @linear(%0, %v) : (tensor<3x8xf32>, tensor<6x8xf32>) -> tensor<3x6xf32>
  return %1 : tensor<3x6xf32>
}
func.func private @outside(tensor<3x8xf32>) -> tensor<3x6xf32>
