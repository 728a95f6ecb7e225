// RUN: kas-opt %s -split-input-file -verify-diagnostics -kas-check-samples | FileCheck %s

#row = affine_map<(n, c) -> (n, c)>
#channel = affine_map<(n, c) -> (c)>

// A convolution with padding, an activation with a bias, a pooling by a
// reshape, and a linear layer: each sample by itself.
// CHECK-LABEL: func.func @forward
func.func @forward(%x: tensor<4x3x6x6xf32>, %w: tensor<8x3x3x3xf32>, %b: tensor<8xf32>, %v: tensor<288x5xf32>)
    -> tensor<4x5xf32> {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<4x3x6x6xf32> to tensor<4x3x8x8xf32>
  %empty = tensor.empty() : tensor<4x8x6x6xf32>
  %bias = linalg.broadcast ins(%b : tensor<8xf32>) outs(%empty : tensor<4x8x6x6xf32>) dimensions = [0, 2, 3]
  %y = linalg.conv_2d_nchw_fchw ins(%padded, %w : tensor<4x3x8x8xf32>, tensor<8x3x3x3xf32>)
      outs(%bias : tensor<4x8x6x6xf32>) -> tensor<4x8x6x6xf32>
  %flat = tensor.collapse_shape %y [[0], [1, 2, 3]] : tensor<4x8x6x6xf32> into tensor<4x288xf32>
  %out = tensor.empty() : tensor<4x5xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%out : tensor<4x5xf32>) -> tensor<4x5xf32>
  %z = linalg.matmul ins(%flat, %v : tensor<4x288xf32>, tensor<288x5xf32>) outs(%zeros : tensor<4x5xf32>)
      -> tensor<4x5xf32>
  return %z : tensor<4x5xf32>
}

// -----

// Tokens of all samples are the rows of one product: 7 rows of each sample.
// CHECK-LABEL: func.func @forward
func.func @forward(%x: tensor<2x7x8xf32>, %w: tensor<8x8xf32>) -> tensor<2x8x7xf32> {
  %zero = arith.constant 0.0 : f32
  %rows = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x7x8xf32> into tensor<14x8xf32>
  %empty = tensor.empty() : tensor<14x8xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<14x8xf32>) -> tensor<14x8xf32>
  %y = linalg.matmul ins(%rows, %w : tensor<14x8xf32>, tensor<8x8xf32>) outs(%zeros : tensor<14x8xf32>)
      -> tensor<14x8xf32>
  %tokens = tensor.expand_shape %y [[0, 1], [2]] output_shape [2, 7, 8] : tensor<14x8xf32> into tensor<2x7x8xf32>
  %out = tensor.empty() : tensor<2x8x7xf32>
  %z = linalg.transpose ins(%tokens : tensor<2x7x8xf32>) outs(%out : tensor<2x8x7xf32>) permutation = [0, 2, 1]
  return %z : tensor<2x8x7xf32>
}

// -----

// Tokens first, as attention has them: rows of one token for all samples.
// CHECK-LABEL: func.func @forward
func.func @forward(%x: tensor<2x7x8xf32>, %w: tensor<8x8xf32>) -> tensor<2x7x8xf32> {
  %zero = arith.constant 0.0 : f32
  %first = tensor.empty() : tensor<7x2x8xf32>
  %t = linalg.transpose ins(%x : tensor<2x7x8xf32>) outs(%first : tensor<7x2x8xf32>) permutation = [1, 0, 2]
  %rows = tensor.collapse_shape %t [[0, 1], [2]] : tensor<7x2x8xf32> into tensor<14x8xf32>
  %empty = tensor.empty() : tensor<14x8xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<14x8xf32>) -> tensor<14x8xf32>
  %y = linalg.matmul ins(%rows, %w : tensor<14x8xf32>, tensor<8x8xf32>) outs(%zeros : tensor<14x8xf32>)
      -> tensor<14x8xf32>
  %tokens = tensor.expand_shape %y [[0, 1], [2]] output_shape [7, 2, 8] : tensor<14x8xf32> into tensor<7x2x8xf32>
  %out = tensor.empty() : tensor<2x7x8xf32>
  %z = linalg.transpose ins(%tokens : tensor<7x2x8xf32>) outs(%out : tensor<2x7x8xf32>) permutation = [1, 0, 2]
  return %z : tensor<2x7x8xf32>
}

// -----

// What is read at the same sample may be read at any other place.
// CHECK-LABEL: func.func @forward
func.func @forward(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %c3 = arith.constant 3 : index
  %empty = tensor.empty() : tensor<2x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, c) -> (n, c)>], iterator_types = ["parallel", "parallel"]}
      outs(%empty : tensor<2x4xf32>) {
  ^bb0(%out: f32):
    %n = linalg.index 0 : index
    %c = linalg.index 1 : index
    %other = arith.subi %c3, %c : index
    %e = tensor.extract %x[%n, %other] : tensor<2x4xf32>
    linalg.yield %e : f32
  } -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

