// RUN: kas-opt %s -split-input-file -kas-solve-shapes=choice=3 | FileCheck %s

// Sizes as they are printed and solved, beside those of solve-shapes.mlir and
// solver-cases.mlir.

// A product cancels what it can, constants too; a shape, and one without
// dimensions.
// CHECK-LABEL: kas.kernel @products
// CHECK:         kas.dag.fc %{{.*}} to C*x*z/G : [C | H, W]
// CHECK:         kas.dag.fc %{{.*}} to C*H*W*x*y*z : [C*x*z/G | H, W]
// CHECK:         kas.dag.fc %{{.*}} to 5*C*x*z/(4*G) : [C*H*W*x*y*z | H, W]
// CHECK:         kas.dag.fold mean %{{.*}} dims [0, 1, 2] : [C | H, W]
// CHECK:         kas.dag.unary relu %{{.*}} : []
kas.kernel @products<C, H, W | G | x, y, z> where [G divides C] (%in: [C | H, W]) -> [C | H, W] {
  %a = kas.dag.fc %in to C/G*x*z : [C | H, W]
  %b = kas.dag.fc %a to C/G*x*z*G*H*W*y : [C/G*x*z | H, W]
  %c = kas.dag.fc %b to C/G*x*z*10/8 : [C*H*W*x*y*z | H, W]
  %f = kas.dag.fold mean %in dims [0, 1, 2] : [C | H, W]
  %r = kas.dag.unary relu %f : []
  kas.dag.output %in : [C | H, W]
}

// -----

// x = C in C/G*x*x*z.
// CHECK-LABEL: kas.kernel @substitution
// CHECK:         kas.dag.fc %{{.*}} to C**3*z/G : [C | H]
kas.kernel @substitution<C, H | G | x, z> where [G divides C] (%in: [C | H]) -> [C | H] {
  %a = kas.dag.fc %in to x : [C | H]
  %b = kas.dag.fc %in to C/G*x*x*z : [C | H]
  %m = kas.dag.broadcast add %a, %in common [0, 1] : [x | H], [C | H]
  kas.dag.output %m : [C | H]
}

// -----

// x/G = C.
// CHECK-LABEL: kas.kernel canvas @multiple
// CHECK:         kas.dag.fc %{{.*}} to C*G : [C | H]
// CHECK:         kas.dag.output %{{.*}} : [C | H]
kas.kernel canvas @multiple<C, H | G | x> where [G divides C] (%in: [C | H]) -> [C | H] {
  %a = kas.dag.fc %in to x : [C | H]
  %g = kas.dag.group %a dim 0 by G : [x | H]
  %f = kas.dag.fold mean %g dims [0] : [G, x/G | H]
  kas.dag.output %f : [x/G | H]
}
