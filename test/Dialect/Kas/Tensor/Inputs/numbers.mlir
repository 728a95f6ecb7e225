kas.kernel @unfold<W | k> (%in: [| W]) -> [k | W] bindings [<W = 4, k = 3>] {
  %u = kas.dag.unfold %in dims [0] by [k] : [| W]
  kas.dag.output %u : [k | W]
}
kas.kernel @dilated<W | k> (%in: [| W]) -> [k | W] bindings [<W = 4, k = 3>] {
  %u = kas.dag.unfold %in dims [0] by [k] dilation 2 : [| W]
  kas.dag.output %u : [k | W]
}
// The paper's roll by +1 reads the position before: amount -1.
kas.kernel @roll<W> (%in: [| W]) -> [| W] bindings [<W = 4>] {
  %s = kas.dag.shift %in dim 0 by -1 : [| W]
  kas.dag.output %s : [| W]
}
kas.kernel @shuffle<C> (%in: [C]) -> [C] bindings [<C = 6>] {
  %s = kas.dag.shuffle %in dim 0 by 2 : [C]
  kas.dag.output %s : [C]
}
kas.kernel @sin<C> (%in: [C]) -> [C] bindings [<C = 4>] {
  %s = kas.dag.unary sin %in : [C]
  kas.dag.output %s : [C]
}
// The left operand is repeated over the right one.
kas.kernel @add<L, R> (%left: [L], %right: [R]) -> [R] bindings [<L = 2, R = 4>] {
  %m = kas.dag.broadcast add %left, %right common [0, 0] : [L], [R]
  kas.dag.output %m : [R]
}
kas.kernel @sub<L, R> (%left: [L], %right: [R]) -> [R] bindings [<L = 2, R = 4>] {
  %m = kas.dag.broadcast sub %left, %right common [0, 0] : [L], [R]
  kas.dag.output %m : [R]
}
