//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What kernels in SPIR-V need of a device.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CODEGEN_GPU_SPIRV_H
#define KAS_CODEGEN_GPU_SPIRV_H

#include "mlir/Dialect/SPIRV/IR/SPIRVEnums.h"
#include "mlir/Support/LLVM.h"
#include <optional>

namespace kas::codegen {

/// What the device must have for `profile`; nothing for a profile that is not
/// known.
std::optional<llvm::SmallVector<mlir::spirv::Capability>>
getCapabilities(llvm::StringRef profile);

} // namespace kas::codegen

#endif // KAS_CODEGEN_GPU_SPIRV_H
