// RUN: kas-opt %s --verify-diagnostics -kas-extract=sequences | FileCheck %s

// No operator sees a window that is as large as the image: the limit is left out, and so are sequences that begin with such windows.
// CHECK: kas.space @conv2d<
// CHECK-NOT: sees
// CHECK-NOT: kas.sequence_space
func.func @forward(%x: tensor<1x8x5x5xf32>, %w: tensor<8x8x3x3xf32>, %y: tensor<1x8x3x3xf32>, %v: tensor<8x8x3x3xf32>)
    -> (tensor<1x8x5x5xf32>, tensor<1x8x3x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %xp = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<1x8x5x5xf32> to tensor<1x8x7x7xf32>
  %x0 = tensor.empty() : tensor<1x8x5x5xf32>
  %x1 = linalg.fill ins(%zero : f32) outs(%x0 : tensor<1x8x5x5xf32>) -> tensor<1x8x5x5xf32>
  %r = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%xp, %w : tensor<1x8x7x7xf32>, tensor<8x8x3x3xf32>) outs(%x1 : tensor<1x8x5x5xf32>) -> tensor<1x8x5x5xf32>
  %yp = tensor.pad %y low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<1x8x3x3xf32> to tensor<1x8x5x5xf32>
  %y0 = tensor.empty() : tensor<1x8x3x3xf32>
  %y1 = linalg.fill ins(%zero : f32) outs(%y0 : tensor<1x8x3x3xf32>) -> tensor<1x8x3x3xf32>
  // expected-remark @below {{limit 'sees' of '@conv2d' is left out: requires images larger than the window, got #kas.binding<Cin = 8, Cout = 8, H = 3, N = 1, W = 3, g = 4, k = 3>}}
  %s = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%yp, %v : tensor<1x8x5x5xf32>, tensor<8x8x3x3xf32>) outs(%y1 : tensor<1x8x3x3xf32>) -> tensor<1x8x3x3xf32>
  return %r, %s : tensor<1x8x5x5xf32>, tensor<1x8x3x3xf32>
}
