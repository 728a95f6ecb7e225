// RUN: %python %S/prove-rules.py --tools=%kas_obj_root/bin --z3=%z3 --work=%t --skip='R24_both|R24_multiple' --canonicalize --rewrites=%kas_src_root/docs/reference/dialect.md %s | FileCheck %s
// CHECK: {{^[0-9]+}} statements of 25 rules are proven for all sizes, their near misses refuted

// The rewrites R1 to R25 of docs/reference/dialect.md: what -kas-canonicalize turns into what, and a near miss of each that
// must be refuted. docs/internals/proofs.md has the form. Those that take seconds are left to slow.test.

#d0 = affine_map<(d0) -> (d0)>
#d1 = affine_map<(d0, d1) -> (d1)>
#minus0 = affine_map<(d0) -> (-d0)>
#minus1 = affine_map<(d0, d1) -> (-d1)>
#sum = affine_map<(d0, d1) -> (d0 + d1)>
// Symbols of the operator: N, then b.
#blocks = affine_map<(d0)[N, b] -> (d0 * b)>
#blocks_and_rest = affine_map<(d0, d1)[N, b] -> (d0 * b + d1)>

module @R1 attributes {rule.statement = "split(i / B, i mod B) = i"} {
  kas.operator @before<N | b>(%i: N*b) from [N*b] {
    %q, %r = kas.merge %i by b : N*b
    %t = kas.split %q, %r : N, b
    kas.yield data(%t)
  }
  kas.operator @after<N | b>(%i: N*b) from [N*b] {
    kas.yield data(%i)
  }
  module @near_miss attributes {rule.statement = "the halves in the other order", rule.sizes = #kas.binding<N = 2, b = 3>} {
    kas.operator @before<N | b>(%i: N*b) from [N*b] {
      %q, %r = kas.merge %i by b : N*b
      %t = kas.split %r, %q : b, N
      kas.yield data(%t)
    }
  }
}

module @R1_nested attributes {rule.statement = "split(i / B, split(i mod B, x)) = split(i, x)"} {
  kas.operator @before<N, M | b>(%i: N*b, %x: M) from [N*M*b] {
    %q, %r = kas.merge %i by b : N*b
    %s = kas.split %r, %x : b, M
    %t = kas.split %q, %s : N, M*b
    kas.yield data(%t)
  }
  kas.operator @after<N, M | b>(%i: N*b, %x: M) from [N*M*b] {
    %t = kas.split %i, %x : N*b, M
    kas.yield data(%t)
  }
  module @near_miss attributes {rule.statement = "x between the halves", rule.sizes = #kas.binding<N = 2, M = 2, b = 2>} {
    kas.operator @before<N, M | b>(%i: N*b, %x: M) from [N*M*b] {
      %q, %r = kas.merge %i by b : N*b
      %s = kas.split %x, %r : M, b
      %t = kas.split %q, %s : N, M*b
      kas.yield data(%t)
    }
  }
}

module @R2 attributes {rule.statement = "(B*i + j) / B = i and (B*i + j) mod B = j"} {
  kas.operator @before<N | b>(%i: N, %j: b) from [N, b] {
    %t = kas.split %i, %j : N, b
    %q, %r = kas.merge %t by b : N*b
    kas.yield data(%q, %r)
  }
  kas.operator @after<N | b>(%i: N, %j: b) from [N, b] {
    kas.yield data(%i, %j)
  }
  module @near_miss attributes {rule.statement = "a block that is the outer size", rule.sizes = #kas.binding<N = 2, b = 3>} {
    kas.operator @before<N | b>(%i: N, %j: b) from [N, b] {
      %t = kas.split %i, %j : N, b
      %q, %r = kas.merge %t by N : N*b
      kas.yield data(%r, %q)
    }
  }
}

module @R2_nested attributes {rule.statement = "the halves may be splits: those of split(i, split(j, k)) by the size of k are split(i, j) and k"} {
  kas.operator @before<N, M | b>(%i: N, %j: M, %k: b) from [M*N, b] {
    %s = kas.split %j, %k : M, b
    %t = kas.split %i, %s : N, M*b
    %q, %r = kas.merge %t by b : M*N*b
    kas.yield data(%q, %r)
  }
  kas.operator @after<N, M | b>(%i: N, %j: M, %k: b) from [M*N, b] {
    %s = kas.split %i, %j : N, M
    kas.yield data(%s, %k)
  }
  module @near_miss attributes {rule.statement = "i and j in the other order", rule.sizes = #kas.binding<N = 2, M = 3, b = 2>} {
    kas.operator @after<N, M | b>(%i: N, %j: M, %k: b) from [M*N, b] {
      %s = kas.split %j, %i : M, N
      kas.yield data(%s, %k)
    }
  }
}

