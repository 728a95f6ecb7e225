//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelBruteForce.h"
#include "kas/Solver/ShapeMatch.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/bit.h"
#include <set>

using namespace kas;
using namespace kas::search;
using namespace kas::solver;
using namespace kas::test;

namespace {

using enum KernelStep;

/// Where a dimension comes from.
enum class Origin : uint8_t { Channels, Groups, Window, Axis };

struct Tensor {
  KernelNode node;
  llvm::SmallVector<Origin, 6> origins;

  bool isGrouped() const { return llvm::is_contained(origins, Origin::Groups); }
  unsigned getRank() const { return origins.size(); }
  unsigned getNumChannelDims() const { return node.shape.numChannelDims; }
};

/// A kernel that is not complete; copied for each way to go on.
struct Draft {
  llvm::SmallVector<Tensor, 6> tensors;
};

bool isMerge(KernelStep step) { return step >= Add && step <= Max; }
bool isFold(KernelStep step) { return step >= FoldSum && step <= FoldMax; }

class BruteForce {
public:
  BruteForce(std::shared_ptr<const KernelProblem> problem,
             llvm::function_ref<void(const KernelGraph &)> visit)
      : problem(std::move(problem)), limits(this->problem->limits),
        rules(this->problem->rules), visit(visit) {
    // What is legal must follow from the facts, for any number of groups.
    rules.bindings.clear();
  }

  void run() {
    Draft draft;
    Tensor &input = draft.tensors.emplace_back();
    input.node.shape = problem->input;
    for (unsigned dim = 0; dim < problem->input.dims.size(); ++dim)
      input.origins.push_back(dim < problem->input.numChannelDims
                                  ? Origin::Channels
                                  : Origin::Axis);
    extend(draft);
  }

private:
  void extend(const Draft &draft) {
    unsigned numSteps = draft.tensors.size() - 1;
    if (numSteps >= limits.minSteps)
      complete(draft);
    if (numSteps == limits.maxSteps)
      return;
    // A step makes one tensor of two at most.
    if (getUnused(draft).size() > 1 + limits.maxSteps - numSteps)
      return;
    for (unsigned kind = 0; kind < numKernelSteps; ++kind)
      if (limits.steps[kind])
        for (unsigned left = 0; left <= numSteps; ++left)
          addStep(draft, static_cast<KernelStep>(kind), left);
  }

  void addStep(const Draft &draft, KernelStep step, unsigned left) {
    Tensor made = draft.tensors[left];
    made.node = KernelNode();
    made.node.step = step;
    made.node.left = static_cast<int>(left);
    made.node.shape = draft.tensors[left].node.shape;
    if (isMerge(step)) {
      for (unsigned right = 0; right < draft.tensors.size(); ++right)
        if (right != left)
          addMerge(draft, made, right);
      return;
    }
    switch (step) {
    case FC:
      return addLayer(draft, made);
    case Group:
      return addGroup(draft, made);
    case GroupAll:
      return addGroupAll(draft, made);
    case Shift:
      return addShift(draft, made);
    case Unfold:
    case Scale:
    case Mix:
    case FoldSum:
    case FoldMean:
    case FoldMax:
    case Softmax:
      for (unsigned dims = 1; dims < 1u << made.getRank(); ++dims)
        addStepOver(draft, made, dims);
      return;
    case Norm:
      if (made.getNumChannelDims() == 0)
        return;
      break;
    default:
      assert(step >= ReLU && step <= Sqr && "a step that is not known here");
      break;
    }
    add(draft, made, {});
  }

  //===--------------------------------------------------------------------===//
  // Steps
  //===--------------------------------------------------------------------===//

  void addLayer(const Draft &draft, const Tensor &operand) {
    if (operand.getNumChannelDims() == 0)
      return;
    for (bool usesGroups : {false, true}) {
      if (usesGroups && operand.origins.front() != Origin::Groups)
        continue;
      llvm::SmallVector<Size, 2> sizes = {
          getProduct(problem->output.dims, 0, problem->output.numChannelDims)};
      if (std::optional<Size> variable = getFreshVariable(draft))
        sizes.push_back(*variable);
      for (const Size &size : sizes) {
        Tensor made = operand;
        made.node.size = size;
        made.node.amount = usesGroups;
        made.node.impliedSizes = {
            usesGroups ? *size.divide(made.node.shape.dims[0]) : size};
        unsigned numChannels = made.getNumChannelDims();
        replaceFront(made, numChannels, {{size, Origin::Channels}});
        add(draft, made, {});
      }
    }
  }

