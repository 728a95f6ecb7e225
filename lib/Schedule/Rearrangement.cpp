//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tries other layouts for a contraction: copies of the weights, or an
// output that is transposed afterwards, so that vectors run along a contiguous
// dimension.
//
//===----------------------------------------------------------------------===//

#include "kas/Schedule/Rearrangement.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas::schedule;
using llvm::ArrayRef;
using llvm::SmallVector;

static int64_t getExtent(const LoopNest &nest, ArrayRef<unsigned> loops) {
  int64_t extent = 1;
  for (unsigned loop : loops)
    extent *= nest.loops[loop].extent;
  return extent;
}

LoopNest Rearrangement::apply(const LoopNest &nest) const {
  LoopNest result = nest;
  auto layOut = [&](LoopNest::Tensor &tensor, ArrayRef<unsigned> loops) {
    tensor.indices.clear();
    tensor.shape.clear();
    for (unsigned loop : loops) {
      tensor.indices.push_back(IndexExpr::getLoop(loop));
      tensor.shape.push_back(nest.loops[loop].extent);
    }
  };
  for (const Copy &copy : copies)
    layOut(result.inputs[copy.input], copy.loops);
  if (!outputLoops.empty())
    layOut(result.output, outputLoops);
  return result;
}

int64_t Rearrangement::getTime(const LoopNest &nest) const {
  // A load and a store of a single element, and what they wait for.
  constexpr int64_t elementTime = 4;
  int64_t elements = outputLoops.empty() ? 0 : getExtent(nest, outputLoops);
  for (const Copy &copy : copies)
    if (!copy.isPrepacked)
      elements += getExtent(nest, copy.loops);
  return elements * elementTime;
}

namespace {

/// How the address in a dense tensor steps with each loop; nothing for those
/// that it is no sum of. Where it goes around at the end of a dimension, it
/// steps as before that.
struct LoopStrides {
  LoopStrides(const LoopNest::Tensor &tensor, unsigned numLoops);

  bool dependsOn(unsigned loop) const {
    return !strides[loop] || *strides[loop] != 0;
  }

  SmallVector<std::optional<int64_t>, 12> strides;
  bool isLinear = true;
};

/// Finds the loops of one nest that vectors may run along.
class Finder {
public:
  explicit Finder(const LoopNest &nest)
      : nest(nest), numLoops(nest.loops.size()), output(nest.output, numLoops) {
    for (const LoopNest::Tensor &input : nest.inputs)
      inputs.emplace_back(input, numLoops);
  }

  /// What to try, the most promising first: at most one more than there are
  /// inputs. Only inputs that are prepacked, or have few elements for what is
  /// computed, are copied.
  SmallVector<Rearrangement> run() const;

private:
  std::optional<unsigned> getLastLoop() const;
  SmallVector<unsigned> getColumnsLast(unsigned data) const;
  bool isSmall(unsigned number, int64_t elements) const;
  void addCopies(Rearrangement &rearrangement, unsigned data,
                 unsigned vectorLoop) const;

  const LoopNest &nest;
  unsigned numLoops;
  LoopStrides output;
  SmallVector<LoopStrides, 3> inputs;
};

} // namespace

/// `expr` without what goes around in it.
static IndexExpr dropPeriods(const IndexExpr &expr) {
  IndexExpr result = IndexExpr::getConstant(expr.constant);
  for (const IndexTerm &term : expr.terms)
    if (term.kind == IndexTerm::Kind::Remainder)
      result.add(dropPeriods(*term.dividend), term.factor);
    else
      result.add(term, 1);
  return result;
}

LoopStrides::LoopStrides(const LoopNest::Tensor &tensor, unsigned numLoops)
    : strides(numLoops, 0) {
  int64_t size = 1;
  for (auto [expr, extent] : llvm::zip_equal(llvm::reverse(tensor.indices),
                                             llvm::reverse(tensor.shape))) {
    for (unsigned loop = 0; loop < numLoops; ++loop) {
      std::optional<int64_t> step = expr.getCoefficient(loop);
      isLinear &= step.has_value();
      if (!step)
        step = dropPeriods(expr).getCoefficient(loop);
      if (step && strides[loop])
        *strides[loop] += *step * size;
      else
        strides[loop] = std::nullopt;
    }
    size *= extent;
  }
}

/// The loop that steps along the output's last dimension.
std::optional<unsigned> Finder::getLastLoop() const {
  std::optional<unsigned> last;
  for (auto [number, loop] : llvm::enumerate(nest.loops))
    if (loop.extent > 1 && output.strides[number] == 1)
      last = number;
  return last;
}

