//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whether a given operator is in a space, and if not, which bound or rule
// excludes it.
//
// The operator is written as the finished state that the search would end in,
// and the key of that state is compared. The limits are checked one by one, so
// that a reason can be given.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Operators/Membership.h"
#include "GraphStateImpl.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace kas;
using namespace kas::search;

namespace {
/// A window that wraps around as people and the search write it (U7): an unfold
/// in the second of three copies of its base.
struct CyclicWindow {
  mlir::Value base, window;
  /// What is read with the merge that ends it.
  llvm::SmallVector<mlir::Operation *, 6> parts;
};
} // namespace

/// The window whose copies `merge` takes apart, if it is one.
static std::optional<CyclicWindow> matchCyclicWindow(MergeOp merge,
                                                     const SymbolSet &symbols) {
  auto isNumber = [&](SizeAttr size, int64_t number) {
    return *size.toSize(symbols) == Size::constant(number);
  };
  auto unfold = merge.getCoord().getDefiningOp<UnfoldOp>();
  if (!unfold || unfold.getLow() || !merge.getQuotient().hasOneUse() ||
      !isNumber(getSize(merge.getQuotient()), 3))
    return std::nullopt;
  auto expand = llvm::dyn_cast<ExpandOp>(*merge.getQuotient().user_begin());
  auto split = unfold.getCoord().getDefiningOp<SplitOp>();
  auto shift = split ? split.getOuter().getDefiningOp<ShiftOp>() : ShiftOp();
  auto stride = shift ? shift.getCoord().getDefiningOp<StrideOp>() : StrideOp();
  auto zero = stride ? stride.getCoord().getDefiningOp<ReduceOp>() : ReduceOp();
  if (!expand || !zero || shift.getAmount() != 1 ||
      !isNumber(getSize(zero.getResult()), 1))
    return std::nullopt;
  return CyclicWindow{split.getInner(),
                      unfold.getWindow(),
                      {expand, unfold, split, shift, stride, zero}};
}

namespace {
/// Makes the finished state that an operator is, without regard to the rules.
/// The functions return false after they have added a reason.
class StateWriter {
public:
  StateWriter(std::shared_ptr<const SearchProblem> problem, OperatorOp op)
      : space(std::move(problem), {}), op(op), symbols(op.getSymbolSet()),
        positions(symbols.size()) {}

  Membership write() {
    if (matchSignature() && writeBody() && writeYield() && isWithinLimits())
      finish();
    return std::move(result);
  }

private:
  /// `formatv` with positions: {0}, {1}, ...
  template <typename... Parts>
  bool fail(const char *format, Parts &&...parts) {
    result.reasons.push_back(
        llvm::formatv(format, std::forward<Parts>(parts)...).str());
    return false;
  }

  /// The sizes of a shape, for a reason.
  static std::string toText(llvm::ArrayRef<Dimension> shape,
                            const SymbolSet &symbols) {
    return llvm::join(llvm::map_range(shape,
                                      [&](const Dimension &dimension) {
                                        return toString(dimension.size,
                                                        symbols);
                                      }),
                      ", ");
  }

  /// The symbol of the problem that is what the size is, if it is one.
  static std::optional<unsigned> getSymbol(const Size &size,
                                           const SymbolSet &symbols) {
    for (unsigned symbol = 0; symbol < symbols.size(); ++symbol)
      if (size == Size::symbol(symbol))
        return symbol;
    return std::nullopt;
  }

  /// Symbols of the signature are matched by position: an operator written with
  /// other names is the same one. Afterwards all sizes must agree.
  bool matchSignature() {
    const SearchProblem &problem = *space.problem;
    for (unsigned symbol = 0; symbol < symbols.size(); ++symbol)
      if (symbols.getKind(symbol) == SymbolKind::Coefficient)
        positions[symbol] =
            lookup(symbols.getName(symbol), SymbolKind::Coefficient);
    // A size such as H/s may come before the dimension that says what H is.
    matchSymbols(op.getOutputSizes(), problem.outputs);
    matchSymbols(op.getDataSizes(), problem.inputs);
    // Those of no shape are ranks: by name.
    for (unsigned symbol = 0; symbol < symbols.size(); ++symbol)
      if (symbols.getKind(symbol) == SymbolKind::Primary && !positions[symbol])
        positions[symbol] =
            lookup(symbols.getName(symbol), SymbolKind::Primary);
    return matchShape("output", op.getOutputSizes(), problem.outputs) &&
           matchShape("input", op.getDataSizes(), problem.inputs);
  }

