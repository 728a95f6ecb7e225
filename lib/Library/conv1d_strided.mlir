// Convolution along one axis with stride s, zero padding floor(k/2) on the low side.
//
// Formula: Y[n,o,l] = sum over c<Cin, i<k of X[n,c,s*l+i-floor(k/2)] * W[o,c,i]
// Source: textbook; the weight layout of PyTorch's Conv1d.
kas.operator @conv1d_strided<N, Cin, Cout, L | k, s>
    (%n: N, %o: Cout, %l: L/s) from [N, Cin, L] {
  %c = kas.reduce sum : Cin
  %i = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : Cin
  %i_d, %i_w = kas.share %i : k
  %l_s = kas.stride %l by s : L/s
  %x = kas.unfold %l_s, %i_d : L, k
  kas.yield data(%n, %c_d, %x) weight(%o, %c_w, %i_w)
}
