// Moves blocks of r x r pixels into blocks of r*r channels: the inverse of pixel_shuffle.
//
// Formula: Y[n,c*r*r+i*r+j,h,w] = X[n,c,r*h+i,r*w+j]
// Source: Shi et al., Real-Time Single Image and Video Super-Resolution Using an Efficient Sub-Pixel Convolutional
//   Neural Network, CVPR 2016, section 3.2, inverted; the channel order of PyTorch's PixelUnshuffle.
kas.operator @pixel_unshuffle<N, C, H, W | r>
    (%n: N, %cij: C*r**2, %h: H, %w: W) from [N, C, H*r, W*r] {
  %c, %ij = kas.merge %cij by r**2 : C*r**2
  %i, %j = kas.merge %ij by r : r**2
  %y = kas.split %h, %i : H, r
  %x = kas.split %w, %j : W, r
  kas.yield data(%n, %c, %y, %x)
}
