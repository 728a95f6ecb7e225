// RUN: kas-opt %s -kas-canonicalize | FileCheck %s
// RUN: kas-opt %s -kas-canonicalize -o %t && kas-opt %t -kas-canonicalize | diff %t -

// Each rule of docs/reference/tensor-level.md where it applies, and where it does not.

// CHECK-LABEL: kas.kernel @e1_transpose
// CHECK-SAME:  <C, H, W>
// CHECK-NEXT:    (%[[IN:.*]]: [C | H, W])
// CHECK-NEXT:    kas.dag.output %[[IN]]
kas.kernel @e1_transpose<C, H, W> (%in: [C | H, W]) -> [C | H, W] {
  %a = kas.dag.transpose %in dims [1, 2] : [C | H, W]
  %b = kas.dag.transpose %a dims [2, 1] : [C | W, H]
  kas.dag.output %b : [C | H, W]
}

// CHECK-LABEL: kas.kernel @e1_ones
// CHECK-NEXT:    (%[[IN:.*]]: [1, 1, C])
// CHECK-NEXT:    kas.dag.output %[[IN]]
kas.kernel @e1_ones<C> (%in: [1, 1, C]) -> [C] {
  %a = kas.dag.transpose %in dims [0, 1] : [1, 1, C]
  kas.dag.output %a : [1, 1, C]
}

// CHECK-LABEL: kas.kernel @e1_other
// CHECK-COUNT-2: kas.dag.transpose
kas.kernel @e1_other<C> (%in: [C, C, C]) -> [C, C, C] {
  %a = kas.dag.transpose %in dims [0, 1] : [C, C, C]
  %b = kas.dag.transpose %a dims [1, 2] : [C, C, C]
  kas.dag.output %b : [C, C, C]
}

// CHECK-LABEL: kas.kernel @e2_reorder
// CHECK-NEXT:    (%[[IN:.*]]: [C | H])
// CHECK-NEXT:    kas.dag.output %[[IN]]
kas.kernel @e2_reorder<C, H> (%in: [C | H]) -> [C | H] {
  %a = kas.dag.reorder %in dim 1 inverse : [C | H]
  %b = kas.dag.reorder %a dim 1 : [C | H]
  kas.dag.output %b : [C | H]
}

// CHECK-LABEL: kas.kernel @e2_two
// CHECK-NEXT:    (%[[IN:.*]]: [2])
// CHECK-NEXT:    kas.dag.output %[[IN]]
kas.kernel @e2_two(%in: [2]) -> [2] {
  %a = kas.dag.reorder %in dim 0 : [2]
  kas.dag.output %a : [2]
}

// Twice the same is not nothing, nor is another dimension.
// CHECK-LABEL: kas.kernel @e2_other
// CHECK-COUNT-3: kas.dag.reorder
kas.kernel @e2_other<C, H> (%in: [C | H]) -> [C | H] {
  %a = kas.dag.reorder %in dim 1 : [C | H]
  %b = kas.dag.reorder %a dim 1 : [C | H]
  %c = kas.dag.reorder %b dim 0 inverse : [C | H]
  kas.dag.output %c : [C | H]
}

// CHECK-LABEL: kas.kernel @e3_shift
// CHECK-NEXT:    (%[[IN:.*]]: [C | H, 5])
// CHECK-NEXT:    %[[A:.*]] = kas.dag.shift %[[IN]] dim 1 by -1
// CHECK-NEXT:    %[[B:.*]] = kas.dag.shift %[[A]] dim 2 by 2
// CHECK-NEXT:    kas.dag.output %[[B]]
kas.kernel @e3_shift<C, H> (%in: [C | H, 5]) -> [C | H, 5] {
  %a = kas.dag.shift %in dim 1 by 2 : [C | H, 5]
  %b = kas.dag.shift %a dim 1 by -3 : [C | H, 5]
  %c = kas.dag.shift %b dim 2 by 3 : [C | H, 5]
  %d = kas.dag.shift %c dim 2 by 4 : [C | H, 5]
  kas.dag.output %d : [C | H, 5]
}

