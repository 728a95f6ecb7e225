// RUN: kas-opt %s -kas-solve-shapes=list=true -verify-diagnostics -o /dev/null
// RUN: sed -e 's/expected-remark/remark/' %s > %t.mlir
// RUN: kas-opt %t.mlir -kas-solve-shapes | FileCheck %s
// RUN: kas-opt %t.mlir -kas-solve-shapes=choice=7 | FileCheck %s --check-prefix=LAST

// The cases that are printed in the Canvas paper, section 6.2, or known of its
// solver: the legal substitutions of every broadcast, and the kernel after the
// first and the last one.

// x1 takes each factor of C*KH, where each C may give G or C/G.
// CHECK-LABEL: kas.kernel canvas @channels_and_window<C, H, W | G, KH> where
// CHECK:         kas.dag.fc %{{.*}} to 1 : [C | H, W]
// CHECK:         kas.dag.broadcast mul %{{.*}} common [0, 2] : [1 | H, W], [C, KH | H, W]
// LAST-LABEL:  kas.kernel canvas @channels_and_window<C, H, W | G, KH> where
// LAST:          kas.dag.broadcast mul %{{.*}} common [0, 2] : [C*KH | H, W], [C, KH | H, W]
kas.kernel canvas @channels_and_window<C, H, W | G, KH | x1> where [G divides C]
    (%in: [C | H, W]) -> [C | H, W] {
  %a = kas.dag.fc %in to x1 : [C | H, W]
  %b = kas.dag.unfold %in dims [1] by [KH] : [C | H, W]
  // expected-remark@+1 {{8 matches: x1 = 1; x1 = KH; x1 = G; x1 = G*KH; x1 = C/G; x1 = C*KH/G; x1 = C; x1 = C*KH}}
  %m = kas.dag.broadcast mul %a, %b common [0, 2] : [x1 | H, W], [C, KH | H, W]
  %c = kas.dag.fc %m to C : [C, KH | H, W]
  kas.dag.output %c : [C | H, W]
}

// [x1, KH, H, W] to [G, x2/G, KH, KW, H, W]: x2 stays free.
// CHECK-LABEL: kas.kernel canvas @two_variables<C, H, W | G, KH, KW | x2> where
// CHECK:         kas.dag.broadcast add %{{.*}} common [0, 2] : [1, KH | H, W], [G, x2/G, KH, KW | H, W]
// LAST-LABEL:  kas.kernel canvas @two_variables<C, H, W | G, KH, KW | x2> where
// LAST:          kas.dag.broadcast add %{{.*}} common [0, 2] : [KW*x2, KH | H, W], [G, x2/G, KH, KW | H, W]
kas.kernel canvas @two_variables<C, H, W | G, KH, KW | x1, x2> where [G divides C]
    (%in: [C | H, W]) -> [C | H, W] {
  %a = kas.dag.fc %in to x1 : [C | H, W]
  %b = kas.dag.unfold %a dims [1] by [KH] : [x1 | H, W]
  %c = kas.dag.fc %in to x2 : [C | H, W]
  %d = kas.dag.group %c dim 0 by G : [x2 | H, W]
  %e = kas.dag.unfold %d dims [2, 3] by [KH, KW] : [G, x2/G | H, W]
  // expected-remark@+1 {{4 matches: x1 = 1; x1 = x2; x1 = KW; x1 = KW*x2}}
  %m = kas.dag.broadcast add %b, %e common [0, 2] : [x1, KH | H, W], [G, x2/G, KH, KW | H, W]
  %f = kas.dag.fc %m to C : [G, x2/G, KH, KW | H, W]
  kas.dag.output %f : [C | H, W]
}

// A variable in the numerator stays free: one match, no substitution.
// CHECK-LABEL: kas.kernel canvas @numerator<C, H, W | G, KH | x1> where
kas.kernel canvas @numerator<C, H, W | G, KH | x1> where [G divides C]
    (%in: [C | H, W]) -> [C | H, W] {
  %a = kas.dag.fc %in to G*KH : [C | H, W]
  %b = kas.dag.fc %in to x1 : [C | H, W]
  %m = kas.dag.broadcast mul %a, %b common [0, 2] : [G*KH | H, W], [x1 | H, W]
  %c = kas.dag.fc %m to C : [x1 | H, W]
  kas.dag.output %c : [C | H, W]
}

