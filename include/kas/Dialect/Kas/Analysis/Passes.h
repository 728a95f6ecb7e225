//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Passes that report on the kas dialect and change nothing.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_ANALYSIS_PASSES_H
#define KAS_DIALECT_KAS_ANALYSIS_PASSES_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/Pass/Pass.h"

namespace kas {

#define GEN_PASS_DECL
#include "kas/Dialect/Kas/Analysis/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "kas/Dialect/Kas/Analysis/Passes.h.inc"

} // namespace kas

#endif // KAS_DIALECT_KAS_ANALYSIS_PASSES_H
