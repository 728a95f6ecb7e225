// What networks have besides layers, at sizes that no tile divides, and with dimensions of 1.

func.func @products(%x: tensor<65x33xf32>, %y: tensor<33x19xf32>, %z: tensor<1x19x1xf32>, %init: tensor<1x65x1xf32>)
    -> tensor<1x65x1xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<65x19xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<65x19xf32>) -> tensor<65x19xf32>
  %a = linalg.matmul ins(%x, %y : tensor<65x33xf32>, tensor<33x19xf32>) outs(%zeros : tensor<65x19xf32>) -> tensor<65x19xf32>
  %b = tensor.expand_shape %a [[0, 1], [2]] output_shape [1, 65, 19] : tensor<65x19xf32> into tensor<1x65x19xf32>
  %c = linalg.batch_matmul ins(%b, %z : tensor<1x65x19xf32>, tensor<1x19x1xf32>) outs(%init : tensor<1x65x1xf32>) -> tensor<1x65x1xf32>
  return %c : tensor<1x65x1xf32>
}

func.func @images(%x: tensor<2x5x9x7xf32>, %w: tensor<3x5x3x3xf32>, %d: tensor<3x3x3xf32>, %b: tensor<3xf32>)
    -> (tensor<2x3x4x3xf32>, tensor<2x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %padded = tensor.pad %x low[0, 0, 1, 2] high[0, 0, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<2x5x9x7xf32> to tensor<2x5x11x9xf32>
  %0 = tensor.empty() : tensor<2x3x9x7xf32>
  %bias = linalg.broadcast ins(%b : tensor<3xf32>) outs(%0 : tensor<2x3x9x7xf32>) dimensions = [0, 2, 3]
  %1 = linalg.conv_2d_nchw_fchw ins(%padded, %w : tensor<2x5x11x9xf32>, tensor<3x5x3x3xf32>) outs(%bias : tensor<2x3x9x7xf32>) -> tensor<2x3x9x7xf32>
  %2 = tensor.empty() : tensor<2x3x7x5xf32>
  %3 = linalg.fill ins(%zero : f32) outs(%2 : tensor<2x3x7x5xf32>) -> tensor<2x3x7x5xf32>
  %4 = linalg.depthwise_conv_2d_nchw_chw ins(%1, %d : tensor<2x3x9x7xf32>, tensor<3x3x3xf32>) outs(%3 : tensor<2x3x7x5xf32>) -> tensor<2x3x7x5xf32>
  // Padding of a maximum: beyond the border is less than everything.
  %outside = tensor.pad %4 low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %least : f32
  } : tensor<2x3x7x5xf32> to tensor<2x3x9x7xf32>
  %window = tensor.empty() : tensor<3x3xf32>
  %5 = tensor.empty() : tensor<2x3x4x3xf32>
  %6 = linalg.fill ins(%least : f32) outs(%5 : tensor<2x3x4x3xf32>) -> tensor<2x3x4x3xf32>
  %7 = linalg.pooling_nchw_max {strides = dense<2> : vector<2xi64>}
    ins(%outside, %window : tensor<2x3x9x7xf32>, tensor<3x3xf32>) outs(%6 : tensor<2x3x4x3xf32>) -> tensor<2x3x4x3xf32>
  %8 = tensor.empty() : tensor<2x3xf32>
  %9 = linalg.fill ins(%zero : f32) outs(%8 : tensor<2x3xf32>) -> tensor<2x3xf32>
  %10 = linalg.reduce ins(%7 : tensor<2x3x4x3xf32>) outs(%9 : tensor<2x3xf32>) dimensions = [2, 3]
    (%in: f32, %out: f32) {
      %11 = arith.addf %in, %out : f32
      linalg.yield %11 : f32
    }
  return %7, %10 : tensor<2x3x4x3xf32>, tensor<2x3xf32>
}

func.func @tensors(%x: tensor<5x7xf32>, %y: tensor<3xf32>) -> (tensor<7x5xf32>, tensor<5x9xf32>, tensor<35xf32>) {
  %two = arith.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0]> : tensor<5xf32>
  %0 = tensor.empty() : tensor<5x7xf32>
  %1 = linalg.exp ins(%x : tensor<5x7xf32>) outs(%0 : tensor<5x7xf32>) -> tensor<5x7xf32>
  %2 = linalg.broadcast ins(%two : tensor<5xf32>) outs(%0 : tensor<5x7xf32>) dimensions = [1]
  %3 = linalg.mul ins(%1, %2 : tensor<5x7xf32>, tensor<5x7xf32>) outs(%0 : tensor<5x7xf32>) -> tensor<5x7xf32>
  %4 = tensor.empty() : tensor<7x5xf32>
  %5 = linalg.transpose ins(%3 : tensor<5x7xf32>) outs(%4 : tensor<7x5xf32>) permutation = [1, 0]
  %6 = tensor.extract_slice %3[1, 2] [3, 2] [1, 1] : tensor<5x7xf32> to tensor<3x2xf32>
  %7 = tensor.extract_slice %6[0, 1] [3, 1] [1, 1] : tensor<3x2xf32> to tensor<3xf32>
  %8 = tensor.empty() : tensor<3xf32>
  %9 = linalg.add ins(%7, %y : tensor<3xf32>, tensor<3xf32>) outs(%8 : tensor<3xf32>) -> tensor<3xf32>
  %10 = tensor.insert_slice %9 into %3[4, 1] [1, 3] [1, 1] : tensor<3xf32> into tensor<5x7xf32>
  %11 = tensor.extract_slice %x[0, 5] [5, 2] [1, 1] : tensor<5x7xf32> to tensor<5x2xf32>
  %12 = tensor.concat dim(1) %11, %10 : (tensor<5x2xf32>, tensor<5x7xf32>) -> tensor<5x9xf32>
  %13 = tensor.collapse_shape %10 [[0, 1]] : tensor<5x7xf32> into tensor<35xf32>
  return %5, %12, %13 : tensor<7x5xf32>, tensor<5x9xf32>, tensor<35xf32>
}
