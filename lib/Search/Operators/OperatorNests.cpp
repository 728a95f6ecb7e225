//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loop nests of an operator's stages at each binding, for predicted times.
//
// Each stage is a loop nest with an access to data, weights and the output. The
// index of an access is a linear function of the loops where possible; where it
// is not, the loops are `opaque`. The solver's model of time needs strides,
// extents and borders only (docs/internals/predicted-times.md).
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Operators/OperatorNests.h"
#include "StagedCost.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace kas;
using namespace kas::search;
using solver::StageNest;

namespace {

/// An index as a function of loops: `base + sum of stride * loop`, but for the
/// loops in `opaque`. A shift or a merge with a carry, for example, is no
/// linear function.
struct Index {
  std::array<int64_t, StageNest::maxLoops> strides = {};
  StageNest::LoopSet opaque = 0;
  int64_t base = 0;

  /// Adds `factor` times another index.
  void add(const Index &other, int64_t factor, unsigned numLoops) {
    for (unsigned loop = 0; loop < numLoops; ++loop)
      strides[loop] += factor * other.strides[loop];
    opaque |= other.opaque;
    base += factor * other.base;
  }
};

/// The nests of one operator at one binding. One object describes all bindings
/// of an operator one after the other.
class NestBuilder {
public:
  NestBuilder(const SearchProblem &problem, const OperatorGraph &graph,
              const SizeTable &sizes, const StagedCost &cost)
      : problem(problem), graph(graph), sizes(sizes), cost(cost) {
    findOrder();
  }

  void build(unsigned binding, llvm::ArrayRef<StagedCost::Stage> stages,
             llvm::SmallVectorImpl<StageNest> &nests);

private:
  /// Short forms of questions about kinds.
  bool isLeafKind(unsigned node) const {
    CoordKind kind = graph.coords[node].kind;
    return kind == CoordKind::Output || kind == CoordKind::Reduce;
  }
  bool isBinary(unsigned node) const {
    CoordKind kind = graph.coords[node].kind;
    return kind == CoordKind::Split || kind == CoordKind::Unfold;
  }
  bool isHalf(unsigned node) const {
    CoordKind kind = graph.coords[node].kind;
    return kind == CoordKind::MergeQuotient ||
           kind == CoordKind::MergeRemainder;
  }
  /// At the binding that is described.
  int64_t getSize(unsigned node) const {
    return sizes[cost.nodes[node].size].values[binding];
  }
  int64_t getParameter(unsigned node) const {
    return graph.coords[node]
        .parameter.evaluate(problem.bindings[binding])
        .value_or(1);
  }

  void findOrder();
  void sortFrontier(llvm::SmallVectorImpl<unsigned> &frontier) const;
  void buildNest(StageNest &nest, llvm::ArrayRef<unsigned> inputs,
                 llvm::ArrayRef<unsigned> outputs,
                 const StagedCost::Stage &stage);
  void reach(unsigned node);
  void addLoops(StageNest &nest, unsigned node, int64_t extent,
                bool isReduction, int64_t stride);
  const Index &getIndex(StageNest &nest, unsigned node);
  Index getHalf(const StageNest &nest, const Index &whole, int64_t block,
                bool isQuotient) const;
  void addBorder(StageNest &nest, const Index &index, int64_t extent,
                 bool isCyclic) const;
  void addAccess(StageNest &nest, StageNest::Access &access,
                 llvm::ArrayRef<unsigned> nodes);

  const SearchProblem &problem;
  const OperatorGraph &graph;
  const SizeTable &sizes;
  const StagedCost &cost;
  unsigned binding = 0;
  /// By node: the first dimension of the data that it is used for, and whether
  /// it comes from the output.
  static constexpr unsigned noDimension = ~0u;
  llvm::SmallVector<unsigned, 24> dataDimension;
  llvm::SmallVector<bool, 24> fromOutput;
  unsigned block = noDimension;
  /// Of the nest that is built, by node: what it needs, its index.
  llvm::SmallVector<bool, 24> isReached, isKnown;
  llvm::SmallVector<Index, 24> indices;
};

} // namespace

