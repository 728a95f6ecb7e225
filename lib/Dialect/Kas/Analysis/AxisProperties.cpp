//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Properties of an operator along an axis, point by point.
//
// Loops that no index and no window has in common are independent: what holds
// for the group of loops that has the axis holds for all. The search decides
// the same of its own graphs (lib/Search/Operators/GraphPropertyChecks.cpp).
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Analysis/AxisProperties.h"
#include "Lowering/Terms.h"
#include "WrappedCoordinates.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace kas;

//===----------------------------------------------------------------------===//
// The signature
//===----------------------------------------------------------------------===//

namespace {
/// The dimensions of an operator in the form in which `getSpaceAxes` takes
/// them.
struct Signature {
  explicit Signature(OperatorOp op)
      : symbols(op.getSymbolSet()), outputs(toSizes(op.getOutputSizes())),
        inputs(toSizes(op.getDataSizes())),
        outputUnordered(op.getOutputUnordered()),
        inputUnordered(op.getInputUnordered()) {
    if (llvm::is_contained(outputUnordered, true) ||
        llvm::is_contained(inputUnordered, true))
      return;
    for (SmallVector<bool> *flags : {&outputUnordered, &inputUnordered})
      if (flags->size() > 1)
        (*flags)[1] = true;
  }
  SpaceSignature get() const {
    return {outputs, inputs, outputUnordered, inputUnordered};
  }
  SmallVector<Size> toSizes(ArrayRef<SizeAttr> sizes) const {
    return llvm::map_to_vector(
        sizes, [&](SizeAttr size) { return *size.toSize(symbols); });
  }

  SymbolSet symbols;
  SmallVector<Size> outputs, inputs;
  SmallVector<bool> outputUnordered, inputUnordered;
};
} // namespace

SmallVector<SpaceAxis> kas::getOperatorAxes(OperatorOp op) {
  Signature signature(op);
  return getSpaceAxes(signature.get(), signature.symbols);
}

bool kas::fitsAnyGrid(OperatorOp op, const SpaceAxis &axis) {
  Signature signature(op);
  SmallVector<unsigned> grid =
      getGridSymbols(axis, signature.get(), signature.symbols);
  auto hasGrid = [&](SizeAttr attr) {
    Size size = *attr.toSize(signature.symbols);
    return llvm::any_of(
        grid, [&](unsigned symbol) { return size.getExponent(symbol) != 0; });
  };
  return !grid.empty() &&
         llvm::none_of(op.getWeightSizes(), [&](ArrayRef<SizeAttr> weight) {
           return llvm::any_of(weight, hasGrid);
         });
}

//===----------------------------------------------------------------------===//
// Groups of loops
//===----------------------------------------------------------------------===//

/// More points that depend on each other are not looked at one by one.
static constexpr int64_t maxPoints = 1 << 22;

namespace {
/// Loops whose values decide something together.
struct Group {
  /// The output of the axis is the last of `outputs` in its group.
  SmallVector<unsigned> outputs, reductions;
  /// The indices of weights and of the data, but for the axis.
  SmallVector<AffineExpr> indices;
  SmallVector<Guard> guards;
  int64_t numPoints = 1;
};

/// The loops of an operator in groups, of which the first one has the axis.
class Groups {
public:
  Groups(const Coordinates &coordinates, unsigned output, unsigned input);

  std::vector<Group> groups;

private:
  SmallVector<unsigned> getLoops(AffineExpr expr) const;
  void join(ArrayRef<unsigned> loops);

  const Coordinates &coordinates;
  /// By loop: the first one of its group.
  SmallVector<unsigned> leaders;
};
} // namespace

SmallVector<unsigned> Groups::getLoops(AffineExpr expr) const {
  SmallVector<unsigned> loops;
  for (unsigned loop = 0; loop < coordinates.axes.size(); ++loop)
    if (expr.isFunctionOfDim(loop))
      loops.push_back(loop);
  return loops;
}

