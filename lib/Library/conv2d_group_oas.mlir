// A grouped convolution to T channels per group (W1), then a 1x1 convolution of all of them (W2).
//
// Formula: Y[n,o,h,w] = sum over G<g, t<T, c<Cin/g, i<k, j<k of X[n,G*Cin/g+c,h+i-floor(k/2),w+j-floor(k/2)] *
//   W1[t,G*Cin/g+c,i,j] * W2[o,G,t], T = Cout/(g*s)
// Source: Syno's manual kernel Conv2d_group_oas, in its public code.
kas.operator @conv2d_group_oas<N, Cin, Cout, H, W | k, g, s>
    (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %G = kas.reduce sum : g
  %t = kas.reduce sum : Cout/(g*s)
  %c = kas.reduce sum : Cin/g
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %G_d, %G_w2 = kas.share %G : g
  %gc = kas.split %G_d, %c : g, Cin/g
  %gc_d, %gc_w1 = kas.share %gc : Cin
  %t_w1, %t_w2 = kas.share %t : Cout/(g*s)
  %i_d, %i_w1 = kas.share %i : k
  %j_d, %j_w1 = kas.share %j : k
  %y = kas.unfold %h, %i_d : H, k
  %x = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %gc_d, %y, %x) weight(%t_w1, %gc_w1, %i_w1, %j_w1) weight(%o, %G_w2, %t_w2)
}
