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

#include "kas/Codegen/GPU/Strategy/Options.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVEnums.h"
#include "mlir/Support/LLVM.h"

namespace kas::codegen {

/// What the device must have for `profile`.
llvm::SmallVector<mlir::spirv::Capability>
getCapabilities(SPIRVProfile profile);

} // namespace kas::codegen

#endif // KAS_CODEGEN_GPU_SPIRV_H
