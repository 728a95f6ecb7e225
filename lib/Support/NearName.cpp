//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The name that a user may have meant, by edit distance.
// Used by diagnostics: "unknown option 'thread' (did you mean 'threads'?)".
//
//===----------------------------------------------------------------------===//

#include "kas/Support/NearName.h"
#include <algorithm>

using llvm::StringRef;

StringRef kas::findNearName(StringRef name, llvm::ArrayRef<StringRef> names) {
  StringRef nearest;
  // The largest distance that still counts as a typing error: one letter of
  // short names, a third of long ones. More would suggest names that have
  // nothing in common.
  unsigned most = name.size() <= 3 ? 1 : std::max<size_t>(2, name.size() / 3);
  unsigned least = most + 1;
  for (StringRef candidate : names) {
    unsigned distance = name.edit_distance(candidate,
                                           /*AllowReplacements=*/true, most);
    // Of equally near names the first one wins, so that messages are the same
    // on every machine. `edit_distance` returns `most + 1` for anything
    // farther.
    if (distance >= least)
      continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

std::string kas::suggestNearName(StringRef name,
                                 llvm::ArrayRef<StringRef> names) {
  StringRef nearest = findNearName(name, names);
  return nearest.empty() ? "" : " (did you mean '" + nearest.str() + "'?)";
}
