// Fully connected layer in b x b blocks of rank r: a factor for each block of inputs (W1), one for each block of
// outputs (W3), and between them a diagonal matrix for each pair of blocks (W2).
//
// Formula: Y[n,i*Cout/b+o] = sum over j<b, t<r, c<Cin/b of X[n,j*Cin/b+c] * W1[j,t,c] * W2[i,j,t] * W3[i,o,t]
// Source: Lee et al., BLAST: Block-Level Adaptive Structured Matrices for Efficient Deep Neural Network Inference,
//   NeurIPS 2024, section 2.
kas.operator @linear_blast<N, Cin, Cout | b, r>
    (%n: N, %io: Cout) from [N, Cin] {
  %j = kas.reduce sum : b
  %t = kas.reduce sum : r
  %c = kas.reduce sum : Cin/b
  %i, %o = kas.merge %io by Cout/b : Cout
  %i_w2, %i_w3 = kas.share %i : b
  %t_12, %t_w3 = kas.share %t : r
  %t_w1, %t_w2 = kas.share %t_12 : r
  %j_1, %j_w2 = kas.share %j : b
  %j_d, %j_w1 = kas.share %j_1 : b
  %c_d, %c_w1 = kas.share %c : Cin/b
  %x = kas.split %j_d, %c_d : b, Cin/b
  kas.yield data(%n, %x) weight(%j_w1, %t_w1, %c_w1) weight(%i_w2, %j_w2, %t_w2) weight(%i_w3, %o, %t_w3)
}
