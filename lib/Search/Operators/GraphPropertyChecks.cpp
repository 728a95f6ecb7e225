//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each property, of one component, by its points.
//
// Brute force over the points of a component at one binding. Components are
// small (a few coordinates), bindings of a search are of small layers, and
// answers are remembered by component.
//
//===----------------------------------------------------------------------===//

#include "CoordProgram.h"
#include "GraphProperties.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::search;

namespace {

/// Sets of numbers that are emptied at once. `clear` costs nothing: entries of
/// an older stamp do not count.
class StampSet {
public:
  explicit StampSet(size_t size) : stamps(size, 0) {}
  void clear() {
    ++stamp;
    count = 0;
  }
  /// False when it is there already.
  bool insert(size_t index) {
    if (stamps[index] == stamp)
      return false;
    stamps[index] = stamp;
    ++count;
    return true;
  }
  size_t size() const { return count; }
  size_t capacity() const { return stamps.size(); }

private:
  std::vector<uint32_t> stamps;
  uint32_t stamp = 1;
  size_t count = 0;
};

} // namespace

/// The element of some dimensions of the input, row by row. Numbers the
/// elements of several dimensions as one, in row-major order.
struct GraphProperties::Element {
  struct Part {
    unsigned root;
    int64_t extent;
  };
  llvm::SmallVector<Part, 4> parts;
  int64_t count = 1;

  int64_t get(const CoordProgram &program) const {
    int64_t element = 0;
    for (const Part &part : parts)
      element = element * part.extent + program.getRoot(part.root);
    return element;
  }
};

/// The factors of the channels of the input, and the coordinates that are none.
/// Splitting channels into factors makes components smaller: a reduction that
/// is a factor by itself is independent of all else and need not be run over.
struct GraphProperties::Factors {
  /// Those that are reductions, and how many points they have.
  llvm::SmallVector<ExprId, 8> free;
  double numFree = 1;
  /// The others and what is no channel; the element of the former.
  llvm::SmallVector<ExprId, 8> roots;
  Element element;
};

/// `onlyChannels` leaves the axes out.
GraphProperties::Element GraphProperties::getElement(const Component &component,
                                                     unsigned binding,
                                                     bool onlyChannels) const {
  Element element;
  for (auto [root, target] : llvm::enumerate(component.targets)) {
    if (target < 0 ||
        (onlyChannels && !llvm::is_contained(channelTargets, target)))
      continue;
    int64_t extent = space.sizes[space.targets[target]].values[binding];
    element.parts.push_back({static_cast<unsigned>(root), extent});
    element.count *= extent;
  }
  return element;
}

/// Adds what is not there.
static void insert(llvm::SmallVectorImpl<ExprId> &all,
                   llvm::ArrayRef<ExprId> some) {
  for (ExprId id : some)
    if (!llvm::is_contained(all, id))
      all.push_back(id);
}

/// For each binding of the problem.
bool GraphProperties::holdsAtAll(
    llvm::function_ref<bool(unsigned binding)> isTrue) const {
  return llvm::all_of(llvm::seq<unsigned>(0, getNumBindings()), isTrue);
}

//===----------------------------------------------------------------------===//
// Q1: what is seen
//===----------------------------------------------------------------------===//

/// Bindings without an output whose window is in the image demand nothing.
bool GraphProperties::sees(const Component &component) {
  bool isTrivial =
      llvm::none_of(component.targets,
                    [&](int target) { return getAxisOfTarget(target); }) &&
      llvm::all_of(component.roots,
                   [&](ExprId root) { return getFacts(root).unfolds.empty(); });
  return isTrivial || holdsAtAll([&](unsigned binding) {
           return !hasInterior[binding] || sees(component, binding);
         });
}

