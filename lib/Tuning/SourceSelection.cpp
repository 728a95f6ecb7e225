//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which tuned network promises most for another one: equation 6.1 of Gibson,
// "Across-stack optimization of deep learning inference".
// The score of a source is the sum over classes c of P(c)^2 * sqrt(W(c)): P(c)
// the share of c in the time of the target, W(c) how many kernels of c the
// source has tuned. Classes that matter count more, and many kernels of one
// class help less and less.
//
//===----------------------------------------------------------------------===//

#include "kas/Tuning/SourceSelection.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace kas;
using namespace kas::tuning;

/// Classes that the source has never tuned add nothing; so does the share of
/// kernels outside of all classes.
double kas::tuning::getSourceScore(const NetworkProfile &target,
                                   const NetworkProfile &source) {
  double score = 0;
  for (const KernelClassProfile &wanted : target.classes)
    for (const KernelClassProfile &tuned : source.classes)
      if (tuned.name == wanted.name)
        score += wanted.share * wanted.share *
                 std::sqrt(static_cast<double>(tuned.kernels));
  return score;
}

llvm::SmallVector<RankedSource>
kas::tuning::rankSources(const NetworkProfile &target,
                         llvm::ArrayRef<NetworkProfile> sources) {
  llvm::SmallVector<RankedSource> ranked;
  // Positions are those of `sources`, as the caller knows them by.
  for (auto [index, source] : llvm::enumerate(sources))
    // A network is no source for itself.
    if (source.name != target.name)
      ranked.push_back(
          {static_cast<unsigned>(index), getSourceScore(target, source)});
  llvm::sort(ranked, [](const RankedSource &a, const RankedSource &b) {
    // Ties by position: the same ranking each time.
    return a.score != b.score ? a.score > b.score : a.index < b.index;
  });
  return ranked;
}
