//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chooses where the samples are in the tensors between the stages of operators:
// in the first dimension, as networks have them, or in the last one, along
// which vectors run (docs/internals/code-generation.md, "Batch-innermost
// tensors").
//
// A chain of operators has one such choice per tensor. The time of an operator
// depends on the choices next to it alone, so that a shortest path through the
// chain is the best choice of all: two states per tensor, four operators to
// plan per step.
//
//===----------------------------------------------------------------------===//

#include "../Strategy/ContractionTarget.h"
#include "Packing.h"
#include "kas/Codegen/CPU/Passes.h"
#include "kas/Dialect/Kas/Analysis/Batch.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "kas-batch-innermost"

namespace kas::codegen {
#define GEN_PASS_DEF_KASBATCHINNERMOSTPASS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {
/// Where the samples are in a tensor: the first dimension, as networks have
/// them, or the last one.
enum class BatchPosition : uint8_t { First, Last };

/// The layouts of what an operator reads and of what it makes.
struct Layouts {
  BatchPosition data = BatchPosition::First, result = BatchPosition::First;
  bool operator<(const Layouts &other) const {
    return std::pair(data, result) < std::pair(other.data, other.result);
  }
};
} // namespace

static constexpr BatchPosition positions[] = {BatchPosition::First,
                                              BatchPosition::Last};

/// Moves the first element to the end.
template <typename Range>
static auto rotate(const Range &range) {
  // Not `to_vector`, for which pointers to bool are bool.
  using Element = std::decay_t<decltype(*range.begin())>;
  SmallVector<Element> values(range.begin(), range.end());
  std::rotate(values.begin(), values.begin() + 1, values.end());
  return values;
}

/// The shape that `tensor`, with samples first, has with them at `position`.
static SmallVector<int64_t> getShape(Value tensor, BatchPosition position) {
  ArrayRef<int64_t> shape = cast<ShapedType>(tensor.getType()).getShape();
  return position == BatchPosition::Last ? rotate(shape)
                                         : llvm::to_vector(shape);
}

/// Lets `op` read samples in the last dimension of the data.
static void moveDataSamples(OperatorOp op) {
  Builder builder(op.getContext());
  // Sizes, whether each dimension is unordered, and the coordinates that the
  // data is read at: the three lists that have an entry per dimension.
  op.setInputSizesAttr(
      builder.getArrayAttr(rotate(op.getInputSizes().getValue())));
  op.setInputUnorderedAttr(
      builder.getDenseBoolArrayAttr(rotate(op.getInputUnordered())));
  YieldOp yield = op.getYield();
  SmallVector<Value> data = rotate(yield.getData());
  yield.getDataMutable().assign(data);
}

/// Lets `op` have the samples in the last dimension of its output.
static void moveOutputSamples(OperatorOp op) {
  Builder builder(op.getContext());
  op.setOutputUnorderedAttr(
      builder.getDenseBoolArrayAttr(rotate(op.getOutputUnordered())));
  Block &body = op.getBody().front();
  // The output's coordinates are the arguments of the body, in the order of its
  // dimensions.
  BlockArgument first = body.getArgument(0);
  Value last = body.addArgument(first.getType(), first.getLoc());
  first.replaceAllUsesWith(last);
  body.eraseArgument(0);
}

