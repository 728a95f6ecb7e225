//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CODEGEN_GPU_MANIFEST_H
#define KAS_CODEGEN_GPU_MANIFEST_H

#include "kas/Support/DeviceManifest.h"
#include "mlir/IR/BuiltinOps.h"

namespace kas::codegen {

/// Reads the manifest off a module of functions on buffers, as
/// `buildGPUFrontHalf` makes them. Reports what is not a launch.
mlir::FailureOr<DeviceManifest>
getDeviceManifest(mlir::ModuleOp module, DeviceManifest::Target target);

} // namespace kas::codegen

#endif // KAS_CODEGEN_GPU_MANIFEST_H
