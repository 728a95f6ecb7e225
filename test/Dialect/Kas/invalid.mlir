// RUN: kas-opt %s -split-input-file -verify-diagnostics

// Two violations of each numbered constraint that the text alone decides; what
// needs a binding is in invalid-binding.mlir.

kas.operator @split_c1_exponent<N>(%i: N**127, %j: N**2) from [N] {
  // expected-error@+1 {{requires a size whose exponents and constant fit (C1)}}
  %t = kas.split %i, %j : N**127, N**2
  kas.yield data(%t)
}

// -----

kas.operator @split_c1_constant(%i: 2147483647, %j: 2) from [1] {
  // expected-error@+1 {{requires a size whose exponents and constant fit (C1)}}
  %t = kas.split %i, %j : 2147483647, 2
  kas.yield data(%t)
}

// -----

kas.operator @merge_c2_primary_below<N, M>(%i: N) from [N, M] {
  // expected-error@+1 {{requires no primary symbol in the denominator of its result (C2), got 'N/M'}}
  %q, %r = kas.merge %i by M : N
  kas.yield data(%q, %r)
}

// -----

kas.operator @merge_c2_not_dividing(%i: 8) from [8, 3] {
  // expected-error@+1 {{requires an integer for its result (C2), got '8/3'}}
  %q, %r = kas.merge %i by 3 : 8
  kas.yield data(%q, %r)
}

// -----

kas.operator @merge_c2_undeclared<N>(%i: N) from [N, N] {
  // expected-error@+1 {{requires declared symbols in its parameter (C2), got 'b' in 'b'}}
  %q, %r = kas.merge %i by b : N
  kas.yield data(%q, %r)
}

// -----

kas.operator @shift_c3_zero<N>(%i: N) from [N] {
  // expected-error@+1 {{requires a shift amount d with 0 < |d| (C3), got 0}}
  %t = kas.shift %i by 0 : N
  kas.yield data(%t)
}

// -----

kas.operator @shift_c3_too_far(%i: 7) from [7] {
  // expected-error@+1 {{requires a shift amount d with 0 < |d| < 7 (C3), got -7}}
  %t = kas.shift %i by -7 : 7
  kas.yield data(%t)
}

// -----

kas.operator @shift_c3_size_one(%i: 1) from [1] {
  // expected-error@+1 {{requires a shift amount d with 0 < |d| < 1 (C3), got 1}}
  %t = kas.shift %i by 1 : 1
  kas.yield data(%t)
}

// -----

kas.operator @unfold_c5_low_negative<N | k>(%i: N, %j: k) from [N] {
  // expected-error@+1 {{requires 0 <= low (C5), got -1}}
  %t = kas.unfold %i, %j low -1 : N, k
  kas.yield data(%t)
}

// -----

kas.operator @unfold_c5_low_too_large(%i: 8, %j: 3) from [8] {
  // expected-error@+1 {{requires 0 <= low < 3 (C5), got 3}}
  %t = kas.unfold %i, %j low 3 : 8, 3
  kas.yield data(%t)
}

// -----

kas.operator @unfold_c5_low_is_window<N | k>(%i: N, %j: k) from [N] {
  // expected-error@+1 {{requires low < 'k' (C5), got the same}}
  %t = kas.unfold %i, %j low k : N, k
  kas.yield data(%t)
}

// -----

kas.operator @stride_c6_primary_below<N>(%i: N) from [N] {
  // expected-error@+1 {{requires no primary symbol in the denominator of its parameter (C6), got '1/N'}}
  %t = kas.stride %i by 1/N : N
  kas.yield data(%t)
}

// -----

kas.operator @stride_c6_fraction(%i: 4) from [2] {
  // expected-error@+1 {{requires an integer for its parameter (C6), got '1/2'}}
  %t = kas.stride %i by 1/2 : 4
  kas.yield data(%t)
}

// -----

kas.operator @stride_c6_overflow(%i: 2147483647) from [2] {
  // expected-error@+1 {{requires a size whose exponents and constant fit (C6)}}
  %t = kas.stride %i by 3 : 2147483647
  kas.yield data(%t)
}

// -----

kas.operator @operator_c10_primary_below<N>(%i: N) from [N, 1/N] {
  // expected-error@-1 {{requires no primary symbol in the denominator of the size of input dimension 1 (C10), got '1/N'}}
  %t = kas.reduce sum : 1/N
  kas.yield data(%i, %t)
}

// -----

kas.operator @reduce_c7_undeclared<N>(%i: N) from [N] {
  // expected-error@+1 {{requires declared symbols in its result (C7), got 'M' in 'M'}}
  %t = kas.reduce sum : M
  kas.yield data(%i) weight(%t)
}

// -----

kas.operator @reduce_c7_fraction<N>(%i: N) from [N] {
  // expected-error@+1 {{requires an integer for its result (C7), got '3/2'}}
  %t = kas.reduce sum : 3/2
  kas.yield data(%i) weight(%t)
}

// -----

kas.operator @reduce_c7_primary_denominator<N>(%i: N) from [N] {
  // expected-error@+1 {{requires no primary symbol in the denominator of its result (C7), got '1/N'}}
  %t = kas.reduce max : 1/N
  kas.yield data(%i) weight(%t)
}

// -----

kas.operator @share_c8_weight_as_data<N>(%i: N) from [N] {
  // expected-error@+1 {{requires its weight side in a weight of kas.yield (C8), got a use in 'kas.yield' as data}}
  %d, %w = kas.share %i : N
  kas.yield data(%w) weight(%d)
}

// -----

