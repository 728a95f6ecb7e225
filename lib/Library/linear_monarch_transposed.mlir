// Transpose of a Monarch matrix: p blocks of inputs that lie p apart, with g outputs each (W1), then g blocks (W2).
//
// Formula: Y[n,G*Cout/g+o] = sum over t<p, c<Cin/p of X[n,c*p+t] * W1[t,G,c] * W2[G,o,t]
// Source: Dao et al., Monarch: Expressive Structured Matrices for Efficient and Accurate Training, ICML 2022, section
//   3.1, transposed.
kas.operator @linear_monarch_transposed<N, Cin, Cout | g, p>
    (%n: N, %Go: Cout) from [N, Cin] {
  %t = kas.reduce sum : p
  %c = kas.reduce sum : Cin/p
  %G, %o = kas.merge %Go by Cout/g : Cout
  %G_w1, %G_w2 = kas.share %G : g
  %t_1, %t_w2 = kas.share %t : p
  %t_d, %t_w1 = kas.share %t_1 : p
  %c_d, %c_w1 = kas.share %c : Cin/p
  %x = kas.split %c_d, %t_d : Cin/p, p
  kas.yield data(%n, %x) weight(%t_w1, %G_w1, %c_w1) weight(%G_w2, %o, %t_w2)
}
