// RUN: kas-opt %s -kas-search="space=@layers algorithm=random seed=7 evaluations=40 top=8" -o %t.1
// RUN: kas-opt %s -kas-search="space=layers algorithm=random seed=7 evaluations=40 top=8 threads=3" -o %t.2
// RUN: diff %t.1 %t.2
// RUN: FileCheck %s < %t.1
// RUN: kas-opt %t.1 --verify-roundtrip -o /dev/null
// RUN: kas-opt %s -kas-search="space=@layers algorithm=random seed=8 evaluations=40 top=8" -o %t.3
// RUN: not diff %t.1 %t.3 > /dev/null
// RUN: kas-opt %s -kas-search="space=@layers evaluators=params evaluations=1" | FileCheck %s --check-prefix=PARAMS

// The budget is half of the dense convolutions: 4 of 231 MFLOP, 3 of 58 MFLOP.
// CHECK: kas.space @layers
kas.space @layers<N, Cin, Cout, H, W | k, g, s>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 64, Cout = 64, H = 56, W = 56, k = 3, g = 8, s = 2> x 4,
              <N = 1, Cin = 512, Cout = 512, H = 7, W = 7, k = 3, g = 8, s = 2> x 3]
    budget {flops_ratio = 5.0e-01, baseline_flops = 1618477056, min_flops_ratio = 5.0e-02}

// Best first: the least FLOPs. Not more than requested; the name that is taken is left alone.
// CHECK: kas.operator @layers_0()
// CHECK-COUNT-8: attributes {{{.*}}kas.origin = "layers", kas.score = {flops = {{[0-9]+}} : i64, params = {{[0-9]+}} : i64}}
// CHECK-NOT: kas.score
kas.operator @layers_0() from [3] {
  %r = kas.reduce sum : 3
  kas.yield data(%r)
}

// PARAMS: kas.score = {params = {{[0-9]+}} : i64}
