//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Counts how many cache lines and pages a loop nest loads again in a given
// order of its loops.
//
//===----------------------------------------------------------------------===//

#include "LoopMisses.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace kas::schedule;

LoopMisses::LoopMisses(const StageNest &nest, llvm::ArrayRef<unsigned> order,
                       int64_t unit, size_t registerLoops)
    : nest(nest), order(order), unit(unit) {
  tensors.push_back(makeTensor(nest.data));
  tensors.push_back(makeTensor(nest.output, registerLoops));
  if (nest.hasWeight)
    tensors.push_back(makeTensor(nest.weight));
}

LoopMisses::Tensor LoopMisses::makeTensor(const StageNest::Access &access,
                                          size_t registerLoops) const {
  Tensor tensor{&access, registerLoops, {Footprint()}};
  double distinct = 1;
  llvm::SmallVector<std::pair<int64_t, int64_t>, 12> steps;
  for (unsigned loop : llvm::reverse(order)) {
    if (!access.dependsOn(loop)) {
      tensor.footprints.push_back(Footprint(tensor.footprints.back()));
      continue;
    }
    distinct *= static_cast<double>(nest.loops[loop].extent);
    std::pair<int64_t, int64_t> own(std::abs(access.strides[loop]),
                                    nest.loops[loop].extent);
    steps.insert(llvm::upper_bound(steps, own), own);
    // What lies together, with gaps of less than a unit, shares units.
    Footprint touched;
    double groups = 1;
    for (auto [stride, extent] : steps) {
      if (stride < std::max(touched.run + 1, unit))
        touched.run += stride * (extent - 1);
      else {
        groups *= static_cast<double>(extent);
        touched.stride = std::gcd(touched.stride, stride);
      }
    }
    auto perGroup =
        static_cast<double>(touched.run) / static_cast<double>(unit);
    auto all =
        static_cast<double>(access.elements) / static_cast<double>(unit) + 1;
    touched.units = std::min({groups * std::max(perGroup, 1.0), distinct, all});
    tensor.footprints.push_back(touched);
  }
  return tensor;
}

double LoopMisses::Footprint::getOccupied(int64_t unit, int64_t sets) const {
  if (stride == 0)
    return units;
  // Of `apart` sets one after the other those that a run covers are reached.
  int64_t apart = std::gcd(stride, unit * sets) / unit;
  int64_t covered = llvm::divideCeil(run, unit);
  return apart <= covered ? units : units * apart / covered;
}

/// Of one tensor, if the `fitting` innermost loops stay in the cache.
double LoopMisses::getMisses(const Tensor &tensor, size_t fitting) const {
  llvm::ArrayRef<unsigned> outer = order.drop_back(fitting);
  double repeats = 1;
  // What does not step with the next loops stays.
  bool stays = true;
  for (unsigned loop : llvm::reverse(outer)) {
    stays &= !tensor.access->dependsOn(loop);
    if (!stays)
      repeats *= static_cast<double>(nest.loops[loop].extent);
  }
  // Neighbouring iterations of the next loop may share units.
  unsigned next = outer.back();
  double shared = tensor.footprints[fitting + 1].units;
  if (tensor.access->dependsOn(next))
    shared /= static_cast<double>(nest.loops[next].extent);
  return repeats * std::min(tensor.footprints[fitting].units, shared);
}

LoopMisses::Count LoopMisses::count(double capacity, int64_t sets) const {
  // All of them share the cache. One whose units share few sets pushes its own
  // out; the others find room in the other sets.
  auto fitsAll = [&](size_t number) {
    double units = 0;
    for (const Tensor &tensor : tensors)
      if (number > tensor.registerLoops)
        units += tensor.footprints[number].units;
    return units <= capacity;
  };
  size_t fittingAll = 0;
  while (fittingAll < order.size() && fitsAll(fittingAll + 1))
    ++fittingAll;
  constexpr int64_t longRun = 32;
  Count count;
  for (const Tensor &tensor : tensors) {
    size_t fitting = tensor.registerLoops;
    while (fitting < fittingAll &&
           tensor.footprints[fitting + 1].getOccupied(unit, sets) <= capacity)
      ++fitting;
    if (fitting == order.size())
      continue;
    bool isStream = tensor.footprints[fitting + 1].run >= longRun * unit;
    (isStream ? count.streamed : count.scattered) += getMisses(tensor, fitting);
  }
  return count;
}
