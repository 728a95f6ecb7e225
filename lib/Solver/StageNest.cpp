//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Extents of sets of loops of a stage.
//
//===----------------------------------------------------------------------===//

#include "kas/Solver/StageNest.h"

using namespace kas::solver;

StageNest::LoopSet StageNest::Access::getLoops(unsigned numLoops) const {
  LoopSet set = opaque;
  for (unsigned loop = 0; loop < numLoops; ++loop)
    if (strides[loop] != 0)
      set |= LoopSet(1) << loop;
  return set;
}

int64_t StageNest::getExtent(LoopSet set) const {
  int64_t extent = 1;
  for (unsigned loop = 0; loop < loops.size(); ++loop)
    if (set >> loop & 1)
      extent *= loops[loop].extent;
  return extent;
}
