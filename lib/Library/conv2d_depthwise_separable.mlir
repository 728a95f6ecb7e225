// A convolution per channel (W1), then a 1x1 convolution across the channels (W2).
//
// Formula: Y[n,o,h,w] = sum over c<Cin, i<k, j<k of X[n,c,h+i-floor(k/2),w+j-floor(k/2)] * W1[c,i,j] * W2[o,c]
// Source: Howard et al., MobileNets, arXiv:1704.04861, section 3.1, without the activation between the two.
kas.operator @conv2d_depthwise_separable<N, Cin, Cout, H, W | k>
    (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %c_1, %c_w2 = kas.share %c : Cin
  %c_d, %c_w1 = kas.share %c_1 : Cin
  %i_d, %i_w1 = kas.share %i : k
  %j_d, %j_w1 = kas.share %j : k
  %y = kas.unfold %h, %i_d : H, k
  %x = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %c_d, %y, %x) weight(%c_w1, %i_w1, %j_w1) weight(%o, %c_w2)
}
