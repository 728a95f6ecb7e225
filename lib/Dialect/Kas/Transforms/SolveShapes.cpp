//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gives free variables of a kernel sizes that make its shapes match, all
// choices one after the other (Solver/ShapeMatch.h).
// Source: Canvas, section 6.2. Depth-first: op by op in program order, each
// with its matches, on copies of the kernel, so that going back costs nothing.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Transforms/Passes.h"
#include "kas/Dialect/Kas/Transforms/SolveKernel.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "kas-solve-shapes"

using namespace mlir;
using namespace kas;
using namespace kas::solver;

namespace kas {
#define GEN_PASS_DEF_KASSOLVESHAPESPASS
#include "kas/Dialect/Kas/Transforms/Passes.h.inc"
} // namespace kas

/// On an op: the number of the match to take.
static constexpr StringLiteral choiceAttr = "choice";

//===----------------------------------------------------------------------===//
// Substitution
//===----------------------------------------------------------------------===//

/// Replaces every size in `kernel`; false when one does not fit.
/// In attributes and in types; variables that have a value now are undeclared.
static bool replaceSizes(KernelOp kernel,
                         ArrayRef<Substitution> substitutions) {
  SymbolSet symbols = kernel.getSymbolSet();
  bool fits = true;
  AttrTypeReplacer replacer;
  replacer.addReplacement(
      [&](SizeAttr attr) -> std::pair<Attribute, WalkResult> {
        std::optional<Size> size =
            solver::substitute(*attr.toSize(symbols), substitutions);
        fits &= size.has_value();
        return {size ? SizeAttr::getNormal(attr.getContext(), *size, symbols)
                     : attr,
                WalkResult::skip()};
      });
  replacer.recursivelyReplaceElementsIn(kernel, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
  SmallVector<Attribute> variables;
  for (auto name : kernel.getVariables().getAsRange<StringAttr>())
    if (llvm::none_of(substitutions, [&](const Substitution &substitution) {
          return symbols.getName(substitution.variable) == name.getValue();
        }))
      variables.push_back(name);
  kernel.setVariablesAttr(ArrayAttr::get(kernel.getContext(), variables));
  return fits;
}

/// A copy of `kernel` with the substitutions made, or null when it would not be
/// legal.
static OwningOpRef<KernelOp>
getSubstituted(KernelOp kernel, ArrayRef<Substitution> substitutions) {
  OwningOpRef<KernelOp> copy(cast<KernelOp>(kernel->clone()));
  // The verifier decides what is legal; its diagnostics are not for the user
  // here.
  ScopedDiagnosticHandler silence(kernel.getContext(),
                                  [](Diagnostic &) { return success(); });
  if (!replaceSizes(*copy, substitutions) || failed(mlir::verify(*copy)))
    return {};
  return copy;
}

/// Gives `kernel` the body and symbols of a copy of it.
/// The op stays, so that handles and its position in the module do.
static void takeFrom(KernelOp kernel, KernelOp copy) {
  kernel.setVariablesAttr(copy.getVariablesAttr());
  kernel.getBody().takeBody(copy.getBody());
}

LogicalResult kas::substitute(KernelOp kernel,
                              ArrayRef<Substitution> substitutions) {
  OwningOpRef<KernelOp> copy = getSubstituted(kernel, substitutions);
  if (!copy)
    return failure();
  takeFrom(kernel, *copy);
  return success();
}

//===----------------------------------------------------------------------===//
// Problems
//===----------------------------------------------------------------------===//

/// The rest of the kernel: all shapes and implied sizes, those of `op` apart.
/// A substitution must keep all of it legal, not just the op at hand.
static ShapeMatchProblem getRest(KernelOp kernel, Operation *op) {
  ShapeMatchProblem problem;
  SymbolSet symbols = kernel.getSymbolSet();
  problem.rules = getSizeRules(kernel);
  problem.requiresTheorem = kernel.getCanvas();
  Block &block = kernel.getBody().front();
  for (BlockArgument input : block.getArguments())
    problem.shapes.push_back(getShape(input, symbols));
  for (Operation &step : block) {
    for (Value result : step.getResults())
      problem.shapes.push_back(getShape(result, symbols));
    if (auto dag = dyn_cast<DagOpInterface>(step); dag && &step != op)
      for (SizeAttr size : dag.getImpliedSizes())
        problem.sizes.push_back(*size.toSize(symbols));
  }
  return problem;
}

ShapeMatchProblem kas::getMatchProblem(KernelOp kernel, DagBroadcastOp op) {
  ShapeMatchProblem problem = getRest(kernel, op);
  SymbolSet symbols = kernel.getSymbolSet();
  problem.left = getShape(op.getLeft(), symbols).dims;
  problem.right = getShape(op.getRight(), symbols).dims;
  problem.common =
      CommonDims{unsigned(op.getCommon()[0]), unsigned(op.getCommon()[1])};
  return problem;
}

ShapeMatchProblem kas::getMatchProblem(KernelOp kernel, DagOutputOp op) {
  ShapeMatchProblem problem = getRest(kernel, op);
  SymbolSet symbols = kernel.getSymbolSet();
  problem.left = getShape(op.getInput(), symbols).dims;
  for (SizeAttr size : op.getViewedDims())
    problem.right.push_back(*size.toSize(symbols));
  // The output is a view of everything.
  problem.common = CommonDims();
  problem.isOutput = true;
  return problem;
}

/// The ratio that `op` must make an integer, or 1; null for other ops. The
/// verifier has seen that it fits.
static SizeAttr getRatio(KernelOp kernel, Operation &op) {
  if (auto broadcast = dyn_cast<DagBroadcastOp>(op))
    return broadcast.getImpliedSizes().back();
  auto output = dyn_cast<DagOutputOp>(op);
  if (!output)
    return {};
  SizeAttr wanted = getProduct(op.getContext(), output.getViewedDims());
  return wanted.divide(getProduct(
      op.getContext(),
      cast<SymbolicTensorType>(output.getInput().getType()).getDims()));
}

/// The problem of `op` if it is one that needs a substitution.
/// Open: the ratio has a variable in its denominator, or at the output
/// anywhere.
static std::optional<ShapeMatchProblem> getOpenProblem(KernelOp kernel,
                                                       Operation &op) {
  SizeAttr ratio = getRatio(kernel, op);
  if (!ratio)
    return std::nullopt;
  Size size = *ratio.toSize(kernel.getSymbolSet());
  bool isOutput = isa<DagOutputOp>(op);
  SizeRules rules = getSizeRules(kernel);
  if (llvm::none_of(rules.variables, [&](unsigned variable) {
        int exponent = size.getExponent(variable);
        return exponent < 0 || (isOutput && exponent != 0);
      }))
    return std::nullopt;
  return isOutput ? getMatchProblem(kernel, cast<DagOutputOp>(op))
                  : getMatchProblem(kernel, cast<DagBroadcastOp>(op));
}

//===----------------------------------------------------------------------===//
// Search
//===----------------------------------------------------------------------===//

/// `x1 = C/G, x2 = H`.
static std::string describe(const ShapeMatch &match, const SymbolSet &symbols) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(match.substitutions, os, [&](const Substitution &made) {
    os << symbols.getName(made.variable) << " = "
       << toString(made.value, symbols);
  });
  return text;
}