void Groups::join(ArrayRef<unsigned> loops) {
  for (unsigned loop : loops) {
    unsigned first = leaders[loops.front()], second = leaders[loop];
    for (unsigned &leader : leaders)
      if (leader == second)
        leader = first;
  }
}

/// An index or a guard joins its loops. One without loops goes to the group of
/// the axis.
Groups::Groups(const Coordinates &coordinates, unsigned output, unsigned input)
    : coordinates(coordinates) {
  llvm::append_range(leaders, llvm::seq<unsigned>(0, coordinates.axes.size()));
  SmallVector<unsigned> along = getLoops(coordinates.data[input]);
  along.push_back(output);
  join(along);
  SmallVector<AffineExpr> indices;
  for (auto [dim, index] : llvm::enumerate(coordinates.data))
    if (dim != input)
      indices.push_back(index);
  for (ArrayRef<AffineExpr> weight : coordinates.weights)
    llvm::append_range(indices, weight);
  for (AffineExpr index : indices)
    if (SmallVector<unsigned> loops = getLoops(index); !loops.empty())
      join(loops);
  for (const Guard &guard : coordinates.guards)
    if (SmallVector<unsigned> loops = getLoops(guard.expr); !loops.empty())
      join(loops);
  // The leader of the axis first, then in the order of the loops.
  SmallVector<unsigned> order = {leaders[output]};
  for (unsigned leader : leaders)
    if (!llvm::is_contained(order, leader))
      order.push_back(leader);
  groups.resize(order.size());
  auto getGroup = [&](AffineExpr expr) -> Group & {
    SmallVector<unsigned> loops = getLoops(expr);
    return loops.empty() ? groups.front()
                         : groups[llvm::find(order, leaders[loops.front()]) -
                                  order.begin()];
  };
  for (auto [loop, axis] : llvm::enumerate(coordinates.axes)) {
    Group &group = groups[llvm::find(order, leaders[loop]) - order.begin()];
    if (loop != output)
      (loop < coordinates.numOutputs ? group.outputs : group.reductions)
          .push_back(loop);
    group.numPoints *= std::min(axis.extent, maxPoints + 1);
    group.numPoints = std::min(group.numPoints, maxPoints + 1);
  }
  groups.front().outputs.push_back(output);
  for (AffineExpr index : indices)
    getGroup(index).indices.push_back(index);
  for (const Guard &guard : coordinates.guards)
    getGroup(guard.expr).guards.push_back(guard);
}

//===----------------------------------------------------------------------===//
// Points
//===----------------------------------------------------------------------===//

namespace {
/// Goes through the points of one group after the other.
class Walk {
public:
  explicit Walk(const Coordinates &coordinates)
      : coordinates(coordinates), point(coordinates.axes.size(), 0) {}

  /// The next values of `loops`, the last one fastest; false, with all of them
  /// 0, after the last ones.
  bool advance(ArrayRef<unsigned> loops) {
    for (unsigned loop : llvm::reverse(loops)) {
      if (++point[loop] < coordinates.axes[loop].extent)
        return true;
      point[loop] = 0;
    }
    return false;
  }
  int64_t get(AffineExpr expr) const {
    return lowering::evaluateAt(expr, point);
  }
  bool exists(const Group &group) const {
    return llvm::all_of(group.guards, [&](const Guard &guard) {
      int64_t value = get(guard.expr);
      return value >= 0 && value < guard.extent;
    });
  }
  /// Of its outputs, whether some have points and whether all have.
  std::pair<bool, bool> findPoints(const Group &group) {
    bool some = false, all = true;
    if (group.guards.empty())
      return {true, true};
    do {
      bool found = false;
      do
        found |= exists(group);
      while (advance(group.reductions));
      some |= found;
      all &= found;
    } while (advance(group.outputs));
    return {some, all};
  }

  void countRead(const Group &group, AffineExpr index,
                 AxisProperties &properties);
  bool isMoved(const Group &group, AffineExpr index, int64_t size);

private:
  std::vector<std::vector<int64_t>>
  getTerms(const Group &group, AffineExpr index, int64_t size, int64_t moved);

