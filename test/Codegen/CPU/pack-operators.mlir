// RUN: kas-opt %s -kas-specialize -kas-pack-operators="threads=1 vector-bits=512" | FileCheck %s
// RUN: kas-opt %s -kas-specialize -kas-pack-operators="threads=1 vector-bits=128" | FileCheck %s --check-prefix=NARROW

kas.operator @conv1d<N, Cin, Cout, W | k>
    (%n: N, %o: Cout, %w: W) from [N, Cin, W] {
  %c = kas.reduce sum : Cin
  %j = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : Cin
  %j_d, %j_w = kas.share %j : k
  %x = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %c_d, %x) weight(%o, %c_w, %j_w)
}

// The lanes of the data that exist are loaded, with zeros for the others; the
// sums begin with zeros, as one panel has all reductions.
// CHECK-LABEL: func.func @convolution
// CHECK-NOT:     linalg.fill
// CHECK:         memref.alloc() {{.*}} memref<{{[0-9]+}}xf32>
// CHECK:         arith.cmpi ult, {{.*}} : vector<16xi32>
// CHECK:         vector.maskedload
// CHECK:         vector.store
// CHECK:         vector.fma
// CHECK:         bufferization.to_tensor
// CHECK-NOT:     kas.apply
// Without masked loads, the columns that exist lie between two bounds: zeros
// before and after them.
// NARROW-LABEL: func.func @convolution
// NARROW:         arith.maxsi
// NARROW-NEXT:    arith.minsi
// NARROW:         %[[LOWER:.*]] = arith.minsi
// NARROW:         %[[UPPER:.*]] = arith.maxsi
// NARROW:         scf.for %{{.*}} = %{{.*}} to %[[LOWER]]
// NARROW:         scf.for %{{.*}} = %[[LOWER]] to %[[UPPER]]
// NARROW:         scf.for %{{.*}} = %[[UPPER]] to %{{.*}}
// NARROW:         vector.fma {{.*}} vector<4xf32>
func.func @convolution(%x: tensor<1x8x32xf32>, %w: tensor<256x8x3xf32>) -> tensor<1x256x32xf32> {
  %y = kas.apply @conv1d<k = 3>(%x, %w) : (tensor<1x8x32xf32>, tensor<256x8x3xf32>) -> tensor<1x256x32xf32>
  return %y : tensor<1x256x32xf32>
}

// Few filters, or one for each channel: no copy. Every input vector is loaded
// once, with the lanes that exist, and stays in a register for all that needs it.
// CHECK-LABEL: func.func @direct
// CHECK-NOT:     memref.alloc() {{.*}} memref<{{[0-9]+}}xf32>
// CHECK-NOT:     linalg.fill
// CHECK:         scf.for {{.*}} iter_args
// CHECK:         %[[LANES:.*]] = arith.constant dense<[false, true, true, {{.*}}]> : vector<16xi1>
// CHECK:         vector.maskedload {{.*}}, %[[LANES]],
// CHECK:         vector.broadcast {{.*}} : f32 to vector<16xf32>
// CHECK:         vector.fma
// CHECK:         vector.store
// CHECK:         bufferization.to_tensor
// CHECK-NOT:     kas.apply
func.func @direct(%x: tensor<1x8x32xf32>, %w: tensor<2x8x3xf32>) -> tensor<1x2x32xf32> {
  %y = kas.apply @conv1d<k = 3>(%x, %w) : (tensor<1x8x32xf32>, tensor<2x8x3xf32>) -> tensor<1x2x32xf32>
  return %y : tensor<1x2x32xf32>
}

kas.operator @depthwise<N, C, H, W | k>
    (%n: N, %c: C, %h: H, %w: W) from [N, C, H, W] {
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %c_d, %c_w = kas.share %c : C
  %y = kas.unfold %h, %i_d : H, k
  %x = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %c_d, %y, %x) weight(%c_w, %i_w, %j_w)
}

// Seven rows of seven: the rows above and below the image are left out, and the
// three filter rows multiply seven input rows that are loaded once: 7 + 6 + 6
// products at each of the three places along the width.
// CHECK-LABEL: func.func @small_images
// CHECK:         scf.for
// CHECK-NOT:       scf.for
// CHECK-COUNT-21:  vector.maskedload
// CHECK-NOT:       vector.maskedload
// CHECK-COUNT-7:   vector.maskedstore
func.func @small_images(%x: tensor<1x64x7x7xf32>, %w: tensor<64x3x3xf32>) -> tensor<1x64x7x7xf32> {
  %y = kas.apply @depthwise<k = 3>(%x, %w) : (tensor<1x64x7x7xf32>, tensor<64x3x3xf32>) -> tensor<1x64x7x7xf32>
  return %y : tensor<1x64x7x7xf32>
}

kas.operator @strided<N, Cin, Cout, W | k, s>
    (%n: N, %o: Cout, %w: W/s) from [N, Cin, W] {
  %c = kas.reduce sum : Cin
  %j = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : Cin
  %j_d, %j_w = kas.share %j : k
  %x = kas.stride %w by s : W/s
  %y = kas.unfold %x, %j_d : W, k
  kas.yield data(%n, %c_d, %y) weight(%o, %c_w, %j_w)
}