/// Whether the pass may choose the layouts of `apply`.
static bool isPerSample(ApplyOp apply) {
  OperatorOp op = apply.getOperator();
  auto type = cast<RankedTensorType>(apply.getResult().getType());
  // A schedule was chosen for the operator as it is.
  return op && op.isConcrete() && type.getElementType().isF32() &&
         keepsFirstCoordinate(op) && apply.getData().getType().getRank() > 1 &&
         type.getRank() > 1 && !getSchedule(apply);
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

namespace {

/// Operators of the module by layouts, each made once.
class OperatorLayouts {
public:
  explicit OperatorLayouts(Operation *module) : symbols(module) {}

  /// `op` in these layouts, a private symbol next to it; `op` itself with
  /// samples first in both.
  OperatorOp get(OperatorOp op, Layouts layouts) {
    if (layouts.data == BatchPosition::First &&
        layouts.result == BatchPosition::First)
      return op;
    OperatorOp &known = made[op][layouts];
    if (known)
      return known;
    known = op.clone();
    StringRef suffix =
        layouts.data == BatchPosition::First     ? "_to_batch_innermost"
        : layouts.result == BatchPosition::First ? "_from_batch_innermost"
                                                 : "_batch_innermost";
    known.setSymName((op.getSymName() + suffix).str());
    known.setSymVisibility("private");
    if (layouts.data == BatchPosition::Last)
      moveDataSamples(known);
    if (layouts.result == BatchPosition::Last)
      moveOutputSamples(known);
    symbols.insert(known, std::next(op->getIterator()));
    return known;
  }

  /// Removes those that nothing applies. Plans are made of operators that
  /// exist, so that most of those made were only tried.
  void eraseUnused(const llvm::SmallPtrSetImpl<Operation *> &used) {
    for (auto &[op, byLayouts] : made)
      for (auto &[layouts, known] : byLayouts)
        if (!used.contains(known))
          symbols.erase(known);
  }

private:
  SymbolTable symbols;
  llvm::MapVector<Operation *, std::map<Layouts, OperatorOp>> made;
};

/// Operators of which each alone reads what the one before makes.
using Chain = SmallVector<ApplyOp, 4>;

/// What it takes to compute a chain with the samples here or there.
class ChainLayouts {
public:
  ChainLayouts(Chain &chain, OperatorLayouts &operators,
               const ContractionOptions &options)
      : chain(chain), operators(operators), options(options) {}

  /// The position in each tensor, the data of the first operator to the result
  /// of the last one, such that all takes the least time. One more than there
  /// are operators.
  SmallVector<BatchPosition> choose();

private:
  /// A way to compute the first operators.
  struct Way {
    int64_t time = 0;
    SmallVector<BatchPosition> positions;
  };

  /// What `apply` takes, in halves of a cycle. By the cost model of
  /// `-kas-pack-operators`, on buffers that are removed again.
  int64_t getTime(ApplyOp apply, Layouts layouts);
  /// What it takes to move all samples of a tensor: measured, a cycle for an
  /// element, most of it for the way from and to the next cache.
  static int64_t getMoveTime(Value tensor) {
    return 2 * cast<ShapedType>(tensor.getType()).getNumElements();
  }

  Chain &chain;
  OperatorLayouts &operators;
  const ContractionOptions &options;
};

} // namespace

int64_t ChainLayouts::getTime(ApplyOp apply, Layouts layouts) {
  OperatorOp op = operators.get(apply.getOperator(), layouts);
  Packing packing(apply, options);
  PackingScope scope(packing);
  // The data may have another layout than the tensor that there is now, so that
  // its buffer is a placeholder.
  SmallVector<Value> inputs{
      packing.makeBuffer(getShape(apply.getData(), layouts.data))};
  SmallVector<bool> prepacked{false};
  for (Value weight : apply.getWeights()) {
    inputs.push_back(packing.toBuffer(weight));
    prepacked.push_back(options.prepacked && isFromWeights(weight));
  }
  Value output =
      packing.makeBuffer(getShape(apply.getResult(), layouts.result));
  OperatorPlan plan =
      planOperator(op, inputs, output, prepacked, packing, options);
  // Of one sample, channels are few and far apart, which the model does not
  // know: with this factor twenty layers of 512 tokens took 0.73 of the time.
  constexpr int64_t underestimate = 2;
  bool isLast = layouts.data == BatchPosition::Last &&
                layouts.result == BatchPosition::Last;
  if (plan.time)
    return isLast ? *plan.time : underestimate * *plan.time;
  // Plain loops, of which vectors are not to be expected.
  constexpr int64_t halvesOfACycle = 4;
  // Four halves of a cycle for each iteration of all loops.
  int64_t points = halvesOfACycle;
  if (succeeded(plan.source))
    for (const Contraction::Loop &loop : plan.source->loops)
      points *= loop.extent;
  return points;
}

SmallVector<BatchPosition> ChainLayouts::choose() {
  // By the position in the tensor that is reached.
  std::array<Way, 2> ways;
  // The first tensor is there with the samples first; to have them last costs a
  // transpose.
  ways[0].positions = {BatchPosition::First};
  ways[1] = {getMoveTime(chain.front().getData()), {BatchPosition::Last}};
  for (ApplyOp apply : chain) {
    // The best way to each position in the result of `apply`, over both
    // positions in its data.
    std::array<Way, 2> next;
    for (BatchPosition result : positions) {
      Way &best = next[static_cast<unsigned>(result)];
      for (BatchPosition data : positions) {
        const Way &way = ways[static_cast<unsigned>(data)];
        int64_t time = way.time + getTime(apply, {data, result});
        // Of equal times the first: samples first in the data.
        if (!best.positions.empty() && time >= best.time)
          continue;
        best = {time, way.positions};
        best.positions.push_back(result);
      }
    }
    ways = std::move(next);
  }
  // So does the way back at the end.
  ways[1].time += getMoveTime(chain.back().getResult());
  LDBG() << chain.front().getCallee() << ": " << chain.size()
         << " operators, ending with samples first " << ways[0].time
         << ", last " << ways[1].time;
  return ways[1].time < ways[0].time ? ways[1].positions : ways[0].positions;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// The chains of `function`, as long as they can be.
static SmallVector<Chain> collectChains(func::FuncOp function,
                                        int64_t minSamples) {
  SmallVector<Chain> chains;
  llvm::SmallPtrSet<Operation *, 8> taken;
  function.walk([&](ApplyOp apply) {
    // Images have lines for vectors.
    if (taken.contains(apply) || !isPerSample(apply) ||
        apply.getData().getType().getRank() != 2 ||
        apply.getData().getType().getDimSize(0) < minSamples)
      return;
    // Only the first operator is on lists of channels for sure; the next ones
    // read what it makes.
    Chain chain{apply};
    while (true) {
      Value result = chain.back().getResult();
      // Another reader would need the result with samples first.
      if (!result.hasOneUse())
        break;
      auto next = dyn_cast<ApplyOp>(*result.user_begin());
      if (!next || next.getData() != result || !isPerSample(next) ||
          next->getBlock() != apply->getBlock())
        break;
      chain.push_back(next);
    }
    taken.insert_range(chain);
    chains.push_back(std::move(chain));
  });
  return chains;
}

/// `tensor` with the samples in the last dimension, or in the first one again.
/// A transpose; `tensor` has its samples in the other dimension.
static Value moveSamples(OpBuilder &builder, Value tensor, BatchPosition to) {
  auto type = cast<RankedTensorType>(tensor.getType());
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
  if (to == BatchPosition::Last)
    order = rotate(order);
  else
    std::rotate(order.begin(), order.end() - 1, order.end());
  SmallVector<int64_t> shape = llvm::map_to_vector(
      order, [&](int64_t dimension) { return type.getDimSize(dimension); });
  Location loc = tensor.getLoc();
  Value empty =
      tensor::EmptyOp::create(builder, loc, shape, type.getElementType());
  return linalg::TransposeOp::create(builder, loc, tensor, empty, order)
      ->getResult(0);
}

namespace {

struct BatchInnermost
    : kas::codegen::impl::KasBatchInnermostPassBase<BatchInnermost> {
  using KasBatchInnermostPassBase::KasBatchInnermostPassBase;

  void runOnOperation() override {
    Target target = getContractionTarget(getOperation(), vectorBits);
    OperatorLayouts operators(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (Chain &chain :
           collectChains(function, ContractionTarget(target).lanes)) {
        ContractionOptions options{getNumThreads(function, threads), target,
                                   /*deallocate=*/false, prepacked};
        options.minParallelTime = minParallelTime;
        SmallVector<BatchPosition> positions =
            ChainLayouts(chain, operators, options).choose();
        if (llvm::is_contained(positions, BatchPosition::Last))
          apply(chain, positions, operators);
      }
    operators.eraseUnused(used);
  }

private:
  void apply(Chain &chain, ArrayRef<BatchPosition> positions,
             OperatorLayouts &operators);

  llvm::SmallPtrSet<Operation *, 8> used;
};

} // namespace

/// Replaces `chain` by operators in the chosen layouts. `positions` has an
/// entry for the data of the first operator and one for each result.
void BatchInnermost::apply(Chain &chain, ArrayRef<BatchPosition> positions,
                           OperatorLayouts &operators) {
  OpBuilder builder(chain.front());
  Value data = chain.front().getData();
  if (positions.front() == BatchPosition::Last)
    data = moveSamples(builder, data, BatchPosition::Last);
  for (auto [number, apply] : llvm::enumerate(chain)) {
    builder.setInsertionPoint(apply);
    BatchPosition position = positions[number + 1];
    OperatorOp op =
        operators.get(apply.getOperator(), {positions[number], position});
    used.insert(op);
    auto type = RankedTensorType::get(getShape(apply.getResult(), position),
                                      builder.getF32Type());
    data = ApplyOp::create(builder, apply.getLoc(), type, op.getSymName(),
                           apply.getBinding(), data, apply.getWeights());
  }
  if (positions.back() == BatchPosition::Last)
    data = moveSamples(builder, data, BatchPosition::First);
  ApplyOp last = chain.back();
  last.getResult().replaceAllUsesWith(data);
  for (ApplyOp apply : llvm::reverse(chain))
    apply.erase();
  ++numChains;
}
