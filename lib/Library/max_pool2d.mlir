// Maximum over a window of k x k pixels, every s pixels; pixels outside the image do not take part.
//
// Formula: Y[n,c,h,w] = max over i<k, j<k of X[n,c,s*h+i-floor(k/2),s*w+j-floor(k/2)]
// Source: textbook; with k = 3, s = 2 the first pooling of He et al., Deep Residual Learning for Image Recognition,
//   CVPR 2016, Table 1.
kas.operator @max_pool2d<N, C, H, W | k, s>
    (%n: N, %c: C, %h: H/s, %w: W/s) from [N, C, H, W] {
  %i = kas.reduce max : k
  %j = kas.reduce max : k
  %h_s = kas.stride %h by s : H/s
  %w_s = kas.stride %w by s : W/s
  %y = kas.unfold %h_s, %i : H, k
  %x = kas.unfold %w_s, %j : W, k
  kas.yield data(%n, %c, %y, %x)
}