// Every other element of two vectors. Twenty columns are one vector and a
// narrow one, which are multiplied together.
// CHECK-LABEL: func.func @stride
// CHECK:         vector.maskedload
// CHECK:         vector.maskedload
// CHECK:         vector.shuffle {{.*}} [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30]
// CHECK:         vector.load {{.*}} vector<16xf32>
// CHECK-NOT:     vector.fma
// CHECK:         vector.load {{.*}} vector<4xf32>
// CHECK:         vector.fma {{.*}} vector<4xf32>
func.func @stride(%x: tensor<1x8x40xf32>, %w: tensor<64x8x3xf32>) -> tensor<1x64x20xf32> {
  %y = kas.apply @strided<k = 3, s = 2>(%x, %w) : (tensor<1x8x40xf32>, tensor<64x8x3xf32>) -> tensor<1x64x20xf32>
  return %y : tensor<1x64x20xf32>
}

kas.operator @low_rank<N, C, W | r>
    (%n: N, %o: C, %w: W) from [N, C, W] {
  %c = kas.reduce sum : C
  %t = kas.reduce sum : r
  %c_d, %c_w = kas.share %c : C
  %t_1, %t_2 = kas.share %t : r
  kas.yield data(%n, %c_d, %w) weight(%o, %t_1) weight(%t_2, %c_w)
}

// The weights are multiplied, and summed over their common rank, beforehand.
// CHECK-LABEL: func.func @combined
// CHECK:         memref.alloc() {{.*}} : memref<256xf32>
// CHECK:         scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}) -> (f32)
// CHECK:         vector.fma
func.func @combined(%x: tensor<1x16x32xf32>, %v: tensor<16x4xf32>, %w: tensor<4x16xf32>) -> tensor<1x16x32xf32> {
  %y = kas.apply @low_rank<r = 4>(%x, %v, %w) : (tensor<1x16x32xf32>, tensor<16x4xf32>, tensor<4x16xf32>) -> tensor<1x16x32xf32>
  return %y : tensor<1x16x32xf32>
}

kas.operator @maximum<N, W | s>(%n: N, %w: W/s) from [N, W] {
  %j = kas.reduce max : s
  %x = kas.split %w, %j : W/s, s
  kas.yield data(%n, %x)
}

// A maximum is left to others.
// CHECK-LABEL: func.func @pool
// CHECK:         kas.apply
func.func @pool(%x: tensor<4x32xf32>) -> tensor<4x16xf32> {
  %y = kas.apply @maximum<s = 2, W = 32>(%x) : (tensor<4x32xf32>) -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

kas.operator @rolled<N, Cin, Cout, W>
    (%n: N, %o: Cout, %w: W) from [N, Cin, W] {
  %c = kas.reduce sum : Cin
  %c_d, %c_w = kas.share %c : Cin
  %x = kas.shift %w by 1 : W
  kas.yield data(%n, %c_d, %x) weight(%o, %c_w)
}

// Around the end of a line, a vector comes from two places: the lanes of the
// second one replace those that the first one leaves zero.
// CHECK-LABEL: func.func @around_the_end
// CHECK:         vector.load {{.*}} vector<16xf32>
// CHECK:         vector.store
// CHECK:         %[[FIRST:.*]] = vector.maskedload
// CHECK:         vector.maskedload {{.*}}, %[[FIRST]] :
// CHECK-NOT:     vector.maskedload
// CHECK:         vector.fma
func.func @around_the_end(%x: tensor<1x64x32xf32>, %w: tensor<64x64xf32>) -> tensor<1x64x32xf32> {
  %y = kas.apply @rolled(%x, %w) : (tensor<1x64x32xf32>, tensor<64x64xf32>) -> tensor<1x64x32xf32>
  return %y : tensor<1x64x32xf32>
}

kas.operator @rolled_window<N, C, W | k>
    (%n: N, %c: C, %w: W) from [N, C, W] {
  %j = kas.reduce sum : k
  %j_d, %j_w = kas.share %j : k
  %c_d, %c_w = kas.share %c : C
  %u = kas.unfold %w, %j_d : W, k
  %x = kas.shift %u by 1 : W
  kas.yield data(%n, %c_d, %x) weight(%c_w, %j_w)
}

// Here the place of the end depends on the step of the window.
// CHECK-LABEL: func.func @window_around_the_end
// CHECK:         scf.for
// CHECK:           scf.for {{.*}} iter_args
// CHECK:             vector.maskedload
// CHECK:             %[[FIRST:.*]] = vector.maskedload
// CHECK:             vector.maskedload {{.*}}, %[[FIRST]] :
// CHECK:             vector.fma
func.func @window_around_the_end(%x: tensor<1x64x32xf32>, %w: tensor<64x3xf32>) -> tensor<1x64x32xf32> {
  %y = kas.apply @rolled_window<k = 3>(%x, %w) : (tensor<1x64x32xf32>, tensor<64x3xf32>) -> tensor<1x64x32xf32>
  return %y : tensor<1x64x32xf32>
}

// The larger quotient is split off first, so that both indices of the weight
// are loops.
kas.operator @nested_groups<C, O, W | g, h>
    (%o: O, %w: W) from [C, O/(g*h), W] {
  %c = kas.reduce sum : C
  %c_d, %c_w = kas.share %c : C
  %q, %m = kas.merge %o by O/g : O
  %p, %r = kas.merge %m by O/(g*h) : O/g
  kas.yield data(%c_d, %r, %w) weight(%q, %p, %c_w)
}
// CHECK-LABEL: func.func @quotients
// CHECK:         vector.fma
// CHECK:         bufferization.to_tensor
// CHECK-NOT:     kas.apply
func.func @quotients(%x: tensor<8x4x32xf32>, %w: tensor<4x4x8xf32>) -> tensor<64x32xf32> {
  %y = kas.apply @nested_groups<g = 4, h = 4>(%x, %w) : (tensor<8x4x32xf32>, tensor<4x4x8xf32>) -> tensor<64x32xf32>
  return %y : tensor<64x32xf32>
}
