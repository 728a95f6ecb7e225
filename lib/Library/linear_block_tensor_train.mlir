// Fully connected layer of two factors as those of a Monarch matrix, joined by r features instead of one.
//
// Formula: Y[n,o*p+t] = sum over s<r, G<g, c<Cin/g of X[n,G*Cin/g+c] * W1[G,t,s,c] * W2[t,o,G,s]
// Source: Qiu et al., Compute Better Spent: Replacing Dense Layers with Structured Matrices, ICML 2024 (block tensor
//   train with two cores).
kas.operator @linear_block_tensor_train<N, Cin, Cout | g, p, r>
    (%n: N, %ot: Cout) from [N, Cin] {
  %s = kas.reduce sum : r
  %G = kas.reduce sum : g
  %c = kas.reduce sum : Cin/g
  %o, %t = kas.merge %ot by p : Cout
  %t_w1, %t_w2 = kas.share %t : p
  %s_w1, %s_w2 = kas.share %s : r
  %G_1, %G_w2 = kas.share %G : g
  %G_d, %G_w1 = kas.share %G_1 : g
  %c_d, %c_w1 = kas.share %c : Cin/g
  %x = kas.split %G_d, %c_d : g, Cin/g
  kas.yield data(%n, %x) weight(%G_w1, %t_w1, %s_w1, %c_w1) weight(%t_w2, %o, %G_w2, %s_w2)
}
