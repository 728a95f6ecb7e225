//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Splits an operator into the stages of the best plan (Schedule/StagePlan.h),
// each an operator of its own.
//
// Source: Syno, section 7 (materialized reduction). A stage is a cut through
// the graph of coordinates: what it sums up is stored as a tensor whose
// dimensions are the coordinates at the cut (its frontier).
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Transforms/RFactor.h"
#include "kas/Dialect/Kas/Analysis/VerifyLowering.h"
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
using namespace kas::schedule;

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

  /// For data [N, C, H, W] the intermediate is [N, r, H, W], not [N, H, W, r]:
  /// vectors along W load neighbours in either stage.
  void sort(SmallVectorImpl<unsigned> &frontier, ArrayRef<Value> coordinates) {
    auto key = [&](unsigned position) {
      unsigned dimension = getDataDimension(coordinates[position]);
      bool isData = fromOutput.contains(coordinates[position]) &&
                    dimension != noDimension;
      return std::tuple(isData ? dimension : block, isData, dimension,
                        position);
    };
    // `position` makes the order total.
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

/// The solver chooses the cuts; only the order of dimensions is decided here.
StagePlan kas::planStages(OperatorOp op, const StagePlanOptions &options) {
  OperatorStageGraph graph = makeStageGraph(op);
  StagePlanOptions chosen = options;
  // One stage: no intermediate fits.
  if (!canFactor(op))
    chosen.maxIntermediateElements = 0;
  StagePlan plan = planStages(graph.graph, chosen);
  FrontierOrder order(op);
  // The last stage is the output, whose order is given.
  for (Stage &stage : MutableArrayRef(plan.stages).drop_back())
    if (!stage.isOfWeights)
      order.sort(stage.frontier, graph.coordinates);
  return plan;
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

namespace {
/// Makes the operators of a plan, each with shares of its own: which weights
/// have a coordinate in common depends on the stage.
/// Example, a low-rank convolution in two stages:
///   stage 0   t[n, r, h]   = sum over c of x[n, c, h] * v[r, c]
///   stage 1   y[n, o, h]   = sum over r, k of t[n, r, h + k - 1] * w[o, r, k]
/// The data of a stage is the result of the one before, or the operator's.
class StageBuilder {
public:
  StageBuilder(OpBuilder &builder, OperatorOp op, const StagePlan &plan)
      : builder(builder), op(op), plan(plan), graph(makeStageGraph(op)) {}

  /// Stages come in the order of their dependences.
  OperatorOp build(unsigned index) {
    const Stage &stage = plan.stages[index];
    findUses(stage);
    OperatorOp result = makeOperator(index);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&result.getBody().front());
    mapping.clear();
    for (auto [position, argument] :
         llvm::zip_equal(stage.frontier, result.getOutputs()))
      define(graph.coordinates[position], argument);
    clonePrimitives(stage);
    makeYield();
    return result;
  }

private:
  /// The coordinates that index an operand of a stage.
  SmallVector<Value> getCoordinates(const StageOperand &operand) {
    auto getValues = [&](ArrayRef<unsigned> positions) {
      return llvm::map_to_vector(positions, [&](unsigned position) {
        return graph.coordinates[position];
      });
    };
    switch (operand.kind) {
    case StageOperand::Kind::Data:
      return getValues(graph.graph.data);
    case StageOperand::Kind::Weight:
      return getValues(graph.graph.weights[operand.index]);
    case StageOperand::Kind::Stage:
      return getValues(plan.stages[operand.index].frontier);
    }
    llvm_unreachable("all kinds are known");
  }

  /// Finds what each coordinate is used for.
  /// By coordinate of the original operator: which weights of the stage it
  /// indexes, and whether data or a primitive reads it.
  void findUses(const Stage &stage) {
    data = getCoordinates(stage.operands.front());
    weights = llvm::map_to_vector(
        llvm::drop_begin(stage.operands),
        [&](const StageOperand &operand) { return getCoordinates(operand); });
    usedByData.clear();
    usedByData.insert_range(data);
    for (unsigned position : stage.primitives)
      for (Value operand : graph.primitives[position]->getOperands())
        usedByData.insert(getShared(operand));
    weightUses.clear();
    for (auto [weight, coordinates] : llvm::enumerate(weights))
      for (auto [index, coordinate] : llvm::enumerate(coordinates))
        weightUses[coordinate].emplace_back(weight, index);
  }

  /// Concrete and private; flags of order are those of ordered dimensions.
  OperatorOp makeOperator(unsigned index) {
    const Stage &stage = plan.stages[index];
    SmallVector<Attribute> inputSizes = llvm::map_to_vector(
        data, [](Value v) -> Attribute { return getSize(v); });
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

  /// Lets `value` be a coordinate in the stage, shared with the weights that
  /// it indexes there.
  void define(Value coordinate, Value value) {
    auto uses = weightUses.find(coordinate);
    if (uses != weightUses.end())
      for (auto [number, use] : llvm::enumerate(uses->second)) {
        Value &place = weights[use.first][use.second];
        // The last use needs no share, where the data does not read the
        // coordinate.
        bool isLast = number + 1 == uses->second.size();
        if (isLast && !usedByData.contains(coordinate)) {
          place = value;
          continue;
        }
        auto share = ShareOp::create(builder, value.getLoc(), value);
        place = share.getWeight();
        value = share.getData();
      }
    mapping.map(coordinate, value);
  }

  /// Clones what the stage takes, in program order.
  void clonePrimitives(const Stage &stage) {
    llvm::SmallPtrSet<Operation *, 16> taken;
    for (unsigned position : stage.reductions)
      taken.insert(graph.reductions[position]);
    for (unsigned position : stage.primitives)
      taken.insert(graph.primitives[position]);
    for (Operation &primitive : op.getBody().front()) {
      if (!taken.contains(&primitive))
        continue;
      IRMapping operands;
      for (Value operand : primitive.getOperands())
        operands.map(operand, mapping.lookup(getShared(operand)));
      Operation *clone = builder.clone(primitive, operands);
      for (auto [from, to] :
           llvm::zip_equal(primitive.getResults(), clone->getResults()))
        define(from, to);
    }
  }

  /// Weights were filled in by `define`, coordinate by coordinate.
  void makeYield() {
    SmallVector<Value> values = llvm::map_to_vector(
        data, [&](Value value) { return mapping.lookup(value); });
    SmallVector<ValueRange> ranges(weights.begin(), weights.end());
    YieldOp::create(builder, op.getYield().getLoc(), values, ranges);
  }

  OpBuilder &builder;
  OperatorOp op;
  const StagePlan &plan;
  OperatorStageGraph graph;
  /// The coordinates of the first operand; those of the others, replaced by
  /// what they are in the stage as it is defined.
  SmallVector<Value> data;
  SmallVector<SmallVector<Value>> weights;
  llvm::SmallPtrSet<Value, 16> usedByData;
  /// By coordinate: places in `weights`.
  llvm::DenseMap<Value, SmallVector<std::pair<unsigned, unsigned>>> weightUses;
  /// Coordinates to what the first operand and primitives have of them.
  IRMapping mapping;
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
/// `stages` is empty where one stage is best: the operator stays as it is.
struct FactoredOperator {
  StagePlan plan;
  SmallVector<OperatorOp> stages;
};

struct KasRFactorPass : public kas::impl::KasRFactorPassBase<KasRFactorPass> {
  using KasRFactorPassBase::KasRFactorPassBase;

  /// New operators come right after the one that they are stages of.
  FactoredOperator factor(OperatorOp op, SymbolTable &symbolTable) {
    StagePlanOptions options;
    options.cost = cost;
    options.traffic = traffic;
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
  /// Results of stages that only weights go into are values, too: later passes
  /// may compute them once, ahead of the calls.
  LogicalResult rewrite(ApplyOp apply, FactoredOperator &factored) {
    OpBuilder builder(apply);
    Type elementType =
        cast<RankedTensorType>(apply.getResult().getType()).getElementType();
    SmallVector<Value> results;
    auto getValue = [&](const StageOperand &operand) -> Value {
      switch (operand.kind) {
      case StageOperand::Kind::Data:
        return apply.getData();
      case StageOperand::Kind::Weight:
        return apply.getWeights()[operand.index];
      case StageOperand::Kind::Stage:
        return results[operand.index];
      }
      llvm_unreachable("all kinds are known");
    };
    for (auto [stage, op] :
         llvm::zip_equal(factored.plan.stages, factored.stages)) {
      SmallVector<int64_t> shape = llvm::map_to_vector(
          op.getOutputs(), [](Value v) { return getConcreteSize(v); });
      SmallVector<Value> operands =
          llvm::map_to_vector(stage.operands, getValue);
      results.push_back(ApplyOp::create(
          builder, apply.getLoc(), RankedTensorType::get(shape, elementType),
          op.getSymName(), BindingAttr::getNormal(builder.getContext(), {}),
          operands.front(), ArrayRef(operands).drop_front()));
    }
    // Before the old application goes: the proof needs it as the specification.
    LogicalResult verified = success();
    if (verifyLowering)
      verified = kas::verifyLowering(apply.getOperator(), apply->getOperands(),
                                     results.back(), apply.getLoc());
    apply.getResult().replaceAllUsesWith(results.back());
    apply.erase();
    return verified;
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
      // One plan per operator, however many applications it has.
      auto [entry, isNew] = made.try_emplace(op);
      if (isNew)
        entry->second = factor(op, symbolTable);
      if (!entry->second.stages.empty() &&
          failed(rewrite(apply, entry->second)))
        return signalPassFailure();
    }
  }
};
} // namespace
