// RUN: kas-opt %s -kas-decompose | FileCheck %s

// CHECK-LABEL: func.func @elementwise(
// CHECK-NOT:     arith.addf %{{.*}} : tensor
// CHECK:         linalg.generic
// CHECK:           arith.addf %{{.*}} : f32
// CHECK:         linalg.generic
// CHECK:           math.exp %{{.*}} : f32
func.func @elementwise(%x: tensor<4x?xf32>, %y: tensor<4x?xf32>) -> tensor<4x?xf32> {
  %0 = arith.addf %x, %y : tensor<4x?xf32>
  %1 = math.exp %0 : tensor<4x?xf32>
  return %1 : tensor<4x?xf32>
}

// CHECK-LABEL: func.func @softmax(
// CHECK-NOT:     linalg.softmax
// CHECK:         math.exp
// CHECK:         arith.divf
func.func @softmax(%x: tensor<3x?xf32>, %o: tensor<3x?xf32>) -> tensor<3x?xf32> {
  %0 = linalg.softmax dimension(1) ins(%x : tensor<3x?xf32>) outs(%o : tensor<3x?xf32>) -> tensor<3x?xf32>
  return %0 : tensor<3x?xf32>
}

// CHECK-LABEL: func.func @pack(
// CHECK-NOT:     linalg.pack
// CHECK:         tensor.expand_shape
// CHECK:         linalg.transpose
// CHECK-NOT:     linalg.unpack
// CHECK:         tensor.collapse_shape
func.func @pack(%x: tensor<8x8xf32>, %p: tensor<2x2x4x4xf32>, %o: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = linalg.pack %x inner_dims_pos = [0, 1] inner_tiles = [4, 4] into %p : tensor<8x8xf32> -> tensor<2x2x4x4xf32>
  %1 = linalg.exp ins(%0 : tensor<2x2x4x4xf32>) outs(%p : tensor<2x2x4x4xf32>) -> tensor<2x2x4x4xf32>
  %2 = linalg.unpack %1 inner_dims_pos = [0, 1] inner_tiles = [4, 4] into %o : tensor<2x2x4x4xf32> -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @gather(
// CHECK-SAME:    %[[SOURCE:.*]]: tensor<5x6xf32>, %[[INDICES:.*]]: tensor<3x1xi64>
// CHECK:         linalg.generic
// CHECK:           %[[INDEX:.*]] = tensor.extract %[[INDICES]]
// CHECK:           %[[ROW:.*]] = arith.index_cast %[[INDEX]]
// CHECK:           tensor.extract %[[SOURCE]][%[[ROW]],
func.func @gather(%x: tensor<5x6xf32>, %i: tensor<3x1xi64>) -> tensor<3x6xf32> {
  %0 = tensor.gather %x[%i] gather_dims([0]) : (tensor<5x6xf32>, tensor<3x1xi64>) -> tensor<3x6xf32>
  return %0 : tensor<3x6xf32>
}

// CHECK-LABEL: func.func @gather_kept(
// CHECK:         tensor.empty() : tensor<3x6x1xf32>
func.func @gather_kept(%x: tensor<6x5xf32>, %i: tensor<3x1xi64>) -> tensor<3x6x1xf32> {
  %0 = tensor.gather %x[%i] gather_dims([1]) : (tensor<6x5xf32>, tensor<3x1xi64>) -> tensor<3x6x1xf32>
  return %0 : tensor<3x6x1xf32>
}

// CHECK-LABEL: func.func @no_rows(
// CHECK-SAME:    tensor<5x6xf32>, %[[O:.*]]: tensor<0x6xf32>)
// CHECK-NEXT:    return %[[O]]
func.func @no_rows(%a: tensor<0x5xf32>, %b: tensor<5x6xf32>, %o: tensor<0x6xf32>) -> tensor<0x6xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<0x5xf32>, tensor<5x6xf32>) outs(%o : tensor<0x6xf32>) -> tensor<0x6xf32>
  return %0 : tensor<0x6xf32>
}

