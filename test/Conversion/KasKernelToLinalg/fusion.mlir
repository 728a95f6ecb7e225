// RUN: kas-opt %s -pass-pipeline='builtin.module(kas-kernel-to-linalg,canonicalize,cse,func.func(kas-fuse-elementwise),canonicalize,cse)' | FileCheck %s

// A chain of functions and blends is one loop nest, behind the layer that it
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
