// RUN: kas-opt %s --split-input-file --verify-diagnostics

// G1: no operator
func.func @f(%dy: tensor<4xf32>) {
  // expected-error@below {{G1: requires a concrete kas.operator without maxima, got '@none'}}
  %dx = kas.apply_gradient @none of 0(%dy) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// G1: sizes that are no numbers
kas.operator @symbolic<N>(%i: N) from [N] {
  kas.yield data(%i)
}
func.func @f(%dy: tensor<4xf32>) {
  // expected-error@below {{G1: requires a concrete kas.operator without maxima, got '@symbolic'}}
  %dx = kas.apply_gradient @symbolic of 0(%dy) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// G1: a maximum
kas.operator @maximum(%i: 4) from [4, 2] {
  %j = kas.reduce max : 2
  kas.yield data(%i, %j)
}
func.func @f(%dy: tensor<4xf32>) {
  // expected-error@below {{G1: requires a concrete kas.operator without maxima, got '@maximum'}}
  %dx = kas.apply_gradient @maximum of 0(%dy) : (tensor<4xf32>) -> tensor<4x2xf32>
  return
}

// -----

// G2
kas.operator @id(%i: 4) from [4] {
  kas.yield data(%i)
}
func.func @f(%dy: tensor<4xf32>) {
  // expected-error@below {{G2: requires the number of a tensor, less than 1, got 1}}
  %dx = kas.apply_gradient @id of 1(%dy) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// G3: operands
kas.operator @id(%i: 4) from [4] {
  kas.yield data(%i)
}
func.func @f(%dy: tensor<4xf32>) {
  // expected-error@below {{G3: requires 1 operands, got 2}}
  %dx = kas.apply_gradient @id of 0(%dy, %dy) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// G3: shapes
kas.operator @id(%i: 4) from [4] {
  kas.yield data(%i)
}
func.func @f(%dy: tensor<5xf32>) {
  // expected-error@below {{G3: requires a tensor of type 'tensor<4xf32>', got 'tensor<5xf32>'}}
  %dx = kas.apply_gradient @id of 0(%dy) : (tensor<5xf32>) -> tensor<4xf32>
  return
}
