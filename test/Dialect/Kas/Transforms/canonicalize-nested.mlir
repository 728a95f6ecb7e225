// RUN: kas-opt %s -kas-canonicalize | FileCheck %s
// RUN: kas-opt %s -kas-canonicalize -kas-canonicalize | FileCheck %s

// R1 beside a third coordinate
// CHECK-LABEL: @split_of_merge_and_other
// CHECK-NEXT:    %[[S:.*]] = kas.split %o, %o_0 : N, M
// CHECK-NEXT:    kas.yield data(%[[S]])
kas.operator @split_of_merge_and_other<N, M | b>(%i: N, %j: M) from [M*N] {
  %q, %r = kas.merge %i by b : N
  %t = kas.split %r, %j : b, M
  %u = kas.split %q, %t : N/b, M*b
  kas.yield data(%u)
}

// CHECK-LABEL: @split_of_merge_around_other
// CHECK-NEXT:    kas.merge
// CHECK-NEXT:    kas.split
// CHECK-NEXT:    kas.split
kas.operator @split_of_merge_around_other<N, M | b>(%i: N, %j: M) from [M*N] {
  %q, %r = kas.merge %i by b : N
  %t = kas.split %j, %r : M, b
  %u = kas.split %q, %t : N/b, M*b
  kas.yield data(%u)
}

// R2 of splits of splits
// CHECK-LABEL: @merge_of_nested_split
// CHECK-NEXT:    %[[Q:.*]] = kas.split %o, %o_0 : N, M/b
// CHECK-NEXT:    kas.yield data(%[[Q]], %o_1)
kas.operator @merge_of_nested_split<N, M | b, c>(%i: N, %j: M/b, %k: c) from [M*N/b, c] {
  %s = kas.split %j, %k : M/b, c
  %t = kas.split %i, %s : N, M*c/b
  %q, %r = kas.merge %t by c : M*N*c/b
  kas.yield data(%q, %r)
}

// CHECK-LABEL: @merge_of_nested_split_keeps_sum
// CHECK:         kas.split
// CHECK-NEXT:    kas.split
// CHECK-NEXT:    kas.merge
kas.operator @merge_of_nested_split_keeps_sum<N, M | b, c>(%j: M, %k: c) from [c] {
  %i = kas.reduce sum : N
  %s = kas.split %j, %k : M, c
  %t = kas.split %i, %s : N, M*c
  %q, %r = kas.merge %t by c : M*N*c
  kas.expand %q : M*N
  kas.yield data(%r)
}

// R13 beside a third coordinate
// CHECK-LABEL: @split_of_reduces_and_other
// CHECK-NEXT:    %[[R:.*]] = kas.reduce sum : N*b
// CHECK-NEXT:    %[[S:.*]] = kas.split %[[R]], %o
// CHECK-NEXT:    kas.yield data(%[[S]])
kas.operator @split_of_reduces_and_other<N, M | b>(%m: M) from [M*N*b] {
  %i = kas.reduce sum : N
  %j = kas.reduce sum : b
  %t = kas.split %j, %m : b, M
  %u = kas.split %i, %t : N, M*b
  kas.yield data(%u)
}

// CHECK-LABEL: @split_of_reduces_around_other
// CHECK:         kas.split
// CHECK-NEXT:    kas.split
kas.operator @split_of_reduces_around_other<N, M | b>(%m: M) from [M*N*b] {
  %i = kas.reduce sum : N
  %j = kas.reduce sum : b
  %t = kas.split %m, %j : M, b
  %u = kas.split %i, %t : N, M*b
  kas.yield data(%u)
}

// R14
// CHECK-LABEL: @split_of_split
// CHECK-NEXT:    %[[S:.*]] = kas.split %o_0, %o_1 : M, b
// CHECK-NEXT:    %[[T:.*]] = kas.split %o, %[[S]] : N, M*b
// CHECK-NEXT:    kas.yield data(%[[T]])
kas.operator @split_of_split<N, M | b>(%i: N, %j: M, %k: b) from [M*N*b] {
  %s = kas.split %i, %j : N, M
  %t = kas.split %s, %k : M*N, b
  kas.yield data(%t)
}

