// RUN: kas-opt %s -split-input-file -kas-solve-budget=mode=canvas | FileCheck %s --check-prefixes=BOTH,CANVAS
// RUN: kas-opt %s -split-input-file -kas-solve-budget=spread=1 | FileCheck %s --check-prefix=NEAR
// RUN: kas-opt %s -split-input-file -kas-solve-budget | FileCheck %s --check-prefixes=BOTH,EXACT

// Figure 3 of the Canvas paper: x is a multiple of G*KH, of 12 at one layer and
// of 20 at the other. The heuristic starts at (12, 60) and doubles, the layer
// with fewer parameters first; the exact mode uses more where there is more.

// BOTH-LABEL:  kas.kernel canvas @base
// CANVAS:      x = 12>, {{.*}} x = 60>]
// CANVAS:      solution {flops = 1225216 : i64, flops_bound = 1225216 : i64, params = 9536 : i64, status = "optimal"}
// EXACT:       solution {flops = 1225216 : i64, flops_bound = 1225216 : i64, {{.*}} status = "optimal"}
kas.kernel canvas @base<C, H, W | G, KH | x> where [G divides C]
    (%in: [C | H, W]) -> [C | H, W]
    bindings [<C = 16, G = 4, H = 8, KH = 3, W = 8>, <C = 64, G = 4, H = 8, KH = 5, W = 8>]
    budget {flops = 1225216} {
  %a = kas.dag.fc %in to G*KH : [C | H, W]
  %b = kas.dag.fc %in to x : [C | H, W]
  %m = kas.dag.broadcast mul %a, %b common [0, 2] : [G*KH | H, W], [x | H, W]
  %c = kas.dag.fc %m to C : [x | H, W]
  kas.dag.output %c : [C | H, W]
}

// -----

// BOTH-LABEL:  kas.kernel canvas @one_doubled
// CANVAS:      x = 24>, {{.*}} x = 60>]
kas.kernel canvas @one_doubled<C, H, W | G, KH | x> where [G divides C]
    (%in: [C | H, W]) -> [C | H, W]
    bindings [<C = 16, G = 4, H = 8, KH = 3, W = 8>, <C = 64, G = 4, H = 8, KH = 5, W = 8>]
    budget {flops = 1340211} {
  %a = kas.dag.fc %in to G*KH : [C | H, W]
  %b = kas.dag.fc %in to x : [C | H, W]
  %m = kas.dag.broadcast mul %a, %b common [0, 2] : [G*KH | H, W], [x | H, W]
  %c = kas.dag.fc %m to C : [x | H, W]
  kas.dag.output %c : [C | H, W]
}

// -----

// BOTH-LABEL:  kas.kernel canvas @one_short
// NEAR-LABEL:  kas.kernel canvas @one_short
// NEAR:        x = 48>, {{.*}} x = 220>]
// CANVAS:      x = 48>, {{.*}} x = 120>]
// CANVAS:      solution {flops = 2361856 : i64, flops_bound = 4335615 : i64, params = 18368 : i64, status = "bounded"}
// EXACT:       solution {flops = 43{{[0-9]*}} : i64, flops_bound = [[BOUND:[0-9]*]] : i64, {{.*}} status = "optimal"}
kas.kernel canvas @one_short<C, H, W | G, KH | x> where [G divides C]
    (%in: [C | H, W]) -> [C | H, W]
    bindings [<C = 16, G = 4, H = 8, KH = 3, W = 8>, <C = 64, G = 4, H = 8, KH = 5, W = 8>]
    budget {flops = 4335615} {
  %a = kas.dag.fc %in to G*KH : [C | H, W]
  %b = kas.dag.fc %in to x : [C | H, W]
  %m = kas.dag.broadcast mul %a, %b common [0, 2] : [G*KH | H, W], [x | H, W]
  %c = kas.dag.fc %m to C : [x | H, W]
  kas.dag.output %c : [C | H, W]
}

// -----

// The values that the figure ends with.
// BOTH-LABEL:  kas.kernel canvas @figure
// CANVAS:      x = 48>, {{.*}} x = 240>]
// CANVAS:      solution {flops = 4335616 : i64, flops_bound = 4535295 : i64, params = 33728 : i64, status = "bounded"}
kas.kernel canvas @figure<C, H, W | G, KH | x> where [G divides C]
    (%in: [C | H, W]) -> [C | H, W]
    bindings [<C = 16, G = 4, H = 8, KH = 3, W = 8>, <C = 64, G = 4, H = 8, KH = 5, W = 8>]
    budget {flops = 4535295} {
  %a = kas.dag.fc %in to G*KH : [C | H, W]
  %b = kas.dag.fc %in to x : [C | H, W]
  %m = kas.dag.broadcast mul %a, %b common [0, 2] : [G*KH | H, W], [x | H, W]
  %c = kas.dag.fc %m to C : [x | H, W]
  kas.dag.output %c : [C | H, W]
}