/// As `-kas-rfactor` orders the dimensions of intermediates. The dimensions of
/// an intermediate are ordered by the dimension of the data that they lead to,
/// so that stages read and write in similar order; reductions form a block.
void NestBuilder::findOrder() {
  unsigned count = graph.coords.size();
  dataDimension.assign(count, noDimension);
  fromOutput.assign(count, false);
  for (auto [dimension, node] : llvm::enumerate(graph.data))
    dataDimension[node] = std::min<unsigned>(dataDimension[node], dimension);
  // From the data upwards: an operand belongs to the first dimension that any
  // of its uses belongs to.
  for (unsigned node = count; node-- > 0;) {
    if (isLeafKind(node))
      continue;
    const GraphCoord &coord = graph.coords[node];
    unsigned &first = dataDimension[coord.first];
    first = std::min(first, dataDimension[node]);
    if (isBinary(node)) {
      unsigned &second = dataDimension[coord.second];
      second = std::min(second, dataDimension[node]);
    }
  }
  // From the leaves downwards.
  for (unsigned node = 0; node < count; ++node) {
    const GraphCoord &coord = graph.coords[node];
    if (coord.kind == CoordKind::Reduce)
      block = std::min(block, dataDimension[node]);
    fromOutput[node] =
        coord.kind == CoordKind::Output ||
        (!isLeafKind(node) && (fromOutput[coord.first] ||
                               (isBinary(node) && fromOutput[coord.second])));
  }
}

/// Dimensions that come from the output and lead to the data by their position
/// there, all others in the block of reductions.
void NestBuilder::sortFrontier(
    llvm::SmallVectorImpl<unsigned> &frontier) const {
  auto key = [&](unsigned node) {
    unsigned dimension = dataDimension[node];
    bool isData = fromOutput[node] && dimension != noDimension;
    return std::tuple(isData ? dimension : block, isData, dimension, node);
  };
  llvm::sort(frontier, [&](unsigned a, unsigned b) { return key(a) < key(b); });
}

/// Marks what `node` is made of, down to the loops. A node with a loop of its
/// own ends the recursion.
void NestBuilder::reach(unsigned node) {
  if (isReached[node])
    return;
  isReached[node] = true;
  if (isKnown[node] || isLeafKind(node))
    return;
  reach(graph.coords[node].first);
  if (isBinary(node))
    reach(graph.coords[node].second);
}

/// One loop for `node`, or those of its halves where the nest takes it apart,
/// and its index. `stride` is that of the output in elements; 0 for a
/// reduction.
void NestBuilder::addLoops(StageNest &nest, unsigned node, int64_t extent,
                           bool isReduction, int64_t stride) {
  Index &index = indices[node];
  index = Index();
  isKnown[node] = true;
  // A loop of one iteration is none; too many loops are left out.
  auto addLoop = [&](int64_t size, int64_t step) -> Index {
    Index made;
    if (size == 1 || nest.loops.size() == StageNest::maxLoops)
      return made;
    made.strides[nest.loops.size()] = 1;
    nest.output.strides[nest.loops.size()] = step;
    nest.loops.push_back({size, isReduction});
    return made;
  };
  // Both halves are used: the loop is taken apart, so that both are linear.
  unsigned quotient = noDimension, remainder = noDimension;
  for (unsigned other = node + 1; other < graph.coords.size(); ++other)
    if (isReached[other] && isHalf(other) && graph.coords[other].first == node)
      (graph.coords[other].kind == CoordKind::MergeQuotient ? quotient
                                                            : remainder) =
          other;
  if (quotient == noDimension && remainder == noDimension) {
    index = addLoop(extent, stride);
    return;
  }
  // The block.
  int64_t inner = getParameter(quotient == noDimension ? remainder : quotient);
  auto addHalf = [&](unsigned half, int64_t size, int64_t step) -> Index {
    if (half == noDimension)
      return addLoop(size, step);
    addLoops(nest, half, size, isReduction, step);
    return indices[half];
  };
  Index outer = addHalf(quotient, extent / inner, stride * inner);
  Index rest = addHalf(remainder, inner, stride);
  // The whole is quotient * block + remainder.
  Index &whole = indices[node];
  whole.add(outer, inner, nest.loops.size());
  whole.add(rest, 1, nest.loops.size());
}

