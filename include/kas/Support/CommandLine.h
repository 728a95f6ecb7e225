//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Command lines of tools that define their own options and nothing else.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SUPPORT_COMMANDLINE_H
#define KAS_SUPPORT_COMMANDLINE_H

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/CommandLine.h"

namespace kas {

/// Forgets the options that shared libraries have registered, but for --help
/// and --version. LLVM's own ones (`threads`, `time`, ...) would clash with a
/// tool's option of the same name. Call it before the tool's options are made.
inline void removeLibraryOptions() {
  // Collected first: removing changes the map. An option may have two names.
  llvm::SmallPtrSet<llvm::cl::Option *, 32> options;
  for (auto &[name, option] : llvm::cl::getRegisteredOptions())
    if (!name.starts_with("help") && name != "version")
      options.insert(option);
  for (llvm::cl::Option *option : options)
    option->removeArgument();
}

} // namespace kas

#endif // KAS_SUPPORT_COMMANDLINE_H
