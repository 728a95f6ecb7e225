//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Properties that the limits of a space exclude.
//
// Simple necessary conditions, to report a contradiction before a search that
// would be empty.
//
//===----------------------------------------------------------------------===//

#include "GraphProperties.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace kas;
using namespace kas::search;

/// As the user wrote it.
static std::string formatWindows(const SearchProblem &problem) {
  return "limit 'sees' = [" +
         llvm::join(llvm::map_range(problem.limits.sees,
                                    [&](const std::optional<Size> &size) {
                                      return size ? toString(*size,
                                                             problem.symbols)
                                                  : "*";
                                    }),
                    ", ") +
         "]";
}

/// The messages name the limit that is required first.
std::optional<std::string>
kas::search::findImpossibleProperty(const SearchProblem &problem) {
  const SpaceLimits &limits = problem.limits;
  if (!limits.hasProperties())
    return std::nullopt;
  // The signature alone decides; no state is made.
  GraphSpace space(std::make_shared<const SearchProblem>(problem), {});
  const GraphProperties &properties = *space.properties;
  if (properties.seesSeveral() && limits.reduce == 0)
    return "requires limit 'reduce' >= 1 for " + formatWindows(problem) +
           ", got 0";
  if (properties.getNumUnfolded() > 0 && limits.unfold == 0 &&
      limits.merge == 0)
    return "requires limit 'unfold' or 'merge' >= 1 for " +
           formatWindows(problem) + ", got 0";
  if (properties.getNumUnfolded() > 0 && limits.depth < 2)
    return "requires limit 'depth' >= 2 for " + formatWindows(problem) +
           ", got " + std::to_string(limits.depth);
  if (limits.reaches && properties.reachesSeveral() && limits.reduce == 0 &&
      limits.split == 0)
    return "requires limit 'reduce' or 'split' >= 1 for limit 'reaches' = " +
           std::to_string(limits.reaches) + ", got 0";
  return std::nullopt;
}
