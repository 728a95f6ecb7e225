// Winograd's transforms are of f32: convolutions of other types, also mixed ones, are compiled as without them.
// RUN: kas-opt %s -kas-cpu-pipeline='cpu=x86-64-v4 algorithm=winograd' | FileCheck %s
// RUN: kas-opt %s -kas-attach-cpu-target=cpu=x86-64-v4 -kas-specialize -kas-winograd | FileCheck %s --check-prefix=KEPT

kas.operator @convolution<N, C, O, H, W | k> (%n: N, %o: O, %h: H, %w: W) from [N, C, H, W] {
  %c = kas.reduce sum : C
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : C
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %y = kas.unfold %h, %i_d : H, k
  %x = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
}
// CHECK: llvm.func @half
// KEPT-LABEL: func.func @half
// KEPT: kas.apply
func.func @half(%x: tensor<1x16x32x32xf16>, %w: tensor<16x16x3x3xf16>) -> tensor<1x16x32x32xf16> {
  %0 = kas.apply @convolution<k = 3>(%x, %w) : (tensor<1x16x32x32xf16>, tensor<16x16x3x3xf16>) -> tensor<1x16x32x32xf16>
  return %0 : tensor<1x16x32x32xf16>
}

// CHECK: llvm.func @mixed
// KEPT-LABEL: func.func @mixed
// KEPT: linalg.conv_2d_nchw_fchw
func.func @mixed(%x: tensor<1x16x34x34xf32>, %w: tensor<16x16x3x3xf16>, %i: tensor<1x16x32x32xf32>) -> tensor<1x16x32x32xf32> {
  %0 = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x16x34x34xf32>, tensor<16x16x3x3xf16>) outs(%i : tensor<1x16x32x32xf32>) -> tensor<1x16x32x32xf32>
  return %0 : tensor<1x16x32x32xf32>
}
