//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How the tensors of a nest step with its loops.
//
//===----------------------------------------------------------------------===//

#include "kas/Schedule/StageNest.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas::schedule;

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

/// Where an index is no linear function of a loop, it steps as its dimension.
static StageNest::Access getAccess(const LoopNest::Tensor &tensor,
                                   llvm::ArrayRef<unsigned> loops) {
  StageNest::Access access;
  for (auto [index, size] : llvm::zip_equal(llvm::reverse(tensor.indices),
                                            llvm::reverse(tensor.shape))) {
    for (auto [place, loop] : llvm::enumerate(loops)) {
      std::optional<int64_t> step = index.getCoefficient(loop);
      access.strides[place] += access.elements * step.value_or(1);
      access.opaque |= StageNest::LoopSet(!step) << place;
    }
    access.elements *= size;
  }
  return access;
}

StageNest StageNest::get(const LoopNest &nest) {
  StageNest result;
  llvm::SmallVector<unsigned> loops;
  for (auto [number, loop] : llvm::enumerate(nest.loops))
    if (loop.extent != 1 && loops.size() < maxLoops) {
      loops.push_back(number);
      result.loops.push_back(loop);
    }
  result.output = getAccess(nest.output, loops);
  result.data = getAccess(nest.inputs.front(), loops);
  result.hasWeight = nest.inputs.size() > 1;
  // Weights that are multiplied before have the loops of all of them.
  for (const LoopNest::Tensor &input : llvm::drop_begin(nest.inputs)) {
    Access own = getAccess(input, loops);
    result.weight.opaque |= own.opaque;
    for (unsigned loop = 0; loop < loops.size(); ++loop)
      if (own.strides[loop])
        result.weight.strides[loop] = own.strides[loop];
  }
  result.weight.elements =
      result.getExtent(result.weight.getLoops(loops.size()));
  return result;
}