// CHECK-LABEL: @split_of_strided_split
// CHECK-NEXT:    %[[S:.*]] = kas.split %o, %o_0 : N, M
// CHECK-NEXT:    %[[T:.*]] = kas.stride %[[S]] by 2 : M*N
// CHECK-NEXT:    kas.split %[[T]], %o_1
kas.operator @split_of_strided_split<N, M | b>(%i: N, %j: M, %k: b) from [2*M*N*b] {
  %s = kas.split %i, %j : N, M
  %t = kas.stride %s by 2 : M*N
  %u = kas.split %t, %k : 2*M*N, b
  kas.yield data(%u)
}

// R15
// CHECK-LABEL: @merge_in_outer
// CHECK-NEXT:    %[[Q:.*]], %[[R:.*]] = kas.merge %o by 2 : N
// CHECK-NEXT:    %[[S:.*]] = kas.split %[[R]], %o_0 : 2, b
// CHECK-NEXT:    kas.yield data(%[[Q]], %[[S]])
kas.operator @merge_in_outer<N | b>(%i: N, %j: b) from [N/2, 2*b] {
  %t = kas.split %i, %j : N, b
  %q, %r = kas.merge %t by 2*b : N*b
  kas.yield data(%q, %r)
}

// CHECK-LABEL: @merge_in_inner
// CHECK-NEXT:    %[[Q:.*]], %[[R:.*]] = kas.merge %o_0 by b : M*b
// CHECK-NEXT:    %[[S:.*]] = kas.split %o, %[[Q]] : N, M
// CHECK-NEXT:    kas.yield data(%[[S]], %[[R]])
kas.operator @merge_in_inner<N, M | b>(%i: N, %j: M*b) from [M*N, b] {
  %t = kas.split %i, %j : N, M*b
  %q, %r = kas.merge %t by b : M*N*b
  kas.yield data(%q, %r)
}

// Neither divides the other.
// CHECK-LABEL: @merge_across_operands
// CHECK-NEXT:    kas.split
// CHECK-NEXT:    kas.merge
kas.operator @merge_across_operands<N | a, b>(%i: N, %j: b) from [N*b/a, a] {
  %t = kas.split %i, %j : N, b
  %q, %r = kas.merge %t by a : N*b
  kas.yield data(%q, %r)
}

// CHECK-LABEL: @merge_in_outer_keeps_sum
// CHECK:         kas.split
// CHECK-NEXT:    kas.merge
kas.operator @merge_in_outer_keeps_sum<N | b>(%i: N) from [N/2] {
  %j = kas.reduce sum : b
  %t = kas.split %i, %j : N, b
  %q, %r = kas.merge %t by 2*b : N*b
  kas.expand %r : 2*b
  kas.yield data(%q)
}

// R16
// CHECK-LABEL: @merge_of_quotient
// CHECK-NEXT:    %[[Q:.*]], %[[R:.*]] = kas.merge %o by a*b : N
// CHECK-NEXT:    %[[S:.*]], %[[T:.*]] = kas.merge %[[R]] by a : a*b
// CHECK-NEXT:    kas.yield data(%[[T]], %[[Q]], %[[S]])
kas.operator @merge_of_quotient<N | a, b>(%i: N) from [a, N/(a*b), b] {
  %q, %r = kas.merge %i by a : N
  %s, %t = kas.merge %q by b : N/a
  kas.yield data(%r, %s, %t)
}

// CHECK-LABEL: @merge_of_remainder
// CHECK-NEXT:    kas.merge %o by a*b : N
// CHECK-NEXT:    kas.merge %{{.*}} by a : a*b
// CHECK-NEXT:    kas.yield
kas.operator @merge_of_remainder<N | a, b>(%i: N) from [a, N/(a*b), b] {
  %q, %r = kas.merge %i by a*b : N
  %s, %t = kas.merge %r by a : a*b
  kas.yield data(%t, %q, %s)
}

// R17
// CHECK-LABEL: @expand_of_quotients
// CHECK-NEXT:    %[[Q:.*]], %[[R:.*]] = kas.merge %o by a : N
// CHECK-NEXT:    kas.expand %[[Q]] : N/a
// CHECK-NEXT:    kas.yield data(%[[R]])
kas.operator @expand_of_quotients<N | a, b>(%i: N) from [a] {
  %q, %r = kas.merge %i by a*b : N
  %s, %t = kas.merge %r by a : a*b
  kas.expand %q : N/(a*b)
  kas.expand %s : b
  kas.yield data(%t)
}

