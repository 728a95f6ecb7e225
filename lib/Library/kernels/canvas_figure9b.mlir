// A shift between the points and two layers over the channels.
//
// Formula: Y[o,h,w] = sum over i<x of W2[o,i] * max(sum over c<C of W1[i,c] * X[c,(h+1) mod H,(w+1) mod W], 0)
// Source: Zhao et al., Canvas, figure 9, kernel B.
kas.kernel canvas @canvas_figure9b<C, H, W | | x>
    (%in: [C | H, W]) -> [C | H, W] {
  %s = kas.dag.shift %in dim 1 by 1 : [C | H, W]
  %t = kas.dag.shift %s dim 2 by 1 : [C | H, W]
  %a = kas.dag.fc %t to x : [C | H, W]
  %r = kas.dag.unary relu %a : [x | H, W]
  %y = kas.dag.fc %r to C : [x | H, W]
  kas.dag.output %y : [C | H, W]
}
