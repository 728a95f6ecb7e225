// Convolution along one axis, stride 1, zero padding to the same length.
//
// Formula: Y[n,o,l] = sum over c<Cin, i<k of X[n,c,l+i-floor(k/2)] * W[o,c,i]
// Source: textbook; the weight layout of PyTorch's Conv1d.
kas.operator @conv1d<N, Cin, Cout, L | k>
    (%n: N, %o: Cout, %l: L) from [N, Cin, L] {
  %c = kas.reduce sum : Cin
  %i = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : Cin
  %i_d, %i_w = kas.share %i : k
  %x = kas.unfold %l, %i_d : L, k
  kas.yield data(%n, %c_d, %x) weight(%o, %c_w, %i_w)
}
