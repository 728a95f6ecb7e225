// Convolution of each channel with its own kernel.
//
// Formula: Y[n,c,h,w] = sum over i<k, j<k of X[n,c,h+i-floor(k/2),w+j-floor(k/2)] * W[c,i,j]
// Source: Chollet, Xception, CVPR 2017, section 1; the layouts of linalg.depthwise_conv_2d_nchw_chw.
kas.operator @conv2d_depthwise<N, C, H, W | k>
    (%n: N, %c: C, %h: H, %w: W) from [N, C, H, W] {
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : C
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %y = kas.unfold %h, %i_d : H, k
  %x = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %c_d, %y, %x) weight(%c_w, %i_w, %j_w)
}
