// RUN: kas-opt %s -kas-canonicalize | FileCheck %s
// RUN: kas-opt %s -kas-canonicalize -kas-canonicalize | FileCheck %s

// R1
// CHECK-LABEL: @split_of_merge
// CHECK-NEXT:    kas.yield data(%o)
kas.operator @split_of_merge<N | b>(%i: N) from [N] {
  %q, %r = kas.merge %i by b : N
  %t = kas.split %q, %r : N/b, b
  kas.yield data(%t)
}

// CHECK-LABEL: @split_of_swapped_merge
// CHECK-NEXT:    kas.merge
// CHECK-NEXT:    kas.split
kas.operator @split_of_swapped_merge<N | b>(%i: N) from [N] {
  %q, %r = kas.merge %i by b : N
  %t = kas.split %r, %q : b, N/b
  kas.yield data(%t)
}

// R2
// CHECK-LABEL: @merge_of_split
// CHECK-NEXT:    kas.yield data(%o, %o_0)
kas.operator @merge_of_split<N | b>(%i: N, %j: b) from [N, b] {
  %t = kas.split %i, %j : N, b
  %q, %r = kas.merge %t by b : N*b
  kas.yield data(%q, %r)
}

// CHECK-LABEL: @merge_of_split_by_other_block
// CHECK-NEXT:    kas.split
// CHECK-NEXT:    kas.merge
kas.operator @merge_of_split_by_other_block<N | b>(%i: N, %j: b) from [b, N] {
  %t = kas.split %i, %j : N, b
  %q, %r = kas.merge %t by N : N*b
  kas.yield data(%q, %r)
}

// R3
// CHECK-LABEL: @shift_of_shift
// CHECK-NEXT:    kas.shift %o by 3 : N
// CHECK-NEXT:    kas.yield
kas.operator @shift_of_shift<N>(%i: N) from [N] {
  %a = kas.shift %i by 5 : N
  %b = kas.shift %a by -2 : N
  kas.yield data(%b)
}

// CHECK-LABEL: @shift_and_back
// CHECK-NEXT:    kas.yield data(%o)
kas.operator @shift_and_back<N>(%i: N) from [N] {
  %a = kas.shift %i by 5 : N
  %b = kas.shift %a by -5 : N
  kas.yield data(%b)
}

// CHECK-LABEL: @shift_of_shift_may_overflow
// CHECK-NEXT:    kas.shift
// CHECK-NEXT:    kas.shift
kas.operator @shift_of_shift_may_overflow<N>(%i: N) from [N] {
  %a = kas.shift %i by 5 : N
  %b = kas.shift %a by 5 : N
  kas.yield data(%b)
}

// CHECK-LABEL: @concrete_shift_of_shift
// CHECK-NEXT:    kas.shift %o by 3 : 7
// CHECK-NEXT:    kas.yield
kas.operator @concrete_shift_of_shift(%i: 7) from [7] {
  %a = kas.shift %i by 5 : 7
  %b = kas.shift %a by 5 : 7
  kas.yield data(%b)
}

// R4
// CHECK-LABEL: @negative_shift
// CHECK-NEXT:    kas.shift %o by 5 : 7
// CHECK-NEXT:    kas.yield
kas.operator @negative_shift(%i: 7) from [7] {
  %a = kas.shift %i by -2 : 7
  kas.yield data(%a)
}

// CHECK-LABEL: @negative_shift_of_symbolic_size
// CHECK-NEXT:    kas.shift %o by -2 : N
kas.operator @negative_shift_of_symbolic_size<N>(%i: N) from [N] {
  %a = kas.shift %i by -2 : N
  kas.yield data(%a)
}

// R5
// CHECK-LABEL: @shift_of_reduce
// CHECK-NEXT:    %[[R:.*]] = kas.reduce sum : N
// CHECK-NEXT:    kas.yield data(%[[R]])
kas.operator @shift_of_reduce<N>() from [N] {
  %r = kas.reduce sum : N
  %a = kas.shift %r by 1 : N
  kas.yield data(%a)
}

// A weight sees the unshifted reduction.
// CHECK-LABEL: @shift_of_shared_reduce
// CHECK:         kas.shift
kas.operator @shift_of_shared_reduce<N>() from [N] {
  %r = kas.reduce sum : N
  %d, %w = kas.share %r : N
  %a = kas.shift %d by 1 : N
  kas.yield data(%a) weight(%w)
}

// R6
// CHECK-LABEL: @stride_of_stride
// CHECK-NEXT:    kas.stride %o by a*b : N
// CHECK-NEXT:    kas.yield
kas.operator @stride_of_stride<N | a, b>(%i: N) from [N*a*b] {
  %s = kas.stride %i by a : N
  %t = kas.stride %s by b : N*a
  kas.yield data(%t)
}

// CHECK-LABEL: @stride_by_one
// CHECK-NEXT:    kas.yield data(%o)
kas.operator @stride_by_one<N>(%i: N) from [N] {
  %s = kas.stride %i by 1 : N
  kas.yield data(%s)
}

