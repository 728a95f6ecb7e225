// RUN: kas-opt %s -kas-split-batch=size=2 | FileCheck %s
// RUN: kas-opt %s -kas-split-batch=size=8 | FileCheck %s --check-prefix=WHOLE
// RUN: kas-opt %s -kas-split-batch=size=3 | FileCheck %s --check-prefix=WHOLE

// WHOLE-NOT: kas_cpu

#row = affine_map<(n, c) -> (n, c)>
#channel = affine_map<(n, c) -> (c)>

kas.operator @depthwise<N, C, H, W | k>(%n: N, %c: C, %h: H, %w: W) from [N, C, H, W] {
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : C
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %y = kas.unfold %h, %i_d : H, k
  %x = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %c_d, %y, %x) weight(%c_w, %i_w, %j_w)
}

// A concrete operator gets a smaller one beside it.
// CHECK:       kas.operator private @[[SMALLER:pointwise.+]](%{{.*}}: 2, %{{.*}}: 5, %{{.*}}: 6, %{{.*}}: 6) from [2, 4, 6, 6]
kas.operator @pointwise(%n: 8, %c: 5, %h: 6, %w: 6) from [8, 4, 6, 6] {
  %r = kas.reduce sum : 4
  %r_d, %r_w = kas.share %r : 4
  kas.yield data(%n, %r_d, %h, %w) weight(%c, %r_w)
}

// All that has samples is smaller, whatever gives the same for all samples too.
// CHECK-LABEL: func.func @forward
// CHECK-SAME:    (%[[X:.*]]: tensor<2x4x6x6xf32>, %{{.*}}: tensor<4x3x3xf32>, %{{.*}}: tensor<5x4xf32>, %{{.*}}: tensor<5xf32>, %{{.*}}: tensor<180x3xf32>)
// CHECK-SAME:    -> tensor<2x3xf32>
// CHECK-SAME:    kas_cpu.batch_parts = #kas_cpu.batch_parts<count = 4, bytes = [1152, 0, 0, 0, 0, 24]>
// CHECK-SAME:    kas_cpu.serial
func.func @forward(%x: tensor<8x4x6x6xf32>, %v: tensor<4x3x3xf32>, %w: tensor<5x4xf32>, %b: tensor<5xf32>,
                   %u: tensor<180x3xf32>) -> tensor<8x3xf32> {
  // CHECK: %[[D:.*]] = kas.apply @depthwise<k = 3>(%[[X]], %{{.*}}) : (tensor<2x4x6x6xf32>, tensor<4x3x3xf32>) -> tensor<2x4x6x6xf32>
  %d = kas.apply @depthwise<k = 3>(%x, %v) : (tensor<8x4x6x6xf32>, tensor<4x3x3xf32>) -> tensor<8x4x6x6xf32>
  // CHECK: %[[P:.*]] = kas.apply @[[SMALLER]](%[[D]]
  %p = kas.apply @pointwise(%d, %w) : (tensor<8x4x6x6xf32>, tensor<5x4xf32>) -> tensor<8x5x6x6xf32>
  // CHECK: %[[E:.*]] = tensor.empty() : tensor<2x5x6x6xf32>
  %e = tensor.empty() : tensor<8x5x6x6xf32>
  // CHECK: linalg.broadcast {{.*}} outs(%[[E]] : tensor<2x5x6x6xf32>)
  %bias = linalg.broadcast ins(%b : tensor<5xf32>) outs(%e : tensor<8x5x6x6xf32>) dimensions = [0, 2, 3]
  // CHECK: arith.addf %[[P]], %{{.*}} : tensor<2x5x6x6xf32>
  %s = arith.addf %p, %bias : tensor<8x5x6x6xf32>
  // CHECK: arith.constant dense<5.000000e-01> : tensor<2x5x6x6xf32>
  %half = arith.constant dense<0.5> : tensor<8x5x6x6xf32>
  %t = arith.mulf %s, %half : tensor<8x5x6x6xf32>
  // CHECK: tensor.collapse_shape {{.*}} : tensor<2x5x6x6xf32> into tensor<2x180xf32>
  %flat = tensor.collapse_shape %t [[0], [1, 2, 3]] : tensor<8x5x6x6xf32> into tensor<8x180xf32>
  %zero = arith.constant 0.0 : f32
  // CHECK: %[[O:.*]] = tensor.empty() : tensor<2x3xf32>
  %o = tensor.empty() : tensor<8x3xf32>
  // CHECK: %[[Z:.*]] = linalg.fill {{.*}} outs(%[[O]] : tensor<2x3xf32>)
  %z = linalg.fill ins(%zero : f32) outs(%o : tensor<8x3xf32>) -> tensor<8x3xf32>
  // CHECK: linalg.matmul {{.*}} outs(%[[Z]] : tensor<2x3xf32>)
  %y = linalg.matmul ins(%flat, %u : tensor<8x180xf32>, tensor<180x3xf32>) outs(%z : tensor<8x3xf32>) -> tensor<8x3xf32>
  return %y : tensor<8x3xf32>
}

