//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reverse-mode differentiation of a function on tensors: propagates gradients
// operation by operation, last to first.
// `Reverse` visits the operations of a block from the last to the first. Before
// an operation is visited its result's gradient is complete; it adds the
// product with its own derivative to the gradients of its operands. Each kind
// of operation has its rule in `propagate`, which emits structured operations
// again (docs/guide/gradients.md, docs/internals/training.md).
//
//===----------------------------------------------------------------------===//

#include "kas/Networks/Differentiation/Differentiate.h"
#include "LookupGradient.h"
#include "OperatorGradient.h"
#include "Reverse.h"
#include "StructuredGradient.h"
#include "kas/Conversion/BatchNorm.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace kas;
using namespace kas::networks;

/// `active` are the values that depend on a wanted one: others get no gradient,
/// and what needs only theirs is never emitted.
Reverse::Reverse(OpBuilder &builder, ValueRange wanted, Block::iterator begin)
    : builder(builder), active(wanted.begin(), wanted.end()) {
  for (Operation &op : llvm::make_range(begin, builder.getInsertionPoint())) {
    if (reads(&op))
      // Integers, such as what comparisons give, are constant.
      for (Value result : op.getResults())
        if (isa<FloatType>(getElementTypeOrSelf(result.getType())))
          active.insert(result);
    operations.push_back(&op);
  }
  std::reverse(operations.begin(), operations.end());
}

/// Also through a region: a body may use values from outside.
bool Reverse::reads(Operation *op) const {
  auto isActive = [&](Value value) { return active.contains(value); };
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  return llvm::any_of(op->getOperands(), isActive) ||
         llvm::any_of(captured, isActive);
}

/// A value with several readers gets the sum of their shares.
void Reverse::add(Value value, Value gradient) {
  if (!active.contains(value))
    return;
  Value &sum = gradients[value];
  if (!sum) {
    sum = gradient;
    return;
  }
  auto type = cast<RankedTensorType>(value.getType());
  Location loc = value.getLoc();
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                        type.getElementType());
  sum = linalg::AddOp::create(builder, loc, ValueRange{sum, gradient}, empty)
            .getResult(0);
}

/// Zeros for what no result depends on.
Value Reverse::get(Value value) {
  Value &gradient = gradients[value];
  if (!gradient)
    gradient = makeZeros(builder, value.getLoc(), value.getType());
  return gradient;
}

/// The part of the gradient of a padded tensor that is not padding.
/// A slice at the low padding.
static Value cutPadding(OpBuilder &builder, tensor::PadOp pad, Value gradient) {
  RankedTensorType type = pad.getSourceType();
  SmallVector<OpFoldResult> sizes,
      steps(type.getRank(), builder.getIndexAttr(1));
  for (int64_t size : type.getShape())
    sizes.push_back(builder.getIndexAttr(size));
  return tensor::ExtractSliceOp::create(builder, pad.getLoc(), type, gradient,
                                        pad.getMixedLowPad(), sizes, steps);
}

/// Symbolic operators have no shapes yet, so their gradients have none.
LogicalResult Reverse::propagateOperator(ApplyOp apply, Value gradient) {
  auto op = SymbolTable::lookupNearestSymbolFrom<OperatorOp>(
      apply, apply.getCalleeAttr());
  if (!op || !op.isConcrete())
    return apply.emitError("to differentiate, requires a concrete operator "
                           "(see -kas-specialize)");
  for (auto [index, operand] : llvm::enumerate(apply->getOperands()))
    if (active.contains(operand))
      add(operand, emitOperatorGradient(builder, apply, index, gradient));
  return success();
}

/// All three at once: they share two sums over each channel.
void Reverse::propagateBatchNorm(BatchNormOp op, Value gradient) {
  BatchNormGradients shares = emitBatchNormGradients(builder, op, gradient);
  add(op.getData(), shares.data);
  add(op.getScale(), shares.scale);
  add(op.getOffset(), shares.offset);
}

/// An embedding reads its table by an index in the body: it is captured, not an
/// operand.
LogicalResult Reverse::propagateStructured(linalg::LinalgOp op,
                                           Value gradient) {
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  if (llvm::any_of(captured,
                   [&](Value value) { return active.contains(value); })) {
    Value table = getLookupTable(op, active);
    if (!table)
      return op->emitError("to differentiate, requires a body that reads "
                           "operands alone, or yields one element of a table");
    add(table, emitLookupGradient(builder, op, gradient));
    return success();
  }
  for (OpOperand &operand : op->getOpOperands()) {
    if (!active.contains(operand.get()))
      continue;
    // The target is the operand, or what its padding is applied to: windows
    // skip the padding.
    FailureOr<OperandGradient> share =
        emitStructuredGradient(builder, op, operand, gradient);
    if (failed(share))
      return failure();
    add(share->target, share->gradient);
  }
  return success();
}

