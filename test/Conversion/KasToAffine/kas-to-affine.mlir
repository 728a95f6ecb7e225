// RUN: kas-opt %s -kas-to-affine | FileCheck %s
// RUN: kas-opt %s -kas-to-affine="parallel min-parallel-work=1" | FileCheck %s --check-prefix=PARALLEL
// RUN: kas-opt %s -kas-to-affine="parallel" | FileCheck %s --check-prefix=SMALL

// A sum: one accumulator goes through all reductions. The clipping is checked
// where its coordinates are known; an axis of one value has no loop.

// CHECK: #[[$CLIP:.+]] = affine_set<(d0, d1, d2, d3, d4) : (d2 + d4 - 1 >= 0, -(d2 + d4 - 1) + 5 >= 0)>
// CHECK: #[[$POOL:.+]] = affine_set<(d0, d1, d2) : (d0 * 2 + d2 - 1 >= 0, -(d0 * 2 + d2 - 1) + 5 >= 0)>

kas.operator @conv1d(%n: 1, %o: 4, %h: 6) from [1, 8, 6] {
  %c = kas.reduce sum : 8
  %k = kas.reduce sum : 3
  %c_d, %c_w = kas.share %c : 8
  %k_d, %k_w = kas.share %k : 3
  %x = kas.unfold %h, %k_d : 6, 3
  kas.yield data(%n, %c_d, %x) weight(%o, %c_w, %k_w)
}

// CHECK-LABEL: func @sum(
// CHECK-SAME:      %[[X:.+]]: tensor<1x8x6xf32>, %[[W:.+]]: tensor<4x8x3xf32>
// CHECK:         %[[BX:.+]] = bufferization.to_buffer %[[X]] read_only
// CHECK:         %[[BW:.+]] = bufferization.to_buffer %[[W]] read_only
// CHECK:         %[[BY:.+]] = memref.alloc() {alignment = 64 : i64} : memref<1x4x6xf32>
// CHECK:         %[[C0:.+]] = arith.constant 0 : index
// CHECK:         affine.for %[[O:.+]] = 0 to 4 {
// CHECK-NEXT:      affine.for %[[H:.+]] = 0 to 6 {
// CHECK:             %[[SUM:.+]] = affine.for %[[C:.+]] = 0 to 8 iter_args(%[[S0:.+]] =
// CHECK-NEXT:          affine.for %[[K:.+]] = 0 to 3 iter_args(%[[S1:.+]] = %[[S0]])
// CHECK-NEXT:            affine.if #[[$CLIP]](%[[C0]], %[[O]], %[[H]], %[[C]], %[[K]]) -> f32 {
// CHECK-NEXT:              %[[A:.+]] = affine.load %[[BX]][0, %[[C]], %[[H]] + %[[K]] - 1]
// CHECK-NEXT:              %[[B:.+]] = affine.load %[[BW]][%[[O]], %[[C]], %[[K]]]
// CHECK-NEXT:              %[[P:.+]] = arith.mulf %[[A]], %[[B]] fastmath<contract>
// CHECK-NEXT:              %[[T:.+]] = arith.addf %[[S1]], %[[P]] fastmath<contract>
// CHECK-NEXT:              affine.yield %[[T]]
// CHECK-NEXT:            } else {
// CHECK-NEXT:              affine.yield %[[S1]]
// CHECK:             affine.store %[[SUM]], %[[BY]][%[[C0]], %[[O]], %[[H]]]
// CHECK:         bufferization.to_tensor %[[BY]] restrict writable

// PARALLEL-LABEL: func @sum(
// PARALLEL:         affine.parallel (%{{.+}}) = (0) to (4) {
// PARALLEL-NEXT:      affine.for %{{.+}} = 0 to 6 {
// SMALL-NOT:      affine.parallel
func.func @sum(%x: tensor<1x8x6xf32>, %w: tensor<4x8x3xf32>) -> tensor<1x4x6xf32> {
  %y = kas.apply @conv1d(%x, %w) : (tensor<1x8x6xf32>, tensor<4x8x3xf32>) -> tensor<1x4x6xf32>
  return %y : tensor<1x4x6xf32>
}

// With max, every reduction says whether it had a point; means divide at their
// own level. Small elements are accumulated in f32.

