// RUN: kas-opt %s -split-input-file -kas-fuse-elementwise | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// A sum and the rectifier after it become one operation.
// CHECK-LABEL: func.func @residual
// CHECK:         linalg.generic
// CHECK:           arith.addf
// CHECK-NEXT:      arith.maximumf
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @residual(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %s = arith.addf %a, %b : f32
      linalg.yield %s : f32
  } -> tensor<4x8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
    ^bb0(%a: f32, %c: f32):
      %s = arith.maximumf %a, %zero : f32
      linalg.yield %s : f32
  } -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Nothing is fused into a reduction.
// CHECK-LABEL: func.func @reduction
// CHECK-COUNT-2: linalg.generic
func.func @reduction(%x: tensor<4x8xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
    ^bb0(%a: f32, %c: f32):
      %s = math.exp %a : f32
      linalg.yield %s : f32
  } -> tensor<4x8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%0 : tensor<4x8xf32>) outs(%y : tensor<4xf32>) {
    ^bb0(%a: f32, %c: f32):
      %s = arith.addf %a, %c : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#one = affine_map<(i) -> (i)>

// What adds to its result is not fused into what would compute it once for each column: the sum would be taken as often.
// CHECK-LABEL: func.func @adds_to_its_result
// CHECK-COUNT-2: linalg.generic
func.func @adds_to_its_result(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>) {
    ^bb0(%a: f32, %c: f32):
      %s = arith.addf %a, %c : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  %1 = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<4xf32>) outs(%e : tensor<4x8xf32>) {
    ^bb0(%a: f32, %c: f32):
      %s = arith.negf %a : f32
      linalg.yield %s : f32
  } -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// A rectifier's gradient that a sum and an elementwise operation read becomes part of both: the tensor of it is not stored. Both
// read the data, so they compute the rectifier from it, too, though others read its result.
// CHECK-LABEL: func.func @masked
// CHECK-SAME:    %[[X:[a-z0-9]*]]: tensor<4x8xf32>, %[[G:[a-z0-9]*]]: tensor<4x8xf32>
// CHECK:         %[[Y:.*]] = linalg.generic {{.*}} ins(%[[X]] :
// CHECK:         %[[SUM:.*]] = linalg.generic {{.*}}"reduction"]} ins(%{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<4x8xf32>)
// CHECK:           arith.maximumf
// CHECK:           arith.cmpf
// CHECK:           arith.select
// CHECK:           arith.mulf
// CHECK:           arith.addf {{.*}} fastmath<reassoc>
// CHECK:         %[[Z:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<4x8xf32>)
// CHECK:           arith.maximumf
// CHECK:           arith.select
// CHECK:           arith.subf
// CHECK-NOT:     linalg.generic
// CHECK:         return %[[Y]], %[[SUM]], %[[Z]]
func.func @masked(%x: tensor<4x8xf32>, %g: tensor<4x8xf32>, %s: tensor<4xf32>)
    -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
    ^bb0(%a: f32, %c: f32):
      %0 = arith.maximumf %a, %zero : f32
      linalg.yield %0 : f32
  } -> tensor<4x8xf32>
  %m = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y, %g : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %0 = arith.cmpf ugt, %a, %zero : f32
      %1 = arith.select %0, %b, %zero : f32
      linalg.yield %1 : f32
  } -> tensor<4x8xf32>
  %sum = linalg.generic {indexing_maps = [#id, #id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%m, %x : tensor<4x8xf32>, tensor<4x8xf32>) outs(%s : tensor<4xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %0 = arith.mulf %a, %b : f32
      %1 = arith.addf %c, %0 fastmath<reassoc> : f32
      linalg.yield %1 : f32
  } -> tensor<4xf32>
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%m, %x : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %0 = arith.subf %a, %b : f32
      linalg.yield %0 : f32
  } -> tensor<4x8xf32>
  return %y, %sum, %z : tensor<4x8xf32>, tensor<4xf32>, tensor<4x8xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// The sum of two tensors that three operations read is stored: three times two tensors are no less to read.
// CHECK-LABEL: func.func @read_by_three
// CHECK-COUNT-4: linalg.generic
// CHECK-NOT:     linalg.generic
func.func @read_by_three(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>)
    -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %e = tensor.empty() : tensor<4x8xf32>
  %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %0 = arith.addf %a, %b : f32
      linalg.yield %0 : f32
  } -> tensor<4x8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
    ^bb0(%a: f32, %c: f32):
      %0 = arith.negf %a : f32
      linalg.yield %0 : f32
  } -> tensor<4x8xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
    ^bb0(%a: f32, %c: f32):
      %0 = arith.mulf %a, %a : f32
      linalg.yield %0 : f32
  } -> tensor<4x8xf32>
  %3 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
    ^bb0(%a: f32, %c: f32):
      %0 = arith.addf %a, %a : f32
      linalg.yield %0 : f32
  } -> tensor<4x8xf32>
  return %1, %2, %3 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// An addition of whole tensors is fused into what reads it.
