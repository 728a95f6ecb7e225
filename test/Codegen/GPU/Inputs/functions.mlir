// Functions of linalg for both strategies: exponentials and an error function, square roots, indices, halves of sizes.
#id = affine_map<(d0) -> (d0)>
func.func @functions(%x: tensor<37xf32> {kas.name = "x"}) -> tensor<37xf32> {
  %empty = tensor.empty() : tensor<37xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
    ins(%x : tensor<37xf32>) outs(%empty : tensor<37xf32>) {
  ^bb0(%in: f32, %out: f32):
    %c2 = arith.constant 2 : index
    %i = linalg.index 0 : index
    %half = arith.floordivsi %i, %c2 : index
    %int = arith.index_cast %half : index to i32
    %float = arith.sitofp %int : i32 to f32
    %abs = math.absf %in : f32
    %sqrt = math.sqrt %abs : f32
    %erf = math.erf %sqrt : f32
    %exp = math.exp %erf : f32
    %sum = arith.addf %exp, %float : f32
    linalg.yield %sum : f32
  } -> tensor<37xf32>
  return %y : tensor<37xf32>
}
