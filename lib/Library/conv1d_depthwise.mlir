// Convolution of each channel of a sequence with its own kernel.
//
// Formula: Y[n,c,l] = sum over i<k of X[n,c,l+i-floor(k/2)] * W[c,i]
// Source: textbook; the layouts of linalg.depthwise_conv_1d_ncw_cw.
kas.operator @conv1d_depthwise<N, C, L | k>
    (%n: N, %c: C, %l: L) from [N, C, L] {
  %i = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : C
  %i_d, %i_w = kas.share %i : k
  %x = kas.unfold %l, %i_d : L, k
  kas.yield data(%n, %c_d, %x) weight(%c_w, %i_w)
}
