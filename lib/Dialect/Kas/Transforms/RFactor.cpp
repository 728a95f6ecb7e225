//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Transforms/RFactor.h"
#include "kas/Dialect/Kas/Transforms/Passes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "kas-rfactor"

using namespace mlir;
using namespace kas;
using namespace kas::solver;

namespace kas {
#define GEN_PASS_DEF_KASRFACTORPASS
#include "kas/Dialect/Kas/Transforms/Passes.h.inc"
} // namespace kas

//===----------------------------------------------------------------------===//
// Planning
//===----------------------------------------------------------------------===//

namespace {
/// Orders the dimensions of intermediates: those that come from outputs as the
/// data has them, so that what is contiguous stays so; those that come from
/// reductions only, and those that only weights have, in one block where the
/// first reduction reaches the data, in the place of the channels that they
/// stand for.
class FrontierOrder {
public:
  explicit FrontierOrder(OperatorOp op) {
    for (auto [index, value] : llvm::enumerate(op.getYield().getData()))
      dataDimension.try_emplace(value, index);
    Block &body = op.getBody().front();
    for (Operation &primitive : llvm::reverse(body.without_terminator()))
      for (Value operand : primitive.getOperands())
        for (Value result : primitive.getResults())
          reach(operand, getDataDimension(result));
    for (BlockArgument output : op.getOutputs())
      fromOutput.insert(output);
    for (Operation &primitive : body.without_terminator())
      if (llvm::any_of(primitive.getOperands(), [&](Value operand) {
            return fromOutput.contains(operand);
          }))
        fromOutput.insert_range(primitive.getResults());
    for (ReduceOp reduce : getReductions(op))
      block = std::min(block, getDataDimension(reduce.getResult()));
  }

  void sort(SmallVectorImpl<unsigned> &frontier, ArrayRef<Value> coordinates) {
    auto key = [&](unsigned position) {
      unsigned dimension = getDataDimension(coordinates[position]);
      bool isData = fromOutput.contains(coordinates[position]) &&
                    dimension != noDimension;
      return std::tuple(isData ? dimension : block, isData, dimension,
                        position);
    };
    llvm::sort(frontier,
               [&](unsigned a, unsigned b) { return key(a) < key(b); });
  }

private:
  static constexpr unsigned noDimension = UINT32_MAX;

  /// The first data dimension that `value` is used for.
  unsigned getDataDimension(Value value) const {
    auto it = dataDimension.find(value);
    return it == dataDimension.end() ? noDimension : it->second;
  }

  void reach(Value value, unsigned dimension) {
    unsigned &first = dataDimension.try_emplace(value, dimension).first->second;
    first = std::min(first, dimension);
  }

  llvm::DenseMap<Value, unsigned> dataDimension;
  llvm::SmallPtrSet<Value, 16> fromOutput;
  /// Where the block goes.
  unsigned block = noDimension;
};
} // namespace

StagePlan kas::planStages(OperatorOp op, const StagePlanOptions &options) {
  OperatorStageGraph graph = makeStageGraph(op);
  StagePlanOptions chosen = options;
  if (!canFactor(op))
    chosen.maxIntermediateElements = 0;
  StagePlan plan = planStages(graph.graph, chosen);
  FrontierOrder order(op);
  for (Stage &stage : MutableArrayRef(plan.stages).drop_back())
    order.sort(stage.frontier, graph.coordinates);
  return plan;
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

namespace {
class StageBuilder {
public:
  StageBuilder(OpBuilder &builder, OperatorOp op, const StagePlan &plan)
      : builder(builder), op(op), plan(plan), graph(makeStageGraph(op)) {}

  OperatorOp build(unsigned index) {
    const Stage &stage = plan.stages[index];
    OperatorOp result = makeOperator(index);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&result.getBody().front());
    IRMapping mapping;
    for (auto [position, argument] :
         llvm::zip_equal(stage.frontier, result.getOutputs()))
      mapping.map(graph.coordinates[position], argument);
    clonePrimitives(stage, mapping);
    makeYield(index, mapping);
    return result;
  }

private:
  /// The coordinates of the data of a stage.
  SmallVector<Value> getData(unsigned index) {
    if (index == 0)
      return llvm::to_vector(op.getYield().getData());
    return llvm::map_to_vector(
        plan.stages[index - 1].frontier,
        [&](unsigned position) { return graph.coordinates[position]; });
  }

  OperatorOp makeOperator(unsigned index) {
    const Stage &stage = plan.stages[index];
    SmallVector<Attribute> inputSizes = llvm::map_to_vector(
        getData(index), [](Value v) -> Attribute { return getSize(v); });
    ArrayAttr noSymbols = builder.getArrayAttr({});
    SmallVector<bool> ordered(stage.frontier.size(), false);
    SmallVector<bool> orderedInput(inputSizes.size(), false);
    auto result = OperatorOp::create(
        builder, op.getLoc(), (op.getSymName() + "_stage" + Twine(index)).str(),
        builder.getStringAttr("private"), noSymbols, noSymbols,
        builder.getDenseBoolArrayAttr(ordered),
        builder.getArrayAttr(inputSizes),
        builder.getDenseBoolArrayAttr(orderedInput));
    Block &body = result.getBody().emplaceBlock();
    for (unsigned position : stage.frontier) {
      Value coordinate = graph.coordinates[position];
      body.addArgument(coordinate.getType(), coordinate.getLoc());
    }
    return result;
  }

  /// Clones what the stage takes, in program order.
  void clonePrimitives(const Stage &stage, IRMapping &mapping) {
    llvm::SmallPtrSet<Operation *, 16> taken;
    for (unsigned position : stage.reductions)
      taken.insert(graph.reductions[position]);
    for (unsigned position : stage.primitives)
      taken.insert(graph.primitives[position]);
    for (Operation &primitive : op.getBody().front()) {
      if (!taken.contains(&primitive))
        continue;
      Operation *clone = builder.clone(primitive, mapping);
      auto share = dyn_cast<ShareOp>(primitive);
      if (!share || isWeightOf(stage, share.getWeight()))
        continue;
      // The weight is that of an earlier stage, so this side is data here.
      mapping.map(share.getWeight(), cast<ShareOp>(clone).getData());
      mapping.map(share.getData(), cast<ShareOp>(clone).getWeight());
    }
  }

  /// Whether one of the weights that the stage takes is indexed by `value`.
  bool isWeightOf(const Stage &stage, Value value) {
    return llvm::any_of(stage.weights, [&](unsigned weight) {
      return llvm::is_contained(op.getYield().getWeights()[weight], value);
    });
  }

  void makeYield(unsigned index, const IRMapping &mapping) {
    auto lookup = [&](Value value) { return mapping.lookup(value); };
    SmallVector<Value> data = llvm::map_to_vector(getData(index), lookup);
    SmallVector<SmallVector<Value>> weights;
    for (unsigned weight : plan.stages[index].weights)
      weights.push_back(
          llvm::map_to_vector(op.getYield().getWeights()[weight], lookup));
    SmallVector<ValueRange> weightRanges(weights.begin(), weights.end());
    YieldOp::create(builder, op.getYield().getLoc(), data, weightRanges);
  }

  OpBuilder &builder;
  OperatorOp op;
  const StagePlan &plan;
  OperatorStageGraph graph;
};
} // namespace

