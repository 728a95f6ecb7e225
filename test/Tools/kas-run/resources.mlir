// Constants of `dense_resource` without elements, in functions and as globals,
// end in an empty result, not in a division by their number.

// RUN: kas-run %s --function=constant | FileCheck %s
// RUN: kas-run %s --function=global | FileCheck %s
// CHECK: function {{constant|global}} on cpu

func.func @constant() -> tensor<0x3xf32> {
  %0 = arith.constant dense_resource<empty> : tensor<0x3xf32>
  return %0 : tensor<0x3xf32>
}

memref.global "private" constant @empty : memref<0x3xf32> = dense_resource<empty>
func.func @global() -> tensor<0x3xf32> {
  %0 = memref.get_global @empty : memref<0x3xf32>
  %1 = bufferization.to_tensor %0 restrict : memref<0x3xf32> to tensor<0x3xf32>
  return %1 : tensor<0x3xf32>
}

{-#
  dialect_resources: {
    builtin: {
      empty: "0x04000000"
    }
  }
#-}