// CHECK-LABEL: func.func @sum_of_nothing(
// CHECK-SAME:    tensor<0x6xf32>, %[[O:.*]]: tensor<4x6xf32>)
// CHECK-NEXT:    return %[[O]]
func.func @sum_of_nothing(%a: tensor<4x0xf32>, %b: tensor<0x6xf32>, %o: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<4x0xf32>, tensor<0x6xf32>) outs(%o : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: func.func @tosa(
// CHECK-NOT:     tosa.
// CHECK:         linalg.conv_2d_nhwc
// CHECK-NOT:     tosa.
// CHECK:         return
func.func @tosa(%x: tensor<1x7x7x2xf32>, %w: tensor<3x3x3x2xf32>, %b: tensor<3xf32>) -> tensor<1x5x5x3xf32> {
  %z = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %0 = tosa.conv2d %x, %w, %b, %z, %z {acc_type = f32, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>}
      : (tensor<1x7x7x2xf32>, tensor<3x3x3x2xf32>, tensor<3xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x5x5x3xf32>
  %1 = tosa.tanh %0 : (tensor<1x5x5x3xf32>) -> tensor<1x5x5x3xf32>
  return %1 : tensor<1x5x5x3xf32>
}

// CHECK-LABEL: func.func @dropped_by_stride(
// CHECK:         %[[S:.*]] = tensor.extract_slice %{{.*}}[2, 0, 0] [1, 2, 1] [%{{.*}}, 2, 1] : tensor<3x4x1xf32> to tensor<1x2x1xf32>
// CHECK:         tensor.collapse_shape %[[S]] {{.*}} : tensor<1x2x1xf32> into tensor<2x1xf32>
func.func @dropped_by_stride(%x: tensor<3x4x1xf32>, %s: index) -> tensor<2x1xf32> {
  %0 = tensor.extract_slice %x[2, 0, 0] [1, 2, 1] [%s, 2, 1] : tensor<3x4x1xf32> to tensor<2x1xf32>
  return %0 : tensor<2x1xf32>
}

// CHECK-LABEL: func.func @added_by_stride(
// CHECK:         %[[S:.*]] = tensor.expand_shape %{{.*}} : tensor<?x1xf32> into tensor<?x1x1xf32>
// CHECK:         tensor.insert_slice %[[S]] into %{{.*}}[0, 1, 0] [%{{.*}}, 1, 1] [3, 1, 1] : tensor<?x1x1xf32> into tensor<7x4x1xf32>
func.func @added_by_stride(%x: tensor<?x1xf32>, %y: tensor<7x4x1xf32>, %n: index) -> tensor<7x4x1xf32> {
  %0 = tensor.insert_slice %x into %y[0, 1, 0] [%n, 1, 1] [3, 1, 1] : tensor<?x1xf32> into tensor<7x4x1xf32>
  return %0 : tensor<7x4x1xf32>
}

// CHECK-LABEL: func.func @added_in_parallel(
// CHECK:         tensor.expand_shape
// CHECK-NEXT:    scf.forall.in_parallel
func.func @added_in_parallel(%x: tensor<2x1xf32>, %y: tensor<7x4x1xf32>) -> tensor<7x4x1xf32> {
  %0 = scf.forall (%i) in (4) shared_outs(%o = %y) -> tensor<7x4x1xf32> {
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %x into %o[0, %i, 0] [2, 1, 1] [3, 1, 1] : tensor<2x1xf32> into tensor<7x4x1xf32>
    }
  }
  return %0 : tensor<7x4x1xf32>
}

// Of integers there is none.
//
// CHECK-LABEL: func.func @softmax_of_integers(
// CHECK:         linalg.softmax
func.func @softmax_of_integers(%x: tensor<4xi32>) -> tensor<4xi32> {
  %0 = linalg.softmax dimension(0) ins(%x : tensor<4xi32>) outs(%x : tensor<4xi32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}

// LLVM's translation divides by the number of elements, and knows no resource
// of i1.
//
// CHECK-LABEL: func.func @resources(
// CHECK:         arith.constant dense<> : tensor<0x3xf32>
// CHECK:         arith.constant dense<[true, false, true]> : tensor<3xi1>
// CHECK:         arith.constant dense_resource<weights> : tensor<2xf32>
func.func @resources() -> (tensor<0x3xf32>, tensor<3xi1>, tensor<2xf32>) {
  %0 = arith.constant dense_resource<empty> : tensor<0x3xf32>
  %1 = arith.constant dense_resource<bits> : tensor<3xi1>
  %2 = arith.constant dense_resource<weights> : tensor<2xf32>
  return %0, %1, %2 : tensor<0x3xf32>, tensor<3xi1>, tensor<2xf32>
}

{-#
  dialect_resources: {
    builtin: {
      empty: "0x04000000",
      bits: "0x01000000010001",
      weights: "0x040000000000803F00000040"
    }
  }
#-}
