//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which tuned network to take schedules from.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TUNING_SOURCESELECTION_H
#define KAS_TUNING_SOURCESELECTION_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <string>

namespace kas::tuning {

/// The kernels of one class in a network: those with the same operations,
/// whatever their sizes.
struct KernelClassProfile {
  std::string name;
  /// Distinct kernels, that is distinct sizes.
  int64_t kernels = 0;
  /// Their part of the time of the network before it is tuned, from 0 to 1.
  double share = 0;
};

struct NetworkProfile {
  std::string name;
  llvm::SmallVector<KernelClassProfile> classes;
};

/// How much tuned schedules of `source` promise for `target`: the sum, over the
/// classes of the target, of the square of the class's share times the square
/// root of the number of kernels that the source has of it (Gibson,
/// "Across-stack optimization of deep learning inference", equation 6.1). Only
/// the order of such numbers means something.
double getSourceScore(const NetworkProfile &target,
                      const NetworkProfile &source);

struct RankedSource {
  /// Position in the sources given.
  unsigned index;
  double score;
};

/// All of `sources` but the one with the name of `target`, the most promising
/// first; those that are equal stay in the order given.
llvm::SmallVector<RankedSource>
rankSources(const NetworkProfile &target,
            llvm::ArrayRef<NetworkProfile> sources);

} // namespace kas::tuning

#endif // KAS_TUNING_SOURCESELECTION_H