// [x1, H, W] to [x2, H, W], and an output that is solved.
// CHECK-LABEL: kas.kernel canvas @output<C, H, W | G> where
// CHECK:         kas.dag.output %{{.*}} : [G, C/G | H, W]
kas.kernel canvas @output<C, H, W | G | x1, x2> where [G divides C]
    (%in: [C | H, W]) -> [C | H, W] {
  %a = kas.dag.fc %in to x1 : [C | H, W]
  %b = kas.dag.fc %in to x2 : [C | H, W]
  // expected-remark@+1 {{2 matches: x1 = 1; x1 = x2}}
  %m = kas.dag.broadcast sub %a, %b common [0, 2] : [x1 | H, W], [x2 | H, W]
  %g = kas.dag.group %m dim 0 by G : [x2 | H, W]
  // expected-remark@+1 {{1 matches: x2 = C}}
  kas.dag.output %g : [G, x2/G | H, W]
}

// A spatial mask for all channels: x = H*W is the seventh of 16; `choice` on the
// op takes it.
// CHECK-LABEL: kas.kernel canvas @mask<C, H, W | G> where
// CHECK:         kas.dag.fc %{{.*}} to H*W : [C]
kas.kernel canvas @mask<C, H, W | G | x> where [G divides C]
    (%in: [C | H, W]) -> [C | H, W] {
  %p = kas.dag.fold mean %in dims [1, 2] : [C | H, W]
  %a = kas.dag.fc %p to x : [C]
  // expected-remark@+1 {{16 matches: x = 1; x = G; x = W; x = G*W; x = H; x = G*H; x = H*W; x = G*H*W; x = C/G; x = C; x = C*W/G; x = C*W; x = C*H/G; x = C*H; x = C*H*W/G; x = C*H*W}}
  %m = kas.dag.broadcast mul %a, %in common [0, 0] {choice = 6} : [x], [C | H, W]
  kas.dag.output %m : [C | H, W]
}

// What would break another op is no match: x is above G.
// CHECK-LABEL: kas.kernel canvas @rest_of_the_kernel<C, H, W | G, KH> where
// CHECK:         kas.dag.group %{{.*}} dim 0 by G : [G | H, W]
kas.kernel canvas @rest_of_the_kernel<C, H, W | G, KH | x> where [G divides C]
    (%in: [C | H, W]) -> [C | H, W] {
  %a = kas.dag.fc %in to x : [C | H, W]
  %g = kas.dag.group %a dim 0 by G : [x | H, W]
  %f = kas.dag.fc %g to C : [G, x/G | H, W]
  %u = kas.dag.unfold %f dims [1] by [KH] : [C | H, W]
  // expected-remark@+1 {{4 matches: x = G; x = G*KH; x = C; x = C*KH}}
  %m = kas.dag.broadcast min %a, %u common [0, 2] : [x | H, W], [C, KH | H, W]
  %c = kas.dag.fc %m to C : [C, KH | H, W]
  kas.dag.output %c : [C | H, W]
}

// The first choices, x = 1 and so on, leave an output of another size; they are
// undone.
// CHECK-LABEL: kas.kernel @undone<C, H | G> where
// CHECK:         kas.dag.broadcast max %{{.*}} common [0, 1] : [C | H], [C | H]
// CHECK:         kas.dag.output %{{.*}} : [C | H]
kas.kernel @undone<C, H | G | x> where [G divides C] (%in: [C | H]) -> [C | H] {
  %a = kas.dag.fc %in to x : [C | H]
  // expected-remark@+1 {{4 matches: x = 1; x = G; x = C/G; x = C}}
  %m = kas.dag.broadcast max %a, %in common [0, 1] : [x | H], [C | H]
  // expected-remark@+1 {{1 matches: x = C}}
  kas.dag.output %a : [x | H]
}
