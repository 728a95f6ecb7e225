// Fully connected layer without bias; the weight has one row per output feature.
//
// Formula: Y[n,o] = sum over c<Cin of X[n,c] * W[o,c]
// Source: textbook; the weight layout of PyTorch's Linear.
kas.operator @linear<N, Cin, Cout>
    (%n: N, %o: Cout) from [N, Cin] {
  %c = kas.reduce sum : Cin
  %c_d, %c_w = kas.share %c : Cin
  kas.yield data(%n, %c_d) weight(%o, %c_w)
}
