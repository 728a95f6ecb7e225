// RUN: kas-opt %s -one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" | FileCheck %s
// RUN: kas-opt %s -kas-to-affine -one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" -canonicalize | FileCheck %s

// Bufferization takes kas.apply as it is, and folds away the tensors that
// -kas-to-affine leaves: either way one buffer, and no copy.

kas.operator @double_rows(%n: 8) from [4] {
  %q, %r = kas.merge %n by 2 : 8
  kas.expand %r : 2
  kas.yield data(%q)
}

// CHECK-LABEL: func @f(
// CHECK-SAME:      %[[X:.+]]: memref<4xf32
// CHECK-NOT:     memref.copy
// CHECK:         %[[Y:.+]] = memref.alloc() {alignment = 64 : i64} : memref<8xf32>
// CHECK:         affine.for %[[N:.+]] = 0 to 8 {
// CHECK:           affine.load %[[X]][%[[N]] floordiv 2]
// CHECK:           affine.store %{{.+}}, %[[Y]][%[[N]]]
// CHECK:         return %[[Y]]
func.func @f(%x: tensor<4xf32>) -> tensor<8xf32> {
  %y = kas.apply @double_rows(%x) : (tensor<4xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
