#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i, 0)>

// Two assertions, of which --args=zeros.npz breaks one and the other.
func.func @f(%x: tensor<5x70xf32> {kas.name = "x"}, %y: tensor<5x1xf32> {kas.name = "y"}) -> tensor<5x70xf32> {
  %0 = tensor.empty() : tensor<5x70xf32>
  %true = arith.constant true
  cf.assert %true, "holds"
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<5x70xf32>) outs(%0 : tensor<5x70xf32>) {
    ^bb0(%a: f32, %o: f32):
      %zero = arith.constant 0.0 : f32
      %one = arith.constant 1.0 : f32
      %holds = arith.cmpf one, %a, %zero : f32
      cf.assert %holds, "requires elements other than 0"
      %q = arith.divf %one, %a : f32
      linalg.yield %q : f32
  } -> tensor<5x70xf32>
  %2 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%1, %y : tensor<5x70xf32>, tensor<5x1xf32>) outs(%0 : tensor<5x70xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %zero = arith.constant 0.0 : f32
      %j = linalg.index 1 : index
      %c60 = arith.constant 60 : index
      %early = arith.cmpi ult, %j, %c60 : index
      %more = arith.cmpf ogt, %b, %zero : f32
      %holds = arith.ori %early, %more : i1
      cf.assert %holds, "requires factors of more than 0"
      %q = arith.mulf %a, %b : f32
      linalg.yield %q : f32
  } -> tensor<5x70xf32>
  return %2 : tensor<5x70xf32>
}
