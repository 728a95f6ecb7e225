//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which kas this is: its version, for the --version of every tool, and its
// optional components.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SUPPORT_VERSION_H
#define KAS_SUPPORT_VERSION_H

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

namespace kas {

/// The version of the project, e.g. "0.1.0".
const char *getVersion();

/// Lets `--version` print the version of kas beside that of LLVM, and which
/// optional components were built in. Call it before the command line is
/// parsed.
void addVersionPrinter();

/// The error that says what is missing where `what` (an option, a suite) needs
/// GPUs and they were left out of this build; success where they are built in.
llvm::Error requireGPU(const llvm::Twine &what);

} // namespace kas

#endif // KAS_SUPPORT_VERSION_H