SmallVector<OperatorOp> kas::buildStages(OpBuilder &builder, OperatorOp op,
                                         const StagePlan &plan) {
  StageBuilder stages(builder, op, plan);
  SmallVector<OperatorOp> result;
  for (unsigned index = 0; index < plan.stages.size(); ++index)
    result.push_back(stages.build(index));
  return result;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
/// The stages of one operator in the symbol table.
struct FactoredOperator {
  StagePlan plan;
  SmallVector<OperatorOp> stages;
};

struct KasRFactorPass : public kas::impl::KasRFactorPassBase<KasRFactorPass> {
  using KasRFactorPassBase::KasRFactorPassBase;

  FactoredOperator factor(OperatorOp op, SymbolTable &symbolTable) {
    StagePlanOptions options;
    // Four bytes per element of f32.
    if (maxIntermediateBytes != 0)
      options.maxIntermediateElements = maxIntermediateBytes / 4;
    FactoredOperator factored{planStages(op, options), {}};
    LDBG() << op.getSymName() << ": " << factored.plan.macs
           << " multiply-adds in " << factored.plan.stages.size() << " stages";
    if (factored.plan.stages.size() == 1)
      return factored;
    ++numFactored;
    OpBuilder builder(op.getContext());
    factored.stages = buildStages(builder, op, factored.plan);
    auto position = std::next(op->getIterator());
    for (OperatorOp stage : factored.stages)
      symbolTable.insert(stage, position);
    return factored;
  }

  /// Replaces `apply` by one apply per stage.
  static void rewrite(ApplyOp apply, FactoredOperator &factored) {
    OpBuilder builder(apply);
    Type elementType =
        cast<RankedTensorType>(apply.getResult().getType()).getElementType();
    Value value = apply.getData();
    for (auto [stage, op] :
         llvm::zip_equal(factored.plan.stages, factored.stages)) {
      SmallVector<int64_t> shape = llvm::map_to_vector(
          op.getOutputs(), [](Value v) { return getConcreteSize(v); });
      SmallVector<Value> weights = llvm::map_to_vector(
          stage.weights, [&](unsigned i) { return apply.getWeights()[i]; });
      value = ApplyOp::create(
          builder, apply.getLoc(), RankedTensorType::get(shape, elementType),
          op.getSymName(), BindingAttr::getNormal(builder.getContext(), {}),
          value, weights);
    }
    apply.getResult().replaceAllUsesWith(value);
    apply.erase();
  }

  void runOnOperation() override {
    if (!getOperation()->hasTrait<OpTrait::SymbolTable>()) {
      mlir::emitError(getOperation()->getLoc(),
                      "requires an op with a symbol table");
      return signalPassFailure();
    }
    SymbolTable symbolTable(getOperation());
    llvm::MapVector<OperatorOp, FactoredOperator> made;
    SmallVector<ApplyOp> applies;
    getOperation()->walk([&](ApplyOp apply) { applies.push_back(apply); });
    for (ApplyOp apply : applies) {
      OperatorOp op = apply.getOperator();
      if (!op || !op.isConcrete())
        continue;
      auto [entry, isNew] = made.try_emplace(op);
      if (isNew)
        entry->second = factor(op, symbolTable);
      if (!entry->second.stages.empty())
        rewrite(apply, entry->second);
    }
  }
};
} // namespace
