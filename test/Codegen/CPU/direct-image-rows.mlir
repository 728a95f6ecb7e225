// RUN: kas-opt %s -kas-specialize -kas-pack-operators="threads=1 vector-bits=512" -o %t
// RUN: FileCheck %s < %t
// RUN: FileCheck %s --check-prefix=LOADS < %t
// RUN: FileCheck %s --check-prefix=LANES < %t

// Lines of the data are loaded once for all that reads them.

// Data of stride 2: what the places of a window along a line read is loaded
// once, and parted into elements of even and of odd numbers.

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

// Two lines of the output are five of the data: two vectors of each, and what
// lies after them for the last lane at the last place. That is one permutation
// for each place. The first element lies before the image.
// CHECK-LABEL: func.func @window_of_three
// CHECK:         arith.constant dense<[false, true, true, {{.*}}]> : vector<16xi1>
// CHECK:         %[[LOW:.*]] = vector.maskedload
// CHECK:         %[[HIGH:.*]] = vector.maskedload
// CHECK:         %[[EVEN:.*]] = vector.shuffle %[[LOW]], %[[HIGH]] [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30]
// CHECK:         vector.fma {{.*}}, %[[EVEN]],
// CHECK:         %[[ODD:.*]] = vector.shuffle %[[LOW]], %[[HIGH]] [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31]
// CHECK:         vector.fma {{.*}}, %[[ODD]],
// CHECK:         %[[NEXT:.*]] = vector.maskedload
// CHECK:         %[[MOVED:.*]] = vector.shuffle %[[EVEN]], %[[NEXT]] [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]
// CHECK:         vector.fma {{.*}}, %[[MOVED]],
// LOADS-LABEL:    func.func @window_of_three
// LOADS-COUNT-15: vector.{{(masked)?}}load
// LOADS-NOT:      vector.{{(masked)?}}load
// LANES-LABEL:    func.func @window_of_three
// LANES-COUNT-15: vector.shuffle
// LANES-NOT:      vector.shuffle
func.func @window_of_three(%x: tensor<1x4x32x32xf32>, %w: tensor<4x3x3xf32>) -> tensor<1x4x16x16xf32> {
  %y = kas.apply @depthwise<k = 3, s = 2>(%x, %w) {kas_cpu.schedule = #kas_cpu.schedule<strategy = direct, rows = 1, columns = 2, vectors = 1>}
    : (tensor<1x4x32x32xf32>, tensor<4x3x3xf32>) -> tensor<1x4x16x16xf32>
  return %y : tensor<1x4x16x16xf32>
}

// Of two vectors side by side, the second one holds what lies after the first.
// LOADS-LABEL:    func.func @two_vectors
// LOADS-COUNT-15: vector.{{(masked)?}}load
// LOADS-NOT:      vector.{{(masked)?}}load
// LANES-LABEL:    func.func @two_vectors
// LANES-COUNT-18: vector.shuffle
// LANES-NOT:      vector.shuffle
func.func @two_vectors(%x: tensor<1x4x64x64xf32>, %w: tensor<4x3x3xf32>) -> tensor<1x4x32x32xf32> {
  %y = kas.apply @depthwise<k = 3, s = 2>(%x, %w) {kas_cpu.schedule = #kas_cpu.schedule<strategy = direct, rows = 1, columns = 1, vectors = 2>}
    : (tensor<1x4x64x64xf32>, tensor<4x3x3xf32>) -> tensor<1x4x32x32xf32>
  return %y : tensor<1x4x32x32xf32>
}

// Seven lanes of eight: one vector of sixteen holds all fourteen elements.
// CHECK-LABEL: func.func @narrow
// CHECK:         %[[LINE:.*]] = vector.maskedload {{.*}} into vector<16xf32>
// CHECK:         vector.shuffle %[[LINE]], %[[LINE]] [0, 2, 4, 6, 8, 10, 12, 14]
// LANES-LABEL:   func.func @narrow
// LANES-COUNT-9: vector.shuffle
// LANES-NOT:     vector.shuffle
// LOADS-LABEL:   func.func @narrow
// LOADS-COUNT-3: vector.{{(masked)?}}load
// LOADS-NOT:     vector.{{(masked)?}}load
func.func @narrow(%x: tensor<1x4x14x14xf32>, %w: tensor<4x3x3xf32>) -> tensor<1x4x7x7xf32> {
  %y = kas.apply @depthwise<k = 3, s = 2>(%x, %w) {kas_cpu.schedule = #kas_cpu.schedule<strategy = direct, rows = 1, columns = 1, vectors = 1>}
    : (tensor<1x4x14x14xf32>, tensor<4x3x3xf32>) -> tensor<1x4x7x7xf32>
  return %y : tensor<1x4x7x7xf32>
}

// Two places need no elements after them.
// LOADS-LABEL:   func.func @window_of_two
// LOADS-COUNT-4: vector.{{(masked)?}}load
// LOADS-NOT:     vector.{{(masked)?}}load
// LANES-LABEL:   func.func @window_of_two
// LANES-COUNT-4: vector.shuffle
// LANES-NOT:     vector.shuffle
func.func @window_of_two(%x: tensor<1x4x32x32xf32>, %w: tensor<4x2x2xf32>) -> tensor<1x4x16x16xf32> {
  %y = kas.apply @depthwise<k = 2, s = 2>(%x, %w) {kas_cpu.schedule = #kas_cpu.schedule<strategy = direct, rows = 1, columns = 1, vectors = 1>}
    : (tensor<1x4x32x32xf32>, tensor<4x2x2xf32>) -> tensor<1x4x16x16xf32>
  return %y : tensor<1x4x16x16xf32>
}

kas.operator @conv2d<N, Cin, Cout, H, W | k>
    (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : Cin
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %y = kas.unfold %h, %i_d : H, k
  %x = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
}

// Four lines of the output are six of the data, at three places. Channels lie a
// multiple of a line apart, too, but no two lines read the same of them.
// LOADS-LABEL:    func.func @channels
// LOADS:          scf.for {{.*}} iter_args
// LOADS-COUNT-18: vector.{{(masked)?}}load
// LOADS-NOT:      vector.{{(masked)?}}load
// LOADS:          scf.yield
func.func @channels(%x: tensor<1x2x32x32xf32>, %w: tensor<2x2x3x3xf32>) -> tensor<1x2x32x32xf32> {
  %y = kas.apply @conv2d<k = 3>(%x, %w) {kas_cpu.schedule = #kas_cpu.schedule<strategy = direct, rows = 2, columns = 4, vectors = 1>}
    : (tensor<1x2x32x32xf32>, tensor<2x2x3x3xf32>) -> tensor<1x2x32x32xf32>
  return %y : tensor<1x2x32x32xf32>
}
