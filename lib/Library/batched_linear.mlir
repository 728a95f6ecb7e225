// Fully connected layer on every position of a sequence, without bias.
//
// Formula: Y[n,l,o] = sum over c<Cin of X[n,l,c] * W[o,c]
// Source: textbook; the weight layout of PyTorch's Linear.
kas.operator @batched_linear<N, L, Cin, Cout>
    (%n: N, %l: L, %o: Cout) from [N, L, Cin] {
  %c = kas.reduce sum : Cin
  %c_d, %c_w = kas.share %c : Cin
  kas.yield data(%n, %l, %c_d) weight(%o, %c_w)
}
