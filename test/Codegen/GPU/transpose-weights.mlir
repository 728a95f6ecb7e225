// RUN: kas-opt %s -kas-gpu-transpose-weights | FileCheck %s
// RUN: kas-opt %s -kas-gpu-transpose-weights=device=vulkan-cpu | FileCheck %s --check-prefix=HOST
// RUN: kas-opt %s -kas-gpu-transpose-weights -kas-gpu-transpose-weights | FileCheck %s
// RUN: not kas-opt %s -kas-gpu-transpose-weights=device=sm_1 2>&1 | FileCheck %s --check-prefix=DEVICE

// Nothing is gained on a processor.
// HOST-NOT: linalg.generic {{.*}}"parallel", "parallel", "parallel", "parallel"]}
// DEVICE: error: expected a device of vulkan, {{.*}}, got 'sm_1'

// The window is last in memory, and each step along the channels far from the next.
// CHECK-DAG: #[[$READS:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>
// CHECK-DAG: #[[$WEIGHT:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1, d5, d6, d4)>
// CHECK-DAG: #[[$SAME:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
kas.operator @conv(%n: 8, %o: 64, %h: 56, %w: 56) from [8, 64, 56, 56] {
  %c = kas.reduce sum : 64
  %i = kas.reduce sum : 3
  %j = kas.reduce sum : 3
  %c_d, %c_w = kas.share %c : 64
  %i_d, %i_w = kas.share %i : 3
  %j_d, %j_w = kas.share %j : 3
  %y = kas.unfold %h, %i_d : 56, 3
  %x = kas.unfold %w, %j_d : 56, 3
  kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
}
// CHECK: kas.operator @conv_0(
// CHECK: %[[C:.*]] = kas.reduce sum : 64
// CHECK: %{{.*}}, %[[CW:.*]] = kas.share %[[C]] : 64
// CHECK: kas.yield data({{.*}}) weight(%{{.*}}, %{{.*}}, %{{.*}}, %[[CW]])

// CHECK-LABEL: func @operator
// CHECK-SAME: (%[[X:.*]]: tensor<8x64x56x56xf32>, %[[W:.*]]: tensor<64x64x3x3xf32>)
// CHECK: %[[COPY:.*]] = linalg.generic {indexing_maps = [#[[$READS]], #[[$SAME]]]
// CHECK-SAME: ins(%[[W]] : tensor<64x64x3x3xf32>) outs({{.*}} : tensor<64x3x3x64xf32>)
// CHECK: kas.apply @conv_0(%[[X]], %[[COPY]])
func.func @operator(%x: tensor<8x64x56x56xf32>, %w: tensor<64x64x3x3xf32>) -> tensor<8x64x56x56xf32> {
  %y = kas.apply @conv(%x, %w) : (tensor<8x64x56x56xf32>, tensor<64x64x3x3xf32>) -> tensor<8x64x56x56xf32>
  return %y : tensor<8x64x56x56xf32>
}

#data = affine_map<(n, o, h, w, c, i, j) -> (n, c, h + i, w + j)>
#weight = affine_map<(n, o, h, w, c, i, j) -> (o, c, i, j)>
#result = affine_map<(n, o, h, w, c, i, j) -> (n, o, h, w)>

// CHECK-LABEL: func @sum
// CHECK-SAME: (%[[X:.*]]: tensor<8x64x58x58xf32>, %[[W:.*]]: tensor<64x64x3x3xf32>
// CHECK: %[[COPY:.*]] = linalg.generic {indexing_maps = [#[[$READS]], #[[$SAME]]]
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[$WEIGHT]], #{{.*}}]
// CHECK-SAME: ins(%[[X]], %[[COPY]] : tensor<8x64x58x58xf32>, tensor<64x3x3x64xf32>)
func.func @sum(%x: tensor<8x64x58x58xf32>, %w: tensor<64x64x3x3xf32>) -> tensor<8x64x56x56xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x64x56x56xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x64x56x56xf32>) -> tensor<8x64x56x56xf32>
  %y = linalg.generic {indexing_maps = [#data, #weight, #result],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<8x64x58x58xf32>, tensor<64x64x3x3xf32>) outs(%zeros : tensor<8x64x56x56xf32>) {
    ^bb0(%a: f32, %b: f32, %s: f32):
      %p = arith.mulf %a, %b : f32
      %t = arith.addf %s, %p : f32
      linalg.yield %t : f32
  } -> tensor<8x64x56x56xf32>
  return %y : tensor<8x64x56x56xf32>
}

// Of data, which is another in each call, a copy would take longer than too few blocks gain; of a weight it is made
// once. Steps of a matrix product are neighbours.
kas.operator @small(%o: 64, %w: 56) from [64, 56] {
  %c = kas.reduce sum : 64
  %j = kas.reduce sum : 3
  %c_d, %c_w = kas.share %c : 64
  %j_d, %j_w = kas.share %j : 3
  %x = kas.unfold %w, %j_d : 56, 3
  kas.yield data(%c_d, %x) weight(%o, %c_w, %j_w)
}
kas.operator @matmul(%m: 4096, %n: 4096) from [4096, 4096] {
  %k = kas.reduce sum : 4096
  %k_d, %k_w = kas.share %k : 4096
  kas.yield data(%m, %k_d) weight(%n, %k_w)
}
// CHECK-LABEL: func @asTheyAre
// CHECK-NOT: linalg.generic
// CHECK: kas.apply @small(
// CHECK: kas.apply @matmul(
func.func @asTheyAre(%x: tensor<64x56xf32>, %w: tensor<64x64x3xf32> {kas.data}, %a: tensor<4096x4096xf32>)
    -> (tensor<64x56xf32>, tensor<4096x4096xf32>) {
  %y = kas.apply @small(%x, %w) : (tensor<64x56xf32>, tensor<64x64x3xf32>) -> tensor<64x56xf32>
  %b = kas.apply @matmul(%a, %a) : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  return %y, %b : tensor<64x56xf32>, tensor<4096x4096xf32>
}

// CHECK-LABEL: func @once
// CHECK-SAME: %[[W:[^:]*]]: tensor<64x64x3xf32>)
// CHECK: %[[COPY:.*]] = linalg.generic {{.*}} ins(%[[W]] : tensor<64x64x3xf32>) outs({{.*}} : tensor<64x3x64xf32>)
// CHECK: kas.apply @small_1(%{{.*}}, %[[COPY]])
func.func @once(%x: tensor<64x56xf32>, %w: tensor<64x64x3xf32>) -> tensor<64x56xf32> {
  %y = kas.apply @small(%x, %w) : (tensor<64x56xf32>, tensor<64x64x3xf32>) -> tensor<64x56xf32>
  return %y : tensor<64x56xf32>
}
