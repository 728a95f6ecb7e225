kas.operator @conv1d<N, Cin, Cout, L | k>(%n: N, %o: Cout, %l: L) from [N, Cin, L] attributes {kas.origin = "layers", kas.score = {flops = 384 : i64}} {
  %c = kas.reduce sum : Cin
  %i = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : Cin
  %i_d, %i_w = kas.share %i : k
  %x = kas.unfold %l, %i_d : L, k
  kas.yield data(%n, %c_d, %x) weight(%o, %c_w, %i_w)
}
kas.kernel canvas @base<C, H, W | G, KH | x> where [G divides C]
    (%in: [C | H, W]) -> [C | H, W]
    bindings [<C = 16, G = 4, H = 8, KH = 3, W = 8>]
    budget {flops = 1225216} {
  %a = kas.dag.fc %in to G*KH : [C | H, W]
  %b = kas.dag.fc %in to x : [C | H, W]
  %m = kas.dag.broadcast mul %a, %b common [0, 2] : [G*KH | H, W], [x | H, W]
  %c = kas.dag.fc %m to C : [x | H, W]
  kas.dag.output %c : [C | H, W]
}
func.func @layer(%x: tensor<1x4x8xf32>, %w: tensor<4x4x3xf32> {kas.init = "kaiming(12)", kas.name = "conv.weight"}) -> tensor<1x4x8xf32> {
  %y = kas.apply @conv1d<k = 3>(%x, %w)
    : (tensor<1x4x8xf32>, tensor<4x4x3xf32>) -> tensor<1x4x8xf32>
  return %y : tensor<1x4x8xf32>
}
