// RUN: kas-opt %s -split-input-file -verify-diagnostics

// What a binding violates: every constraint is checked again at each kas.apply.

kas.operator @f<N | a>(%i: N*a, %j: a) from [N*a*a] {
  // expected-note@+1 {{required here}}
  %t = kas.split %i, %j : N*a, a
  kas.yield data(%t)
}
func.func @split_c1_binding(%x: tensor<4xf32>) {
  // expected-error@+1 {{requires size 'N*a**2' of operator 'f' to be an integer from 1 to 2147483647, got N = 2, a = 40000}}
  %y = kas.apply @f<N = 2, a = 40000>(%x) : (tensor<4xf32>) -> tensor<80000x40000xf32>
  return
}

// -----

kas.operator @f<N | b>(%i: N) from [N/b, b] {
  // expected-note@+1 {{required here}}
  %q, %r = kas.merge %i by b : N
  kas.yield data(%q, %r)
}
func.func @merge_c2_binding(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{requires size 'N/b' of operator 'f' to be an integer from 1 to 2147483647, got N = 7, b = 3}}
  %y = kas.apply @f<b = 3>(%x) : (tensor<2x3xf32>) -> tensor<7xf32>
  return
}

// -----

kas.operator @f<N>(%i: N) from [N] {
  // expected-note@+1 {{required here}}
  %t = kas.shift %i by 5 : N
  kas.yield data(%t)
}
func.func @shift_c3_binding(%x: tensor<5xf32>) {
  // expected-error@+1 {{requires a shift amount d with 0 < |d| < 5 (C3), got 5}}
  %y = kas.apply @f(%x) : (tensor<5xf32>) -> tensor<5xf32>
  return
}

// -----

kas.operator @f<N | k, p>(%i: N) from [N] {
  %j = kas.reduce sum : k
  // expected-note@+1 {{required here}}
  %t = kas.unfold %i, %j low p : N, k
  kas.yield data(%t)
}
func.func @unfold_c5_binding(%x: tensor<5xf32>) {
  // expected-error@+1 {{requires 0 <= low < 3 (C5), got 4}}
  %y = kas.apply @f<k = 3, p = 4>(%x) : (tensor<5xf32>) -> tensor<5xf32>
  return
}

// -----

kas.operator @f<N | k, p>(%i: N) from [N*k/p] {
  // expected-note@+1 {{required here}}
  %t = kas.stride %i by k/p : N
  kas.yield data(%t)
}
func.func @stride_c6_binding(%x: tensor<6xf32>) {
  // expected-error@+1 {{requires size 'k/p' of operator 'f' to be an integer from 1 to 2147483647, got N = 4, k = 3, p = 2}}
  %y = kas.apply @f<N = 4, k = 3, p = 2>(%x) : (tensor<6xf32>) -> tensor<4xf32>
  return
}

// -----

kas.operator @f<N | k>(%i: N) from [N] {
  // expected-note@+1 {{required here}}
  %r = kas.reduce sum : N/k
  kas.yield data(%i) weight(%r)
}
func.func @reduce_c7_binding(%x: tensor<5xf32>, %w: tensor<2xf32>) {
  // expected-error@+1 {{requires size 'N/k' of operator 'f' to be an integer from 1 to 2147483647, got N = 5, k = 2}}
  %y = kas.apply @f<k = 2>(%x, %w) : (tensor<5xf32>, tensor<2xf32>) -> tensor<5xf32>
  return
}

// -----