// CHECK-LABEL: @expand_of_quotient_and_remainder
// CHECK-NEXT:    kas.merge %o by a*b : N
// CHECK-NEXT:    kas.merge %{{.*}} by a : a*b
kas.operator @expand_of_quotient_and_remainder<N | a, b>(%i: N) from [b] {
  %q, %r = kas.merge %i by a*b : N
  %s, %t = kas.merge %r by a : a*b
  kas.expand %q : N/(a*b)
  kas.expand %t : a
  kas.yield data(%s)
}

// R18
// CHECK-LABEL: @split_of_shifted_quotient
// CHECK-NEXT:    %[[S:.*]] = kas.shift %o by -6 : N
// CHECK-NEXT:    kas.yield data(%[[S]])
kas.operator @split_of_shifted_quotient<N>(%i: N) from [N] {
  %q, %r = kas.merge %i by 3 : N
  %s = kas.shift %q by -2 : N/3
  %t = kas.split %s, %r : N/3, 3
  kas.yield data(%t)
}

// CHECK-LABEL: @split_of_shifted_remainder
// CHECK-NEXT:    kas.merge
// CHECK-NEXT:    kas.shift
// CHECK-NEXT:    kas.split
kas.operator @split_of_shifted_remainder<N>(%i: N) from [N] {
  %q, %r = kas.merge %i by 3 : N
  %s = kas.shift %r by 2 : 3
  %t = kas.split %q, %s : N/3, 3
  kas.yield data(%t)
}

// The size of the shift is no number.
// CHECK-LABEL: @split_of_shifted_quotient_by_symbol
// CHECK-NEXT:    kas.merge
// CHECK-NEXT:    kas.shift
// CHECK-NEXT:    kas.split
kas.operator @split_of_shifted_quotient_by_symbol<N | b>(%i: N) from [N] {
  %q, %r = kas.merge %i by b : N
  %s = kas.shift %q by 2 : N/b
  %t = kas.split %s, %r : N/b, b
  kas.yield data(%t)
}

// R19
// CHECK-LABEL: @shift_of_shifted_quotient
// CHECK-NEXT:    %[[I:.*]] = kas.shift %o by 1 : N
// CHECK-NEXT:    %[[Q:.*]], %[[R:.*]] = kas.merge %[[I]] by b : N
// CHECK-NEXT:    %[[S:.*]] = kas.shift %[[Q]] by 2 : N/b
// CHECK-NEXT:    %[[T:.*]] = kas.split %[[S]], %[[R]] : N/b, b
// CHECK-NEXT:    kas.yield data(%[[T]])
kas.operator @shift_of_shifted_quotient<N | b>(%i: N) from [N] {
  %q, %r = kas.merge %i by b : N
  %s = kas.shift %q by 2 : N/b
  %t = kas.split %s, %r : N/b, b
  %u = kas.shift %t by 1 : N
  kas.yield data(%u)
}

// CHECK-LABEL: @shift_of_swapped_quotient
// CHECK-NEXT:    kas.merge
// CHECK-NEXT:    kas.shift
// CHECK-NEXT:    kas.split
// CHECK-NEXT:    kas.shift
kas.operator @shift_of_swapped_quotient<N | b>(%i: N) from [N] {
  %q, %r = kas.merge %i by b : N
  %s = kas.shift %q by 2 : N/b
  %t = kas.split %r, %s : b, N/b
  %u = kas.shift %t by 1 : N
  kas.yield data(%u)
}

// R20
// CHECK-LABEL: @merge_of_shifted_split
// CHECK-NEXT:    %[[S:.*]] = kas.split %o, %o_0 : N, b
// CHECK-NEXT:    %[[T:.*]] = kas.shift %[[S]] by 1 : N*b
// CHECK-NEXT:    %[[Q:.*]], %[[R:.*]] = kas.merge %[[T]] by b : N*b
// CHECK-NEXT:    %[[U:.*]] = kas.shift %[[Q]] by 2 : N
// CHECK-NEXT:    kas.yield data(%[[U]], %[[R]])
kas.operator @merge_of_shifted_split<N | b>(%i: N, %j: b) from [N, b] {
  %s = kas.shift %i by 2 : N
  %t = kas.split %s, %j : N, b
  %u = kas.shift %t by 1 : N*b
  %q, %r = kas.merge %u by b : N*b
  kas.yield data(%q, %r)
}

