// Involution: a window of weights per point and group, made from the point itself.
//
// Formula: Y[c,h,w] = mean over i<k, j<k of K[floor(c/(C/G)),i,j] * X[c,h+i-floor(k/2),w+j-floor(k/2)], K[g,i,j] =
//   sum over a<x of W2[(g*k+i)*k+j,a] * max(sum over d<C of W1[a,d] * X[d,h,w], 0)
// Source: Li et al., Involution, CVPR 2021; a mean for its sum, as in Canvas, section 4.2.
kas.kernel canvas @involution<C, H, W | G, k | x> where [G divides C]
    (%in: [C | H, W]) -> [C | H, W] {
  %a = kas.dag.fc %in to x : [C | H, W]
  %r = kas.dag.unary relu %a : [x | H, W]
  %b = kas.dag.fc %r to G*k**2 : [x | H, W]
  %f = kas.dag.group %b dim 0 by G : [G*k**2 | H, W]
  %u = kas.dag.unfold %in dims [1, 2] by [k, k] : [C | H, W]
  %g = kas.dag.group %u dim 0 by G : [C, k, k | H, W]
  %m = kas.dag.broadcast mul %f, %g common [1, 2] : [G, k**2 | H, W], [G, C/G, k, k | H, W]
  %y = kas.dag.fold mean %m dims [2, 3] : [G, C/G, k, k | H, W]
  kas.dag.output %y : [G, C/G | H, W]
}