/// Each part of a concatenation has the share of its place.
LogicalResult Reverse::propagateConcat(tensor::ConcatOp concat,
                                       Value gradient) {
  uint64_t dim = concat.getDim();
  SmallVector<OpFoldResult> offsets(concat.getResultType().getRank(),
                                    builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(offsets.size(), builder.getIndexAttr(1));
  int64_t offset = 0;
  for (Value input : concat.getInputs()) {
    auto type = cast<RankedTensorType>(input.getType());
    if (!type.hasStaticShape())
      return concat->emitError("to differentiate, requires static shapes");
    offsets[dim] = builder.getIndexAttr(offset);
    offset += type.getDimSize(dim);
    if (active.contains(input))
      add(input,
          tensor::ExtractSliceOp::create(
              builder, concat.getLoc(), type, gradient, offsets,
              getAsIndexOpFoldResult(builder.getContext(), type.getShape()),
              strides));
  }
  return success();
}

/// Adds the shares of all active operands of `op`, given the gradient of its
/// result.
LogicalResult Reverse::propagate(Operation *op, Value gradient) {
  Location loc = op->getLoc();
  if (auto structured = dyn_cast<linalg::LinalgOp>(op))
    return propagateStructured(structured, gradient);
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](tensor::PadOp pad) -> LogicalResult {
        // The padding value gets no gradient, so it must be a constant.
        if (!pad.getConstantPaddingValue() ||
            !pad.getSourceType().hasStaticShape())
          return op->emitError("to differentiate, requires static shapes and "
                               "padding with one value");
        add(pad.getSource(), cutPadding(builder, pad, gradient));
        return success();
      })
      .Case([&](ApplyOp apply) { return propagateOperator(apply, gradient); })
      .Case([&](BatchNormOp norm) -> LogicalResult {
        propagateBatchNorm(norm, gradient);
        return success();
      })
      // The same elements are dropped: seed and stream decide, not the data.
      .Case([&](DropoutOp dropout) {
        add(dropout.getData(),
            DropoutOp::create(builder, loc, gradient.getType(), gradient,
                              dropout.getSeed(), dropout.getProbabilityAttr(),
                              dropout.getStreamAttr()));
        return success();
      })
      .Case([&](tensor::CollapseShapeOp collapse) {
        add(collapse.getSrc(),
            tensor::ExpandShapeOp::create(builder, loc, collapse.getSrcType(),
                                          gradient,
                                          collapse.getReassociationIndices()));
        return success();
      })
      .Case([&](tensor::ExpandShapeOp expand) {
        add(expand.getSrc(), tensor::CollapseShapeOp::create(
                                 builder, loc, expand.getSrcType(), gradient,
                                 expand.getReassociationIndices()));
        return success();
      })
      // The elements outside of the slice have no share.
      .Case([&](tensor::ExtractSliceOp extract) {
        Value zeros = makeZeros(builder, loc, extract.getSourceType());
        add(extract.getSource(),
            tensor::InsertSliceOp::create(
                builder, loc, gradient, zeros, extract.getMixedOffsets(),
                extract.getMixedSizes(), extract.getMixedStrides()));
        return success();
      })
      .Case([&](tensor::ConcatOp concat) {
        return propagateConcat(concat, gradient);
      })
      // The source has the share of its part, the destination that of the rest.
      .Case([&](tensor::InsertSliceOp insert) {
        if (active.contains(insert.getSource()))
          add(insert.getSource(),
              tensor::ExtractSliceOp::create(
                  builder, loc, insert.getSourceType(), gradient,
                  insert.getMixedOffsets(), insert.getMixedSizes(),
                  insert.getMixedStrides()));
        if (active.contains(insert.getDest())) {
          Value zeros = makeZeros(builder, loc, insert.getSourceType());
          add(insert.getDest(),
              tensor::InsertSliceOp::create(
                  builder, loc, zeros, gradient, insert.getMixedOffsets(),
                  insert.getMixedSizes(), insert.getMixedStrides()));
        }
        return success();
      })
      .Default([&](Operation *) -> LogicalResult {
        return op->emitError("has no gradient here");
      });
}

/// Puts an operation with the result `index` alone in the place of that result
/// of `op`; nothing where it depends on the other results. The position of a
/// maximum, which comes with it, is such a result.
static Operation *takeResult(linalg::GenericOp op, unsigned index) {
  OpBuilder builder(op);
  builder.setInsertionPointAfter(op);
  int64_t numInputs = op.getNumDpsInputs();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  maps[numInputs] = maps[numInputs + index];
  maps.truncate(numInputs + 1);
  auto single = linalg::GenericOp::create(
      builder, op.getLoc(), op->getResult(index).getType(), op.getDpsInputs(),
      op.getDpsInits()[index], maps, op.getIteratorTypesArray());
  IRMapping mapping;
  op.getRegion().cloneInto(&single.getRegion(), mapping);
  Block &body = single.getRegion().front();
  Operation *yield = body.getTerminator();
  yield->setOperands(yield->getOperand(index));
  // What leads to the other results only.
  SmallVector<Operation *> steps = llvm::map_to_vector(
      body.without_terminator(), [](Operation &step) { return &step; });
  for (Operation *step : llvm::reverse(steps))
    if (isOpTriviallyDead(step))
      step->erase();
  for (int64_t i = op.getNumDpsInits() - 1; i >= 0; --i) {
    if (i == index)
      continue;
    if (!body.getArgument(numInputs + i).use_empty()) {
      single.erase();
      return nullptr;
    }
    body.eraseArgument(numInputs + i);
  }
  op->getResult(index).replaceAllUsesWith(single->getResult(0));
  return single;
}