// CHECK-LABEL: @merge_of_shifted_split_by_other_block
// CHECK-NEXT:    kas.shift
// CHECK-NEXT:    kas.split
// CHECK-NEXT:    kas.shift
// CHECK-NEXT:    kas.merge
kas.operator @merge_of_shifted_split_by_other_block<N | b>(%i: N, %j: b) from [b, N] {
  %s = kas.shift %i by 2 : N
  %t = kas.split %s, %j : N, b
  %u = kas.shift %t by 1 : N*b
  %q, %r = kas.merge %u by N : N*b
  kas.yield data(%q, %r)
}

// R21
// CHECK-LABEL: @merge_of_shift_by_blocks
// CHECK-NEXT:    %[[Q:.*]], %[[R:.*]] = kas.merge %o by 3 : N
// CHECK-NEXT:    %[[S:.*]] = kas.shift %[[Q]] by -2 : N/3
// CHECK-NEXT:    kas.yield data(%[[S]], %[[R]])
kas.operator @merge_of_shift_by_blocks<N>(%i: N) from [N/3, 3] {
  %s = kas.shift %i by -6 : N
  %q, %r = kas.merge %s by 3 : N
  kas.yield data(%q, %r)
}

// CHECK-LABEL: @merge_of_shift_by_less
// CHECK-NEXT:    kas.shift
// CHECK-NEXT:    kas.merge
kas.operator @merge_of_shift_by_less<N>(%i: N) from [N/3, 3] {
  %s = kas.shift %i by 4 : N
  %q, %r = kas.merge %s by 3 : N
  kas.yield data(%q, %r)
}

// R22
// CHECK-LABEL: @shift_of_reduce_split
// CHECK-NEXT:    %[[R:.*]] = kas.reduce sum : N
// CHECK-NEXT:    %[[J:.*]] = kas.shift %o by 1 : 3
// CHECK-NEXT:    %[[S:.*]] = kas.split %[[R]], %[[J]] : N, 3
// CHECK-NEXT:    kas.yield data(%[[S]])
kas.operator @shift_of_reduce_split<N>(%j: 3) from [3*N] {
  %r = kas.reduce sum : N
  %s = kas.split %r, %j : N, 3
  %t = kas.shift %s by 4 : 3*N
  kas.yield data(%t)
}

// A weight sees which point of the reduction it is.
// CHECK-LABEL: @shift_of_shared_reduce_split
// CHECK:         kas.split
// CHECK-NEXT:    kas.shift
kas.operator @shift_of_shared_reduce_split<N>(%j: 3) from [3*N] {
  %r = kas.reduce sum : N
  %d, %w = kas.share %r : N
  %s = kas.split %d, %j : N, 3
  %t = kas.shift %s by 4 : 3*N
  kas.yield data(%t) weight(%w)
}

// The maximum is over sums, in each of which the carry differs.
// CHECK-LABEL: @shift_of_max_split
// CHECK:         kas.split
// CHECK-NEXT:    kas.shift
kas.operator @shift_of_max_split<N>() from [3*N] {
  %r = kas.reduce max : N
  %j = kas.reduce sum : 3
  %s = kas.split %r, %j : N, 3
  %t = kas.shift %s by 4 : 3*N
  kas.yield data(%t)
}

// R23
// CHECK-LABEL: @remainder_of_shift
// CHECK-NEXT:    %[[Q:.*]], %[[R:.*]] = kas.merge %o by 3 : N
// CHECK-NEXT:    %[[S:.*]] = kas.shift %[[R]] by 2 : 3
// CHECK-NEXT:    kas.expand %[[Q]] : N/3
// CHECK-NEXT:    kas.yield data(%[[S]])
kas.operator @remainder_of_shift<N>(%i: N) from [3] {
  %s = kas.shift %i by -4 : N
  %q, %r = kas.merge %s by 3 : N
  kas.expand %q : N/3
  kas.yield data(%r)
}

// CHECK-LABEL: @quotient_of_shift
// CHECK-NEXT:    kas.shift
// CHECK-NEXT:    kas.merge
kas.operator @quotient_of_shift<N>(%i: N) from [N/3] {
  %s = kas.shift %i by -4 : N
  %q, %r = kas.merge %s by 3 : N
  kas.expand %r : 3
  kas.yield data(%q)
}

