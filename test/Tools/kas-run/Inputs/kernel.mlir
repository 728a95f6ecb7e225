kas.kernel canvas @product<C, H, W | G, k | x> where [G divides C]
    (%in: [C | H, W]) -> [C | H, W]
    bindings [<C = 16, G = 4, H = 8, W = 8, k = 3, x = 12>, <C = 64, G = 4, H = 8, W = 8, k = 5, x = 60>] {
  %a = kas.dag.fc %in to G*k : [C | H, W]
  %b = kas.dag.fc %in to x : [C | H, W]
  %m = kas.dag.broadcast mul %a, %b common [0, 2] : [G*k | H, W], [x | H, W]
  %c = kas.dag.fc %m to C : [x | H, W]
  kas.dag.output %c : [C | H, W]
}
