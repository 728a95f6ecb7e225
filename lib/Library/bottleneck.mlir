// A 1x1 convolution to Cout/r channels (W1), a k x k convolution among them (W2), a 1x1 convolution to Cout (W3).
//
// Formula: Y[n,o,h,w] = sum over q<Cout/r, p<Cout/r, c<Cin, i<k, j<k of X[n,c,h+i-floor(k/2),w+j-floor(k/2)] * W1[p,c]
//   * W2[q,p,i,j] * W3[o,q]
// Source: He et al., Deep Residual Learning for Image Recognition, CVPR 2016, section 4.1, without activations and
//   shortcut.
kas.operator @bottleneck<N, Cin, Cout, H, W | k, r>
    (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %q = kas.reduce sum : Cout/r
  %p = kas.reduce sum : Cout/r
  %c = kas.reduce sum : Cin
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %p_w1, %p_w2 = kas.share %p : Cout/r
  %q_w2, %q_w3 = kas.share %q : Cout/r
  %c_d, %c_w1 = kas.share %c : Cin
  %i_d, %i_w2 = kas.share %i : k
  %j_d, %j_w2 = kas.share %j : k
  %y = kas.unfold %h, %i_d : H, k
  %x = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %c_d, %y, %x) weight(%p_w1, %c_w1) weight(%q_w2, %p_w2, %i_w2, %j_w2) weight(%o, %q_w3)
}
