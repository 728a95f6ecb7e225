//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What descriptions of kernels for libraries have in common, whatever the
// kernels compute: two factors, an epilogue, and how fast a GPU multiplies.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_GPU_STRATEGY_LIBRARYPROBLEM_H
#define LIB_CODEGEN_GPU_STRATEGY_LIBRARYPROBLEM_H

#include "KernelProblem.h"

namespace kas::codegen {

/// What a library adds to sums and makes of them.
struct LibraryEpilogue {
  /// Positions among the arguments of the kernel; -1: none.
  int64_t bias = -1, residual = -1;
  bool isRectified = false;
};

/// Of an element of the factors, and of the result.
struct LibraryBytes {
  int64_t factor, result;
};

/// What the kernel of an operation computes: sums of products of two tensors of
/// one type of floats. Its arguments are the data, the weight, the inputs of
/// the epilogue and the result.
struct LibraryProblem {
  GPUKernelProblem problem;
  std::optional<Epilogue> epilogue;
  mlir::Type type, resultType;

  /// Of `op`, a concrete `kas.apply` or a `linalg.generic`, and its epilogue;
  /// nothing for other kernels: of means, of several weights or types.
  static std::optional<LibraryProblem> get(mlir::Operation *op);

  /// The epilogue, where a library has one like it: a bias, a residual and a
  /// rectifier. Dimensions of the library are in `ranges`; of these,
  /// `address` is the place of an element in the result, and `biased` the
  /// number of what the bias is added to, null where there can be none.
  std::optional<LibraryEpilogue>
  getEpilogue(mlir::AffineExpr address, mlir::AffineExpr biased,
              llvm::ArrayRef<Interval> ranges) const;

  static constexpr int64_t numFactors = 2;
  int64_t getResultArgument() const {
    return numFactors + (epilogue ? epilogue->inputs.size() : 0);
  }
  LibraryBytes getBytes() const {
    return {type.getIntOrFloatBitWidth() / 8,
            resultType.getIntOrFloatBitWidth() / 8};
  }
  /// Products of 16-bit numbers are exact.
  GPUPrecision getPrecision(GPUPrecision precision) const {
    return type.isF32() ? precision : GPUPrecision::F32;
  }
};

/// Products that a processor begins per cycle, with factors of so many bytes.
double getProductsPerCycle(GPUPrecision precision, GPUDeviceAttr device,
                           int64_t factorBytes);

/// Of memory, for each processor: 4.3 TB/s of an H200 at 1.755 GHz.
constexpr double bytesPerCycle = 18.6;

} // namespace kas::codegen

#endif // LIB_CODEGEN_GPU_STRATEGY_LIBRARYPROBLEM_H