module @R3 attributes {rule.statement = "shifts by a > 0 and b < 0 are one by a + b > 0", rule.amounts = array<i64: 5, -2>,
                       rule.condition = affine_set<(d0, d1) : (d0 - 1 >= 0, -d1 - 1 >= 0, d0 + d1 - 1 >= 0)>} {
  kas.operator @before<N>(%i: N) from [N] {
    %a = kas.shift %i by 5 {expression = #d0} : N
    %b = kas.shift %a by -2 {expression = #d1} : N
    kas.yield data(%b)
  }
  kas.operator @after<N>(%i: N) from [N] {
    %a = kas.shift %i by 3 {expression = #sum} : N
    kas.yield data(%a)
  }
  module @near_miss attributes {rule.statement = "equal signs: the sum may be the size", rule.sizes = #kas.binding<N = 4>,
                                rule.condition = affine_set<(d0, d1) : (d0 - 2 == 0, d1 - 2 == 0)>} {}
}

module @R3_backward attributes {rule.statement = "the same with a + b < 0", rule.amounts = array<i64: 2, -5>,
                                rule.condition = affine_set<(d0, d1) : (d0 - 1 >= 0, -d1 - 1 >= 0, -d0 - d1 - 1 >= 0)>} {
  kas.operator @before<N>(%i: N) from [N] {
    %a = kas.shift %i by 2 {expression = #d0} : N
    %b = kas.shift %a by -5 {expression = #d1} : N
    kas.yield data(%b)
  }
  kas.operator @after<N>(%i: N) from [N] {
    %a = kas.shift %i by -3 {expression = #sum} : N
    kas.yield data(%a)
  }
  module @near_miss attributes {rule.statement = "equal signs: the sum may be the size", rule.sizes = #kas.binding<N = 4>,
                                rule.condition = affine_set<(d0, d1) : (d0 + 2 == 0, d1 + 2 == 0)>} {}
}

module @R3_none attributes {rule.statement = "shifts by a and -a are none", rule.amounts = array<i64: 5>} {
  kas.operator @before<N>(%i: N) from [N] {
    %a = kas.shift %i by 5 {expression = #d0} : N
    %b = kas.shift %a by -5 {expression = #minus0} : N
    kas.yield data(%b)
  }
  kas.operator @after<N>(%i: N) from [N] {
    kas.yield data(%i)
  }
  module @near_miss attributes {rule.statement = "shifts by a and a", rule.sizes = #kas.binding<N = 5>} {
    kas.operator @before<N>(%i: N) from [N] {
      %a = kas.shift %i by 5 {expression = #d0} : N
      %b = kas.shift %a by 5 {expression = #d0} : N
      kas.yield data(%b)
    }
  }
}

// The third amount is how often N goes into the sum.
module @R3_number attributes {rule.statement = "where N is a number, shifts by a and b are one by (a + b) mod N", rule.amounts = array<i64: 5, 5, 1>,
                              rule.instance = #kas.binding<N = 7>,
                              rule.condition = affine_set<(d0, d1, d2)[N] : (d0 + d1 - d2 * N - 1 >= 0, N - d0 - d1 + d2 * N - 1 >= 0)>} {
  kas.operator @before<N>(%i: N) from [N] {
    %a = kas.shift %i by 5 {expression = #d0} : N
    %b = kas.shift %a by 5 {expression = #d1} : N
    kas.yield data(%b)
  }
  kas.operator @after<N>(%i: N) from [N] {
    %a = kas.shift %i by 3 {expression = affine_map<(d0, d1, d2)[N] -> (d0 + d1 - d2 * N)>} : N
    kas.yield data(%a)
  }
  module @near_miss attributes {rule.statement = "one more", rule.sizes = #kas.binding<N = 5>} {
    kas.operator @after<N>(%i: N) from [N] {
      %a = kas.shift %i by 4 {expression = affine_map<(d0, d1, d2)[N] -> (d0 + d1 - d2 * N + 1)>} : N
      kas.yield data(%a)
    }
  }
}

module @R3_number_none attributes {rule.statement = "or none where that is 0", rule.amounts = array<i64: 3, 4, 1>,
                                   rule.instance = #kas.binding<N = 7>,
                                   rule.condition = affine_set<(d0, d1, d2)[N] : (d0 + d1 - d2 * N == 0)>} {
  kas.operator @before<N>(%i: N) from [N] {
    %a = kas.shift %i by 3 {expression = #d0} : N
    %b = kas.shift %a by 4 {expression = #d1} : N
    kas.yield data(%b)
  }
  kas.operator @after<N>(%i: N) from [N] {
    kas.yield data(%i)
  }
  module @near_miss attributes {rule.statement = "where it is 1", rule.sizes = #kas.binding<N = 5>,
                                rule.condition = affine_set<(d0, d1, d2)[N] : (d0 + d1 - d2 * N - 1 == 0)>} {}
}

module @R4 attributes {rule.statement = "where N is a number, a shift by -d is one by N - d", rule.amounts = array<i64: 2>,
                       rule.instance = #kas.binding<N = 7>, rule.condition = affine_set<(d0) : (d0 - 1 >= 0)>} {
  kas.operator @before<N>(%i: N) from [N] {
    %a = kas.shift %i by -2 {expression = #minus0} : N
    kas.yield data(%a)
  }
  kas.operator @after<N>(%i: N) from [N] {
    %a = kas.shift %i by 5 {expression = affine_map<(d0)[N] -> (N - d0)>} : N
    kas.yield data(%a)
  }
  module @near_miss attributes {rule.statement = "the last point instead of the size", rule.sizes = #kas.binding<N = 5>} {
    kas.operator @after<N>(%i: N) from [N] {
      %a = kas.shift %i by 4 {expression = affine_map<(d0)[N] -> (N - d0 - 1)>} : N
      kas.yield data(%a)
    }
  }
}

module @R5 attributes {rule.statement = "a reduction over f((r + d) mod N) is one over f(r)", rule.amounts = array<i64: 1>} {
  kas.operator @before<N>() from [N] {
    %r = kas.reduce sum : N
    %a = kas.shift %r by 1 {expression = #d0} : N
    kas.yield data(%a)
  }
  kas.operator @after<N>() from [N] {
    %r = kas.reduce sum : N
    kas.yield data(%r)
  }
  kas.operator @map<N>(%r: N) from [N] {
    %a = kas.shift %r by 1 {expression = #d0} : N
    kas.yield data(%a)
  }
  module @near_miss attributes {rule.statement = "a weight reads r", rule.sizes = #kas.binding<N = 3>} {
    kas.operator @before<N>() from [N] {
      %r = kas.reduce sum : N
      %d, %w = kas.share %r : N
      %a = kas.shift %d by 1 {expression = #d0} : N
      kas.yield data(%a) weight(%w)
    }
    kas.operator @after<N>() from [N] {
      %r = kas.reduce sum : N
      %d, %w = kas.share %r : N
      kas.yield data(%d) weight(%w)
    }
  }
}

module @R6 attributes {rule.statement = "strides by a and b are one by a*b"} {
  kas.operator @before<N | a, b>(%i: N) from [N*a*b] {
    %s = kas.stride %i by a : N
    %t = kas.stride %s by b : N*a
    kas.yield data(%t)
  }
  kas.operator @after<N | a, b>(%i: N) from [N*a*b] {
    %s = kas.stride %i by a*b : N
    kas.yield data(%s)
  }
  module @near_miss attributes {rule.statement = "a shift between them", rule.sizes = #kas.binding<N = 3, a = 2, b = 2>} {
    kas.operator @before<N | a, b>(%i: N) from [N*a*b] {
      %s = kas.stride %i by a : N
      %u = kas.shift %s by 1 : N*a
      %t = kas.stride %u by b : N*a
      kas.yield data(%t)
    }
  }
}

module @R6_one attributes {rule.statement = "a stride by 1 is none"} {
  kas.operator @before<N>(%i: N) from [N] {
    %s = kas.stride %i by 1 : N
    kas.yield data(%s)
  }
  kas.operator @after<N>(%i: N) from [N] {
    kas.yield data(%i)
  }
  module @near_miss attributes {rule.statement = "a shift by 1", rule.sizes = #kas.binding<N = 3>} {
    kas.operator @before<N>(%i: N) from [N] {
      %s = kas.shift %i by 1 : N
      kas.yield data(%s)
    }
  }
}

module @R7 attributes {rule.statement = "in a split, an outer coordinate of size 1 is dropped (and a reduction over it with it, R9)"} {
  kas.operator @before<N>(%i: N) from [N] {
    %one = kas.reduce sum : 1
    %t = kas.split %one, %i : 1, N
    kas.yield data(%t)
  }
  kas.operator @after<N>(%i: N) from [N] {
    kas.yield data(%i)
  }
  kas.operator @map<N>(%i: N, %one: 1) from [N] {
    kas.expand %one : 1
    kas.yield data(%i)
  }
  module @near_miss attributes {rule.statement = "of size 2", rule.sizes = #kas.binding<N = 2>} {
    kas.operator @before<N>(%i: N) from [2*N] {
      %two = kas.reduce sum : 2
      %t = kas.split %two, %i : 2, N
      kas.yield data(%t)
    }
    kas.operator @after<N>(%i: N) from [2*N] {
      %s = kas.stride %i by 2 : N
      kas.yield data(%s)
    }
    kas.operator @map<N>(%i: N, %two: 2) from [N] {
      kas.expand %two : 2
      kas.yield data(%i)
    }
  }
}

module @R7_inner attributes {rule.statement = "so is an inner one"} {
  kas.operator @before<N>(%i: N, %one: 1) from [N] {
    %t = kas.split %i, %one : N, 1
    kas.yield data(%t)
  }
  kas.operator @after<N>(%i: N, %one: 1) from [N] {
    kas.expand %one : 1
    kas.yield data(%i)
  }
  module @near_miss attributes {rule.statement = "of size 2", rule.sizes = #kas.binding<N = 2>} {
    kas.operator @before<N>(%i: N, %two: 2) from [2*N] {
      %t = kas.split %i, %two : N, 2
      kas.yield data(%t)
    }
    kas.operator @after<N>(%i: N, %two: 2) from [2*N] {
      kas.expand %two : 2
      %t = kas.stride %i by 2 : N
      kas.yield data(%t)
    }
  }
}

module @R8 attributes {rule.statement = "an unfold with a window of size 1 is none; the window is dropped"} {
  kas.operator @before<N>(%i: N, %one: 1) from [N] {
    %t = kas.unfold %i, %one : N, 1
    kas.yield data(%t)
  }
  kas.operator @after<N>(%i: N, %one: 1) from [N] {
    kas.expand %one : 1
    kas.yield data(%i)
  }
  module @near_miss attributes {rule.statement = "a window of size 2", rule.sizes = #kas.binding<N = 3>} {
    kas.operator @before<N>(%i: N, %two: 2) from [N] {
      %t = kas.unfold %i, %two : N, 2
      kas.yield data(%t)
    }
    kas.operator @after<N>(%i: N, %two: 2) from [N] {
      kas.expand %two : 2
      kas.yield data(%i)
    }
  }
}

module @R9 attributes {rule.statement = "expand of a split drops both operands"} {
  kas.operator @before<N, M | b>(%i: N, %j: b, %k: M) from [M] {
    %t = kas.split %i, %j : N, b
    kas.expand %t : N*b
    kas.yield data(%k)
  }
  kas.operator @after<N, M | b>(%i: N, %j: b, %k: M) from [M] {
    kas.expand %i : N
    kas.expand %j : b
    kas.yield data(%k)
  }
  module @near_miss attributes {rule.statement = "of an unfold: its clipping counts", rule.sizes = #kas.binding<N = 2, M = 2, b = 3>} {
    kas.operator @before<N, M | b>(%i: N, %j: b, %k: M) from [M] {
      %t = kas.unfold %i, %j : N, b
      kas.expand %t : N
      kas.yield data(%k)
    }
  }
}

module @R9_shift attributes {rule.statement = "expand of a shift drops its operand"} {
  kas.operator @before<N, M>(%i: N, %k: M) from [M] {
    %t = kas.shift %i by 1 : N
    kas.expand %t : N
    kas.yield data(%k)
  }
  kas.operator @after<N, M>(%i: N, %k: M) from [M] {
    kas.expand %i : N
    kas.yield data(%k)
  }
  module @near_miss attributes {rule.statement = "the other operand", rule.sizes = #kas.binding<N = 3, M = 3>} {
    kas.operator @before<N, M>(%i: N, %k: N) from [N] {
      %t = kas.shift %i by 1 : N
      kas.expand %t : N
      kas.yield data(%k)
    }
    kas.operator @after<N, M>(%i: N, %k: N) from [N] {
      kas.expand %k : N
      kas.yield data(%i)
    }
  }
}

module @R9_stride attributes {rule.statement = "expand of a stride drops its operand"} {
  kas.operator @before<N, M | a>(%i: N, %k: M) from [M] {
    %t = kas.stride %i by a : N
    kas.expand %t : N*a
    kas.yield data(%k)
  }
  kas.operator @after<N, M | a>(%i: N, %k: M) from [M] {
    kas.expand %i : N
    kas.yield data(%k)
  }
  module @near_miss attributes {rule.statement = "the other operand", rule.sizes = #kas.binding<N = 3, M = 3, a = 2>} {
    kas.operator @before<N, M | a>(%i: N, %k: N) from [N] {
      %t = kas.stride %i by a : N
      kas.expand %t : N*a
      kas.yield data(%k)
    }
    kas.operator @after<N, M | a>(%i: N, %k: N) from [N] {
      kas.expand %k : N
      kas.yield data(%i)
    }
  }
}

module @R9_mean attributes {rule.statement = "expand of a mean drops it"} {
  kas.operator @before<N | k>(%i: N) from [N] {
    %r = kas.reduce mean : k
    %s = kas.split %i, %r : N, k
    %q, %m = kas.merge %s by k : N*k
    kas.expand %m : k
    kas.yield data(%q)
  }
  kas.operator @after<N | k>(%i: N) from [N] {
    kas.yield data(%i)
  }
  kas.operator @map<N | k>(%i: N, %r: k) from [N] {
    kas.expand %r : k
    kas.yield data(%i)
  }
  module @near_miss attributes {rule.statement = "of a sum: its terms count", rule.sizes = #kas.binding<N = 2, k = 2>} {
    kas.operator @before<N | k>(%i: N) from [N] {
      %r = kas.reduce sum : k
      %s = kas.split %i, %r : N, k
      %q, %m = kas.merge %s by k : N*k
      kas.expand %m : k
      kas.yield data(%q)
    }
  }
}

module @R9_max attributes {rule.statement = "expand of a maximum drops it"} {
  kas.operator @before<N | k>(%i: N) from [N] {
    %r = kas.reduce max : k
    %s = kas.split %i, %r : N, k
    %q, %m = kas.merge %s by k : N*k
    kas.expand %m : k
    kas.yield data(%q)
  }
  kas.operator @after<N | k>(%i: N) from [N] {
    kas.yield data(%i)
  }
  kas.operator @map<N | k>(%i: N, %r: k) from [N] {
    kas.expand %r : k
    kas.yield data(%i)
  }
  module @near_miss attributes {rule.statement = "the data depends on it", rule.sizes = #kas.binding<N = 3, k = 3>} {
    kas.operator @before<N | k>(%i: N) from [N] {
      %r = kas.reduce max : N
      %s = kas.split %r, %i : N, N
      %q, %m = kas.merge %s by N : N**2
      kas.expand %m : N
      kas.yield data(%q)
    }
    kas.operator @map<N | k>(%i: N, %r: N) from [N] {
      kas.expand %r : N
      kas.yield data(%i)
    }
  }
}

module @R10 attributes {rule.statement = "expand of both halves of a merge drops the coordinate"} {
  kas.operator @before<N, M | b>(%i: N*b, %j: M) from [M] {
    %q, %r = kas.merge %i by b : N*b
    kas.expand %r : b
    kas.expand %q : N
    kas.yield data(%j)
  }
  kas.operator @after<N, M | b>(%i: N*b, %j: M) from [M] {
    kas.expand %i : N*b
    kas.yield data(%j)
  }
  module @near_miss attributes {rule.statement = "one half is kept", rule.sizes = #kas.binding<N = 2, M = 2, b = 2>} {
    kas.operator @before<N, M | b>(%i: N*b, %j: N) from [N] {
      %q, %r = kas.merge %i by b : N*b
      kas.expand %r : b
      kas.expand %j : N
      kas.yield data(%q)
    }
    kas.operator @after<N, M | b>(%i: N*b, %j: N) from [N] {
      kas.expand %i : N*b
      kas.yield data(%j)
    }
  }
}

module @R11 attributes {rule.statement = "a share whose data side is dropped is a direct use by the weight"} {
  kas.operator @before<N, M>(%i: N, %j: M) from [M] {
    %d, %w = kas.share %i : N
    kas.expand %d : N
    kas.yield data(%j) weight(%w)
  }
  kas.operator @after<N, M>(%i: N, %j: M) from [M] {
    kas.yield data(%j) weight(%i)
  }
  module @near_miss attributes {rule.statement = "the other coordinate is shared", rule.sizes = #kas.binding<N = 3, M = 3>} {
    kas.operator @before<N, M>(%i: N, %j: N) from [N] {
      %d, %w = kas.share %j : N
      kas.expand %i : N
      kas.yield data(%d) weight(%w)
    }
    kas.operator @after<N, M>(%i: N, %j: N) from [N] {
      kas.yield data(%j) weight(%i)
    }
  }
}

module @R12 attributes {rule.statement = "a reduction only used as r / B and r mod B is two"} {
  kas.operator @before<N | b>() from [N, b] {
    %i = kas.reduce sum : N*b
    %q, %r = kas.merge %i by b : N*b
    kas.yield data(%q, %r)
  }
  kas.operator @after<N | b>() from [N, b] {
    %q = kas.reduce sum : N
    %r = kas.reduce sum : b
    kas.yield data(%q, %r)
  }
  kas.operator @map<N | b>(%i: N*b) from [N, b] {
    %q, %r = kas.merge %i by b : N*b
    kas.yield data(%q, %r)
  }
  module @near_miss attributes {rule.statement = "one of them is only dropped", rule.sizes = #kas.binding<N = 2, b = 2>} {
    kas.operator @before<N | b>() from [N] {
      %i = kas.reduce sum : N*b
      %q, %r = kas.merge %i by b : N*b
      kas.expand %r : b
      kas.yield data(%q)
    }
    kas.operator @after<N | b>() from [N] {
      %q = kas.reduce sum : N
      kas.yield data(%q)
    }
    kas.operator @map<N | b>(%i: N*b) from [N] {
      %q, %r = kas.merge %i by b : N*b
      kas.expand %r : b
      kas.yield data(%q)
    }
  }
}

module @R13 attributes {rule.statement = "two reductions of one kind only used as B*i + j are one"} {
  kas.operator @before<N | b>() from [N*b] {
    %i = kas.reduce sum : N
    %j = kas.reduce sum : b
    %t = kas.split %i, %j : N, b
    kas.yield data(%t)
  }
  kas.operator @after<N | b>() from [N*b] {
    %r = kas.reduce sum : N*b
    kas.yield data(%r)
  }
  kas.operator @map<N | b>(%i: N, %j: b) from [N*b] {
    %t = kas.split %i, %j : N, b
    kas.yield data(%t)
  }
  module @near_miss attributes {rule.statement = "a weight has one of them", rule.sizes = #kas.binding<N = 2, b = 2>, rule.renames_weights} {
    kas.operator @before<N | b>() from [N*b] {
      %i = kas.reduce sum : N
      %j = kas.reduce sum : b
      %d, %w = kas.share %i : N
      %t = kas.split %d, %j : N, b
      kas.yield data(%t) weight(%w)
    }
    kas.operator @after<N | b>() from [N*b] {
      %r = kas.reduce sum : N*b
      %d, %w = kas.share %r : N*b
      kas.yield data(%d) weight(%w)
    }
  }
}

module @R13_nested attributes {rule.statement = "so are two only used as split(i, split(j, x))"} {
  kas.operator @before<N, M | b>(%x: M) from [M*N*b] {
    %i = kas.reduce sum : N
    %j = kas.reduce sum : b
    %s = kas.split %j, %x : b, M
    %t = kas.split %i, %s : N, M*b
    kas.yield data(%t)
  }
  kas.operator @after<N, M | b>(%x: M) from [M*N*b] {
    %r = kas.reduce sum : N*b
    %t = kas.split %r, %x : N*b, M
    kas.yield data(%t)
  }
  kas.operator @map<N, M | b>(%x: M, %i: N, %j: b) from [M, N*b] {
    %t = kas.split %i, %j : N, b
    kas.yield data(%x, %t)
  }
  module @near_miss attributes {rule.statement = "x between them", rule.sizes = #kas.binding<N = 2, M = 2, b = 2>} {
    kas.operator @before<N, M | b>(%x: M) from [M*N*b] {
      %i = kas.reduce sum : N
      %j = kas.reduce sum : b
      %s = kas.split %x, %j : M, b
      %t = kas.split %i, %s : N, M*b
      kas.yield data(%t)
    }
  }
}

module @R14 attributes {rule.statement = "split(split(a, b), c) = split(a, split(b, c))"} {
  kas.operator @before<N, M | b>(%i: N, %j: M, %k: b) from [M*N*b] {
    %s = kas.split %i, %j : N, M
    %t = kas.split %s, %k : M*N, b
    kas.yield data(%t)
  }
  kas.operator @after<N, M | b>(%i: N, %j: M, %k: b) from [M*N*b] {
    %s = kas.split %j, %k : M, b
    %t = kas.split %i, %s : N, M*b
    kas.yield data(%t)
  }
  module @near_miss attributes {rule.statement = "split(b, split(a, c))", rule.sizes = #kas.binding<N = 2, M = 2, b = 2>} {
    kas.operator @after<N, M | b>(%i: N, %j: M, %k: b) from [M*N*b] {
      %s = kas.split %i, %k : N, b
      %t = kas.split %j, %s : M, N*b
      kas.yield data(%t)
    }
  }
}

module @R15 attributes {rule.statement = "with j : [A], (A*i + j) / (A*B) = i / B and (A*i + j) mod (A*B) = A*(i mod B) + j"} {
  kas.operator @before<N | a, b>(%i: N*b, %j: a) from [N, a*b] {
    %t = kas.split %i, %j : N*b, a
    %q, %r = kas.merge %t by a*b : N*a*b
    kas.yield data(%q, %r)
  }
  kas.operator @after<N | a, b>(%i: N*b, %j: a) from [N, a*b] {
    %q, %r = kas.merge %i by b : N*b
    %t = kas.split %r, %j : b, a
    kas.yield data(%q, %t)
  }
  module @near_miss attributes {rule.statement = "the remainder in the other order", rule.sizes = #kas.binding<N = 2, a = 2, b = 3>} {
    kas.operator @after<N | a, b>(%i: N*b, %j: a) from [N, a*b] {
      %q, %r = kas.merge %i by b : N*b
      %t = kas.split %j, %r : a, b
      kas.yield data(%q, %t)
    }
  }
}

module @R15_inner attributes {rule.statement = "with A = B*C, (A*i + j) / B = C*i + j / B and (A*i + j) mod B = j mod B"} {
  kas.operator @before<N | b, c>(%i: N, %j: b*c) from [N*c, b] {
    %t = kas.split %i, %j : N, b*c
    %q, %r = kas.merge %t by b : N*b*c
    kas.yield data(%q, %r)
  }
  kas.operator @after<N | b, c>(%i: N, %j: b*c) from [N*c, b] {
    %q, %r = kas.merge %j by b : b*c
    %t = kas.split %i, %q : N, c
    kas.yield data(%t, %r)
  }
  module @near_miss attributes {rule.statement = "the quotient in the other order", rule.sizes = #kas.binding<N = 2, b = 2, c = 3>} {
    kas.operator @after<N | b, c>(%i: N, %j: b*c) from [N*c, b] {
      %q, %r = kas.merge %j by b : b*c
      %t = kas.split %q, %i : c, N
      kas.yield data(%t, %r)
    }
  }
}

module @R16 attributes {rule.statement = "(i / B) / C = i / (B*C), (i / B) mod C = (i mod (B*C)) / B, i mod B = (i mod (B*C)) mod B"} {
  kas.operator @before<N | b, c>(%i: N*b*c) from [b, N, c] {
    %q, %r = kas.merge %i by b : N*b*c
    %s, %t = kas.merge %q by c : N*c
    kas.yield data(%r, %s, %t)
  }
  kas.operator @after<N | b, c>(%i: N*b*c) from [b, N, c] {
    %q, %r = kas.merge %i by b*c : N*b*c
    %s, %t = kas.merge %r by b : b*c
    kas.yield data(%t, %q, %s)
  }
  module @near_miss attributes {rule.statement = "the remainder merged by C", rule.sizes = #kas.binding<N = 2, b = 2, c = 3>} {
    kas.operator @after<N | b, c>(%i: N*b*c) from [b, N, c] {
      %q, %r = kas.merge %i by b*c : N*b*c
      %s, %t = kas.merge %r by c : b*c
      kas.yield data(%s, %q, %t)
    }
  }
}

module @R17 attributes {rule.statement = "dropping both i / A and (i mod A) / B drops i / B"} {
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
  module @near_miss attributes {rule.statement = "dropping i / A and (i mod A) mod B", rule.sizes = #kas.binding<N = 2, a = 2, b = 2>} {
    kas.operator @before<N | a, b>(%i: N*a*b) from [b] {
      %q, %r = kas.merge %i by a*b : N*a*b
      %s, %t = kas.merge %r by a : a*b
      kas.expand %q : N
      kas.expand %t : a
      kas.yield data(%s)
    }
  }
}

module @R18 attributes {rule.statement = "split(shift(i / B, d), i mod B) = shift(i, d*B)", rule.amounts = array<i64: -2>,
                        rule.instance = #kas.binding<b = 3>} {
  kas.operator @before<N | b>(%i: N*b) from [N*b] {
    %q, %r = kas.merge %i by b : N*b
    %s = kas.shift %q by -2 {expression = #d0} : N
    %t = kas.split %s, %r : N, b
    kas.yield data(%t)
  }
  kas.operator @after<N | b>(%i: N*b) from [N*b] {
    %t = kas.shift %i by -6 {expression = #blocks} : N*b
    kas.yield data(%t)
  }
  module @near_miss attributes {rule.statement = "the remainder is shifted", rule.sizes = #kas.binding<N = 3, b = 3>} {
    kas.operator @before<N | b>(%i: N*b) from [N*b] {
      %q, %r = kas.merge %i by b : N*b
      %s = kas.shift %r by -2 {expression = #d0} : b
      %t = kas.split %q, %s : N, b
      kas.yield data(%t)
    }
  }
}

module @R19 attributes {rule.statement = "split(shift(i / B, d), i mod B) shifted by e is the same with the shift by e below the merge",
                        rule.amounts = array<i64: 2, 1>} {
  kas.operator @before<N | b>(%i: N*b) from [N*b] {
    %q, %r = kas.merge %i by b : N*b
    %s = kas.shift %q by 2 {expression = #d0} : N
    %t = kas.split %s, %r : N, b
    %u = kas.shift %t by 1 {expression = #d1} : N*b
    kas.yield data(%u)
  }
  kas.operator @after<N | b>(%i: N*b) from [N*b] {
    %u = kas.shift %i by 1 {expression = #d1} : N*b
    %q, %r = kas.merge %u by b : N*b
    %s = kas.shift %q by 2 {expression = #d0} : N
    %t = kas.split %s, %r : N, b
    kas.yield data(%t)
  }
  module @near_miss attributes {rule.statement = "split(i mod B, shift(i / B, d))", rule.sizes = #kas.binding<N = 3, b = 2>} {
    kas.operator @before<N | b>(%i: N*b) from [N*b] {
      %q, %r = kas.merge %i by b : N*b
      %s = kas.shift %q by 2 {expression = #d0} : N
      %t = kas.split %r, %s : b, N
      %u = kas.shift %t by 1 {expression = #d1} : N*b
      kas.yield data(%u)
    }
    kas.operator @after<N | b>(%i: N*b) from [N*b] {
      %u = kas.shift %i by 1 {expression = #d1} : N*b
      %q, %r = kas.merge %u by b : N*b
      %s = kas.shift %q by 2 {expression = #d0} : N
      %t = kas.split %r, %s : b, N
      kas.yield data(%t)
    }
  }
}

module @R20 attributes {rule.statement = "split(shift(a, d), b) shifted by e and merged by b's size is split(a, b) shifted and merged, with the quotient shifted by d",
                        rule.amounts = array<i64: 2, 1>} {
  kas.operator @before<N | b>(%i: N, %j: b) from [N, b] {
    %s = kas.shift %i by 2 {expression = #d0} : N
    %t = kas.split %s, %j : N, b
    %u = kas.shift %t by 1 {expression = #d1} : N*b
    %q, %r = kas.merge %u by b : N*b
    kas.yield data(%q, %r)
  }
  kas.operator @after<N | b>(%i: N, %j: b) from [N, b] {
    %t = kas.split %i, %j : N, b
    %u = kas.shift %t by 1 {expression = #d1} : N*b
    %q, %r = kas.merge %u by b : N*b
    %s = kas.shift %q by 2 {expression = #d0} : N
    kas.yield data(%s, %r)
  }
  module @near_miss attributes {rule.statement = "merged by another block", rule.sizes = #kas.binding<N = 4, b = 3>} {
    kas.operator @before<N | b>(%i: N, %j: b) from [b, N] {
      %s = kas.shift %i by 2 {expression = #d0} : N
      %t = kas.split %s, %j : N, b
      %u = kas.shift %t by 1 {expression = #d1} : N*b
      %q, %r = kas.merge %u by N : N*b
      kas.yield data(%q, %r)
    }
    kas.operator @after<N | b>(%i: N, %j: b) from [b, N] {
      %t = kas.split %i, %j : N, b
      %u = kas.shift %t by 1 {expression = #d1} : N*b
      %q, %r = kas.merge %u by N : N*b
      %s = kas.shift %q by 2 {expression = #d0} : b
      kas.yield data(%s, %r)
    }
  }
}

module @R21 attributes {rule.statement = "the halves by B of i shifted by d*B are i / B shifted by d and i mod B", rule.amounts = array<i64: -2>,
                        rule.instance = #kas.binding<b = 3>} {
  kas.operator @before<N | b>(%i: N*b) from [N, b] {
    %s = kas.shift %i by -6 {expression = #blocks} : N*b
    %q, %r = kas.merge %s by b : N*b
    kas.yield data(%q, %r)
  }
  kas.operator @after<N | b>(%i: N*b) from [N, b] {
    %q, %r = kas.merge %i by b : N*b
    %s = kas.shift %q by -2 {expression = #d0} : N
    kas.yield data(%s, %r)
  }
  module @near_miss attributes {rule.statement = "one more than a multiple of B", rule.sizes = #kas.binding<N = 4, b = 3>} {
    kas.operator @before<N | b>(%i: N*b) from [N, b] {
      %s = kas.shift %i by -5 {expression = affine_map<(d0)[N, b] -> (d0 * b + 1)>} : N*b
      %q, %r = kas.merge %s by b : N*b
      kas.yield data(%q, %r)
    }
  }
}

module @R22 attributes {rule.statement = "a shift by d = c*B + e, 0 < e < B, of split(r, j), r a reduction, j : [B], is split(r, shift(j, e))",
                        rule.amounts = array<i64: 1, 1>, rule.instance = #kas.binding<b = 3>,
                        rule.condition = affine_set<(d0, d1)[N, b] : (d1 - 1 >= 0, b - d1 - 1 >= 0)>} {
  kas.operator @before<N | b>(%j: b) from [N*b] {
    %r = kas.reduce sum : N
    %s = kas.split %r, %j : N, b
    %t = kas.shift %s by 4 {expression = #blocks_and_rest} : N*b
    kas.yield data(%t)
  }
  kas.operator @after<N | b>(%j: b) from [N*b] {
    %r = kas.reduce sum : N
    %s = kas.shift %j by 1 {expression = #d1} : b
    %t = kas.split %r, %s : N, b
    kas.yield data(%t)
  }
  kas.operator @map<N | b>(%j: b, %r: N) from [b, N] {
    %s = kas.split %r, %j : N, b
    %t = kas.shift %s by 4 {expression = #blocks_and_rest} : N*b
    %q, %m = kas.merge %t by b : N*b
    %u = kas.shift %m by -1 {expression = #minus1} : b
    kas.yield data(%u, %q)
  }
  module @near_miss attributes {rule.statement = "a weight reads r", rule.sizes = #kas.binding<N = 3, b = 2>} {
    kas.operator @before<N | b>(%j: b) from [N*b] {
      %r = kas.reduce sum : N
      %d, %w = kas.share %r : N
      %s = kas.split %d, %j : N, b
      %t = kas.shift %s by 4 {expression = #blocks_and_rest} : N*b
      kas.yield data(%t) weight(%w)
    }
    kas.operator @after<N | b>(%j: b) from [N*b] {
      %r = kas.reduce sum : N
      %d, %w = kas.share %r : N
      %s = kas.shift %j by 1 {expression = #d1} : b
      %t = kas.split %d, %s : N, b
      kas.yield data(%t) weight(%w)
    }
  }
}

module @R22_blocks attributes {rule.statement = "by d = c*B, it is split(r, j)", rule.amounts = array<i64: 1>, rule.instance = #kas.binding<b = 3>} {
  kas.operator @before<N | b>(%j: b) from [N*b] {
    %r = kas.reduce sum : N
    %s = kas.split %r, %j : N, b
    %t = kas.shift %s by 3 {expression = #blocks} : N*b
    kas.yield data(%t)
  }
  kas.operator @after<N | b>(%j: b) from [N*b] {
    %r = kas.reduce sum : N
    %t = kas.split %r, %j : N, b
    kas.yield data(%t)
  }
  kas.operator @map<N | b>(%j: b, %r: N) from [b, N] {
    %s = kas.shift %r by 1 {expression = #d0} : N
    kas.yield data(%j, %s)
  }
  module @near_miss attributes {rule.statement = "the reduction is the inner operand", rule.sizes = #kas.binding<N = 2, b = 3>} {
    kas.operator @before<N | b>(%j: b) from [N*b] {
      %r = kas.reduce sum : N
      %s = kas.split %j, %r : b, N
      %t = kas.shift %s by 3 {expression = #blocks} : N*b
      kas.yield data(%t)
    }
    kas.operator @after<N | b>(%j: b) from [N*b] {
      %r = kas.reduce sum : N
      %t = kas.split %j, %r : b, N
      kas.yield data(%t)
    }
  }
}

module @R23 attributes {rule.statement = "where the quotient is dropped, the remainder by B of a shift by c*B + e, 0 < e < B, is the remainder shifted by e",
                        rule.amounts = array<i64: -2, 2>, rule.instance = #kas.binding<b = 3>,
                        rule.condition = affine_set<(d0, d1)[N, b] : (d1 - 1 >= 0, b - d1 - 1 >= 0)>} {
  kas.operator @before<N | b>(%i: N*b) from [b] {
    %s = kas.shift %i by -4 {expression = #blocks_and_rest} : N*b
    %q, %r = kas.merge %s by b : N*b
    kas.expand %q : N
    kas.yield data(%r)
  }
  kas.operator @after<N | b>(%i: N*b) from [b] {
    %q, %r = kas.merge %i by b : N*b
    %s = kas.shift %r by 2 {expression = #d1} : b
    kas.expand %q : N
    kas.yield data(%s)
  }
  module @near_miss attributes {rule.statement = "the quotient is kept", rule.sizes = #kas.binding<N = 3, b = 3>} {
    kas.operator @before<N | b>(%i: N*b) from [N, b] {
      %s = kas.shift %i by -4 {expression = #blocks_and_rest} : N*b
      %q, %r = kas.merge %s by b : N*b
      kas.yield data(%q, %r)
    }
    kas.operator @after<N | b>(%i: N*b) from [N, b] {
      %q, %r = kas.merge %i by b : N*b
      %s = kas.shift %r by 2 {expression = #d1} : b
      kas.yield data(%q, %s)
    }
  }
}

module @R23_blocks attributes {rule.statement = "by c*B, it is the remainder", rule.amounts = array<i64: -2>, rule.instance = #kas.binding<b = 3>} {
  kas.operator @before<N | b>(%i: N*b) from [b] {
    %s = kas.shift %i by -6 {expression = #blocks} : N*b
    %q, %r = kas.merge %s by b : N*b
    kas.expand %q : N
    kas.yield data(%r)
  }
  kas.operator @after<N | b>(%i: N*b) from [b] {
    %q, %r = kas.merge %i by b : N*b
    kas.expand %q : N
    kas.yield data(%r)
  }
  module @near_miss attributes {rule.statement = "one more", rule.sizes = #kas.binding<N = 4, b = 3>} {
    kas.operator @before<N | b>(%i: N*b) from [b] {
      %s = kas.shift %i by -5 {expression = affine_map<(d0)[N, b] -> (d0 * b + 1)>} : N*b
      %q, %r = kas.merge %s by b : N*b
      kas.expand %q : N
      kas.yield data(%r)
    }
  }
}

// Symbols of the operator: N, then b and c.
#factors = affine_map<(d0)[N, b, c] -> (d0 * b)>
#factors_and_rest = affine_map<(d0, d1)[N, b, c] -> (d0 * b + d1)>
#first = affine_map<(d0, d1)[N, b, c] -> (d0)>
#second = affine_map<(d0, d1)[N, b, c] -> (d1)>

module @R24 attributes {rule.statement = "with f*c = B, the halves by B of f*i shifted by r, 0 < r < f, are those of i by c, the remainder with the stride and the shift", rule.amounts = array<i64: 1>, rule.instance = #kas.binding<b = 3>,
                        rule.condition = affine_set<(d0)[N, b, c] : (d0 - 1 >= 0, b - d0 - 1 >= 0)>} {
  kas.operator @before<N | b, c>(%i: N*c) from [N, b*c] {
    %t = kas.stride %i by b : N*c
    %s = kas.shift %t by 1 {expression = affine_map<(d0)[N, b, c] -> (d0)>} : N*b*c
    %q, %r = kas.merge %s by b*c : N*b*c
    kas.yield data(%q, %r)
  }
  kas.operator @after<N | b, c>(%i: N*c) from [N, b*c] {
    %q, %r = kas.merge %i by c : N*c
    %t = kas.stride %r by b : c
    %s = kas.shift %t by 1 {expression = affine_map<(d0)[N, b, c] -> (d0)>} : b*c
    kas.yield data(%q, %s)
  }
  module @near_miss attributes {rule.statement = "r = f", rule.sizes = #kas.binding<N = 2, b = 2, c = 2>} {
    kas.operator @before<N | b, c>(%i: N*c) from [N, b*c] {
      %t = kas.stride %i by b : N*c
      %s = kas.shift %t by 2 : N*b*c
      %q, %r = kas.merge %s by b*c : N*b*c
      kas.yield data(%q, %r)
    }
    kas.operator @after<N | b, c>(%i: N*c) from [N, b*c] {
      %q, %r = kas.merge %i by c : N*c
      %t = kas.stride %r by b : c
      %s = kas.shift %t by 2 : b*c
      kas.yield data(%q, %s)
    }
  }
}

module @R24_both attributes {rule.statement = "the same shifted by e*f + r, and i by e",
                             rule.amounts = array<i64: 1, 1>, rule.instance = #kas.binding<b = 3>,
                             rule.condition = affine_set<(d0, d1)[N, b, c] : (d0 - 1 >= 0, d1 - 1 >= 0, b - d1 - 1 >= 0)>} {
  kas.operator @before<N | b, c>(%i: N*c) from [N, b*c] {
    %t = kas.stride %i by b : N*c
    %s = kas.shift %t by 4 {expression = #factors_and_rest} : N*b*c
    %q, %r = kas.merge %s by b*c : N*b*c
    kas.yield data(%q, %r)
  }
  kas.operator @after<N | b, c>(%i: N*c) from [N, b*c] {
    %s = kas.shift %i by 1 {expression = #first} : N*c
    %q, %r = kas.merge %s by c : N*c
    %t = kas.stride %r by b : c
    %u = kas.shift %t by 1 {expression = #second} : b*c
    kas.yield data(%q, %u)
  }
  module @near_miss attributes {rule.statement = "a shift by -1", rule.sizes = #kas.binding<N = 2, b = 2, c = 2>} {
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

module @R24_multiple attributes {rule.statement = "the same shifted by e*f, and i by e", rule.amounts = array<i64: -2>, rule.instance = #kas.binding<b = 3>} {
  kas.operator @before<N | b, c>(%i: N*c) from [N, b*c] {
    %t = kas.stride %i by b : N*c
    %s = kas.shift %t by -6 {expression = #factors} : N*b*c
    %q, %r = kas.merge %s by b*c : N*b*c
    kas.yield data(%q, %r)
  }
  kas.operator @after<N | b, c>(%i: N*c) from [N, b*c] {
    %s = kas.shift %i by -2 {expression = affine_map<(d0)[N, b, c] -> (d0)>} : N*c
    %q, %r = kas.merge %s by c : N*c
    %t = kas.stride %r by b : c
    kas.yield data(%q, %t)
  }
  module @near_miss attributes {rule.statement = "one more", rule.sizes = #kas.binding<N = 3, b = 2, c = 2>} {
    kas.operator @before<N | b, c>(%i: N*c) from [N, b*c] {
      %t = kas.stride %i by b : N*c
      %s = kas.shift %t by -5 {expression = affine_map<(d0)[N, b, c] -> (d0 * b + 1)>} : N*b*c
      %q, %r = kas.merge %s by b*c : N*b*c
      kas.yield data(%q, %r)
    }
  }
}

module @R24_none attributes {rule.statement = "the same without a shift"} {
  kas.operator @before<N | b, c>(%i: N*c) from [N, b*c] {
    %t = kas.stride %i by b : N*c
    %q, %r = kas.merge %t by b*c : N*b*c
    kas.yield data(%q, %r)
  }
  kas.operator @after<N | b, c>(%i: N*c) from [N, b*c] {
    %q, %r = kas.merge %i by c : N*c
    %t = kas.stride %r by b : c
    kas.yield data(%q, %t)
  }
  module @near_miss attributes {rule.statement = "the quotient has the stride", rule.sizes = #kas.binding<N = 2, b = 2, c = 2>} {
    kas.operator @before<N | b, c>(%i: N*c) from [N*b, c] {
      %t = kas.stride %i by b : N*c
      %q, %r = kas.merge %t by c : N*b*c
      kas.yield data(%q, %r)
    }
    kas.operator @after<N | b, c>(%i: N*c) from [N*b, c] {
      %q, %r = kas.merge %i by c : N*c
      %t = kas.stride %q by b : N
      kas.yield data(%t, %r)
    }
  }
}

module @R25 attributes {rule.statement = "with f = B*c, the quotient by B of f*i shifted by d = e*B + r, 0 < r < B, is c*i shifted by e, where the remainder is dropped",
                        rule.amounts = array<i64: 1, 1>, rule.instance = #kas.binding<b = 3>,
                        rule.condition = affine_set<(d0, d1)[N, b, c] : (d0 - 1 >= 0, d1 - 1 >= 0, b - d1 - 1 >= 0)>} {
  kas.operator @before<N | b, c>(%i: N) from [N*c] {
    %t = kas.stride %i by b*c : N
    %s = kas.shift %t by 4 {expression = #factors_and_rest} : N*b*c
    %q, %r = kas.merge %s by b : N*b*c
    kas.expand %r : b
    kas.yield data(%q)
  }
  kas.operator @after<N | b, c>(%i: N) from [N*c] {
    %t = kas.stride %i by c : N
    %s = kas.shift %t by 1 {expression = #first} : N*c
    kas.yield data(%s)
  }
  module @near_miss attributes {rule.statement = "a shift by -1", rule.sizes = #kas.binding<N = 3, b = 2, c = 2>} {
    kas.operator @before<N | b, c>(%i: N) from [N*c] {
      %t = kas.stride %i by b*c : N
      %s = kas.shift %t by -1 : N*b*c
      %q, %r = kas.merge %s by b : N*b*c
      kas.expand %r : b
      kas.yield data(%q)
    }
    kas.operator @after<N | b, c>(%i: N) from [N*c] {
      %t = kas.stride %i by c : N
      kas.yield data(%t)
    }
  }
}

module @R25_rest attributes {rule.statement = "without the shift for d = r", rule.amounts = array<i64: 1>, rule.instance = #kas.binding<b = 3>,
                             rule.condition = affine_set<(d0)[N, b, c] : (d0 - 1 >= 0, b - d0 - 1 >= 0)>} {
  kas.operator @before<N | b, c>(%i: N) from [N*c] {
    %t = kas.stride %i by b*c : N
    %s = kas.shift %t by 1 {expression = affine_map<(d0)[N, b, c] -> (d0)>} : N*b*c
    %q, %r = kas.merge %s by b : N*b*c
    kas.expand %r : b
    kas.yield data(%q)
  }
  kas.operator @after<N | b, c>(%i: N) from [N*c] {
    %t = kas.stride %i by c : N
    kas.yield data(%t)
  }
  module @near_miss attributes {rule.statement = "r = B", rule.sizes = #kas.binding<N = 3, b = 2, c = 2>} {
    kas.operator @before<N | b, c>(%i: N) from [N*c] {
      %t = kas.stride %i by b*c : N
      %s = kas.shift %t by 2 : N*b*c
      %q, %r = kas.merge %s by b : N*b*c
      kas.expand %r : b
      kas.yield data(%q)
    }
    kas.operator @after<N | b, c>(%i: N) from [N*c] {
      %t = kas.stride %i by c : N
      kas.yield data(%t)
    }
  }
}

module @R25_whole attributes {rule.statement = "with f = B, it is i shifted by e", rule.amounts = array<i64: 1, 1>, rule.instance = #kas.binding<b = 3>,
                              rule.condition = affine_set<(d0, d1)[N, b] : (d0 - 1 >= 0, d1 - 1 >= 0, b - d1 - 1 >= 0)>} {
  kas.operator @before<N | b>(%i: N) from [N] {
    %t = kas.stride %i by b : N
    %s = kas.shift %t by 4 {expression = #blocks_and_rest} : N*b
    %q, %r = kas.merge %s by b : N*b
    kas.expand %r : b
    kas.yield data(%q)
  }
  kas.operator @after<N | b>(%i: N) from [N] {
    %s = kas.shift %i by 1 {expression = affine_map<(d0, d1)[N, b] -> (d0)>} : N
    kas.yield data(%s)
  }
  module @near_miss attributes {rule.statement = "r = B", rule.sizes = #kas.binding<N = 3, b = 2>} {
    kas.operator @before<N | b>(%i: N) from [N] {
      %t = kas.stride %i by b : N
      %s = kas.shift %t by 2 : N*b
      %q, %r = kas.merge %s by b : N*b
      kas.expand %r : b
      kas.yield data(%q)
    }
    kas.operator @after<N | b>(%i: N) from [N] {
      kas.yield data(%i)
    }
  }
}
