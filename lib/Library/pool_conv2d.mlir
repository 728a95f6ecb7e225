// Sums over blocks of s x s pixels, a convolution of the sums, and each result repeated in its block.
//
// Formula: Y[n,o,h,w] = sum over a<s, b<s, c<Cin, i<k, j<k of
//   X[n,c,s*(floor(h/s)+i-floor(k/2))+a,s*(floor(w/s)+j-floor(k/2))+b] * W[o,c,i,j]
// Source: Syno's manual kernel Conv2d_pool, in its public code.
kas.operator @pool_conv2d<N, Cin, Cout, H, W | k, s>
    (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %a = kas.reduce sum : s
  %b = kas.reduce sum : s
  %c = kas.reduce sum : Cin
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %h_b, %h_r = kas.merge %h by s : H
  %w_b, %w_r = kas.merge %w by s : W
  kas.expand %h_r : s
  kas.expand %w_r : s
  %c_d, %c_w = kas.share %c : Cin
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %y_b = kas.unfold %h_b, %i_d : H/s, k
  %x_b = kas.unfold %w_b, %j_d : W/s, k
  %y = kas.split %y_b, %a : H/s, s
  %x = kas.split %x_b, %b : W/s, s
  kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
}
