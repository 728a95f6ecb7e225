// RUN: kas-opt %s -kas-attach-cpu-target=cpu=x86-64-v4 -kas-bufferize -kas-pack-contractions='threads=1 prepacked=true' -kas-prepack-weights \
// RUN:   | FileCheck %s
// RUN: kas-opt %s -kas-attach-cpu-target=cpu=x86-64-v4 -kas-bufferize -kas-pack-contractions='threads=1' | FileCheck %s --check-prefix=INLINE
// RUN: kas-opt %s -kas-cpu-pipeline='cpu=x86-64-v4 threads=1 prepack-weights=true' | FileCheck %s --check-prefix=PIPELINE
// RUN: kas-opt %s -kas-attach-cpu-target=cpu=x86-64-v4 -kas-bufferize -kas-pack-contractions='threads=1 prepacked=true' \
// RUN:   --remarks-filter=kas-panels -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: remark: [Passed] RowVectors | Category:kas-panels | balanced=false, columnGroups=1, lanes=16, padded=false, registerColumns=14, registerVectors=2, schedule="#kas_cpu.schedule<strategy = row_vectors, columns = 14, vectors = 2>", stepParts=1, weightsCombined=false

// The copy of the weights in the order of the register tiles is made by a function of its own.
//
// CHECK-LABEL: func.func @layer_prepack(
// CHECK-SAME:    %[[W:.*]]: memref<32x16x3x3xf32>, %[[PACKED:.*]]: memref<18432xi8>)
// CHECK:         memref.view %[[PACKED]]
// CHECK:         scf.for
// CHECK:           memref.load
// CHECK:           memref.store
// CHECK:         return
// CHECK:       func.func @layer_prepacked_elements() -> i64
// CHECK:         arith.constant 4608 : i64
// CHECK:       func.func @layer(
// CHECK-SAME:    %{{.*}}: memref<1x16x9x9xf32>, %{{.*}}: memref<32x16x3x3xf32>, %{{.*}}: memref<1x32x7x7xf32>, %[[PACKED:.*]]: memref<18432xi8>)
// CHECK-NOT:     memref.alloc
// CHECK:         memref.view %[[PACKED]]
// CHECK:         vector.load %{{.*}} : memref<4608xf32>
// CHECK:         vector.fma
//
// INLINE-NOT:  _prepare
//
// PIPELINE-DAG: llvm.func @layer_prepack(
// PIPELINE-DAG: llvm.func @layer_prepacked_elements() -> i64
// PIPELINE-DAG: llvm.func @layer(
func.func @layer(%x: tensor<1x16x9x9xf32>, %w: tensor<32x16x3x3xf32>) -> tensor<1x32x7x7xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x32x7x7xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x32x7x7xf32>) -> tensor<1x32x7x7xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x16x9x9xf32>, tensor<32x16x3x3xf32>)
      outs(%init : tensor<1x32x7x7xf32>) -> tensor<1x32x7x7xf32>
  return %y : tensor<1x32x7x7xf32>
}

// What depends on the data stays: the second product's weight is computed from it.
//
// CHECK-LABEL: func.func @from_data(
// CHECK-NOT:   func.func
func.func @from_data(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
  %y = linalg.matmul ins(%x, %x : tensor<64x64xf32>, tensor<64x64xf32>) outs(%init : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// A sum of all weights is stored after its loop, which therefore stays.
//
// CHECK-LABEL: func.func @sum_of_weights(
// CHECK:         scf.for
// CHECK:         memref.store
// CHECK-NOT:   func.func
func.func @sum_of_weights(%x: memref<4xf32>, %w: memref<25xf32>, %y: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c25 = arith.constant 25 : index
  %zero = arith.constant 0.0 : f32
  %packed = memref.alloc() : memref<1xf32>
  %sum = scf.for %i = %c0 to %c25 step %c1 iter_args(%old = %zero) -> f32 {
    %v = memref.load %w[%i] : memref<25xf32>
    %new = arith.addf %old, %v : f32
    scf.yield %new : f32
  }
  memref.store %sum, %packed[%c0] : memref<1xf32>
  %s = memref.load %packed[%c0] : memref<1xf32>
  memref.store %s, %y[%c0] : memref<4xf32>
  return
}

// What weights alone are made to is a weight, too.
//
// CHECK-LABEL: func.func @product_of_weights_prepack(
// CHECK-SAME:    memref<64x48xf32>, %{{.*}}: memref<48x64xf32>, %[[PACKED:.*]]: memref<{{[0-9]+}}xi8>)
// CHECK:         %[[AB:.*]] = memref.view %[[PACKED]][%{{.*}}][] : memref<{{[0-9]+}}xi8> to memref<64x64xf32>
// CHECK-NOT:     linalg.fill
// CHECK:         vector.fma
// CHECK:         return
// CHECK:       func.func @product_of_weights(
// CHECK-NOT:     linalg.fill
// CHECK:         return
func.func @product_of_weights(%x: tensor<64x64xf32>, %a: tensor<64x48xf32>, %b: tensor<48x64xf32>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty_ab = tensor.empty() : tensor<64x64xf32>
  %init_ab = linalg.fill ins(%zero : f32) outs(%empty_ab : tensor<64x64xf32>) -> tensor<64x64xf32>
  %ab = linalg.matmul ins(%a, %b : tensor<64x48xf32>, tensor<48x64xf32>) outs(%init_ab : tensor<64x64xf32>) -> tensor<64x64xf32>
  %empty = tensor.empty() : tensor<64x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
  %y = linalg.matmul ins(%x, %ab : tensor<64x64xf32>, tensor<64x64xf32>) outs(%init : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// So is the largest one of each channel, by which bytes of weights are scaled, also where data of its shape has the
// same tensor to begin with.
//
// CHECK-LABEL: func.func @scaled_weights_prepack(
// CHECK:         linalg.reduce { arith.maximumf }
// CHECK:         linalg.div
// CHECK:       func.func @scaled_weights(
// CHECK:         linalg.exp
// CHECK-NOT:     linalg.reduce
// CHECK-NOT:     linalg.div
// CHECK:         return
func.func @scaled_weights(%x: tensor<8xf32>, %w: tensor<8x9xf32>, %v: tensor<8xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8xf32>
  %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  %log = linalg.log ins(%exp : tensor<8xf32>) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  %most = linalg.reduce { arith.maximumf } ins(%w : tensor<8x9xf32>) outs(%init : tensor<8xf32>) dimensions = [1]
  %scaled = linalg.div ins(%v, %most : tensor<8xf32>, tensor<8xf32>) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  %y = linalg.mul ins(%log, %scaled : tensor<8xf32>, tensor<8xf32>) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