// CHECK-LABEL: kas.kernel @e3_back
// CHECK-NEXT:    (%[[IN:.*]]: [C])
// CHECK-NEXT:    kas.dag.output %[[IN]]
kas.kernel @e3_back<C> (%in: [C]) -> [C] {
  %a = kas.dag.shift %in dim 0 by 1 : [C]
  %b = kas.dag.shift %a dim 0 by -1 : [C]
  kas.dag.output %b : [C]
}

// Nothing is left after causal shifts by the size together, and one that is not
// causal brings other elements back.
// CHECK-LABEL: kas.kernel @e3_causal
// CHECK-NEXT:    (%[[IN:.*]]: [C | 5])
// CHECK-NEXT:    %[[A:.*]] = kas.dag.shift %[[IN]] dim 1 by -3 causal
// CHECK-NEXT:    %[[B:.*]] = kas.dag.shift %[[A]] dim 1 by -2 causal
// CHECK-NEXT:    %[[C:.*]] = kas.dag.shift %[[B]] dim 1 by 1 :
// CHECK-NEXT:    kas.dag.output %[[C]]
kas.kernel @e3_causal<C> (%in: [C | 5]) -> [C | 5] {
  %a = kas.dag.shift %in dim 1 by -1 causal : [C | 5]
  %b = kas.dag.shift %a dim 1 by -2 causal : [C | 5]
  %c = kas.dag.shift %b dim 1 by -2 causal : [C | 5]
  %d = kas.dag.shift %c dim 1 by 1 : [C | 5]
  kas.dag.output %d : [C | 5]
}

// C may be 3, where a shift by 4 is none (D4).
// CHECK-LABEL: kas.kernel @e3_unknown
// CHECK-COUNT-2: kas.dag.shift %{{.*}} dim 0 by 2
kas.kernel @e3_unknown<C> (%in: [C]) -> [C] {
  %a = kas.dag.shift %in dim 0 by 2 : [C]
  %b = kas.dag.shift %a dim 0 by 2 : [C]
  kas.dag.output %b : [C]
}

// CHECK-LABEL: kas.kernel @e4_shuffle
// CHECK-NEXT:    (%[[IN:.*]]: [C])
// CHECK-NEXT:    kas.dag.output %[[IN]]
kas.kernel @e4_shuffle<C | G> where [G divides C] (%in: [C]) -> [C] {
  %a = kas.dag.shuffle %in dim 0 by G : [C]
  %b = kas.dag.shuffle %a dim 0 by C/G : [C]
  %c = kas.dag.shuffle %b dim 0 by 1 : [C]
  %d = kas.dag.shuffle %c dim 0 by C : [C]
  kas.dag.output %d : [C]
}

// CHECK-LABEL: kas.kernel @e4_twice
// CHECK-COUNT-2: kas.dag.shuffle
kas.kernel @e4_twice<C | G> where [G divides C] (%in: [C]) -> [C] {
  %a = kas.dag.shuffle %in dim 0 by G : [C]
  %b = kas.dag.shuffle %a dim 0 by G : [C]
  kas.dag.output %b : [C]
}

// CHECK-LABEL: kas.kernel @e5_group
// CHECK-NEXT:    (%[[IN:.*]]: [C | H])
// CHECK-NEXT:    %[[A:.*]] = kas.dag.group_all %[[IN]] : [C | H]
// CHECK-NEXT:    %[[B:.*]] = kas.dag.fc %[[A]] groups 1 to C
// CHECK-NEXT:    kas.dag.output %[[B]] : [C | H]
kas.kernel @e5_group<C, H | G> where [G divides C] (%in: [C | H]) -> [C | H] {
  %a = kas.dag.group %in dim 0 by G : [C | H]
  %b = kas.dag.group_all %a : [G, C/G | H]
  %c = kas.dag.group_all %b : [C, 1 | H]
  %d = kas.dag.fc %c groups 1 to C : [C, 1 | H]
  %e = kas.dag.group %d dim 0 by G : [C | H]
  kas.dag.output %e : [G, C/G | H]
}