// CHECK-LABEL: func.func @addition
// CHECK-NOT:     linalg.add
// CHECK:         linalg.generic
// CHECK:           arith.addf
// CHECK:           arith.negf
// CHECK-NOT:     linalg.generic
func.func @addition(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %s = linalg.add ins(%x, %y : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
    ^bb0(%a: f32, %c: f32):
      %0 = arith.negf %a : f32
      linalg.yield %0 : f32
  } -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// -----

// What weights alone decide for each channel is computed once, before the sum that its reader follows, not at each
// point.

// CHECK-LABEL: @channels(
// CHECK-SAME:    %[[X:.*]]: tensor<4x8xf32>, %[[W:.*]]: tensor<8xf32>
// CHECK:       %[[SCALES:.*]] = linalg.generic {{.*}} ins(%[[W]] : tensor<8xf32>)
// CHECK:         math.rsqrt
// CHECK:       %[[SUMS:.*]] = linalg.matmul
// CHECK:       %[[Y:.*]] = linalg.generic {{.*}} ins(%[[SUMS]], %[[SCALES]] : tensor<4x8xf32>, tensor<8xf32>)
// CHECK-NOT:     math.rsqrt
// CHECK:       return %[[Y]]
func.func @channels(%x: tensor<4x8xf32>, %w: tensor<8xf32>, %v: tensor<8x8xf32>, %init: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %sums = linalg.matmul ins(%x, %v : tensor<4x8xf32>, tensor<8x8xf32>) outs(%init : tensor<4x8xf32>) -> tensor<4x8xf32>
  %e = tensor.empty() : tensor<8xf32>
  %scales = linalg.generic {indexing_maps = [affine_map<(c) -> (c)>, affine_map<(c) -> (c)>], iterator_types = ["parallel"]}
      ins(%w : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = math.rsqrt %a : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %f = tensor.empty() : tensor<4x8xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(n, c) -> (n, c)>, affine_map<(n, c) -> (c)>, affine_map<(n, c) -> (n, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%sums, %scales : tensor<4x8xf32>, tensor<8xf32>) outs(%f : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// The same of the data is computed where it is read.

// CHECK-LABEL: @data(
// CHECK-COUNT-1: linalg.generic
// CHECK-NOT:   linalg.generic
// CHECK:       return
func.func @data(%x: tensor<8xf32>, %w: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %scales = linalg.generic {indexing_maps = [affine_map<(c) -> (c)>, affine_map<(c) -> (c)>], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = math.rsqrt %a : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %f = tensor.empty() : tensor<4x8xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(n, c) -> (n, c)>, affine_map<(n, c) -> (c)>, affine_map<(n, c) -> (n, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%w, %scales : tensor<4x8xf32>, tensor<8xf32>) outs(%f : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// The variance of a layer norm, as torch-mlir writes it: nothing of f64 but the sums is in memory.
#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0, 0)>
// CHECK-LABEL: func.func @variance(
// CHECK-SAME:    %[[X:.*]]: tensor<8x96xf32>
// CHECK-NOT:     tensor<8x96xf64>
// CHECK:         %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<8x96xf32>)
// CHECK:           arith.extf
// CHECK-NEXT:      arith.addf {{.*}} fastmath<reassoc> : f64
// CHECK-NOT:     tensor<8x96xf64>
// CHECK:         linalg.generic {{.*}} ins(%[[X]], %[[SUM]] : tensor<8x96xf32>, tensor<8x1xf64>)
// CHECK:           arith.extf
// CHECK:           arith.subf
// CHECK-NEXT:      arith.mulf
// CHECK-NEXT:      arith.addf {{.*}} fastmath<reassoc> : f64
func.func @variance(%x: tensor<8x96xf32>) -> tensor<8x1xf64> {
  %zero = arith.constant 0.0 : f64
  %count = arith.constant 96.0 : f64
  %empty = tensor.empty() : tensor<8x96xf64>
  %wide = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x96xf32>) outs(%empty : tensor<8x96xf64>) {
  ^bb0(%in: f32, %out: f64):
    %0 = arith.extf %in : f32 to f64
    linalg.yield %0 : f64
  } -> tensor<8x96xf64>
  %rows = tensor.empty() : tensor<8x1xf64>
  %fill = linalg.fill ins(%zero : f64) outs(%rows : tensor<8x1xf64>) -> tensor<8x1xf64>
  %sum = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
      ins(%wide : tensor<8x96xf64>) outs(%fill : tensor<8x1xf64>) {
  ^bb0(%in: f64, %out: f64):
    %0 = arith.addf %in, %out : f64
    linalg.yield %0 : f64
  } -> tensor<8x1xf64>
  %difference = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
      ins(%wide, %sum : tensor<8x96xf64>, tensor<8x1xf64>) outs(%empty : tensor<8x96xf64>) {
  ^bb0(%in: f64, %total: f64, %out: f64):
    %0 = arith.divf %total, %count : f64
    %1 = arith.subf %in, %0 : f64
    linalg.yield %1 : f64
  } -> tensor<8x96xf64>
  %square = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%difference, %difference : tensor<8x96xf64>, tensor<8x96xf64>) outs(%empty : tensor<8x96xf64>) {
  ^bb0(%in: f64, %other: f64, %out: f64):
    %0 = arith.mulf %in, %other : f64
    linalg.yield %0 : f64
  } -> tensor<8x96xf64>
  %variance = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
      ins(%square : tensor<8x96xf64>) outs(%fill : tensor<8x1xf64>) {
  ^bb0(%in: f64, %out: f64):
    %0 = arith.addf %in, %out : f64
    linalg.yield %0 : f64
  } -> tensor<8x1xf64>
  return %variance : tensor<8x1xf64>
}
