#point = affine_map<(i, j) -> (i, j)>

// One over each element.
func.func private @invert(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = tensor.empty() : tensor<4x8xf32>
  %1 = linalg.generic {indexing_maps = [#point, #point], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%0 : tensor<4x8xf32>) {
    ^bb0(%a: f32, %b: f32):
      %zero = arith.constant 0.0 : f32
      %one = arith.constant 1.0 : f32
      %holds = arith.cmpf one, %a, %zero : f32
      cf.assert %holds, "requires elements other than 0"
      %q = arith.divf %one, %a : f32
      linalg.yield %q : f32
  } -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

func.func @inverse(%x: tensor<4x8xf32> {kas.name = "x"}) -> tensor<4x8xf32> {
  %0 = call @invert(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @inverse_of_zeros(%x: tensor<4x8xf32> {kas.init = "zeros"}) -> tensor<4x8xf32> {
  %0 = call @invert(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// Iterations of a parallel loop that fail with different messages: the first of them, in order, is row 20.
func.func @rows(%x: tensor<64x1024xf32>) -> tensor<64x1024xf32> {
  %0 = tensor.empty() : tensor<64x1024xf32>
  %1 = linalg.generic {indexing_maps = [#point, #point], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<64x1024xf32>) outs(%0 : tensor<64x1024xf32>) {
    ^bb0(%a: f32, %b: f32):
      %i = linalg.index 0 : index
      %c20 = arith.constant 20 : index
      %c40 = arith.constant 40 : index
      %less40 = arith.cmpi ult, %i, %c40 : index
      cf.assert %less40, "requires rows less than 40"
      %less20 = arith.cmpi ult, %i, %c20 : index
      cf.assert %less20, "requires rows less than 20"
      linalg.yield %a : f32
  } -> tensor<64x1024xf32>
  return %1 : tensor<64x1024xf32>
}

// Arguments that are drawn: the first, variances by three ways, and another.
func.func @normalize(%x: tensor<2x3xf32>, %variance: tensor<3xf32>, %other: tensor<3xf32>, %bound: tensor<1x3xf32>,
                     %mean: tensor<3xf32>) -> tensor<2x3xf32> {
  %epsilon = arith.constant 1.0e-5 : f64
  %zero = arith.constant 0.0 : f32
  %init = tensor.empty() : tensor<2x3xf32>
  %e = tensor.empty() : tensor<3xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%variance : tensor<3xf32>) outs(%e : tensor<3xf32>) {
    ^bb0(%v: f32, %o: f32):
      %small = arith.truncf %epsilon : f64 to f32
      %sum = arith.addf %v, %small : f32
      linalg.yield %sum : f32
  } -> tensor<3xf32>
  %wide = linalg.broadcast ins(%d : tensor<3xf32>) outs(%init : tensor<2x3xf32>) dimensions = [0]
  %root = math.rsqrt %wide : tensor<2x3xf32>
  %row = tensor.expand_shape %other [[0, 1]] output_shape [1, 3] : tensor<3xf32> into tensor<1x3xf32>
  %0 = linalg.generic {
      indexing_maps = [#point, #point, affine_map<(i, j) -> (0, j)>, affine_map<(i, j) -> (0, j)>, affine_map<(i, j) -> (j)>,
                       #point],
      iterator_types = ["parallel", "parallel"]}
      ins(%x, %root, %row, %bound, %mean
          : tensor<2x3xf32>, tensor<2x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>, tensor<3xf32>)
      outs(%init : tensor<2x3xf32>) {
    ^bb0(%a: f32, %r: f32, %s: f32, %t: f32, %m: f32, %o: f32):
      %holds = arith.cmpf ogt, %t, %zero : f32
      cf.assert %holds, "requires a positive bound"
      %u = math.sqrt %s : f32
      %v = arith.addf %a, %m : f32
      %w = arith.mulf %v, %r : f32
      %y = arith.divf %w, %u : f32
      linalg.yield %y : f32
  } -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
