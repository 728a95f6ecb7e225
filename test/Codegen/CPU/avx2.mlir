// Tiles for AVX2, where a mask takes a register of vectors and masked stores take long.
// RUN: kas-opt %s -kas-specialize -kas-pack-operators="threads=1 vector-bits=256" | FileCheck %s --implicit-check-not=vector.maskedstore

// RUN: kas-opt %s -kas-attach-cpu-target=cpu=x86-64-v3 -o %t.mlir
// RUN: kas-run %t.mlir --function=every_second --check=exact --threads=1
// RUN: kas-run %t.mlir --function=every_second_of_few --check=exact --threads=1
// RUN: kas-run %t.mlir --function=far_window --check=exact --threads=1
// RUN: kas-run %t.mlir --function=one_vector --check=exact --threads=1
// RUN: kas-run %t.mlir --function=edges --check=exact --threads=2

kas.operator @depthwise<N, C, H, W | k, s>
    (%n: N, %c: C, %h: H/s, %w: W/s) from [N, C, H, W] {
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : C
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %h_s = kas.stride %h by s : H/s
  %w_s = kas.stride %w by s : W/s
  %y = kas.unfold %h_s, %i_d : H, k
  %x = kas.unfold %w_s, %j_d : W, k
  kas.yield data(%n, %c_d, %y, %x) weight(%c_w, %i_w, %j_w)
}

// The second and third quarters of the sums are exchanged, as one instruction makes them of two vectors, and put in order
// once.
// CHECK-LABEL: func.func @every_second(
// CHECK:         vector.shuffle {{.*}} [0, 2, 8, 10, 4, 6, 12, 14] : vector<8xf32>, vector<8xf32>
// CHECK:         vector.shuffle {{.*}} [0, 1, 4, 5, 2, 3, 6, 7] : vector<8xf32>, vector<8xf32>
func.func @every_second(%x: tensor<1x4x160x160xf32>, %w: tensor<4x3x3xf32>) -> tensor<1x4x80x80xf32> {
  %y = kas.apply @depthwise<k = 3, s = 2>(%x, %w)
      : (tensor<1x4x160x160xf32>, tensor<4x3x3xf32>) -> tensor<1x4x80x80xf32>
  return %y : tensor<1x4x80x80xf32>
}

func.func @every_second_of_few(%x: tensor<1x4x18x22xf32>, %w: tensor<4x3x3xf32>) -> tensor<1x4x9x11xf32> {
  %y = kas.apply @depthwise<k = 3, s = 2>(%x, %w)
      : (tensor<1x4x18x22xf32>, tensor<4x3x3xf32>) -> tensor<1x4x9x11xf32>
  return %y : tensor<1x4x9x11xf32>
}

func.func @far_window(%x: tensor<1x4x56x56xf32>, %w: tensor<4x5x5xf32>) -> tensor<1x4x28x28xf32> {
  %y = kas.apply @depthwise<k = 5, s = 2>(%x, %w)
      : (tensor<1x4x56x56xf32>, tensor<4x5x5xf32>) -> tensor<1x4x28x28xf32>
  return %y : tensor<1x4x28x28xf32>
}

// Seven sums: each line is loaded once for all that read it, and stored in parts of 4, 2 and 1 elements.
// CHECK-LABEL: func.func @one_vector(
// CHECK-COUNT-35: vector.maskedload
// CHECK-NOT:      vector.maskedload
// CHECK:          vector.store {{.*}} vector<4xf32>
// CHECK:          vector.store {{.*}} vector<2xf32>
// CHECK:          vector.store {{.*}} vector<1xf32>
func.func @one_vector(%x: tensor<1x4x7x7xf32>, %w: tensor<4x5x5xf32>) -> tensor<1x4x7x7xf32> {
  %y = kas.apply @depthwise<k = 5, s = 1>(%x, %w)
      : (tensor<1x4x7x7xf32>, tensor<4x5x5xf32>) -> tensor<1x4x7x7xf32>
  return %y : tensor<1x4x7x7xf32>
}

// Tiles at the borders of the image are code of their own: those between the first and the last vector need no mask.
// CHECK-LABEL: func.func @edges(
// CHECK:         scf.for
// CHECK:           vector.maskedload
// CHECK:           scf.for
// CHECK-NOT:         vector.maskedload
// CHECK:             vector.store {{.*}} vector<8xf32>
func.func @edges(%x: tensor<1x4x45x45xf32>, %w: tensor<4x3x3xf32>) -> tensor<1x4x45x45xf32> {
  %y = kas.apply @depthwise<k = 3, s = 1>(%x, %w)
      : (tensor<1x4x45x45xf32>, tensor<4x3x3xf32>) -> tensor<1x4x45x45xf32>
  return %y : tensor<1x4x45x45xf32>
}
