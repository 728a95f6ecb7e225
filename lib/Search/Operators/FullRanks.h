//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The bindings at which the weights of a finished operator are full ranks.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_SEARCH_OPERATORS_FULLRANKS_H
#define LIB_SEARCH_OPERATORS_FULLRANKS_H

#include "kas/Search/Operators/OperatorGraph.h"

namespace kas::search {

/// The numbers of the bindings at which some weights with a reduction that
/// nothing else has take all values together, by W14. Coordinates that weights
/// share in another form (W8) are not known for such: a binding may be left
/// out, but none is there that should not be.
llvm::SmallVector<int64_t> getFullRankBindings(const SearchProblem &problem,
                                               const OperatorGraph &graph);

} // namespace kas::search

#endif // LIB_SEARCH_OPERATORS_FULLRANKS_H
