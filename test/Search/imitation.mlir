// What computes the same as an operator is found by what it computes.
// RUN: kas-opt %s -kas-search="space=@space evaluations=60 seed=1 evaluators=params,imitation imitate=@conv objective=imitation_error+1e-6*params top=1" \
// RUN: | FileCheck %s

// CHECK: kas.operator @space_0
// CHECK-SAME: kas.score = {imitation_error = {{[0-9.]+E-1[0-9]|0.0*E\+00}} : f64, imitation_excess = {{.*}}, imitation_missing = {{.*}}, params = 72 : i64}
// CHECK-NEXT: %[[C:.*]] = kas.reduce sum : {{Cin|k}}
// CHECK: kas.unfold
// CHECK: kas.yield data({{.*}}) weight({{%[a-z0-9_]+, %[a-z0-9_]+, %[a-z0-9_]+}})

// The database knows what was imitated.
// RUN: rm -f %t.db
// RUN: kas-opt %s -kas-search="space=@space evaluations=2 evaluators=imitation imitate=@conv database=%t.db" -o /dev/null
// RUN: not kas-opt %s -kas-search="space=@space evaluations=2 evaluators=imitation imitate=@strided_conv database=%t.db" 2>&1 | FileCheck %s --check-prefix=SHAPES
// RUN: not kas-opt %s -kas-search="space=@space evaluations=2 evaluators=imitation imitate=@shifted database=%t.db" 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: {{.*}}imitated

// RUN: not kas-opt %s -kas-search="space=@space evaluators=imitation" 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: requires an operator to imitate (the option 'imitate') for the evaluator 'imitation', got none
// RUN: not kas-opt %s -kas-search="space=@space imitate=@conv" 2>&1 | FileCheck %s --check-prefix=UNUSED
// UNUSED: error: requires 'imitation' among the evaluators for the option 'imitate'
// RUN: not kas-opt %s -kas-search="space=@space evaluators=imitation imitate=@nothing" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: requires a kas.operator @nothing in the module, got none of that name
// RUN: not kas-opt %s -kas-search="space=@space evaluators=imitation imitate=@pool" 2>&1 | FileCheck %s --check-prefix=MAX
// MAX: error: requires an operator without max, got @imitated
// RUN: not kas-opt %s -kas-search="space=@space evaluators=imitation imitate=@dilated" 2>&1 | FileCheck %s --check-prefix=SYMBOL
// SYMBOL: error: requires the symbol 'd' of @dilated in the space, got none of that name
// SHAPES: error: requires @strided_conv to have the shapes of the space, got others

kas.space @space<N, Cin, Cout, W | k>
    [N, Cout unordered, W] from [N, Cin unordered, W]
    bindings [<N = 1, Cin = 4, Cout = 6, W = 12, k = 3>]
    limits {depth = 5}

kas.operator @conv<N, Cin, Cout, W | k>
    (%n: N, %o: Cout, %w: W) from [N, Cin, W] {
  %c = kas.reduce sum : Cin
  %i = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : Cin
  %i_d, %i_w = kas.share %i : k
  %x = kas.unfold %w, %i_d : W, k
  kas.yield data(%n, %c_d, %x) weight(%o, %c_w, %i_w)
}
kas.operator @shifted<N, Cin, Cout, W>
    (%n: N, %o: Cout, %w: W) from [N, Cin, W] {
  %c = kas.reduce sum : Cin
  %c_d, %c_w = kas.share %c : Cin
  %x = kas.shift %w by 1 : W
  kas.yield data(%n, %c_d, %x) weight(%o, %c_w)
}
kas.operator @pool<N, Cin, Cout, W>
    (%n: N, %o: Cout, %w: W) from [N, Cin, W] {
  %c = kas.reduce max : Cin
  kas.expand %o : Cout
  kas.yield data(%n, %c, %w)
}
kas.operator @strided_conv<N, Cin, Cout, W | k>
    (%n: N, %o: Cout, %w: W/k) from [N, Cin, W] {
  %c = kas.reduce sum : Cin
  %c_d, %c_w = kas.share %c : Cin
  %x = kas.stride %w by k : W/k
  kas.yield data(%n, %c_d, %x) weight(%o, %c_w)
}
kas.operator @dilated<N, Cin, Cout, W | k, d>
    (%n: N, %o: Cout, %w: W) from [N, Cin, W] {
  %c = kas.reduce sum : Cin
  %i = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : Cin
  %i_d, %i_w = kas.share %i : k
  %i_s = kas.stride %i_d by d : k
  %x = kas.unfold %w, %i_s : W, d*k
  kas.yield data(%n, %c_d, %x) weight(%o, %c_w, %i_w)
}
