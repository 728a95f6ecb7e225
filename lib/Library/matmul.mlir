// Product of two matrices.
//
// Formula: Y[m,n] = sum over k<K of X[m,k] * W[k,n]
// Source: textbook; the operand order of linalg.matmul.
kas.operator @matmul<M, N, K>
    (%m: M, %n: N) from [M, K] {
  %k = kas.reduce sum : K
  %k_d, %k_w = kas.share %k : K
  kas.yield data(%m, %k_d) weight(%k_w, %n)
}
