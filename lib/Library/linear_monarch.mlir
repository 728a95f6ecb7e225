// Fully connected layer of two block-diagonal factors: g blocks with p outputs each (W1), then, after a transposition,
// p blocks of g inputs (W2), whose outputs are transposed back.
//
// Formula: Y[n,o*p+t] = sum over G<g, c<Cin/g of X[n,G*Cin/g+c] * W1[G,t,c] * W2[t,o,G]
// Source: Dao et al., Monarch: Expressive Structured Matrices for Efficient and Accurate Training, ICML 2022, section
//   3.1 (there g = p, and both are the square root of Cin = Cout).
kas.operator @linear_monarch<N, Cin, Cout | g, p>
    (%n: N, %ot: Cout) from [N, Cin] {
  %G = kas.reduce sum : g
  %c = kas.reduce sum : Cin/g
  %o, %t = kas.merge %ot by p : Cout
  %t_w1, %t_w2 = kas.share %t : p
  %G_1, %G_w2 = kas.share %G : g
  %G_d, %G_w1 = kas.share %G_1 : g
  %c_d, %c_w1 = kas.share %c : Cin/g
  %x = kas.split %G_d, %c_d : g, Cin/g
  kas.yield data(%n, %x) weight(%G_w1, %t_w1, %c_w1) weight(%t_w2, %o, %G_w2)
}
