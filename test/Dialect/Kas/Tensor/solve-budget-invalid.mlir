// RUN: kas-opt %s -split-input-file -verify-diagnostics -kas-solve-budget
// RUN: not kas-opt %s -kas-solve-budget=mode=fast 2>&1 | FileCheck %s
// RUN: not kas-opt %s -kas-solve-budget=spread=-1 2>&1 | FileCheck %s --check-prefix=SPREAD
// SPREAD: option 'spread' must be at least 0, got -1
// CHECK: for the --mode option: Cannot find option named 'fast'!

// expected-error@+1 {{is infeasible, because it is impossible that flops of at most 511}}
kas.kernel @upper<C, H | | x> (%in: [C | H]) -> [C | H]
    bindings [<C = 16, H = 8>] budget {flops = 511} {
  %a = kas.dag.fc %in to x : [C | H]
  %b = kas.dag.fc %a to C : [x | H]
  kas.dag.output %b : [C | H]
}

// -----

// expected-error@+1 {{is infeasible, because it is impossible that flops of at most 1000 and params of at least 100}}
kas.kernel @pair<C, H | | x> (%in: [C | H]) -> [C | H]
    bindings [<C = 16, H = 8>] budget {flops = 1000, params_min = 100, params = 200} {
  %a = kas.dag.fc %in to x : [C | H]
  %b = kas.dag.fc %a to C : [x | H]
  kas.dag.output %b : [C | H]
}

// -----

// expected-error@+1 {{requires bindings to solve for budgets}}
kas.kernel @no_bindings<C, H> (%in: [C | H]) -> [C | H] budget {flops = 1000} {
  kas.dag.output %in : [C | H]
}

// -----

// expected-error@+1 {{requires an upper budget of 'flops' or 'params'}}
kas.kernel @no_upper<C, H> (%in: [C | H]) -> [C | H]
    bindings [<C = 16, H = 8>] budget {flops_min = 1000} {
  kas.dag.output %in : [C | H]
}

// -----

// expected-error@+1 {{a size must hold one variable at most}}
kas.kernel @two_in_a_size<C, H | | x, y> (%in: [C | H]) -> [C | H]
    bindings [<C = 16, H = 8>] budget {flops = 1000} {
  %a = kas.dag.fc %in to x*y : [C | H]
  %b = kas.dag.fc %a to C : [x*y | H]
  kas.dag.output %b : [C | H]
}

// -----

// expected-error@+1 {{is infeasible, because it is impossible that a value of 'x' up to 1048576 makes all sizes integers at binding 0}}
kas.kernel @no_value<C, H | | x> (%in: [C | H]) -> [C | H]
    bindings [<C = 15, H = 8>] budget {flops = 1000000} {
  %a = kas.dag.fc %in to C/x*x : [C | H]
  %g = kas.dag.group %a dim 0 by x : [C | H]
  %f = kas.dag.fc %g to C : [x, C/x | H]
  %h = kas.dag.fc %f to x/2*2 : [C | H]
  %i = kas.dag.group %h dim 0 by 2 : [x | H]
  %b = kas.dag.fc %i to C : [2, x/2 | H]
  kas.dag.output %b : [C | H]
}
