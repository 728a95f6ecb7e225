//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// States of the kernel search: a kernel of some primitives, as plain data that
// is copied without an allocation.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_SEARCH_KERNELS_KERNELSTATEIMPL_H
#define LIB_SEARCH_KERNELS_KERNELSTATEIMPL_H

#include "KernelSizes.h"
#include "kas/Search/Kernels/KernelState.h"

namespace kas::search {

/// What a dimension is. `Window` and `Spatial` are followed by the number of
/// the spatial dimension of the input that it belongs to.
enum DimRole : uint8_t { Channel = 0, Group = 1, Window = 16, Spatial = 32 };

/// A shape of at most 8 dimensions, channels first, as numbers of interned
/// sizes.
struct FlatShape {
  uint8_t rank = 0, numChannels = 0;
  std::array<SizeId, KernelProblem::maxRank> dims = {};
  std::array<uint8_t, KernelProblem::maxRank> roles = {};

  llvm::ArrayRef<SizeId> getDims() const {
    return llvm::ArrayRef(dims).take_front(rank);
  }
  /// Roles do not count: a merge only needs equal sizes. Unused entries are 0,
  /// so whole arrays can be compared.
  bool hasSameDims(const FlatShape &other) const {
    return rank == other.rank && numChannels == other.numChannels &&
           dims == other.dims;
  }
  bool hasRole(unsigned role) const {
    return llvm::is_contained(llvm::ArrayRef(roles).take_front(rank), role);
  }
  void append(SizeId size, uint8_t role = DimRole::Channel) {
    dims[rank] = size;
    roles[rank++] = role;
  }
  void append(const FlatShape &from, unsigned dim) {
    append(from.dims[dim], from.roles[dim]);
  }
};

/// See `KernelNode` for the fields of the same names.
struct FlatNode {
  KernelStep step = KernelStep::Input;
  int8_t left = -1, right = -1;
  uint8_t dims = 0;
  int8_t amount = 0;
  uint8_t prefix = 0, suffix = 0;
  bool transposesLeft = false, transposesRight = false, isScaled = false;
  /// A merge of two tensors of one shape, element by element.
  bool isAligned = false;
  /// The number of the window among those of the dimension.
  uint8_t window = 0;
  /// Bit i: reads neighbours along spatial dimension i.
  uint8_t covers = 0;
  /// Of a fold: `Window`, `Spatial` or 0 for channels.
  uint8_t foldedRole = 0;
  /// How many nodes read it; a leaf has none.
  uint8_t users = 0;
  /// By spatial dimension, two bits: reorders that wait for their inverse.
  uint8_t reorders = 0;
  /// FLOPs per element of `flops`; 0: none.
  uint8_t flopsFactor = 0;
  /// Bit i: variable i occurs in one of the sizes below.
  uint8_t variables = 0;
  SizeId size = oneSize;
  /// The size of the common prefix of a merge.
  SizeId prefixSize = oneSize;
  /// Sizes that must be integers, though no dimension shows them; 1 when
  /// unused.
  std::array<SizeId, 2> implied = {oneSize, oneSize};
  SizeId flops = noSize, params = noSize;
  /// The product of all dimensions.
  SizeId elements = oneSize;
  FlatShape shape;
};

/// All of a state; `assign` copies it as it is.
struct KernelStateData {
  std::array<FlatNode, KernelProblem::maxSteps + 1> nodes;
  uint8_t numNodes = 0;
  /// How many primitives the kernel is to have; 0: not chosen.
  uint8_t numSteps = 0;
  /// Counts fully-connected layers, not of all weighted steps.
  uint8_t numWeights = 0;
  /// Bit i: variable i occurs.
  uint8_t variables = 0;
  /// Bit i: some step reads neighbours along spatial dimension i.
  uint8_t covered = 0;
  bool hasGroup = false, hasShuffle = false;
  /// Sums of `KernelSizes::getTotal`.
  double flops = 0, params = 0;
  /// One more than the candidate that was chosen.
  uint8_t groups = 0;
  /// The shape of the output is solved; the number of groups is open.
  bool isFinished = false, needsGroups = false;

  /// Primitives still to be added; the input is no primitive.
  unsigned getNumLeft() const { return numSteps + 1 - numNodes; }
  unsigned getNumLeaves() const {
    return llvm::count_if(getNodes(),
                          [](const FlatNode &node) { return !node.users; });
  }
  llvm::ArrayRef<FlatNode> getNodes() const {
    return llvm::ArrayRef(nodes).take_front(numNodes);
  }
};

/// What all states of a root share.
struct KernelSpace {
  explicit KernelSpace(std::shared_ptr<const KernelProblem> problem);

