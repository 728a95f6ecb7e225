// RUN: kas-opt %s -kas-specialize -kas-pack-operators="threads=1 vector-bits=512" | FileCheck %s

// Where all lanes of a vector lie outside of the data, its address may be far
// from it. Nothing is loaded there, but a masked load takes hundreds of cycles
// where there is no page. It therefore gets an address within the data.

kas.operator @window_of_channels<N, C, H, W | k>
    (%n: N, %c: C, %h: H, %w: W) from [N, C, H, W] {
  %i = kas.reduce sum : k
  %i_d, %i_w = kas.share %i : k
  %c_d, %c_w = kas.share %c : C
  %y = kas.unfold %c_d, %i_d : C, k
  kas.yield data(%n, %y, %h, %w) weight(%c_w, %i_w)
}

// CHECK-LABEL: func.func @far
// CHECK:         scf.for %{{.*}} iter_args
// CHECK:         %[[HOLDS:.*]] = arith.cmpi ult, %{{.*}}, %c16
// CHECK:         %[[ZERO:.*]] = arith.constant 0 : index
// CHECK:         %[[PLACE:.*]] = arith.select %[[HOLDS]], %{{.*}}, %[[ZERO]] : index
// CHECK:         vector.maskedload %{{.*}}[%[[PLACE]]]
// CHECK:         %[[NEXT:.*]] = arith.addi %[[PLACE]], %c16
// CHECK:         vector.maskedload %{{.*}}[%[[NEXT]]]
func.func @far(%x: tensor<1x16x32x32xf32>, %w: tensor<16x3xf32>) -> tensor<1x16x32x32xf32> {
  %y = kas.apply @window_of_channels<k = 3>(%x, %w) {kas_cpu.schedule = #kas_cpu.schedule<strategy = direct, rows = 1, columns = 1, vectors = 2>}
    : (tensor<1x16x32x32xf32>, tensor<16x3xf32>) -> tensor<1x16x32x32xf32>
  return %y : tensor<1x16x32x32xf32>
}
