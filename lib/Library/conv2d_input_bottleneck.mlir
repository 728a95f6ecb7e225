// Convolution that reads only every b-th input channel.
//
// Formula: Y[n,o,h,w] = sum over c<Cin/b, i<k, j<k of X[n,b*c,h+i-floor(k/2),w+j-floor(k/2)] * W[o,c,i,j]
// Source: Turner, Crowley and O'Boyle, Neural Architecture Search as Program Transformation Exploration, ASPLOS 2021,
//   section 2.3 (bottleneck of the input channels). The paper keeps the first Cin/b channels: the same up to their
//   order.
kas.operator @conv2d_input_bottleneck<N, Cin, Cout, H, W | k, b>
    (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin/b
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : Cin/b
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %c_s = kas.stride %c_d by b : Cin/b
  %y = kas.unfold %h, %i_d : H, k
  %x = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %c_s, %y, %x) weight(%o, %c_w, %i_w, %j_w)
}
