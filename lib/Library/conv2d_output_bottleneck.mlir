// Convolution to Cout/b channels, each repeated b times.
//
// Formula: Y[n,o,h,w] = sum over c<Cin, i<k, j<k of X[n,c,h+i-floor(k/2),w+j-floor(k/2)] * W[floor(o/b),c,i,j]
// Source: Turner, Crowley and O'Boyle, Neural Architecture Search as Program Transformation Exploration, ASPLOS 2021,
//   section 3.1 (bottleneck), repeated to keep the shape.
kas.operator @conv2d_output_bottleneck<N, Cin, Cout, H, W | k, b>
    (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %o_w, %o_r = kas.merge %o by b : Cout
  kas.expand %o_r : b
  %c_d, %c_w = kas.share %c : Cin
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %y = kas.unfold %h, %i_d : H, k
  %x = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %c_d, %y, %x) weight(%o_w, %c_w, %i_w, %j_w)
}
