// Convolution in G groups of channels.
//
// Formula: Y[o,h,w] = sum over c<C/G, i<k, j<k of W[o,c,i,j] * X[floor(o/(C/G))*C/G+c,h+i-floor(k/2),w+j-floor(k/2)]
// Source: Krizhevsky, Sutskever and Hinton, ImageNet Classification with Deep Convolutional Neural Networks, NIPS
//   2012.
kas.kernel canvas @grouped_convolution<C, H, W | G, k> where [G divides C]
    (%in: [C | H, W]) -> [C | H, W] {
  %u = kas.dag.unfold %in dims [1, 2] by [k, k] : [C | H, W]
  %g = kas.dag.group %u dim 0 by G : [C, k, k | H, W]
  %y = kas.dag.fc %g groups 1 to C : [G, C/G, k, k | H, W]
  kas.dag.output %y : [C | H, W]
}
