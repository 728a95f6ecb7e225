// Sums and recurrences along the last, the first and a middle dimension, of as many positions as the binding says; steps
// that look back.
kas.kernel @last<C, L> (%a: [C | L], %x: [C | L]) -> [C | L] {
  %s = kas.dag.cumsum %x dim 1 : [C | L]
  %h = kas.dag.scan %a, %s dim 1 : [C | L], [C | L]
  kas.dag.output %h : [C | L]
}
kas.kernel @first<C, L> (%a: [L | C], %x: [L | C]) -> [L | C] {
  %h = kas.dag.scan %a, %x dim 0 : [L | C], [L | C]
  %s = kas.dag.cumsum %h dim 0 : [L | C]
  kas.dag.output %s : [L | C]
}
kas.kernel @middle<C, L> (%a: [C, L | C], %x: [C, L | C]) -> [C, L | C] {
  %h = kas.dag.scan %a, %x dim 1 : [C, L | C], [C, L | C]
  kas.dag.output %h : [C, L | C]
}
kas.kernel @back<C, L | k> (%x: [C | L, C]) -> [C, k | L, C] {
  %s = kas.dag.shift %x dim 1 by -2 causal : [C | L, C]
  %c = kas.dag.conv %s groups 1 dims [1] by [k] dilation 2 causal to C : [C | L, C]
  %u = kas.dag.unfold %c dims [1] by [k] causal : [C | L, C]
  kas.dag.output %u : [C, k | L, C]
}
