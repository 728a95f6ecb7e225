// Deals the channels of g groups out round-robin.
//
// Formula: Y[n,g*c+G,h,w] = X[n,G*C/g+c,h,w]
// Source: Zhang et al., ShuffleNet, CVPR 2018, section 3.1.
kas.operator @channel_shuffle<N, C, H, W | g>
    (%n: N, %cg: C, %h: H, %w: W) from [N, C, H, W] {
  %c, %G = kas.merge %cg by g : C
  %gc = kas.split %G, %c : g, C/g
  kas.yield data(%n, %gc, %h, %w)
}