  std::shared_ptr<const KernelProblem> problem;
  KernelSizes sizes;
  /// The product of the channels.
  SizeId outputChannels = oneSize;
  llvm::SmallVector<SizeId, 2> outputSpatial;
  /// By number of the divisor.
  llvm::SmallVector<SizeId, 2> divisors;
  llvm::SmallVector<llvm::SmallVector<SizeId, 2>, 2> windows;
  KernelStateData root;
  /// Bit i: spatial dimension i is to be covered.
  uint8_t toCover = 0;
  /// By spatial dimension, the least size at any layer.
  llvm::SmallVector<int64_t, 2> extents;
  /// The most windows that a spatial dimension has; at least 1.
  unsigned maxWindows = 1;
};

/// A step that may be made, and the substitution that it needs.
struct PendingStep {
  FlatNode node;
  /// -1: none.
  int variable = -1;
  SizeId value = oneSize;
};

// The kinds after those of primitives.
constexpr unsigned stepsKind = numKernelSteps, groupsKind = stepsKind + 1,
                   numKernelKinds = groupsKind + 1;

/// Calls `found` with the codes of the moves of `kind`, from `first` on in
/// ascending order, until it returns true.
void forEachMove(KernelSpace &space, const KernelStateData &data, unsigned kind,
                 uint32_t first, llvm::function_ref<bool(uint32_t)> found);

/// A move of `step` at random, all with the same probability; nothing when
/// there is none.
std::optional<uint32_t> drawStep(KernelSpace &space,
                                 const KernelStateData &data, KernelStep step,
                                 Random &random);

/// The step that `code` of kind `step` stands for, if it can be made.
std::optional<PendingStep> makeStep(KernelSpace &space,
                                    const KernelStateData &data,
                                    KernelStep step, uint32_t code);

/// Theorem 1, and every dimension is an integer.
bool isLegalShape(const KernelSpace &space, const FlatShape &shape);
/// An integer, and such as the budget solver takes it: with one variable at
/// most, above or below, to the first power.
bool isLegalImplied(const KernelSpace &space, SizeId size);
/// At every layer, at the least values.
bool isSmallEnough(const KernelSpace &space, SizeId elements);

/// Whether the kernel can be completed after `pending`, as far as is seen
/// without trying.
bool isFeasible(KernelSpace &space, const KernelStateData &data,
                const PendingStep &pending);

/// Sets what is known of a node beside what was chosen for it.
void summarize(const KernelSpace &space, FlatNode &node);

/// Adds the step; sizes with its substitution made.
void addStep(KernelSpace &space, KernelStateData &data,
             const PendingStep &pending);

/// The substitution that makes the last node the output; nothing when there is
/// none. The variable is -1 when none is needed.
std::optional<std::pair<int, SizeId>> matchOutput(KernelSpace &space,
                                                  const FlatShape &shape);

/// The whole kernel, and `last` if it is not null, stay legal with `value` for
/// variable `variable`.
bool canSubstitute(KernelSpace &space, llvm::ArrayRef<FlatNode> nodes,
                   const FlatNode *last, unsigned variable, SizeId value);
void substitute(KernelSpace &space, KernelStateData &data, unsigned variable,
                SizeId value);

/// A complete kernel is within its budgets at the least values, for the
/// candidate number `groups` (0 when none is to be chosen). Without variables
/// the least budgets hold, too.
bool isWithinBudgets(KernelSpace &space, llvm::ArrayRef<FlatNode> nodes,
                     unsigned groups);

/// The symbol whose value is chosen occurs in a size.
bool usesGroups(const KernelSpace &space, llvm::ArrayRef<FlatNode> nodes);

/// The same for kernels that differ only in the names of variables, the order
/// of nodes and of operands that may be swapped.
uint64_t getCanonicalHash(const KernelSpace &space,
                          llvm::ArrayRef<FlatNode> nodes);

/// Copies share the space.
class KernelState final : public State {
public:
  explicit KernelState(std::shared_ptr<KernelSpace> space);

  std::unique_ptr<State> clone() const override {
    return std::make_unique<KernelState>(*this);
  }
  void assign(const State &other) override {
    data = static_cast<const KernelState &>(other).data;
  }
  unsigned getNumKinds() const override { return numKernelKinds; }
  llvm::StringRef getKindName(unsigned kind) const override;
  std::optional<Move> drawMove(Random &random) const override;
  std::optional<Move> nextMove(unsigned kind,
                               std::optional<Move> previous) const override;
  void getMoves(llvm::SmallVectorImpl<Move> &moves) const override;
  void apply(Move move) override;
  bool isTerminal() const override;
  std::shared_ptr<const Solution> getSolution() const override;
  uint64_t key() const override;

private:
  std::shared_ptr<KernelSpace> space;
  KernelStateData data;
};

} // namespace kas::search

#endif // LIB_SEARCH_KERNELS_KERNELSTATEIMPL_H
