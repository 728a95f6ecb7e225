//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C interface to functions on CUDA devices, on tensors in the caller's
// memory there and in the caller's stream. In a kas without GPUs
// (KAS_ENABLE_GPU=OFF) compiling fails and says so.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_C_DEVICE_H
#define KAS_C_DEVICE_H

#include "kas-c/Kas.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A function whose kernels are loaded on a device.
typedef struct KasDeviceFunction KasDeviceFunction;

typedef struct KasDeviceOptions {
  /// What factors of products may be rounded to: `f32` (nothing is), `tf32`,
  /// `f16` or `bf16`. Where all tensors are of f16 or of bf16 `f32` stands for
  /// that type, as nothing is left to round.
  const char *precision;
  /// Whether cuBLASLt and cuDNN may compute what they are expected to be faster
  /// for. Where one cannot be opened the function is compiled again without it.
  bool useLibraries;
} KasDeviceOptions;

/// Compiles a `func.func` on tensors of f32, f16 or bf16 of static shape for
/// `cuda` or `cuda:INDEX` and loads it there; the device stays open as long as
/// there are functions on it. Arguments but the first and those with the
/// attribute `kas.data` are weights. Null when it fails: errors name the
/// device, its architecture and what would help.
KasDeviceFunction *kasModuleCompileForDevice(KasModule *module,
                                             const char *function,
                                             const char *device,
                                             KasDeviceOptions options,
                                             KasDiagnostics diagnostics);

/// Not while a call runs; waits for what calls have started.
void kasDeviceFunctionDestroy(KasDeviceFunction *function);

/// Tensors, names and types as of a KasFunction; all live as long as the
/// function.
size_t kasDeviceFunctionGetNumArguments(const KasDeviceFunction *function);
size_t kasDeviceFunctionGetNumResults(const KasDeviceFunction *function);
size_t kasDeviceFunctionGetRank(const KasDeviceFunction *function,
                                size_t tensor);
const int64_t *kasDeviceFunctionGetShape(const KasDeviceFunction *function,
                                         size_t tensor);
const char *kasDeviceFunctionGetName(const KasDeviceFunction *function,
                                     size_t tensor);
const char *kasDeviceFunctionGetElementType(const KasDeviceFunction *function,
                                            size_t tensor);
/// Whether an argument is a weight.
bool kasDeviceFunctionIsWeight(const KasDeviceFunction *function,
                               size_t tensor);
double
kasDeviceFunctionGetCompileMilliseconds(const KasDeviceFunction *function);

/// What computes each launch, one on a line, as kasRtKernelGetLibrary says.
void kasDeviceFunctionGetLibraries(const KasDeviceFunction *function,
                                   KasStream output);

/// Starts the function in `stream`, a CUstream or cudaStream_t in the primary
/// context of the device (null: CUDA's default stream) that lives until a call
/// in another one: it runs after what was started there before, and before what
/// is started next. `addresses` has one for each argument and each result, of
/// dense, row-major elements on the device, a multiple of 16. Returns before it
/// is done, unless it has assertions. Weights are prepacked by the first call,
/// and again where their addresses are others. False with an error.
bool kasDeviceFunctionCall(KasDeviceFunction *function,
                           const uint64_t *addresses, void *stream,
                           KasDiagnostics diagnostics);

/// Weights have changed where they are: the next call prepacks them again.
void kasDeviceFunctionForgetWeights(KasDeviceFunction *function);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // KAS_C_DEVICE_H
