// Convolution in g groups: output channels of a group see only the input channels of that group.
//
// Formula: Y[n,G*Cout/g+o,h,w] = sum over c<Cin/g, i<k, j<k of X[n,G*Cin/g+c,h+i-floor(k/2),w+j-floor(k/2)] *
//   W[G,o,c,i,j]
// Source: Krizhevsky, Sutskever and Hinton, ImageNet Classification with Deep Convolutional Neural Networks, NIPS 2012,
//   section 3.2; the weight layout of linalg.conv_2d_ngchw_gfchw, which is PyTorch's with the output channel split.
kas.operator @conv2d_grouped<N, Cin, Cout, H, W | k, g>
    (%n: N, %go: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin/g
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %G, %o = kas.merge %go by Cout/g : Cout
  %G_d, %G_w = kas.share %G : g
  %c_d, %c_w = kas.share %c : Cin/g
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %gc = kas.split %G_d, %c_d : g, Cin/g
  %y = kas.unfold %h, %i_d : H, k
  %x = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %gc, %y, %x) weight(%G_w, %o, %c_w, %i_w, %j_w)
}
