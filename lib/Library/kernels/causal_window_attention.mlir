// Attention of each position of a sequence to the k positions that end at it.
//
// Formula: Y[c,t] = sum over i<k of P[i,t] * V[c,t+i+1-k], P[i,t] = softmax over i of mean over d<C of Q[d,t] *
//   K[d,t+i+1-k], Q, K, V = W1, W2, W3 times X
// Source: Beltagy et al., Longformer, 2020, section 3.1; a mean for the scaled sum, zeros before the first position.
kas.kernel @causal_window_attention<C, L | k>
    (%in: [C | L]) -> [C | L] {
  %q = kas.dag.fc %in to C : [C | L]
  %a = kas.dag.fc %in to C : [C | L]
  %b = kas.dag.fc %in to C : [C | L]
  %k = kas.dag.unfold %a dims [1] by [k] causal : [C | L]
  %v = kas.dag.unfold %b dims [1] by [k] causal : [C | L]
  %m = kas.dag.broadcast mul %q, %k common [1, 1] : [C | L], [C, k | L]
  %s = kas.dag.fold mean %m dims [0] : [C, k | L]
  %p = kas.dag.softmax %s dims [0] : [k | L]
  %w = kas.dag.broadcast mul %p, %v common [0, 2] : [k | L], [C, k | L]
  %y = kas.dag.fold sum %w dims [1] : [C, k | L]
  kas.dag.output %y : [C | L]
}
