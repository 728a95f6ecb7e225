//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks what a caller says that a kernel computes, whatever the back end.
//
//===----------------------------------------------------------------------===//

#include "Device.h"

using namespace kas::rt;

Status kas::rt::checkMatmul(const KasRtKernelImpl &kernel,
                            const KasRtMatmul &matmul) {
  auto fail = [&](const std::string &what, uint64_t got) {
    return invalidArgument("expected " + what + " for kernel '" + kernel.name +
                           "', got " + std::to_string(got));
  };
  for (uint64_t size :
       {matmul.batches, matmul.rows, matmul.columns, matmul.steps})
    if (size == 0 || size > INT32_MAX)
      return fail("sizes of a product from 1 to 2147483647", size);
  for (const KasRtMatrix *matrix :
       {&matmul.left, &matmul.right, &matmul.result}) {
    if (matrix->argument >= kernel.bufferCount)
      return fail("matrices in " + std::to_string(kernel.bufferCount) +
                      " buffers",
                  matrix->argument);
    if (matrix->strides[2] != 1 &&
        (matrix == &matmul.result || matrix->strides[1] != 1))
      return fail("neighbours along a dimension of each matrix",
                  matrix->strides[2]);
  }
  for (int32_t argument : {matmul.bias, matmul.residual})
    if (argument >= 0 && static_cast<uint32_t>(argument) >= kernel.bufferCount)
      return fail("a bias and a residual in " +
                      std::to_string(kernel.bufferCount) + " buffers",
                  argument);
  for (KasRtElement type : {matmul.factorType, matmul.resultType})
    if (type != KAS_RT_F32 && type != KAS_RT_F16 && type != KAS_RT_BF16)
      return fail("matrices of F32, F16 or BF16", type);
  return {};
}
