// RUN: kas-opt %s -kas-kernel-to-linalg='batch=2 max-elements=4096' -split-input-file -verify-diagnostics

// expected-error@+1 {{requires values for all variables (see -kas-solve-shapes, -kas-solve-budget), got none for 'x'}}
kas.kernel @unsolved<C | | x> (%in: [C]) -> [C] bindings [<C = 8>] {
  %y = kas.dag.fc %in to x : [C]
  %z = kas.dag.fc %y to C : [x]
  kas.dag.output %z : [C]
}

// -----

// expected-error@+1 {{requires bindings to lower, got none}}
kas.kernel @unbound<C> (%in: [C]) -> [C] {
  kas.dag.output %in : [C]
}

// -----

// expected-error@+1 {{requires tensors of at most 4096 elements, got shape [2, 512, 8]}}
kas.kernel @large<C> (%in: [C]) -> [C] bindings [<C = 8>] {
  %y = kas.dag.amplify %in by 512 of C : [C]
  %z = kas.dag.fold mean %y dims [0] : [512, C]
  kas.dag.output %z : [C]
}

// -----

// Nor may inputs and weights.
// expected-error@+1 {{requires tensors of at most 4096 elements, got shape [2, 2147483647, 2147483647, 2147483647]}}
kas.kernel @input<C> (%in: [C, C, C]) -> [C, C, C] bindings [<C = 2147483647>] {
  kas.dag.output %in : [C, C, C]
}

// -----

// expected-error@+1 {{requires tensors of at most 4096 elements, got shape [64, 65]}}
kas.kernel @weight(%in: [65]) -> [64] {
  %y = kas.dag.fc %in to 64 : [65]
  kas.dag.output %y : [64]
}

// -----

// Padding counts.
// expected-error@+1 {{requires tensors of at most 4096 elements, got shape [2, 4, 8008]}}
kas.kernel @padding(%in: [4 | 8]) -> [4, 3 | 8] {
  %y = kas.dag.unfold %in dims [1] by [3] dilation 4000 : [4 | 8]
  kas.dag.output %y : [4, 3 | 8]
}

// -----

// expected-error@+1 {{requires windows that fit, got dilation 9223372036854775807}}
kas.kernel @dilation(%in: [4 | 8]) -> [4, 5 | 8] {
  %y = kas.dag.unfold %in dims [1] by [5] dilation 9223372036854775807 : [4 | 8]
  kas.dag.output %y : [4, 5 | 8]
}

// -----

kas.operator @linear<I, O> (%o: O) from [I] {
  %i = kas.reduce sum : I
  %d, %w = kas.share %i : I
  kas.yield data(%d) weight(%o, %w)
}

kas.kernel @no_batch(%in: [4]) -> [8] {
  // expected-error@+1 {{requires an operator with a batch dimension of 1 to lower 2 samples, got '@linear'}}
  %y = kas.dag.apply @linear<I = 4, O = 8> %in : [4] -> [8]
  kas.dag.output %y : [8]
}

// -----

func.func private @taken_1()

// expected-error@+1 {{requires the name '@taken_1' for a function, got one that is taken}}
kas.kernel @taken<C> (%in: [C]) -> [C] bindings [<C = 8>, <C = 4>] {
  kas.dag.output %in : [C]
}
