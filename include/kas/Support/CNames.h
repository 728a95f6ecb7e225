//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names in generated code that C and C++ compilers accept.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SUPPORT_CNAMES_H
#define KAS_SUPPORT_CNAMES_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace kas {

/// Whether `name` looks like a name, but is a keyword of C (up to C23) or C++
/// (up to C++23), or a macro or type of headers that may be included together.
bool isCKeyword(llvm::StringRef name);

/// Whether functions and parameters may have `name` in C and in C++.
bool isCIdentifier(llvm::StringRef name);

/// `name` with an underscore in place of each character that no name has. It
/// may still be empty, begin with a digit, or be a keyword.
std::string cleanForC(llvm::StringRef name);

} // namespace kas

#endif // KAS_SUPPORT_CNAMES_H
