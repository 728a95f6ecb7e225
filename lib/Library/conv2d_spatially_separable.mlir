// A k x 1 convolution (W1), then a 1 x k convolution (W2), with Cout channels in between.
//
// Formula: Y[n,o,h,w] = sum over m<Cout, c<Cin, i<k, j<k of X[n,c,h+i-floor(k/2),w+j-floor(k/2)] * W1[m,c,i] *
//   W2[o,m,j]
// Source: Szegedy et al., Rethinking the Inception Architecture for Computer Vision, CVPR 2016, section 3.2, without
//   the activation between the two.
kas.operator @conv2d_spatially_separable<N, Cin, Cout, H, W | k>
    (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %m = kas.reduce sum : Cout
  %c = kas.reduce sum : Cin
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %m_w1, %m_w2 = kas.share %m : Cout
  %c_d, %c_w1 = kas.share %c : Cin
  %i_d, %i_w1 = kas.share %i : k
  %j_d, %j_w2 = kas.share %j : k
  %y = kas.unfold %h, %i_d : H, k
  %x = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %c_d, %y, %x) weight(%m_w1, %c_w1, %i_w1) weight(%o, %m_w2, %j_w2)
}