  /// A dimension that is a single symbol says what that symbol is.
  void matchSymbols(llvm::ArrayRef<SizeAttr> sizes,
                    llvm::ArrayRef<Dimension> shape) {
    for (auto [attr, dimension] : llvm::zip(sizes, shape)) {
      std::optional<unsigned> symbol =
          getSymbol(*attr.toSize(symbols), symbols);
      if (symbol && !positions[*symbol])
        positions[*symbol] = getSymbol(dimension.size, space.problem->symbols);
    }
  }

  /// The symbol of the problem of that name, unless it is that of a size. A
  /// coefficient, or the symbol of a reduction of its own.
  std::optional<unsigned> lookup(llvm::StringRef name, SymbolKind kind) const {
    const SymbolSet &own = space.problem->symbols;
    std::optional<unsigned> symbol = own.lookup(name);
    if (symbol && own.getKind(*symbol) == kind &&
        !llvm::is_contained(positions, symbol))
      return symbol;
    return std::nullopt;
  }

  /// Compares in the symbols of the space.
  bool matchShape(llvm::StringRef side, llvm::ArrayRef<SizeAttr> sizes,
                  llvm::ArrayRef<Dimension> shape) {
    bool isSame = sizes.size() == shape.size();
    llvm::SmallVector<Dimension> found;
    for (SizeAttr attr : sizes)
      found.push_back({*attr.toSize(symbols), false});
    for (auto [own, dimension] : llvm::zip(found, shape))
      isSame &= convert(own.size) == dimension.size;
    return isSame ||
           fail("its {0} is [{1}], that of the space is [{2}]", side,
                toText(found, symbols), toText(shape, space.problem->symbols));
  }

  /// The size over the symbols of the problem; two symbols may have become one.
  std::optional<Size> convert(const Size &size) const {
    std::optional<Size> result =
        Size::constant(size.getNumerator(), size.getDenominator());
    for (unsigned symbol = 0; result && symbol < symbols.size(); ++symbol) {
      int exponent = size.getExponent(symbol);
      if (exponent == 0)
        continue;
      if (!positions[symbol])
        return std::nullopt;
      result = result->multiply(Size::symbol(*positions[symbol], exponent));
    }
    return result;
  }

  /// `invalid` with a reason when coordinates of the space do not have it.
  SizeId intern(SizeAttr attr) {
    Size size = *attr.toSize(symbols);
    std::optional<Size> own = convert(size);
    SizeId id = own ? space.sizes.intern(*own) : SizeTable::invalid;
    if (id != SizeTable::invalid && space.sizes[id].isLegal)
      return id;
    fail("its size {0} is none of the space", toString(size, symbols));
    return SizeTable::invalid;
  }
  SizeId intern(mlir::Value value) { return intern(getSize(value)); }

  /// Makes the coordinate `value`.
  bool make(mlir::Value value, CoordKind kind, uint32_t first = 0,
            uint32_t second = 0) {
    SizeId size = intern(value);
    if (size == SizeTable::invalid)
      return false;
    coords[value] = space.intern({kind, size, first, second});
    return true;
  }

  /// Unordered outputs first: their merges are not translated one by one.
  bool writeBody() {
    for (auto [index, output] : llvm::enumerate(op.getOutputs())) {
      coords[output] = space.getOutput(index);
      if (space.problem->outputs[index].isUnordered && !writeFactors(output))
        return false;
    }
    if (space.problem->limits.cyclic)
      for (auto merge : op.getBody().getOps<MergeOp>())
        if (auto window = matchCyclicWindow(merge, symbols)) {
          ofWindows.insert(window->parts.begin(), window->parts.end());
          cyclicWindows[merge] = std::move(*window);
        }
    for (mlir::Operation &step : op.getBody().front().without_terminator())
      if (!ofWindows.contains(&step) && !writeStep(step))
        return false;
    return true;
  }

  /// What a coordinate is merged to, over several merges. A value with one use,
  /// by a merge, is taken apart further.
  void collectFactors(mlir::Value coord,
                      llvm::SmallVectorImpl<mlir::Value> &factors) {
    MergeOp merge;
    if (coord.hasOneUse())
      merge = llvm::dyn_cast<MergeOp>(*coord.user_begin());
    if (!merge) {
      factors.push_back(coord);
      return;
    }
    factored.insert(merge);
    collectFactors(merge.getQuotient(), factors);
    collectFactors(merge.getRemainder(), factors);
  }

