// RUN: kas-opt %s -split-input-file -verify-diagnostics -kas-solve-budget=groups=G | FileCheck %s
// RUN: kas-opt %s -split-input-file -verify-diagnostics -kas-solve-budget="groups=G mode=canvas" | FileCheck %s --check-prefix=CANVAS

// One number of groups for all layers: of 32 and 48 channels it is 2, 4, 8 or 16
// (Canvas, section 6.3). With 2 the kernel has 2*32*16*64 + 2*48*24*64 FLOPs,
// with 4 half of them, and so on; the most that fits is taken.

// CHECK-LABEL: kas.kernel canvas @two
// CHECK:       bindings [<C = 32, G = 2, H = 8, W = 8>, <C = 48, G = 2, H = 8, W = 8>]
// CHECK:       solution {flops = 212992 : i64, {{.*}}status = "optimal"}
// CANVAS-LABEL: kas.kernel canvas @two
// CANVAS:      bindings [<C = 32, G = 2, H = 8, W = 8>, <C = 48, G = 2, H = 8, W = 8>]
kas.kernel canvas @two<C, H, W | G> where [G divides C] (%in: [C | H, W]) -> [C | H, W]
    bindings [<C = 32, G = 8, H = 8, W = 8>, <C = 48, G = 8, H = 8, W = 8>]
    budget {flops = 212992} {
  %g = kas.dag.group %in dim 0 by G : [C | H, W]
  %y = kas.dag.fc %g groups 1 to C : [G, C/G | H, W]
  kas.dag.output %y : [C | H, W]
}

// -----

// CHECK-LABEL: kas.kernel canvas @four
// CHECK:       bindings [<C = 32, G = 4, H = 8, W = 8>, <C = 48, G = 4, H = 8, W = 8>]
// CHECK:       solution {flops = 106496 : i64
kas.kernel canvas @four<C, H, W | G> where [G divides C] (%in: [C | H, W]) -> [C | H, W]
    bindings [<C = 32, G = 8, H = 8, W = 8>, <C = 48, G = 8, H = 8, W = 8>]
    budget {flops = 212991} {
  %g = kas.dag.group %in dim 0 by G : [C | H, W]
  %y = kas.dag.fc %g groups 1 to C : [G, C/G | H, W]
  kas.dag.output %y : [C | H, W]
}

// -----

// CHECK-LABEL: kas.kernel canvas @sixteen
// CHECK:       bindings [<C = 32, G = 16, H = 8, W = 8>, <C = 48, G = 16, H = 8, W = 8>]
// CHECK:       solution {flops = 26624 : i64
kas.kernel canvas @sixteen<C, H, W | G> where [G divides C] (%in: [C | H, W]) -> [C | H, W]
    bindings [<C = 32, G = 8, H = 8, W = 8>, <C = 48, G = 8, H = 8, W = 8>]
    budget {flops = 53247} {
  %g = kas.dag.group %in dim 0 by G : [C | H, W]
  %y = kas.dag.fc %g groups 1 to C : [G, C/G | H, W]
  kas.dag.output %y : [C | H, W]
}

// -----

// With free variables: each number of groups is solved for by itself.
// CHECK-LABEL: kas.kernel canvas @free
// CHECK:       solution {flops = {{[0-9]+}} : i64, {{.*}}status = "optimal"}
kas.kernel canvas @free<C, H, W | G | x> where [G divides C] (%in: [C | H, W]) -> [C | H, W]
    bindings [<C = 32, G = 8, H = 8, W = 8>, <C = 48, G = 8, H = 8, W = 8>]
    budget {flops = 1000000} {
  %a = kas.dag.fc %in to x : [C | H, W]
  %g = kas.dag.group %a dim 0 by G : [x | H, W]
  %y = kas.dag.fc %g groups 1 to C : [G, x/G | H, W]
  kas.dag.output %y : [C | H, W]
}

// -----

// expected-error@+1 {{that flops of at most 100}}
kas.kernel canvas @infeasible<C, H, W | G> where [G divides C] (%in: [C | H, W]) -> [C | H, W]
    bindings [<C = 32, G = 8, H = 8, W = 8>, <C = 48, G = 8, H = 8, W = 8>]
    budget {flops = 100} {
  %g = kas.dag.group %in dim 0 by G : [C | H, W]
  %y = kas.dag.fc %g groups 1 to C : [G, C/G | H, W]
  kas.dag.output %y : [C | H, W]
}

// -----

// expected-error@+1 {{requires bindings, and a symbol that divides another one as groups, got 'G'}}
kas.kernel canvas @no_fact<C, H, W | G> (%in: [C | H, W]) -> [C | H, W]
    bindings [<C = 32, G = 8, H = 8, W = 8>] budget {flops = 100} {
  kas.dag.output %in : [C | H, W]
}