kas.operator @f<N | k>(%i: N) from [N] {
  %r = kas.reduce sum : N*k
  %s = kas.reduce sum : N*k
  %t = kas.reduce sum : N*k
  kas.yield data(%i) weight(%r) weight(%s) weight(%t)
}
func.func @too_many_points(%x: tensor<1048576xf32>, %w: tensor<2xf32>) {
  // expected-error@+1 {{requires fewer than 2^58 points in the iteration space of operator 'f', got N = 1048576, k = 1}}
  %y = kas.apply @f<k = 1>(%x, %w, %w, %w) : (tensor<1048576xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1048576xf32>
  return
}

// -----

kas.operator @f<N, M>(%i: N, %j: M) from [N, M] {
  kas.yield data(%i, %j)
}
func.func @result_shape(%x: tensor<5x4xf32>) {
  // expected-error@+1 {{requires one value for symbol 'M', got 4 and 5}}
  %y = kas.apply @f(%x) : (tensor<5x4xf32>) -> tensor<5x5xf32>
  return
}

// -----

kas.operator @f<N, M>(%i: N, %j: M) from [N, M] {
  kas.yield data(%i, %j)
}
func.func @two_values(%x: tensor<5x4xf32>) {
  // expected-error@+1 {{requires one value for symbol 'N', got 5 and 3}}
  %y = kas.apply @f<N = 3>(%x) : (tensor<5x4xf32>) -> tensor<5x4xf32>
  return
}

// -----

kas.operator @f<N | k>(%i: N) from [N] {
  %j = kas.reduce sum : k
  %t = kas.unfold %i, %j : N, k
  kas.yield data(%t)
}
func.func @missing_value(%x: tensor<5xf32>) {
  // expected-error@+1 {{requires a value for symbol 'k' of operator 'f', got none}}
  %y = kas.apply @f(%x) : (tensor<5xf32>) -> tensor<5xf32>
  return
}

// -----

kas.operator @f<N>(%i: N) from [N] {
  kas.yield data(%i)
}
func.func @undeclared_symbol(%x: tensor<5xf32>) {
  // expected-error@+1 {{requires symbols of operator 'f' in the binding, got 'k'}}
  %y = kas.apply @f<k = 3>(%x) : (tensor<5xf32>) -> tensor<5xf32>
  return
}

// -----

kas.operator @f<N>(%i: N) from [N] {
  kas.yield data(%i)
}
func.func @bound_twice(%x: tensor<5xf32>) {
  // expected-error@+1 {{symbol 'N' is bound more than once}}
  %y = kas.apply @f<N = 5, N = 5>(%x) : (tensor<5xf32>) -> tensor<5xf32>
  return
}

// -----

kas.operator @f<N>(%i: N) from [N] {
  kas.yield data(%i)
}
func.func @zero_value(%x: tensor<5xf32>) {
  // expected-error@+1 {{the value of a symbol must be at least 1, got N = 0}}
  %y = kas.apply @f<N = 0>(%x) : (tensor<5xf32>) -> tensor<5xf32>
  return
}

// -----

kas.operator @f<N>(%i: N) from [N] {
  %r = kas.reduce sum : 2*N
  kas.yield data(%i) weight(%r)
}
func.func @weight_shape(%x: tensor<5xf32>, %w: tensor<5xf32>) {
  // expected-error@+1 {{requires shape 10 for weight 0, got 'tensor<5xf32>'}}
  %y = kas.apply @f(%x, %w) : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  return
}

// -----

kas.operator @f<N>(%i: N) from [N] {
  kas.yield data(%i)
}
func.func @weight_count(%x: tensor<5xf32>, %w: tensor<5xf32>) {
  // expected-error@+1 {{requires 0 weights, got 1}}
  %y = kas.apply @f(%x, %w) : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  return
}

// -----

kas.operator @f<N>(%i: N) from [N] {
  kas.yield data(%i)
}
func.func @rank(%x: tensor<5x1xf32>) {
  // expected-error@+1 {{requires rank 1 for the data, got 2}}
  %y = kas.apply @f(%x) : (tensor<5x1xf32>) -> tensor<5xf32>
  return
}

// -----

kas.operator @f<N>(%i: N) from [N] {
  kas.yield data(%i)
}
func.func @empty_tensor(%x: tensor<0xf32>) {
  // expected-error@+1 {{requires dimensions of at least 1 for the data, got 0}}
  %y = kas.apply @f(%x) : (tensor<0xf32>) -> tensor<0xf32>
  return
}

// -----

kas.operator @f<N>(%i: N) from [N] {
  kas.yield data(%i)
}
func.func @element_type(%x: tensor<5xf32>) {
  // expected-error@+1 {{requires one element type, got 'f32' and 'f64'}}
  %y = kas.apply @f(%x) : (tensor<5xf32>) -> tensor<5xf64>
  return
}

// -----

func.func @no_operator(%x: tensor<5xf32>) {
  // expected-error@+1 {{requires a kas.operator, got '@g'}}
  %y = kas.apply @g(%x) : (tensor<5xf32>) -> tensor<5xf32>
  return
}

// -----

func.func private @g()
func.func @not_an_operator(%x: tensor<5xf32>) {
  // expected-error@+1 {{requires a kas.operator, got '@g'}}
  %y = kas.apply @g(%x) : (tensor<5xf32>) -> tensor<5xf32>
  return
}

// -----

// expected-error@+1 {{requires a known limit, got 'breadth'}}
kas.space @unknown_limit<N> [N] from [N] bindings [<N = 4>] limits {breadth = 3}

// -----

// expected-error@+1 {{requires a known limit, got 'swap_axis' (did you mean 'swap_axes'?)}}
kas.space @near_limit<N> [N] from [N] bindings [<N = 4>] limits {swap_axis = 1}

// -----

// expected-error@+1 {{requires a known budget, got 'flop' (did you mean 'flops'?)}}
kas.space @near_budget<N> [N] from [N] bindings [<N = 4>] budget {flop = 1000}

// -----

// expected-error@+1 {{requires a small integer of at least 0 for limit 'depth', got -1}}
kas.space @negative_limit<N> [N] from [N] bindings [<N = 4>] limits {depth = -1}

// -----

// expected-error@+1 {{requires a positive number for budget 'flops', got 0}}
kas.space @zero_budget<N> [N] from [N] bindings [<N = 4>] budget {flops = 0}

// -----

// expected-error@+1 {{requires a positive number for limit 'unfold_ratio', got 0}}
kas.space @zero_ratio<N> [N] from [N] bindings [<N = 4>] limits {unfold_ratio = 0}

// -----

// expected-error@+1 {{requires a positive number for limit 'reduce_ratio', got "4"}}
kas.space @text_ratio<N> [N] from [N] bindings [<N = 4>] limits {reduce_ratio = "4"}

// -----

// expected-error@+1 {{requires a small integer of at least 0 for limit 'chain', got 2.500000e+00 : f64}}
kas.space @fractional_limit<N> [N] from [N] bindings [<N = 4>] limits {chain = 2.5}

// -----

// expected-error@+1 {{requires 0 or 1 for limit 'swap_axes', got 2}}
kas.space @large_flag<N> [N] from [N] bindings [<N = 4>] limits {swap_axes = 2}

// -----

// expected-error@+1 {{requires 0, 1 or 2 layers for limit 'reaches', got 3}}
kas.space @many_layers<N> [N] from [N] bindings [<N = 4>] limits {reaches = 3}

// -----

// expected-error@+1 {{requires 0, 1 or a list for limit 'equivariant', got 2}}
kas.space @large_property<N> [N] from [N] bindings [<N = 4>] limits {equivariant = 2}

// -----

// expected-error@+1 {{requires windows that wrap around or that look back, got limit 'cyclic' with 'look_back'}}
kas.space @back_around<N, H> [N, H] from [N, H] bindings [<N = 1, H = 4>] limits {cyclic = 1, look_back = 1}

// -----

// expected-error@+1 {{requires windows that wrap around or that look back, got limit 'cyclic' with 'causal'}}
kas.space @causal_around<N, H> [N, H] from [N, H] bindings [<N = 1, H = 4>] limits {cyclic = 1, causal = 1}

// -----

// expected-error@+1 {{requires 0 or 1 for limit 'cyclic', got 2}}
kas.space @twice_around<N, H> [N, H] from [N, H] bindings [<N = 1, H = 4>] limits {cyclic = 2}

// -----

// expected-error@+1 {{requires one word for each axis that output and input share (1) for limit 'equivariant', got 2}}
kas.space @two_words<N, C, H> [N, C unordered, H] from [N, C unordered, H]
    bindings [<N = 1, C = 2, H = 4>] limits {equivariant = ["cyclic", "none"]}

// -----

// expected-error@+1 {{requires "none", "zero_padded" or "cyclic" for limit 'equivariant', got "torus"}}
kas.space @unknown_word<N, H> [N, H] from [N, H] bindings [<N = 1, H = 4>] limits {equivariant = ["torus"]}

// -----

// expected-error@+1 {{requires "none", "zero_padded" or "cyclic" for limit 'equivariant', got 1 : i64}}
kas.space @number_as_word<N, H> [N, H] from [N, H] bindings [<N = 1, H = 4>] limits {equivariant = [1]}

// -----

// expected-error@+1 {{requires a small integer of at least 0 for limit 'equivariant', got "cyclic"}}
kas.space @word_alone<N, H> [N, H] from [N, H] bindings [<N = 1, H = 4>] limits {equivariant = "cyclic"}

// -----

// expected-error@+1 {{requires equal words for equal axes for limit 'equivariant' with limit 'swap_axes', got "cyclic" and "none"}}
kas.space @unequal_words<N, H> [N, H, H] from [N, H, H]
    bindings [<N = 1, H = 9>] limits {swap_axes = 1, equivariant = ["cyclic", "none"]}

// -----

// expected-error@+1 {{requires 0 or 1 for limit 'any_grid', got 2}}
kas.space @large_flag<N, H> [N, H] from [N, H] bindings [<N = 1, H = 4>] limits {any_grid = 2}

// -----

// expected-error@+1 {{requires a primary symbol in the size of each axis for limit 'any_grid', got #kas.size<8>}}
kas.space @one_grid<N, H> [N, H, 8] from [N, H, 8] bindings [<N = 1, H = 4>] limits {any_grid = 1}

// -----

// expected-error@+1 {{requires a list of windows for limit 'sees', got 3}}
kas.space @window_alone<N, H> [N, H] from [N, H] bindings [<N = 1, H = 4>] limits {sees = 3}

// -----

// expected-error@+1 {{requires one window for each axis that output and input share (1) for limit 'sees', got 2}}
kas.space @two_windows<N, C, H> [N, C unordered, H] from [N, C unordered, H]
    bindings [<N = 1, C = 2, H = 4>] limits {sees = [3, 3]}

// -----

// expected-error@+1 {{requires odd numbers of at least 1, sizes that are so under every binding, or "*", for limit 'sees', got 2}}
kas.space @even_window<N, H> [N, H] from [N, H] bindings [<N = 1, H = 4>] limits {sees = [2]}

// -----

// expected-error@+1 {{requires odd numbers of at least 1, sizes that are so under every binding, or "*", for limit 'sees', got "k"}}
kas.space @even_size<N, H | k> [N, H] from [N, H]
    bindings [<N = 1, H = 9, k = 3>, <N = 1, H = 9, k = 4>] limits {sees = ["k"]}

// -----

// expected-error@+1 {{requires odd numbers of at least 1, sizes that are so under every binding, or "*", for limit 'sees', got "m"}}
kas.space @unknown_window<N, H | k> [N, H] from [N, H] bindings [<N = 1, H = 9, k = 3>] limits {sees = ["m"]}

// -----

// expected-error@+1 {{requires odd numbers of at least 1, sizes that are so under every binding, or "*", for limit 'sees', got 0 : i0}}
kas.space @window_without_bits<N, H> [N, H] from [N, H] bindings [<N = 1, H = 9>] limits {sees = [0 : i0]}

// -----

// expected-error@+1 {{requires equal windows for equal axes for limit 'sees' with limit 'swap_axes', got 3 : i64 and 1 : i64}}
kas.space @unequal_windows<N, H> [N, H, H] from [N, H, H]
    bindings [<N = 1, H = 9>] limits {swap_axes = 1, sees = [3, 1]}

// -----

// expected-error@+1 {{requires a known limit, got 'occurrences.M'}}
kas.space @unknown_symbol<N> [N] from [N] bindings [<N = 4>] limits {occurrences.M = 2}

// -----

// expected-error@+1 {{requires at most 16 symbols and prime factors of constants in its signature (S2), got 17}}
kas.space @many_factors_S2<A, B, C, D, E, F, G, H, I, J, K, L> [30] from [77]
    bindings [<A = 1, B = 1, C = 1, D = 1, E = 1, F = 1, G = 1, H = 1, I = 1, J = 1, K = 1, L = 1>]

// -----

// expected-error@+1 {{requires at most 8 dimensions in output and input (S3), got 9}}
kas.space @many_dimensions_S3<N> [N] from [N, N, N, N, N, N, N, N, N] bindings [<N = 4>]

// -----

// An integer without bits has no value.
// expected-error@+1 {{requires a small integer of at least 0 for limit 'depth', got 0 : i0}}
kas.space @limit_without_bits<N> [N] from [N] bindings [<N = 4>] limits {depth = 0 : i0}

// -----

// expected-error@+1 {{requires a positive number for budget 'flops', got 0 : i0}}
kas.space @budget_without_bits<N> [N] from [N] bindings [<N = 4>] budget {flops = 0 : i0}

// -----

// expected-error@+1 {{requires budget 'baseline_flops' beside 'flops_ratio', got none}}
kas.space @no_baseline<N> [N] from [N] bindings [<N = 4>] budget {flops_ratio = 0.5}

// -----

// expected-error@+1 {{requires a value for each of 2 symbols in each binding}}
kas.space @missing_value<N | k> [N] from [N] bindings [<N = 4>]

// -----

// expected-error@+1 {{requires at least one binding, got none}}
kas.space @no_binding<N> [N] from [N] bindings []

// -----

// expected-error@+1 {{requires sizes that are integers of at least 1 under every binding (S1)}}
kas.space @not_dividing<N | k> [N/k] from [N] bindings [<N = 4, k = 2>, <N = 5, k = 2>]