// R24
// CHECK-LABEL: @merge_of_shifted_stride
// CHECK-NEXT:    %[[I:.*]] = kas.shift %o by 2 : N*c
// CHECK-NEXT:    %[[Q:.*]], %[[R:.*]] = kas.merge %[[I]] by c : N*c
// CHECK-NEXT:    %[[T:.*]] = kas.stride %[[R]] by 3 : c
// CHECK-NEXT:    %[[S:.*]] = kas.shift %[[T]] by 1 : 3*c
// CHECK-NEXT:    kas.yield data(%[[Q]], %[[S]])
kas.operator @merge_of_shifted_stride<N | c>(%i: N*c) from [N, 3*c] {
  %t = kas.stride %i by 3 : N*c
  %s = kas.shift %t by 7 : 3*N*c
  %q, %r = kas.merge %s by 3*c : 3*N*c
  kas.yield data(%q, %r)
}

// CHECK-LABEL: @merge_of_stride
// CHECK-NEXT:    %[[Q:.*]], %[[R:.*]] = kas.merge %o by c : N*c
// CHECK-NEXT:    %[[T:.*]] = kas.stride %[[R]] by s : c
// CHECK-NEXT:    kas.yield data(%[[Q]], %[[T]])
kas.operator @merge_of_stride<N | c, s>(%i: N*c) from [N, c*s] {
  %t = kas.stride %i by s : N*c
  %q, %r = kas.merge %t by c*s : N*c*s
  kas.yield data(%q, %r)
}

// It carries where the stride is 1.
// CHECK-LABEL: @merge_of_shifted_symbolic_stride
// CHECK-NEXT:    kas.stride
// CHECK-NEXT:    kas.shift
// CHECK-NEXT:    kas.merge
kas.operator @merge_of_shifted_symbolic_stride<N | c, s>(%i: N*c) from [N, c*s] {
  %t = kas.stride %i by s : N*c
  %u = kas.shift %t by 1 : N*c*s
  %q, %r = kas.merge %u by c*s : N*c*s
  kas.yield data(%q, %r)
}

// Where N*c is 1, i cannot be shifted.
// CHECK-LABEL: @merge_of_backward_shift
// CHECK-NEXT:    kas.stride
// CHECK-NEXT:    kas.shift
// CHECK-NEXT:    kas.merge
kas.operator @merge_of_backward_shift<N | c>(%i: N*c) from [N, 3*c] {
  %t = kas.stride %i by 3 : N*c
  %s = kas.shift %t by -1 : 3*N*c
  %q, %r = kas.merge %s by 3*c : 3*N*c
  kas.yield data(%q, %r)
}

// R25
// CHECK-LABEL: @quotient_of_shifted_stride
// CHECK-NEXT:    kas.yield data(%o)
kas.operator @quotient_of_shifted_stride<N>(%i: N) from [N] {
  %t = kas.stride %i by 3 : N
  %s = kas.shift %t by 1 : 3*N
  %q, %r = kas.merge %s by 3 : 3*N
  kas.expand %r : 3
  kas.yield data(%q)
}

// CHECK-LABEL: @quotient_of_larger_stride
// CHECK-NEXT:    %[[T:.*]] = kas.stride %o by 2*s : N
// CHECK-NEXT:    %[[S:.*]] = kas.shift %[[T]] by -2 : 2*N*s
// CHECK-NEXT:    kas.yield data(%[[S]])
kas.operator @quotient_of_larger_stride<N | s>(%i: N) from [2*N*s] {
  %t = kas.stride %i by 6*s : N
  %u = kas.shift %t by -6 : 6*N*s
  %q, %r = kas.merge %u by 3 : 6*N*s
  kas.expand %r : 3
  kas.yield data(%q)
}

// CHECK-LABEL: @quotient_of_stride
// CHECK-NEXT:    kas.yield data(%o)
kas.operator @quotient_of_stride<N | s>(%i: N) from [N] {
  %t = kas.stride %i by s : N
  %q, %r = kas.merge %t by s : N*s
  kas.expand %r : s
  kas.yield data(%q)
}

// The data is read at 1 of 3.
// CHECK-LABEL: @remainder_of_shifted_stride
// CHECK-NEXT:    kas.stride
// CHECK-NEXT:    kas.shift
// CHECK-NEXT:    kas.merge
kas.operator @remainder_of_shifted_stride<N>(%i: N) from [N, 3] {
  %t = kas.stride %i by 3 : N
  %s = kas.shift %t by 1 : 3*N
  %q, %r = kas.merge %s by 3 : 3*N
  kas.yield data(%q, %r)
}
