//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Former names of options of passes and pipelines, which are read for one
// release (docs/reference/stability.md).
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SUPPORT_FORMERNAMES_H
#define KAS_SUPPORT_FORMERNAMES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace kas {

/// An option that has another name now.
struct FormerName {
  llvm::StringLiteral former, current;
};

/// Options as text, with their current names.
struct CurrentOptions {
  std::string text;
  /// To be added to errors of the options; empty without former names.
  std::string note;
};

/// `options`, as in `a=1 b=2`, with the current names in place of former ones.
CurrentOptions renameFormerOptions(llvm::StringRef options,
                                   llvm::ArrayRef<FormerName> names);

} // namespace kas

#endif // KAS_SUPPORT_FORMERNAMES_H
