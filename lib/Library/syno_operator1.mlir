// Two grouped low-rank stages that share the window along the width.
//
// Formula: Y[n,o,h,w] = sum over G<g, c<Cin/g, i<k, j<k, t<T of X[n,G*Cin/g+c,h+i-floor(k/2),w+j-floor(k/2)] *
//   W1[G*Cin/g+c,j,t] * W2[G,i,j,o,t], T = Cout/(g*s)
// Source: Zhuo et al., Syno: Structured Synthesis for Neural Operators, Figure 7 (Operator 1; kernel 07889 of its
//   public artifact).
kas.operator @syno_operator1<N, Cin, Cout, H, W | k, g, s>
    (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %G = kas.reduce sum : g
  %c = kas.reduce sum : Cin/g
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %t = kas.reduce sum : Cout/(g*s)
  %G_d, %G_w2 = kas.share %G : g
  %gc = kas.split %G_d, %c : g, Cin/g
  %gc_d, %gc_w1 = kas.share %gc : Cin
  %i_d, %i_w2 = kas.share %i : k
  %j_1, %j_w2 = kas.share %j : k
  %j_d, %j_w1 = kas.share %j_1 : k
  %t_w1, %t_w2 = kas.share %t : Cout/(g*s)
  %y = kas.unfold %h, %i_d : H, k
  %x = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %gc_d, %y, %x) weight(%gc_w1, %j_w1, %t_w1) weight(%G_w2, %i_w2, %j_w2, %o, %t_w2)
}
