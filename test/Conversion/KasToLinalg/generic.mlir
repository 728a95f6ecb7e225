// RUN: kas-opt %s -kas-to-linalg | FileCheck %s

// CHECK-DAG: #[[$SHUFFLE:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d4, d1, d3)>
// CHECK-DAG: #[[$WINDOW:.+]] = affine_map<(d0, d1, d2) -> (d0 * 2 + d2, d1)>
// CHECK-DAG: #[[$SHAPE:.+]] = affine_map<(d0, d1, d2) -> (d2)>

// Merged outputs are loops of their own, joined at the end; split inputs are
// reshaped: no copy but the one that moves the elements.

kas.operator @pixel_shuffle(%c: 3, %y: 8, %x: 10) from [12, 4, 5] {
  %h, %i = kas.merge %y by 2 : 8
  %w, %j = kas.merge %x by 2 : 10
  %ij = kas.split %i, %j : 2, 2
  %cij = kas.split %c, %ij : 3, 4
  kas.yield data(%cij, %h, %w)
}

// CHECK-LABEL: func @views(
// CHECK-SAME:      %[[X:.+]]: tensor<12x4x5xf32>
// CHECK:         %[[E0:.+]] = tensor.expand_shape %[[X]] {{.*}} output_shape [3, 4, 4, 5]
// CHECK:         %[[E1:.+]] = tensor.expand_shape %[[E0]] {{.*}} output_shape [3, 2, 2, 4, 5]
// CHECK:         %[[Y:.+]] = linalg.generic {indexing_maps = [#[[$SHUFFLE]], {{.*}}iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%[[E1]] :
// CHECK:         tensor.collapse_shape %[[Y]] {{\[}}[0], [1, 2], [3, 4]] : tensor<3x4x2x5x2xf32> into tensor<3x8x10xf32>
func.func @views(%x: tensor<12x4x5xf32>) -> tensor<3x8x10xf32> {
  %y = kas.apply @pixel_shuffle(%x) : (tensor<12x4x5xf32>) -> tensor<3x8x10xf32>
  return %y : tensor<3x8x10xf32>
}

// A rotation is two slices; a mean is a sum that is scaled.

kas.operator @rotate_mean(%a: 5) from [5, 4] {
  %t = kas.shift %a by -2 : 5
  %s = kas.reduce mean : 4
  kas.yield data(%t, %s)
}

// CHECK-LABEL: func @rotation(
// CHECK-SAME:      %[[X:.+]]: tensor<5x4xf32>
// CHECK:         %[[S0:.+]] = tensor.extract_slice %[[X]][3, 0] [2, 4] [1, 1]
// CHECK:         %[[I0:.+]] = tensor.insert_slice %[[S0]] into %{{.+}}[0, 0] [2, 4] [1, 1]
// CHECK:         %[[S1:.+]] = tensor.extract_slice %[[X]][0, 0] [3, 4] [1, 1]
// CHECK:         %[[I1:.+]] = tensor.insert_slice %[[S1]] into %[[I0]][2, 0] [3, 4] [1, 1]
// CHECK:         %[[SUM:.+]] = linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]} ins(%[[I1]] :
// CHECK:         linalg.generic {{.*}} ins(%[[SUM]] :
// CHECK:           arith.constant 2.500000e-01
// CHECK:           arith.mulf
func.func @rotation(%x: tensor<5x4xf32>) -> tensor<5xf32> {
  %y = kas.apply @rotate_mean(%x) : (tensor<5x4xf32>) -> tensor<5xf32>
  return %y : tensor<5xf32>
}

// No operand has the window's extent for itself: an empty one gives it.

kas.operator @window_sum(%h: 3, %c: 4) from [6, 4] {
  %k = kas.reduce sum : 3
  %s = kas.stride %h by 2 : 3
  %x = kas.unfold %s, %k : 6, 3
  kas.yield data(%x, %c)
}

