// A grouped convolution along the width (W1), then one along both axes (W2): what Operator 1 is compared with.
//
// Formula: Y[n,o,h,w] = sum over G<g, c<Cin/g, i<k, a<k, b<k, t<T of
//   X[n,G*Cin/g+c,h+i-floor(k/2),w+b-floor(k/2)+a-floor(k/2)] * W1[G*Cin/g+c,a,t] * W2[G,i,b,o,t], T = Cout/(g*s); a
//   term counts where also 0 <= w+b-floor(k/2) < W
// Source: Zhuo et al., Syno: Structured Synthesis for Neural Operators, Figure 8 (stacked convolution).
kas.operator @stacked_conv2d<N, Cin, Cout, H, W | k, g, s>
    (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %G = kas.reduce sum : g
  %c = kas.reduce sum : Cin/g
  %i = kas.reduce sum : k
  %a = kas.reduce sum : k
  %b = kas.reduce sum : k
  %t = kas.reduce sum : Cout/(g*s)
  %G_d, %G_w2 = kas.share %G : g
  %gc = kas.split %G_d, %c : g, Cin/g
  %gc_d, %gc_w1 = kas.share %gc : Cin
  %i_d, %i_w2 = kas.share %i : k
  %a_d, %a_w1 = kas.share %a : k
  %b_d, %b_w2 = kas.share %b : k
  %t_w1, %t_w2 = kas.share %t : Cout/(g*s)
  %y = kas.unfold %h, %i_d : H, k
  %wb = kas.unfold %w, %b_d : W, k
  %x = kas.unfold %wb, %a_d : W, k
  kas.yield data(%n, %gc_d, %y, %x) weight(%gc_w1, %a_w1, %t_w1) weight(%G_w2, %i_w2, %b_w2, %o, %t_w2)
}
