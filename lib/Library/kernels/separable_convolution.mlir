// Depthwise convolution, rectifier, normalization, and a 1x1 convolution.
//
// Formula: Y[o,h,w] = sum over c<C of W6[o,c] * N[c,h,w], N = (max(D, 0) - W4[c]) / sqrt(abs(W5[c]) + 1e-5) * W2[c] +
//   W3[c], D[c,h,w] = sum over i<k, j<k of W1[c,0,i,j] * X[c,h+i-floor(k/2),w+j-floor(k/2)]
// Source: Chollet, Xception, CVPR 2017; the order of layers of Canvas, section 4.2.
kas.kernel canvas @separable_convolution<C, H, W | k>
    (%in: [C | H, W]) -> [C | H, W] {
  %g = kas.dag.group_all %in : [C | H, W]
  %u = kas.dag.unfold %g dims [2, 3] by [k, k] : [C, 1 | H, W]
  %d = kas.dag.fc %u groups 1 to C : [C, 1, k, k | H, W]
  %r = kas.dag.unary relu %d : [C | H, W]
  %n = kas.dag.norm %r : [C | H, W]
  %y = kas.dag.fc %n to C : [C | H, W]
  kas.dag.output %y : [C | H, W]
}
