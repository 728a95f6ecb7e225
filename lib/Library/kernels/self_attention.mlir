// Attention between all points of an image, with one head.
//
// Formula: Y[c,q] = sum over p<H*W of V[c,p] * P[p,q], P[p,q] = softmax over p of sum over d<C of K[d,p] * Q[d,q] /
//   sqrt(C), Q, K, V = W1, W2, W3 times X
// Source: Vaswani et al., Attention Is All You Need, NIPS 2017, section 3.2.1.
kas.kernel canvas @self_attention<C, H, W>
    (%in: [C | H, W]) -> [C | H, W] {
  %q = kas.dag.fc %in to C : [C | H, W]
  %k = kas.dag.fc %in to C : [C | H, W]
  %v = kas.dag.fc %in to C : [C | H, W]
  %s = kas.dag.matmul %k, %q transpose_left scaled : [C | H, W], [C | H, W]
  %p = kas.dag.softmax %s dims [0, 1] : [H, W | H, W]
  %y = kas.dag.matmul %v, %p : [C | H, W], [H, W | H, W]
  kas.dag.output %y : [C | H, W]
}
