// Convolution in s slabs along the height, each zero-padded by itself and with its own weight.
//
// Formula: Y[n,o,S*H/s+h,w] = sum over c<Cin, i<k, j<k of X[n,c,S*H/s+h+i-floor(k/2),w+j-floor(k/2)] * W[S,o,c,i,j]; a
//   term counts where 0 <= h+i-floor(k/2) < H/s
// Source: Turner, Crowley and O'Boyle, Neural Architecture Search as Program Transformation Exploration, ASPLOS 2021,
//   section 7.3, sequence 1 (Seq3 in its public code).
kas.operator @conv2d_slabs<N, Cin, Cout, H, W | k, s>
    (%n: N, %o: Cout, %Sh: H, %w: W) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %S, %h = kas.merge %Sh by H/s : H
  %S_d, %S_w = kas.share %S : s
  %c_d, %c_w = kas.share %c : Cin
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %hi = kas.unfold %h, %i_d : H/s, k
  %y = kas.split %S_d, %hi : s, H/s
  %x = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %c_d, %y, %x) weight(%S_w, %o, %c_w, %i_w, %j_w)
}