/// Each output that has its window in the image reads all positions of it.
/// `parts` are the axes in this component; the window of an output is a box of
/// `volume` positions.
bool GraphProperties::sees(const Component &component, unsigned binding) {
  struct Part {
    const Axis *axis;
    unsigned root, leaf;
  };
  llvm::SmallVector<Part, 4> parts;
  size_t volume = 1;
  for (auto [root, target] : llvm::enumerate(component.targets))
    if (const Axis *axis = getAxisOfTarget(target)) {
      unsigned leaf = llvm::find(component.outputs, axis->output) -
                      component.outputs.begin();
      parts.push_back({axis, static_cast<unsigned>(root), leaf});
      volume *= axis->windows[binding];
    }
  double points = 1;
  for (ExprId id : component.reductions)
    points *= static_cast<double>(
        space.sizes[space.getExpr(id).size].values[binding]);
  // Fewer points than positions: no need to count.
  if (points < static_cast<double>(volume))
    return false;
  CoordProgram program(space, component.getLeaves(), component.roots, binding);
  /// Where in the window the point is, if it is there. Row-major in the window.
  auto getPlace = [&]() -> std::optional<size_t> {
    size_t place = 0;
    for (const Part &part : parts) {
      int64_t window = part.axis->windows[binding];
      int64_t offset =
          program.getRoot(part.root) -
          getBegin(*part.axis, binding, program.getLeaf(part.leaf));
      if (offset < 0 || offset >= window)
        return std::nullopt;
      place = place * window + offset;
    }
    return place;
  };
  unsigned numOutputs = component.outputs.size();
  StampSet seen(volume);
  // Outputs in the outer loop, reductions in the inner one.
  do {
    // At the border the window is cut off, which nothing demands to be seen.
    if (!llvm::all_of(parts, [&](const Part &part) {
          return isInterior(*part.axis, binding, program.getLeaf(part.leaf));
        }))
      continue;
    seen.clear();
    do {
      if (program.evaluate())
        if (std::optional<size_t> place = getPlace())
          seen.insert(*place);
    } while (program.advance(numOutputs, program.getNumLeaves()));
    // Some position in the window was not read.
    if (seen.size() < volume)
      return false;
  } while (program.advance(0, numOutputs));
  return true;
}

//===----------------------------------------------------------------------===//
// Q2: what is reached
//===----------------------------------------------------------------------===//

/// The same where each dimension is a product of whole reductions and of parts
/// of output channels: a point has any values of all of them. A closed form for
/// the common case, without running over points. Inputs are the product of the
/// reductions; an output channel that is part of a dimension of the input
/// reaches as many outputs fewer.
std::optional<GraphProperties::Reach>
GraphProperties::getReachOfFactors(const Component &component,
                                   unsigned binding) const {
  auto getExtent = [&](ExprId id) {
    return static_cast<double>(
        space.sizes[space.getExpr(id).size].values[binding]);
  };
  Reach reach{1, 1};
  for (ExprId output : component.outputs)
    if (llvm::is_contained(channelOutputs, output))
      reach.outputs *= getExtent(output);
  for (auto [root, target] :
       llvm::zip_equal(component.roots, component.targets)) {
    // Other targets need the points.
    if (!llvm::is_contained(channelTargets, target))
      return std::nullopt;
    llvm::SmallVector<ExprId, 8> factors;
    space.getFactors(root, factors);
    for (ExprId factor : factors) {
      // The coordinate that a factor was merged from.
      ExprId id = factor;
      while (space.getExpr(id).kind == CoordKind::MergeQuotient ||
             space.getExpr(id).kind == CoordKind::MergeRemainder)
        id = space.getExpr(id).first;
      if (space.getExpr(id).kind == CoordKind::Reduce && id == factor)
        reach.inputs *= getExtent(factor);
      else if (llvm::is_contained(channelOutputs, id))
        reach.outputs /= getExtent(factor);
      else
        return std::nullopt;
    }
  }
  return reach;
}

/// Reductions that are whole factors go to `free`, all other factors to
/// `roots`.
GraphProperties::Factors GraphProperties::getFactors(const Component &component,
                                                     unsigned binding) const {
  Factors result;
  auto getExtent = [&](ExprId id) {
    return space.sizes[space.getExpr(id).size].values[binding];
  };
  for (auto [root, target] :
       llvm::zip_equal(component.roots, component.targets)) {
    if (!llvm::is_contained(channelTargets, target)) {
      result.roots.push_back(root);
      continue;
    }
    llvm::SmallVector<ExprId, 8> factors;
    space.getFactors(root, factors);
    for (ExprId factor : factors) {
      if (space.getExpr(factor).kind == CoordKind::Reduce) {
        result.free.push_back(factor);
        result.numFree *= static_cast<double>(getExtent(factor));
        continue;
      }
      unsigned number = result.roots.size();
      result.element.parts.push_back({number, getExtent(factor)});
      result.element.count *= getExtent(factor);
      result.roots.push_back(factor);
    }
  }
  return result;
}

