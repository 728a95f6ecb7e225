// RUN: kas-opt %s -split-input-file -verify-diagnostics

// Which sizes may be integers: those that the facts prove, and those with a
// variable above.

kas.kernel @legal<C, H | G | x> where [G divides C] (%in: [C | H]) -> [C | H] {
  %a = kas.dag.fc %in to C/G*x : [C | H]
  %b = kas.dag.fc %in to C*C/(G*G) : [C | H]
  %c = kas.dag.fc %in to x/C : [C | H]
  kas.dag.output %in : [C | H]
}

// -----

kas.kernel @twice<C, H | G> where [G divides C] (%in: [C | H]) -> [C | H] {
  // expected-error@+1 {{requires sizes that are integers (K3), got 'C/G**2'}}
  %a = kas.dag.fc %in to C/G/G : [C | H]
  kas.dag.output %in : [C | H]
}

// -----

kas.kernel @other<C, H> (%in: [C | H]) -> [C | H] {
  // expected-error@+1 {{requires sizes that are integers (K3), got 'C/H'}}
  %a = kas.dag.fc %in to C/H : [C | H]
  kas.dag.output %in : [C | H]
}

// -----

kas.kernel @constant<C, H> (%in: [C | H]) -> [C | H] {
  // expected-error@+1 {{requires sizes that are integers (K3), got '3/5'}}
  %a = kas.dag.fc %in to 3/5 : [C | H]
  kas.dag.output %in : [C | H]
}

// -----

// At the values of a binding: 64 / 4, not 64 / 3; 3/5 of 10 channels.
kas.kernel @four<C, H | G> where [G divides C] (%in: [C | H]) -> [C | H]
    bindings [<C = 64, G = 4, H = 2>] {
  %a = kas.dag.fc %in to C/G : [C | H]
  kas.dag.output %in : [C | H]
}

kas.kernel @three_fifths<C, H> (%in: [C | H]) -> [C | H] bindings [<C = 10, H = 2>] {
  %a = kas.dag.fc %in to C*3/5 : [C | H]
  kas.dag.output %in : [C | H]
}

// -----

// expected-note@+1 {{at binding #kas.binding<C = 64, G = 3, H = 2>}}
kas.kernel @three<C, H | G> (%in: [C | H]) -> [C | H] bindings [<C = 64, G = 3, H = 2>] {
  // expected-error@+1 {{requires sizes that are integers (K3), got 'C/G'}}
  %a = kas.dag.fc %in to C/G : [C | H]
  kas.dag.output %in : [C | H]
}