// Tokens of samples together, a padding, slices, and a transpose.
// CHECK-LABEL: func.func @tokens
// CHECK-SAME:    (%{{.*}}: tensor<2x7x8xf32>, %{{.*}}: tensor<8x8xf32>) -> tensor<2x5x8xf32>
func.func @tokens(%x: tensor<8x7x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  // CHECK: tensor.collapse_shape {{.*}} : tensor<2x7x8xf32> into tensor<14x8xf32>
  %rows = tensor.collapse_shape %x [[0, 1], [2]] : tensor<8x7x8xf32> into tensor<56x8xf32>
  %e = tensor.empty() : tensor<56x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<56x8xf32>) -> tensor<56x8xf32>
  // CHECK: linalg.matmul {{.*}} -> tensor<14x8xf32>
  %y = linalg.matmul ins(%rows, %w : tensor<56x8xf32>, tensor<8x8xf32>) outs(%z : tensor<56x8xf32>) -> tensor<56x8xf32>
  // CHECK: tensor.expand_shape {{.*}} output_shape [2, 7, 8] : tensor<14x8xf32> into tensor<2x7x8xf32>
  %t = tensor.expand_shape %y [[0, 1], [2]] output_shape [8, 7, 8] : tensor<56x8xf32> into tensor<8x7x8xf32>
  // CHECK: tensor.extract_slice {{.*}}[0, 1, 0] [2, 4, 8] [1, 1, 1] : tensor<2x7x8xf32> to tensor<2x4x8xf32>
  %some = tensor.extract_slice %t[0, 1, 0] [8, 4, 8] [1, 1, 1] : tensor<8x7x8xf32> to tensor<8x4x8xf32>
  // CHECK: tensor.pad
  // CHECK: tensor<2x4x8xf32> to tensor<2x5x8xf32>
  %padded = tensor.pad %some low[0, 1, 0] high[0, 0, 0] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %zero : f32
  } : tensor<8x4x8xf32> to tensor<8x5x8xf32>
  // CHECK: %[[F:.*]] = linalg.fill {{.*}} -> tensor<2x5x8xf32>
  %e2 = tensor.empty() : tensor<8x5x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e2 : tensor<8x5x8xf32>) -> tensor<8x5x8xf32>
  // CHECK: tensor.insert_slice {{.*}} into %[[F]][0, 1, 0] [2, 4, 8] [1, 1, 1] : tensor<2x4x8xf32> into tensor<2x5x8xf32>
  %in = tensor.insert_slice %some into %f[0, 1, 0] [8, 4, 8] [1, 1, 1] : tensor<8x4x8xf32> into tensor<8x5x8xf32>
  %r = arith.addf %padded, %in : tensor<8x5x8xf32>
  return %r : tensor<8x5x8xf32>
}

// Casts that hide other sizes.
// CHECK-LABEL: func.func @rolled
// CHECK-SAME:    (%{{.*}}: tensor<2x6xf32>) -> tensor<2x6xf32>
func.func @rolled(%x: tensor<8x6xf32>) -> tensor<8x6xf32> {
  %first = tensor.extract_slice %x[0, 0] [8, 2] [1, 1] : tensor<8x6xf32> to tensor<8x2xf32>
  %last = tensor.extract_slice %x[0, 2] [8, 4] [1, 1] : tensor<8x6xf32> to tensor<8x4xf32>
  // CHECK: tensor.cast {{.*}} : tensor<2x2xf32> to tensor<2x?xf32>
  %f = tensor.cast %first : tensor<8x2xf32> to tensor<8x?xf32>
  %l = tensor.cast %last : tensor<8x4xf32> to tensor<8x?xf32>
  // CHECK: tensor.concat dim(1) {{.*}} : (tensor<2x?xf32>, tensor<2x?xf32>) -> tensor<2x6xf32>
  %r = tensor.concat dim(1) %l, %f : (tensor<8x?xf32>, tensor<8x?xf32>) -> tensor<8x6xf32>
  return %r : tensor<8x6xf32>
}

