//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tries other layouts for a contraction: copies of the weights, or an output
// that is transposed afterwards, so that vectors run along a contiguous
// dimension.
//
//===----------------------------------------------------------------------===//

#include "Rearrangement.h"
#include "RowVectorPlan.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

SmallVector<int64_t> Rearrangement::getShape(const Contraction &contraction,
                                             ArrayRef<unsigned> loops) {
  return llvm::map_to_vector(
      loops, [&](unsigned loop) { return contraction.loops[loop].extent; });
}

Contraction Rearrangement::apply(const Contraction &contraction,
                                 ValueRange copied) const {
  Contraction result = contraction;
  // A sum of everything has no index.
  MLIRContext *context = copied.empty()
                             ? contraction.output.front().getContext()
                             : copied.front().getContext();
  auto getDims = [&](ArrayRef<unsigned> loops) {
    return llvm::map_to_vector(
        loops, [&](unsigned loop) { return getAffineDimExpr(loop, context); });
  };
  for (auto [copy, value] : llvm::zip_equal(copies, copied)) {
    Contraction::Input &input = result.inputs[copy.input];
    input.value = value;
    input.indices.clear();
    llvm::append_range(input.indices, getDims(copy.loops));
  }
  if (!outputLoops.empty()) {
    result.output.clear();
    llvm::append_range(result.output, getDims(outputLoops));
  }
  return result;
}

int64_t Rearrangement::getTime(const Contraction &contraction) const {
  // A load and a store of a single element, and what they wait for.
  constexpr int64_t elementTime = 4;
  auto count = [&](ArrayRef<unsigned> loops) {
    int64_t elements = 1;
    for (unsigned loop : loops)
      elements *= contraction.loops[loop].extent;
    return elements;
  };
  int64_t elements = outputLoops.empty() ? 0 : count(outputLoops);
  for (const Copy &copy : copies)
    if (!copy.isPrepared)
      elements += count(copy.loops);
  return elements * elementTime;
}

namespace {

/// How the address in a dense buffer steps with each loop; nothing for those
/// that it is no sum of. Where it goes around at the end of a dimension, it
/// steps as before that.
struct LoopStrides {
  LoopStrides(ArrayRef<int64_t> shape, ArrayRef<AffineExpr> indices,
              unsigned numLoops);

  bool dependsOn(unsigned loop) const {
    return !strides[loop] || *strides[loop] != 0;
  }

  SmallVector<std::optional<int64_t>> strides;
  bool isLinear = true;
};

/// Finds the loops of one contraction that vectors may run along.
class Finder {
public:
  Finder(const Contraction &contraction, MemRefType output,
         ArrayRef<bool> prepared);
  SmallVector<Rearrangement> run() const;

private:
  std::optional<unsigned> getLastLoop() const;
  SmallVector<unsigned> getColumnsLast(unsigned data) const;
  bool isSmall(unsigned number, int64_t elements) const;
  void addCopies(Rearrangement &rearrangement, unsigned data,
                 unsigned vectorLoop) const;

  const Contraction &contraction;
  ArrayRef<bool> prepared;
  unsigned numLoops;
  LoopStrides output;
  SmallVector<LoopStrides> inputs;
};

ArrayRef<int64_t> getShape(const Contraction::Input &input) {
  return cast<ShapedType>(input.value.getType()).getShape();
}

} // namespace

/// `expr` without what goes around in it.
static AffineExpr dropPeriods(AffineExpr expr) {
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return expr;
  AffineExpr left = dropPeriods(binary.getLHS());
  switch (expr.getKind()) {
  case AffineExprKind::Mod:
    return left;
  case AffineExprKind::Add:
    return left + dropPeriods(binary.getRHS());
  case AffineExprKind::Mul:
    return left * binary.getRHS();
  default:
    return expr;
  }
}

LoopStrides::LoopStrides(ArrayRef<int64_t> shape, ArrayRef<AffineExpr> indices,
                         unsigned numLoops)
    : strides(numLoops, 0) {
  int64_t size = 1;
  for (auto [expr, extent] :
       llvm::zip_equal(llvm::reverse(indices), llvm::reverse(shape))) {
    for (unsigned loop = 0; loop < numLoops; ++loop) {
      std::optional<int64_t> step = getCoefficient(expr, loop);
      isLinear &= step.has_value();
      if (!step)
        step = getCoefficient(dropPeriods(expr), loop);
      if (step && strides[loop])
        *strides[loop] += *step * size;
      else
        strides[loop] = std::nullopt;
    }
    size *= extent;
  }
}

Finder::Finder(const Contraction &contraction, MemRefType output,
               ArrayRef<bool> prepared)
    : contraction(contraction), prepared(prepared),
      numLoops(contraction.loops.size()),
      output(output.getShape(), contraction.output, numLoops) {
  for (const Contraction::Input &input : contraction.inputs)
    inputs.emplace_back(getShape(input), input.indices, numLoops);
}

/// The loop that steps along the output's last dimension.
std::optional<unsigned> Finder::getLastLoop() const {
  std::optional<unsigned> last;
  for (auto [number, loop] : llvm::enumerate(contraction.loops))
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
    if (contraction.loops[loop].isReduction ||
        contraction.loops[loop].extent == 1)
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
    together *= contraction.loops[loop].extent;
  order.append(columns);
  if (together < shortest || llvm::is_sorted(order, outside))
    return {};
  return order;
}

/// Whether a copy of an input at each call, of so many elements, takes little
/// time, and all of them exist.
bool Finder::isSmall(unsigned number, int64_t elements) const {
  constexpr int64_t leastUses = 64;
  int64_t points = 1;
  for (const Contraction::Loop &loop : contraction.loops)
    points *= loop.extent;
  const Contraction::Input &input = contraction.inputs[number];
  SmallVector<Interval> ranges = contraction.getRanges();
  return elements <= points / leastUses &&
         llvm::all_of(llvm::zip_equal(input.indices, getShape(input)),
                      [&](auto entry) {
                        auto [expr, size] = entry;
                        Interval interval = getInterval(expr, ranges);
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
    bool isPrepared = !prepared.empty() && prepared[number];
    Rearrangement::Copy copy{number, {}, isPrepared};
    for (bool isReduction : {false, true})
      for (unsigned loop = 0; loop < numLoops; ++loop)
        if (contraction.loops[loop].isReduction == isReduction &&
            loop != vectorLoop && input.dependsOn(loop))
          copy.loops.push_back(loop);
    if (input.dependsOn(vectorLoop))
      copy.loops.push_back(vectorLoop);
    int64_t elements = 1;
    for (unsigned loop : copy.loops)
      elements *= contraction.loops[loop].extent;
    if (isPrepared ? elements <= maxElements : isSmall(number, elements))
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

SmallVector<Rearrangement>
kas::codegen::getRearrangements(const Contraction &contraction,
                                MemRefType output, ArrayRef<bool> prepared) {
  return Finder(contraction, output, prepared).run();
}
