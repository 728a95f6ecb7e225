//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The symbols of image kernels with G dividing C, as the tests of the tensor
// level's solvers use them.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_UNITTESTS_SOLVER_KERNELSYMBOLS_H
#define KAS_UNITTESTS_SOLVER_KERNELSYMBOLS_H

#include "kas/Solver/SizeRules.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace kas {

struct KernelSymbols {
  KernelSymbols() {
    for (const char *name : {"C", "G", "KH", "KW", "H", "W", "x1", "x2", "x3"})
      llvm::cantFail(symbols.add(name, SymbolKind::Primary));
    rules.numSymbols = symbols.size();
    rules.variables = {6, 7, 8};
    rules.facts = {{size("G"), 0}};
  }

  Size size(llvm::StringRef text) const {
    // Not cantFail: without assertions an error would be undefined behaviour.
    llvm::Expected<Size> size = parseSize(text, symbols);
    if (!size)
      llvm::report_fatal_error(size.takeError());
    return *size;
  }

  /// Sizes separated by commas.
  llvm::SmallVector<Size, 6> sizes(llvm::StringRef text) const {
    llvm::SmallVector<Size, 6> result;
    for (llvm::StringRef part : llvm::split(text, ","))
      if (!part.trim().empty())
        result.push_back(size(part.trim()));
    return result;
  }

  llvm::SmallVector<Size> sorted(llvm::StringRef text) const {
    llvm::SmallVector<Size> result(sizes(text));
    llvm::sort(result);
    return result;
  }

  std::string text(const Size &size) const { return toString(size, symbols); }

  SymbolSet symbols;
  solver::SizeRules rules;
};

} // namespace kas

#endif // KAS_UNITTESTS_SOLVER_KERNELSYMBOLS_H
