//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a misspelled name was meant to be, for diagnostics.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SUPPORT_NEARNAME_H
#define KAS_SUPPORT_NEARNAME_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace kas {

/// The one of `names` with the fewest edits to `name`, the first of several;
/// empty where all need more edits than a third of its letters, at least 2 (two
/// letters changed places), or 1 for names of up to 3.
llvm::StringRef findNearName(llvm::StringRef name,
                             llvm::ArrayRef<llvm::StringRef> names);

/// ` (did you mean 'conv2d'?)`, or nothing.
std::string suggestNearName(llvm::StringRef name,
                            llvm::ArrayRef<llvm::StringRef> names);

} // namespace kas

#endif // KAS_SUPPORT_NEARNAME_H