/// Of what is a sum, the parts that are multiples of the block and those below
/// it. A loop whose stride is a multiple of the block moves the quotient only;
/// all others must stay within one block for the halves to be linear.
Index NestBuilder::getHalf(const StageNest &nest, const Index &whole,
                           int64_t block, bool isQuotient) const {
  Index half;
  int64_t low = whole.base, high = whole.base;
  StageNest::LoopSet all = whole.opaque;
  for (unsigned loop = 0; loop < nest.loops.size(); ++loop) {
    int64_t stride = whole.strides[loop];
    if (!stride)
      continue;
    all |= StageNest::LoopSet(1) << loop;
    if (stride % block == 0) {
      half.strides[loop] = isQuotient ? stride / block : 0;
      continue;
    }
    if (!isQuotient)
      half.strides[loop] = stride;
    (stride < 0 ? low : high) += stride * (nest.loops[loop].extent - 1);
  }
  // The lowest and the highest value of the other loops are in one block.
  int64_t period = llvm::divideFloorSigned(low, block);
  if (!whole.opaque && period == llvm::divideFloorSigned(high, block)) {
    half.base = isQuotient ? period : whole.base - period * block;
    return half;
  }
  // No linear function: only which loops it depends on is known.
  Index opaque;
  opaque.opaque = all;
  return opaque;
}

/// At the border some iterations read outside, or around the end: they cost a
/// test.
void NestBuilder::addBorder(StageNest &nest, const Index &index, int64_t extent,
                            bool isCyclic) const {
  StageNest::Border border{index.opaque, extent, isCyclic};
  for (unsigned loop = 0; loop < nest.loops.size(); ++loop)
    if (index.strides[loop])
      border.loops |= StageNest::LoopSet(1) << loop;
  nest.borders.push_back(border);
}

/// Computed when it is first needed in this nest.
const Index &NestBuilder::getIndex(StageNest &nest, unsigned node) {
  Index &index = indices[node];
  if (isKnown[node])
    return index;
  isKnown[node] = true;
  index = Index();
  // Its stage summed it before.
  if (isLeafKind(node))
    return index;
  const GraphCoord &coord = graph.coords[node];
  Index first = getIndex(nest, coord.first);
  unsigned numLoops = nest.loops.size();
  switch (coord.kind) {
  case CoordKind::Output:
  case CoordKind::Reduce:
    break;
  case CoordKind::Split:
    index.add(first, getSize(coord.second), numLoops);
    // By value: the call may change `indices`.
    index.add(Index(getIndex(nest, coord.second)), 1, numLoops);
    break;
  case CoordKind::Unfold:
    index = first;
    index.add(Index(getIndex(nest, coord.second)), 1, numLoops);
    index.base -= coord.getLow(getSize(coord.second));
    addBorder(nest, index, getSize(node), /*isCyclic=*/false);
    break;
  case CoordKind::Shift:
    index = first;
    index.base += coord.amount;
    addBorder(nest, index, getSize(node), /*isCyclic=*/true);
    break;
  case CoordKind::Stride:
    index.add(first, getParameter(node), numLoops);
    break;
  case CoordKind::MergeQuotient:
  case CoordKind::MergeRemainder:
    index = getHalf(nest, first, getParameter(node),
                    coord.kind == CoordKind::MergeQuotient);
    break;
  }
  return index;
}

/// `access` to a tensor of row-major layout with the indices `nodes`. From the
/// last dimension to the first, so that `elements` is the stride. Opaque loops
/// get the stride of their dimension as an estimate.
void NestBuilder::addAccess(StageNest &nest, StageNest::Access &access,
                            llvm::ArrayRef<unsigned> nodes) {
  for (unsigned node : llvm::reverse(nodes)) {
    const Index &index = getIndex(nest, node);
    for (unsigned loop = 0; loop < nest.loops.size(); ++loop)
      access.strides[loop] += access.elements * index.strides[loop];
    access.opaque |= index.opaque;
    for (unsigned loop = 0; loop < nest.loops.size(); ++loop)
      if (index.opaque >> loop & 1)
        access.strides[loop] += access.elements;
    access.elements *= getSize(node);
  }
}