  const Coordinates &coordinates;
  SmallVector<int64_t> point;
};
} // namespace

/// `index` is that of the data along the axis.
void Walk::countRead(const Group &group, AffineExpr index,
                     AxisProperties &properties) {
  properties.fewestRead = properties.size;
  llvm::BitVector read(properties.size);
  do {
    read.reset();
    do
      if (exists(group))
        read.set(get(index));
    while (advance(group.reductions));
    int64_t count = read.count();
    properties.fewestRead = std::min(properties.fewestRead, count);
    properties.mostRead = std::max(properties.mostRead, count);
  } while (advance(group.outputs));
}

/// What is multiplied at the points of an output, in their order: indices of
/// the data, less by `moved` along the axis, and of weights. Nothing for a
/// point that does not exist.
std::vector<std::vector<int64_t>> Walk::getTerms(const Group &group,
                                                 AffineExpr index, int64_t size,
                                                 int64_t moved) {
  std::vector<std::vector<int64_t>> terms;
  do {
    std::vector<int64_t> &term = terms.emplace_back();
    if (!exists(group))
      continue;
    term.push_back((get(index) + size - moved) % size);
    for (AffineExpr other : group.indices)
      term.push_back(get(other));
  } while (advance(group.reductions));
  return terms;
}

/// Each position reads the same as position 0, so much further, with the same
/// weights. Terms of a sum may come in any order.
bool Walk::isMoved(const Group &group, AffineExpr index, int64_t size) {
  unsigned own = group.outputs.back();
  int64_t extent = coordinates.axes[own].extent;
  bool isSum = !coordinates.hasMax();
  do {
    point[own] = 0;
    auto first = getTerms(group, index, size, 0);
    if (isSum)
      llvm::sort(first);
    for (int64_t at = 1; at < extent; ++at) {
      point[own] = at;
      auto terms = getTerms(group, index, size, at * (size / extent));
      if (isSum)
        llvm::sort(terms);
      if (terms != first)
        return false;
    }
    point[own] = 0;
  } while (advance(ArrayRef(group.outputs).drop_back()));
  return true;
}

FailureOr<AxisProperties> kas::getAxisProperties(OperatorOp op, unsigned output,
                                                 unsigned input,
                                                 EmitErrorFn emitError) {
  Coordinates clipped = getCoordinates(op);
  AxisProperties properties;
  properties.size = *op.getDataSizes()[input].getConstantValue();
  Groups loops(clipped, output, input);
  auto isSmall = [&](const Group &group) {
    return group.numPoints <= maxPoints && properties.size <= maxPoints;
  };
  auto emitTooMany = [&] {
    return emitError() << "requires at most " << maxPoints
                       << " points of loops that depend on each other in '"
                       << op.getSymName() << "', got more";
  };
  if (!llvm::all_of(loops.groups, isSmall))
    return emitTooMany();
  bool areSome = true, areAll = true;
  for (const Group &group : loops.groups) {
    auto [some, all] = Walk(clipped).findPoints(group);
    areSome &= some;
    areAll &= all;
  }
  const Group &own = loops.groups.front();
  Walk(clipped).countRead(own, clipped.data[input], properties);
  if (!areAll)
    properties.fewestRead = 0;
  if (!areSome) {
    // Zero whatever the data is.
    properties.mostRead = 0;
    properties.translations = Translations::Cyclic;
    return properties;
  }
  if (Walk(clipped).isMoved(own, clipped.data[input], properties.size)) {
    properties.translations = Translations::Cyclic;
    return properties;
  }
  Coordinates wrapped = getWrappedCoordinates(op);
  Groups all(wrapped, output, input);
  if (!isSmall(all.groups.front()))
    return emitTooMany();
  if (Walk(wrapped).isMoved(all.groups.front(), wrapped.data[input],
                            properties.size))
    properties.translations = Translations::ZeroPadded;
  return properties;
}
