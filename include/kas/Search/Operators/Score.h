//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a search says about an operator, as attributes of it.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_OPERATORS_SCORE_H
#define KAS_SEARCH_OPERATORS_SCORE_H

#include "kas/Search/Core/Evaluator.h"
#include "mlir/IR/Operation.h"

namespace kas::search {

/// Sets `kas.score` (a dictionary of `metrics`, counts as integers),
/// `kas.origin` (the name of the space) and, when the search has a database,
/// `kas.candidate` (its number there).
void setScore(mlir::Operation *op, const Metrics &metrics,
              llvm::StringRef space,
              std::optional<uint64_t> candidate = std::nullopt);

} // namespace kas::search

#endif // KAS_SEARCH_OPERATORS_SCORE_H