/// Loops of the output first, then reductions. Halves of a node with a loop are
/// found by `reach`.
void NestBuilder::buildNest(StageNest &nest, llvm::ArrayRef<unsigned> inputs,
                            llvm::ArrayRef<unsigned> outputs,
                            const StagedCost::Stage &stage) {
  unsigned count = graph.coords.size();
  isReached.assign(count, false);
  isKnown.assign(count, false);
  indices.resize(count);
  // Known for now, so that `reach` stops there.
  for (unsigned node : outputs)
    isKnown[node] = true;
  for (unsigned node : inputs)
    reach(node);
  for (unsigned weight : stage.weights)
    for (unsigned node : graph.weights[weight])
      reach(node);
  // Known again once they have loops.
  isKnown.assign(count, false);
  nest.output.elements = 1;
  for (unsigned node : outputs)
    nest.output.elements *= getSize(node);
  // Row-major strides.
  int64_t stride = nest.output.elements;
  for (unsigned node : outputs) {
    stride /= getSize(node);
    addLoops(nest, node, getSize(node), /*isReduction=*/false, stride);
  }
  for (unsigned node : stage.reductions)
    addLoops(nest, node, getSize(node), /*isReduction=*/true, 0);
  addAccess(nest, nest.data, inputs);
  nest.hasWeight = !stage.weights.empty();
  // Weights that are multiplied before have the loops of all of them. Their
  // strides are joined, which is exact where they share no loop.
  for (unsigned weight : stage.weights) {
    StageNest::Access own;
    addAccess(nest, own, graph.weights[weight]);
    nest.weight.opaque |= own.opaque;
    for (unsigned loop = 0; loop < nest.loops.size(); ++loop)
      if (own.strides[loop])
        nest.weight.strides[loop] = own.strides[loop];
  }
  nest.weight.elements =
      nest.getExtent(nest.weight.getLoops(nest.loops.size()));
}

/// The stages from the data to the output: each one reads the result of the one
/// before.
void NestBuilder::build(unsigned number,
                        llvm::ArrayRef<StagedCost::Stage> stages,
                        llvm::SmallVectorImpl<StageNest> &nests) {
  binding = number;
  llvm::SmallVector<unsigned, 8> inputs(graph.data.begin(), graph.data.end());
  for (auto [index, stage] : llvm::enumerate(stages)) {
    llvm::SmallVector<unsigned, 8> outputs;
    // The last stage writes the output of the operator.
    if (index + 1 == stages.size()) {
      for (unsigned node = 0; node < problem.outputs.size(); ++node)
        outputs.push_back(node);
    } else {
      outputs.assign(stage.frontier.begin(), stage.frontier.end());
      if (problem.hasBatch())
        outputs.push_back(0);
      sortFrontier(outputs);
    }
    StageNest &nest = nests.emplace_back();
    nest.readsIntermediate = index != 0;
    buildNest(nest, inputs, outputs, stage);
    inputs = outputs;
  }
}

/// Buffers that are reused from operator to operator.
struct OperatorNests::Impl {
  Impl(std::shared_ptr<const SearchProblem> problem, uint64_t traffic)
      : problem(std::move(problem)), traffic(traffic), sizes(*this->problem),
        cost(*this->problem, sizes) {}

  std::shared_ptr<const SearchProblem> problem;
  uint64_t traffic;
  SizeTable sizes;
  StagedCost cost;
};

OperatorNests::OperatorNests(std::shared_ptr<const SearchProblem> problem,
                             uint64_t traffic)
    : impl(std::make_unique<Impl>(std::move(problem), traffic)) {}
OperatorNests::OperatorNests(OperatorNests &&other) = default;
OperatorNests::~OperatorNests() = default;

/// The costs find the best stages first, with the traffic that the model
/// assumes.
void OperatorNests::describe(
    const OperatorGraph &graph,
    llvm::function_ref<void(unsigned, llvm::ArrayRef<StageNest>)> use) {
  StagedCost &cost = impl->cost;
  cost.clear();
  for (const GraphCoord &coord : graph.coords)
    cost.nodes.push_back({coord.kind, impl->sizes.intern(coord.size),
                          coord.first, coord.second});
  // The batch is no coordinate of the costs.
  for (unsigned node : graph.data)
    if (node != 0 || !impl->problem->hasBatch())
      cost.data.push_back(node);
  for (llvm::ArrayRef<unsigned> weight : graph.weights)
    cost.weights.emplace_back(weight);
  cost.findBest(static_cast<double>(impl->traffic));
  NestBuilder builder(*impl->problem, graph, impl->sizes, cost);
  llvm::SmallVector<StagedCost::Stage, 4> stages;
  llvm::SmallVector<StageNest, 4> nests;
  // Stages may differ between bindings.
  for (unsigned binding = 0; binding < impl->problem->bindings.size();
       ++binding) {
    stages.clear();
    nests.clear();
    cost.findStages(binding, stages);
    builder.build(binding, stages, nests);
    use(binding, nests);
  }
}
