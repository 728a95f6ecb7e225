// One function per kind of layer, as torch-mlir writes it.
// RUN: kas-opt %s --split-input-file -kas-extract="coefficients=" | FileCheck %s

// A 7x7 convolution with bias; the name of the layer is that of its weight.
// CHECK:      kas.space @conv2d<N, Cin, Cout, H, W | k>
// CHECK-NEXT: [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
// CHECK-NEXT: bindings [<Cin = 8, Cout = 4, H = 6, N = 2, W = 5, k = 7>]
// CHECK-LABEL: @dense(
// CHECK: kas.site = {binding = 0 : i64, name = "stage.0", space = @conv2d}
func.func @dense(%x: tensor<2x8x6x5xf32> {kas.name = "input"},
                  %w: tensor<4x8x7x7xf32> {kas.name = "stage.0.weight"},
                  %b: tensor<4xf32> {kas.name = "stage.0.bias"}) -> tensor<2x4x6x5xf32> {
  %zero = arith.constant 0.0 : f32
  %pad = tensor.pad %x low[0, 0, 3, 3] high[0, 0, 3, 3] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<2x8x6x5xf32> to tensor<2x8x12x11xf32>
  %empty = tensor.empty() : tensor<2x4x6x5xf32>
  %init = linalg.broadcast ins(%b : tensor<4xf32>) outs(%empty : tensor<2x4x6x5xf32>) dimensions = [0, 2, 3]
  %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
    ins(%pad, %w : tensor<2x8x12x11xf32>, tensor<4x8x7x7xf32>) outs(%init : tensor<2x4x6x5xf32>) -> tensor<2x4x6x5xf32>
  return %y : tensor<2x4x6x5xf32>
}

// -----

// The same in one dimension, without bias, and the pad has another user.
// CHECK:      kas.space @conv1d<N, Cin, Cout, L | k>
// CHECK-NEXT: [N, Cout unordered, L] from [N, Cin unordered, L]
// CHECK-NEXT: bindings [<Cin = 8, Cout = 4, L = 9, N = 1, k = 3>]
// CHECK:      kas.named_operator = "kas.conv1d"
// CHECK-LABEL: @one_dimension(
// CHECK: kas.site = {binding = 0 : i64, space = @conv1d}
func.func @one_dimension(%x: tensor<1x8x9xf32>, %w: tensor<4x8x3xf32>) -> (tensor<1x4x9xf32>, tensor<1x8x11xf32>) {
  %zero = arith.constant 0.0 : f32
  %pad = tensor.pad %x low[0, 0, 1] high[0, 0, 1] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %zero : f32
  } : tensor<1x8x9xf32> to tensor<1x8x11xf32>
  %empty = tensor.empty() : tensor<1x4x9xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x4x9xf32>) -> tensor<1x4x9xf32>
  %y = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>}
    ins(%pad, %w : tensor<1x8x11xf32>, tensor<4x8x3xf32>) outs(%init : tensor<1x4x9xf32>) -> tensor<1x4x9xf32>
  return %y, %pad : tensor<1x4x9xf32>, tensor<1x8x11xf32>
}

// -----

