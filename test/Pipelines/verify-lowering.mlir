// RUN: kas-opt %s -kas-to-linalg=verify-lowering | FileCheck %s --check-prefix=LINALG
// RUN: kas-opt %s -kas-to-affine=verify-lowering | FileCheck %s --check-prefix=AFFINE
// RUN: kas-opt %s -kas-rfactor=verify-lowering | FileCheck %s --check-prefix=STAGES
// RUN: kas-opt %s -kas-rfactor=verify-lowering -kas-to-linalg=verify-lowering -o /dev/null --remarks-filter=kas-verify-lowering 2>&1 \
// RUN:   | FileCheck %s --check-prefix=PROVEN
// RUN: kas-opt %s -kas-to-affine=verify-lowering -o /dev/null --remarks-filter=kas-verify-lowering 2>&1 | FileCheck %s --check-prefix=LOOPS
// RUN: kas-opt %s -kas-cpu-pipeline="verify-lowering threads=1" -o /dev/null 2>&1 | count 0
// RUN: kas-opt %s -kas-cpu-pipeline="verify-lowering pack-operators=false threads=2" -o /dev/null \
// RUN:   --remarks-filter=kas-verify-lowering 2>&1 | FileCheck %s --check-prefix=PIPELINE
// RUN: %if gpu %{ kas-opt %s -kas-nvvm-pipeline=verify-lowering -o /dev/null --remarks-filter=kas-verify-lowering 2>&1 \
// RUN:   | FileCheck %s --check-prefix=DEVICE %}
// RUN: %if gpu %{ kas-opt %s -kas-spirv-pipeline="verify-lowering profile=f16" -o /dev/null --remarks-filter=kas-verify-lowering 2>&1 \
// RUN:   | FileCheck %s --check-prefix=DEVICE %}

// PROVEN-COUNT-12: remark: [Passed] Proven | Category:kas-verify-lowering
// PROVEN-NOT:     Proven
// @rotations stays whole: elements between stages count, too.
// PIPELINE-COUNT-9: remark: [Passed] Proven | Category:kas-verify-lowering
// PIPELINE-NOT:   Proven
// LOOPS-DAG:      Proven | Category:kas-verify-lowering | operator=gram
// LOOPS-DAG:      Proven | Category:kas-verify-lowering | operator=pool
// LOOPS-DAG:      Proven | Category:kas-verify-lowering | operator=bottleneck
// DEVICE:         Proven | Category:kas-verify-lowering | operator=bottleneck

// Each operator is compared where it is lowered, between others, and whatever
// computed its inputs.

kas.operator @gram(%i: 6, %j: 6) from [6, 5] {
  %k = kas.reduce sum : 5
  %k_d, %k_w = kas.share %k : 5
  kas.yield data(%i, %k_d) weight(%j, %k_w)
}
kas.operator @mean(%i: 6) from [6, 6] {
  %k = kas.reduce mean : 3
  %j = kas.reduce mean : 6
  %x = kas.unfold %j, %k : 6, 3
  kas.yield data(%i, %x)
}
kas.operator @pool(%i: 3) from [6] {
  %k = kas.reduce max : 3
  %s = kas.stride %i by 2 : 3
  %x = kas.unfold %s, %k : 6, 3
  kas.yield data(%x)
}
kas.operator @shuffle(%i: 6) from [6] {
  %t = kas.shift %i by 2 : 6
  %q, %r = kas.merge %t by 2 : 6
  %x = kas.split %r, %q : 2, 3
  kas.yield data(%x)
}
kas.operator @bottleneck(%n: 6) from [6] {
  %i = kas.reduce sum : 6
  %j = kas.reduce sum : 6
  %i_d, %i_w = kas.share %i : 6
  %j_w, %j_v = kas.share %j : 6
  kas.expand %j_w : 6
  kas.yield data(%i_d) weight(%i_w, %j_v) weight(%n)
}
// Rotations become slices: many pieces, most of them empty.
kas.operator @rotations(%o: 3, %p: 2) from [1] {
  %u = kas.unfold %o, %p low 0 : 3, 2
  %t = kas.shift %u by 2 : 3
  %t_2 = kas.shift %t by -2 : 3
  %t_3 = kas.shift %t_2 by -2 : 3
  %d, %w = kas.share %t_3 : 3
  %q, %m = kas.merge %d by 3 : 3
  %d_6, %w_7 = kas.share %q : 1
  kas.yield data(%d_6) weight(%w_7) weight(%w) weight(%m)
}

// The same tensor is the data and the weight.
// LINALG-LABEL: func @chain(
// LINALG-NOT:     kas.apply
// AFFINE-LABEL: func @chain(
// AFFINE-NOT:     kas.apply
// AFFINE:         affine.for
func.func @chain(%x: tensor<6x5xf32>) -> tensor<3xf32> {
  %g = kas.apply @gram(%x, %x) : (tensor<6x5xf32>, tensor<6x5xf32>) -> tensor<6x6xf32>
  %m = kas.apply @mean(%g) : (tensor<6x6xf32>) -> tensor<6xf32>
  %s = kas.apply @shuffle(%m) : (tensor<6xf32>) -> tensor<6xf32>
  %y = kas.apply @pool(%s) : (tensor<6xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}

// Two stages.
// STAGES-LABEL: func @stages(
// STAGES:         kas.apply @{{.+}}_stage0
// STAGES:         kas.apply @{{.+}}_stage1
func.func @stages(%x: tensor<6xf32>, %v: tensor<6x6xf32>, %w: tensor<6xf32>) -> tensor<6xf32> {
  %y = kas.apply @bottleneck(%x, %v, %w) : (tensor<6xf32>, tensor<6x6xf32>, tensor<6xf32>) -> tensor<6xf32>
  return %y : tensor<6xf32>
}

// Small elements are accumulated in f32.
// AFFINE-LABEL: func @small(
// AFFINE:         arith.extf
// LINALG-LABEL: func @small(
// LINALG:         arith.truncf
func.func @small(%x: tensor<6x6xf16>) -> tensor<6xf16> {
  %m = kas.apply @mean(%x) : (tensor<6x6xf16>) -> tensor<6xf16>
  return %m : tensor<6xf16>
}

func.func @pieces(%x: tensor<1xf32>, %u: tensor<1xf32>, %v: tensor<3xf32>, %w: tensor<3xf32>) -> tensor<3x2xf32> {
  %y = kas.apply @rotations(%x, %u, %v, %w)
      : (tensor<1xf32>, tensor<1xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}