/// The loops of the output, those that input `data` alone steps with at the
/// end, in its order; nothing where these are in that place already, or are too
/// short.
SmallVector<unsigned> Finder::getColumnsLast(unsigned data) const {
  constexpr int64_t shortest = 4;
  SmallVector<unsigned> order, columns;
  for (unsigned loop = 0; loop < numLoops; ++loop) {
    if (nest.loops[loop].isReduction || nest.loops[loop].extent == 1)
      continue;
    bool isColumn = inputs[data].dependsOn(loop) && inputs[data].strides[loop];
    for (auto [number, input] : llvm::enumerate(inputs))
      isColumn &= number == data || !input.dependsOn(loop);
    (isColumn ? columns : order).push_back(loop);
  }
  auto outside = [&](unsigned a, unsigned b) {
    return std::pair(-*output.strides[a], a) <
           std::pair(-*output.strides[b], b);
  };
  auto before = [&](unsigned a, unsigned b) {
    ArrayRef<std::optional<int64_t>> strides = inputs[data].strides;
    return std::pair(-std::abs(*strides[a]), a) <
           std::pair(-std::abs(*strides[b]), b);
  };
  llvm::sort(order, outside);
  llvm::sort(columns, before);
  int64_t together = 1;
  for (unsigned loop : columns)
    together *= nest.loops[loop].extent;
  order.append(columns);
  if (together < shortest || llvm::is_sorted(order, outside))
    return {};
  return order;
}

/// Whether a copy of an input at each call, of so many elements, takes little
/// time, and all of them exist.
bool Finder::isSmall(unsigned number, int64_t elements) const {
  constexpr int64_t leastUses = 64;
  const LoopNest::Tensor &input = nest.inputs[number];
  auto ranges = nest.getRanges();
  return elements <= nest.getNumPoints() / leastUses &&
         llvm::all_of(llvm::zip_equal(input.indices, input.shape),
                      [&](auto entry) {
                        auto [expr, size] = entry;
                        Interval interval = expr.getInterval(ranges);
                        return interval.lower >= 0 && interval.upper < size;
                      });
}

/// Copies of the inputs other than `data` that vectors along `vectorLoop` or
/// sums of loops cannot read as they are.
void Finder::addCopies(Rearrangement &rearrangement, unsigned data,
                       unsigned vectorLoop) const {
  constexpr int64_t maxElements = 1 << 24;
  for (unsigned number = 0; number < inputs.size(); ++number) {
    if (number == data)
      continue;
    const LoopStrides &input = inputs[number];
    std::optional<int64_t> step = input.strides[vectorLoop];
    if (input.isLinear && (*step == 0 || *step == 1))
      continue;
    bool isPrepacked = nest.inputs[number].isPrepacked;
    Rearrangement::Copy copy{number, {}, isPrepacked};
    for (bool isReduction : {false, true})
      for (unsigned loop = 0; loop < numLoops; ++loop)
        if (nest.loops[loop].isReduction == isReduction && loop != vectorLoop &&
            input.dependsOn(loop))
          copy.loops.push_back(loop);
    if (input.dependsOn(vectorLoop))
      copy.loops.push_back(vectorLoop);
    int64_t elements = 1;
    for (unsigned loop : copy.loops)
      elements *= nest.loops[loop].extent;
    if (isPrepacked ? elements <= maxElements : isSmall(number, elements))
      rearrangement.copies.push_back(std::move(copy));
  }
}

SmallVector<Rearrangement> Finder::run() const {
  SmallVector<Rearrangement> found;
  std::optional<unsigned> last = getLastLoop();
  // Data alone is better copied once than twice.
  if (!last || !output.isLinear || inputs.size() == 1)
    return found;
  Rearrangement copies;
  addCopies(copies, /*data=*/0, *last);
  if (!copies.empty())
    found.push_back(copies);
  for (unsigned data = 0; data < inputs.size(); ++data) {
    Rearrangement transposed;
    transposed.isOfData = data == 0;
    transposed.outputLoops = getColumnsLast(data);
    if (transposed.outputLoops.empty())
      continue;
    addCopies(transposed, data, transposed.outputLoops.back());
    found.push_back(transposed);
  }
  return found;
}

std::optional<Rearrangement> kas::schedule::chooseRearrangement(
    const LoopNest &nest, const TileTarget &target, const TileOptions &options,
    std::optional<int64_t> &time) {
  // Others are not even looked at where tiles are about as fast as they can be:
  // `ideal` is the time of the products alone, in halves of a cycle.
  int64_t ideal = nest.getNumPoints() / target.lanes *
                  target.getOperationTime(target.lanes);
  std::optional<Rearrangement> best;
  if (time && *time * 5 <= 6 * ideal)
    return best;
  for (Rearrangement &tried : Finder(nest).run()) {
    // Vectors along the weights are for what nothing else suits.
    if (!tried.isOfData && time)
      break;
    std::optional<TileChoice> tiles =
        chooseTiles(tried.apply(nest), target, options);
    if (!tiles)
      continue;
    int64_t found = tiles->time + tried.getTime(nest);
    if (time && found >= *time)
      continue;
    time = found;
    best = std::move(tried);
  }
  return best;
}

std::optional<LayoutPlan>
kas::schedule::planLayout(const LoopNest &nest, const TileTarget &target,
                          const TileOptions &options) {
  std::optional<TileChoice> tiles = chooseTiles(nest, target, options);
  std::optional<int64_t> time;
  if (tiles)
    time = tiles->time;
  LayoutPlan plan;
  plan.rearrangement = chooseRearrangement(nest, target, options, time);
  plan.nest = nest;
  if (plan.rearrangement) {
    plan.nest = plan.rearrangement->apply(nest);
    tiles = chooseTiles(plan.nest, target, options);
  }
  if (!tiles)
    return std::nullopt;
  plan.tiles = std::move(*tiles);
  return plan;
}