// One value that is read by two maps is cut where its dimension is that of samples.
// CHECK-LABEL: func.func @uniform
// CHECK-SAME:    (%{{.*}}: tensor<2x8xf32>) -> tensor<2x8xf32>
func.func @uniform(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %c = arith.constant dense<1.0> : tensor<8xf32>
  %e = tensor.empty() : tensor<8x8xf32>
  // CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<2xf32>, tensor<8xf32>) outs(%{{.*}} : tensor<2x8xf32>)
  %u = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>, #row], iterator_types = ["parallel", "parallel"]
  } ins(%c, %c : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<8x8xf32>
  %r = arith.addf %x, %u : tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}

// Reshapes of what is the same for each sample: the bias of a grouped convolution.
// CHECK-LABEL: func.func @reshaped
// CHECK:         %[[B:.*]] = linalg.broadcast ins(%{{.*}} : tensor<6xf32>) outs(%{{.*}} : tensor<2x6x4xf32>) dimensions = [0, 2]
// CHECK:         %[[G:.*]] = tensor.expand_shape %[[B]] {{\[\[}}0], [1, 2], [3]] output_shape [2, 3, 2, 4] : tensor<2x6x4xf32> into tensor<2x3x2x4xf32>
// CHECK:         %[[L:.*]] = tensor.collapse_shape %[[G]] {{\[\[}}0], [1], [2, 3]] : tensor<2x3x2x4xf32> into tensor<2x3x8xf32>
// CHECK:         arith.addf %{{.*}}, %[[L]] : tensor<2x3x8xf32>
// CHECK-NOT:     tensor.extract_slice
// CHECK:         return
func.func @reshaped(%x: tensor<8x3x8xf32>, %b: tensor<6xf32>) -> tensor<8x3x8xf32> {
  %e = tensor.empty() : tensor<8x6x4xf32>
  %bias = linalg.broadcast ins(%b : tensor<6xf32>) outs(%e : tensor<8x6x4xf32>) dimensions = [0, 2]
  %grouped = tensor.expand_shape %bias [[0], [1, 2], [3]] output_shape [8, 3, 2, 4] : tensor<8x6x4xf32> into tensor<8x3x2x4xf32>
  %lines = tensor.collapse_shape %grouped [[0], [1], [2, 3]] : tensor<8x3x2x4xf32> into tensor<8x3x8xf32>
  %r = arith.addf %x, %lines : tensor<8x3x8xf32>
  return %r : tensor<8x3x8xf32>
}

// Elements whose size in memory is not known here.
// CHECK-LABEL: func.func @places
// CHECK-SAME:    -> tensor<8x3xindex>
// CHECK-NOT:     kas_cpu.batch_parts
func.func @places(%x: tensor<8x3xi64>) -> tensor<8x3xindex> {
  %y = arith.index_cast %x : tensor<8x3xi64> to tensor<8x3xindex>
  return %y : tensor<8x3xindex>
}

// CHECK-LABEL: func.func @odd
// CHECK-SAME:    -> tensor<8x3xi24>
func.func @odd(%x: tensor<8x3xi64>) -> tensor<8x3xi24> {
  %y = arith.trunci %x : tensor<8x3xi64> to tensor<8x3xi24>
  return %y : tensor<8x3xi24>
}

// A sum over samples, a function that others call, one that is private: as they are.
// CHECK-LABEL: func.func @mixes
// CHECK-SAME:    tensor<8x4xf32>
func.func @mixes(%x: tensor<8x4xf32>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>],
    iterator_types = ["parallel", "parallel", "reduction"]
  } ins(%x, %x : tensor<8x4xf32>, tensor<8x4xf32>) outs(%z : tensor<8x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %m, %c : f32
    linalg.yield %s : f32
  } -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @called
// CHECK-SAME:    tensor<8x4xf32>
func.func @called(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %y = arith.addf %x, %x : tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// CHECK-LABEL: func.func private @hidden
// CHECK-SAME:    tensor<8x4xf32>
func.func private @hidden(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %y = func.call @called(%x) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}
