// RUN: kas-opt %s -kas-keep-reads -cse | FileCheck %s --check-prefix=READS
// RUN: kas-opt %s -kas-keep-reads -cse -kas-bufferize | FileCheck %s

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
