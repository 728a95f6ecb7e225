//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loops split where indices divide them, and the tensors of a contraction
// by what tiles read of them.
//
//===----------------------------------------------------------------------===//

#include "kas/Schedule/LoopNest.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace kas::schedule;
using llvm::ArrayRef;
using llvm::SmallVector;
using EmitReasonFn = llvm::function_ref<void(const llvm::Twine &)>;

int64_t LoopNest::Tensor::getNumElements() const {
  int64_t elements = 1;
  for (int64_t size : shape)
    elements *= size;
  return elements;
}

IndexExpr LoopNest::Tensor::getAddress() const {
  IndexExpr address;
  int64_t stride = 1;
  for (auto [index, size] :
       llvm::zip_equal(llvm::reverse(indices), llvm::reverse(shape))) {
    address.add(index, stride);
    stride *= size;
  }
  return address;
}

static SmallVector<Interval, 12> getRanges(ArrayRef<Loop> loops) {
  SmallVector<Interval, 12> ranges;
  for (const Loop &loop : loops)
    ranges.push_back({0, loop.extent - 1});
  return ranges;
}

SmallVector<Interval, 12> LoopNest::getRanges() const {
  return ::getRanges(loops);
}

int64_t LoopNest::getNumPoints() const {
  int64_t points = 1;
  for (const Loop &loop : loops)
    points *= loop.extent;
  return points;
}

//===----------------------------------------------------------------------===//
// Splitting
//===----------------------------------------------------------------------===//

/// A loop and the largest divisor B of its extent such that some index has the
/// loop `floordiv B` or `mod B`: smaller ones then divide the inner loop.
static void findSplit(const IndexExpr &expr, ArrayRef<Loop> loops,
                      std::optional<std::pair<unsigned, int64_t>> &found) {
  for (const IndexTerm &term : expr.terms) {
    if (!term.dividend)
      continue;
    const IndexExpr &dividend = *term.dividend;
    bool isLoop = dividend.constant == 0 && dividend.terms.size() == 1 &&
                  !dividend.terms.front().dividend &&
                  dividend.terms.front().factor == 1;
    if (!isLoop) {
      findSplit(dividend, loops, found);
      continue;
    }
    unsigned loop = dividend.terms.front().loop;
    if ((!found || term.divisor > found->second) &&
        loops[loop].extent % term.divisor == 0)
      found = {loop, term.divisor};
  }
}

/// Calls `visit` with each expression of `nest`.
template <typename Visit>
static void forEachIndex(LoopNest &nest, Visit visit) {
  llvm::for_each(nest.output.indices, visit);
  for (LoopNest::Tensor &input : nest.inputs)
    llvm::for_each(input.indices, visit);
  for (Guard &guard : nest.guards)
    visit(guard.expr);
}

