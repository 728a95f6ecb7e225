// A small network for images 1x8x8 of four classes, with a layer that searches replace.
#nchw = affine_map<(n, c, h, w) -> (n, c, h, w)>
#channel = affine_map<(n, c, h, w) -> (c)>
#sum = affine_map<(n, c, h, w) -> (n, c)>
#row = affine_map<(n, c) -> (c)>
#nc = affine_map<(n, c) -> (n, c)>
func.func @forward(%image: tensor<16x1x8x8xf32> {kas.name = "image"},
    %stem: tensor<8x1x3x3xf32> {kas.name = "stem.weight"}, %scale: tensor<8xf32> {kas.name = "norm.weight"},
    %layer: tensor<8x8x3x3xf32> {kas.name = "layer.weight"},
    %head: tensor<4x8xf32> {kas.name = "head.weight"}, %bias: tensor<4xf32> {kas.name = "head.bias"}) -> tensor<16x4xf32> {
  %zero = arith.constant 0.0 : f32
  %filled = tensor.splat %zero : tensor<16x8x8x8xf32>
  %padded = tensor.pad %image low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<16x1x8x8xf32> to tensor<16x1x10x10xf32>
  %a = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%padded, %stem : tensor<16x1x10x10xf32>, tensor<8x1x3x3xf32>) outs(%filled : tensor<16x8x8x8xf32>) -> tensor<16x8x8x8xf32>
  %b = linalg.generic {indexing_maps = [#nchw, #channel, #nchw], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%a, %scale : tensor<16x8x8x8xf32>, tensor<8xf32>) outs(%filled : tensor<16x8x8x8xf32>) {
  ^bb0(%x: f32, %s: f32, %o: f32):
    %product = arith.mulf %x, %s : f32
    %positive = arith.maximumf %product, %zero : f32
    linalg.yield %positive : f32
  } -> tensor<16x8x8x8xf32>
  %padded2 = tensor.pad %b low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<16x8x8x8xf32> to tensor<16x8x10x10xf32>
  %c = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%padded2, %layer : tensor<16x8x10x10xf32>, tensor<8x8x3x3xf32>) outs(%filled : tensor<16x8x8x8xf32>) -> tensor<16x8x8x8xf32>
  %zeros = tensor.splat %zero : tensor<16x8xf32>
  %pooled = linalg.generic {indexing_maps = [#nchw, #sum], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%c : tensor<16x8x8x8xf32>) outs(%zeros : tensor<16x8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %positive = arith.maximumf %x, %zero : f32
    %total = arith.addf %o, %positive : f32
    linalg.yield %total : f32
  } -> tensor<16x8xf32>
  %e = tensor.empty() : tensor<8x4xf32>
  %turned = linalg.transpose ins(%head : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  %start = tensor.splat %zero : tensor<16x4xf32>
  %scores = linalg.matmul ins(%pooled, %turned : tensor<16x8xf32>, tensor<8x4xf32>) outs(%start : tensor<16x4xf32>) -> tensor<16x4xf32>
  %logits = linalg.generic {indexing_maps = [#nc, #row, #nc], iterator_types = ["parallel", "parallel"]}
      ins(%scores, %bias : tensor<16x4xf32>, tensor<4xf32>) outs(%start : tensor<16x4xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    // The mean of 64 places.
    %share = arith.constant 0.015625 : f32
    %mean = arith.mulf %x, %share : f32
    %shifted = arith.addf %mean, %y : f32
    linalg.yield %shifted : f32
  } -> tensor<16x4xf32>
  return %logits : tensor<16x4xf32>
}