// CHECK-LABEL: @stride_of_other
// CHECK-NEXT:    kas.shift
// CHECK-NEXT:    kas.stride
kas.operator @stride_of_other<N | a>(%i: N) from [N*a] {
  %s = kas.shift %i by 1 : N
  %t = kas.stride %s by a : N
  kas.yield data(%t)
}

// R7, R9 for a reduction over one
// CHECK-LABEL: @split_of_one
// CHECK-NEXT:    kas.yield data(%o)
kas.operator @split_of_one<N>(%i: N) from [N] {
  %one = kas.reduce sum : 1
  %t = kas.split %one, %i : 1, N
  kas.yield data(%t)
}

// CHECK-LABEL: @split_with_inner_one
// CHECK-NEXT:    kas.expand %o_0 : 1
// CHECK-NEXT:    kas.yield data(%o)
kas.operator @split_with_inner_one<N>(%i: N, %one: 1) from [N] {
  %t = kas.split %i, %one : N, 1
  kas.yield data(%t)
}

// CHECK-LABEL: @split_of_many
// CHECK-NEXT:    kas.split
kas.operator @split_of_many<N>(%i: N, %j: 2) from [2*N] {
  %t = kas.split %i, %j : N, 2
  kas.yield data(%t)
}

// R8
// CHECK-LABEL: @unfold_of_one
// CHECK-NEXT:    kas.yield data(%o)
kas.operator @unfold_of_one<N>(%i: N) from [N] {
  %one = kas.reduce mean : 1
  %t = kas.unfold %i, %one : N, 1
  kas.yield data(%t)
}

// CHECK-LABEL: @unfold_of_three
// CHECK:         kas.unfold
kas.operator @unfold_of_three<N>(%i: N) from [N] {
  %k = kas.reduce mean : 3
  %t = kas.unfold %i, %k : N, 3
  kas.yield data(%t)
}

// R9
// CHECK-LABEL: @expand_of_views
// CHECK-DAG:     kas.expand %o : N
// CHECK-DAG:     kas.expand %o_0 : M
// CHECK-NOT:     kas.split
// CHECK:         kas.yield data(%o_1)
kas.operator @expand_of_views<N, M | a>(%i: N, %j: M, %k: N) from [N] {
  %t = kas.stride %i by a : N
  %s = kas.split %t, %j : N*a, M
  %u = kas.shift %s by 1 : M*N*a
  kas.expand %u : M*N*a
  kas.yield data(%k)
}

// The clipping counts, whoever reads the result.
// CHECK-LABEL: @expand_of_unfold
// CHECK:         kas.unfold
// CHECK-NEXT:    kas.expand
kas.operator @expand_of_unfold<N, M>(%i: N, %k: M) from [M] {
  %j = kas.reduce sum : 3
  %j_d, %j_w = kas.share %j : 3
  %u = kas.unfold %i, %j_d : N, 3
  kas.expand %u : N
  kas.yield data(%k) weight(%j_w)
}

// R10
// CHECK-LABEL: @expand_of_merge
// CHECK-NEXT:    kas.expand %o : N
// CHECK-NEXT:    kas.yield data(%o_0)
kas.operator @expand_of_merge<N, M | b>(%i: N, %j: M) from [M] {
  %q, %r = kas.merge %i by b : N
  kas.expand %r : b
  kas.expand %q : N/b
  kas.yield data(%j)
}

// CHECK-LABEL: @expand_of_half_a_merge
// CHECK-NEXT:    kas.merge
// CHECK-NEXT:    kas.expand
kas.operator @expand_of_half_a_merge<N | b>(%i: N) from [N/b] {
  %q, %r = kas.merge %i by b : N
  kas.expand %r : b
  kas.yield data(%q)
}

// R11
// CHECK-LABEL: @share_of_expanded
// CHECK-NEXT:    kas.yield data(%o_0) weight(%o)
kas.operator @share_of_expanded<N, M>(%i: N, %j: M) from [M] {
  %d, %w = kas.share %i : N
  kas.expand %d : N
  kas.yield data(%j) weight(%w)
}

// CHECK-LABEL: @share_of_used
// CHECK-NEXT:    kas.share
kas.operator @share_of_used<N>(%i: N) from [N] {
  %d, %w = kas.share %i : N
  kas.yield data(%d) weight(%w)
}

// R12
// CHECK-LABEL: @merge_of_reduce
// CHECK-NEXT:    %[[Q:.*]] = kas.reduce mean : N/b
// CHECK-NEXT:    %[[R:.*]] = kas.reduce mean : b
// CHECK-NEXT:    kas.yield data(%[[Q]], %[[R]])
kas.operator @merge_of_reduce<N | b>() from [N/b, b] {
  %i = kas.reduce mean : N
  %q, %r = kas.merge %i by b : N
  kas.yield data(%q, %r)
}

// R13
// CHECK-LABEL: @split_of_reduces
// CHECK-NEXT:    %[[R:.*]] = kas.reduce max : N*b
// CHECK-NEXT:    kas.yield data(%[[R]])
kas.operator @split_of_reduces<N | b>() from [N*b] {
  %i = kas.reduce max : N
  %j = kas.reduce max : b
  %t = kas.split %j, %i : b, N
  kas.yield data(%t)
}

