// One mask over the points, made from the channels' means, for all channels.
//
// Formula: Y[c,h,w] = (sum over d<C of W[h*W+w,d] * M[d]) * X[c,h,w], M[d] = mean over h, w of X[d,h,w]
// Source: Zhao et al., Canvas, figure 9, kernel A.
kas.kernel canvas @canvas_figure9a<C, H, W>
    (%in: [C | H, W]) -> [C | H, W] {
  %m = kas.dag.fold mean %in dims [1, 2] : [C | H, W]
  %a = kas.dag.fc %m to H*W : [C]
  %y = kas.dag.broadcast mul %a, %in common [0, 0] : [H*W], [C | H, W]
  kas.dag.output %y : [C | H, W]
}
