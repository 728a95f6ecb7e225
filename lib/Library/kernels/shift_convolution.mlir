// A shift by one point along both axes, and a 1x1 convolution.
//
// Formula: Y[o,h,w] = sum over c<C of W[o,c] * X[c,(h+1) mod H,(w+1) mod W]
// Source: Wu et al., Shift: A Zero FLOP, Zero Parameter Alternative to Spatial Convolutions, CVPR 2018; one shift for
//   all channels.
kas.kernel canvas @shift_convolution<C, H, W>
    (%in: [C | H, W]) -> [C | H, W] {
  %a = kas.dag.shift %in dim 1 by 1 : [C | H, W]
  %b = kas.dag.shift %a dim 2 by 1 : [C | H, W]
  %y = kas.dag.fc %b to C : [C | H, W]
  kas.dag.output %y : [C | H, W]
}
