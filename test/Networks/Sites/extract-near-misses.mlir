// Each operation that is nearly a layer gets a remark with the reason, and no mark.
// RUN: kas-opt %s --split-input-file --verify-diagnostics -kas-extract | FileCheck %s --implicit-check-not=kas.s

// CHECK-LABEL: @nonzero_padding
func.func @nonzero_padding(%x: tensor<1x8x8x8xf32>, %w: tensor<4x8x3x3xf32>, %init: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  %one = arith.constant 1.0 : f32
  %pad = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %one : f32
  } : tensor<1x8x8x8xf32> to tensor<1x8x10x10xf32>
  // expected-remark @+1 {{not extracted: requires a padding of zero, got another value}}
  %y = linalg.conv_2d_nchw_fchw ins(%pad, %w : tensor<1x8x10x10xf32>, tensor<4x8x3x3xf32>) outs(%init : tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %y : tensor<1x4x8x8xf32>
}

// -----

func.func @channel_padding(%x: tensor<1x8x8x8xf32>, %w: tensor<4x9x3x3xf32>, %init: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %pad = tensor.pad %x low[0, 0, 1, 1] high[0, 1, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x8x8xf32> to tensor<1x9x10x10xf32>
  // expected-remark @+1 {{not extracted: requires padding of spatial dimensions only, got 1 at dimension 1}}
  %y = linalg.conv_2d_nchw_fchw ins(%pad, %w : tensor<1x9x10x10xf32>, tensor<4x9x3x3xf32>) outs(%init : tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %y : tensor<1x4x8x8xf32>
}

// -----

func.func @no_padding(%x: tensor<1x8x8x8xf32>, %w: tensor<4x8x3x3xf32>, %init: tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32> {
  // expected-remark @+1 {{not extracted: requires padding that gives 8 outputs for 8 inputs at stride 1, got 6}}
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x8x8xf32>, tensor<4x8x3x3xf32>) outs(%init : tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  return %y : tensor<1x4x6x6xf32>
}

// -----

func.func @odd_size(%x: tensor<1x8x7x8xf32>, %w: tensor<4x8x1x1xf32>, %init: tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32> {
  // expected-remark @+1 {{not extracted: requires an input size that is a multiple of the stride 2, got 7}}
  %y = linalg.conv_2d_nchw_fchw {strides = dense<2> : vector<2xi64>} ins(%x, %w : tensor<1x8x7x8xf32>, tensor<4x8x1x1xf32>) outs(%init : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  return %y : tensor<1x4x4x4xf32>
}

// -----

func.func @dynamic(%x: tensor<?x8x8x8xf32>, %w: tensor<4x8x1x1xf32>, %init: tensor<?x4x8x8xf32>) -> tensor<?x4x8x8xf32> {
  // expected-remark @+1 {{not extracted: requires static shapes, got tensor<?x8x8x8xf32>}}
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<?x8x8x8xf32>, tensor<4x8x1x1xf32>) outs(%init : tensor<?x4x8x8xf32>) -> tensor<?x4x8x8xf32>
  return %y : tensor<?x4x8x8xf32>
}

// -----

func.func @integers(%x: tensor<2x8xi32>, %w: tensor<8x4xi32>, %init: tensor<2x4xi32>) -> tensor<2x4xi32> {
  // expected-remark @+1 {{not extracted: requires floating-point elements, got i32}}
  %y = linalg.matmul ins(%x, %w : tensor<2x8xi32>, tensor<8x4xi32>) outs(%init : tensor<2x4xi32>) -> tensor<2x4xi32>
  return %y : tensor<2x4xi32>
}

// -----

func.func @mixed_types(%x: tensor<2x8xf16>, %w: tensor<8x4xf16>, %init: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // expected-remark @+1 {{not extracted: requires one element type, got f16 and f32}}
  %y = linalg.matmul ins(%x, %w : tensor<2x8xf16>, tensor<8x4xf16>) outs(%init : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

func.func @quantized(%x: tensor<1x8x8x8xi8>, %w: tensor<4x8x1x1xi8>, %a: i32, %b: i32, %init: tensor<1x4x8x8xi32>) -> tensor<1x4x8x8xi32> {
  // expected-remark @+1 {{not extracted: requires data and a weight as operands, got 4 operands}}
  %y = linalg.conv_2d_nchw_fchw_q ins(%x, %w, %a, %b : tensor<1x8x8x8xi8>, tensor<4x8x1x1xi8>, i32, i32) outs(%init : tensor<1x4x8x8xi32>) -> tensor<1x4x8x8xi32>
  return %y : tensor<1x4x8x8xi32>
}

// -----

// As in attention.
func.func @two_activations(%x: tensor<2x3x8xf32> {kas.name = "input"}, %init: tensor<2x3x3xf32>, %init2: tensor<2x3x8xf32>) -> (tensor<2x3x3xf32>, tensor<2x3x8xf32>) {
  %e = tensor.empty() : tensor<2x8x3xf32>
  %xt = linalg.transpose ins(%x : tensor<2x3x8xf32>) outs(%e : tensor<2x8x3xf32>) permutation = [0, 2, 1]
  // expected-remark @+1 {{not extracted: requires a weight that is an argument of the function or a constant, got a result of 'linalg.transpose'}}
  %y = linalg.batch_matmul ins(%x, %xt : tensor<2x3x8xf32>, tensor<2x8x3xf32>) outs(%init : tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  // expected-remark @+1 {{not extracted: requires a weight that is an argument of the function or a constant, got the data}}
  %z = linalg.batch_matmul ins(%y, %x : tensor<2x3x3xf32>, tensor<2x3x8xf32>) outs(%init2 : tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %y, %z : tensor<2x3x3xf32>, tensor<2x3x8xf32>
}

// -----

// As in a transposed convolution, whose weight is turned around before.
func.func @computed_weight(%x: tensor<1x8x8x8xf32>, %w: tensor<4x8x1x1xf32>, %init: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  %e = tensor.empty() : tensor<4x8x1x1xf32>
  %n = linalg.negf ins(%w : tensor<4x8x1x1xf32>) outs(%e : tensor<4x8x1x1xf32>) -> tensor<4x8x1x1xf32>
  // expected-remark @+1 {{not extracted: requires a weight that is an argument of the function or a constant, got a result of 'linalg.negf'}}
  %y = linalg.conv_2d_nchw_fchw ins(%x, %n : tensor<1x8x8x8xf32>, tensor<4x8x1x1xf32>) outs(%init : tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %y : tensor<1x4x8x8xf32>
}

// -----

#data = affine_map<(n, f, h, w, c, i, j) -> (n, c, h + i, w + j)>
#weight = affine_map<(n, f, h, w, c, i, j) -> (f, c, i, j)>
#result = affine_map<(n, f, h, w, c, i, j) -> (n, f, w, h)>
func.func @swapped_rows_and_columns(%x: tensor<1x4x8x9xf32>, %w: tensor<4x4x3x3xf32>, %init: tensor<1x4x7x6xf32>) -> tensor<1x4x7x6xf32> {
  // expected-remark @+1 {{not extracted: requires batch, channels, then spatial dimensions, in data and result}}
  %y = linalg.generic {indexing_maps = [#data, #weight, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<1x4x8x9xf32>, tensor<4x4x3x3xf32>) outs(%init : tensor<1x4x7x6xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x4x7x6xf32>
  return %y : tensor<1x4x7x6xf32>
}

// -----

func.func @three_dimensions(%x: tensor<1x2x4x4x4xf32>, %w: tensor<2x2x1x1x1xf32>, %init: tensor<1x2x4x4x4xf32>) -> tensor<1x2x4x4x4xf32> {
  // expected-remark @+1 {{not extracted: requires 1 or 2 spatial dimensions, got 3}}
  %y = linalg.conv_3d_ncdhw_fcdhw ins(%x, %w : tensor<1x2x4x4x4xf32>, tensor<2x2x1x1x1xf32>) outs(%init : tensor<1x2x4x4x4xf32>) -> tensor<1x2x4x4x4xf32>
  return %y : tensor<1x2x4x4x4xf32>
}

// -----

func.func @no_channels(%x: tensor<8x8xf32>, %w: tensor<3x3xf32>, %init: tensor<6x6xf32>) -> tensor<6x6xf32> {
  // expected-remark @+1 {{not extracted: requires one batch dimension, got 0}}
  %y = linalg.conv_2d ins(%x, %w : tensor<8x8xf32>, tensor<3x3xf32>) outs(%init : tensor<6x6xf32>) -> tensor<6x6xf32>
  return %y : tensor<6x6xf32>
}

// -----

func.func @vector(%w: tensor<4x8xf32>, %x: tensor<8xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
  // expected-remark @+1 {{not extracted: requires one dimension of output channels and one of input channels, got 0 and 1}}
  %y = linalg.matvec ins(%w, %x : tensor<4x8xf32>, tensor<8xf32>) outs(%init : tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @columns_of_data(%w: tensor<4x8xf32> {kas.name = "weight"}, %x: tensor<8x2xf32>, %init: tensor<4x2xf32>) -> tensor<4x2xf32> {
  // expected-remark @+1 {{not extracted: requires batch, rows, then channels, in data and result}}
  %y = linalg.matmul ins(%w, %x : tensor<4x8xf32>, tensor<8x2xf32>) outs(%init : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

// -----

// Nothing is summed up over both operands: no layer, no remark.
func.func @weighted_sum(%x: tensor<4x8xf32>, %w: tensor<4xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
  %y = linalg.generic {
      indexing_maps = [affine_map<(n, c) -> (n, c)>, affine_map<(n, c) -> (n)>, affine_map<(n, c) -> (n)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : tensor<4x8xf32>, tensor<4xf32>) outs(%init : tensor<4xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %m = arith.mulf %a, %b : f32
      %s = arith.addf %c, %m : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// All that can differ between height and width does.
func.func @too_rectangular(%x: tensor<1x8x12x12xf32>, %w: tensor<4x8x2x3xf32>, %init: tensor<1x4x12x6xf32>) -> tensor<1x4x12x6xf32> {
  %zero = arith.constant 0.0 : f32
  %pad = tensor.pad %x low[0, 0, 2, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x12x12xf32> to tensor<1x8x15x14xf32>
  // expected-remark @+1 {{not extracted: requires at most 12 symbols for kernels, strides, dilations and paddings that differ between dimensions, got 13}}
  %y = linalg.conv_2d_nchw_fchw {dilations = dense<[3, 1]> : vector<2xi64>, strides = dense<[1, 2]> : vector<2xi64>}
    ins(%pad, %w : tensor<1x8x15x14xf32>, tensor<4x8x2x3xf32>) outs(%init : tensor<1x4x12x6xf32>) -> tensor<1x4x12x6xf32>
  return %y : tensor<1x4x12x6xf32>
}

// -----

#data = affine_map<(n, o, h, w, c, i, j) -> (n, c, h + i, w + j)>
#weight = affine_map<(n, o, h, w, c, i, j) -> (o, c, j, i)>
#result = affine_map<(n, o, h, w, c, i, j) -> (n, o, h, w)>
func.func @turned_kernel(%x: tensor<1x8x8x8xf32>, %w: tensor<4x8x1x1xf32>, %init: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  // expected-remark @+1 {{not extracted: requires the spatial dimensions of the weight in the order of those of the data}}
  %y = linalg.generic {indexing_maps = [#data, #weight, #result],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x8x8x8xf32>, tensor<4x8x1x1xf32>) outs(%init : tensor<1x4x8x8xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %m = arith.mulf %b, %a : f32
      %s = arith.addf %m, %c : f32
      linalg.yield %s : f32
  } -> tensor<1x4x8x8xf32>
  return %y : tensor<1x4x8x8xf32>
}

// -----

func.func @too_large(%x: tensor<9000000x9000000xf32>, %w: tensor<9000000x9000000xf32>, %init: tensor<9000000x9000000xf32>) -> tensor<9000000x9000000xf32> {
  // expected-remark @+1 {{not extracted: requires fewer than 2^58 points}}
  %y = linalg.matmul ins(%x, %w : tensor<9000000x9000000xf32>, tensor<9000000x9000000xf32>) outs(%init : tensor<9000000x9000000xf32>) -> tensor<9000000x9000000xf32>
  return %y : tensor<9000000x9000000xf32>
}
