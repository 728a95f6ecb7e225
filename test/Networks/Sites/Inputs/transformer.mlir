// A small vision Transformer for two images of 16x16: patches, a block with queries, keys and values of their own, one with them in one layer, a classifier.
// Exported by torch-mlir; transformer.params.npz has its parameters, transformer.io.npz an input and the output of PyTorch.
#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (0, d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
#map3 = affine_map<(d0, d1, d2) -> (d2)>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
#map5 = affine_map<(d0, d1) -> (d1)>
#map6 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map7 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
#map9 = affine_map<(d0, d1, d2) -> (d0, d2)>
module {
  func.func @forward(%arg0: tensor<2x3x16x16xf32> {kas.name = "input"}, %arg1: tensor<1x16x24xf32> {kas.name = "position"}, %arg2: tensor<24x3x4x4xf32> {kas.name = "patch.weight"}, %arg3: tensor<24xf32> {kas.name = "patch.bias"}, %arg4: tensor<24xf32> {kas.name = "blocks.0.norm1.weight"}, %arg5: tensor<24xf32> {kas.name = "blocks.0.norm1.bias"}, %arg6: tensor<24x24xf32> {kas.name = "blocks.0.attn.q.weight"}, %arg7: tensor<24xf32> {kas.name = "blocks.0.attn.q.bias"}, %arg8: tensor<24x24xf32> {kas.name = "blocks.0.attn.k.weight"}, %arg9: tensor<24xf32> {kas.name = "blocks.0.attn.k.bias"}, %arg10: tensor<24x24xf32> {kas.name = "blocks.0.attn.v.weight"}, %arg11: tensor<24xf32> {kas.name = "blocks.0.attn.v.bias"}, %arg12: tensor<24x24xf32> {kas.name = "blocks.0.attn.proj.weight"}, %arg13: tensor<24xf32> {kas.name = "blocks.0.attn.proj.bias"}, %arg14: tensor<24xf32> {kas.name = "blocks.0.norm2.weight"}, %arg15: tensor<24xf32> {kas.name = "blocks.0.norm2.bias"}, %arg16: tensor<96x24xf32> {kas.name = "blocks.0.fc1.weight"}, %arg17: tensor<96xf32> {kas.name = "blocks.0.fc1.bias"}, %arg18: tensor<24x96xf32> {kas.name = "blocks.0.fc2.weight"}, %arg19: tensor<24xf32> {kas.name = "blocks.0.fc2.bias"}, %arg20: tensor<24xf32> {kas.name = "blocks.1.norm1.weight"}, %arg21: tensor<24xf32> {kas.name = "blocks.1.norm1.bias"}, %arg22: tensor<72x24xf32> {kas.name = "blocks.1.attn.qkv.weight"}, %arg23: tensor<72xf32> {kas.name = "blocks.1.attn.qkv.bias"}, %arg24: tensor<24x24xf32> {kas.name = "blocks.1.attn.proj.weight"}, %arg25: tensor<24xf32> {kas.name = "blocks.1.attn.proj.bias"}, %arg26: tensor<24xf32> {kas.name = "blocks.1.norm2.weight"}, %arg27: tensor<24xf32> {kas.name = "blocks.1.norm2.bias"}, %arg28: tensor<96x24xf32> {kas.name = "blocks.1.fc1.weight"}, %arg29: tensor<96xf32> {kas.name = "blocks.1.fc1.bias"}, %arg30: tensor<24x96xf32> {kas.name = "blocks.1.fc2.weight"}, %arg31: tensor<24xf32> {kas.name = "blocks.1.fc2.bias"}, %arg32: tensor<24xf32> {kas.name = "norm.weight"}, %arg33: tensor<24xf32> {kas.name = "norm.bias"}, %arg34: tensor<10x24xf32> {kas.name = "head.weight"}, %arg35: tensor<10xf32> {kas.name = "head.bias"}) -> tensor<2x10xf32> {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0.000000e+00 : f64
    %cst_1 = arith.constant 0xFF800000 : f32
    %cst_2 = arith.constant 1.000000e+00 : f32
    %cst_3 = arith.constant 5.000000e-01 : f32
    %cst_4 = arith.constant 0.35355339059327379 : f64
    %cst_5 = arith.constant 2.8284271247461903 : f64
    %cst_6 = arith.constant 1.000000e-05 : f64
    %cst_7 = arith.constant 2.400000e+01 : f64
    %cst_8 = arith.constant 2.400000e+01 : f32
    %cst_9 = arith.constant 1.41421354 : f32
    %cst_10 = arith.constant 1.600000e+01 : f32
    %0 = tensor.empty() : tensor<2x24x4x4xf32>
    %broadcasted = linalg.broadcast ins(%arg3 : tensor<24xf32>) outs(%0 : tensor<2x24x4x4xf32>) dimensions = [0, 2, 3] 
    %1 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<4> : vector<2xi64>} ins(%arg0, %arg2 : tensor<2x3x16x16xf32>, tensor<24x3x4x4xf32>) outs(%broadcasted : tensor<2x24x4x4xf32>) -> tensor<2x24x4x4xf32>
    %collapsed = tensor.collapse_shape %1 [[0], [1], [2, 3]] : tensor<2x24x4x4xf32> into tensor<2x24x16xf32>
    %2 = tensor.empty() : tensor<2x16x24xf32>
    %transposed = linalg.transpose ins(%collapsed : tensor<2x24x16xf32>) outs(%2 : tensor<2x16x24xf32>) permutation = [0, 2, 1] 
    %3 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%transposed, %arg1 : tensor<2x16x24xf32>, tensor<1x16x24xf32>) outs(%2 : tensor<2x16x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.addf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x24xf32>
    %4 = tensor.empty() : tensor<2x16x24xf64>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%3 : tensor<2x16x24xf32>) outs(%4 : tensor<2x16x24xf64>) {
    ^bb0(%in: f32, %out: f64):
      %166 = arith.extf %in : f32 to f64
      linalg.yield %166 : f64
    } -> tensor<2x16x24xf64>
    %6 = tensor.empty() : tensor<2x16x1xf64>
    %7 = linalg.fill ins(%cst_0 : f64) outs(%6 : tensor<2x16x1xf64>) -> tensor<2x16x1xf64>
    %8 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%5 : tensor<2x16x24xf64>) outs(%7 : tensor<2x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %166 = arith.addf %in, %out : f64
      linalg.yield %166 : f64
    } -> tensor<2x16x1xf64>
    %9 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%8 : tensor<2x16x1xf64>) outs(%6 : tensor<2x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %166 = arith.divf %in, %cst_7 : f64
      linalg.yield %166 : f64
    } -> tensor<2x16x1xf64>
    %10 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%5, %9 : tensor<2x16x24xf64>, tensor<2x16x1xf64>) outs(%4 : tensor<2x16x24xf64>) {
    ^bb0(%in: f64, %in_64: f64, %out: f64):
      %166 = arith.subf %in, %in_64 : f64
      linalg.yield %166 : f64
    } -> tensor<2x16x24xf64>
    %11 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%10, %10 : tensor<2x16x24xf64>, tensor<2x16x24xf64>) outs(%4 : tensor<2x16x24xf64>) {
    ^bb0(%in: f64, %in_64: f64, %out: f64):
      %166 = arith.mulf %in, %in_64 : f64
      linalg.yield %166 : f64
    } -> tensor<2x16x24xf64>
    %12 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%11 : tensor<2x16x24xf64>) outs(%7 : tensor<2x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %166 = arith.addf %in, %out : f64
      linalg.yield %166 : f64
    } -> tensor<2x16x1xf64>
    %13 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%12 : tensor<2x16x1xf64>) outs(%6 : tensor<2x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %166 = arith.divf %in, %cst_7 : f64
      linalg.yield %166 : f64
    } -> tensor<2x16x1xf64>
    %14 = tensor.empty() : tensor<2x16x1xf32>
    %15 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%13 : tensor<2x16x1xf64>) outs(%14 : tensor<2x16x1xf32>) {
    ^bb0(%in: f64, %out: f32):
      %166 = arith.truncf %in : f64 to f32
      linalg.yield %166 : f32
    } -> tensor<2x16x1xf32>
    %16 = linalg.fill ins(%cst : f32) outs(%14 : tensor<2x16x1xf32>) -> tensor<2x16x1xf32>
    %17 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%3 : tensor<2x16x24xf32>) outs(%16 : tensor<2x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %166 = arith.addf %in, %out : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x1xf32>
    %18 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%17 : tensor<2x16x1xf32>) outs(%14 : tensor<2x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %166 = arith.divf %in, %cst_8 : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x1xf32>
    %19 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%15 : tensor<2x16x1xf32>) outs(%14 : tensor<2x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %166 = arith.truncf %cst_6 : f64 to f32
      %167 = arith.addf %in, %166 : f32
      linalg.yield %167 : f32
    } -> tensor<2x16x1xf32>
    %20 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%19 : tensor<2x16x1xf32>) outs(%14 : tensor<2x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %166 = math.rsqrt %in : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x1xf32>
    %21 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%3, %18 : tensor<2x16x24xf32>, tensor<2x16x1xf32>) outs(%2 : tensor<2x16x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.subf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x24xf32>
    %22 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%21, %20 : tensor<2x16x24xf32>, tensor<2x16x1xf32>) outs(%2 : tensor<2x16x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.mulf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x24xf32>
    %23 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%22, %arg4 : tensor<2x16x24xf32>, tensor<24xf32>) outs(%2 : tensor<2x16x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.mulf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x24xf32>
    %24 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%23, %arg5 : tensor<2x16x24xf32>, tensor<24xf32>) outs(%2 : tensor<2x16x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.addf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x24xf32>
    %collapsed_11 = tensor.collapse_shape %24 [[0, 1], [2]] : tensor<2x16x24xf32> into tensor<32x24xf32>
    %25 = tensor.empty() : tensor<24x24xf32>
    %transposed_12 = linalg.transpose ins(%arg6 : tensor<24x24xf32>) outs(%25 : tensor<24x24xf32>) permutation = [1, 0] 
    %26 = tensor.empty() : tensor<32x24xf32>
    %27 = linalg.fill ins(%cst : f32) outs(%26 : tensor<32x24xf32>) -> tensor<32x24xf32>
    %28 = linalg.matmul ins(%collapsed_11, %transposed_12 : tensor<32x24xf32>, tensor<24x24xf32>) outs(%27 : tensor<32x24xf32>) -> tensor<32x24xf32>
    %29 = linalg.generic {indexing_maps = [#map4, #map5, #map4], iterator_types = ["parallel", "parallel"]} ins(%28, %arg7 : tensor<32x24xf32>, tensor<24xf32>) outs(%26 : tensor<32x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.addf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<32x24xf32>
    %expanded = tensor.expand_shape %29 [[0, 1], [2, 3]] output_shape [2, 16, 3, 8] : tensor<32x24xf32> into tensor<2x16x3x8xf32>
    %30 = tensor.empty() : tensor<2x3x16x8xf32>
    %transposed_13 = linalg.transpose ins(%expanded : tensor<2x16x3x8xf32>) outs(%30 : tensor<2x3x16x8xf32>) permutation = [0, 2, 1, 3] 
    %transposed_14 = linalg.transpose ins(%arg8 : tensor<24x24xf32>) outs(%25 : tensor<24x24xf32>) permutation = [1, 0] 
    %31 = linalg.matmul ins(%collapsed_11, %transposed_14 : tensor<32x24xf32>, tensor<24x24xf32>) outs(%27 : tensor<32x24xf32>) -> tensor<32x24xf32>
    %32 = linalg.generic {indexing_maps = [#map4, #map5, #map4], iterator_types = ["parallel", "parallel"]} ins(%31, %arg9 : tensor<32x24xf32>, tensor<24xf32>) outs(%26 : tensor<32x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.addf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<32x24xf32>
    %expanded_15 = tensor.expand_shape %32 [[0, 1], [2, 3]] output_shape [2, 16, 3, 8] : tensor<32x24xf32> into tensor<2x16x3x8xf32>
    %transposed_16 = linalg.transpose ins(%arg10 : tensor<24x24xf32>) outs(%25 : tensor<24x24xf32>) permutation = [1, 0] 
    %33 = linalg.matmul ins(%collapsed_11, %transposed_16 : tensor<32x24xf32>, tensor<24x24xf32>) outs(%27 : tensor<32x24xf32>) -> tensor<32x24xf32>
    %34 = linalg.generic {indexing_maps = [#map4, #map5, #map4], iterator_types = ["parallel", "parallel"]} ins(%33, %arg11 : tensor<32x24xf32>, tensor<24xf32>) outs(%26 : tensor<32x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.addf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<32x24xf32>
    %expanded_17 = tensor.expand_shape %34 [[0, 1], [2, 3]] output_shape [2, 16, 3, 8] : tensor<32x24xf32> into tensor<2x16x3x8xf32>
    %transposed_18 = linalg.transpose ins(%expanded_17 : tensor<2x16x3x8xf32>) outs(%30 : tensor<2x3x16x8xf32>) permutation = [0, 2, 1, 3] 
    %35 = tensor.empty() : tensor<2x3x8x16xf32>
    %transposed_19 = linalg.transpose ins(%expanded_15 : tensor<2x16x3x8xf32>) outs(%35 : tensor<2x3x8x16xf32>) permutation = [0, 2, 3, 1] 
    %collapsed_20 = tensor.collapse_shape %transposed_13 [[0, 1], [2], [3]] : tensor<2x3x16x8xf32> into tensor<6x16x8xf32>
    %collapsed_21 = tensor.collapse_shape %transposed_19 [[0, 1], [2], [3]] : tensor<2x3x8x16xf32> into tensor<6x8x16xf32>
    %36 = tensor.empty() : tensor<6x16x16xf32>
    %37 = linalg.fill ins(%cst : f32) outs(%36 : tensor<6x16x16xf32>) -> tensor<6x16x16xf32>
    %38 = linalg.batch_matmul ins(%collapsed_20, %collapsed_21 : tensor<6x16x8xf32>, tensor<6x8x16xf32>) outs(%37 : tensor<6x16x16xf32>) -> tensor<6x16x16xf32>
    %expanded_22 = tensor.expand_shape %38 [[0, 1], [2], [3]] output_shape [2, 3, 16, 16] : tensor<6x16x16xf32> into tensor<2x3x16x16xf32>
    %39 = tensor.empty() : tensor<2x3x16x16xf32>
    %40 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_22 : tensor<2x3x16x16xf32>) outs(%39 : tensor<2x3x16x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %166 = arith.truncf %cst_5 : f64 to f32
      %167 = arith.divf %in, %166 : f32
      linalg.yield %167 : f32
    } -> tensor<2x3x16x16xf32>
    %41 = tensor.empty() : tensor<2x3x16xi64>
    %42 = linalg.fill ins(%c0_i64 : i64) outs(%41 : tensor<2x3x16xi64>) -> tensor<2x3x16xi64>
    %43 = tensor.empty() : tensor<2x3x16xf32>
    %44 = linalg.fill ins(%cst_1 : f32) outs(%43 : tensor<2x3x16xf32>) -> tensor<2x3x16xf32>
    %45:2 = linalg.generic {indexing_maps = [#map6, #map7, #map7], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%40 : tensor<2x3x16x16xf32>) outs(%44, %42 : tensor<2x3x16xf32>, tensor<2x3x16xi64>) {
    ^bb0(%in: f32, %out: f32, %out_64: i64):
      %166 = linalg.index 3 : index
      %167 = arith.index_cast %166 : index to i64
      %168 = arith.maximumf %in, %out : f32
      %169 = arith.cmpf ogt, %in, %out : f32
      %170 = arith.select %169, %167, %out_64 : i64
      linalg.yield %168, %170 : f32, i64
    } -> (tensor<2x3x16xf32>, tensor<2x3x16xi64>)
    %expanded_23 = tensor.expand_shape %45#0 [[0], [1], [2, 3]] output_shape [2, 3, 16, 1] : tensor<2x3x16xf32> into tensor<2x3x16x1xf32>
    %46 = linalg.generic {indexing_maps = [#map6, #map8, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%40, %expanded_23 : tensor<2x3x16x16xf32>, tensor<2x3x16x1xf32>) outs(%39 : tensor<2x3x16x16xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.subf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<2x3x16x16xf32>
    %47 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%46 : tensor<2x3x16x16xf32>) outs(%39 : tensor<2x3x16x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %166 = math.exp %in : f32
      linalg.yield %166 : f32
    } -> tensor<2x3x16x16xf32>
    %48 = tensor.empty() : tensor<2x3x16x1xf32>
    %49 = linalg.fill ins(%cst : f32) outs(%48 : tensor<2x3x16x1xf32>) -> tensor<2x3x16x1xf32>
    %50 = linalg.generic {indexing_maps = [#map6, #map8], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%47 : tensor<2x3x16x16xf32>) outs(%49 : tensor<2x3x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %166 = arith.addf %in, %out : f32
      linalg.yield %166 : f32
    } -> tensor<2x3x16x1xf32>
    %51 = linalg.generic {indexing_maps = [#map6, #map8, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%47, %50 : tensor<2x3x16x16xf32>, tensor<2x3x16x1xf32>) outs(%39 : tensor<2x3x16x16xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.divf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<2x3x16x16xf32>
    %collapsed_24 = tensor.collapse_shape %51 [[0, 1], [2], [3]] : tensor<2x3x16x16xf32> into tensor<6x16x16xf32>
    %collapsed_25 = tensor.collapse_shape %transposed_18 [[0, 1], [2], [3]] : tensor<2x3x16x8xf32> into tensor<6x16x8xf32>
    %52 = tensor.empty() : tensor<6x16x8xf32>
    %53 = linalg.fill ins(%cst : f32) outs(%52 : tensor<6x16x8xf32>) -> tensor<6x16x8xf32>
    %54 = linalg.batch_matmul ins(%collapsed_24, %collapsed_25 : tensor<6x16x16xf32>, tensor<6x16x8xf32>) outs(%53 : tensor<6x16x8xf32>) -> tensor<6x16x8xf32>
    %expanded_26 = tensor.expand_shape %54 [[0, 1], [2], [3]] output_shape [2, 3, 16, 8] : tensor<6x16x8xf32> into tensor<2x3x16x8xf32>
    %55 = tensor.empty() : tensor<2x16x3x8xf32>
    %transposed_27 = linalg.transpose ins(%expanded_26 : tensor<2x3x16x8xf32>) outs(%55 : tensor<2x16x3x8xf32>) permutation = [0, 2, 1, 3] 
    %collapsed_28 = tensor.collapse_shape %transposed_27 [[0, 1], [2, 3]] : tensor<2x16x3x8xf32> into tensor<32x24xf32>
    %transposed_29 = linalg.transpose ins(%arg12 : tensor<24x24xf32>) outs(%25 : tensor<24x24xf32>) permutation = [1, 0] 
    %56 = linalg.matmul ins(%collapsed_28, %transposed_29 : tensor<32x24xf32>, tensor<24x24xf32>) outs(%27 : tensor<32x24xf32>) -> tensor<32x24xf32>
    %57 = linalg.generic {indexing_maps = [#map4, #map5, #map4], iterator_types = ["parallel", "parallel"]} ins(%56, %arg13 : tensor<32x24xf32>, tensor<24xf32>) outs(%26 : tensor<32x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.addf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<32x24xf32>
    %expanded_30 = tensor.expand_shape %57 [[0, 1], [2]] output_shape [2, 16, 24] : tensor<32x24xf32> into tensor<2x16x24xf32>
    %58 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%3, %expanded_30 : tensor<2x16x24xf32>, tensor<2x16x24xf32>) outs(%2 : tensor<2x16x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.addf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x24xf32>
    %59 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%58 : tensor<2x16x24xf32>) outs(%4 : tensor<2x16x24xf64>) {
    ^bb0(%in: f32, %out: f64):
      %166 = arith.extf %in : f32 to f64
      linalg.yield %166 : f64
    } -> tensor<2x16x24xf64>
    %60 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%59 : tensor<2x16x24xf64>) outs(%7 : tensor<2x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %166 = arith.addf %in, %out : f64
      linalg.yield %166 : f64
    } -> tensor<2x16x1xf64>
    %61 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%60 : tensor<2x16x1xf64>) outs(%6 : tensor<2x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %166 = arith.divf %in, %cst_7 : f64
      linalg.yield %166 : f64
    } -> tensor<2x16x1xf64>
    %62 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%59, %61 : tensor<2x16x24xf64>, tensor<2x16x1xf64>) outs(%4 : tensor<2x16x24xf64>) {
    ^bb0(%in: f64, %in_64: f64, %out: f64):
      %166 = arith.subf %in, %in_64 : f64
      linalg.yield %166 : f64
    } -> tensor<2x16x24xf64>
    %63 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%62, %62 : tensor<2x16x24xf64>, tensor<2x16x24xf64>) outs(%4 : tensor<2x16x24xf64>) {
    ^bb0(%in: f64, %in_64: f64, %out: f64):
      %166 = arith.mulf %in, %in_64 : f64
      linalg.yield %166 : f64
    } -> tensor<2x16x24xf64>
    %64 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%63 : tensor<2x16x24xf64>) outs(%7 : tensor<2x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %166 = arith.addf %in, %out : f64
      linalg.yield %166 : f64
    } -> tensor<2x16x1xf64>
    %65 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%64 : tensor<2x16x1xf64>) outs(%6 : tensor<2x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %166 = arith.divf %in, %cst_7 : f64
      linalg.yield %166 : f64
    } -> tensor<2x16x1xf64>
    %66 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%65 : tensor<2x16x1xf64>) outs(%14 : tensor<2x16x1xf32>) {
    ^bb0(%in: f64, %out: f32):
      %166 = arith.truncf %in : f64 to f32
      linalg.yield %166 : f32
    } -> tensor<2x16x1xf32>
    %67 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%58 : tensor<2x16x24xf32>) outs(%16 : tensor<2x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %166 = arith.addf %in, %out : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x1xf32>
    %68 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%67 : tensor<2x16x1xf32>) outs(%14 : tensor<2x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %166 = arith.divf %in, %cst_8 : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x1xf32>
    %69 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%66 : tensor<2x16x1xf32>) outs(%14 : tensor<2x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %166 = arith.truncf %cst_6 : f64 to f32
      %167 = arith.addf %in, %166 : f32
      linalg.yield %167 : f32
    } -> tensor<2x16x1xf32>
    %70 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%69 : tensor<2x16x1xf32>) outs(%14 : tensor<2x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %166 = math.rsqrt %in : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x1xf32>
    %71 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%58, %68 : tensor<2x16x24xf32>, tensor<2x16x1xf32>) outs(%2 : tensor<2x16x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.subf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x24xf32>
    %72 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%71, %70 : tensor<2x16x24xf32>, tensor<2x16x1xf32>) outs(%2 : tensor<2x16x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.mulf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x24xf32>
    %73 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%72, %arg14 : tensor<2x16x24xf32>, tensor<24xf32>) outs(%2 : tensor<2x16x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.mulf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x24xf32>
    %74 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%73, %arg15 : tensor<2x16x24xf32>, tensor<24xf32>) outs(%2 : tensor<2x16x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.addf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x24xf32>
    %collapsed_31 = tensor.collapse_shape %74 [[0, 1], [2]] : tensor<2x16x24xf32> into tensor<32x24xf32>
    %75 = tensor.empty() : tensor<24x96xf32>
    %transposed_32 = linalg.transpose ins(%arg16 : tensor<96x24xf32>) outs(%75 : tensor<24x96xf32>) permutation = [1, 0] 
    %76 = tensor.empty() : tensor<32x96xf32>
    %77 = linalg.fill ins(%cst : f32) outs(%76 : tensor<32x96xf32>) -> tensor<32x96xf32>
    %78 = linalg.matmul ins(%collapsed_31, %transposed_32 : tensor<32x24xf32>, tensor<24x96xf32>) outs(%77 : tensor<32x96xf32>) -> tensor<32x96xf32>
    %79 = linalg.generic {indexing_maps = [#map4, #map5, #map4], iterator_types = ["parallel", "parallel"]} ins(%78, %arg17 : tensor<32x96xf32>, tensor<96xf32>) outs(%76 : tensor<32x96xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.addf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<32x96xf32>
    %expanded_33 = tensor.expand_shape %79 [[0, 1], [2]] output_shape [2, 16, 96] : tensor<32x96xf32> into tensor<2x16x96xf32>
    %80 = tensor.empty() : tensor<2x16x96xf32>
    %81 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_33 : tensor<2x16x96xf32>) outs(%80 : tensor<2x16x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      %166 = arith.divf %in, %cst_9 : f32
      %167 = math.erf %166 : f32
      %168 = arith.addf %167, %cst_2 : f32
      %169 = arith.mulf %168, %cst_3 : f32
      %170 = arith.mulf %in, %169 : f32
      linalg.yield %170 : f32
    } -> tensor<2x16x96xf32>
    %collapsed_34 = tensor.collapse_shape %81 [[0, 1], [2]] : tensor<2x16x96xf32> into tensor<32x96xf32>
    %82 = tensor.empty() : tensor<96x24xf32>
    %transposed_35 = linalg.transpose ins(%arg18 : tensor<24x96xf32>) outs(%82 : tensor<96x24xf32>) permutation = [1, 0] 
    %83 = linalg.matmul ins(%collapsed_34, %transposed_35 : tensor<32x96xf32>, tensor<96x24xf32>) outs(%27 : tensor<32x24xf32>) -> tensor<32x24xf32>
    %84 = linalg.generic {indexing_maps = [#map4, #map5, #map4], iterator_types = ["parallel", "parallel"]} ins(%83, %arg19 : tensor<32x24xf32>, tensor<24xf32>) outs(%26 : tensor<32x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.addf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<32x24xf32>
    %expanded_36 = tensor.expand_shape %84 [[0, 1], [2]] output_shape [2, 16, 24] : tensor<32x24xf32> into tensor<2x16x24xf32>
    %85 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%58, %expanded_36 : tensor<2x16x24xf32>, tensor<2x16x24xf32>) outs(%2 : tensor<2x16x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.addf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x24xf32>
    %86 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%85 : tensor<2x16x24xf32>) outs(%4 : tensor<2x16x24xf64>) {
    ^bb0(%in: f32, %out: f64):
      %166 = arith.extf %in : f32 to f64
      linalg.yield %166 : f64
    } -> tensor<2x16x24xf64>
    %87 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%86 : tensor<2x16x24xf64>) outs(%7 : tensor<2x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %166 = arith.addf %in, %out : f64
      linalg.yield %166 : f64
    } -> tensor<2x16x1xf64>
    %88 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%87 : tensor<2x16x1xf64>) outs(%6 : tensor<2x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %166 = arith.divf %in, %cst_7 : f64
      linalg.yield %166 : f64
    } -> tensor<2x16x1xf64>
    %89 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%86, %88 : tensor<2x16x24xf64>, tensor<2x16x1xf64>) outs(%4 : tensor<2x16x24xf64>) {
    ^bb0(%in: f64, %in_64: f64, %out: f64):
      %166 = arith.subf %in, %in_64 : f64
      linalg.yield %166 : f64
    } -> tensor<2x16x24xf64>
    %90 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%89, %89 : tensor<2x16x24xf64>, tensor<2x16x24xf64>) outs(%4 : tensor<2x16x24xf64>) {
    ^bb0(%in: f64, %in_64: f64, %out: f64):
      %166 = arith.mulf %in, %in_64 : f64
      linalg.yield %166 : f64
    } -> tensor<2x16x24xf64>
    %91 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%90 : tensor<2x16x24xf64>) outs(%7 : tensor<2x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %166 = arith.addf %in, %out : f64
      linalg.yield %166 : f64
    } -> tensor<2x16x1xf64>
    %92 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%91 : tensor<2x16x1xf64>) outs(%6 : tensor<2x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %166 = arith.divf %in, %cst_7 : f64
      linalg.yield %166 : f64
    } -> tensor<2x16x1xf64>
    %93 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%92 : tensor<2x16x1xf64>) outs(%14 : tensor<2x16x1xf32>) {
    ^bb0(%in: f64, %out: f32):
      %166 = arith.truncf %in : f64 to f32
      linalg.yield %166 : f32
    } -> tensor<2x16x1xf32>
    %94 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%85 : tensor<2x16x24xf32>) outs(%16 : tensor<2x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %166 = arith.addf %in, %out : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x1xf32>
    %95 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%94 : tensor<2x16x1xf32>) outs(%14 : tensor<2x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %166 = arith.divf %in, %cst_8 : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x1xf32>
    %96 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%93 : tensor<2x16x1xf32>) outs(%14 : tensor<2x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %166 = arith.truncf %cst_6 : f64 to f32
      %167 = arith.addf %in, %166 : f32
      linalg.yield %167 : f32
    } -> tensor<2x16x1xf32>
    %97 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%96 : tensor<2x16x1xf32>) outs(%14 : tensor<2x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %166 = math.rsqrt %in : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x1xf32>
    %98 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%85, %95 : tensor<2x16x24xf32>, tensor<2x16x1xf32>) outs(%2 : tensor<2x16x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.subf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x24xf32>
    %99 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%98, %97 : tensor<2x16x24xf32>, tensor<2x16x1xf32>) outs(%2 : tensor<2x16x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.mulf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x24xf32>
    %100 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%99, %arg20 : tensor<2x16x24xf32>, tensor<24xf32>) outs(%2 : tensor<2x16x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.mulf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x24xf32>
    %101 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%100, %arg21 : tensor<2x16x24xf32>, tensor<24xf32>) outs(%2 : tensor<2x16x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.addf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x24xf32>
    %collapsed_37 = tensor.collapse_shape %101 [[0, 1], [2]] : tensor<2x16x24xf32> into tensor<32x24xf32>
    %102 = tensor.empty() : tensor<24x72xf32>
    %transposed_38 = linalg.transpose ins(%arg22 : tensor<72x24xf32>) outs(%102 : tensor<24x72xf32>) permutation = [1, 0] 
    %103 = tensor.empty() : tensor<32x72xf32>
    %104 = linalg.fill ins(%cst : f32) outs(%103 : tensor<32x72xf32>) -> tensor<32x72xf32>
    %105 = linalg.matmul ins(%collapsed_37, %transposed_38 : tensor<32x24xf32>, tensor<24x72xf32>) outs(%104 : tensor<32x72xf32>) -> tensor<32x72xf32>
    %106 = linalg.generic {indexing_maps = [#map4, #map5, #map4], iterator_types = ["parallel", "parallel"]} ins(%105, %arg23 : tensor<32x72xf32>, tensor<72xf32>) outs(%103 : tensor<32x72xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.addf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<32x72xf32>
    %expanded_39 = tensor.expand_shape %106 [[0, 1], [2, 3, 4]] output_shape [2, 16, 3, 3, 8] : tensor<32x72xf32> into tensor<2x16x3x3x8xf32>
    %107 = tensor.empty() : tensor<3x2x3x16x8xf32>
    %transposed_40 = linalg.transpose ins(%expanded_39 : tensor<2x16x3x3x8xf32>) outs(%107 : tensor<3x2x3x16x8xf32>) permutation = [2, 0, 3, 1, 4] 
    %extracted_slice = tensor.extract_slice %transposed_40[0, 0, 0, 0, 0] [1, 2, 3, 16, 8] [1, 1, 1, 1, 1] : tensor<3x2x3x16x8xf32> to tensor<1x2x3x16x8xf32>
    %collapsed_41 = tensor.collapse_shape %extracted_slice [[0, 1], [2], [3], [4]] : tensor<1x2x3x16x8xf32> into tensor<2x3x16x8xf32>
    %extracted_slice_42 = tensor.extract_slice %transposed_40[1, 0, 0, 0, 0] [1, 2, 3, 16, 8] [1, 1, 1, 1, 1] : tensor<3x2x3x16x8xf32> to tensor<1x2x3x16x8xf32>
    %collapsed_43 = tensor.collapse_shape %extracted_slice_42 [[0, 1], [2], [3], [4]] : tensor<1x2x3x16x8xf32> into tensor<2x3x16x8xf32>
    %extracted_slice_44 = tensor.extract_slice %transposed_40[2, 0, 0, 0, 0] [1, 2, 3, 16, 8] [1, 1, 1, 1, 1] : tensor<3x2x3x16x8xf32> to tensor<1x2x3x16x8xf32>
    %108 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%collapsed_41 : tensor<2x3x16x8xf32>) outs(%30 : tensor<2x3x16x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %166 = arith.truncf %cst_4 : f64 to f32
      %167 = arith.mulf %in, %166 : f32
      linalg.yield %167 : f32
    } -> tensor<2x3x16x8xf32>
    %transposed_45 = linalg.transpose ins(%collapsed_43 : tensor<2x3x16x8xf32>) outs(%35 : tensor<2x3x8x16xf32>) permutation = [0, 1, 3, 2] 
    %collapsed_46 = tensor.collapse_shape %108 [[0, 1], [2], [3]] : tensor<2x3x16x8xf32> into tensor<6x16x8xf32>
    %collapsed_47 = tensor.collapse_shape %transposed_45 [[0, 1], [2], [3]] : tensor<2x3x8x16xf32> into tensor<6x8x16xf32>
    %109 = linalg.batch_matmul ins(%collapsed_46, %collapsed_47 : tensor<6x16x8xf32>, tensor<6x8x16xf32>) outs(%37 : tensor<6x16x16xf32>) -> tensor<6x16x16xf32>
    %expanded_48 = tensor.expand_shape %109 [[0, 1], [2], [3]] output_shape [2, 3, 16, 16] : tensor<6x16x16xf32> into tensor<2x3x16x16xf32>
    %110:2 = linalg.generic {indexing_maps = [#map6, #map7, #map7], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%expanded_48 : tensor<2x3x16x16xf32>) outs(%44, %42 : tensor<2x3x16xf32>, tensor<2x3x16xi64>) {
    ^bb0(%in: f32, %out: f32, %out_64: i64):
      %166 = linalg.index 3 : index
      %167 = arith.index_cast %166 : index to i64
      %168 = arith.maximumf %in, %out : f32
      %169 = arith.cmpf ogt, %in, %out : f32
      %170 = arith.select %169, %167, %out_64 : i64
      linalg.yield %168, %170 : f32, i64
    } -> (tensor<2x3x16xf32>, tensor<2x3x16xi64>)
    %expanded_49 = tensor.expand_shape %110#0 [[0], [1], [2, 3]] output_shape [2, 3, 16, 1] : tensor<2x3x16xf32> into tensor<2x3x16x1xf32>
    %111 = linalg.generic {indexing_maps = [#map6, #map8, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_48, %expanded_49 : tensor<2x3x16x16xf32>, tensor<2x3x16x1xf32>) outs(%39 : tensor<2x3x16x16xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.subf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<2x3x16x16xf32>
    %112 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%111 : tensor<2x3x16x16xf32>) outs(%39 : tensor<2x3x16x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %166 = math.exp %in : f32
      linalg.yield %166 : f32
    } -> tensor<2x3x16x16xf32>
    %113 = linalg.generic {indexing_maps = [#map6, #map8], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%112 : tensor<2x3x16x16xf32>) outs(%49 : tensor<2x3x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %166 = arith.addf %in, %out : f32
      linalg.yield %166 : f32
    } -> tensor<2x3x16x1xf32>
    %114 = linalg.generic {indexing_maps = [#map6, #map8, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%112, %113 : tensor<2x3x16x16xf32>, tensor<2x3x16x1xf32>) outs(%39 : tensor<2x3x16x16xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.divf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<2x3x16x16xf32>
    %collapsed_50 = tensor.collapse_shape %114 [[0, 1], [2], [3]] : tensor<2x3x16x16xf32> into tensor<6x16x16xf32>
    %collapsed_51 = tensor.collapse_shape %extracted_slice_44 [[0, 1, 2], [3], [4]] : tensor<1x2x3x16x8xf32> into tensor<6x16x8xf32>
    %115 = linalg.batch_matmul ins(%collapsed_50, %collapsed_51 : tensor<6x16x16xf32>, tensor<6x16x8xf32>) outs(%53 : tensor<6x16x8xf32>) -> tensor<6x16x8xf32>
    %expanded_52 = tensor.expand_shape %115 [[0, 1], [2], [3]] output_shape [2, 3, 16, 8] : tensor<6x16x8xf32> into tensor<2x3x16x8xf32>
    %transposed_53 = linalg.transpose ins(%expanded_52 : tensor<2x3x16x8xf32>) outs(%55 : tensor<2x16x3x8xf32>) permutation = [0, 2, 1, 3] 
    %collapsed_54 = tensor.collapse_shape %transposed_53 [[0, 1], [2, 3]] : tensor<2x16x3x8xf32> into tensor<32x24xf32>
    %transposed_55 = linalg.transpose ins(%arg24 : tensor<24x24xf32>) outs(%25 : tensor<24x24xf32>) permutation = [1, 0] 
    %116 = linalg.matmul ins(%collapsed_54, %transposed_55 : tensor<32x24xf32>, tensor<24x24xf32>) outs(%27 : tensor<32x24xf32>) -> tensor<32x24xf32>
    %117 = linalg.generic {indexing_maps = [#map4, #map5, #map4], iterator_types = ["parallel", "parallel"]} ins(%116, %arg25 : tensor<32x24xf32>, tensor<24xf32>) outs(%26 : tensor<32x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.addf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<32x24xf32>
    %expanded_56 = tensor.expand_shape %117 [[0, 1], [2]] output_shape [2, 16, 24] : tensor<32x24xf32> into tensor<2x16x24xf32>
    %118 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%85, %expanded_56 : tensor<2x16x24xf32>, tensor<2x16x24xf32>) outs(%2 : tensor<2x16x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.addf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x24xf32>
    %119 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%118 : tensor<2x16x24xf32>) outs(%4 : tensor<2x16x24xf64>) {
    ^bb0(%in: f32, %out: f64):
      %166 = arith.extf %in : f32 to f64
      linalg.yield %166 : f64
    } -> tensor<2x16x24xf64>
    %120 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%119 : tensor<2x16x24xf64>) outs(%7 : tensor<2x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %166 = arith.addf %in, %out : f64
      linalg.yield %166 : f64
    } -> tensor<2x16x1xf64>
    %121 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%120 : tensor<2x16x1xf64>) outs(%6 : tensor<2x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %166 = arith.divf %in, %cst_7 : f64
      linalg.yield %166 : f64
    } -> tensor<2x16x1xf64>
    %122 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%119, %121 : tensor<2x16x24xf64>, tensor<2x16x1xf64>) outs(%4 : tensor<2x16x24xf64>) {
    ^bb0(%in: f64, %in_64: f64, %out: f64):
      %166 = arith.subf %in, %in_64 : f64
      linalg.yield %166 : f64
    } -> tensor<2x16x24xf64>
    %123 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%122, %122 : tensor<2x16x24xf64>, tensor<2x16x24xf64>) outs(%4 : tensor<2x16x24xf64>) {
    ^bb0(%in: f64, %in_64: f64, %out: f64):
      %166 = arith.mulf %in, %in_64 : f64
      linalg.yield %166 : f64
    } -> tensor<2x16x24xf64>
    %124 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%123 : tensor<2x16x24xf64>) outs(%7 : tensor<2x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %166 = arith.addf %in, %out : f64
      linalg.yield %166 : f64
    } -> tensor<2x16x1xf64>
    %125 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%124 : tensor<2x16x1xf64>) outs(%6 : tensor<2x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %166 = arith.divf %in, %cst_7 : f64
      linalg.yield %166 : f64
    } -> tensor<2x16x1xf64>
    %126 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%125 : tensor<2x16x1xf64>) outs(%14 : tensor<2x16x1xf32>) {
    ^bb0(%in: f64, %out: f32):
      %166 = arith.truncf %in : f64 to f32
      linalg.yield %166 : f32
    } -> tensor<2x16x1xf32>
    %127 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%118 : tensor<2x16x24xf32>) outs(%16 : tensor<2x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %166 = arith.addf %in, %out : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x1xf32>
    %128 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%127 : tensor<2x16x1xf32>) outs(%14 : tensor<2x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %166 = arith.divf %in, %cst_8 : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x1xf32>
    %129 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%126 : tensor<2x16x1xf32>) outs(%14 : tensor<2x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %166 = arith.truncf %cst_6 : f64 to f32
      %167 = arith.addf %in, %166 : f32
      linalg.yield %167 : f32
    } -> tensor<2x16x1xf32>
    %130 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%129 : tensor<2x16x1xf32>) outs(%14 : tensor<2x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %166 = math.rsqrt %in : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x1xf32>
    %131 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%118, %128 : tensor<2x16x24xf32>, tensor<2x16x1xf32>) outs(%2 : tensor<2x16x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.subf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x24xf32>
    %132 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%131, %130 : tensor<2x16x24xf32>, tensor<2x16x1xf32>) outs(%2 : tensor<2x16x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.mulf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x24xf32>
    %133 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%132, %arg26 : tensor<2x16x24xf32>, tensor<24xf32>) outs(%2 : tensor<2x16x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.mulf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x24xf32>
    %134 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%133, %arg27 : tensor<2x16x24xf32>, tensor<24xf32>) outs(%2 : tensor<2x16x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.addf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x24xf32>
    %collapsed_57 = tensor.collapse_shape %134 [[0, 1], [2]] : tensor<2x16x24xf32> into tensor<32x24xf32>
    %transposed_58 = linalg.transpose ins(%arg28 : tensor<96x24xf32>) outs(%75 : tensor<24x96xf32>) permutation = [1, 0] 
    %135 = linalg.matmul ins(%collapsed_57, %transposed_58 : tensor<32x24xf32>, tensor<24x96xf32>) outs(%77 : tensor<32x96xf32>) -> tensor<32x96xf32>
    %136 = linalg.generic {indexing_maps = [#map4, #map5, #map4], iterator_types = ["parallel", "parallel"]} ins(%135, %arg29 : tensor<32x96xf32>, tensor<96xf32>) outs(%76 : tensor<32x96xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.addf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<32x96xf32>
    %expanded_59 = tensor.expand_shape %136 [[0, 1], [2]] output_shape [2, 16, 96] : tensor<32x96xf32> into tensor<2x16x96xf32>
    %137 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_59 : tensor<2x16x96xf32>) outs(%80 : tensor<2x16x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      %166 = arith.divf %in, %cst_9 : f32
      %167 = math.erf %166 : f32
      %168 = arith.addf %167, %cst_2 : f32
      %169 = arith.mulf %168, %cst_3 : f32
      %170 = arith.mulf %in, %169 : f32
      linalg.yield %170 : f32
    } -> tensor<2x16x96xf32>
    %collapsed_60 = tensor.collapse_shape %137 [[0, 1], [2]] : tensor<2x16x96xf32> into tensor<32x96xf32>
    %transposed_61 = linalg.transpose ins(%arg30 : tensor<24x96xf32>) outs(%82 : tensor<96x24xf32>) permutation = [1, 0] 
    %138 = linalg.matmul ins(%collapsed_60, %transposed_61 : tensor<32x96xf32>, tensor<96x24xf32>) outs(%27 : tensor<32x24xf32>) -> tensor<32x24xf32>
    %139 = linalg.generic {indexing_maps = [#map4, #map5, #map4], iterator_types = ["parallel", "parallel"]} ins(%138, %arg31 : tensor<32x24xf32>, tensor<24xf32>) outs(%26 : tensor<32x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.addf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<32x24xf32>
    %expanded_62 = tensor.expand_shape %139 [[0, 1], [2]] output_shape [2, 16, 24] : tensor<32x24xf32> into tensor<2x16x24xf32>
    %140 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%118, %expanded_62 : tensor<2x16x24xf32>, tensor<2x16x24xf32>) outs(%2 : tensor<2x16x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.addf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x24xf32>
    %141 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%140 : tensor<2x16x24xf32>) outs(%4 : tensor<2x16x24xf64>) {
    ^bb0(%in: f32, %out: f64):
      %166 = arith.extf %in : f32 to f64
      linalg.yield %166 : f64
    } -> tensor<2x16x24xf64>
    %142 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%141 : tensor<2x16x24xf64>) outs(%7 : tensor<2x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %166 = arith.addf %in, %out : f64
      linalg.yield %166 : f64
    } -> tensor<2x16x1xf64>
    %143 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%142 : tensor<2x16x1xf64>) outs(%6 : tensor<2x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %166 = arith.divf %in, %cst_7 : f64
      linalg.yield %166 : f64
    } -> tensor<2x16x1xf64>
    %144 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%141, %143 : tensor<2x16x24xf64>, tensor<2x16x1xf64>) outs(%4 : tensor<2x16x24xf64>) {
    ^bb0(%in: f64, %in_64: f64, %out: f64):
      %166 = arith.subf %in, %in_64 : f64
      linalg.yield %166 : f64
    } -> tensor<2x16x24xf64>
    %145 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%144, %144 : tensor<2x16x24xf64>, tensor<2x16x24xf64>) outs(%4 : tensor<2x16x24xf64>) {
    ^bb0(%in: f64, %in_64: f64, %out: f64):
      %166 = arith.mulf %in, %in_64 : f64
      linalg.yield %166 : f64
    } -> tensor<2x16x24xf64>
    %146 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%145 : tensor<2x16x24xf64>) outs(%7 : tensor<2x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %166 = arith.addf %in, %out : f64
      linalg.yield %166 : f64
    } -> tensor<2x16x1xf64>
    %147 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%146 : tensor<2x16x1xf64>) outs(%6 : tensor<2x16x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %166 = arith.divf %in, %cst_7 : f64
      linalg.yield %166 : f64
    } -> tensor<2x16x1xf64>
    %148 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%147 : tensor<2x16x1xf64>) outs(%14 : tensor<2x16x1xf32>) {
    ^bb0(%in: f64, %out: f32):
      %166 = arith.truncf %in : f64 to f32
      linalg.yield %166 : f32
    } -> tensor<2x16x1xf32>
    %149 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%140 : tensor<2x16x24xf32>) outs(%16 : tensor<2x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %166 = arith.addf %in, %out : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x1xf32>
    %150 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%149 : tensor<2x16x1xf32>) outs(%14 : tensor<2x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %166 = arith.divf %in, %cst_8 : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x1xf32>
    %151 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%148 : tensor<2x16x1xf32>) outs(%14 : tensor<2x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %166 = arith.truncf %cst_6 : f64 to f32
      %167 = arith.addf %in, %166 : f32
      linalg.yield %167 : f32
    } -> tensor<2x16x1xf32>
    %152 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%151 : tensor<2x16x1xf32>) outs(%14 : tensor<2x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %166 = math.rsqrt %in : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x1xf32>
    %153 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%140, %150 : tensor<2x16x24xf32>, tensor<2x16x1xf32>) outs(%2 : tensor<2x16x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.subf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x24xf32>
    %154 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%153, %152 : tensor<2x16x24xf32>, tensor<2x16x1xf32>) outs(%2 : tensor<2x16x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.mulf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x24xf32>
    %155 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%154, %arg32 : tensor<2x16x24xf32>, tensor<24xf32>) outs(%2 : tensor<2x16x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.mulf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x24xf32>
    %156 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%155, %arg33 : tensor<2x16x24xf32>, tensor<24xf32>) outs(%2 : tensor<2x16x24xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.addf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<2x16x24xf32>
    %157 = tensor.empty() : tensor<2x24xf32>
    %158 = linalg.fill ins(%cst : f32) outs(%157 : tensor<2x24xf32>) -> tensor<2x24xf32>
    %159 = linalg.generic {indexing_maps = [#map, #map9], iterator_types = ["parallel", "reduction", "parallel"]} ins(%156 : tensor<2x16x24xf32>) outs(%158 : tensor<2x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %166 = arith.addf %in, %out : f32
      linalg.yield %166 : f32
    } -> tensor<2x24xf32>
    %160 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%159 : tensor<2x24xf32>) outs(%157 : tensor<2x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %166 = arith.divf %in, %cst_10 : f32
      linalg.yield %166 : f32
    } -> tensor<2x24xf32>
    %161 = tensor.empty() : tensor<24x10xf32>
    %transposed_63 = linalg.transpose ins(%arg34 : tensor<10x24xf32>) outs(%161 : tensor<24x10xf32>) permutation = [1, 0] 
    %162 = tensor.empty() : tensor<2x10xf32>
    %163 = linalg.fill ins(%cst : f32) outs(%162 : tensor<2x10xf32>) -> tensor<2x10xf32>
    %164 = linalg.matmul ins(%160, %transposed_63 : tensor<2x24xf32>, tensor<24x10xf32>) outs(%163 : tensor<2x10xf32>) -> tensor<2x10xf32>
    %165 = linalg.generic {indexing_maps = [#map4, #map5, #map4], iterator_types = ["parallel", "parallel"]} ins(%164, %arg35 : tensor<2x10xf32>, tensor<10xf32>) outs(%162 : tensor<2x10xf32>) {
    ^bb0(%in: f32, %in_64: f32, %out: f32):
      %166 = arith.addf %in, %in_64 : f32
      linalg.yield %166 : f32
    } -> tensor<2x10xf32>
    return %165 : tensor<2x10xf32>
  }
}
