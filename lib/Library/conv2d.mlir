// Convolution along two axes, stride 1, zero padding to the same size.
//
// Formula: Y[n,o,h,w] = sum over c<Cin, i<k, j<k of X[n,c,h+i-floor(k/2),w+j-floor(k/2)] * W[o,c,i,j]
// Source: textbook; the layouts of linalg.conv_2d_nchw_fchw.
kas.operator @conv2d<N, Cin, Cout, H, W | k>
    (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : Cin
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %y = kas.unfold %h, %i_d : H, k
  %x = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
}
