// Convolution at every b-th pixel along both axes, each result repeated in a block of b x b pixels.
//
// Formula: Y[n,o,h,w] = sum over c<Cin, i<k, j<k of X[n,c,b*floor(h/b)+i-floor(k/2),b*floor(w/b)+j-floor(k/2)] *
//   W[o,c,i,j]
// Source: Turner, Crowley and O'Boyle, Neural Architecture Search as Program Transformation Exploration, ASPLOS 2021,
//   section 5.3 (spatial bottleneck), repeated to keep the shape.
kas.operator @conv2d_spatial_bottleneck<N, Cin, Cout, H, W | k, b>
    (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %h_b, %h_r = kas.merge %h by b : H
  %w_b, %w_r = kas.merge %w by b : W
  kas.expand %h_r : b
  kas.expand %w_r : b
  %c_d, %c_w = kas.share %c : Cin
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %h_s = kas.stride %h_b by b : H/b
  %w_s = kas.stride %w_b by b : W/b
  %y = kas.unfold %h_s, %i_d : H, k
  %x = kas.unfold %w_s, %j_d : W, k
  kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
}
