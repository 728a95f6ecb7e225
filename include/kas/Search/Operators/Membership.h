//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which operator of a search problem an operator is.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_OPERATORS_MEMBERSHIP_H
#define KAS_SEARCH_OPERATORS_MEMBERSHIP_H

#include "kas/Search/Operators/SearchProblem.h"
#include <memory>
#include <string>
#include <vector>

namespace kas::search {

/// What `getMembership` finds.
struct Membership {
  /// The key of the solution that is the same operator, if there is one.
  /// Nothing when a reason shows before that there is none.
  std::optional<uint64_t> key;
  /// The bounds of the problem that the operator is not within, such as `it has
  /// 3 weights, the limit 'weights' is 2`. Steps are counted as they are
  /// written: another way to write the operator may have fewer.
  std::vector<std::string> reasons;
};

/// Looks for `op`, which must be valid, among the solutions of `problem`, by
/// its key (`OperatorGraph::hash`). Primary symbols are matched by where they
/// are in the signature, all others by name. A key without reasons is no proof
/// that the search lists the operator: not all limits are looked at.
Membership getMembership(std::shared_ptr<const SearchProblem> problem,
                         OperatorOp op);

} // namespace kas::search

#endif // KAS_SEARCH_OPERATORS_MEMBERSHIP_H
