//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Decides the properties that a space asks for, such as receptive fields and
// channel mixing, from the coordinates of a state
// (docs/reference/properties.md).
//
// Definitions are in docs/reference/properties.md, the numbers Q1 to Q6 in
// docs/internals/canonical-form.md. The checks themselves are in
// GraphPropertyChecks.cpp; this file finds the independent components that they
// look at, and remembers their answers.
//
//===----------------------------------------------------------------------===//

#include "GraphProperties.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::search;

//===----------------------------------------------------------------------===//
// The signature
//===----------------------------------------------------------------------===//

/// The last steps depend on the ones before: windows on axes and channels, the
/// distance on windows.
GraphProperties::GraphProperties(GraphSpace &space)
    : space(space), limits(space.problem->limits) {
  addAxes();
  addChannels();
  for (unsigned binding = 0; binding < getNumBindings(); ++binding) {
    // How many positions an output in the interior must see.
    double seen = 1;
    bool isInside = true;
    for (const Axis &axis : axes) {
      seen *= static_cast<double>(axis.windows[binding]);
      // Along every axis some output has its whole window in the image;
      // otherwise nothing is demanded at this binding.
      int64_t extent =
          space.sizes[space.getExpr(axis.output).size].values[binding];
      isInside &= llvm::any_of(llvm::seq<int64_t>(0, extent), [&](int64_t p) {
        return isInterior(axis, binding, p);
      });
    }
    hasInterior.push_back(isInside);
    numSeen.push_back(isInside ? seen : 1);
  }
  llvm::SmallVector<unsigned, 4> windowed;
  for (Axis &axis : axes)
    if ((axis.needsWindows = needsWindows(axis)))
      windowed.push_back(axis.target);
  // From here on the shape distance demands windows as well.
  space.distance.requireWindows(windowed);
  numUnfolded =
      llvm::count_if(axes, [&](const Axis &axis) { return needsUnfold(axis); });
}

/// An axis is a dimension of the output with the same symbol as one of the
/// input, possibly divided by a stride.
void GraphProperties::addAxes() {
  llvm::SmallVector<SpaceAxis> pairs = space.problem->getAxes();
  for (auto [number, pair] : llvm::enumerate(pairs)) {
    Axis &axis = axes.emplace_back();
    axis.output = space.getOutput(pair.output);
    axis.target = static_cast<int>(pair.input - space.firstOutput);
    axis.size = space.sizes[space.targets[axis.target]].values;
    for (const Binding &binding : space.problem->bindings) {
      axis.strides.push_back(pair.stride.evaluate(binding).value_or(1));
      std::optional<Size> window =
          limits.sees.empty() ? Size() : limits.sees[number];
      axis.isWhole = !window;
      axis.windows.push_back(window ? window->evaluate(binding).value_or(1)
                                    : axis.size[axis.windows.size()]);
    }
    if (!limits.equivariant.empty())
      axis.moves = limits.equivariant[number];
    // Small images first: a property that fails does so there at less cost.
    axis.bySize.append(llvm::seq<unsigned>(0, getNumBindings()).begin(),
                       llvm::seq<unsigned>(0, getNumBindings()).end());
    llvm::sort(axis.bySize, [&](unsigned a, unsigned b) {
      return std::pair(axis.size[a], a) < std::pair(axis.size[b], b);
    });
  }
}

/// Everything that is neither an axis nor the batch.
void GraphProperties::addChannels() {
  for (unsigned index = space.firstOutput;
       index < space.problem->outputs.size(); ++index)
    if (!getAxisOfOutput(space.getOutput(index)))
      channelOutputs.push_back(space.getOutput(index));
  for (unsigned target = 0; target < space.targets.size(); ++target)
    if (!getAxisOfTarget(static_cast<int>(target)))
      channelTargets.push_back(static_cast<int>(target));
}

/// Else `sees` is met by every operator.
bool GraphProperties::seesSeveral() const {
  return llvm::any_of(numSeen, [](double count) { return count > 1; });
}

/// Else `reaches` is met by every operator.
bool GraphProperties::reachesSeveral() const {
  return llvm::any_of(channelTargets, [&](int target) {
    return space.isChannel(space.targets[target]) &&
           space.sizes[space.targets[target]].max > 1;
  });
}

/// Null for a channel.
const GraphProperties::Axis *
GraphProperties::getAxisOfTarget(int target) const {
  const auto *axis = llvm::find_if(
      axes, [&](const Axis &axis) { return axis.target == target; });
  return axis == axes.end() ? nullptr : axis;
}

/// The same for an output coordinate.
const GraphProperties::Axis *
GraphProperties::getAxisOfOutput(ExprId leaf) const {
  const auto *axis = llvm::find_if(
      axes, [&](const Axis &axis) { return axis.output == leaf; });
  return axis == axes.end() ? nullptr : axis;
}

/// `position` is of the output.
int64_t GraphProperties::getBegin(const Axis &axis, unsigned binding,
                                  int64_t position) const {
  return axis.isWhole ? 0
                      : axis.strides[binding] * position -
                            limits.getReach(axis.windows[binding]);
}

