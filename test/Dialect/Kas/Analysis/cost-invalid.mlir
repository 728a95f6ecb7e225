// RUN: not kas-opt %s -kas-print-cost='operator=huge bind=N=2147483647,M=2147483647' 2>&1 | FileCheck %s --check-prefix=POINTS
// RUN: not kas-opt %s -kas-print-cost='operator=huge bind=N=536870912,M=536870912' 2>&1 | FileCheck %s --check-prefix=COST
// RUN: not kas-opt %s -kas-print-cost='operator=huge bind=N=2' 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not kas-opt %s -kas-print-cost='operator=huge bind=N=2,M=x' 2>&1 | FileCheck %s --check-prefix=TEXT
// RUN: not kas-opt %s -kas-print-cost='operator=other' 2>&1 | FileCheck %s --check-prefix=NAME

// POINTS: error: requires fewer than 2^58 points in the iteration space of operator 'huge', got N = 2147483647, M = 2147483647
// COST: error: requires costs of operator 'huge' below 2^63, got more
// MISSING: error: requires a value for symbol 'M' of operator 'huge', got none
// TEXT: error: a binding must have the form NAME=VALUE
// NAME: error: requires a kas.operator for option 'operator', got '@other'
kas.operator @huge<N, M>(%i: N, %j: M) from [N, M] {
  %i0, %v0 = kas.share %i : N
  %j0, %w0 = kas.share %j : M
  %i1, %v1 = kas.share %i0 : N
  %j1, %w1 = kas.share %j0 : M
  %i2, %v2 = kas.share %i1 : N
  %j2, %w2 = kas.share %j1 : M
  %i3, %v3 = kas.share %i2 : N
  %j3, %w3 = kas.share %j2 : M
  %i4, %v4 = kas.share %i3 : N
  %j4, %w4 = kas.share %j3 : M
  %i5, %v5 = kas.share %i4 : N
  %j5, %w5 = kas.share %j4 : M
  %i6, %v6 = kas.share %i5 : N
  %j6, %w6 = kas.share %j5 : M
  %i7, %v7 = kas.share %i6 : N
  %j7, %w7 = kas.share %j6 : M
  kas.yield data(%i7, %j7)
      weight(%v0, %w0) weight(%v1, %w1) weight(%v2, %w2) weight(%v3, %w3)
      weight(%v4, %w4) weight(%v5, %w5) weight(%v6, %w6) weight(%v7, %w7)
}
