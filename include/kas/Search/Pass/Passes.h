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

#ifndef KAS_SEARCH_PASS_PASSES_H
#define KAS_SEARCH_PASS_PASSES_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Search/Core/MakeSearcher.h"
#include "mlir/Pass/Pass.h"

namespace kas::search {

#define GEN_PASS_DECL
#include "kas/Search/Pass/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "kas/Search/Pass/Passes.h.inc"

} // namespace kas::search

#endif // KAS_SEARCH_PASS_PASSES_H
