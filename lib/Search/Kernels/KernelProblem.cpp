//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The problem of a tensor-level search: signature, primitives and limits (after
// Canvas; docs/internals/tensor-level.md).
//
// A kernel with bindings and a budget states the search: its signature,
// symbols, facts and layers are the problem; its body is not used.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Kernels/KernelProblem.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace kas;
using namespace kas::search;
using namespace kas::solver;

// In the order of `KernelStep`; also the names of kinds and of limits.
static constexpr StringLiteral stepNames[numKernelSteps] = {
    "fc",        "group",    "group_all",
    "shift",     "unfold",   "transpose",
    "shuffle",   "reorder",  "inverse_reorder",
    "scale",     "relu",     "gelu",
    "sigmoid",   "tanh",     "abs",
    "exp",       "neg",      "sin",
    "sqrt",      "sqr",      "fold_sum",
    "fold_mean", "fold_max", "softmax",
    "add",       "sub",      "mul",
    "min",       "max",      "matmul",
    "norm",      "mix"};

StringRef kas::search::getName(KernelStep step) {
  return step == KernelStep::Input ? "input"
                                   : stepNames[static_cast<unsigned>(step)];
}

//===----------------------------------------------------------------------===//
// Limits
//===----------------------------------------------------------------------===//

namespace {
/// A limit by name, with the values that make sense. Bounds keep arrays and bit
/// fields of the state from overflowing.
struct NamedLimit {
  StringLiteral name;
  int64_t least, most;
  void (*set)(KernelLimits &limits, int64_t value);
};
} // namespace

// Of the plain numbers; primitives are limits as well, with 0 or 1.
static constexpr NamedLimit namedLimits[] = {
    {"steps-min", 1, KernelProblem::maxSteps,
     [](KernelLimits &l, int64_t v) { l.minSteps = v; }},
    {"steps", 1, KernelProblem::maxSteps,
     [](KernelLimits &l, int64_t v) { l.maxSteps = v; }},
    {"width", 1, KernelProblem::maxSteps,
     [](KernelLimits &l, int64_t v) { l.width = v; }},
    {"weights-min", 0, KernelProblem::maxSteps,
     [](KernelLimits &l, int64_t v) { l.minWeights = v; }},
    {"weights", 0, KernelProblem::maxSteps,
     [](KernelLimits &l, int64_t v) { l.maxWeights = v; }},
    {"variables", 0, KernelProblem::maxVariables,
     [](KernelLimits &l, int64_t v) { l.variables = v; }},
    {"rank", 1, KernelProblem::maxRank,
     [](KernelLimits &l, int64_t v) { l.rank = v; }},
    {"dilation", 1, 15, [](KernelLimits &l, int64_t v) { l.dilation = v; }},
    {"shift", 1, 15, [](KernelLimits &l, int64_t v) { l.shift = v; }},
    {"repeats", 0, 1, [](KernelLimits &l, int64_t v) { l.repeats = v; }},
    {"neighbours", 0, 1, [](KernelLimits &l, int64_t v) { l.neighbours = v; }},
    {"paired-windows", 0, 1,
     [](KernelLimits &l, int64_t v) { l.pairedWindows = v; }},
    {"batch", 1, INT32_MAX, [](KernelLimits &l, int64_t v) { l.batch = v; }},
    {"max-elements", 1, int64_t(1) << 58,
     [](KernelLimits &l, int64_t v) { l.maxElements = v; }}};

