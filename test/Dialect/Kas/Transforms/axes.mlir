// What operators do along their axes: docs/reference/properties.md.
// RUN: kas-opt %s -kas-print-axes="operator=window bind=N=1,C=4,H=8,k=3" -verify-diagnostics | FileCheck %s
// RUN: not kas-opt %s -kas-print-axes="operator=none" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not kas-opt %s -kas-print-axes="operator=window bind=N=1,C=4,H=8" 2>&1 | FileCheck %s --check-prefix=SYMBOL
// NONE: requires a kas.operator for option 'operator', got '@none'
// SYMBOL: requires a value for symbol 'k'

// The operators stay, and no concrete one is added.
// CHECK: kas.operator @window<N, C, H | k>
// CHECK: kas.operator @mixing<N, C, H>
// CHECK-NOT: kas.operator

// expected-remark @below {{axis 2 of 'window': weights fit any grid}}
// expected-remark @below {{axis 2 of 'window': reads 2 to 3 of 8 positions at N=1,C=4,H=8,k=3, translations zero_padded}}
kas.operator @window<N, C, H | k>(%n: N, %c: C, %h: H) from [N, C, H] {
  %i = kas.reduce sum : k
  %i_d, %i_w = kas.share %i : k
  %x = kas.unfold %h, %i_d : H, k
  kas.yield data(%n, %c, %x) weight(%i_w)
}

// expected-remark @below {{axis 2 of 'mixing': weights fit one grid}}
kas.operator @mixing<N, C, H>(%n: N, %c: C, %h: H) from [N, C, H] {
  %i = kas.reduce sum : H
  %i_d, %i_w = kas.share %i : H
  kas.yield data(%n, %c, %i_d) weight(%h, %i_w)
}
