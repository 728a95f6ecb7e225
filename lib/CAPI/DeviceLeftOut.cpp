//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C interface to functions on CUDA devices in a kas without GPUs: there
// never is a function, and compiling one says so.
//
//===----------------------------------------------------------------------===//

#include "Handles.h"
#include "kas-c/Device.h"
#include "kas/Support/Version.h"

KasDeviceFunction *kasModuleCompileForDevice(KasModule *module, const char *,
                                             const char *device,
                                             KasDeviceOptions,
                                             KasDiagnostics diagnostics) {
  kas::ModuleAccess access(module, diagnostics);
  access.report(kas::requireGPU("the device '" + llvm::Twine(device) + "'"));
  return nullptr;
}

void kasDeviceFunctionDestroy(KasDeviceFunction *) {}

size_t kasDeviceFunctionGetNumArguments(const KasDeviceFunction *) { return 0; }

size_t kasDeviceFunctionGetNumResults(const KasDeviceFunction *) { return 0; }

size_t kasDeviceFunctionGetRank(const KasDeviceFunction *, size_t) { return 0; }

const int64_t *kasDeviceFunctionGetShape(const KasDeviceFunction *, size_t) {
  return nullptr;
}

const char *kasDeviceFunctionGetName(const KasDeviceFunction *, size_t) {
  return "";
}

const char *kasDeviceFunctionGetElementType(const KasDeviceFunction *, size_t) {
  return "";
}

bool kasDeviceFunctionIsWeight(const KasDeviceFunction *, size_t) {
  return false;
}

double kasDeviceFunctionGetCompileMilliseconds(const KasDeviceFunction *) {
  return 0;
}

void kasDeviceFunctionGetLibraries(const KasDeviceFunction *, KasStream) {}

bool kasDeviceFunctionCall(KasDeviceFunction *, const uint64_t *, void *,
                           KasDiagnostics) {
  return false;
}

void kasDeviceFunctionForgetWeights(KasDeviceFunction *) {}