// Slices of channels, written next to each other.
// CHECK-LABEL: func.func @forward
func.func @forward(%x: tensor<2x4x3xf32>) -> tensor<2x4x3xf32> {
  %empty = tensor.empty() : tensor<2x4x3xf32>
  %a = tensor.extract_slice %x[0, 0, 0] [2, 1, 3] [1, 1, 1] : tensor<2x4x3xf32> to tensor<2x3xf32>
  %b = tensor.extract_slice %x[0, 1, 0] [2, 3, 3] [1, 1, 1] : tensor<2x4x3xf32> to tensor<2x3x3xf32>
  %c = tensor.insert_slice %b into %empty[0, 0, 0] [2, 3, 3] [1, 1, 1] : tensor<2x3x3xf32> into tensor<2x4x3xf32>
  %d = tensor.insert_slice %a into %c[0, 3, 0] [2, 1, 3] [1, 1, 1] : tensor<2x3xf32> into tensor<2x4x3xf32>
  return %d : tensor<2x4x3xf32>
}

// -----

func.func @forward(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{requires samples that are computed one by one, got a sum over samples, or samples at shifted positions}}
  %mean = linalg.reduce ins(%x : tensor<2x4xf32>) outs(%zeros : tensor<4xf32>) dimensions = [0]
    (%in: f32, %sum: f32) {
      %s = arith.addf %in, %sum : f32
      linalg.yield %s : f32
    }
  %out = tensor.empty() : tensor<2x4xf32>
  %y = linalg.broadcast ins(%mean : tensor<4xf32>) outs(%out : tensor<2x4xf32>) dimensions = [0]
  return %y : tensor<2x4xf32>
}

// -----

