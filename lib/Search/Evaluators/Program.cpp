//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds the programs that evaluators run, and quotes words for the shell.
//
// Programs next to the running executable come first, so that a build uses its
// own.
//
//===----------------------------------------------------------------------===//

#include "Program.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace kas;
using namespace kas::search;
using llvm::createStringError;
using llvm::Expected;

Expected<std::string> kas::search::findProgram(llvm::StringRef given,
                                               llvm::StringRef name) {
  bool isPath = given.contains('/');
  // `anchor` is any address of this program: some systems find the executable
  // by it.
  if (given.empty()) {
    static int anchor;
    llvm::SmallString<128> beside(llvm::sys::path::parent_path(
        llvm::sys::fs::getMainExecutable(nullptr, &anchor)));
    llvm::sys::path::append(beside, name);
    if (llvm::sys::fs::can_execute(beside))
      return beside.str().str();
    given = name;
  }
  // With a slash it is a file; otherwise the directories of PATH are searched.
  if (isPath) {
    if (llvm::sys::fs::can_execute(given))
      return given.str();
  } else if (llvm::ErrorOr<std::string> found =
                 llvm::sys::findProgramByName(given)) {
    return *found;
  }
  return createStringError("requires a program that runs candidates, found no "
                           "executable '" +
                           given + "'");
}

/// Single quotes protect everything but themselves: `it's` becomes `'it'\''s'`.
std::string kas::search::quoteForShell(llvm::StringRef text) {
  std::string result = "'";
  for (char c : text)
    result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}
