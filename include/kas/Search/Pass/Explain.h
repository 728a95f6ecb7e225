//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Why a space has no operator.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_PASS_EXPLAIN_H
#define KAS_SEARCH_PASS_EXPLAIN_H

#include "kas/Search/Operators/SearchProblem.h"
#include <memory>
#include <string>
#include <vector>

namespace kas::search {

/// Why `problem` has no operator: sentences such as `an operator needs 9 steps,
/// depth allows 7`. Each names one bound without which operators are found, and
/// what it would have to be at most. Found by searching variants of the
/// problem, each for `expansions` states at most, so there may be reasons that
/// are not found.
std::vector<std::string> explainEmptySpace(const SearchProblem &problem,
                                           uint64_t expansions = 20000);

} // namespace kas::search

#endif // KAS_SEARCH_PASS_EXPLAIN_H