// A layer sees its groups.
// CHECK-LABEL: kas.kernel @e5_layer
// CHECK:         kas.dag.group %
// CHECK-NEXT:    kas.dag.fc %{{.*}} groups 1
kas.kernel @e5_layer<C, H | G> where [G divides C] (%in: [C | H]) -> [C | H] {
  %a = kas.dag.group %in dim 0 by G : [C | H]
  %b = kas.dag.fc %a groups 1 to C : [G, C/G | H]
  kas.dag.output %b : [C | H]
}

// CHECK-LABEL: kas.kernel @e6_amplify
// CHECK-NOT:     kas.dag.amplify
// CHECK:         kas.dag.group %{{.*}} dim 0 by A : [A*C]
kas.kernel @e6_amplify<C | A> (%in: [A*C]) -> [A*C] {
  %a = kas.dag.amplify %in by A of C : [A*C]
  %b = kas.dag.fc %a groups 1 to A*C : [A, C]
  kas.dag.output %b : [A*C]
}

// CHECK-LABEL: kas.kernel @e6_repeats
// CHECK:         kas.dag.amplify
kas.kernel @e6_repeats<C | A> (%in: [C]) -> [A*C] {
  %a = kas.dag.amplify %in by A of C : [C]
  kas.dag.output %a : [A, C]
}

// CHECK-LABEL: kas.kernel @e7_e8_convolution
// CHECK-NEXT:    (%[[IN:.*]]: [C | H, W])
// CHECK-NEXT:    %[[A:.*]] = kas.dag.group %[[IN]] dim 0 by G : [C | H, W]
// CHECK-NEXT:    %[[B:.*]] = kas.dag.conv %[[A]] groups 1 dims [3, 2] by [l, k] dilation 2 to C : [G, C/G | H, W]
// CHECK-NEXT:    kas.dag.output %[[B]]
kas.kernel @e7_e8_convolution<C, H, W | G, k, l> where [G divides C] (%in: [C | H, W]) -> [C | H, W] {
  %a = kas.dag.unfold %in dims [2, 1] by [l, k] dilation 2 : [C | H, W]
  %b = kas.dag.group %a dim 0 by G : [C, l, k | H, W]
  %c = kas.dag.fc %b groups 1 to C : [G, C/G, l, k | H, W]
  kas.dag.output %c : [C | H, W]
}

// Windows that something else reads, groups of a window, a function between.
// CHECK-LABEL: kas.kernel @e7_e8_other
// CHECK:         kas.dag.unfold
// CHECK-NEXT:    kas.dag.group
// CHECK-NEXT:    kas.dag.fc
// CHECK-NEXT:    kas.dag.fold
// CHECK:         kas.dag.unfold
// CHECK-NEXT:    kas.dag.fc %{{.*}} groups 2
// CHECK-NEXT:    kas.dag.unfold
// CHECK-NEXT:    kas.dag.unary
// CHECK-NEXT:    kas.dag.fc
kas.kernel @e7_e8_other<C, H | G> where [G divides C] (%in: [C | H]) -> [C | H] {
  %a = kas.dag.unfold %in dims [1] by [3] : [C | H]
  %b = kas.dag.group %a dim 0 by G : [C, 3 | H]
  %c = kas.dag.fc %b groups 1 to C : [G, C/G, 3 | H]
  %d = kas.dag.fold sum %a dims [1] : [C, 3 | H]
  %e = kas.dag.broadcast add %c, %d common [2, 0] : [C | H], [C | H]
  %f = kas.dag.unfold %e dims [1] by [3] : [C | H]
  %g = kas.dag.fc %f groups 2 to 3*C : [C, 3 | H]
  %h = kas.dag.unfold %g dims [1] by [3] : [3*C | H]
  %i = kas.dag.unary relu %h : [3*C, 3 | H]
  %j = kas.dag.fc %i to C : [3*C, 3 | H]
  kas.dag.output %j : [C | H]
}

