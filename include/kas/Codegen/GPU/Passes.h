//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes from operators to kernels for GPUs.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CODEGEN_GPU_PASSES_H
#define KAS_CODEGEN_GPU_PASSES_H

#include "kas/Codegen/GPU/Strategy/Options.h"
#include "mlir/Pass/Pass.h"

namespace kas::codegen {

#define GEN_PASS_DECL
#include "kas/Codegen/GPU/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "kas/Codegen/GPU/Passes.h.inc"

} // namespace kas::codegen

#endif // KAS_CODEGEN_GPU_PASSES_H
