// Convolution of each channel with its own kernel, whose points lie d apart, with padding p on the low side.
//
// Formula: Y[n,c,h,w] = sum over i<k, j<k of X[n,c,h+d*i-p,w+d*j-p] * W[c,i,j]
// Source: Chen et al., Encoder-Decoder with Atrous Separable Convolution for Semantic Image Segmentation, ECCV 2018,
//   section 3.1.
kas.operator @conv2d_depthwise_dilated<N, C, H, W | k, d, p>
    (%n: N, %c: C, %h: H, %w: W) from [N, C, H, W] {
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : C
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %i_s = kas.stride %i_d by d : k
  %j_s = kas.stride %j_d by d : k
  %y = kas.unfold %h, %i_s low p : H, d*k
  %x = kas.unfold %w, %j_s low p : W, d*k
  kas.yield data(%n, %c_d, %y, %x) weight(%c_w, %i_w, %j_w)
}
