// A convolution along the height; along the width every pixel sees the whole block of p pixels that it lies in.
//
// Formula: Y[n,o,h,w] = sum over c<Cin, i<k, b<p of X[n,c,h+i-floor(k/2),p*floor(w/p)+b] * W[o,c,i,b,w mod p]
// Source: Syno's manual kernel Conv1d_patch1d, in its public code.
kas.operator @conv1d_patch1d<N, Cin, Cout, H, W | k, p>
    (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %i = kas.reduce sum : k
  %b = kas.reduce sum : p
  %w_b, %w_r = kas.merge %w by p : W
  %c_d, %c_w = kas.share %c : Cin
  %i_d, %i_w = kas.share %i : k
  %b_d, %b_w = kas.share %b : p
  %y = kas.unfold %h, %i_d : H, k
  %x = kas.split %w_b, %b_d : W/p, p
  kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %b_w, %w_r)
}