/// The window of an output position lies in the image.
bool GraphProperties::isInterior(const Axis &axis, unsigned binding,
                                 int64_t position) const {
  int64_t begin = getBegin(axis, binding, position);
  return begin >= 0 && begin + axis.windows[binding] <= axis.size[binding];
}

//===----------------------------------------------------------------------===//
// Components
//===----------------------------------------------------------------------===//

/// Adds what is not there.
static void insert(llvm::SmallVectorImpl<ExprId> &all,
                   llvm::ArrayRef<ExprId> some) {
  for (ExprId id : some)
    if (!llvm::is_contained(all, id))
      all.push_back(id);
}

/// Computed bottom-up, once for each expression. Leaves in order of discovery.
const GraphProperties::Facts &GraphProperties::getFacts(ExprId id) {
  if (id >= facts.size())
    facts.resize(id + 1);
  if (facts[id].isKnown)
    return facts[id];
  Facts made;
  made.isKnown = true;
  // By value: `getFacts` of the operands may move the table of expressions.
  const Expr expr = space.getExpr(id);
  if (expr.kind == CoordKind::Output || expr.kind == CoordKind::Reduce) {
    made.leaves.push_back(id);
    made.isUnseeing = expr.kind == CoordKind::Output;
  } else {
    made = getFacts(expr.first);
    // The operand's answer does not carry over.
    made.canSee = -1;
    if (expr.kind == CoordKind::Split || expr.kind == CoordKind::Unfold) {
      const Facts &second = getFacts(expr.second);
      insert(made.leaves, second.leaves);
      insert(made.unfolds, second.unfolds);
      made.hasWindow |= second.hasWindow;
      made.isUnseeing |= second.isUnseeing;
    }
    if (expr.kind == CoordKind::Unfold)
      made.unfolds.push_back(id);
    auto isOf = [&](CoordKind kind) {
      return llvm::any_of(made.leaves, [&](ExprId leaf) {
        return space.getExpr(leaf).kind == kind;
      });
    };
    // An unfold, or a merge, of something with a reduction below.
    made.hasWindow |= (expr.kind == CoordKind::Unfold ||
                       expr.kind == CoordKind::MergeQuotient ||
                       expr.kind == CoordKind::MergeRemainder) &&
                      isOf(CoordKind::Reduce);
    // A split has the factors of its operands.
    if (expr.kind != CoordKind::Split)
      made.isUnseeing = !made.hasWindow && isOf(CoordKind::Output);
  }
  return facts[id] = std::move(made);
}

/// The order in which a program counts: outputs slowest.
llvm::SmallVector<ExprId, 8> GraphProperties::Component::getLeaves() const {
  llvm::SmallVector<ExprId, 8> leaves(outputs.begin(), outputs.end());
  leaves.append(reductions);
  return leaves;
}

/// One coordinate. For properties that can be rejected by single coordinates.
GraphProperties::Component GraphProperties::getAlone(ExprId root, int target) {
  Component component;
  for (ExprId leaf : getFacts(root).leaves)
    (space.getExpr(leaf).kind == CoordKind::Output ? component.outputs
                                                   : component.reductions)
        .push_back(leaf);
  component.roots.push_back(root);
  component.targets.push_back(target);
  return component;
}

/// Unfolds that only weights, or what is expanded, have: a point does not exist
/// when one of them leaves its range. Data has most unfolds already: those
/// guard themselves.
llvm::SmallVector<ExprId, 4>
GraphProperties::getGuards(const GraphStateData &state,
                           llvm::ArrayRef<ExprId> data) {
  llvm::SmallVector<ExprId, 4> ofData, guards;
  for (ExprId id : data)
    insert(ofData, getFacts(id).unfolds);
  auto add = [&](llvm::ArrayRef<ExprId> ids) {
    for (ExprId id : ids)
      for (ExprId unfold : getFacts(id).unfolds)
        if (!llvm::is_contained(ofData, unfold))
          insert(guards, unfold);
  };
  for (unsigned index = 0; index < state.numWeights; ++index)
    add(space.getWeight(state.weights[index]));
  add(llvm::ArrayRef(state.expanded, state.numExpanded));
  return guards;
}

