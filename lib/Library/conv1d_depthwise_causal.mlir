// Convolution of each channel of a sequence with its own kernel, which sees no later position.
//
// Formula: Y[n,c,l] = sum over i<k of X[n,c,l+i+1-k] * W[c,i]
// Source: Fu et al., Hungry Hungry Hippos, ICLR 2023, section 3.1: the shift layer before a state space.
kas.operator @conv1d_depthwise_causal<N, C, L | k>
    (%n: N, %c: C, %l: L) from [N, C, L] {
  %i = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : C
  %i_d, %i_w = kas.share %i : k
  %x = kas.unfold %l, %i_d causal : L, k
  kas.yield data(%n, %c_d, %x) weight(%c_w, %i_w)
}
