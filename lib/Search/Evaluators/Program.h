//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs of kas that evaluators run.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_SEARCH_EVALUATORS_PROGRAM_H
#define LIB_SEARCH_EVALUATORS_PROGRAM_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace kas::search {

/// The executable `given`, a path or a name on the path. Where it is empty:
/// `name` beside the running executable, else on the path.
llvm::Expected<std::string> findProgram(llvm::StringRef given,
                                        llvm::StringRef name);

/// `text` as one word of the shell. Safe for any text, as the argument of `sh
/// -c`.
std::string quoteForShell(llvm::StringRef text);

} // namespace kas::search

#endif // LIB_SEARCH_EVALUATORS_PROGRAM_H
