//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass that searches for operators.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_GRAPHSEARCH_PASSES_H
#define KAS_GRAPHSEARCH_PASSES_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/Pass/Pass.h"

namespace kas {

#define GEN_PASS_DECL
#include "kas/GraphSearch/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "kas/GraphSearch/Passes.h.inc"

} // namespace kas

#endif // KAS_GRAPHSEARCH_PASSES_H
