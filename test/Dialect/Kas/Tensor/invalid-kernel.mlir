// RUN: kas-opt %s -split-input-file -verify-diagnostics

// Violations of each numbered constraint on kernels.

// expected-error@+1 {{symbol 'C' is declared more than once (K1)}}
kas.kernel @k1_twice<C | C> (%in: [C]) -> [C] {
  kas.dag.output %in : [C]
}

// -----

// expected-error@+1 {{requires declared symbols in its sizes (K1), got 'D'}}
kas.kernel @k1_input<C> (%in: [D]) -> [C] {
  kas.dag.output %in : [D]
}

// -----

kas.kernel @k1_parameter<C> (%in: [C]) -> [C] {
  // expected-error@+1 {{requires declared symbols in its sizes (K1), got 'D'}}
  %y = kas.dag.fc %in to D : [C]
  kas.dag.output %y : [D]
}

// -----

// expected-error@+1 {{requires declared symbols in its sizes (K1), got 'D'}}
kas.kernel @k1_fact<C> where [D divides C] (%in: [C]) -> [C] {
  kas.dag.output %in : [C]
}

// -----

// expected-error@+1 {{at most 12 symbols can be declared, 'm' is one too many (K1)}}
kas.kernel @k1_too_many<a, b, c, d | e, f, g, h | i, j, k, l, m> (%in: [a]) -> [a] {
  kas.dag.output %in : [a]
}

// -----

// expected-error@+1 {{requires facts that make sense (K2): facts must not go in circles}}
kas.kernel @k2_circle<C | G> where [G divides C, C divides G] (%in: [C]) -> [C] {
  kas.dag.output %in : [C]
}

// -----

// expected-error@+1 {{requires facts that make sense (K2): a fact must not be about a variable}}
kas.kernel @k2_variable<C | | x> where [x divides C] (%in: [C]) -> [C] {
  kas.dag.output %in : [C]
}

// -----

// expected-error@+1 {{requires facts that make sense (K2): a fact must hold at every binding}}
kas.kernel @k2_binding<C | G> where [G divides C] (%in: [C]) -> [C]
    bindings [<C = 8, G = 4>, <C = 8, G = 3>] {
  kas.dag.output %in : [C]
}

// -----

// expected-error@+1 {{requires a value for 'G' in every binding (K2)}}
kas.kernel @k2_unbound<C | G> (%in: [C]) -> [C] bindings [<C = 8>] {
  kas.dag.output %in : [C]
}

// -----

// expected-error@+1 {{requires bindings of declared symbols (K2), got 'D'}}
kas.kernel @k2_undeclared<C> (%in: [C]) -> [C] bindings [<C = 8, D = 1>] {
  kas.dag.output %in : [C]
}

// -----

// expected-error@+1 {{requires values for all variables or for none (K2), got one for 'x'}}
kas.kernel @k2_some<C | | x, y> (%in: [C]) -> [C] bindings [<C = 8, x = 1>] {
  kas.dag.output %in : [C]
}

// -----

// expected-error@+1 {{requires a value for 'x' in every binding (K2)}}
kas.kernel @k2_second<C | | x> (%in: [C]) -> [C] bindings [<C = 8, x = 1>, <C = 8>] {
  kas.dag.output %in : [C]
}

// -----

// expected-error@+1 {{requires counts of at least 1 (K2), got 0}}
kas.kernel @k2_count<C> (%in: [C]) -> [C] bindings [<C = 8> x 0] {
  kas.dag.output %in : [C]
}

// -----

kas.kernel @k3_unproven<C | G> (%in: [C]) -> [C] {
  // expected-error@+1 {{requires sizes that are integers (K3), got 'C/G'}}
  %g = kas.dag.group %in dim 0 by G : [C]
  kas.dag.output %g : [G, C/G]
}

// -----

