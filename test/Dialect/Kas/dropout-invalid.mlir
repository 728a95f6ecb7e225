// RUN: kas-opt %s --split-input-file --verify-diagnostics

// P1
func.func @f(%x: tensor<8x4xf32>) {
  // expected-error@below {{P1: requires a probability of at least 0 and less than 1, got 1.000000e+00 : f64}}
  %y = kas.dropout %x probability 1.0 : tensor<8x4xf32>
  return
}

// -----

// P1
func.func @f(%x: tensor<8x4xf32>) {
  // expected-error@below {{P1: requires a probability of at least 0 and less than 1, got 0x7FF8000000000000 : f64}}
  %y = kas.dropout %x probability 0x7FF8000000000000 : tensor<8x4xf32>
  return
}

// -----

// P2
func.func @f(%x: tensor<8x4xf32>, %s: tensor<3xf32>) {
  // expected-error@below {{P2: requires a seed of two numbers of f32 or f64, got 'tensor<3xf32>'}}
  %y = kas.dropout %x probability 0.5 seed %s stream 0 : tensor<8x4xf32>, tensor<3xf32>
  return
}

// -----

// P2
func.func @f(%x: tensor<8x4xf32>, %s: tensor<2xf32>) {
  // expected-error@below {{P2: requires a stream with the seed, got none}}
  %y = kas.dropout %x probability 0.5 seed %s : tensor<8x4xf32>, tensor<2xf32>
  return
}

// -----

// P3
func.func @f(%x: tensor<8x4xf32>) {
  // expected-error@below {{P3: requires a seed with the stream, got none}}
  %y = kas.dropout %x probability 0.5 stream 0 : tensor<8x4xf32>
  return
}

// -----

// P3
func.func @f(%x: tensor<8x4xf32>, %s: tensor<2xf32>) {
  // expected-error@below {{P3: requires a stream of at least 0 and less than 2^32, got 4294967296}}
  %y = kas.dropout %x probability 0.5 seed %s stream 4294967296 : tensor<8x4xf32>, tensor<2xf32>
  return
}
