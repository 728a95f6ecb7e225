// Elements of any type, in a header and in a module that is lowered; what C has no type for are its bits.
// RUN: kas-opt %s -kas-cpu-pipeline='threads=1' -o %t.mlir
// RUN: kas-translate -kas-to-c-header %s --kas-lowered=%t.mlir | FileCheck %s

// CHECK: #include <stdint.h>
// CHECK: arg2: uint16_t[4], bits of bf16
// CHECK: arg3: uint16_t[4], bits of f16
// CHECK: result1: uint8_t[4], each 0 or 1
// CHECK: const char *types(const int64_t *arg0, const uint8_t *arg1, const uint16_t *arg2, const uint16_t *arg3, const uint8_t *arg4, const double *arg5, uint32_t *result0, uint8_t *result1, float *result2);
func.func @types(%a: tensor<4xi64>, %b: tensor<4xi1>, %c: tensor<4xbf16>, %d: tensor<4xf16>, %e: tensor<4xi8> {kas.unsigned}, %f: tensor<4xf64>)
    -> (tensor<4xi32> {kas.unsigned}, tensor<4xi1>, tensor<4xf32>) {
  %0 = arith.trunci %a : tensor<4xi64> to tensor<4xi32>
  %1 = arith.extf %c : tensor<4xbf16> to tensor<4xf32>
  return %0, %b, %1 : tensor<4xi32>, tensor<4xi1>, tensor<4xf32>
}
