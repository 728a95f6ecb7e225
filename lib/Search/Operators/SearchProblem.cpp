//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The problem of a search of operators, read from `kas.space`: shapes, limits,
// budget and properties.
//
// The verifier of `kas.space` has checked everything that is read here, so
// nothing can fail.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Operators/SearchProblem.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::search;

/// Sizes in the symbols of the space.
static llvm::SmallVector<Dimension> getShape(mlir::ArrayAttr sizes,
                                             llvm::ArrayRef<bool> unordered,
                                             const SymbolSet &symbols) {
  llvm::SmallVector<Dimension> shape;
  for (auto [size, flag] :
       llvm::zip_equal(sizes.getAsRange<SizeAttr>(), unordered))
    shape.push_back({*size.toSize(symbols), flag});
  return shape;
}

/// With `onlyUnordered` in unordered dimensions only.
static bool occursIn(llvm::ArrayRef<Dimension> shape, unsigned symbol,
                     bool onlyUnordered = false) {
  return llvm::any_of(shape, [&](const Dimension &dimension) {
    return dimension.size.getExponent(symbol) != 0 &&
           (dimension.isUnordered || !onlyUnordered);
  });
}

/// 6 for coefficients, 4 for channels, 0 for positions, see
/// `SearchProblem::get`.
static unsigned getDefaultOccurrences(const SearchProblem &problem,
                                      unsigned symbol) {
  if (problem.symbols.getKind(symbol) == SymbolKind::Coefficient)
    return 6;
  bool isChannel =
      occursIn(problem.outputs, symbol, true) ||
      occursIn(problem.inputs, symbol, true) ||
      occursIn(problem.outputs, symbol) != occursIn(problem.inputs, symbol);
  return isChannel ? 4 : 0;
}

/// A budget may be absolute, a ratio of a baseline, or both: then the tighter
/// one.
static SearchBudget getBudget(SpaceOp space) {
  SearchBudget budget;
  // The baseline is there if the ratio is.
  auto scale = [&](llvm::StringRef ratio,
                   llvm::StringRef baseline) -> std::optional<double> {
    std::optional<double> value = space.getBudgetValue(ratio);
    return value ? std::optional(*value * *space.getBudgetValue(baseline))
                 : std::nullopt;
  };
  auto tighten = [](std::optional<double> a, std::optional<double> b) {
    return a && b ? std::min(*a, *b) : a ? a : b;
  };
  auto loosen = [](std::optional<double> a, std::optional<double> b) {
    return a && b ? std::max(*a, *b) : a ? a : b;
  };
  budget.minFlops = loosen(space.getBudgetValue("min_flops"),
                           scale("min_flops_ratio", "baseline_flops"));
  budget.maxFlops = tighten(space.getBudgetValue("flops"),
                            scale("flops_ratio", "baseline_flops"));
  budget.maxParams = tighten(space.getBudgetValue("params"),
                             scale("params_ratio", "baseline_params"));
  budget.maxLatencyMs = space.getBudgetValue("latency_ms");
  return budget;
}

/// Each limit by its name in the space; absent ones keep the default of
/// `SpaceLimits`.
static SpaceLimits getLimits(SpaceOp space) {
  SpaceLimits limits;
  for (auto [name, limit] :
       {std::pair<llvm::StringRef, unsigned *>("depth", &limits.depth),
        {"reduce", &limits.reduce},
        {"split", &limits.split},
        {"merge", &limits.merge},
        {"shift", &limits.shift},
        {"expand", &limits.expand},
        {"unfold", &limits.unfold},
        {"stride", &limits.stride},
        {"weights", &limits.weights},
        {"chain", &limits.chain},
        {"reaches", &limits.reaches},
        {"size_symbols", &limits.sizeSymbols},
        {"size_powers", &limits.sizePowers}})
    *limit = space.getLimit(name, *limit);
  for (auto [name, limit] :
       {std::pair<llvm::StringRef, int64_t *>("pooling", &limits.pooling),
        {"rank_min", &limits.rankMin},
        {"rank_max", &limits.rankMax},
        {"weight_elements", &limits.weightElements},
        {"merge_elements", &limits.mergeElements},
        {"window", &limits.window},
        {"stride_size", &limits.strideSize},
        {"shift_block", &limits.shiftBlock}})
    *limit = space.getLimit(name, *limit);
  for (auto [name, limit] : {std::pair<llvm::StringRef, bool *>(
                                 "shift_backward", &limits.shiftBackward),
                             {"weight_takes", &limits.weightTakes},
                             {"weight_shares", &limits.weightShares},
                             {"weights_by_position", &limits.weightsByPosition},
                             {"rank_saves", &limits.rankSaves},
                             {"any_grid", &limits.anyGrid},
                             {"one_product", &limits.oneProduct},
                             {"linear_path", &limits.linearPath},
                             {"causal", &limits.causal},
                             {"cyclic", &limits.cyclic},
                             {"swap_axes", &limits.swapAxes}})
    *limit = space.getLimit(name, *limit) != 0;
  // Causal operators look back.
  limits.lookBack = space.getLimit("look_back", limits.causal) != 0;
  for (auto [name, limit] : {std::pair<llvm::StringRef, double *>(
                                 "reduce_ratio", &limits.reduceRatio),
                             {"unfold_ratio", &limits.unfoldRatio}})
    *limit = space.getLimitRatio(name).value_or(*limit);
  if (auto windows = space.getLimits().getAs<mlir::ArrayAttr>("sees"))
    for (mlir::Attribute window : windows)
      limits.sees.push_back(isWholeAxis(window)
                                ? std::nullopt
                                : getWindowSize(window, space.getSymbolSet()));
  return limits;
}