/// `name=integer`; the error says what the range or the names are.
llvm::Error kas::search::parseKernelLimit(StringRef text,
                                          KernelLimits &limits) {
  auto [name, number] = text.split('=');
  int64_t value = 0;
  if (number.getAsInteger(10, value))
    return llvm::createStringError("requires a limit of the form name=integer, "
                                   "got '" +
                                   text + "'");
  int64_t least = 0, most = 1;
  const auto *step = llvm::find(stepNames, name);
  const auto *limit = llvm::find_if(namedLimits, [&, name = name](auto &known) {
    return known.name == name;
  });
  if (limit != std::end(namedLimits)) {
    least = limit->least;
    most = limit->most;
  } else if (step == std::end(stepNames)) {
    return llvm::createStringError(
        "requires a limit among " +
        llvm::join(
            llvm::map_range(namedLimits,
                            [](auto &known) { return known.name.str(); }),
            ", ") +
        " or a primitive among " + llvm::join(ArrayRef(stepNames), ", ") +
        ", got '" + name + "'");
  }
  if (value < least || value > most)
    return llvm::createStringError("requires " + llvm::Twine(least) +
                                   " <= " + name + " <= " + llvm::Twine(most) +
                                   ", got " + llvm::Twine(value));
  if (limit != std::end(namedLimits))
    limit->set(limits, value);
  else
    limits.steps.set(step - stepNames, value);
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// The problem
//===----------------------------------------------------------------------===//

/// The symbols of `kernel`, and as many variables as there is room for.
/// Variables of the kernel itself are dropped: its body is not used, and the
/// search names its own.
static LogicalResult addSymbols(KernelOp kernel, KernelProblem &problem) {
  SymbolSet all = kernel.getSymbolSet();
  unsigned numFixed = all.size() - kernel.getVariables().size();
  problem.numPrimaries = kernel.getPrimaries().size();
  for (unsigned index = 0; index < numFixed; ++index)
    llvm::cantFail(problem.symbols.add(all.getName(index), all.getKind(index)));
  // A set of symbols is full at `SymbolSet::maxSymbols`.
  problem.limits.variables =
      std::min(problem.limits.variables, SymbolSet::maxSymbols - numFixed);
  // x0, x1, ..., skipping names that the kernel uses.
  for (unsigned number = 0;
       problem.symbols.size() < numFixed + problem.limits.variables; ++number) {
    std::string name = "x" + std::to_string(number);
    if (!problem.symbols.lookup(name))
      llvm::cantFail(problem.symbols.add(name, SymbolKind::Coefficient));
  }
  SizeRules &rules = problem.rules;
  rules.numSymbols = problem.symbols.size();
  // Variables are the last symbols.
  for (unsigned index = numFixed; index < rules.numSymbols; ++index)
    rules.variables.push_back(index);
  SizeRules known = getSizeRules(kernel);
  rules.facts = known.facts;
  // A binding has no values for variables; 1 fills their positions.
  for (const Binding &binding : known.bindings) {
    rules.bindings.push_back(Binding(ArrayRef(binding).take_front(numFixed)));
    rules.bindings.back().resize(rules.numSymbols, 1);
  }
  if (rules.bindings.empty())
    return kernel.emitOpError("requires bindings to search for kernels");
  problem.multiplicities.assign(kernel.getMultiplicities().begin(),
                                kernel.getMultiplicities().end());
  return success();
}

/// The input and the output in symbols of the problem, which agree with those
/// of the kernel but for variables.
static LogicalResult addShapes(KernelOp kernel, KernelProblem &problem) {
  Block &block = kernel.getBody().front();
  if (block.getNumArguments() != 1)
    return kernel.emitOpError("requires one input to search for kernels, got ")
           << block.getNumArguments();
  auto type = cast<SymbolicTensorType>(kernel.getResultType());
  SymbolSet symbols = kernel.getSymbolSet();
  problem.input = getShape(block.getArgument(0), symbols);
  problem.output.numChannelDims = type.getNumChannelDims();
  for (SizeAttr size : type.getDims())
    problem.output.dims.push_back(*size.toSize(symbols));
  for (const TensorShape *shape : {&problem.input, &problem.output}) {
    if (shape->dims.size() > problem.limits.rank)
      return kernel.emitOpError("requires at most ")
             << problem.limits.rank << " dimensions to search for kernels, got "
             << shape->dims.size();
    // The search matches the output to the signature, so it must be fixed.
    for (const Size &size : shape->dims)
      for (unsigned variable =
               problem.symbols.size() - problem.rules.variables.size();
           variable < SymbolSet::maxSymbols; ++variable)
        if (size.getExponent(variable) != 0)
          return kernel.emitOpError(
              "requires a signature without variables to search for kernels");
  }
  return success();
}

/// Sorts the coefficients into divisors and windows. A coefficient that divides
/// a symbol by a fact is a number of groups, any other one is the size of a
/// window.
static void addCoefficients(KernelProblem &problem) {
  SmallVector<unsigned> windows;
  unsigned numFixed = problem.symbols.size() - problem.rules.variables.size();
  for (unsigned symbol = problem.numPrimaries; symbol < numFixed; ++symbol) {
    bool divides = llvm::any_of(problem.rules.facts, [&](const auto &fact) {
      return fact.divisor == Size::symbol(symbol);
    });
    if (divides)
      problem.divisors.push_back(symbol);
    else
      windows.push_back(symbol);
  }
  // One list of windows for each spatial dimension of the input.
  unsigned numSpatial =
      problem.input.dims.size() - problem.input.numChannelDims;
  // As many windows as dimensions: each has its own (k1 for H, k2 for W),
  // unless `pairedWindows` is off.
  for (unsigned dim = 0; dim < numSpatial; ++dim)
    if (windows.size() == numSpatial && problem.limits.pairedWindows)
      problem.windows.push_back({windows[dim]});
    else
      problem.windows.emplace_back(windows.begin(), windows.end());
}

/// The values to choose from are those that divide the channels at every layer.
static LogicalResult addGroups(KernelOp kernel, StringRef groups,
                               KernelProblem &problem) {
  if (groups.empty())
    return success();
  std::optional<unsigned> symbol = problem.symbols.lookup(groups);
  if (!symbol || !llvm::is_contained(problem.divisors, *symbol))
    return kernel.emitOpError("requires a coefficient that divides another "
                              "symbol as groups, got '")
           << groups << "'";
  // All channels that the symbol must divide, over all layers.
  SmallVector<int64_t> multiples;
  for (const SizeRules::Divides &fact : problem.rules.facts)
    if (fact.divisor == Size::symbol(*symbol))
      for (const Binding &binding : problem.rules.bindings)
        multiples.push_back(binding[fact.multiple]);
  problem.groups = symbol;
  problem.groupCandidates = groupCandidates(multiples);
  return success();
}

/// Contradictory limits are reported at the kernel, as their options have no
/// location.
FailureOr<KernelProblem> KernelProblem::get(KernelOp kernel,
                                            const KernelLimits &limits,
                                            StringRef groups) {
  KernelProblem problem;
  problem.limits = limits;
  if (limits.minSteps > limits.maxSteps)
    return kernel.emitOpError("requires steps-min <= steps, got ")
           << limits.minSteps << " and " << limits.maxSteps;
  if (limits.minWeights > limits.maxWeights)
    return kernel.emitOpError("requires weights-min <= weights, got ")
           << limits.minWeights << " and " << limits.maxWeights;
  // Shapes need the symbols, and groups the coefficients.
  if (failed(addSymbols(kernel, problem)) || failed(addShapes(kernel, problem)))
    return failure();
  addCoefficients(problem);
  if (failed(addGroups(kernel, groups, problem)))
    return failure();
  problem.requiresTheorem = kernel.getCanvas();
  auto getBudget = [&](StringRef name) -> std::optional<int64_t> {
    auto value = kernel.getBudget().getAs<IntegerAttr>(name);
    return value ? std::optional(value.getInt()) : std::nullopt;
  };
  problem.minFlops = getBudget("flops_min");
  problem.maxFlops = getBudget("flops");
  problem.minParams = getBudget("params_min");
  problem.maxParams = getBudget("params");
  return problem;
}
