//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The part of cuDNN that the runtime calls, declared here so that nothing of
// CUDA is needed to build. Names, types and numbers are those of "NVIDIA
// cuDNN", "API Reference", the library of graphs aside, and the same in
// versions 8 and 9.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_CUDNN_H
#define LIB_RUNTIME_CUDNN_H

#include "CudaDriver.h"

using CudnnStatus = int;
using CudnnHandle = struct cudnnContext *;
// Opaque, made and destroyed by the library.
using CudnnTensor = struct cudnnTensorStruct *;
using CudnnFilter = struct cudnnFilterStruct *;
using CudnnConvolution = struct cudnnConvolutionStruct *;
using CudnnActivation = struct cudnnActivationStruct *;

namespace kas::rt {

/// A way to compute a convolution: cudnnConvolutionFwdAlgoPerf_t.
struct CudnnChoice {
  int algorithm;
  CudnnStatus status;
  float milliseconds;
  size_t workspaceBytes;
  /// Whether sums are added in the same order each time.
  int determinism;
  int mathType;
  int reserved[3];
};

enum : CudnnStatus { CudnnSuccess = 0 };

/// cudnnDataType_t.
enum : int { CudnnFloat = 0, CudnnHalf = 2, CudnnBFloat16 = 9 };

/// cudnnTensorFormat_t.
enum : int { CudnnChannelsFirst = 0, CudnnChannelsLast = 1 };

/// cudnnConvolutionMode_t: windows are not reversed.
enum : int { CudnnCrossCorrelation = 1 };

/// cudnnMathType_t: factors of f32 may be rounded to tf32 (since sm_80); tensor
/// cores for factors as they are; neither.
enum : int { CudnnDefaultMath = 0, CudnnTensorOpMath = 1, CudnnFmaMath = 3 };

/// cudnnConvolutionFwdAlgo_t: CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
/// and how many there are.
enum : int { CudnnImplicitPrecompGemm = 1, CudnnAlgorithmCount = 8 };

/// cudnnDeterminism_t.
enum : int { CudnnDeterministic = 1 };

/// cudnnActivationMode_t.
enum : int { CudnnRelu = 1, CudnnIdentity = 5 };

/// cudnnNanPropagation_t.
enum : int { CudnnPropagateNaN = 1 };

#define KAS_CUDNN_FUNCTIONS(X)                                                 \
  X(size_t, cudnnGetVersion, ())                                               \
  X(CudnnStatus, cudnnCreate, (CudnnHandle * handle))                          \
  X(CudnnStatus, cudnnDestroy, (CudnnHandle handle))                           \
  X(CudnnStatus, cudnnSetStream, (CudnnHandle handle, CUstream stream))        \
  X(CudnnStatus, cudnnCreateTensorDescriptor, (CudnnTensor * tensor))          \
  X(CudnnStatus, cudnnDestroyTensorDescriptor, (CudnnTensor tensor))           \
  X(CudnnStatus, cudnnSetTensor4dDescriptor,                                   \
    (CudnnTensor tensor, int format, int type, int n, int c, int h, int w))    \
  X(CudnnStatus, cudnnCreateFilterDescriptor, (CudnnFilter * filter))          \
  X(CudnnStatus, cudnnDestroyFilterDescriptor, (CudnnFilter filter))           \
  X(CudnnStatus, cudnnSetFilter4dDescriptor,                                   \
    (CudnnFilter filter, int type, int format, int k, int c, int h, int w))    \
  X(CudnnStatus, cudnnCreateConvolutionDescriptor,                             \
    (CudnnConvolution * convolution))                                          \
  X(CudnnStatus, cudnnDestroyConvolutionDescriptor,                            \
    (CudnnConvolution convolution))                                            \
  X(CudnnStatus, cudnnSetConvolution2dDescriptor,                              \
    (CudnnConvolution convolution, int padHeight, int padWidth,                \
     int strideHeight, int strideWidth, int dilationHeight, int dilationWidth, \
     int mode, int computeType))                                               \
  X(CudnnStatus, cudnnSetConvolutionGroupCount,                                \
    (CudnnConvolution convolution, int count))                                 \
  X(CudnnStatus, cudnnSetConvolutionMathType,                                  \
    (CudnnConvolution convolution, int type))                                  \
  X(CudnnStatus, cudnnCreateActivationDescriptor,                              \
    (CudnnActivation * activation))                                            \
  X(CudnnStatus, cudnnDestroyActivationDescriptor,                             \
    (CudnnActivation activation))                                              \
  X(CudnnStatus, cudnnSetActivationDescriptor,                                 \
    (CudnnActivation activation, int mode, int nan, double coefficient))       \
  X(CudnnStatus, cudnnGetConvolutionForwardAlgorithm_v7,                       \
    (CudnnHandle handle, CudnnTensor x, CudnnFilter w,                         \
     CudnnConvolution convolution, CudnnTensor y, int requested, int *count,   \
     CudnnChoice *choices))                                                    \
  X(CudnnStatus, cudnnGetConvolutionForwardWorkspaceSize,                      \
    (CudnnHandle handle, CudnnTensor x, CudnnFilter w,                         \
     CudnnConvolution convolution, CudnnTensor y, int algorithm,               \
     size_t *bytes))                                                           \
  X(CudnnStatus, cudnnConvolutionForward,                                      \
    (CudnnHandle handle, const void *alpha, CudnnTensor xTensor,               \
     const void *x, CudnnFilter wFilter, const void *w,                        \
     CudnnConvolution convolution, int algorithm, void *workspace,             \
     size_t workspaceBytes, const void *beta, CudnnTensor yTensor, void *y))   \
  X(CudnnStatus, cudnnConvolutionBiasActivationForward,                        \
    (CudnnHandle handle, const void *alpha1, CudnnTensor xTensor,              \
     const void *x, CudnnFilter wFilter, const void *w,                        \
     CudnnConvolution convolution, int algorithm, void *workspace,             \
     size_t workspaceBytes, const void *alpha2, CudnnTensor zTensor,           \
     const void *z, CudnnTensor biasTensor, const void *bias,                  \
     CudnnActivation activation, CudnnTensor yTensor, void *y))

} // namespace kas::rt

#endif // LIB_RUNTIME_CUDNN_H
