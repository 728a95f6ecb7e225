// RUN: kas-opt %s --split-input-file --verify-diagnostics

// B1
func.func @f(%x: tensor<8xf32>, %s: tensor<8xf32>) {
  // expected-error@below {{B1: requires data of samples and channels at least, and a result of its type, got 'tensor<8xf32>' and 'tensor<8xf32>'}}
  %y, %m, %v = kas.batch_norm %x, %s, %s epsilon 1.0e-05 : tensor<8xf32>, tensor<8xf32>
  return
}

// -----

// B2
func.func @f(%x: tensor<4x3xf32>, %s: tensor<4xf32>) {
  // expected-error@below {{B2: requires scale, offset and statistics of type 'tensor<3xf32>', got 'tensor<4xf32>'}}
  %y, %m, %v = kas.batch_norm %x, %s, %s epsilon 1.0e-05 : tensor<4x3xf32>, tensor<4xf32>
  return
}

// -----

// B3
func.func @f(%x: tensor<1x3x1xf32>, %s: tensor<3xf32>) {
  // expected-error@below {{B3: requires two elements or more in each channel, got data of type 'tensor<1x3x1xf32>'}}
  %y, %m, %v = kas.batch_norm %x, %s, %s epsilon 1.0e-05 : tensor<1x3x1xf32>, tensor<3xf32>
  return
}

// -----

// B4
func.func @f(%x: tensor<4x3xf32>, %s: tensor<3xf32>) {
  // expected-error@below {{B4: requires an epsilon greater than zero, got 0.000000e+00 : f64}}
  %y, %m, %v = kas.batch_norm %x, %s, %s epsilon 0.0 : tensor<4x3xf32>, tensor<3xf32>
  return
}
