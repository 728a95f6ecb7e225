// RUN: kas-opt %s --split-input-file --verify-diagnostics -kas-training-step

// expected-error@below {{to train, requires a function with one block and one result, logits [samples, classes], got '(tensor<4x3xf32>) -> tensor<4xf32>'}}
func.func @forward(%x: tensor<4x3xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  return %e : tensor<4xf32>
}

// -----

// expected-error@below {{to train, requires parameters, arguments that are no data, got none}}
func.func @forward(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
  return %x : tensor<4x3xf32>
}

// -----

// expected-error@below {{to train, requires parameters of 'f32', got 'w' of type 'tensor<3xi32>' (data are named by the option 'data', what is not trained has the attribute 'kas.constant')}}
func.func @forward(%x: tensor<4x3xf32>, %w: tensor<3xi32> {kas.name = "w"}) -> tensor<4x3xf32> {
  return %x : tensor<4x3xf32>
}

// -----

// expected-error@below {{to train, requires names of arguments (kas.name) that differ from each other and from what a step adds, got 'w' again}}
func.func @forward(%x: tensor<4x3xf32>, %w: tensor<3xf32> {kas.name = "w"}, %v: tensor<3xf32> {kas.name = "w"}) -> tensor<4x3xf32> {
  return %x : tensor<4x3xf32>
}

// -----

// expected-error@below {{to train, requires logits that depend on each parameter, got a constant by 'w'}}
func.func @forward(%x: tensor<4x3xf32>, %w: tensor<3xf32> {kas.name = "w"}) -> tensor<4x3xf32> {
  return %x : tensor<4x3xf32>
}

// -----

// expected-error@below {{to train 'n', requires an argument 'n.running_var'}}
func.func @forward(%x: tensor<4x3xf32>, %m: tensor<3xf32> {kas.name = "n.running_mean"}) -> tensor<4x3xf32> {
  return %x : tensor<4x3xf32>
}

// -----

// Statistics that are used in another way.
func.func @forward(%x: tensor<4x3xf32>,
    // expected-error@below {{to train 'n', requires a subtraction as the only reader of running statistics and what is made of them}}
    %m: tensor<3xf32> {kas.name = "n.running_mean"}, %v: tensor<3xf32> {kas.name = "n.running_var"}) -> tensor<4x3xf32> {
  %e = tensor.empty() : tensor<4x3xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, c) -> (n, c)>, affine_map<(n, c) -> (c)>, affine_map<(n, c) -> (n, c)>],
      iterator_types = ["parallel", "parallel"]} ins(%x, %m : tensor<4x3xf32>, tensor<3xf32>) outs(%e : tensor<4x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}

// -----