/// Stops at the first operation that has no rule.
LogicalResult Reverse::run() {
  auto hasGradient = [&](Value value) { return gradients.contains(value); };
  for (Operation *op : operations) {
    // What no result depends on has no share.
    if (!reads(op) || llvm::none_of(op->getResults(), hasGradient))
      continue;
    // The mean and variance are results for running statistics alone.
    auto batchNorm = dyn_cast<BatchNormOp>(op);
    if (batchNorm && (hasGradient(batchNorm.getMean()) ||
                      hasGradient(batchNorm.getVariance())))
      return op->emitError("to differentiate, requires results that do not "
                           "depend on the statistics themselves");
    Value gradient = gradients.lookup(op->getResult(0));
    // Normalizations alone have a rule for several results.
    if (op->getNumResults() != 1 && !batchNorm) {
      auto generic = dyn_cast<linalg::GenericOp>(op);
      Operation *single = nullptr;
      if (generic && llvm::count_if(op->getResults(), hasGradient) == 1) {
        OpResult result = *llvm::find_if(op->getResults(), hasGradient);
        gradient = gradients.lookup(result);
        single = takeResult(generic, result.getResultNumber());
      }
      if (!single)
        return op->emitError("to differentiate, requires one result, got ")
               << op->getNumResults();
      op = single;
    }
    if (failed(propagate(op, gradient)))
      return failure();
  }
  return success();
}

/// At the insertion point of the builder, from the gradients of `results`,
/// those of `wanted`; all operations before it in its block may be reversed.
FailureOr<SmallVector<Value>>
kas::networks::emitGradients(OpBuilder &builder, ValueRange results,
                             ValueRange resultGradients, ValueRange wanted) {
  Reverse reverse(builder, wanted, builder.getInsertionBlock()->begin());
  for (auto [result, gradient] : llvm::zip_equal(results, resultGradients))
    reverse.add(result, gradient);
  if (failed(reverse.run()))
    return failure();
  return llvm::map_to_vector(wanted,
                             [&](Value value) { return reverse.get(value); });
}

/// `arguments` are positions. The new function takes a gradient for each result
/// after the arguments, and returns the results, then the gradients.
FailureOr<func::FuncOp>
kas::networks::makeGradientFunction(func::FuncOp function, StringRef name,
                                    ArrayRef<unsigned> arguments) {
  Operation *terminator = function.getBody().back().getTerminator();
  if (!function.getBody().hasOneBlock() || !isa<func::ReturnOp>(terminator))
    return function.emitError("to differentiate, requires a function with one "
                              "block");
  // Integers have no gradient, and shapes must be known for zeros.
  for (Type type : llvm::concat<const Type>(function.getArgumentTypes(),
                                            function.getResultTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape() ||
        !isa<FloatType>(tensor.getElementType()))
      return function.emitError("to differentiate, requires tensors of floats "
                                "with static shapes, got ")
             << type;
  }
  OpBuilder builder(function->getContext());
  builder.setInsertionPointAfter(function);
  // Forward operations stay in it: gradients read their results.
  func::FuncOp gradient = function.clone();
  // Under its own name before it is inserted: symbols must not collide.
  gradient.setName(name);
  builder.insert(gradient);

  Block &block = gradient.getBody().front();
  Operation *end = block.getTerminator();
  SmallVector<Value> results = llvm::to_vector(end->getOperands());
  SmallVector<Value> resultGradients;
  for (Value result : results) {
    LogicalResult inserted =
        gradient.insertArgument(gradient.getNumArguments(), result.getType(),
                                DictionaryAttr(), result.getLoc());
    assert(succeeded(inserted) && "a func.func takes arguments");
    (void)inserted;
    resultGradients.push_back(block.getArguments().back());
  }
  SmallVector<Value> wanted =
      llvm::map_to_vector(arguments, [&](unsigned index) -> Value {
        return block.getArgument(index);
      });
  builder.setInsertionPoint(end);
  FailureOr<SmallVector<Value>> gradients =
      emitGradients(builder, results, resultGradients, wanted);
  if (failed(gradients)) {
    gradient.erase();
    return failure();
  }
  llvm::append_range(results, *gradients);
  end->setOperands(results);
  gradient.setType(builder.getFunctionType(gradient.getArgumentTypes(),
                                           ValueRange(results).getTypes()));
  // They are numbered by result, and results were added.
  gradient.removeResAttrsAttr();
  return gradient;
}
