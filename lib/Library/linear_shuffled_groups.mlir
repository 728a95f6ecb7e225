// Two fully connected layers in g groups, with Cout features in between that are dealt out round-robin: each group of
// W2 has features of all groups of W1.
//
// Formula: Y[n,F*Cout/g+o] = sum over G<g, t<Cout/g**2, c<Cin/g of X[n,G*Cin/g+c] * W1[G,F,t,c] * W2[F,o,G,t]
// Source: Zhang et al., ShuffleNet, CVPR 2018, section 3.1, for features without positions and without the activation.
kas.operator @linear_shuffled_groups<N, Cin, Cout | g>
    (%n: N, %Fo: Cout) from [N, Cin] {
  %G = kas.reduce sum : g
  %t = kas.reduce sum : Cout/g**2
  %c = kas.reduce sum : Cin/g
  %F, %o = kas.merge %Fo by Cout/g : Cout
  %F_w1, %F_w2 = kas.share %F : g
  %t_w1, %t_w2 = kas.share %t : Cout/g**2
  %G_1, %G_w2 = kas.share %G : g
  %G_d, %G_w1 = kas.share %G_1 : g
  %c_d, %c_w1 = kas.share %c : Cin/g
  %x = kas.split %G_d, %c_d : g, Cin/g
  kas.yield data(%n, %x) weight(%G_w1, %F_w1, %t_w1, %c_w1) weight(%F_w2, %o, %G_w2, %t_w2)
}