kas.operator @mean_of_max(%h: 3) from [6, 5] {
  %m = kas.reduce mean : 5
  %k = kas.reduce max : 3
  %s = kas.stride %h by 2 : 3
  %x = kas.unfold %s, %k : 6, 3
  kas.yield data(%x, %m)
}

// CHECK-LABEL: func @max(
// CHECK:         affine.for %[[H:.+]] = 0 to 3 {
// CHECK:           %[[OUTER:.+]]:2 = affine.for %{{.+}} = 0 to 5 iter_args(%[[S:.+]] = %{{.+}}, %[[SE:.+]] = %{{.+}}) -> (f32, i1) {
// CHECK:             %[[LOWEST:.+]] = arith.constant 0xFF800000 : f32
// CHECK:             %[[INNER:.+]]:2 = affine.for %{{.+}} = 0 to 3 iter_args(%[[M:.+]] = %[[LOWEST]], %[[ME:.+]] = %{{.+}}) -> (f32, i1) {
// CHECK:               %[[P:.+]]:2 = affine.if #[[$POOL]]
// CHECK:                 arith.extf
// CHECK:               %[[MAX:.+]] = arith.maximumf %[[M]], %[[P]]#0
// CHECK:               arith.select %[[P]]#1, %[[MAX]], %[[M]]
// CHECK:               arith.ori %[[ME]], %[[P]]#1
// CHECK:             %[[ADD:.+]] = arith.addf %[[S]], %[[INNER]]#0
// CHECK:             arith.select %[[INNER]]#1, %[[ADD]], %[[S]]
// CHECK:           %[[FIVE:.+]] = arith.constant 5.0
// CHECK:           %[[MEAN:.+]] = arith.divf %[[OUTER]]#0, %[[FIVE]]
// CHECK:           %[[Y:.+]] = arith.select %[[OUTER]]#1, %[[MEAN]]
// CHECK:           arith.truncf %[[Y]] : f32 to f16
func.func @max(%x: tensor<6x5xf16>) -> tensor<3xf16> {
  %y = kas.apply @mean_of_max(%x) : (tensor<6x5xf16>) -> tensor<3xf16>
  return %y : tensor<3xf16>
}

// The quotient and the remainder of what was put together from them cancel; the
// rotation stays.

kas.operator @rotate(%a: 4, %b: 3) from [12, 12] {
  %ab = kas.split %a, %b : 4, 3
  %t = kas.shift %ab by -2 : 12
  %q, %r = kas.merge %t by 3 : 12
  %x = kas.split %q, %r : 4, 3
  %s = kas.reduce mean : 12
  kas.yield data(%x, %s)
}

// CHECK-LABEL: func @modulo(
// CHECK:         affine.for %[[A:.+]] = 0 to 4 {
// CHECK-NEXT:      affine.for %[[B:.+]] = 0 to 3 {
// CHECK:             affine.for %[[S:.+]] = 0 to 12
// CHECK-NEXT:          affine.load %{{.+}}[(%[[A]] * 3 + %[[B]] + 10) mod 12, %[[S]]]
func.func @modulo(%x: tensor<12x12xf32>) -> tensor<4x3xf32> {
  %y = kas.apply @rotate(%x) : (tensor<12x12xf32>) -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}

// A clipping that cannot happen is not checked, one of outputs alone is checked
// before the reductions.

kas.operator @windows(%h: 3, %k: 3, %j: 1) from [3, 2, 3] {
  %c = kas.reduce sum : 2
  %x = kas.unfold %h, %k : 3, 3
  %z = kas.reduce sum : 3
  %y = kas.unfold %z, %j : 3, 1
  kas.yield data(%x, %c, %y)
}

// CHECK-LABEL: func @guards(
// CHECK:         affine.for %{{.+}} = 0 to 3 {
// CHECK-NEXT:      affine.for %{{.+}} = 0 to 3 {
// CHECK:             affine.if
// CHECK-NEXT:          affine.for %{{.+}} = 0 to 2
// CHECK-NEXT:            affine.for %{{.+}} = 0 to 3
// CHECK-NOT:               affine.if
// CHECK:         return
func.func @guards(%x: tensor<3x2x3xf32>) -> tensor<3x3x1xf32> {
  %y = kas.apply @windows(%x) : (tensor<3x2x3xf32>) -> tensor<3x3x1xf32>
  return %y : tensor<3x3x1xf32>
}
