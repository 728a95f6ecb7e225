//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes that only the pipelines need.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CODEGEN_CPU_PASSES_H
#define KAS_CODEGEN_CPU_PASSES_H

#include "kas/Codegen/CPU/Strategy/Algorithm.h"
#include "mlir/Pass/Pass.h"

namespace kas::codegen {

#define GEN_PASS_DECL
#include "kas/Codegen/CPU/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "kas/Codegen/CPU/Passes.h.inc"

} // namespace kas::codegen

#endif // KAS_CODEGEN_CPU_PASSES_H