namespace {
/// Example: adding [x1 | H, W] to [C, KH | H, W] needs C*KH / x1 to be an
/// integer. Matches are x1 = 1, C, KH, C*KH and so on; each is put into the
/// whole kernel, and the first one with which all later ops can be solved as
/// well is kept.
class ShapeSolver {
public:
  explicit ShapeSolver(const SolveShapesOptions &options) : options(options) {}

  /// The solved copy of `kernel`, or null.
  /// Recursive with `solveOp`: one level per op that is open.
  OwningOpRef<KernelOp> solve(KernelOp kernel) {
    unsigned position = 0;
    for (Operation &op : kernel.getBody().front()) {
      if (std::optional<ShapeMatchProblem> problem = getOpenProblem(kernel, op))
        return solveOp(kernel, op, position, *problem);
      ++position;
    }
    return OwningOpRef<KernelOp>(cast<KernelOp>(kernel->clone()));
  }

  /// How far into the body the best attempt came, and why it ended there.
  unsigned deepest = 0;
  std::string reason;
  /// After so many substitutions the search gives up.
  unsigned attemptsLeft = 10'000;

private:
  OwningOpRef<KernelOp> solveOp(KernelOp kernel, Operation &op,
                                unsigned position,
                                const ShapeMatchProblem &problem) {
    ShapeMatches found = matchShapes(problem);
    SymbolSet symbols = kernel.getSymbolSet();
    size_t first = options.choice;
    auto given = op.getAttrOfType<IntegerAttr>(choiceAttr);
    if (given)
      first = given.getInt() < 0 ? found.matches.size() : given.getInt();
    if (found.matches.empty() || (given && first >= found.matches.size())) {
      // The attempt that came furthest explains best.
      if (position >= deepest) {
        deepest = position;
        reason = found.matches.empty()
                     ? "has no legal values of its variables"
                     : "requires a choice from 0 to " +
                           std::to_string(found.matches.size() - 1) + ", got " +
                           std::to_string(given.getInt());
        if (found.matches.empty() && found.ratio)
          reason += ": the ratio is '" + toString(*found.ratio, symbols) + "'";
      }
      return {};
    }
    // From the chosen match on, then those before it.
    for (size_t i : llvm::seq(found.matches.size())) {
      const ShapeMatch &match =
          found.matches[(std::min(first, found.matches.size() - 1) + i) %
                        found.matches.size()];
      // The number of ways is exponential in the ops with a choice.
      if (attemptsLeft == 0) {
        reason = "was not solved within 10000 substitutions";
        return {};
      }
      --attemptsLeft;
      LDBG() << op.getName() << ": match " << &match - found.matches.begin()
             << " of " << found.matches.size();
      OwningOpRef<KernelOp> next = getSubstituted(kernel, match.substitutions);
      if (next)
        if (OwningOpRef<KernelOp> solved = solve(*next))
          return solved;
      if (given)
        break;
    }
    return {};
  }