  /// M7: the factors of an unordered output are a set, which the search has in
  /// ascending order, each the quotient of what the ones before it leave.
  /// Example: merges to 4 and then 2 and then the rest become the same as
  /// merges to 2, 4, and the rest.
  bool writeFactors(mlir::Value output) {
    llvm::SmallVector<mlir::Value, 4> factors;
    collectFactors(output, factors);
    llvm::SmallVector<std::tuple<Size, unsigned, SizeId>, 4> sorted;
    for (auto [position, factor] : llvm::enumerate(factors)) {
      SizeId size = intern(factor);
      if (size == SizeTable::invalid)
        return false;
      sorted.emplace_back(space.sizes[size].size, position, size);
    }
    llvm::sort(sorted);
    // The smallest factor is split off first; `block` is the size of what is
    // left.
    ExprId rest = coords[output];
    SizeId block = intern(output);
    for (auto [value, position, size] : llvm::drop_end(sorted)) {
      block = space.sizes.divide(block, size);
      coords[factors[position]] =
          space.intern({CoordKind::MergeQuotient, size, rest, block});
      rest = space.intern({CoordKind::MergeRemainder, block, rest, block});
    }
    coords[factors[std::get<1>(sorted.back())]] = rest;
    return true;
  }

  /// Counts the step and interns its result; steps that the search does not
  /// have are a reason.
  bool writeStep(mlir::Operation &step) {
    return llvm::TypeSwitch<mlir::Operation *, bool>(&step)
        .Case([&](ReduceOp reduce) { return writeReduce(reduce); })
        .Case([&](ShareOp share) {
          ExprId coord = coords[share.getCoord()];
          coords[share.getData()] = coords[share.getWeight()] = coord;
          return true;
        })
        .Case([&](SplitOp split) {
          ++counts[SplitMove];
          return make(split.getResult(), CoordKind::Split,
                      coords[split.getOuter()], coords[split.getInner()]);
        })
        .Case([&](UnfoldOp unfold) {
          ++counts[UnfoldMove];
          if (space.problem->limits.cyclic)
            return fail("it has an unfold that does not wrap around");
          if (space.problem->limits.lookBack && !unfold.isCausal())
            return fail("it has an unfold that does not look back");
          if (!space.problem->limits.lookBack && unfold.getLow())
            return fail("it has an unfold that is not in the middle");
          return make(unfold.getResult(), CoordKind::Unfold,
                      coords[unfold.getCoord()], coords[unfold.getWindow()]);
        })
        .Case([&](MergeOp merge) {
          if (auto found = cyclicWindows.find(merge);
              found != cyclicWindows.end()) {
            ++counts[UnfoldMove];
            const CyclicWindow &window = found->second;
            return make(merge.getRemainder(), CoordKind::Unfold,
                        coords[window.base], coords[window.window]);
          }
          ++counts[MergeMove];
          // Of an unordered output: see writeFactors.
          if (factored.contains(merge))
            return true;
          ExprId whole = coords[merge.getCoord()];
          SizeId block = intern(merge.getBlock());
          return block != SizeTable::invalid &&
                 make(merge.getQuotient(), CoordKind::MergeQuotient, whole,
                      block) &&
                 make(merge.getRemainder(), CoordKind::MergeRemainder, whole,
                      block);
        })
        .Case([&](StrideOp stride) {
          ++counts[StrideMove];
          SizeId factor = intern(stride.getFactor());
          return factor != SizeTable::invalid &&
                 make(stride.getResult(), CoordKind::Stride,
                      coords[stride.getCoord()], factor);
        })
        .Case([&](ShiftOp shift) { return writeShift(shift); })
        .Case([&](ExpandOp expand) {
          ++counts[ExpandMove];
          if (state.numExpanded == GraphSpace::maxWeights)
            return fail("it drops more than {0} coordinates",
                        GraphSpace::maxWeights);
          state.expanded[state.numExpanded++] = coords[expand.getCoord()];
          return true;
        })
        .Default([&](mlir::Operation *other) {
          return fail("it has a step '{0}'", other->getName().getStringRef());
        });
  }

  /// Equal reductions are numbered in the order in which they come.
  bool writeReduce(ReduceOp reduce) {
    ++counts[ReduceMove];
    if (reduce.getKind() == ReduceKind::Max)
      return fail("it reduces by a maximum, the search by sums");
    SizeId size = intern(reduce.getResult());
    uint32_t equal = llvm::count(reductions, size);
    reductions.push_back(size);
    return make(reduce.getResult(), CoordKind::Reduce, equal);
  }

  /// By 1 or -1; larger shifts are several steps for the search.
  bool writeShift(ShiftOp shift) {
    ++counts[ShiftMove];
    int64_t amount = shift.getAmount();
    bool isBackward = amount == -1 && space.problem->limits.shiftBackward;
    if (amount != 1 && !isBackward)
      return fail("it shifts by {0}, the search by {1}", amount,
                  space.problem->limits.shiftBackward ? "1 and -1" : "1");
    return make(shift.getResult(), CoordKind::Shift, coords[shift.getCoord()],
                isBackward);
  }

