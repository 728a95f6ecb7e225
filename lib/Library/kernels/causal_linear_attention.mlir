// Attention in linear time that looks back only: each query meets the sum of all products of values and keys so far.
//
// Formula: Y[c,t] = sum over d<C of E[c,d,t] * B[d,t], E[c,d,t] = sum over s<=t of V[c,s] * A[d,s], A = softmax over d
//   of K[d,t], B = softmax over d of Q[d,t], Q, K, V = W1, W2, W3 times X
// Source: Katharopoulos et al., Transformers are RNNs, ICML 2020, section 3.3; a softmax as feature map, no denominator.
kas.kernel @causal_linear_attention<C, L>
    (%in: [C | L]) -> [C | L] {
  %a = kas.dag.fc %in to C : [C | L]
  %q = kas.dag.softmax %a dims [0] : [C | L]
  %b = kas.dag.fc %in to C : [C | L]
  %k = kas.dag.softmax %b dims [0] : [C | L]
  %v = kas.dag.fc %in to C : [C | L]
  %r = kas.dag.amplify %k by C of C : [C | L]
  %p = kas.dag.broadcast mul %v, %r common [1, 1] : [C | L], [C, C | L]
  %e = kas.dag.cumsum %p dim 2 : [C, C | L]
  %m = kas.dag.broadcast mul %q, %e common [0, 2] : [C | L], [C, C | L]
  %y = kas.dag.fold sum %m dims [1] : [C, C | L]
  kas.dag.output %y : [C | L]
}
