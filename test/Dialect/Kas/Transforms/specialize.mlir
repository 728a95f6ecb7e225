// RUN: kas-opt %s -kas-specialize | FileCheck %s
// RUN: kas-opt %s -kas-specialize='operator=grouped bind=C=8,g=2,H=4' | FileCheck %s --check-prefix=NAMED

// CHECK: kas.operator @grouped<C, H | g>
// CHECK: kas.operator private @grouped_{{[0-9]+}}(%{{.*}}: 8, %{{.*}}: 5) from [8, 5] {
// CHECK:   kas.merge %{{.*}} by 2 : 8
// CHECK:   kas.reduce sum : 2
// CHECK:   kas.unfold %{{.*}}, %{{.*}} low 1 : 5, 2
// CHECK: kas.operator private @grouped_{{[0-9]+}}(%{{.*}}: 4, %{{.*}}: 3) from [4, 3] {
// CHECK:   kas.merge %{{.*}} by 2 : 4
// NAMED: kas.operator private @grouped_{{[0-9]+}}(%{{.*}}: 8, %{{.*}}: 4) from [8, 4] {
// NAMED:   kas.merge %{{.*}} by 4 : 8
kas.operator @grouped<C, H | g>(%c: C, %h: H) from [C, H] {
  %q, %r = kas.merge %c by C/g : C
  %ci = kas.reduce sum : C/g
  %k = kas.reduce sum : 2
  %ci_d, %ci_w = kas.share %ci : C/g
  %q_d, %q_w = kas.share %q : g
  %x = kas.split %q_d, %ci_d : g, C/g
  %y = kas.unfold %h, %k low 1 : H, 2
  kas.yield data(%x, %y) weight(%q_w, %r, %ci_w)
}

// Equal bindings share one operator; unequal ones do not.
// CHECK-LABEL: func.func @apply
// CHECK:      kas.apply @[[A:grouped_[0-9]+]](
// CHECK-NEXT: kas.apply @[[A]](
// CHECK-NEXT: kas.apply @[[B:grouped_[0-9]+]](
func.func @apply(%x: tensor<8x5xf32>, %w: tensor<4x2x2xf32>, %u: tensor<4x3xf32>, %v: tensor<2x2x2xf32>) {
  %0 = kas.apply @grouped<g = 4>(%x, %w) : (tensor<8x5xf32>, tensor<4x2x2xf32>) -> tensor<8x5xf32>
  %1 = kas.apply @grouped<g = 4>(%0, %w) : (tensor<8x5xf32>, tensor<4x2x2xf32>) -> tensor<8x5xf32>
  %2 = kas.apply @grouped<g = 2>(%u, %v) : (tensor<4x3xf32>, tensor<2x2x2xf32>) -> tensor<4x3xf32>
  return
}
