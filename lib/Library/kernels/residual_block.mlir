// A convolution with a rectifier, added to its input.
//
// Formula: Y[o,h,w] = X[o,h,w] + max(sum over c<C, i<k, j<k of W[o,c,i,j] * X[c,h+i-floor(k/2),w+j-floor(k/2)], 0)
// Source: He et al., Deep Residual Learning, CVPR 2016.
kas.kernel canvas @residual_block<C, H, W | k>
    (%in: [C | H, W]) -> [C | H, W] {
  %u = kas.dag.unfold %in dims [1, 2] by [k, k] : [C | H, W]
  %c = kas.dag.fc %u to C : [C, k, k | H, W]
  %r = kas.dag.unary relu %c : [C | H, W]
  %y = kas.dag.broadcast add %in, %r common [3, 0] : [C | H, W], [C | H, W]
  kas.dag.output %y : [C | H, W]
}
