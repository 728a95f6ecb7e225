// Fully connected layer of rank r: to r features (W1), then to the output (W2).
//
// Formula: Y[n,o] = sum over t<r, c<Cin of X[n,c] * W1[t,c] * W2[o,t]
// Source: Sainath et al., Low-Rank Matrix Factorization for Deep Neural Network Training with High-Dimensional Output
//   Targets, ICASSP 2013, section 2.
kas.operator @linear_low_rank<N, Cin, Cout | r>
    (%n: N, %o: Cout) from [N, Cin] {
  %t = kas.reduce sum : r
  %c = kas.reduce sum : Cin
  %t_w1, %t_w2 = kas.share %t : r
  %c_d, %c_w1 = kas.share %c : Cin
  kas.yield data(%n, %c_d) weight(%t_w1, %c_w1) weight(%o, %t_w2)
}
