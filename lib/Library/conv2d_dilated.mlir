// Convolution along two axes whose kernel points lie d apart, with padding p on the low side; p = d*(k-1)/2 centres an
// odd kernel.
//
// Formula: Y[n,o,h,w] = sum over c<Cin, i<k, j<k of X[n,c,h+d*i-p,w+d*j-p] * W[o,c,i,j]
// Source: Yu and Koltun, Multi-Scale Context Aggregation by Dilated Convolutions, ICLR 2016, section 2.
kas.operator @conv2d_dilated<N, Cin, Cout, H, W | k, d, p>
    (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : Cin
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %i_s = kas.stride %i_d by d : k
  %j_s = kas.stride %j_d by d : k
  %y = kas.unfold %h, %i_s low p : H, d*k
  %x = kas.unfold %w, %j_s low p : W, d*k
  kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
}