// A parameter for each sample.
func.func @forward(%x: tensor<2x4xf32>, %w: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // expected-error@+1 {{requires samples that are computed one by one, got an operand that differs from sample to sample}}
  %y = arith.addf %x, %w : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

func.func @forward(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %empty = tensor.empty() : tensor<2x4xf32>
  // expected-error@+1 {{requires samples that are computed one by one, got a body that depends on the number of the sample}}
  %y = linalg.generic {indexing_maps = [affine_map<(n, c) -> (n, c)>, affine_map<(n, c) -> (n, c)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<2x4xf32>) outs(%empty : tensor<2x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %n = linalg.index 0 : index
    %i = arith.index_cast %n : index to i32
    %f = arith.sitofp %i : i32 to f32
    %e = arith.addf %in, %f : f32
    linalg.yield %e : f32
  } -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

func.func @forward(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %empty = tensor.empty() : tensor<4x4xf32>
  %t = linalg.transpose ins(%x : tensor<4x4xf32>) outs(%empty : tensor<4x4xf32>) permutation = [1, 0]
  // expected-error@+1 {{requires samples that are computed one by one, got operands with samples at other positions}}
  %y = arith.addf %x, %t : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

func.func @forward(%x: tensor<2x6xf32>) -> tensor<3x4xf32> {
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<2x6xf32> into tensor<12xf32>
  // expected-error@+1 {{requires samples that are computed one by one, got a reshape that cuts samples}}
  %y = tensor.expand_shape %flat [[0, 1]] output_shape [3, 4] : tensor<12xf32> into tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

// Rows of one token for all samples, and then of all tokens of one sample.
func.func @forward(%x: tensor<2x7x8xf32>) -> tensor<2x7x8xf32> {
  %first = tensor.empty() : tensor<7x2x8xf32>
  %t = linalg.transpose ins(%x : tensor<2x7x8xf32>) outs(%first : tensor<7x2x8xf32>) permutation = [1, 0, 2]
  %rows = tensor.collapse_shape %t [[0, 1], [2]] : tensor<7x2x8xf32> into tensor<14x8xf32>
  // expected-error@+1 {{requires samples that are computed one by one, got a reshape that cuts samples}}
  %tokens = tensor.expand_shape %rows [[0, 1], [2]] output_shape [2, 7, 8] : tensor<14x8xf32> into tensor<2x7x8xf32>
  return %tokens : tensor<2x7x8xf32>
}

// -----

func.func @forward(%x: tensor<2x6xf32>) -> tensor<1x6xf32> {
  // expected-error@+1 {{requires samples that are computed one by one, got a slice of samples}}
  %y = tensor.extract_slice %x[1, 0] [1, 6] [1, 1] : tensor<2x6xf32> to tensor<1x6xf32>
  return %y : tensor<1x6xf32>
}

// -----

func.func @forward(%x: tensor<2x6xf32>) -> (tensor<2x6xf32>, tensor<6xf32>) {
  %w = arith.constant dense<0.0> : tensor<6xf32>
  // expected-error@+1 {{requires samples that are computed one by one, got a result without samples first}}
  return %x, %w : tensor<2x6xf32>, tensor<6xf32>
}

// -----

// expected-error@+1 {{requires data of static shape with the same number of samples first, at least 2, got 'tensor<1x6xf32>'}}
func.func @forward(%x: tensor<1x6xf32>) -> tensor<1x6xf32> {
  return %x : tensor<1x6xf32>
}

// -----

func.func @forward(%x: tensor<4x6xf32>, %w: tensor<6x?xf32>, %out: tensor<4x?xf32>) -> tensor<4x?xf32> {
  // expected-error@+1 {{requires samples that are computed one by one, got a tensor whose sizes are not known}}
  %y = linalg.matmul ins(%x, %w : tensor<4x6xf32>, tensor<6x?xf32>) outs(%out : tensor<4x?xf32>) -> tensor<4x?xf32>
  return %y : tensor<4x?xf32>
}

// -----

func.func @forward(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // expected-error@+1 {{requires samples that are computed one by one, got a tensor whose sizes are not known}}
  %u = tensor.cast %x : tensor<4x6xf32> to tensor<*xf32>
  %r = tensor.cast %u : tensor<*xf32> to tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

// Casts that hide other sizes than the number of samples, for a concatenation.
// CHECK-LABEL: func.func @forward
func.func @forward(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %first = tensor.extract_slice %x[0, 0] [4, 2] [1, 1] : tensor<4x6xf32> to tensor<4x2xf32>
  %last = tensor.extract_slice %x[0, 2] [4, 4] [1, 1] : tensor<4x6xf32> to tensor<4x4xf32>
  %f = tensor.cast %first : tensor<4x2xf32> to tensor<4x?xf32>
  %l = tensor.cast %last : tensor<4x4xf32> to tensor<4x?xf32>
  %r = tensor.concat dim(1) %l, %f : (tensor<4x?xf32>, tensor<4x?xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

func.func @forward(%x: tensor<4x6xf32>) -> tensor<8x6xf32> {
  // expected-error@+1 {{requires samples that are computed one by one, got a concatenation of samples}}
  %r = tensor.concat dim(0) %x, %x : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  return %r : tensor<8x6xf32>
}

// -----

// It would count parts.
func.func @forward(%x: tensor<4x6xf32>, %count: memref<1xf32>) -> tensor<4x6xf32> {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  // expected-error@+1 {{requires samples that are computed one by one, got an operation with effects}}
  %v = memref.load %count[%c0] : memref<1xf32>
  %s = arith.addf %v, %one : f32
  memref.store %s, %count[%c0] : memref<1xf32>
  %r = arith.addf %x, %x : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

// What is the same for all samples has a size that is not known.
func.func @forward(%x: tensor<4x4xf32>) -> tensor<4x6xf32> {
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%c2) : tensor<4x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x?xf32>) -> tensor<4x?xf32>
  // expected-error@+1 {{requires samples that are computed one by one, got an operand that differs from sample to sample}}
  %r = tensor.concat dim(1) %x, %f : (tensor<4x4xf32>, tensor<4x?xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

// expected-error@+1 {{requires at least 1 data argument of 0 arguments, got 1}}
func.func @forward() {
  return
}

// -----

// expected-error@+1 {{option 'function' requires a function with a body, got 'forward'}}
module {}

// -----

// An operator whose first coordinate nothing but the data has.
kas.operator @pointwise<N, Cin, Cout>(%n: N, %c: Cout) from [N, Cin] {
  %r = kas.reduce sum : Cin
  %d, %w = kas.share %r : Cin
  kas.yield data(%n, %d) weight(%c, %w)
}

// CHECK-LABEL: func.func @forward
func.func @forward(%x: tensor<4x8xf32>, %w: tensor<3x8xf32>) -> tensor<4x3xf32> {
  %y = kas.apply @pointwise(%x, %w) : (tensor<4x8xf32>, tensor<3x8xf32>) -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}

// -----

// A shift of samples.
kas.operator @shift(%n: 4, %c: 8) from [4, 8] {
  %s = kas.shift %n by 1 : 4
  kas.yield data(%s, %c)
}

func.func @forward(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error@below {{requires samples that are computed one by one, got an operator that uses the number of the sample}}
  %y = kas.apply @shift(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// Weights that are data.
kas.operator @product(%n: 4, %c: 8) from [4, 8] {
  %d, %w = kas.share %c : 8
  kas.yield data(%n, %d) weight(%w)
}

func.func @forward(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %v = tensor.extract_slice %x[0, 0] [4, 2] [1, 1] : tensor<4x8xf32> to tensor<4x2xf32>
  %flat = tensor.collapse_shape %v [[0, 1]] : tensor<4x2xf32> into tensor<8xf32>
  // expected-error@below {{requires samples that are computed one by one, got weights that differ from sample to sample}}
  %y = kas.apply @product(%x, %flat) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