  void addGroup(const Draft &draft, const Tensor &operand) {
    if (operand.getNumChannelDims() == 0 || operand.isGrouped() ||
        operand.origins.front() == Origin::Window)
      return;
    for (unsigned divisor : problem->divisors) {
      Tensor made = operand;
      made.node.size = Size::symbol(divisor);
      Size rest = *made.node.shape.dims[0].divide(made.node.size);
      replaceFront(
          made, 1,
          {{made.node.size, Origin::Groups}, {rest, Origin::Channels}});
      if (!rest.isOne())
        add(draft, made, {});
    }
  }

  void addGroupAll(const Draft &draft, const Tensor &operand) {
    if (operand.getNumChannelDims() == 0 || operand.isGrouped())
      return;
    Tensor made = operand;
    unsigned numChannels = made.getNumChannelDims();
    Size all = getProduct(made.node.shape.dims, 0, numChannels);
    replaceFront(made, numChannels,
                 {{all, Origin::Groups}, {Size(), Origin::Channels}});
    if (!all.isOne())
      add(draft, made, {});
  }

  void addShift(const Draft &draft, const Tensor &operand) {
    for (unsigned dim = operand.getNumChannelDims(); dim < operand.getRank();
         ++dim)
      for (int amount : {1, -1}) {
        Tensor made = operand;
        made.node.dims = 1u << dim;
        made.node.amount = amount;
        add(draft, made, {});
      }
  }

  /// Steps over sets of dimensions.
  void addStepOver(const Draft &draft, const Tensor &operand, unsigned dims) {
    Tensor made = operand;
    made.node.dims = dims;
    if (made.node.step == Unfold) {
      if (unfold(made, dims))
        add(draft, made, {});
      return;
    }
    unsigned all = (1u << made.getRank()) - 1;
    unsigned channels = (1u << made.getNumChannelDims()) - 1;
    if (made.node.step == Scale) {
      if ((dims == channels || dims == (all & ~channels)) &&
          !getProductOf(made, dims).isOne())
        add(draft, made, {});
      return;
    }
    if (made.node.step == Mix)
      return addMix(draft, made);
    bool isSet = llvm::has_single_bit(dims) ||
                 dims == getDims(made, {Origin::Axis}) ||
                 dims == getDims(made, {Origin::Window});
    if (made.node.step == Softmax)
      isSet |= dims == channels ||
               dims == getDims(made, {Origin::Channels, Origin::Window});
    for (unsigned dim = 0; dim < made.getRank(); ++dim)
      isSet &= !(dims >> dim & 1) || !made.node.shape.dims[dim].isOne();
    if (!isSet)
      return;
    if (isFold(made.node.step))
      fold(made, dims);
    add(draft, made, {});
  }

  /// A map along one dimension but a group, not along the only channels: with
  /// each size that the dimension may get.
  void addMix(const Draft &draft, const Tensor &operand) {
    unsigned dims = operand.node.dims;
    if (!llvm::has_single_bit(dims))
      return;
    unsigned dim = llvm::countr_zero(dims);
    Size old = operand.node.shape.dims[dim];
    if (old.isOne() || operand.origins[dim] == Origin::Groups ||
        (dim == 0 && operand.getNumChannelDims() == 1))
      return;
    llvm::SmallVector<Size, 3> sizes = {old};
    if (operand.origins[dim] == Origin::Axis &&
        problem->output.dims.back() != old)
      sizes.push_back(problem->output.dims.back());
    if (std::optional<Size> variable = getFreshVariable(draft))
      sizes.push_back(*variable);
    for (const Size &size : sizes) {
      Tensor made = operand;
      made.node.size = size;
      made.node.shape.dims[dim] = size;
      add(draft, made, {});
    }
  }

  bool unfold(Tensor &made, unsigned dims) {
    // No axis has two windows; with one axis that is any second window.
    assert(problem->windows.size() == 1 && problem->windows[0].size() == 1 &&
           "one axis and one window");
    if (dims != getDims(made, {Origin::Axis}) ||
        getDims(made, {Origin::Window}) != 0)
      return false;
    Size window = Size::symbol(problem->windows[0][0]);
    made.node.windows = {window};
    made.node.amount = 1;
    unsigned place = made.getNumChannelDims();
    made.node.shape.dims.insert(made.node.shape.dims.begin() + place, window);
    made.origins.insert(made.origins.begin() + place, Origin::Window);
    ++made.node.shape.numChannelDims;
    return true;
  }

