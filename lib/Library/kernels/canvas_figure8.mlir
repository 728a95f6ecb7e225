// A depthwise convolution along the height of a sum of neighbours: the right kernel of figure 8.
//
// Formula: Y[c,h,w] = sum over i<k of W[c,0,i] * (X[c,h+i-floor(k/2),w] + X[c,h+i-floor(k/2),(w+1) mod W])
// Source: Zhao et al., Canvas, figure 8.
kas.kernel canvas @canvas_figure8<C, H, W | k>
    (%in: [C | H, W]) -> [C | H, W] {
  %s = kas.dag.shift %in dim 2 by 1 : [C | H, W]
  %a = kas.dag.broadcast add %s, %in common [3, 0] : [C | H, W], [C | H, W]
  %g = kas.dag.group_all %a : [C | H, W]
  %u = kas.dag.unfold %g dims [2] by [k] : [C, 1 | H, W]
  %y = kas.dag.fc %u groups 1 to C : [C, 1, k | H, W]
  kas.dag.output %y : [C | H, W]
}
