// RUN: kas-opt %s -split-input-file -verify-diagnostics -kas-solve-budget=mode=canvas | FileCheck %s

// The budgets of the kernel of Figure 3 that are printed beside those of
// solve-budget.mlir, and costs.

// One below the base, which is the least.
// expected-error@+1 {{has no solution that was found, because it was missed that flops of at most 1225215}}
kas.kernel canvas @below_base<C, H, W | G, KH | x> where [G divides C]
    (%in: [C | H, W]) -> [C | H, W]
    bindings [<C = 16, G = 4, H = 8, KH = 3, W = 8>, <C = 64, G = 4, H = 8, KH = 5, W = 8>]
    budget {flops = 1225215} {
  %a = kas.dag.fc %in to G*KH : [C | H, W]
  %b = kas.dag.fc %in to x : [C | H, W]
  %m = kas.dag.broadcast mul %a, %b common [0, 2] : [G*KH | H, W], [x | H, W]
  %c = kas.dag.fc %m to C : [x | H, W]
  kas.dag.output %c : [C | H, W]
}

// -----

// CHECK-LABEL: kas.kernel canvas @last_doubling
// CHECK:       x = 48>, {{.*}} x = 240>]
// CHECK:       solution {flops = 4335616 : i64, {{.*}} params = 33728 : i64
kas.kernel canvas @last_doubling<C, H, W | G, KH | x> where [G divides C]
    (%in: [C | H, W]) -> [C | H, W]
    bindings [<C = 16, G = 4, H = 8, KH = 3, W = 8>, <C = 64, G = 4, H = 8, KH = 5, W = 8>]
    budget {flops = 4335616} {
  %a = kas.dag.fc %in to G*KH : [C | H, W]
  %b = kas.dag.fc %in to x : [C | H, W]
  %m = kas.dag.broadcast mul %a, %b common [0, 2] : [G*KH | H, W], [x | H, W]
  %c = kas.dag.fc %m to C : [x | H, W]
  kas.dag.output %c : [C | H, W]
}

// -----

// A ratio of channels of 5: 5 * 12 is 60 already.
// CHECK-LABEL: kas.kernel canvas @ratio_of_five
// CHECK:       x = 12>, {{.*}} x = 60>]
// CHECK:       solution {flops = 1511936 : i64
kas.kernel canvas @ratio_of_five<C, H, W | G, KH | x> where [G divides C]
    (%in: [C | H, W]) -> [C | H, W]
    bindings [<C = 16, G = 4, H = 8, KH = 3, W = 8>, <C = 80, G = 4, H = 8, KH = 5, W = 8>]
    budget {flops = 1511936} {
  %a = kas.dag.fc %in to G*KH : [C | H, W]
  %b = kas.dag.fc %in to x : [C | H, W]
  %m = kas.dag.broadcast mul %a, %b common [0, 2] : [G*KH | H, W], [x | H, W]
  %c = kas.dag.fc %m to C : [x | H, W]
  kas.dag.output %c : [C | H, W]
}

// -----

// A convolution of 32 channels to 64 at 56 x 56 with stride 2.
// CHECK-LABEL: kas.kernel @strided
// CHECK:       solution {flops = 28901376 : i64, {{.*}} params = 18432 : i64
kas.kernel @strided<C, D, H, W | k> (%in: [C | H, W]) -> [D | H, W]
    bindings [<C = 32, D = 64, H = 28, W = 28, k = 3>] budget {flops = 28901376} {
  %u = kas.dag.unfold %in dims [1, 2] by [k, k] : [C | H, W]
  %y = kas.dag.fc %u to D : [C, k, k | H, W]
  kas.dag.output %y : [D | H, W]
}

// -----

// The 19 convolutions of ResNet-18 at 224 x 224 but the stem.
// CHECK-LABEL: kas.kernel canvas @resnet18
// CHECK:       solution {flops = 3391094784 : i64, {{.*}} params = 11157504 : i64
kas.kernel canvas @resnet18<C, H, W | k> (%in: [C | H, W]) -> [C | H, W]
    bindings [<C = 64, H = 56, W = 56, k = 3> x 4, <C = 64, H = 28, W = 28, k = 3> x 2,
              <C = 64, H = 28, W = 28, k = 1> x 2, <C = 128, H = 28, W = 28, k = 3> x 3,
              <C = 128, H = 14, W = 14, k = 3> x 2, <C = 128, H = 14, W = 14, k = 1> x 2,
              <C = 256, H = 14, W = 14, k = 3> x 3, <C = 256, H = 7, W = 7, k = 3> x 2,
              <C = 256, H = 7, W = 7, k = 1> x 2, <C = 512, H = 7, W = 7, k = 3> x 3]
    budget {flops = 3391094784} {
  %u = kas.dag.unfold %in dims [1, 2] by [k, k] : [C | H, W]
  %y = kas.dag.fc %u to C : [C, k, k | H, W]
  kas.dag.output %y : [C | H, W]
}