/// Union of groups with a common leaf. `data` are the coordinates of the input
/// dimensions in their order, the others have no dimension. A dimension that
/// belongs to an axis is grouped with the output of that axis, as the
/// properties compare their positions.
GraphProperties::Components
GraphProperties::getComponents(llvm::ArrayRef<ExprId> data,
                               llvm::ArrayRef<ExprId> ofWeights,
                               llvm::ArrayRef<ExprId> guards) {
  struct Group {
    llvm::SmallVector<ExprId, 8> leaves;
    llvm::SmallVector<std::pair<ExprId, int>, 4> roots;
  };
  llvm::SmallVector<Group, 6> groups;
  auto add = [&](ExprId root, int target) {
    Group group;
    group.leaves.append(getFacts(root).leaves.begin(),
                        getFacts(root).leaves.end());
    if (const Axis *axis = getAxisOfTarget(target))
      insert(group.leaves, axis->output);
    group.roots.emplace_back(root, target);
    // Joins all groups that share a leaf with the new one.
    for (unsigned index = groups.size(); index-- > 0;) {
      Group &other = groups[index];
      if (llvm::none_of(other.leaves, [&](ExprId leaf) {
            return llvm::is_contained(group.leaves, leaf);
          }))
        continue;
      insert(group.leaves, other.leaves);
      group.roots.append(other.roots);
      groups.erase(groups.begin() + index);
    }
    groups.push_back(std::move(group));
  };
  for (auto [target, root] : llvm::enumerate(data))
    add(root, static_cast<int>(target));
  for (ExprId root : ofWeights)
    add(root, Component::none);
  for (ExprId root : guards)
    add(root, Component::guard);
  Components components;
  for (Group &group : groups) {
    Component &component = components.emplace_back();
    // Sorted, so that the key of a component does not depend on the path.
    llvm::sort(group.leaves);
    for (ExprId leaf : group.leaves)
      (space.getExpr(leaf).kind == CoordKind::Output ? component.outputs
                                                     : component.reductions)
          .push_back(leaf);
    llvm::sort(group.roots, [](auto &a, auto &b) {
      return std::pair(a.second, a.first) < std::pair(b.second, b.first);
    });
    for (auto [root, target] : group.roots) {
      component.roots.push_back(root);
      component.targets.push_back(target);
    }
  }
  return components;
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

/// The same components come in many operators, so answers are kept under this
/// key.
uint64_t GraphProperties::getKey(const Component &component,
                                 Property property) {
  uint64_t key = mixBits(property);
  for (auto [root, target] :
       llvm::zip_equal(component.roots, component.targets))
    key = combineHash(combineHash(key, root), static_cast<uint64_t>(target));
  return key;
}

/// Whether `isTrue` of all components; it is evaluated once for each. Keyed by
/// the roots and their targets, not by the operator.
bool GraphProperties::holdsFor(
    llvm::ArrayRef<Component> components, Property property,
    llvm::function_ref<bool(const Component &)> isTrue) {
  return llvm::all_of(components, [&](const Component &component) {
    uint64_t key = getKey(component, property);
    if (const int8_t *answer = known.find(key))
      return *answer != 0;
    bool answer = isTrue(component);
    known[key] = answer;
    return answer;
  });
}

/// Cheap exclusions first: facts, reductions that nothing reads, translations
/// of single coordinates. Then components, one property after the other.
bool GraphProperties::hold(const GraphStateData &state,
                           llvm::ArrayRef<unsigned> match) {
  llvm::SmallVector<ExprId, 6> data;
  for (unsigned index : match)
    data.push_back(state.live[index].expr);
  // A coordinate of a dimension that must see a window has no window.
  if (llvm::any_of(axes, [&](const Axis &axis) { // Q1
        return axis.needsWindows && getFacts(data[axis.target]).isUnseeing;
      }))
    return false;
  if ((limits.oneProduct || limits.linearPath) &&
      !readsReductions(state, data)) // Q4, Q5
    return false;
  if (!areEquivariant(state, data)) // Q3
    return false;
  llvm::SmallVector<ExprId, 4> guards = getGuards(state, data);
  Components components = getComponents(data, {}, guards);
  // Properties that hold if they hold for every component.
  using Method = bool (GraphProperties::*)(const Component &);
  auto areAll = [&](Property property, Method method) {
    return holdsFor(components, property, [&](const Component &component) {
      return (this->*method)(component);
    });
  };
  if (limits.causal && // Q6
      !areAll(Causal, &GraphProperties::isCausal))
    return false;
  if (!limits.sees.empty() && // Q1
      !areAll(Sees, &GraphProperties::sees))
    return false;
  if (limits.oneProduct && // Q4
      !areAll(OneProduct, &GraphProperties::hasOneProduct))
    return false;
  if (limits.linearPath && // Q5
      !areAll(Linear, &GraphProperties::isLinear))
    return false;
  // Q2 is a product over the components.
  return limits.reaches == 0 || reachesAll(components); // Q2
}

/// A bound for states: reductions come first, so their number of points is
/// final.
bool GraphProperties::canHold(const GraphStateData &state) {
  if (limits.sees.empty())
    return true;
  // Q1: each position in a window is another point. As many points of
  // reductions as positions to be seen.
  llvm::SmallVector<ExprId, 8> reductions;
  for (const LiveCoord &coord : state.getLive())
    for (ExprId leaf : getFacts(coord.expr).leaves)
      if (space.getExpr(leaf).kind == CoordKind::Reduce)
        insert(reductions, leaf);
  return llvm::all_of(
      llvm::seq<unsigned>(0, getNumBindings()), [&](unsigned binding) {
        double points = 1;
        for (ExprId id : reductions)
          points *= static_cast<double>(
              space.sizes[space.getExpr(id).size].values[binding]);
        return points >= numSeen[binding];
      });
}