// CHECK-LABEL: kas.kernel @e9_functions
// CHECK-NEXT:    (%[[IN:.*]]: [C])
// CHECK-NEXT:    %[[A:.*]] = kas.dag.unary relu %[[IN]]
// CHECK-NEXT:    %[[B:.*]] = kas.dag.unary tanh %[[A]]
// CHECK-NEXT:    %[[C:.*]] = kas.dag.unary sqr %[[B]]
// CHECK-NEXT:    kas.dag.output %[[C]]
kas.kernel @e9_functions<C> (%in: [C]) -> [C] {
  %a = kas.dag.unary relu %in : [C]
  %b = kas.dag.unary relu %a : [C]
  %c = kas.dag.unary abs %b : [C]
  %d = kas.dag.unary tanh %c : [C]
  %e = kas.dag.unary neg %d : [C]
  %f = kas.dag.unary neg %e : [C]
  %g = kas.dag.unary sqr %f : [C]
  %h = kas.dag.unary relu %g : [C]
  kas.dag.output %h : [C]
}

// CHECK-LABEL: kas.kernel @e9_softmax
// CHECK-NEXT:    (%[[IN:.*]]: [C])
// CHECK-NEXT:    %[[A:.*]] = kas.dag.softmax
// CHECK-NEXT:    kas.dag.output %[[A]]
kas.kernel @e9_softmax<C> (%in: [C]) -> [C] {
  %a = kas.dag.softmax %in dims [0] : [C]
  %b = kas.dag.unary relu %a : [C]
  kas.dag.output %b : [C]
}

// What is below may be negative, or a function is not its own inverse.
// CHECK-LABEL: kas.kernel @e9_other
// CHECK-NEXT:    (%
// CHECK-NEXT:    kas.dag.unary tanh
// CHECK-NEXT:    kas.dag.unary relu
// CHECK-NEXT:    kas.dag.unary sqr
// CHECK-NEXT:    kas.dag.unary sqr
// CHECK-NEXT:    kas.dag.unary neg
// CHECK-NEXT:    kas.dag.unary relu
kas.kernel @e9_other<C> (%in: [C]) -> [C] {
  %a = kas.dag.unary tanh %in : [C]
  %b = kas.dag.unary relu %a : [C]
  %c = kas.dag.unary sqr %b : [C]
  %d = kas.dag.unary sqr %c : [C]
  %e = kas.dag.unary neg %d : [C]
  %f = kas.dag.unary relu %e : [C]
  kas.dag.output %f : [C]
}

// CHECK-LABEL: kas.kernel @e10_signs
// CHECK-NEXT:    (%[[IN:.*]]: [C])
// CHECK-NEXT:    %[[A:.*]] = kas.dag.unary sqrt %[[IN]]
// CHECK-NEXT:    kas.dag.output %[[A]]
kas.kernel @e10_signs<C> (%in: [C]) -> [C] {
  %a = kas.dag.unary neg %in : [C]
  %b = kas.dag.unary abs %a : [C]
  %c = kas.dag.unary sqrt %b : [C]
  kas.dag.output %c : [C]
}

// CHECK-LABEL: kas.kernel @e10_other
// CHECK:         kas.dag.unary neg
// CHECK-NEXT:    kas.dag.unary exp
kas.kernel @e10_other<C> (%in: [C]) -> [C] {
  %a = kas.dag.unary neg %in : [C]
  %b = kas.dag.unary exp %a : [C]
  kas.dag.output %b : [C]
}

// CHECK-LABEL: kas.kernel @e11_folds
// CHECK-NEXT:    (%[[IN:.*]]: [A, 1, B | H, W])
// CHECK-NEXT:    %[[A:.*]] = kas.dag.fold mean %[[IN]] dims [0, 2, 4] : [A, 1, B | H, W]
// CHECK-NEXT:    %[[B:.*]] = kas.dag.fold sum %[[A]] dims [0] : [1 | H]
// CHECK-NEXT:    %[[C:.*]] = kas.dag.pool max %[[B]] dims [0] by [s*t] : [| H]
// CHECK-NEXT:    kas.dag.output %[[C]]
kas.kernel @e11_folds<A, B, H, W | s, t> where [s*t divides H] (%in: [A, 1, B | H, W]) -> [| H/(s*t)] {
  %a = kas.dag.fold mean %in dims [4, 0] : [A, 1, B | H, W]
  %b = kas.dag.fold mean %a dims [1] : [1, B | H]
  %c = kas.dag.fold max %b dims [0] : [1 | H]
  %d = kas.dag.pool max %c dims [0] by [s*t] : [| H]
  %e = kas.dag.pool max %d dims [0] by [1] : [| H/(s*t)]
  kas.dag.output %e : [| H/(s*t)]
}