// CHECK-LABEL: func @window(
// CHECK:         %[[PADDED:.+]] = tensor.pad %{{.+}} low[1, 0] high[0, 0]
// CHECK:         %[[EMPTY:.+]] = tensor.empty() : tensor<3xf32>
// CHECK:         linalg.generic {indexing_maps = [#[[$WINDOW]], #[[$SHAPE]], {{.*}}} ins(%[[PADDED]], %[[EMPTY]] :
func.func @window(%x: tensor<6x4xf32>) -> tensor<3x4xf32> {
  %y = kas.apply @window_sum(%x) : (tensor<6x4xf32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// Nothing reads the window, yet its clipping removes points: a factor of ones
// and zeros counts them.

kas.operator @dropped(%h: 4, %c: 5) from [5] {
  %k = kas.reduce sum : 3
  %k_d, %k_w = kas.share %k : 3
  %x = kas.unfold %h, %k_d : 4, 3
  kas.expand %x : 4
  kas.yield data(%c) weight(%k_w)
}

// CHECK-LABEL: func @mask(
// CHECK:         %[[ONES:.+]] = arith.constant dense<1.000000e+00> : tensor<4xf32>
// CHECK:         %[[MASK:.+]] = tensor.pad %[[ONES]] low[1] high[1]
// CHECK:         linalg.generic {{.*}} ins(%{{.+}}, %{{.+}}, %[[MASK]] :
// CHECK:           arith.mulf
// CHECK:           arith.mulf
func.func @mask(%x: tensor<5xf32>, %w: tensor<3xf32>) -> tensor<4x5xf32> {
  %y = kas.apply @dropped(%x, %w) : (tensor<5xf32>, tensor<3xf32>) -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}

// A window on a window: the inner one is copied out before the outer one pads.

kas.operator @window_of_window(%h: 6) from [6] {
  %j = kas.reduce sum : 3
  %k = kas.reduce sum : 3
  %x = kas.unfold %h, %j : 6, 3
  %y = kas.unfold %x, %k : 6, 3
  kas.yield data(%y)
}

// CHECK-LABEL: func @nested(
// CHECK:         %[[PADDED:.+]] = tensor.pad %{{.+}} low[1] high[1]
// CHECK:         %[[COPY:.+]] = linalg.generic {{.*}} ins(%[[PADDED]] : tensor<8xf32>) outs(%{{.+}} : tensor<6x3xf32>)
// CHECK:         %[[AGAIN:.+]] = tensor.pad %[[COPY]] low[1, 0] high[1, 0]
// CHECK:         linalg.generic {{.*}} ins(%[[AGAIN]]
func.func @nested(%x: tensor<6xf32>) -> tensor<6xf32> {
  %y = kas.apply @window_of_window(%x) : (tensor<6xf32>) -> tensor<6xf32>
  return %y : tensor<6xf32>
}

// Both halves of a merged coordinate that is no loop, in two tensors: each is
// repeated along the half that it lacks.

kas.operator @halves(%a: 2, %b: 6) from [4] {
  %ab = kas.split %a, %b : 2, 6
  %q, %r = kas.merge %ab by 3 : 12
  kas.yield data(%q) weight(%r)
}

// CHECK-LABEL: func @two_tensors(
// CHECK:         %[[W:.+]] = linalg.broadcast ins(%{{.+}} : tensor<4xf32>) outs(%{{.+}} : tensor<4x3xf32>) dimensions = [1]
// CHECK:         tensor.collapse_shape %[[W]] {{\[}}[0, 1]] : tensor<4x3xf32> into tensor<12xf32>
// CHECK:         %[[V:.+]] = linalg.broadcast ins(%{{.+}} : tensor<3xf32>) outs(%{{.+}} : tensor<4x3xf32>) dimensions = [0]
// CHECK:         tensor.collapse_shape %[[V]] {{\[}}[0, 1]] : tensor<4x3xf32> into tensor<12xf32>
func.func @two_tensors(%x: tensor<4xf32>, %w: tensor<3xf32>) -> tensor<2x6xf32> {
  %y = kas.apply @halves(%x, %w) : (tensor<4xf32>, tensor<3xf32>) -> tensor<2x6xf32>
  return %y : tensor<2x6xf32>
}
