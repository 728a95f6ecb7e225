//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Passes on the kas dialect itself.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_TRANSFORMS_PASSES_H
#define KAS_DIALECT_KAS_TRANSFORMS_PASSES_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Schedule/StagePlan.h"
#include "mlir/Pass/Pass.h"

namespace kas {

/// How `-kas-solve-budget` chooses values: the exact solver, or the heuristic
/// of the Canvas paper.
enum class BudgetMode { Exact, Canvas };

#define GEN_PASS_DECL
#include "kas/Dialect/Kas/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "kas/Dialect/Kas/Transforms/Passes.h.inc"

} // namespace kas

#endif // KAS_DIALECT_KAS_TRANSFORMS_PASSES_H
