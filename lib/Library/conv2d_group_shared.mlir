// Convolution in g groups that all use the same weight.
//
// Formula: Y[n,G*Cout/g+o,h,w] = sum over c<Cin/g, i<k, j<k of X[n,G*Cin/g+c,h+i-floor(k/2),w+j-floor(k/2)] *
//   W[o,c,i,j]
// Source: Syno's manual kernel Conv2d_group, in its public code.
kas.operator @conv2d_group_shared<N, Cin, Cout, H, W | k, g>
    (%n: N, %go: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin/g
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %G, %o = kas.merge %go by Cout/g : Cout
  %c_d, %c_w = kas.share %c : Cin/g
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %gc = kas.split %G, %c_d : g, Cin/g
  %y = kas.unfold %h, %i_d : H, k
  %x = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %gc, %y, %x) weight(%o, %c_w, %i_w, %j_w)
}