// -----

// BOTH-LABEL:  kas.kernel canvas @third_round
// CANVAS:      x = 96>, {{.*}} x = 240>]
kas.kernel canvas @third_round<C, H, W | G, KH | x> where [G divides C]
    (%in: [C | H, W]) -> [C | H, W]
    bindings [<C = 16, G = 4, H = 8, KH = 3, W = 8>, <C = 64, G = 4, H = 8, KH = 5, W = 8>]
    budget {flops = 4535296} {
  %a = kas.dag.fc %in to G*KH : [C | H, W]
  %b = kas.dag.fc %in to x : [C | H, W]
  %m = kas.dag.broadcast mul %a, %b common [0, 2] : [G*KH | H, W], [x | H, W]
  %c = kas.dag.fc %m to C : [x | H, W]
  kas.dag.output %c : [C | H, W]
}

// -----

// Costs without a variable: standard convolution 64 to 64, k = 3, 28 x 28,
// spatially separable convolution, squeeze-and-excitation and a residual block.
// BOTH-LABEL: kas.kernel @convolution
// BOTH:       solution {flops = 57802752 : i64, flops_bound = 57802752 : i64, params = 36864 : i64, status = "optimal"}
kas.kernel @convolution<C, H, W | k> (%in: [C | H, W]) -> [C | H, W]
    bindings [<C = 64, H = 28, W = 28, k = 3>] budget {flops = 100000000} {
  %u = kas.dag.unfold %in dims [1, 2] by [k, k] : [C | H, W]
  %y = kas.dag.fc %u to C : [C, k, k | H, W]
  kas.dag.output %y : [C | H, W]
}

// BOTH-LABEL: kas.kernel @separable
// BOTH:       solution {flops = 38535168 : i64, {{.*}} params = 24576 : i64
kas.kernel @separable<C, H, W | k> (%in: [C | H, W]) -> [C | H, W]
    bindings [<C = 64, H = 28, W = 28, k = 3>] budget {flops = 100000000} {
  %u = kas.dag.unfold %in dims [1] by [k] : [C | H, W]
  %y = kas.dag.fc %u to C : [C, k | H, W]
  %v = kas.dag.unfold %y dims [2] by [k] : [C | H, W]
  %z = kas.dag.fc %v to C : [C, k | H, W]
  kas.dag.output %z : [C | H, W]
}

// BOTH-LABEL: kas.kernel @depthwise
// BOTH:       solution {flops = 903168 : i64, {{.*}} params = 576 : i64
kas.kernel @depthwise<C, H, W | k> (%in: [C | H, W]) -> [C | H, W]
    bindings [<C = 64, H = 28, W = 28, k = 3>] budget {flops = 100000000} {
  %g = kas.dag.group_all %in : [C | H, W]
  %u = kas.dag.unfold %g dims [2, 3] by [k, k] : [C, 1 | H, W]
  %y = kas.dag.fc %u groups 1 to C : [C, 1, k, k | H, W]
  kas.dag.output %y : [C | H, W]
}

// BOTH-LABEL: kas.kernel @residual
// BOTH:       solution {flops = 57903104 : i64, {{.*}} params = 36864 : i64
kas.kernel @residual<C, H, W | k> (%in: [C | H, W]) -> [C | H, W]
    bindings [<C = 64, H = 28, W = 28, k = 3>] budget {flops = 100000000} {
  %u = kas.dag.unfold %in dims [1, 2] by [k, k] : [C | H, W]
  %y = kas.dag.fc %u to C : [C, k, k | H, W]
  %r = kas.dag.unary relu %y : [C | H, W]
  %z = kas.dag.broadcast add %in, %r common [0, 3] : [C | H, W], [C | H, W]
  kas.dag.output %z : [C | H, W]
}

// BOTH-LABEL: kas.kernel @mask
// BOTH:       solution {flops = 200704 : i64, {{.*}} params = 50176 : i64
kas.kernel @mask<C, H, W> (%in: [C | H, W]) -> [C | H, W]
    bindings [<C = 64, H = 28, W = 28>] budget {flops = 100000000} {
  %p = kas.dag.fold mean %in dims [1, 2] : [C | H, W]
  %a = kas.dag.fc %p to H*W : [C]
  %m = kas.dag.broadcast mul %a, %in common [0, 0] : [H*W], [C | H, W]
  kas.dag.output %m : [C | H, W]
}
