// The smallest module that still holds a shift is left: the other operator goes.
// RUN: kas-reduce %s -reduction-tree='traversal-mode=0 test=%S/Inputs/has-shift.sh' | FileCheck %s

// CHECK-NOT: @unneeded
kas.operator @unneeded<N>(%n: N) from [N] {
  kas.yield data(%n)
}

// CHECK: kas.operator @needed
// CHECK: kas.shift
kas.operator @needed<N>(%n: N) from [N] {
  %t = kas.shift %n by 1 : N
  kas.yield data(%t)
}