// expected-note@+1 {{at binding #kas.binding<C = 8, G = 3>}}
kas.kernel @k3_binding<C | G> (%in: [C]) -> [C] bindings [<C = 8, G = 4>, <C = 8, G = 3>] {
  // expected-error@+1 {{requires sizes that are integers (K3), got 'C/G'}}
  %g = kas.dag.group %in dim 0 by G : [C]
  kas.dag.output %g : [G, C/G]
}

// -----

kas.kernel @k3_fc_groups<C | G> where [G divides C] (%in: [C]) -> [C] {
  %g = kas.dag.group %in dim 0 by G : [C]
  // expected-error@+1 {{requires sizes that are integers (K3), got '3/G'}}
  %y = kas.dag.fc %g groups 1 to 3 : [G, C/G]
  kas.dag.output %y : [3]
}

// -----

kas.kernel @k3_ratio<C, H, W> (%in: [C | H, W]) -> [C | H, W] {
  %a = kas.dag.fold mean %in dims [2] : [C | H, W]
  %b = kas.dag.fold mean %in dims [1] : [C | H, W]
  // expected-error@+1 {{requires sizes that are integers (K3), got 'W/H'}}
  %m = kas.dag.broadcast add %a, %b common [1, 0] : [C | H], [C | W]
  kas.dag.output %in : [C | H, W]
}

// -----

kas.kernel @k3_shuffle<C | G> (%in: [C]) -> [C] {
  // expected-error@+1 {{requires sizes that are integers (K3), got 'C/G'}}
  %g = kas.dag.shuffle %in dim 0 by G : [C]
  kas.dag.output %g : [C]
}

// -----

kas.kernel @k3_overflow(%in: [2147483647, 2 | 3]) -> [1 | 3] {
  // expected-error@+1 {{requires a size whose exponents and constant fit (K3)}}
  %g = kas.dag.group_all %in : [2147483647, 2 | 3]
  kas.dag.output %g : [1 | 3]
}

// -----

kas.kernel @k4_other<C, D> (%in: [C]) -> [D] {
  // expected-error@+1 {{requires as many elements as the result, 'D' (K4), got 'C'}}
  kas.dag.output %in : [C]
}

// -----

// Values of variables decide at every binding.
kas.kernel @k4_solved<C | | x> (%in: [C]) -> [C] bindings [<C = 8, x = 8>, <C = 8, x = 4>] {
  %y = kas.dag.fc %in to x : [C]
  // expected-error@+1 {{requires as many elements as the result, 'C' (K4), got 'x'}}
  kas.dag.output %y : [x]
}

// -----

// expected-error@+1 {{requires no variable in a spatial dimension (K5, clause 1), got 'x' in dimension 2}}
kas.kernel canvas @k5_clause_1<C, H | | x> (%in: [C | H, x]) -> [C | H] {
  kas.dag.output %in : [C | H, x]
}

// -----

kas.kernel canvas @k5_clause_2<C | | x> (%in: [C]) -> [C] {
  // expected-error@+1 {{requires no variable in the denominator of a channel dimension (K5, clause 2), got 'C/x' in dimension 1}}
  %g = kas.dag.group %in dim 0 by x : [C]
  kas.dag.output %g : [x, C/x]
}

// -----

kas.kernel canvas @k5_clause_3<C | | x, y> (%in: [C]) -> [C] {
  // expected-error@+1 {{requires at most one variable in a channel dimension (K5, clause 3), got 'x*y' in dimension 0}}
  %g = kas.dag.fc %in to x*y : [C]
  kas.dag.output %g : [x*y]
}

// -----

kas.kernel canvas @k5_clause_4<C, H | | x, y> (%in: [C | H]) -> [C | H] {
  %g = kas.dag.fc %in to x : [C | H]
  // expected-error@+1 {{requires at most one variable across all dimensions (K5, clause 4), got 'y' in dimension 1}}
  %u = kas.dag.unfold %g dims [1] by [y] : [x | H]
  kas.dag.output %u : [x, y | H]
}

// -----

