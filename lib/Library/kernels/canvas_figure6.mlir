// A shifted copy on a 1x1 convolution beside a depthwise convolution: the best kernel for ResNet-34.
//
// Formula: Y[o,h,w] = sum over i<k, j<k of W2[o,0,i,j] * X[o,h+i-floor(k/2),w+j-floor(k/2)] + sum over c<C of W1[o,c]
//   * (X[c,h,w] + X[c,(h+1) mod H,(w+1) mod W])
// Source: Zhao et al., Canvas, figure 6.
kas.kernel canvas @canvas_figure6<C, H, W | k>
    (%in: [C | H, W]) -> [C | H, W] {
  %s = kas.dag.shift %in dim 1 by 1 : [C | H, W]
  %t = kas.dag.shift %s dim 2 by 1 : [C | H, W]
  %a = kas.dag.broadcast add %t, %in common [3, 0] : [C | H, W], [C | H, W]
  %f = kas.dag.fc %a to C : [C | H, W]
  %g = kas.dag.group_all %in : [C | H, W]
  %u = kas.dag.unfold %g dims [2, 3] by [k, k] : [C, 1 | H, W]
  %d = kas.dag.fc %u groups 1 to C : [C, 1, k, k | H, W]
  %y = kas.dag.broadcast add %d, %f common [3, 0] : [C | H, W], [C | H, W]
  kas.dag.output %y : [C | H, W]
}
