//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A search space whose rewards are all known, to compare algorithms on.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TOOLS_KASBENCH_SEARCHTABLE_H
#define KAS_TOOLS_KASBENCH_SEARCHTABLE_H

#include "kas/Search/Core/CandidateSpace.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace kas {

/// All operators of a space: their moves, in canonical order, and what is known
/// of them. The text has one line per operator, `SHARED MOVES REWARD FEATURES`:
/// how many moves it shares with the one before, the others as `kind:code`
/// joined by commas, and numbers. Lines that begin with `#` say where it is
/// from.
struct SearchTable {
  struct Row {
    search::Path path;
    double reward = 0;
    llvm::SmallVector<double, 8> features;
  };
  std::vector<Row> rows;

  static llvm::Expected<SearchTable> parse(llvm::StringRef text);
  /// The one that is part of this program.
  static llvm::StringRef getText();
  void print(llvm::raw_ostream &stream) const;
};

/// The root of a space of which `table` lists the candidates. The key of a
/// solution is the number of its row.
std::unique_ptr<search::State>
makeTabulatedState(std::shared_ptr<const SearchTable> table);

} // namespace kas

#endif // KAS_TOOLS_KASBENCH_SEARCHTABLE_H
