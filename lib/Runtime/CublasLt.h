//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The part of cuBLASLt that the runtime calls, declared here so that nothing of
// CUDA is needed to build. Names, types and numbers are those of "cuBLAS",
// "Using the cuBLASLt API", and the same in versions 11 to 13.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_CUBLASLT_H
#define LIB_RUNTIME_CUBLASLT_H

#include "CudaDriver.h"

using CublasStatus = int;
using CublasHandle = struct cublasLtContext *;
// Opaque, made and destroyed by the library.
using CublasMatmulDesc = struct cublasLtMatmulDescOpaque_t *;
using CublasLayout = struct cublasLtMatrixLayoutOpaque_t *;
using CublasPreference = struct cublasLtMatmulPreferenceOpaque_t *;

namespace kas::rt {

/// Which kernel of the library computes a product: cublasLtMatmulAlgo_t.
struct CublasAlgorithm {
  uint64_t data[8];
};

/// cublasLtMatmulHeuristicResult_t.
struct CublasChoice {
  CublasAlgorithm algorithm;
  size_t workspaceBytes;
  CublasStatus state;
  float wavesCount;
  int reserved[4];
};

/// Values of cublasStatus_t that mean something to the runtime.
enum : CublasStatus { CublasSuccess = 0 };

/// Values of cublasComputeType_t.
enum : int {
  CublasCompute32F = 68,
  CublasCompute32FFast16F = 74,
  CublasCompute32FFast16BF = 75,
  CublasCompute32FFastTF32 = 77,
};

/// Values of cudaDataType_t.
enum : int { CudaReal32F = 0, CudaReal16F = 2, CudaReal16BF = 14 };

/// Values of cublasOperation_t.
enum : int32_t { CublasAsItIs = 0, CublasTransposed = 1 };

/// Values of cublasLtMatmulDescAttributes_t.
enum : int {
  CublasDescTransA = 3,
  CublasDescTransB = 4,
  CublasDescEpilogue = 7,
  CublasDescBiasPointer = 8,
};

/// Values of cublasLtEpilogue_t: bits but for the first.
enum : uint32_t {
  CublasEpilogueDefault = 1,
  CublasEpilogueRelu = 2,
  CublasEpilogueBias = 4,
};

/// Values of cublasLtMatrixLayoutAttribute_t.
enum : int { CublasLayoutBatchCount = 5, CublasLayoutBatchOffset = 6 };

/// Values of cublasLtMatmulPreferenceAttributes_t.
enum : int {
  CublasPreferenceMaxWorkspaceBytes = 1,
  CublasPreferenceReductionMask = 3,
  /// The next three are those of B, C and D.
  CublasPreferenceMinAlignmentA = 5,
};

/// Values of cublasLtReductionScheme_t: partial sums in the type of sums, in
/// the workspace.
enum : uint32_t { CublasReductionComputeType = 2 };

/// One list of functions: each is declared, loaded and checked by it.
#define KAS_CUBLASLT_FUNCTIONS(X)                                              \
  X(size_t, cublasLtGetVersion, ())                                            \
  X(CublasStatus, cublasLtCreate, (CublasHandle * handle))                     \
  X(CublasStatus, cublasLtDestroy, (CublasHandle handle))                      \
  X(CublasStatus, cublasLtMatmulDescCreate,                                    \
    (CublasMatmulDesc * desc, int computeType, int scaleType))                 \
  X(CublasStatus, cublasLtMatmulDescDestroy, (CublasMatmulDesc desc))          \
  X(CublasStatus, cublasLtMatmulDescSetAttribute,                              \
    (CublasMatmulDesc desc, int attribute, const void *value, size_t bytes))   \
  X(CublasStatus, cublasLtMatrixLayoutCreate,                                  \
    (CublasLayout * layout, int type, uint64_t rows, uint64_t columns,         \
     int64_t leading))                                                         \
  X(CublasStatus, cublasLtMatrixLayoutDestroy, (CublasLayout layout))          \
  X(CublasStatus, cublasLtMatrixLayoutSetAttribute,                            \
    (CublasLayout layout, int attribute, const void *value, size_t bytes))     \
  X(CublasStatus, cublasLtMatmulPreferenceCreate,                              \
    (CublasPreference * preference))                                           \
  X(CublasStatus, cublasLtMatmulPreferenceDestroy,                             \
    (CublasPreference preference))                                             \
  X(CublasStatus, cublasLtMatmulPreferenceSetAttribute,                        \
    (CublasPreference preference, int attribute, const void *value,            \
     size_t bytes))                                                            \
  X(CublasStatus, cublasLtMatmulAlgoGetHeuristic,                              \
    (CublasHandle handle, CublasMatmulDesc desc, CublasLayout a,               \
     CublasLayout b, CublasLayout c, CublasLayout d,                           \
     CublasPreference preference, int requested, CublasChoice *choices,        \
     int *count))                                                              \
  X(CublasStatus, cublasLtMatmul,                                              \
    (CublasHandle handle, CublasMatmulDesc desc, const void *alpha,            \
     const void *a, CublasLayout aLayout, const void *b, CublasLayout bLayout, \
     const void *beta, const void *c, CublasLayout cLayout, void *d,           \
     CublasLayout dLayout, const CublasAlgorithm *algorithm, void *workspace,  \
     size_t workspaceBytes, CUstream stream))

} // namespace kas::rt

#endif // LIB_RUNTIME_CUBLASLT_H
