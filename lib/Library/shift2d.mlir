// A cyclic shift by one pixel along both spatial axes, then a 1x1 convolution.
//
// Formula: Y[n,o,h,w] = sum over c<Cin of X[n,c,(h+1) mod H,(w+1) mod W] * W[o,c]
// Source: Syno's manual kernel Shift2d, in its public code.
kas.operator @shift2d<N, Cin, Cout, H, W>
    (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %c_d, %c_w = kas.share %c : Cin
  %y = kas.shift %h by 1 : H
  %x = kas.shift %w by 1 : W
  kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w)
}
