// Banded Toeplitz matrix: each output feature is a sum over the k features around its place, with the same k weights.
//
// Formula: Y[n,o] = sum over i<k of X[n,o+i-floor(k/2)] * W[i]
// Source: Sindhwani, Sainath and Kumar, Structured Transforms for Small-Footprint Deep Learning, NIPS 2015 (Toeplitz
//   matrices), with k diagonals.
kas.operator @linear_toeplitz<N, C | k>
    (%n: N, %o: C) from [N, C] {
  %i = kas.reduce sum : k
  %i_d, %i_w = kas.share %i : k
  %x = kas.unfold %o, %i_d : C, k
  kas.yield data(%n, %x) weight(%i_w)
}
