// Convolution along two axes with stride s, zero padding floor(k/2) on the low side.
//
// Formula: Y[n,o,h,w] = sum over c<Cin, i<k, j<k of X[n,c,s*h+i-floor(k/2),s*w+j-floor(k/2)] * W[o,c,i,j]
// Source: textbook; the layouts of linalg.conv_2d_nchw_fchw.
kas.operator @conv2d_strided<N, Cin, Cout, H, W | k, s>
    (%n: N, %o: Cout, %h: H/s, %w: W/s) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : Cin
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %h_s = kas.stride %h by s : H/s
  %w_s = kas.stride %w by s : W/s
  %y = kas.unfold %h_s, %i_d : H, k
  %x = kas.unfold %w_s, %j_d : W, k
  kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
}