  static void fold(Tensor &made, unsigned dims) {
    unsigned numChannels = made.getNumChannelDims();
    for (unsigned dim = made.getRank(); dim-- > 0;) {
      if (!(dims >> dim & 1))
        continue;
      made.node.shape.dims.erase(made.node.shape.dims.begin() + dim);
      made.origins.erase(made.origins.begin() + dim);
      made.node.shape.numChannelDims -= dim < numChannels;
    }
  }

  /// With every match of the two shapes.
  void addMerge(const Draft &draft, const Tensor &operand, unsigned right) {
    Tensor made = operand;
    made.node.right = static_cast<int>(right);
    made.node.shape = draft.tensors[right].node.shape;
    made.origins = draft.tensors[right].origins;
    const auto &l = operand.node.shape.dims, &r = made.node.shape.dims;
    unsigned rank = std::min(l.size(), r.size());
    unsigned &suffix = made.node.suffix, &prefix = made.node.prefix;
    while (suffix < rank &&
           l[l.size() - 1 - suffix] == r[r.size() - 1 - suffix])
      ++suffix;
    while (prefix + suffix < rank && l[prefix] == r[prefix])
      ++prefix;
    ShapeMatchProblem match = getMatchProblem(draft);
    match.left.assign(l.begin(), l.end());
    match.right.assign(r.begin(), r.end());
    match.common = CommonDims{prefix, suffix};
    Size leftBlock = getProduct(l, prefix, l.size() - suffix);
    std::optional<Size> ratio =
        getProduct(r, prefix, r.size() - suffix).divide(leftBlock);
    if (!ratio)
      return;
    made.node.impliedSizes = {leftBlock, *ratio};
    for (const ShapeMatch &found : matchShapes(match).matches)
      add(draft, made, found.substitutions);
  }

  //===--------------------------------------------------------------------===//
  // Results
  //===--------------------------------------------------------------------===//

  /// Goes on with `made` after the substitutions, if all stays legal.
  void add(const Draft &draft, const Tensor &made,
           llvm::ArrayRef<Substitution> substitutions) {
    Draft next = draft;
    next.tensors.push_back(made);
    if (substituteAll(next, substitutions))
      extend(next);
  }

  bool substituteAll(Draft &draft,
                     llvm::ArrayRef<Substitution> substitutions) const {
    for (Tensor &tensor : draft.tensors) {
      auto put = [&](Size &size) {
        std::optional<Size> value = substitute(size, substitutions);
        if (value)
          size = *value;
        return value && rules.isLegal(size);
      };
      if (tensor.getRank() == 0 || tensor.getRank() > limits.rank ||
          !put(tensor.node.size) ||
          !llvm::all_of(tensor.node.shape.dims, put) ||
          !llvm::all_of(tensor.node.impliedSizes, put) ||
          !isLegalShape(tensor.node.shape) ||
          !llvm::all_of(tensor.node.impliedSizes,
                        [&](const Size &size) { return hasOneVariable(size); }))
        return false;
    }
    return true;
  }

  /// Theorem 1, or without it what is left of it: at most one variable.
  bool isLegalShape(const TensorShape &shape) const {
    if (problem->requiresTheorem)
      return !findTheoremViolation(shape, rules);
    int sum = 0;
    for (const Size &dim : shape.dims)
      for (unsigned variable : rules.variables) {
        if (dim.getExponent(variable) < 0)
          return false;
        sum += dim.getExponent(variable);
      }
    return sum <= 1;
  }

  /// What solvers of budgets take: one variable at most, once.
  bool hasOneVariable(const Size &size) const {
    int sum = 0;
    for (unsigned variable : rules.variables)
      sum += std::abs(size.getExponent(variable));
    return sum <= 1;
  }

  /// At every layer each variable has a value for which all sizes are integers:
  /// those hold one variable each.
  bool hasValues(const Draft &draft) const {
    for (Binding binding : problem->rules.bindings)
      for (unsigned variable : rules.variables) {
        auto isInteger = [&](const Size &size) {
          return size.getExponent(variable) == 0 ||
                 size.evaluate(binding).has_value();
        };
        bool found = false;
        for (int64_t value = 1; value <= 5000 && !found; ++value) {
          binding[variable] = value;
          found = llvm::all_of(draft.tensors, [&](const Tensor &tensor) {
            return llvm::all_of(tensor.node.shape.dims, isInteger) &&
                   llvm::all_of(tensor.node.impliedSizes, isInteger);
          });
        }
        if (!found)
          return false;
      }
    return true;
  }

