// Families of structured matrices that the library has no operator for, in the symbols of the space: b blocks, rank R.

// Butterfly matrix of three factors, with as many outputs as one likes (kas.linear_butterfly3 has as many as inputs).
// Source: Dao et al., Learning Fast Algorithms for Linear Transforms Using Butterfly Factorizations, ICML 2019.
kas.operator @butterfly<N, Cin, Cout | b>
    (%n: N, %ABD: Cout) from [N, Cin] {
  %a = kas.reduce sum : b
  %e = kas.reduce sum : b
  %c = kas.reduce sum : Cin/b**2
  %A, %BD = kas.merge %ABD by Cout/b : Cout
  %B, %D = kas.merge %BD by Cout/b**2 : Cout/b
  %D_12, %D_w3 = kas.share %D : Cout/b**2
  %D_w1, %D_w2 = kas.share %D_12 : Cout/b**2
  %B_w2, %B_w3 = kas.share %B : b
  %a_12, %a_w3 = kas.share %a : b
  %a_1, %a_w2 = kas.share %a_12 : b
  %a_d, %a_w1 = kas.share %a_1 : b
  %e_1, %e_w2 = kas.share %e : b
  %e_d, %e_w1 = kas.share %e_1 : b
  %c_d, %c_w1 = kas.share %c : Cin/b**2
  %ec = kas.split %e_d, %c_d : b, Cin/b**2
  %x = kas.split %a_d, %ec : b, Cin/b
  kas.yield data(%n, %x) weight(%a_w1, %e_w1, %D_w1, %c_w1) weight(%a_w2, %B_w2, %D_w2, %e_w2)
      weight(%A, %B_w3, %D_w3, %a_w3)
}

// Kronecker product of three matrices. Source: textbook.
kas.operator @kronecker_of_three<N, Cin, Cout | b>
    (%n: N, %uvw: Cout) from [N, Cin] {
  %a = kas.reduce sum : b
  %e = kas.reduce sum : b
  %c = kas.reduce sum : Cin/b**2
  %u, %vw = kas.merge %uvw by Cout/b : Cout
  %v, %w = kas.merge %vw by Cout/b**2 : Cout/b
  %a_d, %a_w = kas.share %a : b
  %e_d, %e_w = kas.share %e : b
  %c_d, %c_w = kas.share %c : Cin/b**2
  %ec = kas.split %e_d, %c_d : b, Cin/b**2
  %x = kas.split %a_d, %ec : b, Cin/b
  kas.yield data(%n, %x) weight(%u, %a_w) weight(%v, %e_w) weight(%w, %c_w)
}

// Tensor train of two cores, the sum of R Kronecker products.
// Source: Novikov et al., Tensorizing Neural Networks, NIPS 2015, with two cores.
kas.operator @tensor_train<N, Cin, Cout, R | b>
    (%n: N, %o: Cout) from [N, Cin] {
  %s = kas.reduce sum : R
  %a = kas.reduce sum : b
  %c = kas.reduce sum : Cin/b
  %u, %v = kas.merge %o by Cout/b : Cout
  %s_1, %s_2 = kas.share %s : R
  %a_d, %a_w = kas.share %a : b
  %c_d, %c_w = kas.share %c : Cin/b
  %x = kas.split %a_d, %c_d : b, Cin/b
  kas.yield data(%n, %x) weight(%u, %a_w, %s_1) weight(%v, %c_w, %s_2)
}

// Sum of R Kronecker products of three matrices: a canonical polyadic decomposition of the weight.
// Source: Lebedev et al., Speeding-up Convolutional Neural Networks Using Fine-tuned CP-Decomposition, ICLR 2015, for
//   matrices.
kas.operator @polyadic<N, Cin, Cout, R | b>
    (%n: N, %uvw: Cout) from [N, Cin] {
  %s = kas.reduce sum : R
  %a = kas.reduce sum : b
  %e = kas.reduce sum : b
  %c = kas.reduce sum : Cin/b**2
  %u, %vw = kas.merge %uvw by Cout/b : Cout
  %v, %w = kas.merge %vw by Cout/b**2 : Cout/b
  %s_12, %s_3 = kas.share %s : R
  %s_1, %s_2 = kas.share %s_12 : R
  %a_d, %a_w = kas.share %a : b
  %e_d, %e_w = kas.share %e : b
  %c_d, %c_w = kas.share %c : Cin/b**2
  %ec = kas.split %e_d, %c_d : b, Cin/b**2
  %x = kas.split %a_d, %ec : b, Cin/b
  kas.yield data(%n, %x) weight(%u, %a_w, %s_1) weight(%v, %e_w, %s_2) weight(%w, %c_w, %s_3)
}

// Block-diagonal matrix whose blocks are equal: kas.conv2d_group_shared without windows.
// Source: Syno's manual kernel Conv2d_group, in its public code.
kas.operator @equal_blocks<N, Cin, Cout | b>
    (%n: N, %Go: Cout) from [N, Cin] {
  %c = kas.reduce sum : Cin/b
  %G, %o = kas.merge %Go by Cout/b : Cout
  %c_d, %c_w = kas.share %c : Cin/b
  %x = kas.split %G, %c_d : b, Cin/b
  kas.yield data(%n, %x) weight(%o, %c_w)
}

// Block-diagonal matrix whose blocks have rank R. Source: textbook, a low rank in groups.
kas.operator @low_rank_blocks<N, Cin, Cout, R | b>
    (%n: N, %Go: Cout) from [N, Cin] {
  %s = kas.reduce sum : R
  %c = kas.reduce sum : Cin/b
  %G, %o = kas.merge %Go by Cout/b : Cout
  %s_1, %s_2 = kas.share %s : R
  %G_1, %G_w2 = kas.share %G : b
  %G_d, %G_w1 = kas.share %G_1 : b
  %c_d, %c_w = kas.share %c : Cin/b
  %x = kas.split %G_d, %c_d : b, Cin/b
  kas.yield data(%n, %x) weight(%G_w1, %s_1, %c_w) weight(%G_w2, %o, %s_2)
}