// CHECK-LABEL: @split_of_reduces_around_sum
// CHECK-NEXT:    kas.reduce mean : M
// CHECK-NEXT:    %[[R:.*]] = kas.reduce sum : N*b
// CHECK-NEXT:    kas.yield data(%[[R]], %{{.*}})
kas.operator @split_of_reduces_around_sum<N, M | b>() from [N*b, M] {
  %i = kas.reduce sum : N
  %m = kas.reduce mean : M
  %j = kas.reduce sum : b
  %t = kas.split %i, %j : N, b
  kas.yield data(%t, %m)
}

// CHECK-LABEL: @split_of_reduces_around_max
// CHECK:         kas.split
kas.operator @split_of_reduces_around_max<N, M | b>() from [N*b, M] {
  %i = kas.reduce sum : N
  %m = kas.reduce max : M
  %j = kas.reduce sum : b
  %t = kas.split %i, %j : N, b
  kas.yield data(%t, %m)
}

// CHECK-LABEL: @split_of_unequal_reduces
// CHECK:         kas.split
kas.operator @split_of_unequal_reduces<N | b>() from [N*b] {
  %i = kas.reduce sum : N
  %j = kas.reduce mean : b
  %t = kas.split %i, %j : N, b
  kas.yield data(%t)
}

// C11 holds afterwards: a sum that only an expand would be left of is kept where
// it is, because it multiplies by its size.

// R2
// CHECK-LABEL: @merge_of_split_keeps_sum
// CHECK:         %[[S:.*]] = kas.split
// CHECK-NEXT:    kas.merge %[[S]]
kas.operator @merge_of_split_keeps_sum<N | k>(%i: N) from [N] {
  %r = kas.reduce sum : k
  %x = kas.stride %r by k : k
  %s = kas.split %i, %x : N, k**2
  %q, %m = kas.merge %s by k**2 : N*k**2
  kas.expand %m : k**2
  kas.yield data(%q)
}

// R7
// CHECK-LABEL: @split_of_one_keeps_sum
// CHECK:         %[[Q:.*]], %{{.*}} = kas.merge
// CHECK-NEXT:    kas.expand
// CHECK-NEXT:    kas.split %[[Q]]
kas.operator @split_of_one_keeps_sum<N>(%i: N) from [N] {
  %r = kas.reduce sum : 3
  %q, %m = kas.merge %r by 3 : 3
  kas.expand %m : 3
  %s = kas.split %q, %i : 1, N
  kas.yield data(%s)
}

// R8
// CHECK-LABEL: @unfold_of_one_keeps_sum
// CHECK:         %[[Q:.*]], %{{.*}} = kas.merge
// CHECK-NEXT:    kas.expand
// CHECK-NEXT:    kas.unfold %{{.*}}, %[[Q]]
kas.operator @unfold_of_one_keeps_sum<N>(%i: N) from [N] {
  %r = kas.reduce sum : 3
  %q, %m = kas.merge %r by 3 : 3
  kas.expand %m : 3
  %s = kas.unfold %i, %q : N, 1
  kas.yield data(%s)
}

// R12
// CHECK-LABEL: @merge_of_reduce_keeps_sum
// CHECK-NEXT:    kas.reduce sum : N
// CHECK-NEXT:    kas.merge
kas.operator @merge_of_reduce_keeps_sum<N | b>() from [N/b] {
  %i = kas.reduce sum : N
  %q, %r = kas.merge %i by b : N
  kas.expand %r : b
  kas.yield data(%q)
}

// R2: an unfold that is dropped keeps its window, so the maximum stays, too.
// CHECK-LABEL: @merge_of_split_keeps_max_in_window
// CHECK:         %[[S:.*]] = kas.split
// CHECK-NEXT:    %[[Q:.*]], %[[R:.*]] = kas.merge %[[S]]
// CHECK-NEXT:    kas.unfold %{{.*}}, %[[R]]
kas.operator @merge_of_split_keeps_max_in_window<N | k>(%i: N, %j: N) from [N] {
  %r = kas.reduce max : k
  %s = kas.split %i, %r : N, k
  %q, %m = kas.merge %s by k : N*k
  %u = kas.unfold %j, %m : N, k
  kas.expand %u : N
  kas.yield data(%q)
}

// R9, R2: a mean and a maximum of equal terms are the term.
// CHECK-LABEL: @merge_of_split_drops_mean
// CHECK-NEXT:    kas.yield data(%o)
kas.operator @merge_of_split_drops_mean<N | k>(%i: N) from [N] {
  %r = kas.reduce mean : k
  %s = kas.split %i, %r : N, k
  %q, %m = kas.merge %s by k : N*k
  kas.expand %m : k
  kas.yield data(%q)
}

// CHECK-LABEL: @merge_of_split_drops_max
// CHECK-NEXT:    kas.yield data(%o)
kas.operator @merge_of_split_drops_max<N | k>(%i: N) from [N] {
  %r = kas.reduce max : k
  %s = kas.split %i, %r : N, k
  %q, %m = kas.merge %s by k : N*k
  kas.expand %m : k
  kas.yield data(%q)
}
