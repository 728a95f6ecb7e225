// A convolution along the height, then one along the width.
//
// Formula: Y[o,h,w] = sum over c<C, j<k of W2[o,c,j] * Z[c,h,w+j-floor(k/2)], Z[c,h,w] = sum over d<C, i<k of
//   W1[c,d,i] * X[d,h+i-floor(k/2),w]
// Source: Szegedy et al., Rethinking the Inception Architecture, CVPR 2016, section 3.2.
kas.kernel canvas @spatially_separable_convolution<C, H, W | k>
    (%in: [C | H, W]) -> [C | H, W] {
  %a = kas.dag.unfold %in dims [1] by [k] : [C | H, W]
  %b = kas.dag.fc %a to C : [C, k | H, W]
  %c = kas.dag.unfold %b dims [2] by [k] : [C | H, W]
  %y = kas.dag.fc %c to C : [C, k | H, W]
  kas.dag.output %y : [C | H, W]
}