/// Of the channels of a component, at one binding: the fewest inputs that an
/// output reads, the fewest outputs that read an input.
GraphProperties::Reach GraphProperties::getReach(const Component &component,
                                                 unsigned binding) {
  if (std::optional<Reach> reach = getReachOfFactors(component, binding))
    return *reach;
  // Reductions that are factors are independent of all else. So their points
  // are multiplied at the end.
  Factors factors = getFactors(component, binding);
  // Channels of the output first: they are the outer loop.
  llvm::SmallVector<ExprId, 8> leaves, others;
  for (ExprId leaf : component.getLeaves())
    if (!llvm::is_contained(factors.free, leaf))
      (llvm::is_contained(channelOutputs, leaf) ? leaves : others)
          .push_back(leaf);
  unsigned numChannels = leaves.size();
  leaves.append(others);
  CoordProgram program(space, leaves, factors.roots, binding);
  const Element &element = factors.element;
  // By channel of the input: how many outputs read it.
  std::vector<double> readers(element.count, 0);
  Reach reach{static_cast<double>(element.count), 0};
  StampSet reached(element.count);
  do {
    reached.clear();
    // Ends early when all channels are reached: the rest adds nothing.
    do {
      if (!program.evaluate())
        continue;
      int64_t channel = element.get(program);
      if (reached.insert(channel))
        ++readers[channel];
    } while (reached.size() < reached.capacity() &&
             program.advance(numChannels, leaves.size()));
    program.reset(numChannels, leaves.size());
    reach.inputs = std::min(reach.inputs, static_cast<double>(reached.size()));
  } while (program.advance(0, numChannels));
  reach.inputs *= factors.numFree;
  reach.outputs = *llvm::min_element(readers);
  return reach;
}

/// By binding, remembered by component.
const llvm::SmallVector<GraphProperties::Reach, 4> &
GraphProperties::getReaches(const Component &component) {
  uint64_t key = getKey(component, Reaches);
  if (const uint32_t *index = reachIds.find(key))
    return reaches[*index];
  llvm::SmallVector<Reach, 4> made;
  for (unsigned binding = 0; binding < getNumBindings(); ++binding)
    made.push_back(getReach(component, binding));
  reachIds[key] = reaches.size();
  return reaches.emplace_back(std::move(made));
}

/// With `reaches` = 1 the inputs of an output must be all channels; with 2 the
/// inputs of an output times the outputs of an input must be as many, since a
/// second layer of this kind multiplies them.
bool GraphProperties::reachesAll(const Components &components) {
  llvm::SmallVector<Reach, 4> all(getNumBindings(), Reach{1, 1});
  llvm::SmallVector<ExprId, 8> leaves;
  for (const Component &component : components) {
    insert(leaves, component.outputs);
    for (auto [product, factor] : llvm::zip_equal(all, getReaches(component))) {
      product.inputs *= factor.inputs;
      product.outputs *= factor.outputs;
    }
  }
  return holdsAtAll([&](unsigned binding) {
    auto getExtent = [&](SizeId size) {
      return static_cast<double>(space.sizes[size].values[binding]);
    };
    // Channels of the output that no component has are read by all.
    double count = 1, outputs = all[binding].outputs;
    for (int target : channelTargets)
      count *= getExtent(space.targets[target]);
    for (ExprId output : channelOutputs)
      if (!llvm::is_contained(leaves, output))
        outputs *= getExtent(space.getExpr(output).size);
    // One layer: the outputs of an input do not help.
    if (limits.reaches == 1)
      outputs = 1;
    return all[binding].inputs * outputs >= count;
  });
}

//===----------------------------------------------------------------------===//
// Q3: translations
//===----------------------------------------------------------------------===//

/// The coordinates at the points of an output that exist, in the order of the
/// points. What belongs to the axis is less by `moved` of its positions.
/// Compared between two positions of the output: equal if the operator is
/// equivariant along the axis.
void GraphProperties::getTerms(CoordProgram &program, const Axis &axis,
                               llvm::ArrayRef<int> targets, unsigned numOutputs,
                               int64_t moved, unsigned binding,
                               std::vector<int64_t> &terms) const {
  terms.clear();
  int64_t size = axis.size[binding];
  int64_t distance = axis.strides[binding] * moved % size;
  do {
    if (!program.evaluate())
      continue;
    // Counts the point where it has no coordinate.
    terms.push_back(0);
    for (auto [root, target] : llvm::enumerate(targets)) {
      int64_t value = program.getRoot(root);
      if (target != Component::guard)
        terms.push_back(target == axis.target ? (value + size - distance) % size
                                              : value);
    }
  } while (program.advance(numOutputs, program.getNumLeaves()));
}

