kas.operator @product(%column: 512, %group: 3, %row: 448, %batch: 3) from [2, 512, 3, 16, 8] {
  %batch_d, %batch_w = kas.share %batch : 3
  %block = kas.reduce sum : 2
  %block_d, %block_w = kas.share %block : 2
  %step = kas.reduce sum : 128
  %step_d, %step_w = kas.share %step : 128
  %q, %m = kas.merge %step_d by 8 : 128
  kas.yield data(%block_d, %column, %batch_d, %q, %m) weight(%block_w, %batch_w, %group, %step_w, %row)
}
func.func @layer(%x: tensor<2x512x3x16x8xf16>, %w: tensor<2x3x3x128x448xf16>) -> tensor<512x3x448x3xf16> {
  %y = kas.apply @product(%x, %w) : (tensor<2x512x3x16x8xf16>, tensor<2x3x3x128x448xf16>) -> tensor<512x3x448x3xf16>
  return %y : tensor<512x3x448x3xf16>
}
