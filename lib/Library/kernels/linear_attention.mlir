// Attention in linear time: keys are normalized over the points, queries over the channels.
//
// Formula: Y[c,q] = sum over d<C of E[c,d] * B[d,q], E[c,d] = sum over p<H*W of V[c,p] * A[d,p], A = softmax over p
//   of K[d,p], B = softmax over d of Q[d,q], Q, K, V = W1, W2, W3 times X
// Source: Shen et al., Efficient Attention: Attention with Linear Complexities, WACV 2021, section 3.2.
kas.kernel canvas @linear_attention<C, H, W>
    (%in: [C | H, W]) -> [C | H, W] {
  %a = kas.dag.fc %in to C : [C | H, W]
  %q = kas.dag.softmax %a dims [0] : [C | H, W]
  %b = kas.dag.fc %in to C : [C | H, W]
  %k = kas.dag.softmax %b dims [1, 2] : [C | H, W]
  %v = kas.dag.fc %in to C : [C | H, W]
  %e = kas.dag.matmul %v, %k transpose_right : [C | H, W], [C | H, W]
  %y = kas.dag.matmul %e, %q : [C | C], [C | H, W]
  kas.dag.output %y : [C | H, W]
}