/// `equivariant`: 1, or a word for each of `numAxes` axes.
static llvm::SmallVector<Translations, 2> getTranslations(SpaceOp space,
                                                          size_t numAxes) {
  llvm::SmallVector<Translations, 2> translations;
  if (auto words = space.getLimits().getAs<mlir::ArrayAttr>("equivariant"))
    for (auto word : words.getAsRange<mlir::StringAttr>())
      translations.push_back(*parseTranslations(word.getValue()));
  else if (space.getLimit("equivariant", 0))
    translations.assign(numAxes, Translations::ZeroPadded);
  return translations;
}

/// Occurrences need the shapes, so they come last.
SearchProblem SearchProblem::get(SpaceOp space) {
  SearchProblem problem;
  problem.symbols = space.getSymbolSet();
  problem.bindings = space.getBindingValues();
  llvm::append_range(problem.multiplicities, space.getMultiplicities());
  problem.outputs = getShape(space.getOutputSizes(), space.getOutputUnordered(),
                             problem.symbols);
  problem.inputs = getShape(space.getInputSizes(), space.getInputUnordered(),
                            problem.symbols);
  problem.limits = getLimits(space);
  problem.limits.equivariant = getTranslations(space, problem.getAxes().size());
  for (unsigned symbol = 0; symbol < problem.symbols.size(); ++symbol) {
    llvm::StringRef name = problem.symbols.getName(symbol);
    problem.occurrences.push_back(space.getLimit(
        ("occurrences." + name).str(), getDefaultOccurrences(problem, symbol)));
  }
  problem.budget = getBudget(space);
  return problem;
}

namespace {
/// The dimensions of a problem, part by part. Copies in the form in which the
/// dialect's functions take them.
struct Parts {
  explicit Parts(const SearchProblem &problem) {
    for (const Dimension &dimension : problem.outputs) {
      outputs.push_back(dimension.size);
      outputUnordered.push_back(dimension.isUnordered);
    }
    for (const Dimension &dimension : problem.inputs) {
      inputs.push_back(dimension.size);
      inputUnordered.push_back(dimension.isUnordered);
    }
  }
  SpaceSignature getSignature() const {
    return {outputs, inputs, outputUnordered, inputUnordered};
  }
  llvm::SmallVector<Size> outputs, inputs;
  llvm::SmallVector<bool> outputUnordered, inputUnordered;
};
} // namespace

// As `hasBatchAxis`, without copies: the costs of states ask for it.
bool SearchProblem::hasBatch() const {
  if (outputs.empty() || inputs.empty() ||
      outputs.front().size != inputs.front().size ||
      outputs.front().isUnordered || inputs.front().isUnordered)
    return false;
  for (unsigned symbol = 0; symbol < symbols.size(); ++symbol)
    if (outputs.front().size == Size::symbol(symbol))
      return symbols.getKind(symbol) == SymbolKind::Primary &&
             !occursIn(llvm::ArrayRef(outputs).drop_front(), symbol) &&
             !occursIn(llvm::ArrayRef(inputs).drop_front(), symbol);
  return false;
}

/// The same axes as the dialect's verifier sees.
llvm::SmallVector<SpaceAxis> SearchProblem::getAxes() const {
  return getSpaceAxes(Parts(*this).getSignature(), symbols);
}

llvm::SmallVector<unsigned> SearchProblem::getGridSymbols() const {
  Parts parts(*this);
  SpaceSignature signature = parts.getSignature();
  return kas::getGridSymbols(getSpaceAxes(signature, symbols), signature,
                             symbols);
}
