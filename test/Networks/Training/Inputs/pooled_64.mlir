// A residual network of width 32 for batches of 64 images 1x32x32 of ten classes, as torch-mlir writes it: 'pooled' of kas_research.protocol.
#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d1, 0, 0)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1)>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
#map5 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @forward(%arg0: tensor<64x1x32x32xf32> {kas.name = "input"}, %arg1: tensor<32x1x3x3xf32> {kas.name = "stem.weight"}, %arg2: tensor<32xf32> {kas.name = "norm.weight"}, %arg3: tensor<32xf32> {kas.name = "norm.bias"}, %arg4: tensor<32x32x3x3xf32> {kas.name = "stage1.first.weight"}, %arg5: tensor<32xf32> {kas.name = "stage1.norm1.weight"}, %arg6: tensor<32xf32> {kas.name = "stage1.norm1.bias"}, %arg7: tensor<32x32x3x3xf32> {kas.name = "stage1.second.weight"}, %arg8: tensor<32xf32> {kas.name = "stage1.norm2.weight"}, %arg9: tensor<32xf32> {kas.name = "stage1.norm2.bias"}, %arg10: tensor<64x32x1x1xf32> {kas.name = "stage2.first.weight"}, %arg11: tensor<64xf32> {kas.name = "stage2.norm1.weight"}, %arg12: tensor<64xf32> {kas.name = "stage2.norm1.bias"}, %arg13: tensor<64x64x3x3xf32> {kas.name = "stage2.second.weight"}, %arg14: tensor<64xf32> {kas.name = "stage2.norm2.weight"}, %arg15: tensor<64xf32> {kas.name = "stage2.norm2.bias"}, %arg16: tensor<64x32x1x1xf32> {kas.name = "stage2.shortcut.weight"}, %arg17: tensor<128x64x1x1xf32> {kas.name = "stage3.first.weight"}, %arg18: tensor<128xf32> {kas.name = "stage3.norm1.weight"}, %arg19: tensor<128xf32> {kas.name = "stage3.norm1.bias"}, %arg20: tensor<128x128x3x3xf32> {kas.name = "stage3.second.weight"}, %arg21: tensor<128xf32> {kas.name = "stage3.norm2.weight"}, %arg22: tensor<128xf32> {kas.name = "stage3.norm2.bias"}, %arg23: tensor<128x64x1x1xf32> {kas.name = "stage3.shortcut.weight"}, %arg24: tensor<10x128xf32> {kas.name = "head.weight"}, %arg25: tensor<10xf32> {kas.name = "head.bias"}, %arg26: tensor<32xf32> {kas.name = "norm.running_mean"}, %arg27: tensor<32xf32> {kas.name = "norm.running_var"}, %arg28: tensor<32xf32> {kas.name = "stage1.norm1.running_mean"}, %arg29: tensor<32xf32> {kas.name = "stage1.norm1.running_var"}, %arg30: tensor<32xf32> {kas.name = "stage1.norm2.running_mean"}, %arg31: tensor<32xf32> {kas.name = "stage1.norm2.running_var"}, %arg32: tensor<64xf32> {kas.name = "stage2.norm1.running_mean"}, %arg33: tensor<64xf32> {kas.name = "stage2.norm1.running_var"}, %arg34: tensor<64xf32> {kas.name = "stage2.norm2.running_mean"}, %arg35: tensor<64xf32> {kas.name = "stage2.norm2.running_var"}, %arg36: tensor<128xf32> {kas.name = "stage3.norm1.running_mean"}, %arg37: tensor<128xf32> {kas.name = "stage3.norm1.running_var"}, %arg38: tensor<128xf32> {kas.name = "stage3.norm2.running_mean"}, %arg39: tensor<128xf32> {kas.name = "stage3.norm2.running_var"}) -> tensor<64x10xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 1.000000e+00 : f32
    %cst_1 = arith.constant 1.000000e-05 : f64
    %cst_2 = arith.constant 4.000000e+00 : f32
    %cst_3 = arith.constant 1.600000e+01 : f32
    %padded = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg40: index, %arg41: index, %arg42: index, %arg43: index):
      tensor.yield %cst : f32
    } : tensor<64x1x32x32xf32> to tensor<64x1x34x34xf32>
    %0 = tensor.empty() : tensor<64x32x16x16xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<64x32x16x16xf32>) -> tensor<64x32x16x16xf32>
    %2 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%padded, %arg1 : tensor<64x1x34x34xf32>, tensor<32x1x3x3xf32>) outs(%1 : tensor<64x32x16x16xf32>) -> tensor<64x32x16x16xf32>
    %3 = tensor.empty() : tensor<32xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg27 : tensor<32xf32>) outs(%3 : tensor<32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = arith.truncf %cst_1 : f64 to f32
      %96 = arith.addf %in, %95 : f32
      linalg.yield %96 : f32
    } -> tensor<32xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%4 : tensor<32xf32>) outs(%3 : tensor<32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = math.sqrt %in : f32
      linalg.yield %95 : f32
    } -> tensor<32xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%5 : tensor<32xf32>) outs(%3 : tensor<32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = arith.cmpf one, %in, %cst : f32
      cf.assert %95, "unimplemented: tensor with zero element"
      %96 = arith.divf %cst_0, %in : f32
      linalg.yield %96 : f32
    } -> tensor<32xf32>
    %expanded = tensor.expand_shape %arg26 [[0, 1, 2]] output_shape [32, 1, 1] : tensor<32xf32> into tensor<32x1x1xf32>
    %expanded_4 = tensor.expand_shape %6 [[0, 1, 2]] output_shape [32, 1, 1] : tensor<32xf32> into tensor<32x1x1xf32>
    %7 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2, %expanded : tensor<64x32x16x16xf32>, tensor<32x1x1xf32>) outs(%0 : tensor<64x32x16x16xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.subf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x32x16x16xf32>
    %8 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%7, %expanded_4 : tensor<64x32x16x16xf32>, tensor<32x1x1xf32>) outs(%0 : tensor<64x32x16x16xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.mulf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x32x16x16xf32>
    %expanded_5 = tensor.expand_shape %arg2 [[0, 1, 2]] output_shape [32, 1, 1] : tensor<32xf32> into tensor<32x1x1xf32>
    %9 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%8, %expanded_5 : tensor<64x32x16x16xf32>, tensor<32x1x1xf32>) outs(%0 : tensor<64x32x16x16xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.mulf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x32x16x16xf32>
    %expanded_6 = tensor.expand_shape %arg3 [[0, 1, 2]] output_shape [32, 1, 1] : tensor<32xf32> into tensor<32x1x1xf32>
    %10 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%9, %expanded_6 : tensor<64x32x16x16xf32>, tensor<32x1x1xf32>) outs(%0 : tensor<64x32x16x16xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.addf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x32x16x16xf32>
    %11 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%10 : tensor<64x32x16x16xf32>) outs(%0 : tensor<64x32x16x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = arith.cmpf ugt, %in, %cst : f32
      %96 = arith.select %95, %in, %cst : f32
      linalg.yield %96 : f32
    } -> tensor<64x32x16x16xf32>
    %padded_7 = tensor.pad %11 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg40: index, %arg41: index, %arg42: index, %arg43: index):
      tensor.yield %cst : f32
    } : tensor<64x32x16x16xf32> to tensor<64x32x18x18xf32>
    %12 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded_7, %arg4 : tensor<64x32x18x18xf32>, tensor<32x32x3x3xf32>) outs(%1 : tensor<64x32x16x16xf32>) -> tensor<64x32x16x16xf32>
    %13 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg29 : tensor<32xf32>) outs(%3 : tensor<32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = arith.truncf %cst_1 : f64 to f32
      %96 = arith.addf %in, %95 : f32
      linalg.yield %96 : f32
    } -> tensor<32xf32>
    %14 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%13 : tensor<32xf32>) outs(%3 : tensor<32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = math.sqrt %in : f32
      linalg.yield %95 : f32
    } -> tensor<32xf32>
    %15 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%14 : tensor<32xf32>) outs(%3 : tensor<32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = arith.cmpf one, %in, %cst : f32
      cf.assert %95, "unimplemented: tensor with zero element"
      %96 = arith.divf %cst_0, %in : f32
      linalg.yield %96 : f32
    } -> tensor<32xf32>
    %expanded_8 = tensor.expand_shape %arg28 [[0, 1, 2]] output_shape [32, 1, 1] : tensor<32xf32> into tensor<32x1x1xf32>
    %expanded_9 = tensor.expand_shape %15 [[0, 1, 2]] output_shape [32, 1, 1] : tensor<32xf32> into tensor<32x1x1xf32>
    %16 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%12, %expanded_8 : tensor<64x32x16x16xf32>, tensor<32x1x1xf32>) outs(%0 : tensor<64x32x16x16xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.subf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x32x16x16xf32>
    %17 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%16, %expanded_9 : tensor<64x32x16x16xf32>, tensor<32x1x1xf32>) outs(%0 : tensor<64x32x16x16xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.mulf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x32x16x16xf32>
    %expanded_10 = tensor.expand_shape %arg5 [[0, 1, 2]] output_shape [32, 1, 1] : tensor<32xf32> into tensor<32x1x1xf32>
    %18 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%17, %expanded_10 : tensor<64x32x16x16xf32>, tensor<32x1x1xf32>) outs(%0 : tensor<64x32x16x16xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.mulf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x32x16x16xf32>
    %expanded_11 = tensor.expand_shape %arg6 [[0, 1, 2]] output_shape [32, 1, 1] : tensor<32xf32> into tensor<32x1x1xf32>
    %19 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%18, %expanded_11 : tensor<64x32x16x16xf32>, tensor<32x1x1xf32>) outs(%0 : tensor<64x32x16x16xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.addf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x32x16x16xf32>
    %20 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%19 : tensor<64x32x16x16xf32>) outs(%0 : tensor<64x32x16x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = arith.cmpf ugt, %in, %cst : f32
      %96 = arith.select %95, %in, %cst : f32
      linalg.yield %96 : f32
    } -> tensor<64x32x16x16xf32>
    %padded_12 = tensor.pad %20 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg40: index, %arg41: index, %arg42: index, %arg43: index):
      tensor.yield %cst : f32
    } : tensor<64x32x16x16xf32> to tensor<64x32x18x18xf32>
    %21 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded_12, %arg7 : tensor<64x32x18x18xf32>, tensor<32x32x3x3xf32>) outs(%1 : tensor<64x32x16x16xf32>) -> tensor<64x32x16x16xf32>
    %22 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg31 : tensor<32xf32>) outs(%3 : tensor<32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = arith.truncf %cst_1 : f64 to f32
      %96 = arith.addf %in, %95 : f32
      linalg.yield %96 : f32
    } -> tensor<32xf32>
    %23 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%22 : tensor<32xf32>) outs(%3 : tensor<32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = math.sqrt %in : f32
      linalg.yield %95 : f32
    } -> tensor<32xf32>
    %24 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%23 : tensor<32xf32>) outs(%3 : tensor<32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = arith.cmpf one, %in, %cst : f32
      cf.assert %95, "unimplemented: tensor with zero element"
      %96 = arith.divf %cst_0, %in : f32
      linalg.yield %96 : f32
    } -> tensor<32xf32>
    %expanded_13 = tensor.expand_shape %arg30 [[0, 1, 2]] output_shape [32, 1, 1] : tensor<32xf32> into tensor<32x1x1xf32>
    %expanded_14 = tensor.expand_shape %24 [[0, 1, 2]] output_shape [32, 1, 1] : tensor<32xf32> into tensor<32x1x1xf32>
    %25 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%21, %expanded_13 : tensor<64x32x16x16xf32>, tensor<32x1x1xf32>) outs(%0 : tensor<64x32x16x16xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.subf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x32x16x16xf32>
    %26 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%25, %expanded_14 : tensor<64x32x16x16xf32>, tensor<32x1x1xf32>) outs(%0 : tensor<64x32x16x16xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.mulf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x32x16x16xf32>
    %expanded_15 = tensor.expand_shape %arg8 [[0, 1, 2]] output_shape [32, 1, 1] : tensor<32xf32> into tensor<32x1x1xf32>
    %27 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%26, %expanded_15 : tensor<64x32x16x16xf32>, tensor<32x1x1xf32>) outs(%0 : tensor<64x32x16x16xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.mulf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x32x16x16xf32>
    %expanded_16 = tensor.expand_shape %arg9 [[0, 1, 2]] output_shape [32, 1, 1] : tensor<32xf32> into tensor<32x1x1xf32>
    %28 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%27, %expanded_16 : tensor<64x32x16x16xf32>, tensor<32x1x1xf32>) outs(%0 : tensor<64x32x16x16xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.addf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x32x16x16xf32>
    %29 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%28, %11 : tensor<64x32x16x16xf32>, tensor<64x32x16x16xf32>) outs(%0 : tensor<64x32x16x16xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.addf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x32x16x16xf32>
    %30 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%29 : tensor<64x32x16x16xf32>) outs(%0 : tensor<64x32x16x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = arith.cmpf ugt, %in, %cst : f32
      %96 = arith.select %95, %in, %cst : f32
      linalg.yield %96 : f32
    } -> tensor<64x32x16x16xf32>
    %31 = tensor.empty() : tensor<64x32x8x8xf32>
    %32 = linalg.fill ins(%cst : f32) outs(%31 : tensor<64x32x8x8xf32>) -> tensor<64x32x8x8xf32>
    %33 = tensor.empty() : tensor<2x2xf32>
    %34 = linalg.pooling_nchw_sum {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%30, %33 : tensor<64x32x16x16xf32>, tensor<2x2xf32>) outs(%32 : tensor<64x32x8x8xf32>) -> tensor<64x32x8x8xf32>
    %35 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%34 : tensor<64x32x8x8xf32>) outs(%31 : tensor<64x32x8x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = arith.divf %in, %cst_2 : f32
      linalg.yield %95 : f32
    } -> tensor<64x32x8x8xf32>
    %36 = tensor.empty() : tensor<64x64x8x8xf32>
    %37 = linalg.fill ins(%cst : f32) outs(%36 : tensor<64x64x8x8xf32>) -> tensor<64x64x8x8xf32>
    %38 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%35, %arg10 : tensor<64x32x8x8xf32>, tensor<64x32x1x1xf32>) outs(%37 : tensor<64x64x8x8xf32>) -> tensor<64x64x8x8xf32>
    %39 = tensor.empty() : tensor<64xf32>
    %40 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg33 : tensor<64xf32>) outs(%39 : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = arith.truncf %cst_1 : f64 to f32
      %96 = arith.addf %in, %95 : f32
      linalg.yield %96 : f32
    } -> tensor<64xf32>
    %41 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%40 : tensor<64xf32>) outs(%39 : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = math.sqrt %in : f32
      linalg.yield %95 : f32
    } -> tensor<64xf32>
    %42 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%41 : tensor<64xf32>) outs(%39 : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = arith.cmpf one, %in, %cst : f32
      cf.assert %95, "unimplemented: tensor with zero element"
      %96 = arith.divf %cst_0, %in : f32
      linalg.yield %96 : f32
    } -> tensor<64xf32>
    %expanded_17 = tensor.expand_shape %arg32 [[0, 1, 2]] output_shape [64, 1, 1] : tensor<64xf32> into tensor<64x1x1xf32>
    %expanded_18 = tensor.expand_shape %42 [[0, 1, 2]] output_shape [64, 1, 1] : tensor<64xf32> into tensor<64x1x1xf32>
    %43 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%38, %expanded_17 : tensor<64x64x8x8xf32>, tensor<64x1x1xf32>) outs(%36 : tensor<64x64x8x8xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.subf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x64x8x8xf32>
    %44 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%43, %expanded_18 : tensor<64x64x8x8xf32>, tensor<64x1x1xf32>) outs(%36 : tensor<64x64x8x8xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.mulf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x64x8x8xf32>
    %expanded_19 = tensor.expand_shape %arg11 [[0, 1, 2]] output_shape [64, 1, 1] : tensor<64xf32> into tensor<64x1x1xf32>
    %45 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%44, %expanded_19 : tensor<64x64x8x8xf32>, tensor<64x1x1xf32>) outs(%36 : tensor<64x64x8x8xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.mulf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x64x8x8xf32>
    %expanded_20 = tensor.expand_shape %arg12 [[0, 1, 2]] output_shape [64, 1, 1] : tensor<64xf32> into tensor<64x1x1xf32>
    %46 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%45, %expanded_20 : tensor<64x64x8x8xf32>, tensor<64x1x1xf32>) outs(%36 : tensor<64x64x8x8xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.addf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x64x8x8xf32>
    %47 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%46 : tensor<64x64x8x8xf32>) outs(%36 : tensor<64x64x8x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = arith.cmpf ugt, %in, %cst : f32
      %96 = arith.select %95, %in, %cst : f32
      linalg.yield %96 : f32
    } -> tensor<64x64x8x8xf32>
    %padded_21 = tensor.pad %47 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg40: index, %arg41: index, %arg42: index, %arg43: index):
      tensor.yield %cst : f32
    } : tensor<64x64x8x8xf32> to tensor<64x64x10x10xf32>
    %48 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded_21, %arg13 : tensor<64x64x10x10xf32>, tensor<64x64x3x3xf32>) outs(%37 : tensor<64x64x8x8xf32>) -> tensor<64x64x8x8xf32>
    %49 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg35 : tensor<64xf32>) outs(%39 : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = arith.truncf %cst_1 : f64 to f32
      %96 = arith.addf %in, %95 : f32
      linalg.yield %96 : f32
    } -> tensor<64xf32>
    %50 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%49 : tensor<64xf32>) outs(%39 : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = math.sqrt %in : f32
      linalg.yield %95 : f32
    } -> tensor<64xf32>
    %51 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%50 : tensor<64xf32>) outs(%39 : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = arith.cmpf one, %in, %cst : f32
      cf.assert %95, "unimplemented: tensor with zero element"
      %96 = arith.divf %cst_0, %in : f32
      linalg.yield %96 : f32
    } -> tensor<64xf32>
    %expanded_22 = tensor.expand_shape %arg34 [[0, 1, 2]] output_shape [64, 1, 1] : tensor<64xf32> into tensor<64x1x1xf32>
    %expanded_23 = tensor.expand_shape %51 [[0, 1, 2]] output_shape [64, 1, 1] : tensor<64xf32> into tensor<64x1x1xf32>
    %52 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%48, %expanded_22 : tensor<64x64x8x8xf32>, tensor<64x1x1xf32>) outs(%36 : tensor<64x64x8x8xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.subf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x64x8x8xf32>
    %53 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%52, %expanded_23 : tensor<64x64x8x8xf32>, tensor<64x1x1xf32>) outs(%36 : tensor<64x64x8x8xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.mulf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x64x8x8xf32>
    %expanded_24 = tensor.expand_shape %arg14 [[0, 1, 2]] output_shape [64, 1, 1] : tensor<64xf32> into tensor<64x1x1xf32>
    %54 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%53, %expanded_24 : tensor<64x64x8x8xf32>, tensor<64x1x1xf32>) outs(%36 : tensor<64x64x8x8xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.mulf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x64x8x8xf32>
    %expanded_25 = tensor.expand_shape %arg15 [[0, 1, 2]] output_shape [64, 1, 1] : tensor<64xf32> into tensor<64x1x1xf32>
    %55 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%54, %expanded_25 : tensor<64x64x8x8xf32>, tensor<64x1x1xf32>) outs(%36 : tensor<64x64x8x8xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.addf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x64x8x8xf32>
    %56 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%35, %arg16 : tensor<64x32x8x8xf32>, tensor<64x32x1x1xf32>) outs(%37 : tensor<64x64x8x8xf32>) -> tensor<64x64x8x8xf32>
    %57 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%55, %56 : tensor<64x64x8x8xf32>, tensor<64x64x8x8xf32>) outs(%36 : tensor<64x64x8x8xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.addf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x64x8x8xf32>
    %58 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%57 : tensor<64x64x8x8xf32>) outs(%36 : tensor<64x64x8x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = arith.cmpf ugt, %in, %cst : f32
      %96 = arith.select %95, %in, %cst : f32
      linalg.yield %96 : f32
    } -> tensor<64x64x8x8xf32>
    %59 = tensor.empty() : tensor<64x64x4x4xf32>
    %60 = linalg.fill ins(%cst : f32) outs(%59 : tensor<64x64x4x4xf32>) -> tensor<64x64x4x4xf32>
    %61 = linalg.pooling_nchw_sum {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%58, %33 : tensor<64x64x8x8xf32>, tensor<2x2xf32>) outs(%60 : tensor<64x64x4x4xf32>) -> tensor<64x64x4x4xf32>
    %62 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%61 : tensor<64x64x4x4xf32>) outs(%59 : tensor<64x64x4x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = arith.divf %in, %cst_2 : f32
      linalg.yield %95 : f32
    } -> tensor<64x64x4x4xf32>
    %63 = tensor.empty() : tensor<64x128x4x4xf32>
    %64 = linalg.fill ins(%cst : f32) outs(%63 : tensor<64x128x4x4xf32>) -> tensor<64x128x4x4xf32>
    %65 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%62, %arg17 : tensor<64x64x4x4xf32>, tensor<128x64x1x1xf32>) outs(%64 : tensor<64x128x4x4xf32>) -> tensor<64x128x4x4xf32>
    %66 = tensor.empty() : tensor<128xf32>
    %67 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg37 : tensor<128xf32>) outs(%66 : tensor<128xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = arith.truncf %cst_1 : f64 to f32
      %96 = arith.addf %in, %95 : f32
      linalg.yield %96 : f32
    } -> tensor<128xf32>
    %68 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%67 : tensor<128xf32>) outs(%66 : tensor<128xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = math.sqrt %in : f32
      linalg.yield %95 : f32
    } -> tensor<128xf32>
    %69 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%68 : tensor<128xf32>) outs(%66 : tensor<128xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = arith.cmpf one, %in, %cst : f32
      cf.assert %95, "unimplemented: tensor with zero element"
      %96 = arith.divf %cst_0, %in : f32
      linalg.yield %96 : f32
    } -> tensor<128xf32>
    %expanded_26 = tensor.expand_shape %arg36 [[0, 1, 2]] output_shape [128, 1, 1] : tensor<128xf32> into tensor<128x1x1xf32>
    %expanded_27 = tensor.expand_shape %69 [[0, 1, 2]] output_shape [128, 1, 1] : tensor<128xf32> into tensor<128x1x1xf32>
    %70 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%65, %expanded_26 : tensor<64x128x4x4xf32>, tensor<128x1x1xf32>) outs(%63 : tensor<64x128x4x4xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.subf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x128x4x4xf32>
    %71 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%70, %expanded_27 : tensor<64x128x4x4xf32>, tensor<128x1x1xf32>) outs(%63 : tensor<64x128x4x4xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.mulf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x128x4x4xf32>
    %expanded_28 = tensor.expand_shape %arg18 [[0, 1, 2]] output_shape [128, 1, 1] : tensor<128xf32> into tensor<128x1x1xf32>
    %72 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%71, %expanded_28 : tensor<64x128x4x4xf32>, tensor<128x1x1xf32>) outs(%63 : tensor<64x128x4x4xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.mulf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x128x4x4xf32>
    %expanded_29 = tensor.expand_shape %arg19 [[0, 1, 2]] output_shape [128, 1, 1] : tensor<128xf32> into tensor<128x1x1xf32>
    %73 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%72, %expanded_29 : tensor<64x128x4x4xf32>, tensor<128x1x1xf32>) outs(%63 : tensor<64x128x4x4xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.addf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x128x4x4xf32>
    %74 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%73 : tensor<64x128x4x4xf32>) outs(%63 : tensor<64x128x4x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = arith.cmpf ugt, %in, %cst : f32
      %96 = arith.select %95, %in, %cst : f32
      linalg.yield %96 : f32
    } -> tensor<64x128x4x4xf32>
    %padded_30 = tensor.pad %74 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg40: index, %arg41: index, %arg42: index, %arg43: index):
      tensor.yield %cst : f32
    } : tensor<64x128x4x4xf32> to tensor<64x128x6x6xf32>
    %75 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded_30, %arg20 : tensor<64x128x6x6xf32>, tensor<128x128x3x3xf32>) outs(%64 : tensor<64x128x4x4xf32>) -> tensor<64x128x4x4xf32>
    %76 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg39 : tensor<128xf32>) outs(%66 : tensor<128xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = arith.truncf %cst_1 : f64 to f32
      %96 = arith.addf %in, %95 : f32
      linalg.yield %96 : f32
    } -> tensor<128xf32>
    %77 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%76 : tensor<128xf32>) outs(%66 : tensor<128xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = math.sqrt %in : f32
      linalg.yield %95 : f32
    } -> tensor<128xf32>
    %78 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%77 : tensor<128xf32>) outs(%66 : tensor<128xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = arith.cmpf one, %in, %cst : f32
      cf.assert %95, "unimplemented: tensor with zero element"
      %96 = arith.divf %cst_0, %in : f32
      linalg.yield %96 : f32
    } -> tensor<128xf32>
    %expanded_31 = tensor.expand_shape %arg38 [[0, 1, 2]] output_shape [128, 1, 1] : tensor<128xf32> into tensor<128x1x1xf32>
    %expanded_32 = tensor.expand_shape %78 [[0, 1, 2]] output_shape [128, 1, 1] : tensor<128xf32> into tensor<128x1x1xf32>
    %79 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%75, %expanded_31 : tensor<64x128x4x4xf32>, tensor<128x1x1xf32>) outs(%63 : tensor<64x128x4x4xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.subf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x128x4x4xf32>
    %80 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%79, %expanded_32 : tensor<64x128x4x4xf32>, tensor<128x1x1xf32>) outs(%63 : tensor<64x128x4x4xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.mulf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x128x4x4xf32>
    %expanded_33 = tensor.expand_shape %arg21 [[0, 1, 2]] output_shape [128, 1, 1] : tensor<128xf32> into tensor<128x1x1xf32>
    %81 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%80, %expanded_33 : tensor<64x128x4x4xf32>, tensor<128x1x1xf32>) outs(%63 : tensor<64x128x4x4xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.mulf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x128x4x4xf32>
    %expanded_34 = tensor.expand_shape %arg22 [[0, 1, 2]] output_shape [128, 1, 1] : tensor<128xf32> into tensor<128x1x1xf32>
    %82 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%81, %expanded_34 : tensor<64x128x4x4xf32>, tensor<128x1x1xf32>) outs(%63 : tensor<64x128x4x4xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.addf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x128x4x4xf32>
    %83 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%62, %arg23 : tensor<64x64x4x4xf32>, tensor<128x64x1x1xf32>) outs(%64 : tensor<64x128x4x4xf32>) -> tensor<64x128x4x4xf32>
    %84 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%82, %83 : tensor<64x128x4x4xf32>, tensor<64x128x4x4xf32>) outs(%63 : tensor<64x128x4x4xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.addf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x128x4x4xf32>
    %85 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%84 : tensor<64x128x4x4xf32>) outs(%63 : tensor<64x128x4x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = arith.cmpf ugt, %in, %cst : f32
      %96 = arith.select %95, %in, %cst : f32
      linalg.yield %96 : f32
    } -> tensor<64x128x4x4xf32>
    %86 = tensor.empty() : tensor<64x128xf32>
    %87 = linalg.fill ins(%cst : f32) outs(%86 : tensor<64x128xf32>) -> tensor<64x128xf32>
    %88 = linalg.generic {indexing_maps = [#map1, #map3], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%85 : tensor<64x128x4x4xf32>) outs(%87 : tensor<64x128xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = arith.addf %in, %out : f32
      linalg.yield %95 : f32
    } -> tensor<64x128xf32>
    %89 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%88 : tensor<64x128xf32>) outs(%86 : tensor<64x128xf32>) {
    ^bb0(%in: f32, %out: f32):
      %95 = arith.divf %in, %cst_3 : f32
      linalg.yield %95 : f32
    } -> tensor<64x128xf32>
    %90 = tensor.empty() : tensor<128x10xf32>
    %transposed = linalg.transpose ins(%arg24 : tensor<10x128xf32>) outs(%90 : tensor<128x10xf32>) permutation = [1, 0] 
    %91 = tensor.empty() : tensor<64x10xf32>
    %92 = linalg.fill ins(%cst : f32) outs(%91 : tensor<64x10xf32>) -> tensor<64x10xf32>
    %93 = linalg.matmul ins(%89, %transposed : tensor<64x128xf32>, tensor<128x10xf32>) outs(%92 : tensor<64x10xf32>) -> tensor<64x10xf32>
    %94 = linalg.generic {indexing_maps = [#map4, #map5, #map4], iterator_types = ["parallel", "parallel"]} ins(%93, %arg25 : tensor<64x10xf32>, tensor<10xf32>) outs(%91 : tensor<64x10xf32>) {
    ^bb0(%in: f32, %in_35: f32, %out: f32):
      %95 = arith.addf %in, %in_35 : f32
      linalg.yield %95 : f32
    } -> tensor<64x10xf32>
    return %94 : tensor<64x10xf32>
  }
}