// The mean less the data.
func.func @forward(%x: tensor<4x3xf32>, %m: tensor<3xf32> {kas.name = "n.running_mean"},
    %v: tensor<3xf32> {kas.name = "n.running_var"}) -> tensor<4x3xf32> {
  %e = tensor.empty() : tensor<4x3xf32>
  // expected-error@below {{to train 'n', requires the running mean to be subtracted}}
  %y = linalg.generic {indexing_maps = [affine_map<(n, c) -> (c)>, affine_map<(n, c) -> (n, c)>, affine_map<(n, c) -> (n, c)>],
      iterator_types = ["parallel", "parallel"]} ins(%m, %x : tensor<3xf32>, tensor<4x3xf32>) outs(%e : tensor<4x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}

// -----

// No deviation.
func.func @forward(%x: tensor<4x3xf32>, %m: tensor<3xf32> {kas.name = "n.running_mean"},
    %v: tensor<3xf32> {kas.name = "n.running_var"}) -> tensor<4x3xf32> {
  %e = tensor.empty() : tensor<4x3xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, c) -> (n, c)>, affine_map<(n, c) -> (c)>, affine_map<(n, c) -> (n, c)>],
      iterator_types = ["parallel", "parallel"]} ins(%x, %m : tensor<4x3xf32>, tensor<3xf32>) outs(%e : tensor<4x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<4x3xf32>
  // expected-error@below {{to train 'n', requires a multiplication by 1 / sqrt(n.running_var + epsilon)}}
  %z = linalg.generic {indexing_maps = [affine_map<(n, c) -> (n, c)>, affine_map<(n, c) -> (c)>, affine_map<(n, c) -> (n, c)>],
      iterator_types = ["parallel", "parallel"]} ins(%y, %v : tensor<4x3xf32>, tensor<3xf32>) outs(%e : tensor<4x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.mulf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<4x3xf32>
  return %z : tensor<4x3xf32>
}

// -----

// A name that the step has for itself.
// expected-error@below {{to train, requires names of arguments (kas.name) that differ from each other and from what a step adds, got 'labels' again}}
func.func @forward(%x: tensor<4x3xf32>, %w: tensor<3xf32> {kas.name = "labels"}) -> tensor<4x3xf32> {
  return %x : tensor<4x3xf32>
}

// -----

// expected-error@below {{to train, requires names of arguments (kas.name) that differ from each other and from what a step adds, got 'w.momentum' again}}
func.func @forward(%x: tensor<4x3xf32>, %w: tensor<3xf32> {kas.name = "w"}, %v: tensor<3xf32> {kas.name = "w.momentum"}) -> tensor<4x3xf32> {
  return %x : tensor<4x3xf32>
}

// -----

// No samples.
// expected-error@below {{to train, requires a function with one block and one result, logits [samples, classes], got '(tensor<0x3xf32>) -> tensor<0x3xf32>'}}
func.func @forward(%x: tensor<0x3xf32>) -> tensor<0x3xf32> {
  return %x : tensor<0x3xf32>
}

// -----

// expected-error@below {{to train, requires tensors of f32 or f64, got 'tensor<4x3xf16>'}}
func.func @forward(%x: tensor<4x3xf16>) -> tensor<4x3xf16> {
  return %x : tensor<4x3xf16>
}

// -----

// expected-error@below {{to train, requires tensors of 'f32' with static shapes, got 'tensor<?x3xf32>'}}
func.func @forward(%x: tensor<?x3xf32>, %w: tensor<4x3xf32> {kas.name = "w"}) -> tensor<4x3xf32> {
  return %w : tensor<4x3xf32>
}

// -----

// expected-error@below {{to train, requires a function with one block and one result, logits [samples, classes], got '(tensor<?x3xf32>) -> tensor<?x3xf32>'}}
func.func @forward(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  return %x : tensor<?x3xf32>
}

// -----

// expected-error@below {{to train, requires a function with one block and one result, logits [samples, classes], got '() -> tensor<4x3xf32>'}}
func.func @forward() -> tensor<4x3xf32> {
  %e = tensor.empty() : tensor<4x3xf32>
  return %e : tensor<4x3xf32>
}

// -----

// expected-error@below {{to train, requires names of arguments (kas.name) that differ from each other and from what a step adds, got 'seed' again}}
func.func @forward(%x: tensor<4x3xf32>, %w: tensor<4x3xf32> {kas.name = "seed"}) -> tensor<4x3xf32> {
  return %w : tensor<4x3xf32>
}

// -----

func.func @forward(%x: tensor<4x3xf32>, %w: tensor<2xf32> {kas.name = "w"}) -> tensor<4x3xf32> {
  // expected-error@below {{to train, requires dropout without a seed, which the step gives it}}
  %y = kas.dropout %x probability 0.5 seed %w stream 0 : tensor<4x3xf32>, tensor<2xf32>
  return %y : tensor<4x3xf32>
}

// -----

// A body that reads a parameter in another way than as one element of a table.
func.func @forward(%x: tensor<4x3xf32>, %w: tensor<4x3xf32> {kas.name = "w"}) -> tensor<4x3xf32> {
  %e = tensor.empty() : tensor<4x3xf32>
  // expected-error@below {{to differentiate, requires a body that reads operands alone, or yields one element of a table}}
  %y = linalg.generic {indexing_maps = [affine_map<(n, c) -> (n, c)>, affine_map<(n, c) -> (n, c)>],
      iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x3xf32>) outs(%e : tensor<4x3xf32>) {
  ^bb0(%a: f32, %b: f32):
    %n = linalg.index 0 : index
    %c = linalg.index 1 : index
    %v = tensor.extract %w[%n, %c] : tensor<4x3xf32>
    %s = arith.addf %a, %v : f32
    linalg.yield %s : f32
  } -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}
