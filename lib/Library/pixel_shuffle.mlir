// Moves blocks of r*r channels into blocks of r x r pixels.
//
// Formula: Y[n,c,r*h+i,r*w+j] = X[n,c*r*r+i*r+j,h,w]
// Source: Shi et al., Real-Time Single Image and Video Super-Resolution Using an Efficient Sub-Pixel Convolutional
//   Neural Network, CVPR 2016, section 3.2; the channel order of PyTorch's PixelShuffle.
kas.operator @pixel_shuffle<N, C, H, W | r>
    (%n: N, %c: C, %y: H*r, %x: W*r) from [N, C*r**2, H, W] {
  %h, %i = kas.merge %y by r : H*r
  %w, %j = kas.merge %x by r : W*r
  %ij = kas.split %i, %j : r, r
  %cij = kas.split %c, %ij : C, r**2
  kas.yield data(%n, %cij, %h, %w)
}
