//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values of free variables with which the shapes of a broadcast or an output
// match, all of them (docs/reference/tensor-level.md, section 4; after Canvas,
// section 6.2). The ratio of the two blocks must become an integer: variables
// in its denominator take the factors of its numerator, one variable after the
// other, and each full choice is tested on the whole kernel.
//
//===----------------------------------------------------------------------===//

#include "kas/Solver/ShapeMatch.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::solver;

/// The product of what `common` leaves of `dims`. 1 where nothing is left;
/// nothing where the product does not fit a `Size`.
static std::optional<Size> getBlockSize(llvm::ArrayRef<Size> dims,
                                        const CommonDims &common) {
  std::optional<Size> product = Size();
  for (const Size &dim :
       dims.drop_front(common.prefix).drop_back(common.suffix)) {
    product = product->multiply(dim);
    if (!product)
      break;
  }
  return product;
}

llvm::Error ShapeMatchProblem::check() const {
  if (llvm::Error error = rules.check())
    return error;
  for (const TensorShape &shape : shapes)
    if (shape.numChannelDims > shape.dims.size())
      return llvm::createStringError(
          "a shape has more channel dimensions than dimensions");
  // They will be found, and are equal then.
  if (!common)
    return llvm::Error::success();
  // The ends must not overlap in the shorter shape.
  size_t sum = size_t(common->prefix) + common->suffix;
  if (sum > left.size() || sum > right.size())
    return llvm::createStringError(
        "at most " + llvm::Twine(std::min(left.size(), right.size())) +
        " dimensions can be common, got " + llvm::Twine(sum));
  llvm::ArrayRef<Size> l = left, r = right;
  if (l.take_front(common->prefix) != r.take_front(common->prefix) ||
      l.take_back(common->suffix) != r.take_back(common->suffix))
    return llvm::createStringError("common dimensions must be equal");
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Enumeration
//===----------------------------------------------------------------------===//

/// The positive x with x ** `degree` == `value`, in symbols. `getRoot(4 * C^2,
/// 2)` is `2 * C`; `getRoot(2 * C, 2)` is nothing.
static std::optional<Size> getRoot(const Size &value, int degree) {
  // Counts up to the root: constants of sizes are small.
  auto rootOf = [&](int64_t number) -> std::optional<int64_t> {
    for (int64_t root = 1;; ++root) {
      int64_t power = 1;
      for (int i = 0; i < degree && power <= number; ++i)
        power *= root;
      if (power >= number)
        return power == number ? std::optional(root) : std::nullopt;
    }
  };
  if (degree == 1)
    return value;
  std::optional<int64_t> numerator = rootOf(value.getNumerator());
  std::optional<int64_t> denominator = rootOf(value.getDenominator());
  if (!numerator || !denominator)
    return std::nullopt;
  std::optional<Size> root = Size::constant(*numerator, *denominator);
  for (auto [symbol, exponent] : llvm::enumerate(value.getExponents())) {
    if (exponent % degree != 0)
      return std::nullopt;
    root = root ? root->multiply(Size::symbol(symbol, exponent / degree))
                : std::nullopt;
  }
  return root;
}

namespace {
/// Enumerates the matches of one problem by depth-first search over the
/// variables of the ratio; `run` is called once.
class Matcher {
public:
  explicit Matcher(const ShapeMatchProblem &problem)
      : problem(problem), rules(problem.rules),
        common(problem.common
                   ? *problem.common
                   : getCommonDims<Size>(problem.left, problem.right)),
        leftBlock(getBlockSize(problem.left, common)) {
    std::optional<Size> rightBlock = getBlockSize(problem.right, common);
    if (leftBlock && rightBlock)
      // Nothing, and no matches, where a product does not fit.
      result.ratio = rightBlock->divide(*leftBlock);
  }

  ShapeMatches run() {
    if (result.ratio)
      enumerate(*result.ratio);
    // The order in which the factors were tried is of no concern to callers.
    llvm::sort(result.matches, [](const ShapeMatch &a, const ShapeMatch &b) {
      return std::lexicographical_compare(
          a.substitutions.begin(), a.substitutions.end(),
          b.substitutions.begin(), b.substitutions.end(),
          [](const Substitution &x, const Substitution &y) {
            return std::tie(x.variable, x.value) <
                   std::tie(y.variable, y.value);
          });
    });
    return std::move(result);
  }

private:
  /// The variables in the denominator of `ratio`, or in its numerator.
  llvm::SmallVector<unsigned> variablesOf(const Size &ratio, int sign) const {
    llvm::SmallVector<unsigned> found;
    for (unsigned variable : rules.variables)
      if (sign * ratio.getExponent(variable) > 0)
        found.push_back(variable);
    llvm::sort(found);
    return found;
  }

  /// Solves one variable of `ratio`, which has the chosen substitutions made.
  void enumerate(const Size &ratio) {
    // In ascending order, so that each set of substitutions is found once.
    llvm::SmallVector<unsigned> open = variablesOf(ratio, -1);
    // The ratio of an output is 1: variables above must be solved, too.
    if (open.empty() && problem.isOutput)
      open = variablesOf(ratio, 1);
    if (open.empty()) {
      addCandidate(ratio);
      return;
    }
    unsigned variable = open.front();
    if (problem.isOutput && open.size() == 1) {
      solveLast(ratio, variable);
      return;
    }
    // The numerator for a variable below, and the reverse.
    bool isBelow = ratio.getExponent(variable) < 0;
    std::optional<Size> other = isBelow ? ratio : Size().divide(ratio);
    if (!other)
      return;
    // A factor may hold other variables, which may be solved later.
    for (const Size &factor : rules.factors(*other))
      if (result.isComplete)
        choose(ratio, {variable, factor});
  }

  /// The chosen substitutions, by variable, with those made later put into the
  /// values of the earlier ones. With x1 = x2 * C chosen first and x2 = G
  /// later, x1 becomes G * C. Empty if a value does not fit.
  llvm::SmallVector<Substitution, 2> resolve() const {
    llvm::SmallVector<Substitution, 2> resolved;
    for (const Substitution &substitution : llvm::reverse(chosen)) {
      std::optional<Size> value = substitute(substitution.value, resolved);
      if (!value)
        return {};
      resolved.push_back({substitution.variable, *value});
    }
    llvm::sort(resolved, [](const Substitution &a, const Substitution &b) {
      return a.variable < b.variable;
    });
    return resolved;
  }

  /// The ratio is 1 for one value of `variable` at most. `variable^exponent *
  /// rest = 1`: the value is a root of 1 / rest, or of rest where it is below.
  void solveLast(const Size &ratio, unsigned variable) {
    int exponent = ratio.getExponent(variable);
    std::optional<Size> rest = ratio.divide(Size::symbol(variable, exponent));
    if (rest && exponent > 0)
      rest = Size().divide(*rest);
    std::optional<Size> value =
        rest ? getRoot(*rest, std::abs(exponent)) : std::nullopt;
    if (value)
      choose(ratio, {variable, *value});
  }

  /// Goes on with the ratio after `substitution`, then takes it back.
  void choose(const Size &ratio, const Substitution &substitution) {
    std::optional<Size> next = substitute(ratio, substitution);
    if (!next)
      return;
    chosen.push_back(substitution);
    enumerate(*next);
    chosen.pop_back();
  }

  /// All variables are solved. Keeps the substitutions as a match if the ratio,
  /// the blocks and the rest of the kernel are legal with them.
  void addCandidate(const Size &ratio) {
    // The number of candidates is a product of numbers of factors.
    if (++numCandidates > problem.maxCandidates) {
      result.isComplete = false;
      return;
    }
    if (problem.isOutput ? !ratio.isOne() : !rules.isLegal(ratio))
      return;
    ShapeMatch match;
    match.substitutions = resolve();
    if (match.substitutions.size() != chosen.size())
      return;
    std::optional<Size> block = substitute(*leftBlock, match.substitutions);
    std::optional<Size> rightBlock = block ? block->multiply(ratio) : block;
    if (!rightBlock || !rules.isLegal(*block) || !rules.isLegal(*rightBlock) ||
        !llvm::all_of(match.substitutions, [&](const Substitution &made) {
          return rules.isLegal(made.value);
        }))
      return;
    // Counted: callers report shapes that would match but for the rest.
    if (!keepsKernelLegal(match.substitutions)) {
      ++result.numRejected;
      return;
    }
    match.common = common;
    match.leftBlock = *block;
    match.ratio = ratio;
    result.matches.push_back(std::move(match));
  }

  /// Every size of the kernel with the substitutions made, and Theorem 1 where
  /// it is required.
  bool keepsKernelLegal(llvm::ArrayRef<Substitution> made) const {
    auto isLegal = [&](const Size &size) {
      std::optional<Size> value = substitute(size, made);
      return value && rules.isLegal(*value);
    };
    if (!llvm::all_of(problem.left, isLegal) ||
        !llvm::all_of(problem.right, isLegal) ||
        !llvm::all_of(problem.sizes, isLegal))
      return false;
    return llvm::all_of(problem.shapes, [&](TensorShape shape) {
      if (!llvm::all_of(shape.dims, isLegal))
        return false;
      for (Size &dim : shape.dims)
        dim = *substitute(dim, made);
      return !problem.requiresTheorem || !findTheoremViolation(shape, rules);
    });
  }

  const ShapeMatchProblem &problem;
  const SizeRules &rules;
  CommonDims common;
  std::optional<Size> leftBlock;
  llvm::SmallVector<Substitution, 2> chosen;
  unsigned numCandidates = 0;
  ShapeMatches result;
};
} // namespace

ShapeMatches kas::solver::matchShapes(const ShapeMatchProblem &problem) {
  return Matcher(problem).run();
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// Reports values that are no legal values for variables.
static llvm::Error verifySubstitutions(const SizeRules &rules,
                                       const ShapeMatch &match) {
  for (const Substitution &substitution : match.substitutions) {
    if (!rules.isVariable(substitution.variable))
      return llvm::createStringError("only a variable can be substituted");
    for (const Substitution &other : match.substitutions)
      if (substitution.value.getExponent(other.variable) != 0)
        return llvm::createStringError(
            "a value must not contain a substituted variable");
    if (!rules.isLegal(substitution.value))
      return llvm::createStringError("a value must be a legal size");
  }
  return llvm::Error::success();
}

llvm::Error kas::solver::verify(const ShapeMatchProblem &problem,
                                const ShapeMatch &match) {
  if (llvm::Error error = verifySubstitutions(problem.rules, match))
    return error;
  // All sizes in one list: the tensors, then the two shapes, the other sizes,
  // and what the match claims.
  llvm::SmallVector<TensorShape, 0> shapes = problem.shapes;
  shapes.push_back({problem.left, 0});
  shapes.push_back({problem.right, 0});
  shapes.push_back({{problem.sizes.begin(), problem.sizes.end()}, 0});
  shapes.push_back({{match.leftBlock, match.ratio}, 0});
  for (auto [index, shape] : llvm::enumerate(shapes)) {
    for (Size &dim : shape.dims) {
      std::optional<Size> value = substitute(dim, match.substitutions);
      if (!value || !problem.rules.isLegal(*value))
        return llvm::createStringError(
            "a size of the kernel is not legal after the substitution");
      dim = *value;
    }
    // The four lists after the tensors are no shapes.
    if (problem.requiresTheorem && index < problem.shapes.size() &&
        findTheoremViolation(shape, problem.rules))
      return llvm::createStringError(
          "a shape of the kernel breaks theorem 1 after the substitution");
  }

  // The problem with the substitutions made must have the common dimensions of
  // the match.
  ShapeMatchProblem after = problem;
  llvm::ArrayRef<TensorShape> ends(shapes.end() - 4, shapes.end());
  after.left = ends[0].dims;
  after.right = ends[1].dims;
  after.common = match.common;
  if (llvm::Error error = after.check())
    return error;
  std::optional<Size> left = getBlockSize(after.left, match.common);
  std::optional<Size> right = getBlockSize(after.right, match.common);
  if (!left || !right || *left != match.leftBlock ||
      left->multiply(match.ratio) != right)
    return llvm::createStringError(
        "the right block must be the left block times the ratio");
  if (problem.isOutput && !match.ratio.isOne())
    return llvm::createStringError("the ratio of an output must be 1");
  return llvm::Error::success();
}