void LoopNest::splitLoops() {
  while (true) {
    std::optional<std::pair<unsigned, int64_t>> split;
    forEachIndex(*this,
                 [&](IndexExpr &expr) { findSplit(expr, loops, split); });
    if (!split)
      return;
    auto [loop, divisor] = *split;
    SmallVector<IndexExpr, 12> replacements;
    for (unsigned i = 0; i < loops.size(); ++i)
      replacements.push_back(IndexExpr::getLoop(i + (i > loop)));
    replacements[loop] = IndexExpr();
    replacements[loop].add(IndexExpr::getLoop(loop), divisor);
    replacements[loop].add(IndexExpr::getLoop(loop + 1), 1);
    Loop inner = loops[loop];
    inner.extent = divisor;
    loops[loop].extent /= divisor;
    loops.insert(loops.begin() + loop + 1, inner);
    SmallVector<Interval, 12> ranges = getRanges();
    forEachIndex(*this, [&](IndexExpr &expr) {
      expr = expr.replaceLoops(replacements).simplify(ranges);
    });
  }
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

static std::optional<StridedTensor> getStrided(const LoopNest::Tensor &tensor,
                                               unsigned numLoops) {
  IndexExpr address = tensor.getAddress();
  if (!address.isLinear())
    return std::nullopt;
  StridedTensor strided;
  strided.strides.assign(numLoops, 0);
  for (const IndexTerm &term : address.terms)
    strided.strides[term.loop] += term.factor;
  strided.size = tensor.getNumElements();
  strided.isPrepacked = tensor.isPrepacked;
  return strided;
}

/// Whether `tensor` has its element at all iterations.
static bool staysInside(const LoopNest::Tensor &tensor,
                        ArrayRef<Interval> ranges) {
  return llvm::all_of(
      llvm::zip_equal(tensor.indices, tensor.shape), [&](auto entry) {
        Interval interval = std::get<0>(entry).getInterval(ranges);
        return interval.lower >= 0 && interval.upper < std::get<1>(entry);
      });
}

/// Loops of one iteration index nothing.
static void dropUnitLoops(TileNest &nest) {
  SmallVector<IndexExpr, 12> replacements;
  SmallVector<unsigned, 12> kept;
  for (auto [number, loop] : llvm::enumerate(nest.loops)) {
    bool keep = loop.extent != 1;
    replacements.push_back(keep ? IndexExpr::getLoop(kept.size())
                                : IndexExpr());
    if (keep)
      kept.push_back(number);
  }
  if (kept.size() == nest.loops.size())
    return;
  auto keep = [&](auto &list) {
    for (auto [to, from] : llvm::enumerate(kept))
      list[to] = list[from];
    list.truncate(kept.size());
  };
  keep(nest.loops);
  keep(nest.output.strides);
  for (StridedTensor &input : nest.scalarInputs)
    keep(input.strides);
  auto replace = [&](IndexExpr &expr) {
    expr = expr.replaceLoops(replacements);
  };
  for (IndexedTensor &input : nest.vectorInputs) {
    replace(input.address);
    llvm::for_each(input.index, replace);
  }
  for (Guard &guard : nest.guards)
    replace(guard.expr);
}

std::optional<TileNest> TileNest::get(const LoopNest &source,
                                      EmitReasonFn emitReason) {
  auto fail = [&](const llvm::Twine &reason) {
    emitReason(reason);
    return std::nullopt;
  };
  // Costs count products.
  int64_t points = 16;
  for (const Loop &loop : source.loops) {
    if (loop.extent < 1)
      return fail("a loop has no iteration");
    if (llvm::MulOverflow(points, loop.extent, points))
      return fail("expected less than 2^59 products");
  }
  TileNest nest;
  nest.loops = source.loops;
  nest.guards = source.guards;
  unsigned numLoops = source.loops.size();
  std::optional<StridedTensor> output = getStrided(source.output, numLoops);
  if (!output)
    return fail("its output is not strided");
  nest.output = *output;
  // The loop that steps along the output's last dimension.
  std::optional<unsigned> vectorLoop;
  for (auto [number, loop] : llvm::enumerate(source.loops))
    if (loop.extent > 1 && output->strides[number] == 1)
      vectorLoop = number;
  if (!vectorLoop)
    return fail("its output has one element");
  SmallVector<Interval, 12> ranges = source.getRanges();
  for (const LoopNest::Tensor &input : source.inputs) {
    if (llvm::any_of(input.indices, [&](const IndexExpr &expr) {
          return expr.dependsOn(*vectorLoop);
        })) {
      nest.vectorInputs.push_back({input.getAddress(), input.getNumElements(),
                                   input.indices, input.shape,
                                   input.isPrepacked});
      continue;
    }
    std::optional<StridedTensor> strided = getStrided(input, numLoops);
    if (!strided)
      return fail("an input that is constant along the output's last "
                  "dimension is not strided");
    // The guards are for packing; this input is read everywhere.
    if (!source.guards.empty() && !staysInside(input, ranges))
      return fail("an input that is constant along the output's last "
                  "dimension is clipped");
    strided->isPrepacked |= source.packsScalars;
    nest.scalarInputs.push_back(*strided);
  }
  dropUnitLoops(nest);
  if (!nest.classify())
    return fail("no input steps with the output's last dimension");
  return nest;
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

bool TileNest::stridesVectors(unsigned loop) const {
  return llvm::any_of(vectorInputs,
                      [&](const IndexedTensor &input) {
                        return input.address.dependsOn(loop);
                      }) ||
         llvm::any_of(guards, [&](const Guard &guard) {
           return guard.expr.dependsOn(loop);
         });
}

bool TileNest::hasPrepackedVectors() const {
  return llvm::all_of(vectorInputs, [](const IndexedTensor &input) {
    return input.isPrepacked;
  });
}

TileNest TileNest::withOneRow() const {
  TileNest result = *this;
  result.rows.push_back(result.loops.size());
  result.loops.push_back({});
  result.output.strides.push_back(0);
  for (StridedTensor &input : result.scalarInputs)
    input.strides.push_back(0);
  return result;
}

bool TileNest::classify() {
  for (unsigned loop = 0; loop < loops.size(); ++loop) {
    bool scalar = llvm::any_of(scalarInputs, [&](const StridedTensor &input) {
      return input.strides[loop] != 0;
    });
    bool vector = stridesVectors(loop);
    if (loops[loop].isReduction)
      reductions.push_back(loop);
    else if (scalar == vector)
      batches.push_back(loop);
    else
      (vector ? columns : rows).push_back(loop);
  }
  // Ties by position: the order must not depend on the sorting algorithm.
  llvm::sort(columns, [&](unsigned a, unsigned b) {
    return std::pair(-output.strides[a], a) < std::pair(-output.strides[b], b);
  });
  // The last row loop is the one that registers are blocked along.
  llvm::sort(rows, [&](unsigned a, unsigned b) {
    return std::pair(loops[a].extent, a) < std::pair(loops[b].extent, b);
  });
  // Guards alone, on data that do not step, would leave nothing to load.
  if (vectorInputs.empty() || columns.empty() ||
      output.strides[columns.back()] != 1)
    return false;
  findSegments();
  return true;
}

std::optional<CombinedInputs> CombinedInputs::get(const TileNest &nest) {
  constexpr int64_t maxElements = 1 << 24;
  // Sums of words would be none of their elements.
  if (nest.isOfVNNIGroups || nest.scalarInputs.empty())
    return std::nullopt;
  CombinedInputs combined;
  for (unsigned loop : nest.reductions)
    (nest.stridesVectors(loop) ? combined.reductions : combined.sums)
        .push_back(loop);
  if (combined.reductions.empty() ||
      (nest.scalarInputs.size() == 1 && combined.sums.empty()))
    return std::nullopt;
  // Reductions innermost, so that the products read along one line.
  for (ArrayRef<unsigned> loops : {ArrayRef(nest.batches), ArrayRef(nest.rows),
                                   ArrayRef(combined.reductions)})
    for (unsigned loop : loops)
      if (llvm::any_of(nest.scalarInputs, [&](const StridedTensor &input) {
            return input.strides[loop] != 0;
          }))
        combined.loops.push_back(loop);
  StridedTensor &input = combined.input;
  input.strides.assign(nest.loops.size(), 0);
  input.size = 1;
  for (unsigned loop : llvm::reverse(combined.loops)) {
    input.strides[loop] = input.size;
    input.size *= nest.loops[loop].extent;
    if (input.size > maxElements)
      return std::nullopt;
  }
  return combined;
}

TileNest CombinedInputs::getRemainder(const TileNest &nest) const {
  TileNest remainder = nest;
  remainder.reductions = reductions;
  remainder.scalarInputs = {input};
  return remainder;
}
