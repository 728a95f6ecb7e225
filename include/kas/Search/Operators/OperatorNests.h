//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The stages in which an operator of a search runs, as loop nests.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_OPERATORS_OPERATORNESTS_H
#define KAS_SEARCH_OPERATORS_OPERATORNESTS_H

#include "kas/Schedule/LoopNest.h"
#include "kas/Search/Operators/OperatorGraph.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace kas::search {

/// Describes the operators of one problem, in some microseconds for each
/// binding.
class OperatorNests {
public:
  /// Stages are the best where an element that a stage reads or writes counts
  /// as `traffic` multiply-adds (see `StagePlanOptions`).
  explicit OperatorNests(std::shared_ptr<const SearchProblem> problem,
                         uint64_t traffic = schedule::usualTraffic);

  /// Calls `use` with the number of a binding and the nests of `graph` there,
  /// those of the stages that run when the weights were prepared, in their
  /// order; for all bindings.
  void describe(
      const OperatorGraph &graph,
      llvm::function_ref<void(unsigned, llvm::ArrayRef<schedule::LoopNest>)>
          use) const;

private:
  std::shared_ptr<const SearchProblem> problem;
  uint64_t traffic;
};

} // namespace kas::search

#endif // KAS_SEARCH_OPERATORS_OPERATORNESTS_H
