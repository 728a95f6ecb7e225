// Pointwise convolution of every s-th pixel along both axes.
//
// Formula: Y[n,o,h,w] = sum over c<Cin of X[n,c,s*h,s*w] * W[o,c]
// Source: He et al., Deep Residual Learning for Image Recognition, CVPR 2016, section 3.3, projection shortcut.
kas.operator @conv1x1_strided<N, Cin, Cout, H, W | s>
    (%n: N, %o: Cout, %h: H/s, %w: W/s) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %c_d, %c_w = kas.share %c : Cin
  %y = kas.stride %h by s : H/s
  %x = kas.stride %w by s : W/s
  kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w)
}
