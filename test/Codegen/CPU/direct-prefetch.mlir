// RUN: kas-opt %s -kas-specialize -kas-pack-operators="threads=1 vector-bits=512" | FileCheck %s

// Tiles read a few vectors of some lines of an image, too short for processors
// to recognize: what the second block of lines below holds is fetched.

kas.operator @depthwise<N, C, H, W | k, s>
    (%n: N, %c: C, %h: H/s, %w: W/s) from [N, C, H, W] {
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %c_d, %c_w = kas.share %c : C
  %h_s = kas.stride %h by s : H/s
  %w_s = kas.stride %w by s : W/s
  %y = kas.unfold %h_s, %i_d : H, k
  %x = kas.unfold %w_s, %j_d : W, k
  kas.yield data(%n, %c_d, %y, %x) weight(%c_w, %i_w, %j_w)
}

// Four lines of 32 elements after twice as many, two vectors of each.
// CHECK-LABEL: func.func @two_vectors
// CHECK:         %[[C256:.*]] = arith.constant 256
// CHECK:         %[[FIRST:.*]] = arith.addi %{{.*}}, %[[C256]]
// CHECK-NEXT:    memref.prefetch %{{.*}}[%[[FIRST]]], read, locality<3>, data : memref<4096xf32
// CHECK-COUNT-7: memref.prefetch
// CHECK-NOT:     memref.prefetch
// CHECK:         vector.fma
func.func @two_vectors(%x: tensor<1x4x32x32xf32>, %w: tensor<4x3x3xf32>) -> tensor<1x4x32x32xf32> {
  %y = kas.apply @depthwise<k = 3, s = 1>(%x, %w) {kas_cpu.schedule = #kas_cpu.schedule<strategy = direct, rows = 1, columns = 4, vectors = 2>}
    : (tensor<1x4x32x32xf32>, tensor<4x3x3xf32>) -> tensor<1x4x32x32xf32>
  return %y : tensor<1x4x32x32xf32>
}

// A step of stride 2 moves by two lines, of which a vector reads two: four
// fetches for two columns with nine products each.
// CHECK-LABEL:   func.func @stride
// CHECK-COUNT-8: memref.prefetch
// CHECK-NOT:     memref.prefetch
// CHECK:         return
func.func @stride(%x: tensor<1x4x32x32xf32>, %w: tensor<4x3x3xf32>) -> tensor<1x4x16x16xf32> {
  %y = kas.apply @depthwise<k = 3, s = 2>(%x, %w) {kas_cpu.schedule = #kas_cpu.schedule<strategy = direct, rows = 1, columns = 2, vectors = 1>}
    : (tensor<1x4x32x32xf32>, tensor<4x3x3xf32>) -> tensor<1x4x16x16xf32>
  return %y : tensor<1x4x16x16xf32>
}

// As many fetches as products would take longer where the image is near.
// CHECK-LABEL: func.func @small_window
// CHECK-NOT:     memref.prefetch
// CHECK:         return
func.func @small_window(%x: tensor<1x4x32x32xf32>, %w: tensor<4x2x2xf32>) -> tensor<1x4x16x16xf32> {
  %y = kas.apply @depthwise<k = 2, s = 2>(%x, %w) {kas_cpu.schedule = #kas_cpu.schedule<strategy = direct, rows = 1, columns = 2, vectors = 1>}
    : (tensor<1x4x32x32xf32>, tensor<4x2x2xf32>) -> tensor<1x4x16x16xf32>
  return %y : tensor<1x4x16x16xf32>
}