  void complete(const Draft &draft) {
    unsigned numLayers =
        llvm::count_if(draft.tensors, [](const Tensor &tensor) {
          return tensor.node.step == FC;
        });
    const TensorShape &shape = draft.tensors.back().node.shape;
    const TensorShape &output = problem->output;
    auto getSpatial = [](const TensorShape &of) {
      return llvm::ArrayRef(of.dims).drop_front(of.numChannelDims);
    };
    if (getUnused(draft).size() != 1 || numLayers < limits.minWeights ||
        numLayers > limits.maxWeights ||
        getSpatial(shape) != getSpatial(output))
      return;
    ShapeMatchProblem match = getMatchProblem(draft);
    match.left = shape.dims;
    match.right = output.dims;
    match.isOutput = true;
    for (const ShapeMatch &found : matchShapes(match).matches) {
      Draft solved = draft;
      if (substituteAll(solved, found.substitutions) && !isLeftOut(solved) &&
          hasValues(solved))
        write(solved);
    }
  }

  /// The tensors that no step reads; the last one is among them.
  static std::set<int> getUnused(const Draft &draft) {
    std::set<int> unused;
    for (auto [index, tensor] : llvm::enumerate(draft.tensors)) {
      unused.insert(static_cast<int>(index));
      unused.erase(tensor.node.left);
      unused.erase(tensor.node.right);
    }
    return unused;
  }

  ShapeMatchProblem getMatchProblem(const Draft &draft) const {
    ShapeMatchProblem match;
    match.rules = rules;
    match.requiresTheorem = problem->requiresTheorem;
    for (const Tensor &tensor : draft.tensors) {
      match.shapes.push_back(tensor.node.shape);
      llvm::append_range(match.sizes, tensor.node.impliedSizes);
    }
    return match;
  }

  void write(const Draft &draft) {
    KernelGraph graph;
    graph.problem = problem;
    for (const Tensor &tensor : draft.tensors) {
      KernelNode &node = graph.nodes.emplace_back(tensor.node);
      node.commutes = isMerge(node.step) && node.step != Sub &&
                      haveSameShape(draft, node.left, node.right);
    }
    for (unsigned variable : getVariables(draft))
      graph.variables.push_back(variable);
    visit(graph);
  }

  //===--------------------------------------------------------------------===//
  // What the space leaves out
  //===--------------------------------------------------------------------===//

  bool isLeftOut(const Draft &draft) const {
    for (unsigned index = 1; index < draft.tensors.size(); ++index) {
      const KernelNode &node = draft.tensors[index].node;
      const Tensor &operand = draft.tensors[node.left];
      if (hasShorterForm(draft, node, operand))
        return true;
      for (unsigned other = 1; other < index; ++other)
        if (isSameStep(draft, node, draft.tensors[other].node))
          return true;
    }
    return false;
  }

  bool hasShorterForm(const Draft &draft, const KernelNode &node,
                      const Tensor &operand) const {
    KernelStep before = operand.node.step, after = node.step;
    auto isActivation = [](KernelStep step) {
      return step >= ReLU && step <= TanH;
    };
    // No function of what it would not change.
    auto isNonNegative = [&] {
      return before == ReLU || before == Sigmoid || before == Abs ||
             before == Exp || before == Sqrt || before == Sqr ||
             before == Softmax;
    };
    if (isActivation(after) && (before == Input || isActivation(before)))
      return true;
    if (after == before && (after == Softmax || after == Scale ||
                            after == Norm || (after >= ReLU && after <= Sqr)))
      return true;
    switch (after) {
    case Abs:
      return isNonNegative() || before == Neg;
    case ReLU:
      return isNonNegative();
    case Sqrt:
      return before == Abs || before == Neg || before == Sqr;
    case Sqr:
      return before == Abs || before == Neg || before == Sqrt;
    case Shift:
      // The order of the dimensions, each at most once.
      return before == Shift && operand.node.dims >= node.dims;
    case Mix:
      // Its weight can do what only moved the dimension.
      return (before == Shift || before == Shuffle || before == Reorder) &&
             operand.node.dims == node.dims;
    case FC:
      // Groups that only this layer would see, and that it does not look at.
      return node.amount == 0 && (before == Group || before == GroupAll);
    case FoldSum:
    case FoldMean:
    case FoldMax:
      return before == after && isFoldOf(draft, operand.node, Origin::Window) &&
             isFoldOf(draft, node, Origin::Window);
    default:
      return false;
    }
  }

