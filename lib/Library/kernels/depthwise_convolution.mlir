// Depthwise convolution: every channel is a group; the left kernel of figure 8.
//
// Formula: Y[c,h,w] = sum over i<k, j<k of W[c,0,i,j] * X[c,h+i-floor(k/2),w+j-floor(k/2)]
// Source: Zhao et al., Canvas, figure 8.
kas.kernel canvas @depthwise_convolution<C, H, W | k>
    (%in: [C | H, W]) -> [C | H, W] {
  %g = kas.dag.group_all %in : [C | H, W]
  %u = kas.dag.unfold %g dims [2, 3] by [k, k] : [C, 1 | H, W]
  %y = kas.dag.fc %u groups 1 to C : [C, 1, k, k | H, W]
  kas.dag.output %y : [C | H, W]
}