/// The terms as a multiset. Terms have `length` numbers each; sorting them
/// makes two multisets comparable.
static void sortTerms(std::vector<int64_t> &terms, size_t length) {
  std::vector<std::vector<int64_t>> list;
  for (size_t begin = 0; begin < terms.size(); begin += length)
    list.emplace_back(terms.begin() + begin, terms.begin() + begin + length);
  llvm::sort(list);
  terms.clear();
  for (const std::vector<int64_t> &term : list)
    llvm::append_range(terms, term);
}

/// Each position further along the axis reads the same elements, so much
/// further, with the same weights. Mostly that is so point by point; a carry
/// that renames the points of a reduction makes it so for all points together.
/// Positions are compared with position 0 of the axis, for all values of the
/// other outputs. Zero-padded is cyclic with windows that go on at the other
/// end.
bool GraphProperties::isEquivariantAlong(const Axis &axis,
                                         const Component &component,
                                         unsigned binding) const {
  // The axis is the last of the outputs, so that its loop can be run by hand.
  llvm::SmallVector<ExprId, 8> leaves;
  for (ExprId leaf : component.getLeaves())
    if (leaf != axis.output)
      leaves.push_back(leaf);
  unsigned numOutputs = component.outputs.size() -
                        llvm::is_contained(component.outputs, axis.output);
  leaves.insert(leaves.begin() + numOutputs++, axis.output);
  CoordProgram program(space, leaves, component.roots, binding,
                       /*wraps=*/axis.moves == Translations::ZeroPadded);
  size_t length = 1 + component.roots.size() -
                  llvm::count(component.targets, Component::guard);
  unsigned position = numOutputs - 1;
  std::vector<int64_t> first, terms;
  do {
    for (int64_t at = 0; at < program.getExtent(position); ++at) {
      program.setLeaf(position, at);
      getTerms(program, axis, component.targets, numOutputs, at, binding,
               at == 0 ? first : terms);
      // The same terms in the same order: by far the most common case.
      if (at == 0 || terms == first)
        continue;
      std::vector<int64_t> sorted = first;
      sortTerms(sorted, length);
      sortTerms(terms, length);
      if (terms != sorted)
        return false;
    }
    program.setLeaf(position, 0);
  } while (program.advance(0, position));
  return true;
}

/// Along each axis of these translations that the component has something to do
/// with; an axis with neither its input nor its output here is trivial.
bool GraphProperties::isEquivariant(const Component &component,
                                    Translations translations) {
  return llvm::all_of(axes, [&](const Axis &axis) {
    return axis.moves != translations ||
           (!llvm::is_contained(component.targets, axis.target) &&
            !llvm::is_contained(component.outputs, axis.output)) ||
           holdsAtAll([&](unsigned binding) {
             return isEquivariantAlong(axis, component, binding);
           });
  });
}

/// Weights count as well: the same weights must be read at each position.
bool GraphProperties::areEquivariant(const GraphStateData &state,
                                     llvm::ArrayRef<ExprId> data) {
  auto isAsked = [&](Translations translations) {
    return llvm::is_contained(limits.equivariant, translations);
  };
  auto isZeroPadded = [&](const Component &component) {
    return isEquivariant(component, Translations::ZeroPadded);
  };
  auto isCyclic = [&](const Component &component) {
    return isEquivariant(component, Translations::Cyclic);
  };
  llvm::SmallVector<ExprId, 16> ofWeights;
  for (unsigned index = 0; index < state.numWeights; ++index)
    insert(ofWeights, space.getWeight(state.weights[index]));
  if (isAsked(Translations::ZeroPadded)) {
    // Each coordinate for itself, which excludes most operators. Necessary,
    // as all points exist, and cheap: answers are remembered by coordinate.
    for (auto [target, root] : llvm::enumerate(data))
      if (!holdsFor(getAlone(root, static_cast<int>(target)), ZeroPadded,
                    isZeroPadded))
        return false;
    for (ExprId root : ofWeights)
      if (!holdsFor(getAlone(root, Component::none), ZeroPadded, isZeroPadded))
        return false;
    // Then all together, as coordinates may rename points of each other's
    // reductions.
    if (!holdsFor(getComponents(data, ofWeights, {}), ZeroPadded, isZeroPadded))
      return false;
  }
  return !isAsked(Translations::Cyclic) ||
         holdsFor(getComponents(data, ofWeights, getGuards(state, data)),
                  Cyclic, isCyclic);
}

