// ResNet-8 of width 16 for batches of 64 images 1x28x28 of ten classes, as torch-mlir writes it.
#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d1, 0, 0)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1)>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
#map5 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @forward(%arg0: tensor<64x1x28x28xf32> {kas.name = "input"}, %arg1: tensor<16x1x3x3xf32> {kas.name = "stem.weight"}, %arg2: tensor<16xf32> {kas.name = "norm.weight"}, %arg3: tensor<16xf32> {kas.name = "norm.bias"}, %arg4: tensor<16x16x3x3xf32> {kas.name = "blocks.0.conv0.weight"}, %arg5: tensor<16xf32> {kas.name = "blocks.0.norm0.weight"}, %arg6: tensor<16xf32> {kas.name = "blocks.0.norm0.bias"}, %arg7: tensor<16x16x3x3xf32> {kas.name = "blocks.0.conv1.weight"}, %arg8: tensor<16xf32> {kas.name = "blocks.0.norm1.weight"}, %arg9: tensor<16xf32> {kas.name = "blocks.0.norm1.bias"}, %arg10: tensor<32x16x3x3xf32> {kas.name = "blocks.1.conv0.weight"}, %arg11: tensor<32xf32> {kas.name = "blocks.1.norm0.weight"}, %arg12: tensor<32xf32> {kas.name = "blocks.1.norm0.bias"}, %arg13: tensor<32x32x3x3xf32> {kas.name = "blocks.1.conv1.weight"}, %arg14: tensor<32xf32> {kas.name = "blocks.1.norm1.weight"}, %arg15: tensor<32xf32> {kas.name = "blocks.1.norm1.bias"}, %arg16: tensor<32x16x1x1xf32> {kas.name = "blocks.1.short.0.weight"}, %arg17: tensor<32xf32> {kas.name = "blocks.1.short.1.weight"}, %arg18: tensor<32xf32> {kas.name = "blocks.1.short.1.bias"}, %arg19: tensor<64x32x3x3xf32> {kas.name = "blocks.2.conv0.weight"}, %arg20: tensor<64xf32> {kas.name = "blocks.2.norm0.weight"}, %arg21: tensor<64xf32> {kas.name = "blocks.2.norm0.bias"}, %arg22: tensor<64x64x3x3xf32> {kas.name = "blocks.2.conv1.weight"}, %arg23: tensor<64xf32> {kas.name = "blocks.2.norm1.weight"}, %arg24: tensor<64xf32> {kas.name = "blocks.2.norm1.bias"}, %arg25: tensor<64x32x1x1xf32> {kas.name = "blocks.2.short.0.weight"}, %arg26: tensor<64xf32> {kas.name = "blocks.2.short.1.weight"}, %arg27: tensor<64xf32> {kas.name = "blocks.2.short.1.bias"}, %arg28: tensor<10x64xf32> {kas.name = "head.weight"}, %arg29: tensor<10xf32> {kas.name = "head.bias"}, %arg30: tensor<16xf32> {kas.name = "norm.running_mean"}, %arg31: tensor<16xf32> {kas.name = "norm.running_var"}, %arg32: tensor<16xf32> {kas.name = "blocks.0.norm0.running_mean"}, %arg33: tensor<16xf32> {kas.name = "blocks.0.norm0.running_var"}, %arg34: tensor<16xf32> {kas.name = "blocks.0.norm1.running_mean"}, %arg35: tensor<16xf32> {kas.name = "blocks.0.norm1.running_var"}, %arg36: tensor<32xf32> {kas.name = "blocks.1.norm0.running_mean"}, %arg37: tensor<32xf32> {kas.name = "blocks.1.norm0.running_var"}, %arg38: tensor<32xf32> {kas.name = "blocks.1.norm1.running_mean"}, %arg39: tensor<32xf32> {kas.name = "blocks.1.norm1.running_var"}, %arg40: tensor<32xf32> {kas.name = "blocks.1.short.1.running_mean"}, %arg41: tensor<32xf32> {kas.name = "blocks.1.short.1.running_var"}, %arg42: tensor<64xf32> {kas.name = "blocks.2.norm0.running_mean"}, %arg43: tensor<64xf32> {kas.name = "blocks.2.norm0.running_var"}, %arg44: tensor<64xf32> {kas.name = "blocks.2.norm1.running_mean"}, %arg45: tensor<64xf32> {kas.name = "blocks.2.norm1.running_var"}, %arg46: tensor<64xf32> {kas.name = "blocks.2.short.1.running_mean"}, %arg47: tensor<64xf32> {kas.name = "blocks.2.short.1.running_var"}) -> tensor<64x10xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 1.000000e+00 : f32
    %cst_1 = arith.constant 1.000000e-05 : f64
    %cst_2 = arith.constant 4.900000e+01 : f32
    %padded = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg48: index, %arg49: index, %arg50: index, %arg51: index):
      tensor.yield %cst : f32
    } : tensor<64x1x28x28xf32> to tensor<64x1x30x30xf32>
    %0 = tensor.empty() : tensor<64x16x28x28xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<64x16x28x28xf32>) -> tensor<64x16x28x28xf32>
    %2 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded, %arg1 : tensor<64x1x30x30xf32>, tensor<16x1x3x3xf32>) outs(%1 : tensor<64x16x28x28xf32>) -> tensor<64x16x28x28xf32>
    %3 = tensor.empty() : tensor<16xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg31 : tensor<16xf32>) outs(%3 : tensor<16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = arith.truncf %cst_1 : f64 to f32
      %100 = arith.addf %in, %99 : f32
      linalg.yield %100 : f32
    } -> tensor<16xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%4 : tensor<16xf32>) outs(%3 : tensor<16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = math.sqrt %in : f32
      linalg.yield %99 : f32
    } -> tensor<16xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%5 : tensor<16xf32>) outs(%3 : tensor<16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = arith.cmpf one, %in, %cst : f32
      cf.assert %99, "unimplemented: tensor with zero element"
      %100 = arith.divf %cst_0, %in : f32
      linalg.yield %100 : f32
    } -> tensor<16xf32>
    %expanded = tensor.expand_shape %arg30 [[0, 1, 2]] output_shape [16, 1, 1] : tensor<16xf32> into tensor<16x1x1xf32>
    %expanded_3 = tensor.expand_shape %6 [[0, 1, 2]] output_shape [16, 1, 1] : tensor<16xf32> into tensor<16x1x1xf32>
    %7 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2, %expanded : tensor<64x16x28x28xf32>, tensor<16x1x1xf32>) outs(%0 : tensor<64x16x28x28xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.subf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x16x28x28xf32>
    %8 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%7, %expanded_3 : tensor<64x16x28x28xf32>, tensor<16x1x1xf32>) outs(%0 : tensor<64x16x28x28xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.mulf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x16x28x28xf32>
    %expanded_4 = tensor.expand_shape %arg2 [[0, 1, 2]] output_shape [16, 1, 1] : tensor<16xf32> into tensor<16x1x1xf32>
    %9 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%8, %expanded_4 : tensor<64x16x28x28xf32>, tensor<16x1x1xf32>) outs(%0 : tensor<64x16x28x28xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.mulf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x16x28x28xf32>
    %expanded_5 = tensor.expand_shape %arg3 [[0, 1, 2]] output_shape [16, 1, 1] : tensor<16xf32> into tensor<16x1x1xf32>
    %10 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%9, %expanded_5 : tensor<64x16x28x28xf32>, tensor<16x1x1xf32>) outs(%0 : tensor<64x16x28x28xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.addf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x16x28x28xf32>
    %11 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%10 : tensor<64x16x28x28xf32>) outs(%0 : tensor<64x16x28x28xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = arith.cmpf ugt, %in, %cst : f32
      %100 = arith.select %99, %in, %cst : f32
      linalg.yield %100 : f32
    } -> tensor<64x16x28x28xf32>
    %padded_6 = tensor.pad %11 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg48: index, %arg49: index, %arg50: index, %arg51: index):
      tensor.yield %cst : f32
    } : tensor<64x16x28x28xf32> to tensor<64x16x30x30xf32>
    %12 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded_6, %arg4 : tensor<64x16x30x30xf32>, tensor<16x16x3x3xf32>) outs(%1 : tensor<64x16x28x28xf32>) -> tensor<64x16x28x28xf32>
    %13 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg33 : tensor<16xf32>) outs(%3 : tensor<16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = arith.truncf %cst_1 : f64 to f32
      %100 = arith.addf %in, %99 : f32
      linalg.yield %100 : f32
    } -> tensor<16xf32>
    %14 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%13 : tensor<16xf32>) outs(%3 : tensor<16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = math.sqrt %in : f32
      linalg.yield %99 : f32
    } -> tensor<16xf32>
    %15 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%14 : tensor<16xf32>) outs(%3 : tensor<16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = arith.cmpf one, %in, %cst : f32
      cf.assert %99, "unimplemented: tensor with zero element"
      %100 = arith.divf %cst_0, %in : f32
      linalg.yield %100 : f32
    } -> tensor<16xf32>
    %expanded_7 = tensor.expand_shape %arg32 [[0, 1, 2]] output_shape [16, 1, 1] : tensor<16xf32> into tensor<16x1x1xf32>
    %expanded_8 = tensor.expand_shape %15 [[0, 1, 2]] output_shape [16, 1, 1] : tensor<16xf32> into tensor<16x1x1xf32>
    %16 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%12, %expanded_7 : tensor<64x16x28x28xf32>, tensor<16x1x1xf32>) outs(%0 : tensor<64x16x28x28xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.subf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x16x28x28xf32>
    %17 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%16, %expanded_8 : tensor<64x16x28x28xf32>, tensor<16x1x1xf32>) outs(%0 : tensor<64x16x28x28xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.mulf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x16x28x28xf32>
    %expanded_9 = tensor.expand_shape %arg5 [[0, 1, 2]] output_shape [16, 1, 1] : tensor<16xf32> into tensor<16x1x1xf32>
    %18 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%17, %expanded_9 : tensor<64x16x28x28xf32>, tensor<16x1x1xf32>) outs(%0 : tensor<64x16x28x28xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.mulf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x16x28x28xf32>
    %expanded_10 = tensor.expand_shape %arg6 [[0, 1, 2]] output_shape [16, 1, 1] : tensor<16xf32> into tensor<16x1x1xf32>
    %19 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%18, %expanded_10 : tensor<64x16x28x28xf32>, tensor<16x1x1xf32>) outs(%0 : tensor<64x16x28x28xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.addf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x16x28x28xf32>
    %20 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%19 : tensor<64x16x28x28xf32>) outs(%0 : tensor<64x16x28x28xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = arith.cmpf ugt, %in, %cst : f32
      %100 = arith.select %99, %in, %cst : f32
      linalg.yield %100 : f32
    } -> tensor<64x16x28x28xf32>
    %padded_11 = tensor.pad %20 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg48: index, %arg49: index, %arg50: index, %arg51: index):
      tensor.yield %cst : f32
    } : tensor<64x16x28x28xf32> to tensor<64x16x30x30xf32>
    %21 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded_11, %arg7 : tensor<64x16x30x30xf32>, tensor<16x16x3x3xf32>) outs(%1 : tensor<64x16x28x28xf32>) -> tensor<64x16x28x28xf32>
    %22 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg35 : tensor<16xf32>) outs(%3 : tensor<16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = arith.truncf %cst_1 : f64 to f32
      %100 = arith.addf %in, %99 : f32
      linalg.yield %100 : f32
    } -> tensor<16xf32>
    %23 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%22 : tensor<16xf32>) outs(%3 : tensor<16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = math.sqrt %in : f32
      linalg.yield %99 : f32
    } -> tensor<16xf32>
    %24 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%23 : tensor<16xf32>) outs(%3 : tensor<16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = arith.cmpf one, %in, %cst : f32
      cf.assert %99, "unimplemented: tensor with zero element"
      %100 = arith.divf %cst_0, %in : f32
      linalg.yield %100 : f32
    } -> tensor<16xf32>
    %expanded_12 = tensor.expand_shape %arg34 [[0, 1, 2]] output_shape [16, 1, 1] : tensor<16xf32> into tensor<16x1x1xf32>
    %expanded_13 = tensor.expand_shape %24 [[0, 1, 2]] output_shape [16, 1, 1] : tensor<16xf32> into tensor<16x1x1xf32>
    %25 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%21, %expanded_12 : tensor<64x16x28x28xf32>, tensor<16x1x1xf32>) outs(%0 : tensor<64x16x28x28xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.subf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x16x28x28xf32>
    %26 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%25, %expanded_13 : tensor<64x16x28x28xf32>, tensor<16x1x1xf32>) outs(%0 : tensor<64x16x28x28xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.mulf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x16x28x28xf32>
    %expanded_14 = tensor.expand_shape %arg8 [[0, 1, 2]] output_shape [16, 1, 1] : tensor<16xf32> into tensor<16x1x1xf32>
    %27 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%26, %expanded_14 : tensor<64x16x28x28xf32>, tensor<16x1x1xf32>) outs(%0 : tensor<64x16x28x28xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.mulf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x16x28x28xf32>
    %expanded_15 = tensor.expand_shape %arg9 [[0, 1, 2]] output_shape [16, 1, 1] : tensor<16xf32> into tensor<16x1x1xf32>
    %28 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%27, %expanded_15 : tensor<64x16x28x28xf32>, tensor<16x1x1xf32>) outs(%0 : tensor<64x16x28x28xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.addf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x16x28x28xf32>
    %29 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%28, %11 : tensor<64x16x28x28xf32>, tensor<64x16x28x28xf32>) outs(%0 : tensor<64x16x28x28xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.addf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x16x28x28xf32>
    %30 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%29 : tensor<64x16x28x28xf32>) outs(%0 : tensor<64x16x28x28xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = arith.cmpf ugt, %in, %cst : f32
      %100 = arith.select %99, %in, %cst : f32
      linalg.yield %100 : f32
    } -> tensor<64x16x28x28xf32>
    %padded_16 = tensor.pad %30 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg48: index, %arg49: index, %arg50: index, %arg51: index):
      tensor.yield %cst : f32
    } : tensor<64x16x28x28xf32> to tensor<64x16x30x30xf32>
    %31 = tensor.empty() : tensor<64x32x14x14xf32>
    %32 = linalg.fill ins(%cst : f32) outs(%31 : tensor<64x32x14x14xf32>) -> tensor<64x32x14x14xf32>
    %33 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%padded_16, %arg10 : tensor<64x16x30x30xf32>, tensor<32x16x3x3xf32>) outs(%32 : tensor<64x32x14x14xf32>) -> tensor<64x32x14x14xf32>
    %34 = tensor.empty() : tensor<32xf32>
    %35 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg37 : tensor<32xf32>) outs(%34 : tensor<32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = arith.truncf %cst_1 : f64 to f32
      %100 = arith.addf %in, %99 : f32
      linalg.yield %100 : f32
    } -> tensor<32xf32>
    %36 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%35 : tensor<32xf32>) outs(%34 : tensor<32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = math.sqrt %in : f32
      linalg.yield %99 : f32
    } -> tensor<32xf32>
    %37 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%36 : tensor<32xf32>) outs(%34 : tensor<32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = arith.cmpf one, %in, %cst : f32
      cf.assert %99, "unimplemented: tensor with zero element"
      %100 = arith.divf %cst_0, %in : f32
      linalg.yield %100 : f32
    } -> tensor<32xf32>
    %expanded_17 = tensor.expand_shape %arg36 [[0, 1, 2]] output_shape [32, 1, 1] : tensor<32xf32> into tensor<32x1x1xf32>
    %expanded_18 = tensor.expand_shape %37 [[0, 1, 2]] output_shape [32, 1, 1] : tensor<32xf32> into tensor<32x1x1xf32>
    %38 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%33, %expanded_17 : tensor<64x32x14x14xf32>, tensor<32x1x1xf32>) outs(%31 : tensor<64x32x14x14xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.subf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x32x14x14xf32>
    %39 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%38, %expanded_18 : tensor<64x32x14x14xf32>, tensor<32x1x1xf32>) outs(%31 : tensor<64x32x14x14xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.mulf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x32x14x14xf32>
    %expanded_19 = tensor.expand_shape %arg11 [[0, 1, 2]] output_shape [32, 1, 1] : tensor<32xf32> into tensor<32x1x1xf32>
    %40 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%39, %expanded_19 : tensor<64x32x14x14xf32>, tensor<32x1x1xf32>) outs(%31 : tensor<64x32x14x14xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.mulf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x32x14x14xf32>
    %expanded_20 = tensor.expand_shape %arg12 [[0, 1, 2]] output_shape [32, 1, 1] : tensor<32xf32> into tensor<32x1x1xf32>
    %41 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%40, %expanded_20 : tensor<64x32x14x14xf32>, tensor<32x1x1xf32>) outs(%31 : tensor<64x32x14x14xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.addf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x32x14x14xf32>
    %42 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%41 : tensor<64x32x14x14xf32>) outs(%31 : tensor<64x32x14x14xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = arith.cmpf ugt, %in, %cst : f32
      %100 = arith.select %99, %in, %cst : f32
      linalg.yield %100 : f32
    } -> tensor<64x32x14x14xf32>
    %padded_21 = tensor.pad %42 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg48: index, %arg49: index, %arg50: index, %arg51: index):
      tensor.yield %cst : f32
    } : tensor<64x32x14x14xf32> to tensor<64x32x16x16xf32>
    %43 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded_21, %arg13 : tensor<64x32x16x16xf32>, tensor<32x32x3x3xf32>) outs(%32 : tensor<64x32x14x14xf32>) -> tensor<64x32x14x14xf32>
    %44 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg39 : tensor<32xf32>) outs(%34 : tensor<32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = arith.truncf %cst_1 : f64 to f32
      %100 = arith.addf %in, %99 : f32
      linalg.yield %100 : f32
    } -> tensor<32xf32>
    %45 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%44 : tensor<32xf32>) outs(%34 : tensor<32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = math.sqrt %in : f32
      linalg.yield %99 : f32
    } -> tensor<32xf32>
    %46 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%45 : tensor<32xf32>) outs(%34 : tensor<32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = arith.cmpf one, %in, %cst : f32
      cf.assert %99, "unimplemented: tensor with zero element"
      %100 = arith.divf %cst_0, %in : f32
      linalg.yield %100 : f32
    } -> tensor<32xf32>
    %expanded_22 = tensor.expand_shape %arg38 [[0, 1, 2]] output_shape [32, 1, 1] : tensor<32xf32> into tensor<32x1x1xf32>
    %expanded_23 = tensor.expand_shape %46 [[0, 1, 2]] output_shape [32, 1, 1] : tensor<32xf32> into tensor<32x1x1xf32>
    %47 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%43, %expanded_22 : tensor<64x32x14x14xf32>, tensor<32x1x1xf32>) outs(%31 : tensor<64x32x14x14xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.subf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x32x14x14xf32>
    %48 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%47, %expanded_23 : tensor<64x32x14x14xf32>, tensor<32x1x1xf32>) outs(%31 : tensor<64x32x14x14xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.mulf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x32x14x14xf32>
    %expanded_24 = tensor.expand_shape %arg14 [[0, 1, 2]] output_shape [32, 1, 1] : tensor<32xf32> into tensor<32x1x1xf32>
    %49 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%48, %expanded_24 : tensor<64x32x14x14xf32>, tensor<32x1x1xf32>) outs(%31 : tensor<64x32x14x14xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.mulf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x32x14x14xf32>
    %expanded_25 = tensor.expand_shape %arg15 [[0, 1, 2]] output_shape [32, 1, 1] : tensor<32xf32> into tensor<32x1x1xf32>
    %50 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%49, %expanded_25 : tensor<64x32x14x14xf32>, tensor<32x1x1xf32>) outs(%31 : tensor<64x32x14x14xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.addf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x32x14x14xf32>
    %51 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%30, %arg16 : tensor<64x16x28x28xf32>, tensor<32x16x1x1xf32>) outs(%32 : tensor<64x32x14x14xf32>) -> tensor<64x32x14x14xf32>
    %52 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg41 : tensor<32xf32>) outs(%34 : tensor<32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = arith.truncf %cst_1 : f64 to f32
      %100 = arith.addf %in, %99 : f32
      linalg.yield %100 : f32
    } -> tensor<32xf32>
    %53 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%52 : tensor<32xf32>) outs(%34 : tensor<32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = math.sqrt %in : f32
      linalg.yield %99 : f32
    } -> tensor<32xf32>
    %54 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%53 : tensor<32xf32>) outs(%34 : tensor<32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = arith.cmpf one, %in, %cst : f32
      cf.assert %99, "unimplemented: tensor with zero element"
      %100 = arith.divf %cst_0, %in : f32
      linalg.yield %100 : f32
    } -> tensor<32xf32>
    %expanded_26 = tensor.expand_shape %arg40 [[0, 1, 2]] output_shape [32, 1, 1] : tensor<32xf32> into tensor<32x1x1xf32>
    %expanded_27 = tensor.expand_shape %54 [[0, 1, 2]] output_shape [32, 1, 1] : tensor<32xf32> into tensor<32x1x1xf32>
    %55 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%51, %expanded_26 : tensor<64x32x14x14xf32>, tensor<32x1x1xf32>) outs(%31 : tensor<64x32x14x14xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.subf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x32x14x14xf32>
    %56 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%55, %expanded_27 : tensor<64x32x14x14xf32>, tensor<32x1x1xf32>) outs(%31 : tensor<64x32x14x14xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.mulf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x32x14x14xf32>
    %expanded_28 = tensor.expand_shape %arg17 [[0, 1, 2]] output_shape [32, 1, 1] : tensor<32xf32> into tensor<32x1x1xf32>
    %57 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%56, %expanded_28 : tensor<64x32x14x14xf32>, tensor<32x1x1xf32>) outs(%31 : tensor<64x32x14x14xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.mulf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x32x14x14xf32>
    %expanded_29 = tensor.expand_shape %arg18 [[0, 1, 2]] output_shape [32, 1, 1] : tensor<32xf32> into tensor<32x1x1xf32>
    %58 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%57, %expanded_29 : tensor<64x32x14x14xf32>, tensor<32x1x1xf32>) outs(%31 : tensor<64x32x14x14xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.addf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x32x14x14xf32>
    %59 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%50, %58 : tensor<64x32x14x14xf32>, tensor<64x32x14x14xf32>) outs(%31 : tensor<64x32x14x14xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.addf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x32x14x14xf32>
    %60 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%59 : tensor<64x32x14x14xf32>) outs(%31 : tensor<64x32x14x14xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = arith.cmpf ugt, %in, %cst : f32
      %100 = arith.select %99, %in, %cst : f32
      linalg.yield %100 : f32
    } -> tensor<64x32x14x14xf32>
    %padded_30 = tensor.pad %60 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg48: index, %arg49: index, %arg50: index, %arg51: index):
      tensor.yield %cst : f32
    } : tensor<64x32x14x14xf32> to tensor<64x32x16x16xf32>
    %61 = tensor.empty() : tensor<64x64x7x7xf32>
    %62 = linalg.fill ins(%cst : f32) outs(%61 : tensor<64x64x7x7xf32>) -> tensor<64x64x7x7xf32>
    %63 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%padded_30, %arg19 : tensor<64x32x16x16xf32>, tensor<64x32x3x3xf32>) outs(%62 : tensor<64x64x7x7xf32>) -> tensor<64x64x7x7xf32>
    %64 = tensor.empty() : tensor<64xf32>
    %65 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg43 : tensor<64xf32>) outs(%64 : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = arith.truncf %cst_1 : f64 to f32
      %100 = arith.addf %in, %99 : f32
      linalg.yield %100 : f32
    } -> tensor<64xf32>
    %66 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%65 : tensor<64xf32>) outs(%64 : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = math.sqrt %in : f32
      linalg.yield %99 : f32
    } -> tensor<64xf32>
    %67 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%66 : tensor<64xf32>) outs(%64 : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = arith.cmpf one, %in, %cst : f32
      cf.assert %99, "unimplemented: tensor with zero element"
      %100 = arith.divf %cst_0, %in : f32
      linalg.yield %100 : f32
    } -> tensor<64xf32>
    %expanded_31 = tensor.expand_shape %arg42 [[0, 1, 2]] output_shape [64, 1, 1] : tensor<64xf32> into tensor<64x1x1xf32>
    %expanded_32 = tensor.expand_shape %67 [[0, 1, 2]] output_shape [64, 1, 1] : tensor<64xf32> into tensor<64x1x1xf32>
    %68 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%63, %expanded_31 : tensor<64x64x7x7xf32>, tensor<64x1x1xf32>) outs(%61 : tensor<64x64x7x7xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.subf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x64x7x7xf32>
    %69 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%68, %expanded_32 : tensor<64x64x7x7xf32>, tensor<64x1x1xf32>) outs(%61 : tensor<64x64x7x7xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.mulf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x64x7x7xf32>
    %expanded_33 = tensor.expand_shape %arg20 [[0, 1, 2]] output_shape [64, 1, 1] : tensor<64xf32> into tensor<64x1x1xf32>
    %70 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%69, %expanded_33 : tensor<64x64x7x7xf32>, tensor<64x1x1xf32>) outs(%61 : tensor<64x64x7x7xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.mulf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x64x7x7xf32>
    %expanded_34 = tensor.expand_shape %arg21 [[0, 1, 2]] output_shape [64, 1, 1] : tensor<64xf32> into tensor<64x1x1xf32>
    %71 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%70, %expanded_34 : tensor<64x64x7x7xf32>, tensor<64x1x1xf32>) outs(%61 : tensor<64x64x7x7xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.addf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x64x7x7xf32>
    %72 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%71 : tensor<64x64x7x7xf32>) outs(%61 : tensor<64x64x7x7xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = arith.cmpf ugt, %in, %cst : f32
      %100 = arith.select %99, %in, %cst : f32
      linalg.yield %100 : f32
    } -> tensor<64x64x7x7xf32>
    %padded_35 = tensor.pad %72 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg48: index, %arg49: index, %arg50: index, %arg51: index):
      tensor.yield %cst : f32
    } : tensor<64x64x7x7xf32> to tensor<64x64x9x9xf32>
    %73 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded_35, %arg22 : tensor<64x64x9x9xf32>, tensor<64x64x3x3xf32>) outs(%62 : tensor<64x64x7x7xf32>) -> tensor<64x64x7x7xf32>
    %74 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg45 : tensor<64xf32>) outs(%64 : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = arith.truncf %cst_1 : f64 to f32
      %100 = arith.addf %in, %99 : f32
      linalg.yield %100 : f32
    } -> tensor<64xf32>
    %75 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%74 : tensor<64xf32>) outs(%64 : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = math.sqrt %in : f32
      linalg.yield %99 : f32
    } -> tensor<64xf32>
    %76 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%75 : tensor<64xf32>) outs(%64 : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = arith.cmpf one, %in, %cst : f32
      cf.assert %99, "unimplemented: tensor with zero element"
      %100 = arith.divf %cst_0, %in : f32
      linalg.yield %100 : f32
    } -> tensor<64xf32>
    %expanded_36 = tensor.expand_shape %arg44 [[0, 1, 2]] output_shape [64, 1, 1] : tensor<64xf32> into tensor<64x1x1xf32>
    %expanded_37 = tensor.expand_shape %76 [[0, 1, 2]] output_shape [64, 1, 1] : tensor<64xf32> into tensor<64x1x1xf32>
    %77 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%73, %expanded_36 : tensor<64x64x7x7xf32>, tensor<64x1x1xf32>) outs(%61 : tensor<64x64x7x7xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.subf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x64x7x7xf32>
    %78 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%77, %expanded_37 : tensor<64x64x7x7xf32>, tensor<64x1x1xf32>) outs(%61 : tensor<64x64x7x7xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.mulf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x64x7x7xf32>
    %expanded_38 = tensor.expand_shape %arg23 [[0, 1, 2]] output_shape [64, 1, 1] : tensor<64xf32> into tensor<64x1x1xf32>
    %79 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%78, %expanded_38 : tensor<64x64x7x7xf32>, tensor<64x1x1xf32>) outs(%61 : tensor<64x64x7x7xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.mulf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x64x7x7xf32>
    %expanded_39 = tensor.expand_shape %arg24 [[0, 1, 2]] output_shape [64, 1, 1] : tensor<64xf32> into tensor<64x1x1xf32>
    %80 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%79, %expanded_39 : tensor<64x64x7x7xf32>, tensor<64x1x1xf32>) outs(%61 : tensor<64x64x7x7xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.addf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x64x7x7xf32>
    %81 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%60, %arg25 : tensor<64x32x14x14xf32>, tensor<64x32x1x1xf32>) outs(%62 : tensor<64x64x7x7xf32>) -> tensor<64x64x7x7xf32>
    %82 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg47 : tensor<64xf32>) outs(%64 : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = arith.truncf %cst_1 : f64 to f32
      %100 = arith.addf %in, %99 : f32
      linalg.yield %100 : f32
    } -> tensor<64xf32>
    %83 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%82 : tensor<64xf32>) outs(%64 : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = math.sqrt %in : f32
      linalg.yield %99 : f32
    } -> tensor<64xf32>
    %84 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%83 : tensor<64xf32>) outs(%64 : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = arith.cmpf one, %in, %cst : f32
      cf.assert %99, "unimplemented: tensor with zero element"
      %100 = arith.divf %cst_0, %in : f32
      linalg.yield %100 : f32
    } -> tensor<64xf32>
    %expanded_40 = tensor.expand_shape %arg46 [[0, 1, 2]] output_shape [64, 1, 1] : tensor<64xf32> into tensor<64x1x1xf32>
    %expanded_41 = tensor.expand_shape %84 [[0, 1, 2]] output_shape [64, 1, 1] : tensor<64xf32> into tensor<64x1x1xf32>
    %85 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%81, %expanded_40 : tensor<64x64x7x7xf32>, tensor<64x1x1xf32>) outs(%61 : tensor<64x64x7x7xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.subf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x64x7x7xf32>
    %86 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%85, %expanded_41 : tensor<64x64x7x7xf32>, tensor<64x1x1xf32>) outs(%61 : tensor<64x64x7x7xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.mulf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x64x7x7xf32>
    %expanded_42 = tensor.expand_shape %arg26 [[0, 1, 2]] output_shape [64, 1, 1] : tensor<64xf32> into tensor<64x1x1xf32>
    %87 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%86, %expanded_42 : tensor<64x64x7x7xf32>, tensor<64x1x1xf32>) outs(%61 : tensor<64x64x7x7xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.mulf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x64x7x7xf32>
    %expanded_43 = tensor.expand_shape %arg27 [[0, 1, 2]] output_shape [64, 1, 1] : tensor<64xf32> into tensor<64x1x1xf32>
    %88 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%87, %expanded_43 : tensor<64x64x7x7xf32>, tensor<64x1x1xf32>) outs(%61 : tensor<64x64x7x7xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.addf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x64x7x7xf32>
    %89 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%80, %88 : tensor<64x64x7x7xf32>, tensor<64x64x7x7xf32>) outs(%61 : tensor<64x64x7x7xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.addf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x64x7x7xf32>
    %90 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%89 : tensor<64x64x7x7xf32>) outs(%61 : tensor<64x64x7x7xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = arith.cmpf ugt, %in, %cst : f32
      %100 = arith.select %99, %in, %cst : f32
      linalg.yield %100 : f32
    } -> tensor<64x64x7x7xf32>
    %91 = tensor.empty() : tensor<64x64xf32>
    %92 = linalg.fill ins(%cst : f32) outs(%91 : tensor<64x64xf32>) -> tensor<64x64xf32>
    %93 = linalg.generic {indexing_maps = [#map1, #map3], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%90 : tensor<64x64x7x7xf32>) outs(%92 : tensor<64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = arith.addf %in, %out : f32
      linalg.yield %99 : f32
    } -> tensor<64x64xf32>
    %94 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%93 : tensor<64x64xf32>) outs(%91 : tensor<64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %99 = arith.divf %in, %cst_2 : f32
      linalg.yield %99 : f32
    } -> tensor<64x64xf32>
    %95 = tensor.empty() : tensor<64x10xf32>
    %transposed = linalg.transpose ins(%arg28 : tensor<10x64xf32>) outs(%95 : tensor<64x10xf32>) permutation = [1, 0] 
    %96 = linalg.fill ins(%cst : f32) outs(%95 : tensor<64x10xf32>) -> tensor<64x10xf32>
    %97 = linalg.matmul ins(%94, %transposed : tensor<64x64xf32>, tensor<64x10xf32>) outs(%96 : tensor<64x10xf32>) -> tensor<64x10xf32>
    %98 = linalg.generic {indexing_maps = [#map4, #map5, #map4], iterator_types = ["parallel", "parallel"]} ins(%97, %arg29 : tensor<64x10xf32>, tensor<10xf32>) outs(%95 : tensor<64x10xf32>) {
    ^bb0(%in: f32, %in_44: f32, %out: f32):
      %99 = arith.addf %in, %in_44 : f32
      linalg.yield %99 : f32
    } -> tensor<64x10xf32>
    return %98 : tensor<64x10xf32>
  }
}
