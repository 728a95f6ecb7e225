// Convolution in g groups with stride s.
//
// Formula: Y[n,G*Cout/g+o,h,w] = sum over c<Cin/g, i<k, j<k of X[n,G*Cin/g+c,s*h+i-floor(k/2),s*w+j-floor(k/2)] *
//   W[G,o,c,i,j]
// Source: Xie et al., Aggregated Residual Transformations for Deep Neural Networks, CVPR 2017, section 3.4; the weight
//   layout of linalg.conv_2d_ngchw_gfchw.
kas.operator @conv2d_grouped_strided<N, Cin, Cout, H, W | k, s, g>
    (%n: N, %go: Cout, %h: H/s, %w: W/s) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin/g
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %G, %o = kas.merge %go by Cout/g : Cout
  %G_d, %G_w = kas.share %G : g
  %c_d, %c_w = kas.share %c : Cin/g
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %gc = kas.split %G_d, %c_d : g, Cin/g
  %h_s = kas.stride %h by s : H/s
  %w_s = kas.stride %w by s : W/s
  %y = kas.unfold %h_s, %i_d : H, k
  %x = kas.unfold %w_s, %j_d : W, k
  kas.yield data(%n, %gc, %y, %x) weight(%G_w, %o, %c_w, %i_w, %j_w)
}
