// RUN: kas-opt %s --split-input-file -kas-differentiate=function=f -verify-diagnostics
// RUN: echo 'func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }' > %t.mlir
// RUN: not kas-opt %t.mlir -kas-differentiate 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not kas-opt %t.mlir -kas-differentiate='function=f arguments=weight' 2>&1 | FileCheck %s --check-prefix=ARGUMENT

// NAME: error: option 'function' requires a function with a body, got 'forward'
// ARGUMENT: error: option 'arguments' requires names or numbers of arguments, got 'weight'

// expected-error@below {{to differentiate, requires tensors of floats with static shapes, got 'tensor<?xf32>'}}
func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}

// -----

// expected-error@below {{to differentiate, requires a function with one block}}
func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
  cf.br ^end
^end:
  return %x : tensor<2xf32>
}

// -----

func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = tensor.cast %x : tensor<2xf32> to tensor<?xf32>
  // expected-error@below {{has no gradient here}}
  %z = tensor.cast %y : tensor<?xf32> to tensor<2xf32>
  return %z : tensor<2xf32>
}

// -----

func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
  %e = tensor.empty() : tensor<2xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<2xf32>) outs(%e : tensor<2xf32>) {
  ^bb0(%a: f32, %b: f32):
    // expected-error@below {{has no derivative here}}
    %v = math.floor %a : f32
    linalg.yield %v : f32
  } -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

func.func @f(%x: tensor<2xf32>) -> tensor<f32> {
  %one = arith.constant dense<1.0> : tensor<f32>
  // expected-error@below {{to differentiate, requires a body that adds to its result, takes the maximum or does not read it}}
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%x : tensor<2xf32>) outs(%one : tensor<f32>) {
  ^bb0(%a: f32, %b: f32):
    %v = arith.mulf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

// -----

kas.operator @symbolic<N>(%n: N) from [N] {
  kas.yield data(%n)
}
func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@below {{to differentiate, requires a concrete operator (see -kas-specialize)}}
  %y = kas.apply @symbolic(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

// The statistics of a batch have no gradient of their own.
func.func @f(%x: tensor<4x3xf32>, %s: tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>) {
  // expected-error@below {{to differentiate, requires results that do not depend on the statistics themselves}}
  %y, %mean, %variance = kas.batch_norm %x, %s, %s epsilon 1.0e-05 : tensor<4x3xf32>, tensor<3xf32>
  return %y, %mean : tensor<4x3xf32>, tensor<3xf32>
}

// -----

// Two results of one operation, both of which results of the function depend on.
#id = affine_map<(i) -> (i)>
func.func @f(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %e = tensor.empty() : tensor<2xf32>
  // expected-error@below {{to differentiate, requires one result, got 2}}
  %r:2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<2xf32>) outs(%e, %e : tensor<2xf32>, tensor<2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %v = arith.mulf %a, %a : f32
    linalg.yield %v, %a : f32, f32
  } -> (tensor<2xf32>, tensor<2xf32>)
  return %r#0, %r#1 : tensor<2xf32>, tensor<2xf32>
}

// -----

// A result that is computed from the other.
#in = affine_map<(i, j) -> (i, j)>
#out = affine_map<(i, j) -> (i)>
func.func @f(%x: tensor<2x3xf32>, %e: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@below {{to differentiate, requires one result, got 2}}
  %r:2 = linalg.generic {indexing_maps = [#in, #out, #out], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<2x3xf32>) outs(%e, %e : tensor<2xf32>, tensor<2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %v = arith.addf %a, %b : f32
    %w = arith.addf %v, %c : f32
    linalg.yield %v, %w : f32, f32
  } -> (tensor<2xf32>, tensor<2xf32>)
  return %r#1 : tensor<2xf32>
}

// -----

func.func @f(%x: tensor<2xf32>, %y: tensor<f32>) -> tensor<f32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@below {{to differentiate, requires one result, got 2}}
  %r:2 = scf.for %i = %c0 to %c1 step %c1 iter_args(%s = %y, %t = %y) -> (tensor<f32>, tensor<f32>) {
    scf.yield %t, %s : tensor<f32>, tensor<f32>
  }
  return %r#1 : tensor<f32>
}

// -----

// Nothing is missing where no result depends on the operation, or where it does not depend on an argument.
#id = affine_map<(i) -> (i)>
func.func @f(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %e = tensor.empty() : tensor<2xf32>
  %ones = arith.constant dense<1.0> : tensor<2xf32>
  %unused:2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<2xf32>) outs(%e, %e : tensor<2xf32>, tensor<2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    linalg.yield %a, %a : f32, f32
  } -> (tensor<2xf32>, tensor<2xf32>)
  %constant:2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%ones : tensor<2xf32>) outs(%e, %e : tensor<2xf32>, tensor<2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    linalg.yield %a, %a : f32, f32
  } -> (tensor<2xf32>, tensor<2xf32>)
  return %x, %constant#1 : tensor<2xf32>, tensor<2xf32>
}