// CHECK-LABEL: kas.kernel @e11_pools
// CHECK:         kas.dag.pool mean %{{.*}} dims [0] by [6] : [| 12]
// CHECK-NEXT:    kas.dag.output
kas.kernel @e11_pools(%in: [| 12]) -> [| 2] {
  %a = kas.dag.pool mean %in dims [0] by [2] : [| 12]
  %b = kas.dag.pool mean %a dims [0] by [3] : [| 6]
  kas.dag.output %b : [| 2]
}

// CHECK-LABEL: kas.kernel @e11_other
// CHECK:         kas.dag.fold sum
// CHECK-NEXT:    kas.dag.fold max
// CHECK-NEXT:    kas.dag.pool sum
// CHECK-NEXT:    kas.dag.pool max
kas.kernel @e11_other<A, B> (%in: [A, B | 12]) -> [| 2] {
  %a = kas.dag.fold sum %in dims [0] : [A, B | 12]
  %b = kas.dag.fold max %a dims [0] : [B | 12]
  %c = kas.dag.pool sum %b dims [0] by [2] : [| 12]
  %d = kas.dag.pool max %c dims [0] by [3] : [| 6]
  kas.dag.output %d : [| 2]
}

// CHECK-LABEL: kas.kernel @e12_order
// CHECK-NEXT:    (%[[IN:.*]]: [C | H])
// CHECK-NEXT:    %[[A:.*]] = kas.dag.unary tanh %[[IN]]
// CHECK-NEXT:    %[[B:.*]] = kas.dag.broadcast add %[[IN]], %[[A]] common [2, 0]
// CHECK-NEXT:    kas.dag.output %[[B]]
kas.kernel @e12_order<C, H> (%in: [C | H]) -> [C | H] {
  %a = kas.dag.unary tanh %in : [C | H]
  %b = kas.dag.broadcast add %a, %in common [0, 0] : [C | H], [C | H]
  %c = kas.dag.broadcast max %b, %b common [0, 2] : [C | H], [C | H]
  kas.dag.output %c : [C | H]
}

// A difference has an order, and so have tensors of different shapes.
// CHECK-LABEL: kas.kernel @e12_other
// CHECK-NEXT:    (%[[IN:.*]]: [C | H])
// CHECK-NEXT:    %[[A:.*]] = kas.dag.unary tanh %[[IN]]
// CHECK-NEXT:    %[[B:.*]] = kas.dag.broadcast sub %[[A]], %[[IN]]
// CHECK-NEXT:    %[[C:.*]] = kas.dag.fold sum
// CHECK-NEXT:    %[[D:.*]] = kas.dag.broadcast mul %[[C]], %[[A]]
// CHECK-NEXT:    kas.dag.broadcast add %[[D]], %[[D]]
kas.kernel @e12_other<C, H> (%in: [C | H]) -> [C | H] {
  %a = kas.dag.unary tanh %in : [C | H]
  %b = kas.dag.broadcast sub %a, %in common [2, 0] : [C | H], [C | H]
  %c = kas.dag.fold sum %b dims [1] : [C | H]
  %d = kas.dag.broadcast mul %c, %a common [1, 0] : [C], [C | H]
  %e = kas.dag.broadcast add %d, %d common [2, 0] : [C | H], [C | H]
  kas.dag.output %e : [C | H]
}

// Steps that nothing reads go, unless they have a weight, which callers pass.
// CHECK-LABEL: kas.kernel @unread
// CHECK-NEXT:    (%[[IN:.*]]: [C | H])
// CHECK-NEXT:    kas.dag.fc
// CHECK-NEXT:    kas.dag.output %[[IN]]
kas.kernel @unread<C, H> (%in: [C | H]) -> [C | H] {
  %a = kas.dag.fc %in to C : [C | H]
  %b = kas.dag.unary relu %a : [C | H]
  kas.dag.output %in : [C | H]
}