//===----------------------------------------------------------------------===//
// Q4, Q5: what joins an input and an output element
//===----------------------------------------------------------------------===//

/// No point of an output reads what another one reads. Two points of an output
/// on one element: two products join them.
bool GraphProperties::hasOneProduct(const Component &component) {
  return holdsAtAll([&](unsigned binding) {
    CoordProgram program(space, component.getLeaves(), component.roots,
                         binding);
    Element element = getElement(component, binding, /*onlyChannels=*/false);
    unsigned numOutputs = component.outputs.size();
    StampSet read(element.count);
    do {
      read.clear();
      do {
        if (program.evaluate() && !read.insert(element.get(program)))
          return false;
      } while (program.advance(numOutputs, program.getNumLeaves()));
    } while (program.advance(0, numOutputs));
    return true;
  });
}

/// For all reductions of the component.
bool GraphProperties::isLinear(const Component &component) {
  return llvm::all_of(component.reductions, [&](ExprId reduction) {
    return holdsAtAll([&](unsigned binding) {
      return isReadBy(component, reduction, binding);
    });
  });
}

/// Two points that differ in nothing but the reduction read two elements.
/// Searches for a witness; the first one ends the loop.
bool GraphProperties::isReadBy(const Component &component, ExprId reduction,
                               unsigned binding) {
  llvm::SmallVector<ExprId, 8> leaves = component.getLeaves();
  llvm::erase(leaves, reduction);
  // The reduction is the fastest loop.
  leaves.push_back(reduction);
  CoordProgram program(space, leaves, component.roots, binding);
  unsigned last = leaves.size() - 1;
  // One point has nothing to differ by.
  if (program.getExtent(last) == 1)
    return true;
  Element element = getElement(component, binding, /*onlyChannels=*/false);
  do {
    std::optional<int64_t> first;
    do {
      if (!program.evaluate())
        continue;
      if (first && *first != element.get(program))
        return true;
      first = element.get(program);
    } while (program.advance(last, leaves.size()));
  } while (program.advance(0, last));
  return false;
}

/// Each reduction with more than one point is below the data. Reductions of one
/// point are no ranks.
bool GraphProperties::readsReductions(const GraphStateData &state,
                                      llvm::ArrayRef<ExprId> data) {
  llvm::SmallVector<ExprId, 8> leaves;
  for (ExprId id : data)
    for (ExprId leaf : getFacts(id).leaves)
      leaves.push_back(leaf);
  for (unsigned index = 0; index < state.numWeights; ++index)
    for (ExprId id : space.getWeight(state.weights[index]))
      for (ExprId leaf : getFacts(id).leaves) {
        const Expr &expr = space.getExpr(leaf);
        if (expr.kind == CoordKind::Reduce && space.sizes[expr.size].max > 1 &&
            !llvm::is_contained(leaves, leaf))
          return false;
      }
  return true;
}

//===----------------------------------------------------------------------===//
// Q6: what is later
//===----------------------------------------------------------------------===//

/// No point of an output reads a position after that of the output. Along each
/// axis; a coordinate that is the output itself is causal.
bool GraphProperties::isCausal(const Component &component) {
  return llvm::all_of(axes, [&](const Axis &axis) {
    unsigned root =
        llvm::find(component.targets, axis.target) - component.targets.begin();
    return root == component.roots.size() ||
           component.roots[root] == axis.output ||
           holdsAtAll([&](unsigned binding) {
             return isCausalAlong(axis, component, root, binding);
           });
  });
}

bool GraphProperties::isCausalAlong(const Axis &axis,
                                    const Component &component, unsigned root,
                                    unsigned binding) const {
  CoordProgram program(space, component.getLeaves(), component.roots, binding);
  unsigned own =
      llvm::find(component.outputs, axis.output) - component.outputs.begin();
  do {
    // Later than the position of the output, scaled by the stride.
    if (program.evaluate() &&
        program.getRoot(root) > axis.strides[binding] * program.getLeaf(own))
      return false;
  } while (program.advance(0, program.getNumLeaves()));
  return true;
}