  bool isFoldOf(const Draft &draft, const KernelNode &node,
                Origin origin) const {
    const Tensor &operand = draft.tensors[node.left];
    return llvm::all_of(
        llvm::seq<unsigned>(operand.getRank()), [&](unsigned dim) {
          return !(node.dims >> dim & 1) || operand.origins[dim] == origin;
        });
  }

  bool isSameStep(const Draft &draft, const KernelNode &a,
                  const KernelNode &b) const {
    if (a.step != b.step)
      return false;
    if (isMerge(a.step))
      return (a.left == b.left && a.right == b.right) ||
             (a.step != Sub && a.left == b.right && a.right == b.left &&
              haveSameShape(draft, a.left, a.right));
    if (a.left != b.left || a.dims != b.dims)
      return false;
    // Layers, scales, maps and normalizations have weights of their own.
    if (a.step == FC || a.step == Scale || a.step == Norm || a.step == Mix)
      return !limits.repeats;
    return a.amount == b.amount && a.size == b.size;
  }

  static bool haveSameShape(const Draft &draft, int a, int b) {
    const TensorShape &x = draft.tensors[a].node.shape;
    const TensorShape &y = draft.tensors[b].node.shape;
    return x.numChannelDims == y.numChannelDims && x.dims == y.dims;
  }

  //===--------------------------------------------------------------------===//
  // Sizes and dimensions
  //===--------------------------------------------------------------------===//

  static Size getProduct(llvm::ArrayRef<Size> dims, unsigned first,
                         unsigned last) {
    Size product;
    for (const Size &dim : dims.slice(first, last - first))
      product = *product.multiply(dim);
    return product;
  }
  static Size getProductOf(const Tensor &tensor, unsigned dims) {
    Size product;
    for (unsigned dim = 0; dim < tensor.getRank(); ++dim)
      if (dims >> dim & 1)
        product = *product.multiply(tensor.node.shape.dims[dim]);
    return product;
  }
  static unsigned getDims(const Tensor &tensor,
                          std::initializer_list<Origin> origins) {
    unsigned dims = 0;
    for (unsigned dim = 0; dim < tensor.getRank(); ++dim)
      if (llvm::is_contained(origins, tensor.origins[dim]))
        dims |= 1u << dim;
    return dims;
  }
  static void replaceFront(Tensor &tensor, unsigned count,
                           llvm::ArrayRef<std::pair<Size, Origin>> front) {
    TensorShape &shape = tensor.node.shape;
    llvm::SmallVector<Size, 6> dims;
    llvm::SmallVector<Origin, 6> origins;
    for (auto &[size, origin] : front) {
      dims.push_back(size);
      origins.push_back(origin);
    }
    dims.append(shape.dims.begin() + count, shape.dims.end());
    origins.append(tensor.origins.begin() + count, tensor.origins.end());
    shape.numChannelDims += front.size() - count;
    shape.dims = dims;
    tensor.origins = origins;
  }

  std::set<unsigned> getVariables(const Draft &draft) const {
    std::set<unsigned> found;
    for (const Tensor &tensor : draft.tensors)
      for (const Size &dim : tensor.node.shape.dims)
        for (unsigned variable : rules.variables)
          if (dim.getExponent(variable) != 0)
            found.insert(variable);
    return found;
  }
  std::optional<Size> getFreshVariable(const Draft &draft) const {
    std::set<unsigned> used = getVariables(draft);
    for (unsigned variable : rules.variables)
      if (!used.contains(variable))
        return Size::symbol(variable);
    return std::nullopt;
  }

  std::shared_ptr<const KernelProblem> problem;
  const KernelLimits &limits;
  SizeRules rules;
  llvm::function_ref<void(const KernelGraph &)> visit;
};

} // namespace

void kas::test::enumerateKernelsByBruteForce(
    std::shared_ptr<const KernelProblem> problem,
    llvm::function_ref<void(const KernelGraph &)> visit) {
  BruteForce(std::move(problem), visit).run();
}