kas.operator @share_c8_weight_transformed<N>(%i: N) from [N] {
  // expected-error@+1 {{requires its weight side in a weight of kas.yield (C8), got a use in 'kas.shift'}}
  %d, %w = kas.share %i : N
  %t = kas.shift %w by 1 : N
  kas.yield data(%d) weight(%t)
}

// -----

kas.operator @operator_c9_used_twice<N>(%i: N) from [N, N] {
  // expected-error@-1 {{output coordinate 0 requires exactly one use (C9), got 2: double it with kas.share}}
  kas.yield data(%i, %i)
}

// -----

kas.operator @operator_c9_unused_output<N, M>(%i: N, %j: M) from [N] {
  // expected-error@-1 {{output coordinate 1 requires exactly one use (C9), got none: drop it with kas.expand or index a weight with it}}
  kas.yield data(%i)
}

// -----

kas.operator @operator_c9_unused_half<N | b>(%i: N) from [b] {
  // expected-error@+1 {{result 0 of 'kas.merge' requires exactly one use (C9), got none}}
  %q, %r = kas.merge %i by b : N
  kas.yield data(%r)
}

// -----

kas.operator @operator_c10_size<N, M>(%i: N) from [M] {
  // expected-error@+1 {{requires size 'M' for data coordinate 0 (C10), got 'N'}}
  kas.yield data(%i)
}

// -----

kas.operator @operator_c10_count<N>(%i: N) from [N, N] {
  // expected-error@+1 {{requires 2 data coordinates (C10), got 1}}
  kas.yield data(%i)
}

// -----

// expected-error@+1 {{requires data of rank 1 at least, got rank 0 (C10)}}
kas.operator @operator_c10_rank_zero<N>(%i: N) from [] {
  kas.yield data() weight(%i)
}

// -----

// expected-error@+1 {{requires declared symbols in the size of input dimension 0 (C10), got 'M' in 'M'}}
kas.operator @operator_c10_undeclared<N>(%i: N) from [M] {
  kas.yield data(%i)
}

// -----

kas.operator @operator_c11_reduce_expanded<N>(%i: N) from [N] {
  // expected-error@+1 {{requires to be reached from data or a weight (C11), got only kas.expand}}
  %r = kas.reduce sum : 3
  kas.expand %r : 3
  kas.yield data(%i)
}

// -----

kas.operator @operator_c11_view_expanded<N>(%i: N) from [N] {
  // expected-error@+1 {{requires to be reached from data or a weight (C11), got only kas.expand}}
  %r = kas.reduce max : 3*N
  %q, %m = kas.merge %r by 3 : 3*N
  kas.expand %q : N
  kas.expand %m : 3
  kas.yield data(%i)
}

// -----

kas.operator @weight_of_rank_zero<N>(%i: N) from [N] {
  // expected-error@+1 {{requires at least one coordinate in each weight}}
  kas.yield data(%i) weight()
}

// -----

// expected-error@+1 {{symbol 'N' is declared more than once}}
kas.operator @symbol_twice<N | N>(%i: N) from [N] {
  kas.yield data(%i)
}

// -----

// expected-error@+1 {{at most 12 symbols can be declared, 'm' is one too many}}
kas.operator @too_many_symbols<a, b, c, d, e, f, g, h, i, j, k, l, m>(%i: a) from [a] {
  kas.yield data(%i)
}

// -----

kas.operator @undeclared_coordinate<N>(%i: N) from [N] {
  // expected-error@+1 {{use of undeclared coordinate '%j'}}
  kas.yield data(%j)
}

// -----

kas.operator @undeclared_result_number<N>(%i: N) from [N] {
  %a:2 = kas.share %i : N
  // expected-error@+1 {{use of undeclared coordinate '%a#2'}}
  kas.yield data(%a#0) weight(%a#2)
}

// -----

kas.operator @too_many_results<N>(%i: N) from [N] {
  // expected-error@+1 {{operation defines 2 results but was provided 9223372036854775807 to bind}}
  %a:9223372036854775807 = kas.share %i : N
  kas.yield data(%a#0) weight(%a#1)
}

// -----

kas.operator @foreign_op<N>(%i: N) from [N] {
  // expected-error@+1 {{requires primitives of the kas dialect in the body of kas.operator, got 'arith.constant'}}
  %c = arith.constant 1 : index
  kas.yield data(%i)
}

// -----

// expected-error@+1 {{a size must be at least 1}}
kas.operator @size_zero(%i: 0) from [0] {
  kas.yield data(%i)
}

// -----

// expected-error@+1 {{size constant is too large}}
kas.operator @size_constant_overflow(%i: 2147483648) from [1] {
  kas.yield data(%i)
}

// -----

// expected-error@+1 {{size exponent or constant is too large}}
kas.operator @size_exponent_overflow<N>(%i: N**128) from [1] {
  kas.yield data(%i)
}

// -----

// expected-error@+1 {{size exponent or constant is too large}}
kas.operator @size_product_overflow<N>(%i: N**100*N**100) from [1] {
  kas.yield data(%i)
}

// -----

// expected-error@+1 {{expected a size: an integer, a symbol or '('}}
kas.operator @size_missing<N>(%i: ) from [N] {
  kas.yield data(%i)
}

// -----

// expected-error@+1 {{a reduction must be 'sum', 'mean' or 'max', got 'min'}}
kas.operator @reduce_kind<N>() from [N] { %r = kas.reduce min : N kas.yield data(%r) }

// -----

// expected-error@+1 {{requires a body that ends in kas.yield}}
kas.operator @no_yield<N>(%i: N) from [N] {
  kas.expand %i : N
}

// -----

func.func @primitive_outside(%a: !kas.coord<N>) {
  // expected-error@+1 {{expects parent op 'kas.operator'}}
  %b = kas.shift %a by 1 : N
  return
}
