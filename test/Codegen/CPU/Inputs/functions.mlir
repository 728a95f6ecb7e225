kas.kernel @exp<C> (%in: [C]) -> [C] bindings [<C = 8>] {
  %y = kas.dag.unary exp %in : [C]
  kas.dag.output %y : [C]
}
kas.kernel @tanh<C> (%in: [C]) -> [C] bindings [<C = 8>] {
  %y = kas.dag.unary tanh %in : [C]
  kas.dag.output %y : [C]
}
kas.kernel @gelu<C> (%in: [C]) -> [C] bindings [<C = 8>] {
  %y = kas.dag.unary gelu %in : [C]
  kas.dag.output %y : [C]
}
kas.kernel @sigmoid<C> (%in: [C]) -> [C] bindings [<C = 8>] {
  %y = kas.dag.unary sigmoid %in : [C]
  kas.dag.output %y : [C]
}
