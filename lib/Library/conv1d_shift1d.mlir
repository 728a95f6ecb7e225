// A convolution along the first spatial axis and a cyclic shift by one pixel along the second.
//
// Formula: Y[n,o,h,w] = sum over c<Cin, i<k of X[n,c,h+i-floor(k/2),(w+1) mod W] * W[o,c,i]
// Source: Syno's manual kernel Conv1d_shift1d, in its public code.
kas.operator @conv1d_shift1d<N, Cin, Cout, H, W | k>
    (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %i = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : Cin
  %i_d, %i_w = kas.share %i : k
  %y = kas.unfold %h, %i_d : H, k
  %x = kas.shift %w by 1 : W
  kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w)
}
