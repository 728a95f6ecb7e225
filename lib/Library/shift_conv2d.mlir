// A cyclic shift by one pixel along the first spatial axis, then a 1x1 convolution.
//
// Formula: Y[n,o,h,w] = sum over c<Cin of X[n,c,(h+1) mod H,w] * W[o,c]
// Source: Zhao et al., Canvas: End-to-End Kernel Architecture Search in Neural Networks, section 5 (shift convolution),
//   with the cyclic shift of Syno, Table 1.
kas.operator @shift_conv2d<N, Cin, Cout, H, W>
    (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %c_d, %c_w = kas.share %c : Cin
  %y = kas.shift %h by 1 : H
  kas.yield data(%n, %c_d, %y, %w) weight(%o, %c_w)
}
