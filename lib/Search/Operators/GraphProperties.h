//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Properties of operators: what a finished operator sees and reaches, and
// whether one that has them can still be made.
//
// The definitions of the properties are statements about points: a point is a
// choice of values of the outputs and reductions, and it reads one element of
// the input.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_SEARCH_OPERATORS_GRAPHPROPERTIES_H
#define LIB_SEARCH_OPERATORS_GRAPHPROPERTIES_H

#include "GraphStateImpl.h"

namespace kas::search {

class CoordProgram;

/// Decides the properties that a problem asks for
/// (docs/reference/properties.md). All of them are statements about which
/// elements of the input the points of an output element read. Coordinates that
/// have no output and no reduction in common are independent, so what holds
/// for all holds for each such component; and the same components come again
/// and again.
class GraphProperties {
public:
  explicit GraphProperties(GraphSpace &space);

  /// Whether the operator that a state is with the live coordinates `match` as
  /// its input has all properties.
  bool hold(const GraphStateData &state, llvm::ArrayRef<unsigned> match);

  /// Whether they can still be met when no reduction comes any more: false only
  /// when they cannot.
  bool canHold(const GraphStateData &state);

  /// Whether a live coordinate with an output below may be a factor of a
  /// dimension of the input that must see a window, as it is and with shifts:
  /// false only when it cannot.
  bool canSee(const LiveCoord &coord);

  /// Axes along which nothing sees the window without an unfold or a merge of
  /// what has a reduction.
  unsigned getNumUnfolded() const { return numUnfolded; }
  /// Some output must see more than one position.
  bool seesSeveral() const;
  /// Some binding has more than one input channel, and they can only come from
  /// channels and reductions.
  bool reachesSeveral() const;

private:
  /// A dimension of the output and one of the input.
  struct Axis {
    ExprId output = 0;
    int target = 0;
    /// By binding: of the input; how far positions are apart; how many of them
    /// are to be seen.
    llvm::SmallVector<int64_t, 4> size, strides, windows;
    /// All positions are to be seen, not those around that of the output.
    bool isWhole = false;
    /// What translations along it must do to the output.
    Translations moves = Translations::None;
    /// The bindings, those with few positions first.
    llvm::SmallVector<unsigned, 4> bySize;
    /// No factor of the dimension of the input has an output and no window.
    bool needsWindows = false;
  };
  /// Coordinates of the data, of weights, and windows that the data does not
  /// have, with leaves in common.
  struct Component {
    llvm::SmallVector<ExprId, 4> outputs, reductions, roots;
    /// By root: the dimension of the input (an index into the targets of the
    /// space), or one of those below.
    llvm::SmallVector<int, 4> targets;
    /// An index of a weight; a window that only decides whether a point exists.
    static constexpr int none = -1, guard = -2;
    /// Outputs first.
    llvm::SmallVector<ExprId, 8> getLeaves() const;
  };
  using Components = llvm::SmallVector<Component, 4>;
  struct Element;
  struct Factors;
  enum Property : uint64_t {
    Sees,
    Reaches,
    ZeroPadded,
    Cyclic,
    OneProduct,
    Linear,
    Causal
  };
  /// Of each output, the inputs that it depends on; of each input, the outputs
  /// that depend on it; at least.
  struct Reach {
    double inputs, outputs;
  };
  /// What is below an expression.
  struct Facts {
    bool isKnown = false;
    /// An unfold, or a merge, of what has a reduction.
    bool hasWindow = false;
    /// A factor has an output and no window.
    bool isUnseeing = false;
    /// It can be part of what sees a window; negative when not worked out.
    int8_t canSee = -1;
    llvm::SmallVector<ExprId, 4> leaves, unfolds;
  };

  unsigned getNumBindings() const { return space.problem->bindings.size(); }
  void addAxes();
  void addChannels();
  bool needsWindows(const Axis &axis) const;
  bool needsUnfold(const Axis &axis) const;
  bool canSee(const Component &component, const Axis &axis,
              unsigned binding) const;
  const Axis *getAxisOfTarget(int target) const;
  const Axis *getAxisOfOutput(ExprId leaf) const;
  /// Where the window of an output begins that is to be seen.
  int64_t getBegin(const Axis &axis, unsigned binding, int64_t position) const;
  bool isInterior(const Axis &axis, unsigned binding, int64_t position) const;

  const Facts &getFacts(ExprId id);
  llvm::SmallVector<ExprId, 4> getGuards(const GraphStateData &state,
                                         llvm::ArrayRef<ExprId> data);
  Component getAlone(ExprId root, int target);
  Components getComponents(llvm::ArrayRef<ExprId> data,
                           llvm::ArrayRef<ExprId> ofWeights,
                           llvm::ArrayRef<ExprId> guards);
  static uint64_t getKey(const Component &component, Property property);
  bool holdsFor(llvm::ArrayRef<Component> components, Property property,
                llvm::function_ref<bool(const Component &)> isTrue);
  bool holdsAtAll(llvm::function_ref<bool(unsigned binding)> isTrue) const;
  Element getElement(const Component &component, unsigned binding,
                     bool onlyChannels) const;

  bool sees(const Component &component);
  bool sees(const Component &component, unsigned binding);
  std::optional<Reach> getReachOfFactors(const Component &component,
                                         unsigned binding) const;
  Factors getFactors(const Component &component, unsigned binding) const;
  Reach getReach(const Component &component, unsigned binding);
  const llvm::SmallVector<Reach, 4> &getReaches(const Component &component);
  bool reachesAll(const Components &components);
  void getTerms(CoordProgram &program, const Axis &axis,
                llvm::ArrayRef<int> targets, unsigned numOutputs, int64_t moved,
                unsigned binding, std::vector<int64_t> &terms) const;
  bool isEquivariantAlong(const Axis &axis, const Component &component,
                          unsigned binding) const;
  bool isEquivariant(const Component &component, Translations translations);
  bool areEquivariant(const GraphStateData &state, llvm::ArrayRef<ExprId> data);
  bool hasOneProduct(const Component &component);
  bool isLinear(const Component &component);
  bool isCausal(const Component &component);
  bool isCausalAlong(const Axis &axis, const Component &component,
                     unsigned root, unsigned binding) const;
  bool isReadBy(const Component &component, ExprId reduction, unsigned binding);
  bool readsReductions(const GraphStateData &state,
                       llvm::ArrayRef<ExprId> data);

  GraphSpace &space;
  const SpaceLimits &limits;
  llvm::SmallVector<Axis, 4> axes;
  /// What is neither an axis nor a batch.
  llvm::SmallVector<ExprId, 4> channelOutputs;
  llvm::SmallVector<int, 4> channelTargets;
  /// By binding: some output has all of its window in the image; how many
  /// positions it sees at least.
  llvm::SmallVector<bool, 4> hasInterior;
  llvm::SmallVector<double, 4> numSeen;
  unsigned numUnfolded = 0;
  std::vector<Facts> facts;
  /// By property and component.
  FlatMap<int8_t> known;
  /// By component, and there by binding.
  FlatMap<uint32_t> reachIds;
  std::vector<llvm::SmallVector<Reach, 4>> reaches;
};

} // namespace kas::search

#endif // LIB_SEARCH_OPERATORS_GRAPHPROPERTIES_H
