// RUN: kas-opt %s -kas-keep-reads -cse | FileCheck %s --check-prefix=READS
// RUN: kas-opt %s -kas-keep-reads -cse -kas-bufferize | FileCheck %s
// RUN: kas-opt %s -kas-keep-reads -canonicalize -cse -kas-bufferize | FileCheck %s --check-prefix=FOLDED

// The second load reads the first sum although the second one, of the same empty tensor, is computed before it.
// READS-LABEL: func.func @overwritten
// READS-COUNT-2: bufferization.to_buffer
// CHECK-LABEL: func.func @overwritten
// CHECK:         linalg.generic {{.*}} outs(%[[FIRST:[^ ]*]] :
// CHECK:           arith.negf
// CHECK:         memref.load %[[FIRST]]
// CHECK:         linalg.generic
// CHECK-NOT:     outs(%[[FIRST]] :
// CHECK:           math.absf
// CHECK:         memref.load %[[FIRST]]
#id = affine_map<(i) -> (i)>
func.func @overwritten(%x: tensor<8xf32>) -> (f32, f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<8xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %n = arith.negf %in : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  %early = bufferization.to_buffer %a read_only : tensor<8xf32> to memref<8xf32>
  %0 = memref.load %early[%c0] : memref<8xf32>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %n = math.absf %in : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  %late = bufferization.to_buffer %a read_only : tensor<8xf32> to memref<8xf32>
  %1 = memref.load %late[%c1] : memref<8xf32>
  %2 = tensor.extract %b[%c1] : tensor<8xf32>
  return %0, %1, %2 : f32, f32, f32
}

// The read of what was a buffer before folds: the sum is computed elsewhere. Only read, the tensor stays writable.
// READS-LABEL: func.func @folded
// READS: bufferization.to_tensor %{{.*}} restrict :
// READS: bufferization.to_tensor %{{.*}} restrict writable :
// FOLDED-LABEL: func.func @folded
// FOLDED-SAME: %[[X:[^ ]*]]: memref<8xf32>
// FOLDED: linalg.generic
// FOLDED-NOT: outs(%[[X]] :
// FOLDED: memref.load %[[X]]
func.func @folded(%x: memref<8xf32>, %y: memref<8xf32>) -> (tensor<8xf32>, f32, f32) {
  %c0 = arith.constant 0 : index
  %t = bufferization.to_tensor %x restrict writable : memref<8xf32> to tensor<8xf32>
  %u = bufferization.to_tensor %y restrict writable : memref<8xf32> to tensor<8xf32>
  %b = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%t : tensor<8xf32>) {
  ^bb0(%out: f32):
    %n = arith.negf %out : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  %late = bufferization.to_buffer %t read_only : tensor<8xf32> to memref<8xf32>
  %0 = memref.load %late[%c0] : memref<8xf32>
  %only = bufferization.to_buffer %u read_only : tensor<8xf32> to memref<8xf32>
  %1 = memref.load %only[%c0] : memref<8xf32>
  return %b, %0, %1 : tensor<8xf32>, f32, f32
}
