//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the objects of a manifest state about each other. The runtime and the
// libraries allocate, read and write by these numbers without looking again.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_SUPPORT_DEVICEMANIFESTCHECKS_H
#define LIB_SUPPORT_DEVICEMANIFESTCHECKS_H

#include "kas/Support/DeviceManifest.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace kas {

/// Bytes of an element, 0 for a type that is not known.
uint64_t getElementBytes(llvm::StringRef dtype);

/// Whether the matrices of the product that `kernel` has are within its
/// arguments, and their types fit; if not, `path` gets a report.
bool checkMatmul(const DeviceManifest::Kernel &kernel, llvm::json::Path path);

/// The same of its convolution.
bool checkConvolution(const DeviceManifest::Kernel &kernel,
                      llvm::json::Path path);

/// Whether buffers and launches of `function` fit each other and the kernels.
llvm::Error checkFunction(const DeviceManifest &manifest,
                          const DeviceManifest::Function &function);

} // namespace kas

#endif // LIB_SUPPORT_DEVICEMANIFESTCHECKS_H