// CHECK: kas.space @conv2d_dilated<N, Cin, Cout, H, W | k, d, p>
// CHECK: bindings [<Cin = 8, Cout = 4, H = 8, N = 1, W = 8, d = 2, k = 3, p = 2>]
// CHECK: kas.named_operator = "kas.conv2d_dilated"
func.func @dilated(%x: tensor<1x8x8x8xf32>, %w: tensor<4x8x3x3xf32>, %init: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %pad = tensor.pad %x low[0, 0, 2, 2] high[0, 0, 2, 2] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x8x8xf32> to tensor<1x8x12x12xf32>
  %y = linalg.conv_2d_nchw_fchw {dilations = dense<2> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
    ins(%pad, %w : tensor<1x8x12x12xf32>, tensor<4x8x3x3xf32>) outs(%init : tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %y : tensor<1x4x8x8xf32>
}

// -----

// An even kernel with padding="same": less padding below than above.
// CHECK: kas.space @conv2d_dilated<N, Cin, Cout, H, W | k, d, p>
// CHECK: bindings [<Cin = 8, Cout = 4, H = 8, N = 1, W = 8, d = 1, k = 4, p = 1>]
func.func @even(%x: tensor<1x8x8x8xf32>, %w: tensor<4x8x4x4xf32>, %init: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %pad = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 2, 2] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x8x8xf32> to tensor<1x8x11x11xf32>
  %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
    ins(%pad, %w : tensor<1x8x11x11xf32>, tensor<4x8x4x4xf32>) outs(%init : tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %y : tensor<1x4x8x8xf32>
}

// -----

// The patches of a vision transformer: the kernel is as large as the stride.
// CHECK:      kas.space @conv2d_strided_unpadded<N, Cin, Cout, H, W | k, s, d>
// CHECK-NEXT: [N, Cout unordered, H/s, W/s] from [N, Cin unordered, H, W]
// CHECK-NEXT: bindings [<Cin = 8, Cout = 4, H = 8, N = 1, W = 12, d = 1, k = 4, s = 4>]
func.func @patches(%x: tensor<1x8x8x12xf32>, %w: tensor<4x8x4x4xf32>, %init: tensor<1x4x2x3xf32>) -> tensor<1x4x2x3xf32> {
  %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<4> : vector<2xi64>}
    ins(%x, %w : tensor<1x8x8x12xf32>, tensor<4x8x4x4xf32>) outs(%init : tensor<1x4x2x3xf32>) -> tensor<1x4x2x3xf32>
  return %y : tensor<1x4x2x3xf32>
}

// -----

// CHECK: kas.space @conv2d_strided_rectangular<N, Cin, Cout, H, W | kh, kw, sh, sw>
// CHECK-NEXT: [N, Cout unordered, H/sh, W/sw] from
// CHECK-NEXT: bindings [<Cin = 8, Cout = 4, H = 8, N = 1, W = 12, kh = 1, kw = 3, sh = 1, sw = 2>]
// CHECK-NOT: kas.named_operator
// CHECK-LABEL: @rectangular
func.func @rectangular(%x: tensor<1x8x8x12xf32>, %w: tensor<4x8x1x3xf32>, %init: tensor<1x4x8x6xf32>) -> tensor<1x4x8x6xf32> {
  %zero = arith.constant 0.0 : f32
  %pad = tensor.pad %x low[0, 0, 0, 1] high[0, 0, 0, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x8x12xf32> to tensor<1x8x8x14xf32>
  %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<[1, 2]> : vector<2xi64>}
    ins(%pad, %w : tensor<1x8x8x14xf32>, tensor<4x8x1x3xf32>) outs(%init : tensor<1x4x8x6xf32>) -> tensor<1x4x8x6xf32>
  return %y : tensor<1x4x8x6xf32>
}

// -----

// Each rectangular coefficient has its own symbols; spaces of one kind's name whose symbols differ stay apart.
// CHECK: kas.space @conv2d_rectangular<N, Cin, Cout, H, W | kh, kw>
// CHECK: kas.space @conv2d_dilated_rectangular<N, Cin, Cout, H, W | k, dh, dw, ph, pw>
// CHECK: kas.space @conv2d_dilated_rectangular_0<N, Cin, Cout, H, W | k, d, ph, pw>
func.func @rectangular_kinds(%x: tensor<1x8x8x12xf32>, %w0: tensor<4x8x1x3xf32>, %w1: tensor<4x8x3x3xf32>, %init: tensor<1x4x8x12xf32>) -> (tensor<1x4x8x12xf32>, tensor<1x4x8x12xf32>, tensor<1x4x8x12xf32>) {
  %zero = arith.constant 0.0 : f32
  %pad0 = tensor.pad %x low[0, 0, 0, 1] high[0, 0, 0, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x8x12xf32> to tensor<1x8x8x14xf32>
  %pad1 = tensor.pad %x low[0, 0, 1, 2] high[0, 0, 1, 2] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x8x12xf32> to tensor<1x8x10x16xf32>
  %pad2 = tensor.pad %x low[0, 0, 1, 2] high[0, 0, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x8x12xf32> to tensor<1x8x10x14xf32>
  %a = linalg.conv_2d_nchw_fchw ins(%pad0, %w0 : tensor<1x8x8x14xf32>, tensor<4x8x1x3xf32>) outs(%init : tensor<1x4x8x12xf32>) -> tensor<1x4x8x12xf32>
  %b = linalg.conv_2d_nchw_fchw {dilations = dense<[1, 2]> : vector<2xi64>} ins(%pad1, %w1 : tensor<1x8x10x16xf32>, tensor<4x8x3x3xf32>) outs(%init : tensor<1x4x8x12xf32>) -> tensor<1x4x8x12xf32>
  %c = linalg.conv_2d_nchw_fchw ins(%pad2, %w1 : tensor<1x8x10x14xf32>, tensor<4x8x3x3xf32>) outs(%init : tensor<1x4x8x12xf32>) -> tensor<1x4x8x12xf32>
  return %a, %b, %c : tensor<1x4x8x12xf32>, tensor<1x4x8x12xf32>, tensor<1x4x8x12xf32>
}

// -----

// 1x1: the strided one reads the unpadded tensor.
// CHECK: kas.space @conv1x1<N, Cin, Cout, H, W>
// CHECK: bindings [<Cin = 8, Cout = 4, H = 8, N = 1, W = 8>]
// CHECK: kas.named_operator = "kas.conv1x1"
// CHECK: kas.space @conv1x1_strided<N, Cin, Cout, H, W | s>
// CHECK: bindings [<Cin = 8, Cout = 4, H = 8, N = 1, W = 8, s = 2>]
func.func @pointwise(%x: tensor<1x8x8x8xf32>, %w: tensor<4x8x1x1xf32>, %w2: tensor<4x8x1x1xf32>, %init: tensor<1x4x8x8xf32>, %init2: tensor<1x4x4x4xf32>) -> (tensor<1x4x8x8xf32>, tensor<1x4x4x4xf32>) {
  %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
    ins(%x, %w : tensor<1x8x8x8xf32>, tensor<4x8x1x1xf32>) outs(%init : tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %z = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>}
    ins(%x, %w2 : tensor<1x8x8x8xf32>, tensor<4x8x1x1xf32>) outs(%init2 : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  return %y, %z : tensor<1x4x8x8xf32>, tensor<1x4x4x4xf32>
}

// -----

// CHECK:      kas.space @conv2d_grouped<N, Cin, Cout, H, W | k, g>
// CHECK-NEXT: [N, Cout, H, W] from [N, Cin, H, W]
// CHECK-NEXT: bindings [<Cin = 8, Cout = 4, H = 8, N = 1, W = 8, g = 2, k = 3>]
// 2 * 8*8 * 4 * 4 * 3*3
// CHECK:      baseline_flops = 18432 : i64, baseline_params = 144 : i64
// CHECK:      kas.named_operator = "kas.conv2d_grouped"
// CHECK: linalg.conv_2d_ngchw_gfchw {{.*}}kas.site = {binding = 0 : i64, name = "conv", space = @conv2d_grouped}
func.func @grouped(%x: tensor<1x8x8x8xf32>, %w: tensor<4x4x3x3xf32> {kas.name = "conv.weight"}, %b: tensor<4xf32>) -> tensor<1x4x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %pad = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x8x8xf32> to tensor<1x8x10x10xf32>
  %empty = tensor.empty() : tensor<1x4x8x8xf32>
  %init = linalg.broadcast ins(%b : tensor<4xf32>) outs(%empty : tensor<1x4x8x8xf32>) dimensions = [0, 2, 3]
  %xg = tensor.expand_shape %pad [[0], [1, 2], [3], [4]] output_shape [1, 2, 4, 10, 10] : tensor<1x8x10x10xf32> into tensor<1x2x4x10x10xf32>
  %wg = tensor.expand_shape %w [[0, 1], [2], [3], [4]] output_shape [2, 2, 4, 3, 3] : tensor<4x4x3x3xf32> into tensor<2x2x4x3x3xf32>
  %ig = tensor.expand_shape %init [[0], [1, 2], [3], [4]] output_shape [1, 2, 2, 8, 8] : tensor<1x4x8x8xf32> into tensor<1x2x2x8x8xf32>
  %yg = linalg.conv_2d_ngchw_gfchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
    ins(%xg, %wg : tensor<1x2x4x10x10xf32>, tensor<2x2x4x3x3xf32>) outs(%ig : tensor<1x2x2x8x8xf32>) -> tensor<1x2x2x8x8xf32>
  %y = tensor.collapse_shape %yg [[0], [1, 2], [3], [4]] : tensor<1x2x2x8x8xf32> into tensor<1x4x8x8xf32>
  return %y : tensor<1x4x8x8xf32>
}

// -----

// CHECK:      kas.space @conv2d_depthwise<N, C, H, W | k>
// CHECK-NEXT: [N, C, H, W] from [N, C, H, W]
// CHECK-NEXT: bindings [<C = 8, H = 8, N = 1, W = 8, k = 3>]
// CHECK:      baseline_flops = 9216 : i64, baseline_params = 72 : i64
// CHECK:      kas.space @conv2d_depthwise_strided<N, C, H, W | k, s>
// CHECK-NEXT: [N, C, H/s, W/s] from [N, C, H, W]
// CHECK: linalg.depthwise_conv_2d_nchw_chw {{.*}}name = "conv", space = @conv2d_depthwise}
// CHECK: linalg.depthwise_conv_2d_nchw_chw {{.*}}name = "conv", space = @conv2d_depthwise_strided}
func.func @depthwise(%x: tensor<1x8x8x8xf32>, %w: tensor<8x1x3x3xf32> {kas.name = "conv.weight"}, %init: tensor<1x8x8x8xf32>, %init2: tensor<1x8x4x4xf32>) -> (tensor<1x8x8x8xf32>, tensor<1x8x4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %pad = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x8x8xf32> to tensor<1x8x10x10xf32>
  %wc = tensor.collapse_shape %w [[0, 1], [2], [3]] : tensor<8x1x3x3xf32> into tensor<8x3x3xf32>
  %y = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
    ins(%pad, %wc : tensor<1x8x10x10xf32>, tensor<8x3x3xf32>) outs(%init : tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
  %z = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>}
    ins(%pad, %wc : tensor<1x8x10x10xf32>, tensor<8x3x3xf32>) outs(%init2 : tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  return %y, %z : tensor<1x8x8x8xf32>, tensor<1x8x4x4xf32>
}

// -----

// Linear layers: torch-mlir's with the transposed weight, a plain product, a weight first, a constant weight. All are
// one kind; two are equal.
// CHECK: kas.space @linear<N, Cin, Cout>
// CHECK: bindings [<Cin = 8, Cout = 4, N = 2> x 3, <Cin = 4, Cout = 4, N = 2>]
// CHECK: linalg.matmul {kas.site = {binding = 0 : i64, name = "fc", space = @linear}}
// CHECK: linalg.matmul {kas.site = {binding = 1 : i64, name = "fc2", space = @linear}}
// CHECK: linalg.generic
// CHECK-SAME: kas.site = {binding = 0 : i64, name = "fc", space = @linear}
// CHECK: linalg.matmul {kas.site = {binding = 0 : i64, space = @linear}}
func.func @products(%x: tensor<2x8xf32>, %w: tensor<4x8xf32> {kas.name = "fc.weight"}, %w2: tensor<4x4xf32> {kas.name = "fc2.weight"}) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %constant = arith.constant dense<2.0> : tensor<8x4xf32>
  %t = tensor.empty() : tensor<8x4xf32>
  %wt = linalg.transpose ins(%w : tensor<4x8xf32>) outs(%t : tensor<8x4xf32>) permutation = [1, 0]
  %e = tensor.empty() : tensor<2x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>
  %y = linalg.matmul ins(%x, %wt : tensor<2x8xf32>, tensor<8x4xf32>) outs(%init : tensor<2x4xf32>) -> tensor<2x4xf32>
  %z = linalg.matmul ins(%y, %w2 : tensor<2x4xf32>, tensor<4x4xf32>) outs(%init : tensor<2x4xf32>) -> tensor<2x4xf32>
  %u = linalg.generic {
      indexing_maps = [affine_map<(n, o, i) -> (o, i)>, affine_map<(n, o, i) -> (n, i)>, affine_map<(n, o, i) -> (n, o)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%w, %x : tensor<4x8xf32>, tensor<2x8xf32>) outs(%init : tensor<2x4xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %m = arith.mulf %a, %b : f32
      %s = arith.addf %c, %m : f32
      linalg.yield %s : f32
  } -> tensor<2x4xf32>
  %v = linalg.matmul ins(%x, %constant : tensor<2x8xf32>, tensor<8x4xf32>) outs(%init : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %z, %u, %v : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// CHECK:      kas.space @batched_linear<N, L, Cin, Cout>
// CHECK-NEXT: [N, L, Cout unordered] from [N, L, Cin unordered]
// CHECK-NEXT: bindings [<Cin = 8, Cout = 4, L = 3, N = 2>]
// CHECK:      kas.space @batch_matmul<B, M, N, K>
// CHECK-NEXT: [B, M, N] from [B, M, K]
// CHECK-NEXT: bindings [<B = 2, K = 4, M = 3, N = 5>]
func.func @batches(%x: tensor<2x3x8xf32> {kas.name = "input"}, %w: tensor<4x8xf32> {kas.name = "fc.weight"}, %experts: tensor<2x4x5xf32> {kas.name = "experts.weight"},
                   %init: tensor<2x3x4xf32>, %init2: tensor<2x3x5xf32>) -> tensor<2x3x5xf32> {
  %y = linalg.generic {
      indexing_maps = [affine_map<(n, t, o, i) -> (n, t, i)>, affine_map<(n, t, o, i) -> (o, i)>, affine_map<(n, t, o, i) -> (n, t, o)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<2x3x8xf32>, tensor<4x8xf32>) outs(%init : tensor<2x3x4xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %m = arith.mulf %a, %b : f32
      %s = arith.addf %c, %m : f32
      linalg.yield %s : f32
  } -> tensor<2x3x4xf32>
  %z = linalg.batch_matmul ins(%y, %experts : tensor<2x3x4xf32>, tensor<2x4x5xf32>) outs(%init2 : tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  return %z : tensor<2x3x5xf32>
}

// -----

// A strided convolution as linalg.generic, its loops in another order, f64.
// CHECK: kas.space @conv2d_strided<N, Cin, Cout, H, W | k, s>
// CHECK: bindings [<Cin = 8, Cout = 4, H = 8, N = 1, W = 6, k = 3, s = 2>]
#data = affine_map<(w, n, o, h, j, c, i) -> (n, c, h * 2 + i, j + w * 2)>
#weight = affine_map<(w, n, o, h, j, c, i) -> (o, c, i, j)>
#result = affine_map<(w, n, o, h, j, c, i) -> (n, o, h, w)>
func.func @generic(%x: tensor<1x8x8x6xf64>, %w: tensor<4x8x3x3xf64>, %init: tensor<1x4x4x3xf64>) -> tensor<1x4x4x3xf64> {
  %zero = arith.constant 0.0 : f64
  %pad = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f64
  } : tensor<1x8x8x6xf64> to tensor<1x8x10x8xf64>
  %y = linalg.generic {indexing_maps = [#data, #weight, #result],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%pad, %w : tensor<1x8x10x8xf64>, tensor<4x8x3x3xf64>) outs(%init : tensor<1x4x4x3xf64>) {
    ^bb0(%a: f64, %b: f64, %c: f64):
      %m = arith.mulf %b, %a : f64
      %s = arith.addf %m, %c : f64
      linalg.yield %s : f64
  } -> tensor<1x4x4x3xf64>
  return %y : tensor<1x4x4x3xf64>
}

// -----

// What is no layer gets neither a mark nor a remark: pooling, elementwise products, sums.
// CHECK-NOT: kas.space
// CHECK-LABEL: @others
// CHECK-NOT: kas.site
func.func @others(%x: tensor<1x8x8x8xf32>, %window: tensor<2x2xf32>, %init: tensor<1x8x4x4xf32>, %full: tensor<1x8x8x8xf32>) -> (tensor<1x8x4x4xf32>, tensor<1x8x8x8xf32>) {
  %y = linalg.pooling_nchw_sum {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>}
    ins(%x, %window : tensor<1x8x8x8xf32>, tensor<2x2xf32>) outs(%init : tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  %z = linalg.mul ins(%x, %full : tensor<1x8x8x8xf32>, tensor<1x8x8x8xf32>) outs(%full : tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
  return %y, %z : tensor<1x8x4x4xf32>, tensor<1x8x8x8xf32>
}
