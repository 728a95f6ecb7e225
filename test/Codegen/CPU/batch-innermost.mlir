// RUN: kas-opt %s -kas-attach-cpu-target=cpu=x86-64-v4 -kas-batch-innermost='prepacked threads=1' | FileCheck %s

// Groups of four inputs with weights of their own: no vector has room for them.
// CHECK:      kas.operator private @groups_batch_innermost(%{{.*}}: 16, %{{.*}}: 4, %{{.*}}: 48) from [64, 48] {
// CHECK:        %[[X:.*]] = kas.split
// CHECK:        kas.yield data(%[[X]], %{{.*}}) weight(
kas.operator private @groups(%n: 48, %g: 16, %r: 4) from [48, 64] {
  %k = kas.reduce sum : 4
  %k_d, %k_w = kas.share %k : 4
  %g_d, %g_w = kas.share %g : 16
  %x = kas.split %g_d, %k_d : 16, 4
  kas.yield data(%n, %x) weight(%g_w, %r, %k_w)
}
// CHECK:      kas.operator private @mixed_batch_innermost(%{{.*}}: 36, %{{.*}}: 48) from [16, 4, 48] {
kas.operator private @mixed(%n: 48, %o: 36) from [48, 16, 4] {
  %k = kas.reduce sum : 16
  %k_d, %k_w = kas.share %k : 16
  %q, %m = kas.merge %o by 4 : 36
  %m_d, %m_w = kas.share %m : 4
  kas.yield data(%n, %k_d, %m_d) weight(%q, %m_w, %k_w)
}

// The tensors at both ends are as they were.
// CHECK-LABEL: func.func @chain
// CHECK-SAME:    (%[[X:.*]]: tensor<48x64xf32>, %[[V:.*]]: tensor<16x4x4xf32>, %[[W:.*]]: tensor<9x4x16xf32>) -> tensor<48x36xf32>
// CHECK:         %[[XT:.*]] = linalg.transpose ins(%[[X]] : tensor<48x64xf32>) outs(%{{.*}} : tensor<64x48xf32>) permutation = [1, 0]
// CHECK:         %[[Y:.*]] = kas.apply @groups_batch_innermost(%[[XT]], %[[V]]) : (tensor<64x48xf32>, tensor<16x4x4xf32>) -> tensor<16x4x48xf32>
// CHECK:         %[[Z:.*]] = kas.apply @mixed_batch_innermost(%[[Y]], %[[W]]) : (tensor<16x4x48xf32>, tensor<9x4x16xf32>) -> tensor<36x48xf32>
// CHECK:         %[[R:.*]] = linalg.transpose ins(%[[Z]] : tensor<36x48xf32>) outs(%{{.*}} : tensor<48x36xf32>) permutation = [1, 0]
// CHECK:         return %[[R]]
func.func @chain(%x: tensor<48x64xf32>, %v: tensor<16x4x4xf32>, %w: tensor<9x4x16xf32>) -> tensor<48x36xf32> {
  %y = kas.apply @groups(%x, %v) : (tensor<48x64xf32>, tensor<16x4x4xf32>) -> tensor<48x16x4xf32>
  %z = kas.apply @mixed(%y, %w) : (tensor<48x16x4xf32>, tensor<9x4x16xf32>) -> tensor<48x36xf32>
  return %z : tensor<48x36xf32>
}

// What something else reads stays as it is, too: the chain ends there, and either part is not worth transposes.
// CHECK-LABEL: func.func @between
// CHECK-NOT:     linalg.transpose
// CHECK:         return
func.func @between(%x: tensor<48x64xf32>, %v: tensor<16x4x4xf32>, %w: tensor<9x4x16xf32>) -> (tensor<48x36xf32>, tensor<48x16x4xf32>) {
  %y = kas.apply @groups(%x, %v) : (tensor<48x64xf32>, tensor<16x4x4xf32>) -> tensor<48x16x4xf32>
  %z = kas.apply @mixed(%y, %w) : (tensor<48x16x4xf32>, tensor<9x4x16xf32>) -> tensor<48x36xf32>
  return %z, %y : tensor<48x36xf32>, tensor<48x16x4xf32>
}

// Neither do operators with schedules change.
// CHECK-LABEL: func.func @scheduled
// CHECK-NOT:     linalg.transpose
// CHECK:         return
func.func @scheduled(%x: tensor<48x64xf32>, %v: tensor<16x4x4xf32>) -> tensor<48x16x4xf32> {
  %y = kas.apply @groups(%x, %v) {kas_cpu.schedule = #kas_cpu.schedule<strategy = direct>} : (tensor<48x64xf32>, tensor<16x4x4xf32>) -> tensor<48x16x4xf32>
  return %y : tensor<48x16x4xf32>
}

// Seven samples fill no vector.
// CHECK-NOT:  @few_batch_innermost
kas.operator private @few(%n: 7, %g: 16, %r: 4) from [7, 64] {
  %k = kas.reduce sum : 4
  %k_d, %k_w = kas.share %k : 4
  %g_d, %g_w = kas.share %g : 16
  %x = kas.split %g_d, %k_d : 16, 4
  kas.yield data(%n, %x) weight(%g_w, %r, %k_w)
}
// CHECK-LABEL: func.func @few_samples
// CHECK-NOT:     linalg.transpose
// CHECK:         return
func.func @few_samples(%x: tensor<7x64xf32>, %v: tensor<16x4x4xf32>) -> tensor<7x16x4xf32> {
  %y = kas.apply @few(%x, %v) : (tensor<7x64xf32>, tensor<16x4x4xf32>) -> tensor<7x16x4xf32>
  return %y : tensor<7x16x4xf32>
}

// Images have lines for vectors.
// CHECK-LABEL: func.func @image
// CHECK-NOT:     linalg.transpose
// CHECK:         return
kas.operator private @image_groups(%n: 48, %g: 16, %h: 6) from [48, 16, 6] {
  %g_d, %g_w = kas.share %g : 16
  kas.yield data(%n, %g_d, %h) weight(%g_w)
}
func.func @image(%x: tensor<48x16x6xf32>, %v: tensor<16xf32>) -> tensor<48x16x6xf32> {
  %y = kas.apply @image_groups(%x, %v) : (tensor<48x16x6xf32>, tensor<16xf32>) -> tensor<48x16x6xf32>
  return %y : tensor<48x16x6xf32>
}
