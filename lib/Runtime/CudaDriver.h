//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The part of CUDA's driver API that the runtime calls, declared here so that
// nothing of CUDA is needed to build. Names, types and numbers are those of the
// driver API's documentation; a suffix _v2 belongs to the symbol.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_CUDADRIVER_H
#define LIB_RUNTIME_CUDADRIVER_H

#include <cstddef>
#include <cstdint>

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st *;
using CUmodule = struct CUmod_st *;
using CUfunction = struct CUfunc_st *;
using CUstream = struct CUstream_st *;
using CUevent = struct CUevent_st *;
using CUgraph = struct CUgraph_st *;
using CUgraphExec = struct CUgraphExec_st *;

/// Opaque, and aligned for copies to the parameters of a kernel.
struct alignas(64) CUtensorMap {
  uint64_t words[16];
};

namespace kas::rt {

/// Values of CUresult that mean something to the runtime.
enum : CUresult {
  CudaSuccess = 0,
  CudaInvalidValue = 1,
  CudaOutOfMemory = 2,
  CudaDeviceUnavailable = 46,
  CudaNoDevice = 100,
  CudaInvalidDevice = 101,
  CudaInvalidImage = 200,
  CudaInvalidContext = 201,
  CudaNoBinaryForGpu = 209,
  CudaEccUncorrectable = 214,
  CudaInvalidPtx = 218,
  CudaUnsupportedPtxVersion = 222,
  CudaInvalidSource = 300,
  CudaNotFound = 500,
  CudaIllegalAddress = 700,
  CudaLaunchOutOfResources = 701,
  CudaLaunchTimeout = 702,
  CudaContextIsDestroyed = 709,
  CudaHardwareStackError = 714,
  CudaIllegalInstruction = 715,
  CudaMisalignedAddress = 716,
  CudaInvalidAddressSpace = 717,
  CudaInvalidPc = 718,
  CudaLaunchFailed = 719,
};

/// Values of CUdevice_attribute.
enum : int {
  CudaMaxThreadsPerBlock = 1,
  CudaMaxBlockDimX = 2,
  CudaMaxGridDimX = 5,
  CudaWarpSize = 10,
  CudaComputeCapabilityMajor = 75,
  CudaComputeCapabilityMinor = 76,
  CudaMaxSharedMemoryPerBlockOptin = 97,
};

/// Values of CUfunction_attribute.
enum : int {
  CudaFunctionMaxThreads = 0,
  CudaFunctionSharedBytes = 1,
  CudaFunctionMaxDynamicSharedBytes = 8,
};

/// Values of CUjit_option, of the flags of a stream and of
/// CUstreamCaptureMode.
enum : unsigned {
  CudaJitErrorLogBuffer = 5,
  CudaJitErrorLogBufferSize = 6,
  CudaStreamNonBlocking = 1,
  CudaCaptureRelaxed = 2,
};

/// Values of CUtensorMapDataType, CUtensorMapSwizzle and
/// CUtensorMapL2promotion; 0 of other enumerations is nothing.
enum : int {
  CudaTensorFloat16 = 6,
  CudaTensorBFloat16 = 9,
  CudaTensorSwizzle128 = 3,
  CudaTensorPromotion256 = 3,
};

// X(function, parameters)
#define KAS_CUDA_FUNCTIONS(X)                                                  \
  X(cuInit, (unsigned flags))                                                  \
  X(cuGetErrorName, (CUresult error, const char **name))                       \
  X(cuGetErrorString, (CUresult error, const char **text))                     \
  X(cuDeviceGetCount, (int *count))                                            \
  X(cuDeviceGet, (CUdevice * device, int index))                               \
  X(cuDeviceGetName, (char *name, int length, CUdevice device))                \
  X(cuDeviceGetAttribute, (int *value, int attribute, CUdevice device))        \
  X(cuDeviceTotalMem_v2, (size_t *bytes, CUdevice device))                     \
  X(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))          \
  X(cuDevicePrimaryCtxRelease_v2, (CUdevice device))                           \
  X(cuCtxPushCurrent_v2, (CUcontext context))                                  \
  X(cuCtxPopCurrent_v2, (CUcontext * context))                                 \
  X(cuStreamCreate, (CUstream * stream, unsigned flags))                       \
  X(cuStreamDestroy_v2, (CUstream stream))                                     \
  X(cuStreamSynchronize, (CUstream stream))                                    \
  X(cuMemAlloc_v2, (CUdeviceptr * address, size_t bytes))                      \
  X(cuMemFree_v2, (CUdeviceptr address))                                       \
  X(cuMemcpyHtoDAsync_v2,                                                      \
    (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))         \
  X(cuMemcpyDtoHAsync_v2,                                                      \
    (void *to, CUdeviceptr from, size_t bytes, CUstream stream))               \
  X(cuMemsetD32Async,                                                          \
    (CUdeviceptr to, unsigned word, size_t count, CUstream stream))            \
  X(cuModuleLoadDataEx, (CUmodule * module, const void *image, unsigned count, \
                         int *options, void **values))                         \
  X(cuModuleUnload, (CUmodule module))                                         \
  X(cuModuleGetFunction,                                                       \
    (CUfunction * function, CUmodule module, const char *name))                \
  X(cuFuncGetAttribute, (int *value, int attribute, CUfunction function))      \
  X(cuFuncSetAttribute, (CUfunction function, int attribute, int value))       \
  X(cuLaunchKernel,                                                            \
    (CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ,      \
     unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,  \
     CUstream stream, void **parameters, void **extra))                        \
  X(cuEventCreate, (CUevent * event, unsigned flags))                          \
  X(cuEventDestroy_v2, (CUevent event))                                        \
  X(cuEventRecord, (CUevent event, CUstream stream))                           \
  X(cuEventSynchronize, (CUevent event))                                       \
  X(cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent stop))

// Functions that older drivers do not have.
#define KAS_CUDA_OPTIONAL_FUNCTIONS(X)                                         \
  X(cuDriverGetVersion, (int *version))                                        \
  X(cuFuncGetParamInfo,                                                        \
    (CUfunction function, size_t index, size_t *offset, size_t *bytes))        \
  X(cuTensorMapEncodeTiled,                                                    \
    (CUtensorMap * map, int type, uint32_t rank, void *address,                \
     const uint64_t *sizes, const uint64_t *strides, const uint32_t *box,      \
     const uint32_t *steps, int interleave, int swizzle, int promotion,        \
     int fill))                                                                \
  X(cuStreamBeginCapture_v2, (CUstream stream, unsigned mode))                 \
  X(cuStreamEndCapture, (CUstream stream, CUgraph * graph))                    \
  X(cuGraphInstantiateWithFlags,                                               \
    (CUgraphExec * graph, CUgraph from, unsigned long long flags))             \
  X(cuGraphDestroy, (CUgraph graph))                                           \
  X(cuGraphLaunch, (CUgraphExec graph, CUstream stream))                       \
  X(cuGraphExecDestroy, (CUgraphExec graph))

} // namespace kas::rt

#endif // LIB_RUNTIME_CUDADRIVER_H
