// RUN: kas-opt %s -split-input-file -verify-diagnostics -kas-solve-shapes

// No factor of K is a multiple of G.
kas.kernel @no_factor<K, H | G | x> (%in: [K | H]) -> [K | H] {
  %a = kas.dag.fc %in to x : [K | H]
  %g = kas.dag.group %a dim 0 by G : [x | H]
  // expected-error@+1 {{has no legal values of its variables: the ratio is 'K/x'}}
  %m = kas.dag.broadcast mul %a, %in common [0, 1] : [x | H], [K | H]
  kas.dag.output %m : [K | H]
}

// -----

// No symbol is the root of C.
kas.kernel @no_root<C, H | | x> (%in: [C | H]) -> [C | H] {
  %a = kas.dag.fc %in to x*x : [C | H]
  // expected-error@+1 {{has no legal values of its variables: the ratio is 'C/x**2'}}
  kas.dag.output %a : [x**2 | H]
}

// -----

kas.kernel @no_choice<C, H | | x> (%in: [C | H]) -> [C | H] {
  %a = kas.dag.fc %in to x : [C | H]
  // expected-error@+1 {{requires a choice from 0 to 1, got 2}}
  %m = kas.dag.broadcast mul %a, %in common [0, 1] {choice = 2} : [x | H], [C | H]
  kas.dag.output %m : [C | H]
}
