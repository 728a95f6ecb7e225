// RUN: kas-opt %s -split-input-file -verify-diagnostics -kas-solve-shapes=list=true -o /dev/null

// Sets of factors, as matches of a variable: of C*C nine, of C*G six, of 12 six.
kas.kernel @factors<C, H, W | G | x, y, z> where [G divides C] (%in: [C | H, W]) -> [C | H, W] {
  %p = kas.dag.fold mean %in dims [1, 2] : [C | H, W]
  %a = kas.dag.fc %p to x : [C]
  %c = kas.dag.matmul %in, %in transpose_right : [C | H, W], [C | H, W]
  // expected-remark@+1 {{9 matches: x = 1; x = G; x = G**2; x = C/G; x = C; x = C*G; x = C**2/G**2; x = C**2/G; x = C**2}}
  %m = kas.dag.broadcast add %a, %c common [0, 0] : [x], [C | C]
  %b = kas.dag.fc %p to y : [C]
  %d = kas.dag.fc %p to C*G : [C]
  // expected-remark@+1 {{6 matches: y = 1; y = G; y = G**2; y = C/G; y = C; y = C*G}}
  %n = kas.dag.broadcast add %b, %d common [0, 0] : [y], [C*G]
  %e = kas.dag.fc %p to z : [C]
  %f = kas.dag.fc %p to 12 : [C]
  // expected-remark@+1 {{6 matches: z = 1; z = 2; z = 3; z = 4; z = 6; z = 12}}
  %o = kas.dag.broadcast add %e, %f common [0, 0] : [z], [12]
  kas.dag.output %in : [C | H, W]
}

// -----

// What has no match: a window more on the left, another dimension.
kas.kernel canvas @window<C, H, W | KH> (%in: [C | H, W]) -> [C | H, W] {
  %u = kas.dag.unfold %in dims [1] by [KH] : [C | H, W]
  // expected-error@+1 {{requires sizes that are integers (K3), got '1/KH'}}
  %m = kas.dag.broadcast add %u, %in common [1, 2] : [C, KH | H, W], [C | H, W]
  kas.dag.output %m : [C | H, W]
}

// -----

kas.kernel canvas @other_dimension<C, H, W> (%in: [C | H, W]) -> [C | H, W] {
  %a = kas.dag.fold mean %in dims [2] : [C | H, W]
  %b = kas.dag.fold mean %in dims [1] : [C | H, W]
  // expected-error@+1 {{requires sizes that are integers (K3), got 'W/H'}}
  %m = kas.dag.broadcast add %a, %b common [1, 0] : [C | H], [C | W]
  kas.dag.output %in : [C | H, W]
}

// -----

// One variable on both sides, and nothing to solve: the ratio is KW.
kas.kernel canvas @same_variable<C, H, W | KH, KW | x> (%in: [C | H, W]) -> [C | H, W] {
  %a = kas.dag.fc %in to x : [C | H, W]
  %l = kas.dag.unfold %a dims [1] by [KH] : [x | H, W]
  %r = kas.dag.unfold %a dims [1, 2] by [KH, KW] : [x | H, W]
  %m = kas.dag.broadcast mul %l, %r common [2, 2] : [x, KH | H, W], [x, KH, KW | H, W]
  %c = kas.dag.fc %m to C : [x, KH, KW | H, W]
  kas.dag.output %c : [C | H, W]
}

// -----

// A variable on the left: x1 is below, so it may be x2*KW.
kas.kernel canvas @involution<C, H, W | G, K | x> where [G divides C] (%in: [C | H, W]) -> [C | H, W] {
  %a = kas.dag.fc %in to x : [C | H, W]
  %g = kas.dag.group %a dim 0 by G : [x | H, W]
  %u = kas.dag.unfold %in dims [1, 2] by [K, K] : [C | H, W]
  %v = kas.dag.group %u dim 0 by G : [C, K, K | H, W]
  // expected-remark@+1 {{x = G*K**2;}}
  %m = kas.dag.broadcast mul %g, %v common [1, 2] : [G, x/G | H, W], [G, C/G, K, K | H, W]
  %f = kas.dag.fold mean %m dims [2, 3] : [G, C/G, K, K | H, W]
  kas.dag.output %f : [G, C/G | H, W]
}
