//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The version of kas, for the --version of every tool.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SUPPORT_VERSION_H
#define KAS_SUPPORT_VERSION_H

namespace kas {

/// The version of the project, e.g. "0.1.0".
const char *getVersion();

/// Lets `--version` print the version of kas beside that of LLVM. Call it
/// before the command line is parsed.
void addVersionPrinter();

} // namespace kas

#endif // KAS_SUPPORT_VERSION_H
