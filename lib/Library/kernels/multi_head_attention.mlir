// Attention between all points of an image, with G heads and a projection.
//
// Formula: Y[o,q] = sum over c<C of W4[o,c] * A[c,q], A[c,q] = sum over p<H*W of V[c,p] * P[g,p,q], P[g,p,q] =
//   softmax over p of sum over d<C/G of K[g*C/G+d,p] * Q[g*C/G+d,q] / sqrt(C/G), g = floor(c/(C/G)), Q, K, V = W1,
//   W2, W3 times X
// Source: Vaswani et al., Attention Is All You Need, NIPS 2017, section 3.2.2.
kas.kernel canvas @multi_head_attention<C, H, W | G> where [G divides C]
    (%in: [C | H, W]) -> [C | H, W] {
  %a = kas.dag.fc %in to C : [C | H, W]
  %q = kas.dag.group %a dim 0 by G : [C | H, W]
  %b = kas.dag.fc %in to C : [C | H, W]
  %k = kas.dag.group %b dim 0 by G : [C | H, W]
  %c = kas.dag.fc %in to C : [C | H, W]
  %v = kas.dag.group %c dim 0 by G : [C | H, W]
  %s = kas.dag.matmul %k, %q batch 1 transpose_left scaled : [G, C/G | H, W], [G, C/G | H, W]
  %p = kas.dag.softmax %s dims [1, 2] : [G, H, W | H, W]
  %h = kas.dag.matmul %v, %p batch 1 : [G, C/G | H, W], [G, H, W | H, W]
  %y = kas.dag.fc %h to C : [G, C/G | H, W]
  kas.dag.output %y : [C | H, W]
}
