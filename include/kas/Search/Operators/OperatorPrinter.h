//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The text of operators, printed by any thread.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_OPERATORS_OPERATORPRINTER_H
#define KAS_SEARCH_OPERATORS_OPERATORPRINTER_H

#include "kas/Search/Operators/OperatorGraph.h"
#include <mutex>

namespace kas::search {

/// Prints solutions of one problem as `kas.operator @candidate`, a whole file.
class OperatorPrinter {
public:
  explicit OperatorPrinter(std::shared_ptr<const SearchProblem> problem);

  std::string print(const OperatorGraph &graph);

private:
  std::shared_ptr<const SearchProblem> problem;
  /// Of its own: the one of a pass may be in use, or not allow threads.
  std::mutex mutex;
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
};

} // namespace kas::search

#endif // KAS_SEARCH_OPERATORS_OPERATORPRINTER_H
