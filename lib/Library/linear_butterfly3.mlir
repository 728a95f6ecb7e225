// Butterfly matrix of three factors: features are numbered by three digits, two below r and the last one below C/r**2,
// and each factor joins those that differ in one digit, the last (W1), the second (W2), the first (W3).
//
// Formula: Y[n,(A*r+B)*C/r**2+D] = sum over a<r, b<r, c<C/r**2 of X[n,(a*r+b)*C/r**2+c] * W1[a,b,D,c] * W2[a,B,D,b] *
//   W3[A,B,D,a]
// Source: Dao et al., Learning Fast Algorithms for Linear Transforms Using Butterfly Factorizations, ICML 2019, section
//   3, with radix r.
kas.operator @linear_butterfly3<N, C | r>
    (%n: N, %ABD: C) from [N, C] {
  %a = kas.reduce sum : r
  %b = kas.reduce sum : r
  %c = kas.reduce sum : C/r**2
  %A, %BD = kas.merge %ABD by C/r : C
  %B, %D = kas.merge %BD by C/r**2 : C/r
  %D_12, %D_w3 = kas.share %D : C/r**2
  %D_w1, %D_w2 = kas.share %D_12 : C/r**2
  %B_w2, %B_w3 = kas.share %B : r
  %a_12, %a_w3 = kas.share %a : r
  %a_1, %a_w2 = kas.share %a_12 : r
  %a_d, %a_w1 = kas.share %a_1 : r
  %b_1, %b_w2 = kas.share %b : r
  %b_d, %b_w1 = kas.share %b_1 : r
  %c_d, %c_w1 = kas.share %c : C/r**2
  %bc = kas.split %b_d, %c_d : r, C/r**2
  %x = kas.split %a_d, %bc : r, C/r
  kas.yield data(%n, %x) weight(%a_w1, %b_w1, %D_w1, %c_w1) weight(%a_w2, %B_w2, %D_w2, %b_w2)
      weight(%A, %B_w3, %D_w3, %a_w3)
}
