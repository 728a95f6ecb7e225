// Convolution along one axis whose kernel points lie d apart, with padding p on the low side; p = d*(k-1) sees no later
// position.
//
// Formula: Y[n,o,l] = sum over c<Cin, i<k of X[n,c,l+d*i-p] * W[o,c,i]
// Source: van den Oord et al., WaveNet, arXiv:1609.03499, section 2.1.
kas.operator @conv1d_dilated<N, Cin, Cout, L | k, d, p>
    (%n: N, %o: Cout, %l: L) from [N, Cin, L] {
  %c = kas.reduce sum : Cin
  %i = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : Cin
  %i_d, %i_w = kas.share %i : k
  %i_s = kas.stride %i_d by d : k
  %x = kas.unfold %l, %i_s low p : L, d*k
  kas.yield data(%n, %c_d, %x) weight(%o, %c_w, %i_w)
}