  const SolveShapesOptions &options;
};
} // namespace

/// The kernel changes only when everything is solved.
LogicalResult kas::solveShapes(KernelOp kernel,
                               const SolveShapesOptions &options) {
  if (kernel.isSolved())
    return success();
  ShapeSolver solver(options);
  OwningOpRef<KernelOp> solved = solver.solve(kernel);
  if (solved) {
    takeFrom(kernel, *solved);
    return success();
  }
  Operation &op = *std::next(kernel.getBody().front().begin(), solver.deepest);
  return op.emitOpError() << solver.reason;
}

void kas::listShapeMatches(KernelOp kernel) {
  if (kernel.isSolved())
    return;
  SymbolSet symbols = kernel.getSymbolSet();
  for (Operation &op : kernel.getBody().front()) {
    std::optional<ShapeMatchProblem> problem = getOpenProblem(kernel, op);
    if (!problem)
      continue;
    ShapeMatches found = matchShapes(*problem);
    InFlightDiagnostic remark = op.emitRemark()
                                << found.matches.size() << " matches";
    for (auto [index, match] : llvm::enumerate(found.matches))
      remark << (index == 0 ? ": " : "; ") << describe(match, symbols);
  }
}

namespace {
struct KasSolveShapesPass
    : public kas::impl::KasSolveShapesPassBase<KasSolveShapesPass> {
  using KasSolveShapesPassBase::KasSolveShapesPassBase;

  void runOnOperation() override {
    WalkResult result = getOperation()->walk([&](KernelOp kernel) {
      if (list) {
        listShapeMatches(kernel);
        return WalkResult::advance();
      }
      return failed(solveShapes(kernel, {choice})) ? WalkResult::interrupt()
                                                   : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