// Outside of `canvas`, a variable may occur anywhere.
kas.kernel @k5_not_asked<C | | x> (%in: [C]) -> [C] {
  %g = kas.dag.group %in dim 0 by x : [C]
  kas.dag.output %g : [x, C/x]
}

// -----

// expected-error@+1 {{requires budgets of 'flops', 'flops_min', 'params' or 'params_min' (K6), got 'latency'}}
kas.kernel @k6_name<C> (%in: [C]) -> [C] budget {latency = 1} {
  kas.dag.output %in : [C]
}

// -----

// expected-error@+1 {{requires an integer of at least 0 for budget 'flops' (K6), got -1 : i64}}
kas.kernel @k6_value<C> (%in: [C]) -> [C] budget {flops = -1} {
  kas.dag.output %in : [C]
}

// -----

kas.kernel @k7_end<C> (%in: [C]) -> [C] {
  // expected-error@+1 {{block with no terminator}}
  %y = kas.dag.fc %in to C : [C]
}

// -----

kas.kernel @k7_other<C> (%in: [C]) -> [C] {
  // expected-error@+1 {{is no op of the tensor level (K7)}}
  %c = builtin.unrealized_conversion_cast %in : !kas.tensor<[C]> to i32
  kas.dag.output %in : [C]
}

// -----

// Steps are a graph without circles.
kas.kernel @k7_circle<C> (%in: [C]) -> [C] {
  // expected-error@+1 {{operand #0 does not dominate this use}}
  %a = kas.dag.broadcast add %b, %in common [1, 0] : [C], [C]
  // expected-note@+1 {{operand defined here}}
  %b = kas.dag.unary relu %a : [C]
  kas.dag.output %b : [C]
}

// -----

kas.kernel @k7_self<C> (%in: [C]) -> [C] {
  // expected-error@+2 {{operand #0 does not dominate this use}}
  // expected-note@+1 {{operand defined here}}
  %a = kas.dag.unary relu %a : [C]
  kas.dag.output %a : [C]
}

// -----

// Only operators are steps, so kernels do not recurse.
kas.kernel @k7_recursion<C> (%in: [C]) -> [C] {
  // expected-error@+1 {{requires a kas.operator (D16), got '@k7_recursion'}}
  %a = kas.dag.apply @k7_recursion<C = C> %in : [C] -> [C]
  kas.dag.output %a : [C]
}

// -----

kas.kernel @k7_two_outputs<C> (%in: [C]) -> [C] {
  // expected-error@+1 {{must be the last operation in the parent block}}
  kas.dag.output %in : [C]
  kas.dag.output %in : [C]
}

// -----

// expected-error@+1 {{requires sizes that are integers (K3), got 'C**3'}}
kas.kernel @k3_binding_overflow<C> (%in: [C**3]) -> [C**3]
    // expected-note@-1 {{at binding #kas.binding<C = 2147483647>}}
    bindings [<C = 2147483647>] {
  kas.dag.output %in : [C**3]
}

// -----

kas.kernel @k3_exponent<C> (%in: [C**100, C**100]) -> [C] {
  // expected-error@+1 {{requires a size whose exponents and constant fit (K3)}}
  %b = kas.dag.group_all %in : [C**100, C**100]
  kas.dag.output %b : [C**200, 1]
}

// -----

// expected-error@+1 {{expected at most three lists of symbols}}
kas.kernel @lists<C | a | b | c> (%in: [C]) -> [C] {
  kas.dag.output %in : [C]
}

// -----

// expected-error@+1 {{requires a name}}
"kas.kernel"() <{bindings = [], budget = {}, coefficients = [], divisors = [], multiples = [], multiplicities = array<i64>, primaries = ["C"], result_type = !kas.tensor<[C]>, solution = {}, sym_name = "", variables = []}> ({
^bb0(%in: !kas.tensor<[C]>):
  "kas.dag.output"(%in) : (!kas.tensor<[C]>) -> ()
}) : () -> ()