  /// Data and weights of the finished state, and the number of parameters.
  bool writeYield() {
    YieldOp yield = op.getYield();
    mlir::OperandRange data = yield.getData();
    // The batch passes through.
    if (space.firstOutput &&
        coords[data.front()] != coords[op.getOutputs().front()])
      return fail("it does not take each example by itself");
    for (mlir::Value coord : data.drop_front(space.firstOutput))
      state.live[state.numLive++].expr = coords[coord];
    counts[ContractMove] = yield.getWeights().size();
    if (yield.getWeights().size() > GraphSpace::maxWeights)
      return fail("it has {0} weights, the search at most {1}",
                  yield.getWeights().size(), GraphSpace::maxWeights);
    for (mlir::OperandRange weight : yield.getWeights()) {
      llvm::SmallVector<ExprId, 8> indices;
      llvm::SmallVector<double, 8> elements(space.problem->bindings.size(), 1);
      for (mlir::Value coord : weight) {
        indices.push_back(coords[coord]);
        const SizeInfo &info = space.sizes[intern(coord)];
        for (auto [product, value] : llvm::zip_equal(elements, info.values))
          product *= static_cast<double>(value);
      }
      for (auto [product, count] :
           llvm::zip_equal(elements, space.problem->multiplicities))
        state.params += product * static_cast<double>(count);
      state.weights[state.numWeights++] = space.internWeight(indices);
    }
    return true;
  }

  /// Adds all reasons that there are, not only the first.
  bool isWithinLimits() {
    const SpaceLimits &limits = space.problem->limits;
    unsigned depth = 0;
    for (auto [move, what, name, limit] :
         {std::tuple(ReduceMove, "reductions", "reduce", limits.reduce),
          {SplitMove, "splits", "split", limits.split},
          {MergeMove, "merges", "merge", limits.merge},
          {ShiftMove, "shifts", "shift", limits.shift},
          {ExpandMove, "expands", "expand", limits.expand},
          {UnfoldMove, "unfolds", "unfold", limits.unfold},
          {StrideMove, "strides", "stride", limits.stride},
          {ContractMove, "weights", "weights", limits.weights}}) {
      depth += counts[move];
      if (counts[move] > limit)
        fail("it has {0} {1}, the limit '{2}' is {3}", counts[move], what, name,
             limit);
    }
    if (depth > limits.depth)
      fail("it has {0} steps, the limit 'depth' is {1}", depth, limits.depth);
    if (state.numWeights == 0 && limits.weights > 0)
      fail("it has no weight");
    return result.reasons.empty();
  }

  /// The state is complete enough for the key and the costs.
  void finish() {
    state.isFinished = true;
    result.key = computeFinalKey(space, state);
    const SearchBudget &budget = space.problem->budget;
    double flops = getFlops(space, state);
    auto compare = [&](const char *what, double value, const char *name,
                       std::optional<double> bound, bool isMost) {
      if (bound && (isMost ? value > *bound : value < *bound))
        fail("it has {0:F0} {1}, the budget '{2}' is {3:F0}", value, what, name,
             *bound);
    };
    compare("FLOPs", flops, "min_flops", budget.minFlops, false);
    compare("FLOPs", flops, "flops", budget.maxFlops, true);
    compare("parameters", state.params, "params", budget.maxParams, true);
  }

  GraphSpace space;
  OperatorOp op;
  SymbolSet symbols;
  /// By symbol of the operator: that of the problem. Nothing for a symbol
  /// without a counterpart.
  llvm::SmallVector<std::optional<unsigned>> positions;
  llvm::DenseMap<mlir::Value, ExprId> coords;
  /// The merges that take an unordered output apart.
  llvm::DenseSet<mlir::Operation *> factored;
  /// In a space of cyclic windows: by the merge that ends one, and the other
  /// steps of all of them.
  llvm::DenseMap<mlir::Operation *, CyclicWindow> cyclicWindows;
  llvm::DenseSet<mlir::Operation *> ofWindows;
  /// The sizes so far.
  llvm::SmallVector<SizeId, 8> reductions;
  /// How often each step occurs.
  unsigned counts[NumGraphMoves] = {};
  GraphStateData state;
  Membership result;
};
} // namespace

Membership
kas::search::getMembership(std::shared_ptr<const SearchProblem> problem,
                           OperatorOp op) {
  return StateWriter(std::move(problem), op).write();
}
