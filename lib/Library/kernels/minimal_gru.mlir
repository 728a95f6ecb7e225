// A recurrence along a sequence whose gates see the input alone, the minimal GRU: a scan.
//
// Formula: Y[c,t] = (1 - Z[c,t]) * Y[c,t-1] + Z[c,t] * sum over d<C of W2[c,d] * X[d,t], Y[c,-1] = 0, Z[c,t] =
//   sigmoid(sum over d<C of W1[c,d] * X[d,t])
// Source: Feng et al., Were RNNs All We Needed?, 2024, section 3.1.
kas.kernel @minimal_gru<C, L>
    (%in: [C | L]) -> [C | L] {
  %g = kas.dag.fc %in to C : [C | L]
  %z = kas.dag.unary sigmoid %g : [C | L]
  %n = kas.dag.unary neg %g : [C | L]
  %a = kas.dag.unary sigmoid %n : [C | L]
  %c = kas.dag.fc %in to C : [C | L]
  %x = kas.dag.broadcast mul %z, %c common [1, 1] : [C | L], [C | L]
  %h = kas.dag.scan %a, %x dim 1 : [C | L], [C | L]
  kas.dag.output %h : [C | L]
}
