// Convolution as windows and a matrix product.
//
// Formula: Y[o,h,w] = sum over c<C, i<k, j<k of W[o,c,i,j] * X[c,h+i-floor(k/2),w+j-floor(k/2)]
// Source: Zhao et al., Canvas, section 4.2; textbook.
kas.kernel canvas @convolution<C, H, W | k>
    (%in: [C | H, W]) -> [C | H, W] {
  %u = kas.dag.unfold %in dims [1, 2] by [k, k] : [C | H, W]
  %y = kas.dag.fc %u to C : [C, k, k | H, W]
  kas.dag.output %y : [C | H, W]
}
