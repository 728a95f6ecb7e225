// RUN: %python %S/prove-rules.py --tools=%kas_obj_root/bin --z3=%z3 --work=%t --skip='M10|H5_carried|M12_factor|W12_carries' --exact=%kas_src_root/docs/internals/canonical-form.md %s | FileCheck %s
// CHECK: {{^[0-9]+}} statements of {{[0-9]+}} rules are proven for all sizes, their near misses refuted

// The rules of docs/internals/canonical-form.md that are called exact, and a near miss of each that must be refuted.
// docs/internals/proofs.md has the form. Those that take seconds are left to slow.test.

#d0 = affine_map<(d0) -> (d0)>
#d1 = affine_map<(d0, d1) -> (d1)>
#minus0 = affine_map<(d0) -> (-d0)>
#minus1 = affine_map<(d0, d1) -> (-d1)>
#sum = affine_map<(d0, d1) -> (d0 + d1)>
// Symbols of the operator: N, then b.
#blocks = affine_map<(d0)[N, b] -> (d0 * b)>
#blocks_and_rest = affine_map<(d0, d1)[N, b] -> (d0 * b + d1)>

//===----------------------------------------------------------------------===//
// All moves
//===----------------------------------------------------------------------===//

module @O4 attributes {rule.statement = "reductions of one size may be numbered in any way", rule.renames_weights} {
  kas.operator @before<N, K>(%i: N) from [K, K, N] {
    %a = kas.reduce sum : K
    %b = kas.reduce sum : K
    %a_d, %a_w = kas.share %a : K
    %i_d, %i_w = kas.share %i : N
    kas.yield data(%a_d, %b, %i_d) weight(%a_w, %i_w)
  }
  kas.operator @after<N, K>(%i: N) from [K, K, N] {
    %a = kas.reduce sum : K
    %b = kas.reduce sum : K
    %b_d, %b_w = kas.share %b : K
    %i_d, %i_w = kas.share %i : N
    kas.yield data(%b_d, %a, %i_d) weight(%b_w, %i_w)
  }
  kas.operator @map<N, K>(%i: N, %a: K, %b: K) from [N, K, K] {
    kas.yield data(%i, %b, %a)
  }
  module @near_miss attributes {rule.statement = "the weight keeps its number", rule.sizes = #kas.binding<N = 2, K = 2>} {
    kas.operator @after<N, K>(%i: N) from [K, K, N] {
      %a = kas.reduce sum : K
      %b = kas.reduce sum : K
      %a_d, %a_w = kas.share %a : K
      %i_d, %i_w = kas.share %i : N
      kas.yield data(%b, %a_d, %i_d) weight(%a_w, %i_w)
    }
  }
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

module @W1 attributes {rule.statement = "a weight indexed by B*i + j is a reshaped one, indexed by i and j", rule.renames_weights} {
  kas.operator @before<N | b>(%i: N, %j: b) from [N*b] {
    %t = kas.split %i, %j : N, b
    %d, %w = kas.share %t : N*b
    kas.yield data(%d) weight(%w)
  }
  kas.operator @after<N | b>(%i: N, %j: b) from [N*b] {
    %i_d, %i_w = kas.share %i : N
    %j_d, %j_w = kas.share %j : b
    %t = kas.split %i_d, %j_d : N, b
    kas.yield data(%t) weight(%i_w, %j_w)
  }
  module @near_miss attributes {rule.statement = "indexed by i alone", rule.sizes = #kas.binding<N = 2, b = 2>} {
    kas.operator @after<N | b>(%i: N, %j: b) from [N*b] {
      %i_d, %i_w = kas.share %i : N
      %t = kas.split %i_d, %j : N, b
      kas.yield data(%t) weight(%i_w)
    }
  }
}

module @W1_shift attributes {rule.statement = "one indexed by a shifted coordinate is a rotated one", rule.renames_weights,
                              rule.amounts = array<i64: 1>} {
  kas.operator @before<N>(%i: N) from [N] {
    %s = kas.shift %i by 1 {expression = #d0} : N
    %d, %w = kas.share %s : N
    kas.yield data(%d) weight(%w)
  }
  kas.operator @after<N>(%i: N) from [N] {
    %d, %w = kas.share %i : N
    %s = kas.shift %d by 1 {expression = #d0} : N
    kas.yield data(%s) weight(%w)
  }
  module @near_miss attributes {rule.statement = "the data is not shifted", rule.sizes = #kas.binding<N = 3>} {
    kas.operator @after<N>(%i: N) from [N] {
      %d, %w = kas.share %i : N
      kas.yield data(%d) weight(%w)
    }
  }
}

module @W1_stride attributes {rule.statement = "one indexed by a strided coordinate is a sparse one", rule.renames_weights} {
  kas.operator @before<N | a>(%i: N) from [N*a] {
    %s = kas.stride %i by a : N
    %d, %w = kas.share %s : N*a
    kas.yield data(%d) weight(%w)
  }
  kas.operator @after<N | a>(%i: N) from [N*a] {
    %d, %w = kas.share %i : N
    %s = kas.stride %d by a : N
    kas.yield data(%s) weight(%w)
  }
  module @near_miss attributes {rule.statement = "one indexed by the quotient is indexed by the coordinate", rule.sizes = #kas.binding<N = 4, a = 2>} {
    kas.operator @before<N | a>(%i: N*a) from [N, a] {
      %q, %r = kas.merge %i by a : N*a
      %q_d, %q_w = kas.share %q : N
      kas.yield data(%q_d, %r) weight(%q_w)
    }
    kas.operator @after<N | a>(%i: N*a) from [N, a] {
      %i_d, %i_w = kas.share %i : N*a
      %q, %r = kas.merge %i_d by a : N*a
      kas.yield data(%q, %r) weight(%i_w)
    }
  }
}

module @W3 attributes {rule.statement = "a weight that is the only one with a reduction that the data lacks is summed over it, which is a weight without it",
                       rule.summed = 0 : i64} {
  kas.operator @before<N, M, K>(%i: N, %j: M) from [N] {
    %r = kas.reduce sum : K
    %i_d, %i_w = kas.share %i : N
    kas.yield data(%i_d) weight(%i_w, %j, %r)
  }
  kas.operator @after<N, M, K>(%i: N, %j: M) from [N] {
    %i_d, %i_w = kas.share %i : N
    kas.yield data(%i_d) weight(%i_w, %j)
  }
  kas.operator @map<N, M, K>(%i: N, %j: M, %r: K) from [N, M] {
    kas.expand %r : K
    kas.yield data(%i, %j)
  }
  module @near_miss attributes {rule.statement = "another weight has the reduction", rule.sizes = #kas.binding<N = 2, M = 2, K = 2>, rule.renames_weights} {
    kas.operator @before<N, M, K>(%i: N, %j: M) from [N] {
      %r = kas.reduce sum : K
      %r_0, %r_1 = kas.share %r : K
      %i_d, %i_w = kas.share %i : N
      kas.yield data(%i_d) weight(%i_w, %r_0) weight(%j, %r_1)
    }
    kas.operator @after<N, M, K>(%i: N, %j: M) from [N] {
      %i_d, %i_w = kas.share %i : N
      kas.yield data(%i_d) weight(%i_w) weight(%j)
    }
  }
}

module @W4 attributes {rule.statement = "a weight whose coordinates are all among those of another is absorbed by it", rule.absorbed = array<i64: 1, 0>} {
  kas.operator @before<N, M>(%i: N, %j: M) from [N] {
    %i_d, %i_v = kas.share %i : N
    %i_e, %i_w = kas.share %i_d : N
    kas.yield data(%i_e) weight(%i_v, %j) weight(%i_w)
  }
  kas.operator @after<N, M>(%i: N, %j: M) from [N] {
    %i_d, %i_v = kas.share %i : N
    kas.yield data(%i_d) weight(%i_v, %j)
  }
  module @near_miss attributes {rule.statement = "the other one is absorbed by it", rule.sizes = #kas.binding<N = 2, M = 2>,
                                rule.absorbed = array<i64: 0, 1>} {
    kas.operator @after<N, M>(%i: N, %j: M) from [N] {
      %i_d, %i_v = kas.share %i : N
      kas.expand %j : M
      kas.yield data(%i_d) weight(%i_v)
    }
  }
}

module @W4_atoms attributes {rule.statement = "so is one whose coordinates are together the same as one of another (W8)", rule.absorbed = array<i64: 1, 0>,
                             rule.amounts = array<i64: 1>} {
  kas.operator @before<N | b>(%i: N*b) from [N, b] {
    %i_d, %i_w = kas.share %i : N*b
    %s = kas.shift %i_d by 1 {expression = #d0} : N*b
    %q, %r = kas.merge %s by b : N*b
    %q_d, %q_w = kas.share %q : N
    %r_d, %r_w = kas.share %r : b
    kas.yield data(%q_d, %r_d) weight(%q_w, %r_w) weight(%i_w)
  }
  kas.operator @after<N | b>(%i: N*b) from [N, b] {
    %s = kas.shift %i by 1 {expression = #d0} : N*b
    %q, %r = kas.merge %s by b : N*b
    %q_d, %q_w = kas.share %q : N
    %r_d, %r_w = kas.share %r : b
    kas.yield data(%q_d, %r_d) weight(%q_w, %r_w)
  }
  module @near_miss attributes {rule.statement = "the quotient alone", rule.sizes = #kas.binding<N = 2, b = 2>} {
    kas.operator @before<N | b>(%i: N*b) from [N, b] {
      %i_d, %i_w = kas.share %i : N*b
      %s = kas.shift %i_d by 1 {expression = #d0} : N*b
      %q, %r = kas.merge %s by b : N*b
      %q_d, %q_w = kas.share %q : N
      kas.yield data(%q_d, %r) weight(%q_w) weight(%i_w)
    }
    kas.operator @after<N | b>(%i: N*b) from [N, b] {
      %s = kas.shift %i by 1 {expression = #d0} : N*b
      %q, %r = kas.merge %s by b : N*b
      %q_d, %q_w = kas.share %q : N
      kas.yield data(%q_d, %r) weight(%q_w)
    }
  }
}

module @W6 attributes {rule.statement = "a weight that takes both halves of a merge takes the whole", rule.renames_weights} {
  kas.operator @before<N, M | b>(%i: N*b, %k: M) from [M] {
    %q, %r = kas.merge %i by b : N*b
    kas.yield data(%k) weight(%q, %r)
  }
  kas.operator @after<N, M | b>(%i: N*b, %k: M) from [M] {
    kas.yield data(%k) weight(%i)
  }
  module @near_miss attributes {rule.statement = "it takes one of them", rule.sizes = #kas.binding<N = 2, M = 2, b = 2>} {
    kas.operator @before<N, M | b>(%i: N*b, %k: M) from [M] {
      %q, %r = kas.merge %i by b : N*b
      kas.expand %r : b
      kas.yield data(%k) weight(%q)
    }
  }
}

module @W6_factors attributes {rule.statement = "one that takes two factors of an unordered output takes their product, as one factor", rule.renames_weights} {
  kas.operator @before<A, B, C>(%o: A*B*C unordered) from [B] {
    %ab, %c = kas.merge %o by C : A*B*C
    %a, %b = kas.merge %ab by B : A*B
    kas.yield data(%b) weight(%a, %c)
  }
  kas.operator @after<A, B, C>(%o: A*B*C unordered) from [B] {
    %ac, %b = kas.merge %o by B : A*B*C
    kas.yield data(%b) weight(%ac)
  }
  kas.operator @map<A, B, C>(%o: A*B*C) from [A*B*C] {
    %ab, %c = kas.merge %o by C : A*B*C
    %a, %b = kas.merge %ab by B : A*B
    %ac = kas.split %a, %c : A, C
    %p = kas.split %ac, %b : A*C, B
    kas.yield data(%p)
  }
  module @near_miss attributes {rule.statement = "of an ordered output", rule.sizes = #kas.binding<A = 2, B = 2, C = 2>} {
    kas.operator @before<A, B, C>(%o: A*B*C) from [B] {
      %ab, %c = kas.merge %o by C : A*B*C
      %a, %b = kas.merge %ab by B : A*B
      kas.yield data(%b) weight(%a, %c)
    }
    kas.operator @after<A, B, C>(%o: A*B*C) from [B] {
      %ac, %b = kas.merge %o by B : A*B*C
      kas.yield data(%b) weight(%ac)
    }
  }
}

module @W7 attributes {rule.statement = "two reductions taken by the same weights are one of the product", rule.renames_weights} {
  kas.operator @before<N, K, L>(%i: N) from [N] {
    %r = kas.reduce sum : K
    %s = kas.reduce sum : L
    %r_0, %r_1 = kas.share %r : K
    %s_0, %s_1 = kas.share %s : L
    %i_d, %i_w = kas.share %i : N
    kas.yield data(%i_d) weight(%i_w, %r_0, %s_0) weight(%r_1, %s_1)
  }
  kas.operator @after<N, K, L>(%i: N) from [N] {
    %r = kas.reduce sum : K*L
    %r_0, %r_1 = kas.share %r : K*L
    %i_d, %i_w = kas.share %i : N
    kas.yield data(%i_d) weight(%i_w, %r_0) weight(%r_1)
  }
  kas.operator @map<N, K, L>(%i: N, %r: K, %s: L) from [N, K*L] {
    %t = kas.split %r, %s : K, L
    kas.yield data(%i, %t)
  }
  module @near_miss attributes {rule.statement = "taken by different weights", rule.sizes = #kas.binding<N = 5, K = 2, L = 2>} {
    kas.operator @before<N, K, L>(%i: N, %j: N) from [N] {
      %r = kas.reduce sum : K
      %s = kas.reduce sum : L
      %r_0, %r_1 = kas.share %r : K
      %s_0, %s_1 = kas.share %s : L
      %i_d, %i_w = kas.share %i : N
      %j_1, %j_2 = kas.share %j : N
      kas.yield data(%i_d) weight(%i_w, %r_0, %s_0) weight(%j_1, %r_1) weight(%j_2, %s_1)
    }
    kas.operator @after<N, K, L>(%i: N, %j: N) from [N] {
      %r = kas.reduce sum : K*L
      %r_0, %r_1 = kas.share %r : K*L
      %r_2, %r_3 = kas.share %r_0 : K*L
      %i_d, %i_w = kas.share %i : N
      %j_1, %j_2 = kas.share %j : N
      kas.yield data(%i_d) weight(%i_w, %r_1) weight(%j_1, %r_2) weight(%j_2, %r_3)
    }
    kas.operator @map<N, K, L>(%i: N, %j: N, %r: K, %s: L) from [N, N, K*L] {
      %t = kas.split %r, %s : K, L
      kas.yield data(%i, %j, %t)
    }
  }
}

module @W8 attributes {rule.statement = "a weight with both halves of a merge of a shift has what is shifted", rule.renames_weights,
                       rule.amounts = array<i64: 1>} {
  kas.operator @before<N | b>(%i: N*b) from [N, b] {
    %s = kas.shift %i by 1 {expression = #d0} : N*b
    %q, %r = kas.merge %s by b : N*b
    %q_d, %q_w = kas.share %q : N
    %r_d, %r_w = kas.share %r : b
    kas.yield data(%q_d, %r_d) weight(%q_w, %r_w)
  }
  kas.operator @after<N | b>(%i: N*b) from [N, b] {
    %i_d, %i_w = kas.share %i : N*b
    %s = kas.shift %i_d by 1 {expression = #d0} : N*b
    %q, %r = kas.merge %s by b : N*b
    kas.yield data(%q, %r) weight(%i_w)
  }
  module @near_miss attributes {rule.statement = "with the remainder alone", rule.sizes = #kas.binding<N = 2, b = 2>} {
    kas.operator @before<N | b>(%i: N*b) from [N, b] {
      %s = kas.shift %i by 1 {expression = #d0} : N*b
      %q, %r = kas.merge %s by b : N*b
      %r_d, %r_w = kas.share %r : b
      kas.yield data(%q, %r_d) weight(%r_w)
    }
  }
}

module @W8_remainder attributes {rule.statement = "one with the remainder of shift split(a, b) merged by b's size has b", rule.renames_weights,
                                 rule.amounts = array<i64: 1>} {
  kas.operator @before<N | b>(%i: N, %j: b) from [N, b] {
    %t = kas.split %i, %j : N, b
    %s = kas.shift %t by 1 {expression = #d0} : N*b
    %q, %r = kas.merge %s by b : N*b
    %r_d, %r_w = kas.share %r : b
    kas.yield data(%q, %r_d) weight(%r_w)
  }
  kas.operator @after<N | b>(%i: N, %j: b) from [N, b] {
    %j_d, %j_w = kas.share %j : b
    %t = kas.split %i, %j_d : N, b
    %s = kas.shift %t by 1 {expression = #d0} : N*b
    %q, %r = kas.merge %s by b : N*b
    kas.yield data(%q, %r) weight(%j_w)
  }
  module @near_miss attributes {rule.statement = "one with the quotient has a", rule.sizes = #kas.binding<N = 3, b = 2>} {
    kas.operator @before<N | b>(%i: N, %j: b) from [N, b] {
      %t = kas.split %i, %j : N, b
      %s = kas.shift %t by 1 {expression = #d0} : N*b
      %q, %r = kas.merge %s by b : N*b
      %q_d, %q_w = kas.share %q : N
      kas.yield data(%q_d, %r) weight(%q_w)
    }
    kas.operator @after<N | b>(%i: N, %j: b) from [N, b] {
      %i_d, %i_w = kas.share %i : N
      %t = kas.split %i_d, %j : N, b
      %s = kas.shift %t by 1 {expression = #d0} : N*b
      %q, %r = kas.merge %s by b : N*b
      kas.yield data(%q, %r) weight(%i_w)
    }
  }
}

module @W8_dropped attributes {rule.statement = "a coordinate that follows from what a weight has may as well be taken by it as dropped", rule.renames_weights} {
  kas.operator @before<N | b>(%i: N*b) from [N] {
    %i_d, %i_w = kas.share %i : N*b
    %q, %r = kas.merge %i_d by b : N*b
    kas.yield data(%q) weight(%i_w, %r)
  }
  kas.operator @after<N | b>(%i: N*b) from [N] {
    %i_d, %i_w = kas.share %i : N*b
    %q, %r = kas.merge %i_d by b : N*b
    kas.expand %r : b
    kas.yield data(%q) weight(%i_w)
  }
  module @near_miss attributes {rule.statement = "it does not follow", rule.sizes = #kas.binding<N = 2, b = 2>} {
    kas.operator @before<N | b>(%i: N*b) from [N] {
      %q, %r = kas.merge %i by b : N*b
      %q_d, %q_w = kas.share %q : N
      kas.yield data(%q_d) weight(%q_w, %r)
    }
    kas.operator @after<N | b>(%i: N*b) from [N] {
      %q, %r = kas.merge %i by b : N*b
      %q_d, %q_w = kas.share %q : N
      kas.expand %r : b
      kas.yield data(%q_d) weight(%q_w)
    }
  }
}

module @W9 attributes {rule.statement = "a weight with the remainder of a merge of a shift has the remainder of what is shifted", rule.renames_weights,
                       rule.amounts = array<i64: 1>} {
  kas.operator @before<N | b>(%i: N*b) from [N, b] {
    %s = kas.shift %i by 1 {expression = #d0} : N*b
    %q, %r = kas.merge %s by b : N*b
    %r_d, %r_w = kas.share %r : b
    kas.yield data(%q, %r_d) weight(%r_w)
  }
  kas.operator @after<N | b>(%i: N*b) from [N, b] {
    %p, %m = kas.merge %i by b : N*b
    %m_d, %m_w = kas.share %m : b
    %t = kas.split %p, %m_d : N, b
    %s = kas.shift %t by 1 {expression = #d0} : N*b
    %q, %r = kas.merge %s by b : N*b
    kas.yield data(%q, %r) weight(%m_w)
  }
  module @near_miss attributes {rule.statement = "the quotient", rule.sizes = #kas.binding<N = 3, b = 2>} {
    kas.operator @before<N | b>(%i: N*b) from [N, b] {
      %s = kas.shift %i by 1 {expression = #d0} : N*b
      %q, %r = kas.merge %s by b : N*b
      %q_d, %q_w = kas.share %q : N
      kas.yield data(%q_d, %r) weight(%q_w)
    }
    kas.operator @after<N | b>(%i: N*b) from [N, b] {
      %p, %m = kas.merge %i by b : N*b
      %p_d, %p_w = kas.share %p : N
      %t = kas.split %p_d, %m : N, b
      %s = kas.shift %t by 1 {expression = #d0} : N*b
      %q, %r = kas.merge %s by b : N*b
      kas.yield data(%q, %r) weight(%p_w)
    }
  }
}

module @W10 attributes {rule.statement = "b a reduction: a weight with quotient and remainder of shift split(a, b) merged by b's size may as well have a and b, the data b",
                        rule.renames_weights, rule.amounts = array<i64: 1>} {
  kas.operator @before<N | b>(%i: N) from [b] {
    %j = kas.reduce sum : b
    %t = kas.split %i, %j : N, b
    %s = kas.shift %t by 1 {expression = #d0} : N*b
    %q, %r = kas.merge %s by b : N*b
    %r_d, %r_w = kas.share %r : b
    kas.yield data(%r_d) weight(%q, %r_w)
  }
  kas.operator @after<N | b>(%i: N) from [b] {
    %j = kas.reduce sum : b
    %j_d, %j_w = kas.share %j : b
    kas.yield data(%j_d) weight(%i, %j_w)
  }
  kas.operator @map<N | b>(%i: N, %j: b) from [N, b] {
    %s = kas.shift %j by 1 {expression = #d0} : b
    kas.yield data(%i, %s)
  }
  module @near_miss attributes {rule.statement = "another weight has the quotient alone", rule.sizes = #kas.binding<N = 3, b = 2>} {
    kas.operator @before<N | b>(%i: N, %k: N) from [b, N] {
      %j = kas.reduce sum : b
      %t = kas.split %i, %j : N, b
      %s = kas.shift %t by 1 {expression = #d0} : N*b
      %q, %r = kas.merge %s by b : N*b
      %r_d, %r_w = kas.share %r : b
      %q_v, %q_w = kas.share %q : N
      %k_d, %k_w = kas.share %k : N
      kas.yield data(%r_d, %k_d) weight(%q_w, %r_w) weight(%q_v, %k_w)
    }
    kas.operator @after<N | b>(%i: N, %k: N) from [b, N] {
      %j = kas.reduce sum : b
      %j_d, %j_w = kas.share %j : b
      %i_v, %i_w = kas.share %i : N
      %k_d, %k_w = kas.share %k : N
      kas.yield data(%j_d, %k_d) weight(%i_w, %j_w) weight(%i_v, %k_w)
    }
    kas.operator @map<N | b>(%i: N, %k: N, %j: b) from [N, N, b] {
      %s = kas.shift %j by 1 {expression = #d0} : b
      kas.yield data(%i, %k, %s)
    }
  }
}

module @W10_kept attributes {rule.statement = "so may one with the quotient and b", rule.renames_weights, rule.amounts = array<i64: 1>} {
  kas.operator @before<N | b>(%i: N) from [b] {
    %j = kas.reduce sum : b
    %j_d, %j_w = kas.share %j : b
    %t = kas.split %i, %j_d : N, b
    %s = kas.shift %t by 1 {expression = #d0} : N*b
    %q, %r = kas.merge %s by b : N*b
    kas.yield data(%r) weight(%q, %j_w)
  }
  kas.operator @after<N | b>(%i: N) from [b] {
    %j = kas.reduce sum : b
    %j_d, %j_w = kas.share %j : b
    kas.yield data(%j_d) weight(%i, %j_w)
  }
  kas.operator @map<N | b>(%i: N, %j: b) from [N, b] {
    %s = kas.shift %j by 1 {expression = #d0} : b
    kas.yield data(%i, %s)
  }
  module @near_miss attributes {rule.statement = "with the quotient alone", rule.sizes = #kas.binding<N = 3, b = 2>} {
    kas.operator @before<N | b>(%i: N) from [b] {
      %j = kas.reduce sum : b
      %t = kas.split %i, %j : N, b
      %s = kas.shift %t by 1 {expression = #d0} : N*b
      %q, %r = kas.merge %s by b : N*b
      kas.yield data(%r) weight(%q)
    }
  }
}

module @W10_factor attributes {rule.statement = "the same, b a part of an unordered output", rule.renames_weights, rule.amounts = array<i64: 1>} {
  kas.operator @before<N, M | b>(%i: N, %o: M*b unordered) from [M, b] {
    %p, %j = kas.merge %o by b : M*b
    %t = kas.split %i, %j : N, b
    %s = kas.shift %t by 1 {expression = #d0} : N*b
    %q, %r = kas.merge %s by b : N*b
    %r_d, %r_w = kas.share %r : b
    kas.yield data(%p, %r_d) weight(%q, %r_w)
  }
  kas.operator @after<N, M | b>(%i: N, %o: M*b unordered) from [M, b] {
    %p, %j = kas.merge %o by b : M*b
    %j_d, %j_w = kas.share %j : b
    kas.yield data(%p, %j_d) weight(%i, %j_w)
  }
  kas.operator @map<N, M | b>(%i: N, %o: M*b) from [N, M*b] {
    %p, %j = kas.merge %o by b : M*b
    %s = kas.shift %j by 1 {expression = #d0} : b
    %t = kas.split %p, %s : M, b
    kas.yield data(%i, %t)
  }
  module @near_miss attributes {rule.statement = "of an ordered output", rule.sizes = #kas.binding<N = 3, M = 2, b = 2>} {
    kas.operator @before<N, M | b>(%i: N, %o: M*b) from [M, b] {
      %p, %j = kas.merge %o by b : M*b
      %t = kas.split %i, %j : N, b
      %s = kas.shift %t by 1 {expression = #d0} : N*b
      %q, %r = kas.merge %s by b : N*b
      %r_d, %r_w = kas.share %r : b
      kas.yield data(%p, %r_d) weight(%q, %r_w)
    }
    kas.operator @after<N, M | b>(%i: N, %o: M*b) from [M, b] {
      %p, %j = kas.merge %o by b : M*b
      %j_d, %j_w = kas.share %j : b
      kas.yield data(%p, %j_d) weight(%i, %j_w)
    }
  }
}

module @W11 attributes {rule.statement = "with u = unfold(i, k) that the data keeps, a weight indexed by u is absorbed by one with i and k",
                        rule.absorbed = array<i64: 1, 0>} {
  kas.operator @before<N | k>(%i: N) from [N] {
    %j = kas.reduce sum : k
    %i_d, %i_w = kas.share %i : N
    %j_d, %j_w = kas.share %j : k
    %u = kas.unfold %i_d, %j_d : N, k
    %u_d, %u_w = kas.share %u : N
    kas.yield data(%u_d) weight(%i_w, %j_w) weight(%u_w)
  }
  kas.operator @after<N | k>(%i: N) from [N] {
    %j = kas.reduce sum : k
    %i_d, %i_w = kas.share %i : N
    %j_d, %j_w = kas.share %j : k
    %u = kas.unfold %i_d, %j_d : N, k
    kas.yield data(%u) weight(%i_w, %j_w)
  }
  module @near_miss attributes {rule.statement = "only that weight has u: what is outside of the window comes back", rule.sizes = #kas.binding<N = 5, k = 3>} {
    kas.operator @before<N | k>(%i: N, %x: N) from [N] {
      %j = kas.reduce sum : k
      %i_d, %i_w = kas.share %i : N
      %j_d, %j_0 = kas.share %j : k
      %j_e, %j_1 = kas.share %j_d : k
      %u = kas.unfold %i_d, %j_e : N, k
      %x_d, %x_w = kas.share %x : N
      kas.yield data(%x_d) weight(%i_w, %j_0) weight(%u) weight(%x_w, %j_1)
    }
    kas.operator @after<N | k>(%i: N, %x: N) from [N] {
      %j = kas.reduce sum : k
      %j_0, %j_1 = kas.share %j : k
      %x_d, %x_w = kas.share %x : N
      kas.yield data(%x_d) weight(%i, %j_0) weight(%x_w, %j_1)
    }
  }
}

module @W11_half attributes {rule.statement = "a weight indexed by a half of a merge is absorbed by one with the whole", rule.absorbed = array<i64: 1, 0>} {
  kas.operator @before<N | b>(%i: N*b) from [N, b] {
    %i_d, %i_w = kas.share %i : N*b
    %q, %r = kas.merge %i_d by b : N*b
    %q_d, %q_w = kas.share %q : N
    kas.yield data(%q_d, %r) weight(%i_w) weight(%q_w)
  }
  kas.operator @after<N | b>(%i: N*b) from [N, b] {
    %i_d, %i_w = kas.share %i : N*b
    %q, %r = kas.merge %i_d by b : N*b
    kas.yield data(%q, %r) weight(%i_w)
  }
  module @near_miss attributes {rule.statement = "the other half", rule.sizes = #kas.binding<N = 2, b = 2>} {
    kas.operator @before<N | b>(%i: N*b) from [N, b] {
      %q, %r = kas.merge %i by b : N*b
      %q_d, %q_w = kas.share %q : N
      %r_d, %r_w = kas.share %r : b
      kas.yield data(%q_d, %r_d) weight(%r_w) weight(%q_w)
    }
    kas.operator @after<N | b>(%i: N*b) from [N, b] {
      %q, %r = kas.merge %i by b : N*b
      %r_d, %r_w = kas.share %r : b
      kas.yield data(%q, %r_d) weight(%r_w)
    }
  }
}

module @W12 attributes {rule.statement = "r a reduction: a weight that takes the quotient of shift split(r, b) merged by b's size, which no other weight sees, is summed over it",
                        rule.summed = 0 : i64, rule.amounts = array<i64: 1>, rule.condition = affine_set<(d0)[N, M, b] : (d0 - 1 >= 0, b - d0 - 1 >= 0)>} {
  kas.operator @before<N, M | b>(%i: M, %j: b) from [M, b] {
    %r = kas.reduce sum : N
    %t = kas.split %r, %j : N, b
    %s = kas.shift %t by 1 {expression = #d0} : N*b
    %q, %m = kas.merge %s by b : N*b
    %i_d, %i_w = kas.share %i : M
    kas.yield data(%i_d, %m) weight(%i_w, %q)
  }
  kas.operator @after<N, M | b>(%i: M, %j: b) from [M, b] {
    %m = kas.shift %j by 1 {expression = #d0} : b
    %i_d, %i_w = kas.share %i : M
    kas.yield data(%i_d, %m) weight(%i_w)
  }
  kas.operator @map<N, M | b>(%i: M, %j: b, %r: N) from [M, b] {
    %t = kas.split %r, %j : N, b
    %s = kas.shift %t by 1 {expression = #d0} : N*b
    %q, %m = kas.merge %s by b : N*b
    %p = kas.shift %m by -1 {expression = #minus0} : b
    kas.expand %q : N
    kas.yield data(%i, %p)
  }
  module @near_miss attributes {rule.statement = "another weight has r", rule.sizes = #kas.binding<N = 2, M = 2, b = 2>, rule.renames_weights} {
    kas.operator @before<N, M | b>(%i: M, %j: b) from [M, b] {
      %r = kas.reduce sum : N
      %r_d, %r_w = kas.share %r : N
      %j_d, %j_w = kas.share %j : b
      %t = kas.split %r_d, %j_d : N, b
      %s = kas.shift %t by 1 {expression = #d0} : N*b
      %q, %m = kas.merge %s by b : N*b
      %i_d, %i_w = kas.share %i : M
      kas.yield data(%i_d, %m) weight(%i_w, %q) weight(%j_w, %r_w)
    }
    kas.operator @after<N, M | b>(%i: M, %j: b) from [M, b] {
      %j_d, %j_w = kas.share %j : b
      %m = kas.shift %j_d by 1 {expression = #d0} : b
      %i_d, %i_w = kas.share %i : M
      kas.yield data(%i_d, %m) weight(%i_w) weight(%j_w)
    }
  }
}

module @W12_carries attributes {rule.statement = "the same for two carries onto r", rule.summed = 0 : i64, rule.amounts = array<i64: 1, 1>,
                                rule.condition = affine_set<(d0, d1)[N, b, c] : (d0 - 1 >= 0, b - d0 - 1 >= 0, d1 - 1 >= 0, c - d1 - 1 >= 0)>} {
  kas.operator @before<N | b, c>(%j: b, %k: c) from [b, c] {
    %r = kas.reduce sum : N
    %j_d, %j_w = kas.share %j : b
    %t = kas.split %r, %j_d : N, b
    %s = kas.shift %t by 1 {expression = #d0} : N*b
    %q, %m = kas.merge %s by b : N*b
    %u = kas.split %q, %k : N, c
    %v = kas.shift %u by 1 {expression = #d1} : N*c
    %p, %n = kas.merge %v by c : N*c
    kas.yield data(%m, %n) weight(%j_w, %p)
  }
  kas.operator @after<N | b, c>(%j: b, %k: c) from [b, c] {
    %j_d, %j_w = kas.share %j : b
    %m = kas.shift %j_d by 1 {expression = #d0} : b
    %n = kas.shift %k by 1 {expression = #d1} : c
    kas.yield data(%m, %n) weight(%j_w)
  }
  kas.operator @map<N | b, c>(%j: b, %k: c, %r: N) from [b, c] {
    %t = kas.split %r, %j : N, b
    %s = kas.shift %t by 1 {expression = #d0} : N*b
    %q, %m = kas.merge %s by b : N*b
    %u = kas.split %q, %k : N, c
    %v = kas.shift %u by 1 {expression = #d1} : N*c
    %p, %n = kas.merge %v by c : N*c
    %x = kas.shift %m by -1 {expression = #minus0} : b
    %y = kas.shift %n by -1 {expression = #minus1} : c
    kas.expand %p : N
    kas.yield data(%x, %y)
  }
  module @near_miss attributes {rule.statement = "another weight has the first quotient", rule.sizes = #kas.binding<N = 2, b = 2, c = 2>, rule.renames_weights} {
    kas.operator @before<N | b, c>(%j: b, %k: c) from [b, c] {
      %r = kas.reduce sum : N
      %j_d, %j_w = kas.share %j : b
      %t = kas.split %r, %j_d : N, b
      %s = kas.shift %t by 1 {expression = #d0} : N*b
      %q, %m = kas.merge %s by b : N*b
      %q_d, %q_w = kas.share %q : N
      %u = kas.split %q_d, %k : N, c
      %v = kas.shift %u by 1 {expression = #d1} : N*c
      %p, %n = kas.merge %v by c : N*c
      %m_d, %m_w = kas.share %m : b
      kas.yield data(%m_d, %n) weight(%j_w, %p) weight(%m_w, %q_w)
    }
    kas.operator @after<N | b, c>(%j: b, %k: c) from [b, c] {
      %j_d, %j_w = kas.share %j : b
      %m = kas.shift %j_d by 1 {expression = #d0} : b
      %m_d, %m_w = kas.share %m : b
      %n = kas.shift %k by 1 {expression = #d1} : c
      kas.yield data(%m_d, %n) weight(%j_w) weight(%m_w)
    }
  }
}

//===----------------------------------------------------------------------===//
// Merges
//===----------------------------------------------------------------------===//

module @M1 attributes {rule.statement = "a weight with a coordinate that is merged may as well have both halves", rule.renames_weights} {
  kas.operator @before<N | b>(%i: N*b) from [N, b] {
    %i_d, %i_w = kas.share %i : N*b
    %q, %r = kas.merge %i_d by b : N*b
    kas.yield data(%q, %r) weight(%i_w)
  }
  kas.operator @after<N | b>(%i: N*b) from [N, b] {
    %q, %r = kas.merge %i by b : N*b
    %q_d, %q_w = kas.share %q : N
    %r_d, %r_w = kas.share %r : b
    kas.yield data(%q_d, %r_d) weight(%q_w, %r_w)
  }
  module @near_miss attributes {rule.statement = "one half", rule.sizes = #kas.binding<N = 2, b = 2>} {
    kas.operator @after<N | b>(%i: N*b) from [N, b] {
      %q, %r = kas.merge %i by b : N*b
      %q_d, %q_w = kas.share %q : N
      kas.yield data(%q_d, %r) weight(%q_w)
    }
  }
}

module @M1_quotient attributes {rule.statement = "(i / B) / C and (i / B) mod C are a quotient by B*C and one of its remainder by B (R16)"} {
  kas.operator @before<N | b, c>(%i: N*b*c) from [N, c, b] {
    %q, %r = kas.merge %i by b : N*b*c
    %s, %t = kas.merge %q by c : N*c
    kas.yield data(%s, %t, %r)
  }
  kas.operator @after<N | b, c>(%i: N*b*c) from [N, c, b] {
    %q, %r = kas.merge %i by b*c : N*b*c
    %s, %t = kas.merge %r by b : b*c
    kas.yield data(%q, %s, %t)
  }
  module @near_miss attributes {rule.statement = "of its remainder by C", rule.sizes = #kas.binding<N = 2, b = 2, c = 3>} {
    kas.operator @after<N | b, c>(%i: N*b*c) from [N, c, b] {
      %q, %r = kas.merge %i by b*c : N*b*c
      %s, %t = kas.merge %r by c : b*c
      kas.yield data(%q, %t, %s)
    }
  }
}

module @M2 attributes {rule.statement = "a merge by a block of 1 is none"} {
  kas.operator @before<N>(%i: N) from [N] {
    %q, %r = kas.merge %i by 1 : N
    kas.expand %r : 1
    kas.yield data(%q)
  }
  kas.operator @after<N>(%i: N) from [N] {
    kas.yield data(%i)
  }
  module @near_miss attributes {rule.statement = "by a block of 2", rule.sizes = #kas.binding<N = 2>} {
    kas.operator @before<N>(%i: 2*N) from [N] {
      %q, %r = kas.merge %i by 2 : 2*N
      kas.expand %r : 2
      kas.yield data(%q)
    }
    kas.operator @after<N>(%i: 2*N) from [N] {
      %q, %r = kas.merge %i by N : 2*N
      kas.expand %q : 2
      kas.yield data(%r)
    }
  }
}

module @M2_whole attributes {rule.statement = "so is one by the whole size"} {
  kas.operator @before<N>(%i: N) from [N] {
    %q, %r = kas.merge %i by N : N
    kas.expand %q : 1
    kas.yield data(%r)
  }
  kas.operator @after<N>(%i: N) from [N] {
    kas.yield data(%i)
  }
  module @near_miss attributes {rule.statement = "a shift is something", rule.sizes = #kas.binding<N = 2>} {
    kas.operator @before<N>(%i: N) from [N] {
      %q, %r = kas.merge %i by N : N
      kas.expand %q : 1
      %s = kas.shift %r by 1 : N
      kas.yield data(%s)
    }
  }
}

module @M8 attributes {rule.statement = "split(shift a, b) shifted and merged by b's size is the same with the inner shift on top of the quotient",
                       rule.amounts = array<i64: 1, 1>} {
  kas.operator @before<N | b>(%i: N, %j: b) from [N, b] {
    %s = kas.shift %i by 1 {expression = #d0} : N
    %t = kas.split %s, %j : N, b
    %u = kas.shift %t by 1 {expression = #d1} : N*b
    %q, %r = kas.merge %u by b : N*b
    kas.yield data(%q, %r)
  }
  kas.operator @after<N | b>(%i: N, %j: b) from [N, b] {
    %t = kas.split %i, %j : N, b
    %u = kas.shift %t by 1 {expression = #d1} : N*b
    %q, %r = kas.merge %u by b : N*b
    %s = kas.shift %q by 1 {expression = #d0} : N
    kas.yield data(%s, %r)
  }
  module @near_miss attributes {rule.statement = "split(a, shift b)", rule.sizes = #kas.binding<N = 3, b = 3>} {
    kas.operator @before<N | b>(%i: N, %j: b) from [N, b] {
      %s = kas.shift %j by 1 {expression = #d0} : b
      %t = kas.split %i, %s : N, b
      %u = kas.shift %t by 1 {expression = #d1} : N*b
      %q, %r = kas.merge %u by b : N*b
      kas.yield data(%q, %r)
    }
  }
}

module @M9 attributes {rule.statement = "the remainder of shift split(a, b) merged by b's size is the shift of b", rule.amounts = array<i64: 1>,
                       rule.condition = affine_set<(d0)[N, b] : (d0 - 1 >= 0, b - d0 - 1 >= 0)>} {
  kas.operator @before<N | b>(%i: N, %j: b) from [b] {
    %t = kas.split %i, %j : N, b
    %s = kas.shift %t by 1 {expression = #d0} : N*b
    %q, %r = kas.merge %s by b : N*b
    kas.expand %q : N
    kas.yield data(%r)
  }
  kas.operator @after<N | b>(%i: N, %j: b) from [b] {
    kas.expand %i : N
    %s = kas.shift %j by 1 {expression = #d0} : b
    kas.yield data(%s)
  }
  module @near_miss attributes {rule.statement = "the quotient is a", rule.sizes = #kas.binding<N = 2, b = 2>} {
    kas.operator @before<N | b>(%i: N, %j: b) from [N] {
      %t = kas.split %i, %j : N, b
      %s = kas.shift %t by 1 {expression = #d0} : N*b
      %q, %r = kas.merge %s by b : N*b
      kas.expand %r : b
      kas.yield data(%q)
    }
    kas.operator @after<N | b>(%i: N, %j: b) from [N] {
      kas.expand %j : b
      kas.yield data(%i)
    }
  }
}

module @M9_carry attributes {rule.statement = "a weight with the remainder may as well have b, the quotient being the sum of a and the carry of b",
                             rule.renames_weights, rule.amounts = array<i64: 1>} {
  kas.operator @before<N | b>(%i: N, %j: b) from [N] {
    %t = kas.split %i, %j : N, b
    %s = kas.shift %t by 1 {expression = #d0} : N*b
    %q, %r = kas.merge %s by b : N*b
    kas.yield data(%q) weight(%r)
  }
  kas.operator @after<N | b>(%i: N, %j: b) from [N] {
    %j_d, %j_w = kas.share %j : b
    %t = kas.split %i, %j_d : N, b
    %s = kas.shift %t by 1 {expression = #d0} : N*b
    %q, %r = kas.merge %s by b : N*b
    kas.expand %r : b
    kas.yield data(%q) weight(%j_w)
  }
  module @near_miss attributes {rule.statement = "without the carry", rule.sizes = #kas.binding<N = 2, b = 2>} {
    kas.operator @after<N | b>(%i: N, %j: b) from [N] {
      kas.yield data(%i) weight(%j)
    }
  }
}

module @M10 attributes {rule.statement = "carries onto one coordinate add up in any order", rule.amounts = array<i64: 1, 1>} {
  kas.operator @before<N | b, c>(%i: N, %j: b, %k: c) from [N, b, c] {
    %t = kas.split %i, %j : N, b
    %s = kas.shift %t by 1 {expression = #d0} : N*b
    %q, %m = kas.merge %s by b : N*b
    %u = kas.split %q, %k : N, c
    %v = kas.shift %u by 1 {expression = #d1} : N*c
    %p, %n = kas.merge %v by c : N*c
    kas.yield data(%p, %m, %n)
  }
  kas.operator @after<N | b, c>(%i: N, %j: b, %k: c) from [N, b, c] {
    %u = kas.split %i, %k : N, c
    %v = kas.shift %u by 1 {expression = #d1} : N*c
    %p, %n = kas.merge %v by c : N*c
    %t = kas.split %p, %j : N, b
    %s = kas.shift %t by 1 {expression = #d0} : N*b
    %q, %m = kas.merge %s by b : N*b
    kas.yield data(%q, %m, %n)
  }
  module @near_miss attributes {rule.statement = "the amounts exchanged", rule.sizes = #kas.binding<N = 3, b = 3, c = 3>,
                                rule.condition = affine_set<(d0, d1) : (d0 - 1 == 0, d1 - 2 == 0)>} {
    kas.operator @after<N | b, c>(%i: N, %j: b, %k: c) from [N, b, c] {
      %u = kas.split %i, %k : N, c
      %v = kas.shift %u by 1 {expression = #d0} : N*c
      %p, %n = kas.merge %v by c : N*c
      %t = kas.split %p, %j : N, b
      %s = kas.shift %t by 1 {expression = #d1} : N*b
      %q, %m = kas.merge %s by b : N*b
      kas.yield data(%q, %m, %n)
    }
  }
}

module @M11 attributes {rule.statement = "factors of one size of an unordered output may be exchanged", rule.renames_weights} {
  kas.operator @before<A | b>(%o: A*b**2 unordered) from [b] {
    %p, %y = kas.merge %o by b : A*b**2
    %a, %x = kas.merge %p by b : A*b
    %x_d, %x_w = kas.share %x : b
    kas.expand %y : b
    kas.yield data(%x_d) weight(%a, %x_w)
  }
  kas.operator @after<A | b>(%o: A*b**2 unordered) from [b] {
    %p, %y = kas.merge %o by b : A*b**2
    %a, %x = kas.merge %p by b : A*b
    %y_d, %y_w = kas.share %y : b
    kas.expand %x : b
    kas.yield data(%y_d) weight(%a, %y_w)
  }
  kas.operator @map<A | b>(%o: A*b**2) from [A*b**2] {
    %p, %y = kas.merge %o by b : A*b**2
    %a, %x = kas.merge %p by b : A*b
    %s = kas.split %y, %x : b, b
    %t = kas.split %a, %s : A, b**2
    kas.yield data(%t)
  }
  module @near_miss attributes {rule.statement = "of an ordered output", rule.sizes = #kas.binding<A = 2, b = 2>} {
    kas.operator @before<A | b>(%o: A*b**2) from [b] {
      %p, %y = kas.merge %o by b : A*b**2
      %a, %x = kas.merge %p by b : A*b
      %x_d, %x_w = kas.share %x : b
      kas.expand %y : b
      kas.yield data(%x_d) weight(%a, %x_w)
    }
    kas.operator @after<A | b>(%o: A*b**2) from [b] {
      %p, %y = kas.merge %o by b : A*b**2
      %a, %x = kas.merge %p by b : A*b
      %y_d, %y_w = kas.share %y : b
      kas.expand %x : b
      kas.yield data(%y_d) weight(%a, %y_w)
    }
  }
}

module @M12 attributes {rule.statement = "the halves by a divisor of b's size of shift split(a, b), a a reduction that nothing else sees, are those of shift b, next to a",
                        rule.amounts = array<i64: 1>, rule.condition = affine_set<(d0)[N, b, c] : (d0 - 1 >= 0, b * c - d0 - 1 >= 0)>} {
  kas.operator @before<N | b, c>(%j: b*c) from [N*b, c] {
    %r = kas.reduce sum : N
    %t = kas.split %r, %j : N, b*c
    %s = kas.shift %t by 1 {expression = #d0} : N*b*c
    %q, %m = kas.merge %s by c : N*b*c
    kas.yield data(%q, %m)
  }
  kas.operator @after<N | b, c>(%j: b*c) from [N*b, c] {
    %r = kas.reduce sum : N
    %s = kas.shift %j by 1 {expression = #d0} : b*c
    %q, %m = kas.merge %s by c : b*c
    %t = kas.split %r, %q : N, b
    kas.yield data(%t, %m)
  }
  kas.operator @map<N | b, c>(%j: b*c, %r: N) from [b*c, N] {
    %t = kas.split %r, %j : N, b*c
    %s = kas.shift %t by 1 {expression = #d0} : N*b*c
    %q, %m = kas.merge %s by b*c : N*b*c
    %x = kas.shift %m by -1 {expression = #minus0} : b*c
    kas.yield data(%x, %q)
  }
  module @near_miss attributes {rule.statement = "a is an output", rule.sizes = #kas.binding<N = 2, b = 2, c = 2>} {
    kas.operator @before<N | b, c>(%r: N, %j: b*c) from [N*b, c] {
      %t = kas.split %r, %j : N, b*c
      %s = kas.shift %t by 1 {expression = #d0} : N*b*c
      %q, %m = kas.merge %s by c : N*b*c
      kas.yield data(%q, %m)
    }
    kas.operator @after<N | b, c>(%r: N, %j: b*c) from [N*b, c] {
      %s = kas.shift %j by 1 {expression = #d0} : b*c
      %q, %m = kas.merge %s by c : b*c
      %t = kas.split %r, %q : N, b
      kas.yield data(%t, %m)
    }
    kas.operator @map<N | b, c>(%r: N, %j: b*c) from [N, b*c] {
      kas.yield data(%r, %j)
    }
  }
}

module @M12_factor attributes {rule.statement = "so are those of shift split(a, b), a and b being factors of one unordered output", rule.amounts = array<i64: 1>,
                               rule.condition = affine_set<(d0)[N, b, c] : (d0 - 1 >= 0, b * c - d0 - 1 >= 0)>} {
  kas.operator @before<N | b, c>(%o: N*b*c unordered) from [N*b, c] {
    %r, %j = kas.merge %o by b*c : N*b*c
    %t = kas.split %r, %j : N, b*c
    %s = kas.shift %t by 1 {expression = #d0} : N*b*c
    %q, %m = kas.merge %s by c : N*b*c
    kas.yield data(%q, %m)
  }
  kas.operator @after<N | b, c>(%o: N*b*c unordered) from [N*b, c] {
    %r, %j = kas.merge %o by b*c : N*b*c
    %s = kas.shift %j by 1 {expression = #d0} : b*c
    %q, %m = kas.merge %s by c : b*c
    %t = kas.split %r, %q : N, b
    kas.yield data(%t, %m)
  }
  kas.operator @map<N | b, c>(%o: N*b*c) from [N*b*c] {
    %s = kas.shift %o by 1 {expression = #d0} : N*b*c
    %q, %m = kas.merge %s by b*c : N*b*c
    %x = kas.shift %m by -1 {expression = #minus0} : b*c
    %t = kas.split %q, %x : N, b*c
    kas.yield data(%t)
  }
  module @near_miss attributes {rule.statement = "of an ordered output", rule.sizes = #kas.binding<N = 2, b = 2, c = 2>} {
    kas.operator @before<N | b, c>(%o: N*b*c) from [N*b, c] {
      %r, %j = kas.merge %o by b*c : N*b*c
      %t = kas.split %r, %j : N, b*c
      %s = kas.shift %t by 1 {expression = #d0} : N*b*c
      %q, %m = kas.merge %s by c : N*b*c
      kas.yield data(%q, %m)
    }
    kas.operator @after<N | b, c>(%o: N*b*c) from [N*b, c] {
      %r, %j = kas.merge %o by b*c : N*b*c
      %s = kas.shift %j by 1 {expression = #d0} : b*c
      %q, %m = kas.merge %s by c : b*c
      %t = kas.split %r, %q : N, b
      kas.yield data(%t, %m)
    }
  }
}

module @M12_multiple attributes {rule.statement = "where the quotient is dropped, the remainder by a multiple of b's size is the shift of split(a mod c, b)",
                                 rule.amounts = array<i64: 1>, rule.condition = affine_set<(d0)[N, b, c] : (d0 - 1 >= 0, b * c - d0 - 1 >= 0)>} {
  kas.operator @before<N | b, c>(%i: N*c, %j: b) from [b*c] {
    %t = kas.split %i, %j : N*c, b
    %s = kas.shift %t by 1 {expression = #d0} : N*b*c
    %q, %m = kas.merge %s by b*c : N*b*c
    kas.expand %q : N
    kas.yield data(%m)
  }
  kas.operator @after<N | b, c>(%i: N*c, %j: b) from [b*c] {
    %q, %m = kas.merge %i by c : N*c
    kas.expand %q : N
    %t = kas.split %m, %j : c, b
    %s = kas.shift %t by 1 {expression = #d0} : b*c
    kas.yield data(%s)
  }
  module @near_miss attributes {rule.statement = "the quotient is kept", rule.sizes = #kas.binding<N = 2, b = 2, c = 2>} {
    kas.operator @before<N | b, c>(%i: N*c, %j: b) from [N, b*c] {
      %t = kas.split %i, %j : N*c, b
      %s = kas.shift %t by 1 {expression = #d0} : N*b*c
      %q, %m = kas.merge %s by b*c : N*b*c
      kas.yield data(%q, %m)
    }
    kas.operator @after<N | b, c>(%i: N*c, %j: b) from [N, b*c] {
      %q, %m = kas.merge %i by c : N*c
      %t = kas.split %m, %j : c, b
      %s = kas.shift %t by 1 {expression = #d0} : b*c
      kas.yield data(%q, %s)
    }
  }
}

//===----------------------------------------------------------------------===//
// Unfolds
//===----------------------------------------------------------------------===//

module @U6 attributes {rule.statement = "two windows that look back on one base may be exchanged"} {
  kas.operator @before<N | k, l>(%i: N) from [N] {
    %a = kas.reduce sum : k
    %b = kas.reduce sum : l
    %a_d, %a_w = kas.share %a : k
    %b_d, %b_w = kas.share %b : l
    %u = kas.unfold %i, %a_d causal : N, k
    %v = kas.unfold %u, %b_d causal : N, l
    kas.yield data(%v) weight(%a_w) weight(%b_w)
  }
  kas.operator @after<N | k, l>(%i: N) from [N] {
    %a = kas.reduce sum : k
    %b = kas.reduce sum : l
    %a_d, %a_w = kas.share %a : k
    %b_d, %b_w = kas.share %b : l
    %u = kas.unfold %i, %b_d causal : N, l
    %v = kas.unfold %u, %a_d causal : N, k
    kas.yield data(%v) weight(%a_w) weight(%b_w)
  }
  module @near_miss attributes {rule.statement = "windows that lie around their base differ at the border", rule.sizes = #kas.binding<N = 7, k = 3, l = 5>} {
    kas.operator @before<N | k, l>(%i: N) from [N] {
      %a = kas.reduce sum : k
      %b = kas.reduce sum : l
      %a_d, %a_w = kas.share %a : k
      %b_d, %b_w = kas.share %b : l
      %u = kas.unfold %i, %a_d : N, k
      %v = kas.unfold %u, %b_d : N, l
      kas.yield data(%v) weight(%a_w) weight(%b_w)
    }
    kas.operator @after<N | k, l>(%i: N) from [N] {
      %a = kas.reduce sum : k
      %b = kas.reduce sum : l
      %a_d, %a_w = kas.share %a : k
      %b_d, %b_w = kas.share %b : l
      %u = kas.unfold %i, %b_d : N, l
      %v = kas.unfold %u, %a_d : N, k
      kas.yield data(%v) weight(%a_w) weight(%b_w)
    }
  }
}

module @U6_cyclic attributes {rule.statement = "so may two windows that wrap around",
                              rule.condition = affine_set<()[N, k, l] : (2 * N - k >= 0, 2 * N - l >= 0)>} {
  kas.operator @before<N | k, l>(%i: N) from [N] {
    %a = kas.reduce sum : k
    %b = kas.reduce sum : l
    %a_d, %a_w = kas.share %a : k
    %b_d, %b_w = kas.share %b : l
    %u_zero = kas.reduce sum : 1
    %u_first = kas.stride %u_zero by 3 : 1
    %u_second = kas.shift %u_first by 1 : 3
    %u_three = kas.split %u_second, %i : 3, N
    %u_all = kas.unfold %u_three, %a_d : 3*N, k
    %u_copy, %u = kas.merge %u_all by N : 3*N
    kas.expand %u_copy : 3
    %v_zero = kas.reduce sum : 1
    %v_first = kas.stride %v_zero by 3 : 1
    %v_second = kas.shift %v_first by 1 : 3
    %v_three = kas.split %v_second, %u : 3, N
    %v_all = kas.unfold %v_three, %b_d : 3*N, l
    %v_copy, %v = kas.merge %v_all by N : 3*N
    kas.expand %v_copy : 3
    kas.yield data(%v) weight(%a_w) weight(%b_w)
  }
  kas.operator @after<N | k, l>(%i: N) from [N] {
    %a = kas.reduce sum : k
    %b = kas.reduce sum : l
    %a_d, %a_w = kas.share %a : k
    %b_d, %b_w = kas.share %b : l
    %u_zero = kas.reduce sum : 1
    %u_first = kas.stride %u_zero by 3 : 1
    %u_second = kas.shift %u_first by 1 : 3
    %u_three = kas.split %u_second, %i : 3, N
    %u_all = kas.unfold %u_three, %b_d : 3*N, l
    %u_copy, %u = kas.merge %u_all by N : 3*N
    kas.expand %u_copy : 3
    %v_zero = kas.reduce sum : 1
    %v_first = kas.stride %v_zero by 3 : 1
    %v_second = kas.shift %v_first by 1 : 3
    %v_three = kas.split %v_second, %u : 3, N
    %v_all = kas.unfold %v_three, %a_d : 3*N, k
    %v_copy, %v = kas.merge %v_all by N : 3*N
    kas.expand %v_copy : 3
    kas.yield data(%v) weight(%a_w) weight(%b_w)
  }
  module @near_miss attributes {rule.statement = "one of them is shifted by one", rule.sizes = #kas.binding<N = 7, k = 3, l = 5>} {
    kas.operator @before<N | k, l>(%i: N) from [N] {
      %a = kas.reduce sum : k
      %b = kas.reduce sum : l
      %a_d, %a_w = kas.share %a : k
      %b_d, %b_w = kas.share %b : l
      %u_zero = kas.reduce sum : 1
      %u_first = kas.stride %u_zero by 3 : 1
      %u_second = kas.shift %u_first by 1 : 3
      %u_three = kas.split %u_second, %i : 3, N
      %u_all = kas.unfold %u_three, %a_d : 3*N, k
      %u_copy, %u = kas.merge %u_all by N : 3*N
      kas.expand %u_copy : 3
      %v_zero = kas.reduce sum : 1
      %v_first = kas.stride %v_zero by 3 : 1
      %v_second = kas.shift %v_first by 1 : 3
      %v_three = kas.split %v_second, %u : 3, N
      %v_all = kas.unfold %v_three, %b_d : 3*N, l
      %v_copy, %v = kas.merge %v_all by N : 3*N
      kas.expand %v_copy : 3
      kas.yield data(%v) weight(%a_w) weight(%b_w)
    }
    kas.operator @after<N | k, l>(%i: N) from [N] {
      %a = kas.reduce sum : k
      %b = kas.reduce sum : l
      %a_d, %a_w = kas.share %a : k
      %b_d, %b_w = kas.share %b : l
      %u_zero = kas.reduce sum : 1
      %u_first = kas.stride %u_zero by 3 : 1
      %u_second = kas.shift %u_first by 1 : 3
      %u_three = kas.split %u_second, %i : 3, N
      %u_all = kas.unfold %u_three, %b_d : 3*N, l
      %u_copy, %u = kas.merge %u_all by N : 3*N
      kas.expand %u_copy : 3
      %v_zero = kas.reduce sum : 1
      %v_first = kas.stride %v_zero by 3 : 1
      %v_second = kas.shift %v_first by 1 : 3
      %v_three = kas.split %v_second, %u : 3, N
      %v_all = kas.unfold %v_three, %a_d : 3*N, k
      %v_copy, %v = kas.merge %v_all by N : 3*N
      kas.expand %v_copy : 3
      %s = kas.shift %v by 1 : N
      kas.yield data(%s) weight(%a_w) weight(%b_w)
    }
  }
}

//===----------------------------------------------------------------------===//
// Splits
//===----------------------------------------------------------------------===//

module @S4 attributes {rule.statement = "halves of a merge side by side, with the same weights, are the whole", rule.renames_weights} {
  kas.operator @before<N | b>(%i: N*b) from [N*b] {
    %q, %r = kas.merge %i by b : N*b
    %q_d, %q_w = kas.share %q : N
    %r_d, %r_w = kas.share %r : b
    %t = kas.split %q_d, %r_d : N, b
    kas.yield data(%t) weight(%q_w, %r_w)
  }
  kas.operator @after<N | b>(%i: N*b) from [N*b] {
    %i_d, %i_w = kas.share %i : N*b
    kas.yield data(%i_d) weight(%i_w)
  }
  module @near_miss attributes {rule.statement = "one of them has the weight", rule.sizes = #kas.binding<N = 2, b = 2>} {
    kas.operator @before<N | b>(%i: N*b) from [N*b] {
      %q, %r = kas.merge %i by b : N*b
      %q_d, %q_w = kas.share %q : N
      %t = kas.split %q_d, %r : N, b
      kas.yield data(%t) weight(%q_w)
    }
  }
}

module @S4_reductions attributes {rule.statement = "two reductions side by side, with the same weights, are one", rule.renames_weights} {
  kas.operator @before<N, K, L>(%i: N) from [K*L] {
    %r = kas.reduce sum : K
    %s = kas.reduce sum : L
    %r_d, %r_w = kas.share %r : K
    %s_d, %s_w = kas.share %s : L
    %t = kas.split %r_d, %s_d : K, L
    kas.yield data(%t) weight(%i, %r_w, %s_w)
  }
  kas.operator @after<N, K, L>(%i: N) from [K*L] {
    %r = kas.reduce sum : K*L
    %r_d, %r_w = kas.share %r : K*L
    kas.yield data(%r_d) weight(%i, %r_w)
  }
  kas.operator @map<N, K, L>(%i: N, %r: K, %s: L) from [N, K*L] {
    %t = kas.split %r, %s : K, L
    kas.yield data(%i, %t)
  }
  module @near_miss attributes {rule.statement = "one of them has the weight", rule.sizes = #kas.binding<N = 2, K = 2, L = 2>} {
    kas.operator @before<N, K, L>(%i: N) from [K*L] {
      %r = kas.reduce sum : K
      %s = kas.reduce sum : L
      %r_d, %r_w = kas.share %r : K
      %t = kas.split %r_d, %s : K, L
      kas.yield data(%t) weight(%i, %r_w)
    }
  }
}

module @S6 attributes {rule.statement = "two factors of an unordered output side by side in either order, with the same weights, are one of a permuted output",
                       rule.renames_weights} {
  kas.operator @before<A, B>(%o: A*B unordered) from [A*B] {
    %a, %b = kas.merge %o by B : A*B
    %a_d, %a_w = kas.share %a : A
    %b_d, %b_w = kas.share %b : B
    %t = kas.split %b_d, %a_d : B, A
    kas.yield data(%t) weight(%a_w, %b_w)
  }
  kas.operator @after<A, B>(%o: A*B unordered) from [A*B] {
    %d, %w = kas.share %o : A*B
    kas.yield data(%d) weight(%w)
  }
  kas.operator @map<A, B>(%o: A*B) from [A*B] {
    %a, %b = kas.merge %o by B : A*B
    %t = kas.split %b, %a : B, A
    kas.yield data(%t)
  }
  module @near_miss attributes {rule.statement = "of an ordered output", rule.sizes = #kas.binding<A = 2, B = 3>} {
    kas.operator @before<A, B>(%o: A*B) from [A*B] {
      %a, %b = kas.merge %o by B : A*B
      %a_d, %a_w = kas.share %a : A
      %b_d, %b_w = kas.share %b : B
      %t = kas.split %b_d, %a_d : B, A
      kas.yield data(%t) weight(%a_w, %b_w)
    }
    kas.operator @after<A, B>(%o: A*B) from [A*B] {
      %d, %w = kas.share %o : A*B
      kas.yield data(%d) weight(%w)
    }
  }
}

module @S8 attributes {rule.statement = "halves of a merge side by side are the whole for the data, also when a weight has one of them: split(split(q, m), r) = split(q, split(m, r))"} {
  kas.operator @before<N, M | b>(%i: N*b, %x: M) from [N*M*b] {
    %q, %r = kas.merge %i by b : N*b
    %q_d, %q_w = kas.share %q : N
    %s = kas.split %q_d, %r : N, b
    %t = kas.split %s, %x : N*b, M
    kas.yield data(%t) weight(%q_w)
  }
  kas.operator @after<N, M | b>(%i: N*b, %x: M) from [N*M*b] {
    %q, %r = kas.merge %i by b : N*b
    %q_d, %q_w = kas.share %q : N
    %s = kas.split %r, %x : b, M
    %t = kas.split %q_d, %s : N, M*b
    kas.yield data(%t) weight(%q_w)
  }
  module @near_miss attributes {rule.statement = "split(m, split(q, r))", rule.sizes = #kas.binding<N = 2, M = 2, b = 2>} {
    kas.operator @after<N, M | b>(%i: N*b, %x: M) from [N*M*b] {
      %q, %r = kas.merge %i by b : N*b
      %q_d, %q_w = kas.share %q : N
      %s = kas.split %q_d, %x : N, M
      %t = kas.split %r, %s : b, N*M
      kas.yield data(%t) weight(%q_w)
    }
  }
}

//===----------------------------------------------------------------------===//
// Unordered dimensions
//===----------------------------------------------------------------------===//

module @D2 attributes {rule.statement = "a shift that is a factor of an unordered input permutes it", rule.amounts = array<i64: 1>} {
  kas.operator @before<N, M>(%i: N, %j: M) from [N*M unordered] {
    %s = kas.shift %i by 1 {expression = #d0} : N
    %t = kas.split %s, %j : N, M
    kas.yield data(%t)
  }
  kas.operator @after<N, M>(%i: N, %j: M) from [N*M unordered] {
    %t = kas.split %i, %j : N, M
    kas.yield data(%t)
  }
  module @near_miss attributes {rule.statement = "of an ordered input", rule.sizes = #kas.binding<N = 3, M = 2>} {
    kas.operator @before<N, M>(%i: N, %j: M) from [N*M] {
      %s = kas.shift %i by 1 {expression = #d0} : N
      %t = kas.split %s, %j : N, M
      kas.yield data(%t)
    }
    kas.operator @after<N, M>(%i: N, %j: M) from [N*M] {
      %t = kas.split %i, %j : N, M
      kas.yield data(%t)
    }
  }
}

module @D3 attributes {rule.statement = "two reductions with the same weights that are factors of an unordered input, adjacent or not, are one", rule.renames_weights} {
  kas.operator @before<M, K, L>(%x: M) from [K*L*M unordered] {
    %r = kas.reduce sum : K
    %s = kas.reduce sum : L
    %r_d, %r_w = kas.share %r : K
    %s_d, %s_w = kas.share %s : L
    %x_d, %x_w = kas.share %x : M
    %t = kas.split %x_d, %s_d : M, L
    %u = kas.split %r_d, %t : K, L*M
    kas.yield data(%u) weight(%x_w, %r_w, %s_w)
  }
  kas.operator @after<M, K, L>(%x: M) from [K*L*M unordered] {
    %r = kas.reduce sum : K*L
    %r_d, %r_w = kas.share %r : K*L
    %x_d, %x_w = kas.share %x : M
    %u = kas.split %r_d, %x_d : K*L, M
    kas.yield data(%u) weight(%x_w, %r_w)
  }
  kas.operator @map<M, K, L>(%x: M, %r: K, %s: L) from [M, K*L] {
    %t = kas.split %r, %s : K, L
    kas.yield data(%x, %t)
  }
  module @near_miss attributes {rule.statement = "of an ordered input", rule.sizes = #kas.binding<M = 2, K = 2, L = 2>} {
    kas.operator @before<M, K, L>(%x: M) from [K*L*M] {
      %r = kas.reduce sum : K
      %s = kas.reduce sum : L
      %r_d, %r_w = kas.share %r : K
      %s_d, %s_w = kas.share %s : L
      %x_d, %x_w = kas.share %x : M
      %t = kas.split %x_d, %s_d : M, L
      %u = kas.split %r_d, %t : K, L*M
      kas.yield data(%u) weight(%x_w, %r_w, %s_w)
    }
    kas.operator @after<M, K, L>(%x: M) from [K*L*M] {
      %r = kas.reduce sum : K*L
      %r_d, %r_w = kas.share %r : K*L
      %x_d, %x_w = kas.share %x : M
      %u = kas.split %r_d, %x_d : K*L, M
      kas.yield data(%u) weight(%x_w, %r_w)
    }
  }
}

module @D4 attributes {rule.statement = "two halves of a merge with the same weights that are factors of an unordered input, in whatever order, are the whole", rule.renames_weights} {
  kas.operator @before<N, M | b>(%i: N*b, %x: M) from [N*M*b unordered] {
    %q, %r = kas.merge %i by b : N*b
    %q_d, %q_w = kas.share %q : N
    %r_d, %r_w = kas.share %r : b
    %t = kas.split %x, %q_d : M, N
    %u = kas.split %r_d, %t : b, M*N
    kas.yield data(%u) weight(%q_w, %r_w)
  }
  kas.operator @after<N, M | b>(%i: N*b, %x: M) from [N*M*b unordered] {
    %i_d, %i_w = kas.share %i : N*b
    %u = kas.split %i_d, %x : N*b, M
    kas.yield data(%u) weight(%i_w)
  }
  module @near_miss attributes {rule.statement = "of an ordered input", rule.sizes = #kas.binding<N = 2, M = 2, b = 2>} {
    kas.operator @before<N, M | b>(%i: N*b, %x: M) from [N*M*b] {
      %q, %r = kas.merge %i by b : N*b
      %q_d, %q_w = kas.share %q : N
      %r_d, %r_w = kas.share %r : b
      %t = kas.split %x, %q_d : M, N
      %u = kas.split %r_d, %t : b, M*N
      kas.yield data(%u) weight(%q_w, %r_w)
    }
    kas.operator @after<N, M | b>(%i: N*b, %x: M) from [N*M*b] {
      %i_d, %i_w = kas.share %i : N*b
      %u = kas.split %i_d, %x : N*b, M
      kas.yield data(%u) weight(%i_w)
    }
  }
}

module @D4_factors attributes {rule.statement = "two factors of one unordered output with the same weights are one factor", rule.renames_weights} {
  kas.operator @before<A, B, C>(%o: A*B*C unordered) from [A*C unordered, B] {
    %ab, %c = kas.merge %o by C : A*B*C
    %a, %b = kas.merge %ab by B : A*B
    %a_d, %a_w = kas.share %a : A
    %c_d, %c_w = kas.share %c : C
    %t = kas.split %c_d, %a_d : C, A
    kas.yield data(%t, %b) weight(%a_w, %c_w)
  }
  kas.operator @after<A, B, C>(%o: A*B*C unordered) from [A*C unordered, B] {
    %ac, %b = kas.merge %o by B : A*B*C
    %d, %w = kas.share %ac : A*C
    kas.yield data(%d, %b) weight(%w)
  }
  kas.operator @map<A, B, C>(%o: A*B*C) from [A*B*C] {
    %ab, %c = kas.merge %o by C : A*B*C
    %a, %b = kas.merge %ab by B : A*B
    %ac = kas.split %a, %c : A, C
    %p = kas.split %ac, %b : A*C, B
    kas.yield data(%p)
  }
  module @near_miss attributes {rule.statement = "the weight has one of them", rule.sizes = #kas.binding<A = 2, B = 2, C = 2>} {
    kas.operator @before<A, B, C>(%o: A*B*C unordered) from [A*C unordered, B] {
      %ab, %c = kas.merge %o by C : A*B*C
      %a, %b = kas.merge %ab by B : A*B
      %a_d, %a_w = kas.share %a : A
      %t = kas.split %c, %a_d : C, A
      kas.yield data(%t, %b) weight(%a_w)
    }
  }
}

//===----------------------------------------------------------------------===//
// Shifts
//===----------------------------------------------------------------------===//

module @H1 attributes {rule.statement = "shifts add up, also to none or by more than the size (R3)", rule.amounts = array<i64: 1, 1>} {
  kas.operator @before<N>(%i: N) from [N] {
    %a = kas.shift %i by 1 {expression = #d0} : N
    %b = kas.shift %a by 1 {expression = #d1} : N
    kas.yield data(%b)
  }
  kas.operator @after<N>(%i: N) from [N] {
    %a = kas.shift %i by 1 {expression = #d1} : N
    %b = kas.shift %a by 1 {expression = #d0} : N
    kas.yield data(%b)
  }
  module @near_miss attributes {rule.statement = "another amount", rule.sizes = #kas.binding<N = 5>,
                                rule.condition = affine_set<(d0, d1) : (d0 - 1 == 0, d1 - 2 == 0)>} {
    kas.operator @after<N>(%i: N) from [N] {
      %a = kas.shift %i by 1 {expression = #d1} : N
      %b = kas.shift %a by 1 {expression = #d1} : N
      kas.yield data(%b)
    }
  }
}

module @H1_sum attributes {rule.statement = "two shifts are one by the sum where that is less than the size", rule.amounts = array<i64: 1, 1>,
                           rule.condition = affine_set<(d0, d1)[N] : (d0 - 1 >= 0, d1 - 1 >= 0, N - d0 - d1 - 1 >= 0)>} {
  kas.operator @before<N>(%i: N) from [N] {
    %a = kas.shift %i by 1 {expression = #d0} : N
    %b = kas.shift %a by 1 {expression = #d1} : N
    kas.yield data(%b)
  }
  kas.operator @after<N>(%i: N) from [N] {
    %a = kas.shift %i by 2 {expression = #sum} : N
    kas.yield data(%a)
  }
  module @near_miss attributes {rule.statement = "where it is not", rule.sizes = #kas.binding<N = 4>,
                                rule.condition = affine_set<(d0, d1) : (d0 - 2 == 0, d1 - 2 == 0)>} {}
}

module @H1_channel attributes {rule.statement = "a shift of an unordered output relabels it, also for the weights that have it", rule.renames_weights,
                               rule.amounts = array<i64: 1>} {
  kas.operator @before<N, M>(%o: N unordered, %j: M) from [N, M] {
    %d, %w = kas.share %o : N
    %s = kas.shift %d by 1 {expression = #d0} : N
    kas.yield data(%s, %j) weight(%w)
  }
  kas.operator @after<N, M>(%o: N unordered, %j: M) from [N, M] {
    %d, %w = kas.share %o : N
    kas.yield data(%d, %j) weight(%w)
  }
  kas.operator @map<N, M>(%o: N, %j: M) from [N, M] {
    %s = kas.shift %o by 1 {expression = #d0} : N
    kas.yield data(%s, %j)
  }
  module @near_miss attributes {rule.statement = "of an ordered output", rule.sizes = #kas.binding<N = 3, M = 2>} {
    kas.operator @before<N, M>(%o: N, %j: M) from [N, M] {
      %d, %w = kas.share %o : N
      %s = kas.shift %d by 1 {expression = #d0} : N
      kas.yield data(%s, %j) weight(%w)
    }
    kas.operator @after<N, M>(%o: N, %j: M) from [N, M] {
      %d, %w = kas.share %o : N
      kas.yield data(%d, %j) weight(%w)
    }
  }
}

module @H1_reduction attributes {rule.statement = "so does a shift of a reduction", rule.renames_weights, rule.amounts = array<i64: 1>} {
  kas.operator @before<N, M>(%j: M) from [N, M] {
    %r = kas.reduce sum : N
    %d, %w = kas.share %r : N
    %s = kas.shift %d by 1 {expression = #d0} : N
    %j_d, %j_w = kas.share %j : M
    kas.yield data(%s, %j_d) weight(%j_w, %w)
  }
  kas.operator @after<N, M>(%j: M) from [N, M] {
    %r = kas.reduce sum : N
    %d, %w = kas.share %r : N
    %j_d, %j_w = kas.share %j : M
    kas.yield data(%d, %j_d) weight(%j_w, %w)
  }
  kas.operator @map<N, M>(%j: M, %r: N) from [M, N] {
    %s = kas.shift %r by 1 {expression = #d0} : N
    kas.yield data(%j, %s)
  }
  module @near_miss attributes {rule.statement = "of an ordered output", rule.sizes = #kas.binding<N = 3, M = 2>} {
    kas.operator @before<N, M>(%j: M, %r: N) from [N, M] {
      %d, %w = kas.share %r : N
      %s = kas.shift %d by 1 {expression = #d0} : N
      %j_d, %j_w = kas.share %j : M
      kas.yield data(%s, %j_d) weight(%j_w, %w)
    }
    kas.operator @after<N, M>(%j: M, %r: N) from [N, M] {
      %d, %w = kas.share %r : N
      %j_d, %j_w = kas.share %j : M
      kas.yield data(%d, %j_d) weight(%j_w, %w)
    }
  }
}

module @H3 attributes {rule.statement = "q, r = merge(i), then a shift of split(shift q, r) is the same with the last shift below the merge",
                       rule.amounts = array<i64: 1, 1>} {
  kas.operator @before<N | b>(%i: N*b) from [N*b] {
    %q, %r = kas.merge %i by b : N*b
    %s = kas.shift %q by 1 {expression = #d0} : N
    %t = kas.split %s, %r : N, b
    %u = kas.shift %t by 1 {expression = #d1} : N*b
    kas.yield data(%u)
  }
  kas.operator @after<N | b>(%i: N*b) from [N*b] {
    %u = kas.shift %i by 1 {expression = #d1} : N*b
    %q, %r = kas.merge %u by b : N*b
    %s = kas.shift %q by 1 {expression = #d0} : N
    %t = kas.split %s, %r : N, b
    kas.yield data(%t)
  }
  module @near_miss attributes {rule.statement = "a shift of split(q, shift r)", rule.sizes = #kas.binding<N = 2, b = 3>} {
    kas.operator @before<N | b>(%i: N*b) from [N*b] {
      %q, %r = kas.merge %i by b : N*b
      %s = kas.shift %r by 1 {expression = #d0} : b
      %t = kas.split %q, %s : N, b
      %u = kas.shift %t by 1 {expression = #d1} : N*b
      kas.yield data(%u)
    }
    kas.operator @after<N | b>(%i: N*b) from [N*b] {
      %u = kas.shift %i by 1 {expression = #d1} : N*b
      %q, %r = kas.merge %u by b : N*b
      %s = kas.shift %r by 1 {expression = #d0} : b
      %t = kas.split %q, %s : N, b
      kas.yield data(%t)
    }
  }
}

module @H4 attributes {rule.statement = "of a coordinate with two points, a shift by -1 is one by 1"} {
  kas.operator @before<N>(%i: 2, %j: N) from [2, N] {
    %s = kas.shift %i by -1 : 2
    kas.yield data(%s, %j)
  }
  kas.operator @after<N>(%i: 2, %j: N) from [2, N] {
    %s = kas.shift %i by 1 : 2
    kas.yield data(%s, %j)
  }
  module @near_miss attributes {rule.statement = "with three points", rule.sizes = #kas.binding<N = 2>} {
    kas.operator @before<N>(%i: 3, %j: N) from [3, N] {
      %s = kas.shift %i by -1 : 3
      kas.yield data(%s, %j)
    }
    kas.operator @after<N>(%i: 3, %j: N) from [3, N] {
      %s = kas.shift %i by 1 : 3
      kas.yield data(%s, %j)
    }
  }
}

module @H5 attributes {rule.statement = "a shift of split(r, x), r a reduction that no weight has without x, is split(r, shift x)", rule.renames_weights,
                       rule.amounts = array<i64: 1>, rule.condition = affine_set<(d0)[N, b] : (d0 - 1 >= 0, b - d0 - 1 >= 0)>} {
  kas.operator @before<N | b>(%j: b) from [N*b] {
    %r = kas.reduce sum : N
    %r_d, %r_w = kas.share %r : N
    %j_d, %j_w = kas.share %j : b
    %t = kas.split %r_d, %j_d : N, b
    %s = kas.shift %t by 1 {expression = #d0} : N*b
    kas.yield data(%s) weight(%r_w, %j_w)
  }
  kas.operator @after<N | b>(%j: b) from [N*b] {
    %r = kas.reduce sum : N
    %r_d, %r_w = kas.share %r : N
    %j_d, %j_w = kas.share %j : b
    %s = kas.shift %j_d by 1 {expression = #d0} : b
    %t = kas.split %r_d, %s : N, b
    kas.yield data(%t) weight(%r_w, %j_w)
  }
  kas.operator @map<N | b>(%j: b, %r: N) from [b, N] {
    %t = kas.split %r, %j : N, b
    %s = kas.shift %t by 1 {expression = #d0} : N*b
    %q, %m = kas.merge %s by b : N*b
    %x = kas.shift %m by -1 {expression = #minus0} : b
    kas.yield data(%x, %q)
  }
  module @near_miss attributes {rule.statement = "a weight has r without x", rule.sizes = #kas.binding<N = 2, b = 2>} {
    kas.operator @before<N | b>(%j: b) from [N*b] {
      %r = kas.reduce sum : N
      %r_d, %r_w = kas.share %r : N
      %t = kas.split %r_d, %j : N, b
      %s = kas.shift %t by 1 {expression = #d0} : N*b
      kas.yield data(%s) weight(%r_w)
    }
    kas.operator @after<N | b>(%j: b) from [N*b] {
      %r = kas.reduce sum : N
      %r_d, %r_w = kas.share %r : N
      %s = kas.shift %j by 1 {expression = #d0} : b
      %t = kas.split %r_d, %s : N, b
      kas.yield data(%t) weight(%r_w)
    }
  }
}

module @H5_carried attributes {rule.statement = "so it is when a carry has been added to r before", rule.amounts = array<i64: 1, 1>,
                               rule.condition = affine_set<(d0, d1)[N, b, c] : (d1 - 1 >= 0, c - d1 - 1 >= 0)>} {
  kas.operator @before<N | b, c>(%j: b, %k: c) from [N*c, b] {
    %r = kas.reduce sum : N
    %t = kas.split %r, %j : N, b
    %s = kas.shift %t by 1 {expression = #d0} : N*b
    %q, %m = kas.merge %s by b : N*b
    %u = kas.split %q, %k : N, c
    %v = kas.shift %u by 1 {expression = #d1} : N*c
    kas.yield data(%v, %m)
  }
  kas.operator @after<N | b, c>(%j: b, %k: c) from [N*c, b] {
    %r = kas.reduce sum : N
    %t = kas.split %r, %j : N, b
    %s = kas.shift %t by 1 {expression = #d0} : N*b
    %q, %m = kas.merge %s by b : N*b
    %v = kas.shift %k by 1 {expression = #d1} : c
    %u = kas.split %q, %v : N, c
    kas.yield data(%u, %m)
  }
  kas.operator @map<N | b, c>(%j: b, %k: c, %r: N) from [b, c, N] {
    %u = kas.split %r, %k : N, c
    %v = kas.shift %u by 1 {expression = #d1} : N*c
    %q, %m = kas.merge %v by c : N*c
    %x = kas.shift %m by -1 {expression = #minus1} : c
    kas.yield data(%j, %x, %q)
  }
  module @near_miss attributes {rule.statement = "r is an output", rule.sizes = #kas.binding<N = 2, b = 2, c = 2>} {
    kas.operator @before<N | b, c>(%j: b, %k: c, %r: N) from [N*c, b] {
      %t = kas.split %r, %j : N, b
      %s = kas.shift %t by 1 {expression = #d0} : N*b
      %q, %m = kas.merge %s by b : N*b
      %u = kas.split %q, %k : N, c
      %v = kas.shift %u by 1 {expression = #d1} : N*c
      kas.yield data(%v, %m)
    }
    kas.operator @after<N | b, c>(%j: b, %k: c, %r: N) from [N*c, b] {
      %t = kas.split %r, %j : N, b
      %s = kas.shift %t by 1 {expression = #d0} : N*b
      %q, %m = kas.merge %s by b : N*b
      %v = kas.shift %k by 1 {expression = #d1} : c
      %u = kas.split %q, %v : N, c
      kas.yield data(%u, %m)
    }
  }
}

module @H5_factors attributes {rule.statement = "so it is when r and x are factors of one unordered output", rule.amounts = array<i64: 1>,
                               rule.condition = affine_set<(d0)[N, b, c] : (d0 - 1 >= 0, b - d0 - 1 >= 0)>} {
  kas.operator @before<N | b, c>(%o: N*b*c unordered) from [N*b, c] {
    %p, %x = kas.merge %o by b : N*b*c
    %r, %a = kas.merge %p by c : N*c
    %t = kas.split %r, %x : N, b
    %s = kas.shift %t by 1 {expression = #d0} : N*b
    kas.yield data(%s, %a)
  }
  kas.operator @after<N | b, c>(%o: N*b*c unordered) from [N*b, c] {
    %p, %x = kas.merge %o by b : N*b*c
    %r, %a = kas.merge %p by c : N*c
    %s = kas.shift %x by 1 {expression = #d0} : b
    %t = kas.split %r, %s : N, b
    kas.yield data(%t, %a)
  }
  kas.operator @map<N | b, c>(%o: N*b*c) from [N*b*c] {
    %p, %x = kas.merge %o by b : N*b*c
    %r, %a = kas.merge %p by c : N*c
    %t = kas.split %r, %x : N, b
    %s = kas.shift %t by 1 {expression = #d0} : N*b
    %q, %m = kas.merge %s by b : N*b
    %y = kas.shift %m by -1 {expression = #minus0} : b
    %u = kas.split %q, %a : N, c
    %v = kas.split %u, %y : N*c, b
    kas.yield data(%v)
  }
  module @near_miss attributes {rule.statement = "of an ordered output", rule.sizes = #kas.binding<N = 2, b = 2, c = 2>} {
    kas.operator @before<N | b, c>(%o: N*b*c) from [N*b, c] {
      %p, %x = kas.merge %o by b : N*b*c
      %r, %a = kas.merge %p by c : N*c
      %t = kas.split %r, %x : N, b
      %s = kas.shift %t by 1 {expression = #d0} : N*b
      kas.yield data(%s, %a)
    }
    kas.operator @after<N | b, c>(%o: N*b*c) from [N*b, c] {
      %p, %x = kas.merge %o by b : N*b*c
      %r, %a = kas.merge %p by c : N*c
      %s = kas.shift %x by 1 {expression = #d0} : b
      %t = kas.split %r, %s : N, b
      kas.yield data(%t, %a)
    }
  }
}

module @H6 attributes {rule.statement = "where the quotient is dropped, the remainder of a merge of a shift is the shift of the remainder", rule.amounts = array<i64: 1>,
                       rule.condition = affine_set<(d0)[N, b] : (d0 - 1 >= 0, b - d0 - 1 >= 0)>} {
  kas.operator @before<N | b>(%i: N*b) from [b] {
    %s = kas.shift %i by 1 {expression = #d0} : N*b
    %q, %r = kas.merge %s by b : N*b
    kas.expand %q : N
    kas.yield data(%r)
  }
  kas.operator @after<N | b>(%i: N*b) from [b] {
    %q, %r = kas.merge %i by b : N*b
    %s = kas.shift %r by 1 {expression = #d0} : b
    kas.expand %q : N
    kas.yield data(%s)
  }
  module @near_miss attributes {rule.statement = "the quotient is kept", rule.sizes = #kas.binding<N = 2, b = 2>} {
    kas.operator @before<N | b>(%i: N*b) from [N, b] {
      %s = kas.shift %i by 1 {expression = #d0} : N*b
      %q, %r = kas.merge %s by b : N*b
      kas.yield data(%q, %r)
    }
    kas.operator @after<N | b>(%i: N*b) from [N, b] {
      %q, %r = kas.merge %i by b : N*b
      %s = kas.shift %r by 1 {expression = #d0} : b
      kas.yield data(%q, %s)
    }
  }
}

module @H7 attributes {rule.statement = "shifts by 1 and -1 are none"} {
  kas.operator @before<N>(%i: N) from [N] {
    %a = kas.shift %i by 1 : N
    %b = kas.shift %a by -1 : N
    kas.yield data(%b)
  }
  kas.operator @after<N>(%i: N) from [N] {
    kas.yield data(%i)
  }
  module @near_miss attributes {rule.statement = "by 1 and -2", rule.sizes = #kas.binding<N = 5>} {
    kas.operator @before<N>(%i: N) from [N] {
      %a = kas.shift %i by 1 : N
      %b = kas.shift %a by -2 : N
      kas.yield data(%b)
    }
  }
}

module @H7_outer attributes {rule.statement = "a shift of the outer coordinate of a split is one of the split by the inner size", rule.amounts = array<i64: 1>} {
  kas.operator @before<N | b>(%i: N, %j: b) from [N*b] {
    %s = kas.shift %i by 1 {expression = #d0} : N
    %t = kas.split %s, %j : N, b
    kas.yield data(%t)
  }
  kas.operator @after<N | b>(%i: N, %j: b) from [N*b] {
    %t = kas.split %i, %j : N, b
    %s = kas.shift %t by 1 {expression = #blocks} : N*b
    kas.yield data(%s)
  }
  module @near_miss attributes {rule.statement = "of the inner coordinate", rule.sizes = #kas.binding<N = 3, b = 3>} {
    kas.operator @before<N | b>(%i: N, %j: b) from [N*b] {
      %s = kas.shift %j by 1 {expression = #d0} : b
      %t = kas.split %i, %s : N, b
      kas.yield data(%t)
    }
  }
}

module @H8 attributes {rule.statement = "a shift of a reduction plus what is carried into it renames its points, for the weights that have it, too",
                       rule.amounts = array<i64: 1, 1>} {
  kas.operator @before<N | b>(%j: b) from [N, b] {
    %r = kas.reduce sum : N
    %t = kas.split %r, %j : N, b
    %s = kas.shift %t by 1 {expression = #d1} : N*b
    %q, %m = kas.merge %s by b : N*b
    %p = kas.shift %q by 1 {expression = #d0} : N
    %p_d, %p_w = kas.share %p : N
    kas.yield data(%p_d, %m) weight(%p_w)
  }
  kas.operator @after<N | b>(%j: b) from [N, b] {
    %r = kas.reduce sum : N
    %t = kas.split %r, %j : N, b
    %s = kas.shift %t by 1 {expression = #d1} : N*b
    %q, %m = kas.merge %s by b : N*b
    %q_d, %q_w = kas.share %q : N
    kas.yield data(%q_d, %m) weight(%q_w)
  }
  kas.operator @map<N | b>(%j: b, %r: N) from [b, N] {
    %s = kas.shift %r by 1 {expression = #d0} : N
    kas.yield data(%j, %s)
  }
  module @near_miss attributes {rule.statement = "of an ordered output", rule.sizes = #kas.binding<N = 3, b = 2>} {
    kas.operator @before<N | b>(%j: b, %r: N) from [N, b] {
      %t = kas.split %r, %j : N, b
      %s = kas.shift %t by 1 {expression = #d1} : N*b
      %q, %m = kas.merge %s by b : N*b
      %p = kas.shift %q by 1 {expression = #d0} : N
      %p_d, %p_w = kas.share %p : N
      kas.yield data(%p_d, %m) weight(%p_w)
    }
    kas.operator @after<N | b>(%j: b, %r: N) from [N, b] {
      %t = kas.split %r, %j : N, b
      %s = kas.shift %t by 1 {expression = #d1} : N*b
      %q, %m = kas.merge %s by b : N*b
      %q_d, %q_w = kas.share %q : N
      kas.yield data(%q_d, %m) weight(%q_w)
    }
  }
}

module @H8_factor attributes {rule.statement = "so does one of a factor of an unordered output", rule.amounts = array<i64: 1>} {
  kas.operator @before<N | b>(%o: N*b unordered) from [N, b] {
    %q, %r = kas.merge %o by b : N*b
    %s = kas.shift %q by 1 {expression = #d0} : N
    %s_d, %s_w = kas.share %s : N
    kas.yield data(%s_d, %r) weight(%s_w)
  }
  kas.operator @after<N | b>(%o: N*b unordered) from [N, b] {
    %q, %r = kas.merge %o by b : N*b
    %q_d, %q_w = kas.share %q : N
    kas.yield data(%q_d, %r) weight(%q_w)
  }
  kas.operator @map<N | b>(%o: N*b) from [N*b] {
    %q, %r = kas.merge %o by b : N*b
    %s = kas.shift %q by 1 {expression = #d0} : N
    %t = kas.split %s, %r : N, b
    kas.yield data(%t)
  }
  module @near_miss attributes {rule.statement = "of an ordered output", rule.sizes = #kas.binding<N = 3, b = 2>} {
    kas.operator @before<N | b>(%o: N*b) from [N, b] {
      %q, %r = kas.merge %o by b : N*b
      %s = kas.shift %q by 1 {expression = #d0} : N
      %s_d, %s_w = kas.share %s : N
      kas.yield data(%s_d, %r) weight(%s_w)
    }
    kas.operator @after<N | b>(%o: N*b) from [N, b] {
      %q, %r = kas.merge %o by b : N*b
      %q_d, %q_w = kas.share %q : N
      kas.yield data(%q_d, %r) weight(%q_w)
    }
  }
}

module @H8_remainder attributes {rule.statement = "where the quotient is dropped, so does the remainder of shift split(a, b), b a reduction, merged by b's size",
                                 rule.amounts = array<i64: 1>} {
  kas.operator @before<N, M | b>(%i: N, %k: M) from [b] {
    %r = kas.reduce sum : b
    %t = kas.split %i, %r : N, b
    %s = kas.shift %t by 1 {expression = #d0} : N*b
    %q, %m = kas.merge %s by b : N*b
    %m_d, %m_w = kas.share %m : b
    kas.expand %q : N
    kas.yield data(%m_d) weight(%k, %m_w)
  }
  kas.operator @after<N, M | b>(%i: N, %k: M) from [b] {
    %r = kas.reduce sum : b
    %r_d, %r_w = kas.share %r : b
    kas.expand %i : N
    kas.yield data(%r_d) weight(%k, %r_w)
  }
  kas.operator @map<N, M | b>(%i: N, %k: M, %r: b) from [N, M, b] {
    %s = kas.shift %r by 1 {expression = #d0} : b
    kas.yield data(%i, %k, %s)
  }
  module @near_miss attributes {rule.statement = "the quotient is kept", rule.sizes = #kas.binding<N = 3, M = 2, b = 2>} {
    kas.operator @before<N, M | b>(%i: N, %k: M) from [N, b] {
      %r = kas.reduce sum : b
      %t = kas.split %i, %r : N, b
      %s = kas.shift %t by 1 {expression = #d0} : N*b
      %q, %m = kas.merge %s by b : N*b
      %m_d, %m_w = kas.share %m : b
      kas.yield data(%q, %m_d) weight(%k, %m_w)
    }
    kas.operator @after<N, M | b>(%i: N, %k: M) from [N, b] {
      %r = kas.reduce sum : b
      %r_d, %r_w = kas.share %r : b
      kas.yield data(%i, %r_d) weight(%k, %r_w)
    }
  }
}

//===----------------------------------------------------------------------===//
// Expands
//===----------------------------------------------------------------------===//

module @E1 attributes {rule.statement = "dropping a coordinate that a weight has is taking it"} {
  kas.operator @before<N, M>(%i: N, %j: M) from [M] {
    %d, %w = kas.share %i : N
    kas.expand %d : N
    kas.yield data(%j) weight(%w)
  }
  kas.operator @after<N, M>(%i: N, %j: M) from [M] {
    kas.yield data(%j) weight(%i)
  }
  module @near_miss attributes {rule.statement = "another weight", rule.sizes = #kas.binding<N = 2, M = 2>, rule.renames_weights} {
    kas.operator @after<N, M>(%i: N, %j: M) from [M] {
      kas.expand %i : N
      %d, %w = kas.share %j : M
      kas.yield data(%d) weight(%w)
    }
  }
}

module @E2 attributes {rule.statement = "dropping both halves of a merge is dropping the coordinate"} {
  kas.operator @before<N, M | b>(%i: N*b, %j: M) from [M] {
    %q, %r = kas.merge %i by b : N*b
    kas.expand %q : N
    kas.expand %r : b
    kas.yield data(%j)
  }
  kas.operator @after<N, M | b>(%i: N*b, %j: M) from [M] {
    kas.expand %i : N*b
    kas.yield data(%j)
  }
  module @near_miss attributes {rule.statement = "one half", rule.sizes = #kas.binding<N = 2, M = 2, b = 2>} {
    kas.operator @before<N, M | b>(%i: N*b, %j: N) from [N] {
      %q, %r = kas.merge %i by b : N*b
      kas.expand %j : N
      kas.expand %r : b
      kas.yield data(%q)
    }
    kas.operator @after<N, M | b>(%i: N*b, %j: N) from [N] {
      kas.expand %i : N*b
      kas.yield data(%j)
    }
  }
}

module @E2_quotients attributes {rule.statement = "dropping the quotients of a coordinate and of its remainder is dropping one quotient"} {
  kas.operator @before<N | a, b>(%i: N*a*b) from [b] {
    %q, %r = kas.merge %i by a*b : N*a*b
    %s, %t = kas.merge %r by b : a*b
    kas.expand %q : N
    kas.expand %s : a
    kas.yield data(%t)
  }
  kas.operator @after<N | a, b>(%i: N*a*b) from [b] {
    %q, %r = kas.merge %i by b : N*a*b
    kas.expand %q : N*a
    kas.yield data(%r)
  }
  module @near_miss attributes {rule.statement = "the quotient and the remainder of its remainder", rule.sizes = #kas.binding<N = 2, a = 2, b = 2>} {
    kas.operator @before<N | a, b>(%i: N*a*b) from [b] {
      %q, %r = kas.merge %i by a*b : N*a*b
      %s, %t = kas.merge %r by a : a*b
      kas.expand %q : N
      kas.expand %t : a
      kas.yield data(%s)
    }
  }
}

module @E2_factors attributes {rule.statement = "dropping two factors of one unordered output is dropping one factor", rule.renames_weights} {
  kas.operator @before<A, B, C>(%o: A*B*C unordered) from [B] {
    %ab, %c = kas.merge %o by C : A*B*C
    %a, %b = kas.merge %ab by B : A*B
    %b_d, %b_w = kas.share %b : B
    kas.expand %a : A
    kas.expand %c : C
    kas.yield data(%b_d) weight(%b_w)
  }
  kas.operator @after<A, B, C>(%o: A*B*C unordered) from [B] {
    %ac, %b = kas.merge %o by B : A*B*C
    %b_d, %b_w = kas.share %b : B
    kas.expand %ac : A*C
    kas.yield data(%b_d) weight(%b_w)
  }
  kas.operator @map<A, B, C>(%o: A*B*C) from [A*B*C] {
    %ab, %c = kas.merge %o by C : A*B*C
    %a, %b = kas.merge %ab by B : A*B
    %ac = kas.split %a, %c : A, C
    %p = kas.split %ac, %b : A*C, B
    kas.yield data(%p)
  }
  module @near_miss attributes {rule.statement = "of an ordered output", rule.sizes = #kas.binding<A = 2, B = 2, C = 2>} {
    kas.operator @before<A, B, C>(%o: A*B*C) from [B] {
      %ab, %c = kas.merge %o by C : A*B*C
      %a, %b = kas.merge %ab by B : A*B
      %b_d, %b_w = kas.share %b : B
      kas.expand %a : A
      kas.expand %c : C
      kas.yield data(%b_d) weight(%b_w)
    }
    kas.operator @after<A, B, C>(%o: A*B*C) from [B] {
      %ac, %b = kas.merge %o by B : A*B*C
      %b_d, %b_w = kas.share %b : B
      kas.expand %ac : A*C
      kas.yield data(%b_d) weight(%b_w)
    }
  }
}

module @T4 attributes {rule.statement = "the quotient of a shift of a stride by b, merged by b, is what has the stride", rule.amounts = array<i64: 1>,
                       rule.condition = affine_set<(d0)[N, b] : (d0 - 1 >= 0, b - d0 - 1 >= 0)>} {
  kas.operator @before<N | b>(%i: N) from [N] {
    %t = kas.stride %i by b : N
    %s = kas.shift %t by 1 {expression = #d0} : N*b
    %q, %r = kas.merge %s by b : N*b
    kas.expand %r : b
    kas.yield data(%q)
  }
  kas.operator @after<N | b>(%i: N) from [N] {
    kas.yield data(%i)
  }
  module @near_miss attributes {rule.statement = "by -1", rule.sizes = #kas.binding<N = 3, b = 2>} {
    kas.operator @before<N | b>(%i: N) from [N] {
      %t = kas.stride %i by b : N
      %s = kas.shift %t by -1 : N*b
      %q, %r = kas.merge %s by b : N*b
      kas.expand %r : b
      kas.yield data(%q)
    }
    kas.operator @after<N | b>(%i: N) from [N] {
      kas.yield data(%i)
    }
  }
}

module @T4_larger attributes {rule.statement = "the halves of a shift of a stride by b, merged by b*c, are those of what has the stride by c, the remainder with the stride and the shift", rule.amounts = array<i64: 1>,
                              rule.condition = affine_set<(d0)[N, b, c] : (d0 - 1 >= 0, b - d0 - 1 >= 0)>} {
  kas.operator @before<N | b, c>(%i: N*c) from [N, b*c] {
    %t = kas.stride %i by b : N*c
    %s = kas.shift %t by 1 {expression = #d0} : N*b*c
    %q, %r = kas.merge %s by b*c : N*b*c
    kas.yield data(%q, %r)
  }
  kas.operator @after<N | b, c>(%i: N*c) from [N, b*c] {
    %q, %r = kas.merge %i by c : N*c
    %t = kas.stride %r by b : c
    %s = kas.shift %t by 1 {expression = #d0} : b*c
    kas.yield data(%q, %s)
  }
  module @near_miss attributes {rule.statement = "by -1", rule.sizes = #kas.binding<N = 2, b = 2, c = 2>} {
    kas.operator @before<N | b, c>(%i: N*c) from [N, b*c] {
      %t = kas.stride %i by b : N*c
      %s = kas.shift %t by -1 : N*b*c
      %q, %r = kas.merge %s by b*c : N*b*c
      kas.yield data(%q, %r)
    }
    kas.operator @after<N | b, c>(%i: N*c) from [N, b*c] {
      %q, %r = kas.merge %i by c : N*c
      %t = kas.stride %r by b : c
      %s = kas.shift %t by -1 : b*c
      kas.yield data(%q, %s)
    }
  }
}
