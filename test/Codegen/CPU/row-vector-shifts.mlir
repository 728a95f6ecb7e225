// Cyclic shifts that step with no reduction, with one, and along the columns of a tile: the address of the data begins
// again where they end.
// RUN: kas-opt %s -kas-specialize -kas-to-linalg -kas-erase-operators -o %t.linalg.mlir
// RUN: kas-opt %s -kas-specialize -kas-cpu-pipeline='threads=1 prepack-weights=true' --remarks-filter=kas-panels --remark-policy=all -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: kas-run %s --function=lines --check=%t.linalg.mlir --threads=1 | FileCheck %s
// RUN: kas-run %s --function=window --check=%t.linalg.mlir --threads=1 | FileCheck %s
// RUN: kas-run %s --function=columns --check=%t.linalg.mlir --threads=1 | FileCheck %s

// REMARK-COUNT-3: [Passed] RowVectors
// CHECK: {{^ +ok}}

kas.operator @shift_lines<N, Cin, Cout, H, W>
    (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %c_d, %c_w = kas.share %c : Cin
  %y = kas.shift %h by 1 : H
  kas.yield data(%n, %c_d, %y, %w) weight(%o, %c_w)
}
kas.operator @shift_window<N, Cin, Cout, H, W | k>
    (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %i = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : Cin
  %i_d, %i_w = kas.share %i : k
  %x = kas.unfold %w, %i_d : W, k
  %y = kas.shift %h by 2 : H
  kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w)
}
kas.operator @shift_columns<N, Cin, Cout, H, W>
    (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %c_d, %c_w = kas.share %c : Cin
  %y = kas.shift %h by 1 : H
  %x = kas.shift %w by 1 : W
  kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w)
}
#schedule = #kas_cpu.schedule<strategy = row_vectors>
func.func @lines(%x: tensor<2x16x3x48xf32>, %w: tensor<16x16xf32>) -> tensor<2x16x3x48xf32> {
  %y = kas.apply @shift_lines(%x, %w) {kas_cpu.schedule = #schedule} : (tensor<2x16x3x48xf32>, tensor<16x16xf32>) -> tensor<2x16x3x48xf32>
  return %y : tensor<2x16x3x48xf32>
}
func.func @window(%x: tensor<1x16x5x48xf32>, %w: tensor<16x16x3xf32>) -> tensor<1x16x5x48xf32> {
  %y = kas.apply @shift_window<k = 3>(%x, %w) {kas_cpu.schedule = #schedule} : (tensor<1x16x5x48xf32>, tensor<16x16x3xf32>) -> tensor<1x16x5x48xf32>
  return %y : tensor<1x16x5x48xf32>
}
func.func @columns(%x: tensor<1x16x4x48xf32>, %w: tensor<16x16xf32>) -> tensor<1x16x4x48xf32> {
  %y = kas.apply @shift_columns(%x, %w) {kas_cpu.schedule = #schedule} : (tensor<1x16x4x48xf32>, tensor<16x16xf32>) -> tensor<1x16x4x48xf32>
  return %y : tensor<1x16x4x48xf32>
}
