// RUN: kas-opt %s -pass-pipeline='builtin.module(kas-kernel-to-linalg,canonicalize,cse,func.func(kas-fuse-elementwise),canonicalize,cse)' | FileCheck %s

// A chain of functions and blends is one loop nest, after the layer that it
// reads.

// CHECK-LABEL: func.func @chain
// CHECK:         linalg.generic {{.*}} "reduction"
// CHECK:         %[[Y:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
// CHECK:           math.sqrt
// CHECK:           math.erf
// CHECK:           arith.maximumf
// CHECK:           arith.addf
// CHECK-NOT:     linalg.generic
// CHECK:         return %[[Y]]
kas.kernel @chain(%in: [8 | 6, 6]) -> [8 | 6, 6] {
  %c = kas.dag.conv %in dims [1, 2] by [3, 3] to 8 : [8 | 6, 6]
  %n = kas.dag.norm %c : [8 | 6, 6]
  %g = kas.dag.unary gelu %n : [8 | 6, 6]
  %s = kas.dag.scale %g dims [0] : [8 | 6, 6]
  %d = kas.dag.dropout %s rate 5.0e-01 : [8 | 6, 6]
  %r = kas.dag.unary relu %d : [8 | 6, 6]
  %y = kas.dag.broadcast add %in, %r common [3, 0] : [8 | 6, 6], [8 | 6, 6]
  kas.dag.output %y : [8 | 6, 6]
}

// A product and the windows that it reads go into the sum after it: one
// contraction, of the padded input.

// CHECK-LABEL: func.func @product_of_windows
// CHECK:         %[[PADDED:.*]] = tensor.pad
// CHECK:         linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction", "reduction", "parallel", "parallel"]} ins(%{{.*}}, %[[PADDED]] :
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      arith.mulf
// CHECK-NEXT:      arith.addf
// CHECK-NOT:     "reduction"
// CHECK:         return
kas.kernel @product_of_windows(%in: [8 | 6, 6], %f: [9 | 6, 6]) -> [8 | 6, 6] {
  %u = kas.dag.unfold %in dims [1, 2] by [3, 3] : [8 | 6, 6]
  %m = kas.dag.broadcast mul %f, %u common [0, 2] : [9 | 6, 6], [8, 3, 3 | 6, 6]
  %y = kas.dag.fold mean %m dims [1, 2] : [8, 3, 3 | 6, 6]
  kas.dag.output %y : [8 | 6, 6]
}

// Other functions keep their vectors: they stay before the sum.

// CHECK-LABEL: func.func @sum_of_function
// CHECK:         math.exp
// CHECK:         linalg.generic {{.*}} "reduction"
// CHECK-NOT:     math.exp
// CHECK:         return
kas.kernel @sum_of_function(%in: [8 | 6, 6]) -> [8] {
  %e = kas.dag.unary exp %in : [8 | 6, 6]
  %y = kas.dag.fold sum %e dims [1, 2] : [8 | 6, 6]
  kas.dag.output %y : [8]
}
