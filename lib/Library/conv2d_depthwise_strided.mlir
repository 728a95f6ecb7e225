// Convolution of each channel with its own kernel, with stride s.
//
// Formula: Y[n,c,h,w] = sum over i<k, j<k of X[n,c,s*h+i-floor(k/2),s*w+j-floor(k/2)] * W[c,i,j]
// Source: Howard et al., MobileNets, arXiv:1704.04861, section 3.1.
kas.operator @conv2d_depthwise_strided<N, C, H, W | k, s>
    (%n: N, %c: C, %h: H/s, %w: W/s) from [N, C, H, W] {
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : C
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %h_s = kas.stride %h by s : H/s
  %w_s = kas.stride %w by s : W/s
  %y = kas.unfold %h_s, %i_d : H, k
  %x = kas.unfold %w_s, %j_d : W, k
  kas.yield data(%n, %c_d, %y, %x) weight(%c_w, %i_w, %j_w)
}
