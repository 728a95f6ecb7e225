// RUN: kas-opt %s -kas-print-cost 2>&1 >/dev/null | FileCheck %s
// RUN: kas-opt %s -kas-print-cost='operator=conv2d bind=N=1,Cin=64,Cout=128,H=56,W=56,k=3' 2>&1 >/dev/null | FileCheck %s --check-prefix=NAMED

// The convolution of a ResNet: 56*56*64*128*9 multiply-adds and 128*64*9 parameters.
// CHECK: remark: cost of 'conv2d': MACs Cin*Cout*H*N*W*k**2, FLOPs 2*Cin*Cout*H*N*W*k**2, unprepared FLOPs 2*Cin*Cout*H*N*W*k**2, training FLOPs 6*Cin*Cout*H*N*W*k**2, parameters Cin*Cout*k**2, bytes 4*Cin*H*N*W + 4*Cout*H*N*W + 4*Cin*Cout*k**2
// NAMED: remark: cost of 'conv2d' at N=1,Cin=64,Cout=128,H=56,W=56,k=3: MACs 231211008, FLOPs 462422016, unprepared FLOPs 462422016, training FLOPs 1387266048, parameters 73728, bytes 2703360
kas.operator @conv2d<N, Cin, Cout, H, W | k>
    (%n: N, %co: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %ci = kas.reduce sum : Cin
  %kh = kas.reduce sum : k
  %kw = kas.reduce sum : k
  %ci_d, %ci_w = kas.share %ci : Cin
  %kh_d, %kh_w = kas.share %kh : k
  %kw_d, %kw_w = kas.share %kw : k
  %ih = kas.unfold %h, %kh_d : H, k
  %iw = kas.unfold %w, %kw_d : W, k
  kas.yield data(%n, %ci_d, %ih, %iw) weight(%co, %ci_w, %kh_w, %kw_w)
}

// Three tensors are multiplied: one multiply-add per point when the weights were multiplied before, else two.
// CHECK: remark: cost of 'two_weights': MACs C*H*k**2, FLOPs 2*C*H*k**2, unprepared FLOPs 4*C*H*k**2, training FLOPs 16*C*H*k**2, parameters C*k + k**2, bytes 8*C*H + 4*C*k + 4*k**2
kas.operator @two_weights<C, H | k>(%c: C, %h: H) from [C, H] {
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %i_d, %i_w = kas.share %i : k
  %i_e, %i_v = kas.share %i_d : k
  %j_d, %j_w = kas.share %j : k
  %c_d, %c_w = kas.share %c : C
  %x = kas.unfold %h, %i_e : H, k
  %y = kas.unfold %x, %j_d : H, k
  kas.yield data(%c_d, %y) weight(%c_w, %i_w) weight(%i_v, %j_w)
}

// A pooling without weights counts its additions.
// CHECK: remark: cost of 'pool': MACs H, FLOPs 2*H, unprepared FLOPs 2*H, training FLOPs 2*H, parameters 0, bytes 4*H + 4*H/s
kas.operator @pool<H | s>(%h: H/s) from [H] {
  %r = kas.reduce mean : s
  %x = kas.split %h, %r : H/s, s
  kas.yield data(%x)
}

// A view has no arithmetic, only traffic.
// CHECK: remark: cost of 'view': MACs 0, FLOPs 0, unprepared FLOPs 0, training FLOPs 0, parameters 0, bytes 8*H
kas.operator @view<H>(%h: H) from [H] {
  %x = kas.shift %h by 1 : H
  kas.yield data(%x)
}

// A weight without a reduction still multiplies. Numbers, when concrete.
// CHECK: remark: cost of 'scale': MACs 6, FLOPs 12, unprepared FLOPs 12, training FLOPs 36, parameters 6, bytes 72
kas.operator @scale(%h: 6) from [6] {
  %d, %w = kas.share %h : 6
  kas.yield data(%d) weight(%w)
}

// CHECK: remark: cost of applying 'pool': MACs 12, FLOPs 24, unprepared FLOPs 24, training FLOPs 24, parameters 0, bytes 64
func.func @apply(%x: tensor<12xf32>) -> tensor<4xf32> {
  %y = kas.apply @pool<s = 3>(%x) : (tensor<12xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// One nest has 4 * 3 * 3 points; in stages the blocks are summed first, 4 * 3 additions, then the windows, as many.
// CHECK: remark: cost of 'factored': MACs H*k, FLOPs 2*H*k, unprepared FLOPs 2*H*k, training FLOPs 2*H*k, parameters 0, bytes 4*H + 4*H/B
// CHECK: remark: cost of applying 'factored': MACs 24, FLOPs 48, unprepared FLOPs 48, training FLOPs 48, parameters 0, bytes 64
kas.operator @factored<H | k, B>(%h: H/B) from [H] {
  %i = kas.reduce sum : k
  %j = kas.reduce sum : B
  %x = kas.unfold %h, %i : H/B, k
  %y = kas.split %x, %j : H/B, B
  kas.yield data(%y)
}
func.func @factored_apply(%x: tensor<12xf32>) -> tensor<4xf32> {
  %y = kas.apply @factored<k = 3, B = 3>(%x) : (tensor<12xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
