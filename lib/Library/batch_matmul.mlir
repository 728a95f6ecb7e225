// One product of two matrices per member of the batch.
//
// Formula: Y[b,m,n] = sum over k<K of X[b,m,k] * W[b,k,n]
// Source: textbook; the operand order of linalg.batch_matmul.
kas.operator @batch_matmul<B, M, N, K>
    (%b: B, %m: M, %n: N) from [B, M, K] {
  %k = kas.reduce sum : K
  %b_d, %b_w = kas.share %b : B
  %k_d, %k_w = kas.share %k : K
  kas.yield data(%b_d, %m, %k_d) weight(%b_w, %k_w, %n)
}
