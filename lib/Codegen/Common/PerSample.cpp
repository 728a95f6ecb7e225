//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Determines whether a function computes each sample of its batch
// independently, and where the samples are in each of its tensors.
// A forward data-flow analysis over the one block of a function: each value
// that depends on data gets the dimension in which its samples are, and each
// operation either maps that of its operands to that of its results or is an
// error. The batch is at least 2, so that a dimension of samples cannot be
// taken for a unit dimension.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/Common/PerSample.h"
#include "kas/Dialect/Kas/Analysis/Batch.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace kas;
using namespace kas::codegen;

namespace {

/// The example of a convolution on 8 images: `x: [8, C, H, W]` has its samples
/// at {dim 0, outer 1, inner 1}; flattened to `[8 * C, H, W]`, at {0, 1, C}.
class SampleFinder {
public:
  SampleFinder(func::FuncOp function, unsigned numData)
      : function(function), numData(numData) {}

  FailureOr<SamplePositions> run();

private:
  LogicalResult fail(Operation *op, const Twine &what) {
    return op->emitError("requires samples that are computed one by one, got ")
           << what;
  }

  /// Each checks one operation that reads samples and sets the place of its
  /// results.
  LogicalResult checkOp(Operation *op);
  /// One parallel loop runs over the samples of all operands and results.
  LogicalResult checkLinalg(linalg::LinalgOp op);
  LogicalResult checkExtracts(linalg::LinalgOp op, unsigned loop);
  LogicalResult checkSlice(Operation *op, Value whole, Value part,
                           OffsetSizeAndStrideOpInterface slice,
                           const llvm::SmallBitVector &dropped);
  LogicalResult checkReshape(Operation *op, RankedTensorType expanded,
                             ArrayRef<ReassociationIndices> groups,
                             bool expands);
  LogicalResult checkCastOrConcat(Operation *op);
  LogicalResult checkElementwise(Operation *op);
  LogicalResult checkApply(ApplyOp apply);
  LogicalResult checkReturn(func::ReturnOp op);

  /// The loop that indexes the samples of the first operand that has some.
  std::optional<unsigned> findLoop(linalg::LinalgOp op);
  /// Values that depend on data are never uniform; unit dimensions always are.
  bool isUniform(Value tensor, int64_t dim);
  /// Whether result `result` of `op` is the same along `dim`, as its operands
  /// are.
  bool computesUniform(linalg::LinalgOp op, unsigned result, int64_t dim);

  func::FuncOp function;
  unsigned numData;
  SamplePositions result;
  DenseMap<Value, SamplePosition> &samples = result.places;
  int64_t &batch = result.batch;
};

} // namespace

/// The position of `loop` in the results of `map`, where it is a result as it
/// is and occurs in no other one; none where it does not occur.
static FailureOr<std::optional<unsigned>> findResult(AffineMap map,
                                                     unsigned loop) {
  std::optional<unsigned> found;
  for (auto [position, result] : llvm::enumerate(map.getResults())) {
    if (!result.isFunctionOfDim(loop))
      continue;
    if (found || !isa<AffineDimExpr>(result))
      return failure();
    found = position;
  }
  return found;
}

/// Whether all tensors that the operation reads and makes have known sizes.
static bool isStatic(Operation *op) {
  auto isStaticTensor = [](Type type) {
    auto tensor = dyn_cast<TensorType>(type);
    return !tensor || (tensor.hasRank() && tensor.hasStaticShape());
  };
  return llvm::all_of(op->getOperandTypes(), isStaticTensor) &&
         llvm::all_of(op->getResultTypes(), isStaticTensor);
}

/// Its body may have assertions.
static bool isTensorLinalg(Operation *op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp && linalgOp.hasPureTensorSemantics();
}

/// Whether all elements along the dimension are equal, as those of a constant,
/// or of what was broadcast along it.
bool SampleFinder::isUniform(Value tensor, int64_t dim) {
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  if (!type || !type.hasStaticShape() || samples.contains(tensor))
    return false;
  if (type.getDimSize(dim) == 1)
    return true;
  Operation *op = tensor.getDefiningOp();
  if (!op)
    return false;
  DenseElementsAttr constant;
  if (matchPattern(tensor, m_Constant(&constant)))
    return constant.isSplat();
  if (isa<tensor::EmptyOp, linalg::FillOp, tensor::SplatOp>(op))
    return true;
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return computesUniform(linalgOp, cast<OpResult>(tensor).getResultNumber(),
                           dim);
  auto isUniformAlong = [&](Value source, ArrayRef<int64_t> dims) {
    return llvm::all_of(dims, [&](int64_t d) { return isUniform(source, d); });
  };
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    // Equal along the collapsed dimension, so along each of its parts.
    for (auto [d, group] : llvm::enumerate(expand.getReassociationIndices()))
      if (llvm::is_contained(group, dim))
        return isUniform(expand.getSrc(), static_cast<int64_t>(d));
    return false;
  }
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return isUniformAlong(collapse.getSrc(),
                          collapse.getReassociationIndices()[dim]);
  return false;
}

bool SampleFinder::computesUniform(linalg::LinalgOp op, unsigned result,
                                   int64_t dim) {
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(result));
  auto loop = dyn_cast<AffineDimExpr>(map.getResult(dim));
  if (!loop || op.hasIndexSemantics())
    return false;
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
    if (!isa<RankedTensorType>(operand.get().getType()))
      return true;
    auto position =
        findResult(op.getMatchingIndexingMap(&operand), loop.getPosition());
    return succeeded(position) &&
           (!*position || isUniform(operand.get(), **position));
  });
}

FailureOr<SamplePositions> SampleFinder::run() {
  if (!function.getBody().hasOneBlock())
    return function.emitError("requires a function of one block to look for "
                              "samples");
  if (numData == 0 || numData > function.getNumArguments())
    return function.emitError("requires at least 1 data argument of ")
           << function.getNumArguments() << " arguments, got " << numData;
  for (BlockArgument argument : function.getArguments().take_front(numData)) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type || !type.hasStaticShape() || type.getRank() == 0 ||
        type.getDimSize(0) < 2 || (batch && type.getDimSize(0) != batch))
      return function.emitError("requires data of static shape with the same "
                                "number of samples first, at least 2, got ")
             << argument.getType();
    batch = type.getDimSize(0);
    samples[argument] = {0, 1, 1};
  }
  for (Operation &op : function.getBody().front())
    if (failed(checkOp(&op)))
      return failure();
  return std::move(result);
}

LogicalResult SampleFinder::checkOp(Operation *op) {
  if (auto returnOp = dyn_cast<func::ReturnOp>(op))
    return checkReturn(returnOp);
  // Inside of the body, too: `tensor.extract` reads samples without an operand.
  bool reads = false;
  op->walk([&](Operation *inner) {
    reads |= llvm::any_of(inner->getOperands(), [&](Value operand) {
      return samples.contains(operand);
    });
  });
  // What depends on weights alone is the same for all samples, if it is only
  // computed.
  if (!reads)
    return isMemoryEffectFree(op) || isa<cf::AssertOp>(op) || isTensorLinalg(op)
               ? success()
               : fail(op, "an operation with effects");
  if (isa<tensor::CastOp, tensor::ConcatOp>(op))
    return checkCastOrConcat(op);
  if (!isStatic(op))
    return fail(op, "a tensor whose sizes are not known");
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return checkLinalg(linalgOp);
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return checkReshape(op, expand.getResultType(),
                        expand.getReassociationIndices(), /*expands=*/true);
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return checkReshape(op, collapse.getSrcType(),
                        collapse.getReassociationIndices(), /*expands=*/false);
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return checkSlice(op, slice.getSource(), slice.getResult(), slice,
                      slice.getDroppedDims());
  if (auto slice = dyn_cast<tensor::InsertSliceOp>(op))
    return checkSlice(op, slice.getDest(), slice.getSource(), slice,
                      slice.getDroppedDims());
  if (auto pad = dyn_cast<tensor::PadOp>(op)) {
    auto found = samples.find(pad.getSource());
    if (found == samples.end())
      return fail(op, "a padding of samples, or one that is no constant");
    SamplePosition place = found->second;
    // Padding along the samples would add one.
    if (!isConstantIntValue(pad.getMixedLowPad()[place.dim], 0) ||
        !isConstantIntValue(pad.getMixedHighPad()[place.dim], 0) ||
        !pad.getConstantPaddingValue())
      return fail(op, "a padding of samples, or one that is no constant");
    samples[pad.getResult()] = place;
    return success();
  }
  if (OpTrait::hasElementwiseMappableTraits(op))
    return checkElementwise(op);
  if (auto apply = dyn_cast<ApplyOp>(op))
    return checkApply(apply);
  return fail(op, Twine("'") + op->getName().getStringRef() +
                      "', of which this is not known");
}

/// Casts may hide the sizes of other dimensions from a concatenation.
LogicalResult SampleFinder::checkCastOrConcat(Operation *op) {
  for (Value operand : op->getOperands()) {
    auto found = samples.find(operand);
    if (found == samples.end())
      continue;
    int64_t dim = found->second.dim;
    auto concat = dyn_cast<tensor::ConcatOp>(op);
    if (concat && dim == static_cast<int64_t>(concat.getDim()))
      return fail(op, "a concatenation of samples");
    for (Type type : {operand.getType(), op->getResult(0).getType()}) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor || tensor.isDynamicDim(dim))
        return fail(op, "a tensor whose sizes are not known");
    }
  }
  return checkElementwise(op);
}

/// All operands have their samples at one place, which that of the results is.
LogicalResult SampleFinder::checkElementwise(Operation *op) {
  std::optional<SamplePosition> place;
  for (Value operand : op->getOperands())
    if (auto found = samples.find(operand); found != samples.end()) {
      if (place && *place != found->second)
        return fail(op, "operands with samples at other positions");
      place = found->second;
    }
  // An operand without samples, such as a constant, must be equal for all of
  // them: the number of samples may change.
  for (Value operand : op->getOperands())
    if (isa<RankedTensorType>(operand.getType()) &&
        !samples.contains(operand) && !isUniform(operand, place->dim))
      return fail(op, "an operand that differs from sample to sample");
  for (Value result : op->getResults())
    samples[result] = *place;
  return success();
}

/// The loop over samples.
std::optional<unsigned> SampleFinder::findLoop(linalg::LinalgOp op) {
  for (OpOperand &operand : op->getOpOperands()) {
    auto found = samples.find(operand.get());
    if (found == samples.end())
      continue;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    auto loop = dyn_cast<AffineDimExpr>(map.getResult(found->second.dim));
    return loop ? std::optional(loop.getPosition()) : std::nullopt;
  }
  // Only what the body extracts depends on data.
  std::optional<unsigned> loop;
  op->walk([&](tensor::ExtractOp extract) {
    auto found = samples.find(extract.getTensor());
    if (found == samples.end())
      return;
    if (auto index = extract.getIndices()[found->second.dim]
                         .getDefiningOp<linalg::IndexOp>())
      loop = index.getDim();
  });
  return loop;
}

LogicalResult SampleFinder::checkLinalg(linalg::LinalgOp op) {
  std::optional<unsigned> loop = findLoop(op);
  if (!loop ||
      op.getIteratorTypesArray()[*loop] != utils::IteratorType::parallel)
    return fail(op, "a sum over samples, or samples at shifted positions");
  std::optional<SamplePosition> first;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<RankedTensorType>(operand.get().getType()))
      continue;
    // The loop of the samples reads the same dimension of every operand with
    // samples, unshifted.
    auto position = findResult(op.getMatchingIndexingMap(&operand), *loop);
    if (failed(position))
      return fail(op, "samples at shifted positions");
    auto found = samples.find(operand.get());
    if (found == samples.end()) {
      if (*position && !isUniform(operand.get(), **position))
        return fail(op, "an operand that differs from sample to sample");
      continue;
    }
    SamplePosition place = found->second;
    if (*position != std::optional<unsigned>(place.dim) ||
        (first && !first->hasSizesOf(place)))
      return fail(op, "operands with samples at other positions");
    first = place;
  }
  if (failed(checkExtracts(op, *loop)))
    return failure();
  // Only what its body extracts depends on data.
  if (!first)
    first = SamplePosition{0, 1, 1};
  if (op.getStaticLoopRanges()[*loop] != first->outer * batch * first->inner)
    return fail(op, "a loop that is none over samples");
  for (auto [number, result] : llvm::enumerate(op->getResults())) {
    auto position = findResult(
        op.getMatchingIndexingMap(op.getDpsInitOperand(number)), *loop);
    if (failed(position) || !*position)
      return fail(op, "a sum over samples");
    samples[result] = {**position, first->outer, first->inner};
  }
  this->result.loops[op] = *loop;
  return success();
}

/// The number of a sample is only used to read the same sample of others.
LogicalResult SampleFinder::checkExtracts(linalg::LinalgOp op, unsigned loop) {
  WalkResult result = op->walk([&](Operation *inner) {
    if (auto extract = dyn_cast<tensor::ExtractOp>(inner)) {
      auto found = samples.find(extract.getTensor());
      if (found == samples.end())
        return WalkResult::advance();
      auto index = extract.getIndices()[found->second.dim]
                       .getDefiningOp<linalg::IndexOp>();
      if (!index || index.getDim() != loop ||
          !found->second.hasSizesOf({0, 1, 1}))
        return WalkResult::interrupt();
      // `linalg.index` of the loop may only be an index into samples.
    } else if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      if (index.getDim() != loop)
        return WalkResult::advance();
      for (OpOperand &use : index->getUses()) {
        auto extract = dyn_cast<tensor::ExtractOp>(use.getOwner());
        auto found =
            extract ? samples.find(extract.getTensor()) : samples.end();
        // The tensor is the first operand.
        if (found == samples.end() ||
            use.getOperandNumber() != found->second.dim + 1)
          return WalkResult::interrupt();
      }
      // A nested region could use the index in ways that are not looked at.
    } else if (inner != op.getOperation() && inner->getNumRegions() != 0) {
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return result.wasInterrupted()
             ? fail(op, "a body that depends on the number of the sample")
             : success();
}

/// All elements of a sample that the reshape puts into one dimension, or takes
/// from one, remain next to each other.
LogicalResult SampleFinder::checkReshape(Operation *op,
                                         RankedTensorType expanded,
                                         ArrayRef<ReassociationIndices> groups,
                                         bool expands) {
  SamplePosition place = samples.at(op->getOperand(0));
  for (auto [dim, group] : llvm::enumerate(groups)) {
    for (int64_t d : group) {
      // The elements of the dimensions of the group before and after `d`.
      int64_t before = 1, after = 1;
      for (int64_t other : group)
        (other < d ? before : after) *=
            other == d ? 1 : expanded.getDimSize(other);
      // Collapsing: what is before `d` in the group repeats the samples, what
      // is after belongs to one. [3, batch, 4] -> [3 * batch * 4] gives outer
      // 3, inner 4.
      if (!expands && d == place.dim) {
        samples[op->getResult(0)] = {static_cast<int64_t>(dim),
                                     before * place.outer, place.inner * after};
        return success();
      }
      // Expanding, the inverse: `d` has the samples if the rest of the group
      // divides what is around them.
      if (expands && static_cast<int64_t>(dim) == place.dim &&
          place.outer % before == 0 && place.inner % after == 0 &&
          expanded.getDimSize(d) % batch == 0) {
        samples[op->getResult(0)] = {d, place.outer / before,
                                     place.inner / after};
        return success();
      }
    }
  }
  return fail(op, "a reshape that cuts samples");
}

/// A slice has all samples; `part` is read of `whole` or written to it.
LogicalResult SampleFinder::checkSlice(Operation *op, Value whole, Value part,
                                       OffsetSizeAndStrideOpInterface slice,
                                       const llvm::SmallBitVector &dropped) {
  auto isWhole = [&](int64_t dim) {
    return isConstantIntValue(slice.getMixedOffsets()[dim], 0) &&
           isConstantIntValue(slice.getMixedStrides()[dim], 1) &&
           isConstantIntValue(
               slice.getMixedSizes()[dim],
               cast<RankedTensorType>(whole.getType()).getDimSize(dim));
  };
  // The dimension of the part: those that a rank-reducing slice drops are
  // missing.
  auto toPart = [&](int64_t dim) {
    int64_t numDropped = 0;
    for (int64_t d = 0; d < dim; ++d)
      numDropped += dropped.test(d);
    return dim - numDropped;
  };
  bool inserts = op->getResult(0).getType() == whole.getType() &&
                 isa<tensor::InsertSliceOp>(op);
  std::optional<SamplePosition> place;
  if (auto found = samples.find(whole); found != samples.end()) {
    place = found->second;
  } else {
    // Into what is the same for all samples.
    SamplePosition inPart = samples.at(part);
    for (int64_t dim = 0, end = static_cast<int64_t>(dropped.size()); dim < end;
         ++dim)
      if (!dropped.test(dim) && toPart(dim) == inPart.dim)
        place = SamplePosition{dim, inPart.outer, inPart.inner};
    if (!place || !isUniform(whole, place->dim))
      return fail(op, "an operand that differs from sample to sample");
  }
  if (!isWhole(place->dim) || dropped.test(place->dim))
    return fail(op, "a slice of samples");
  SamplePosition inPart = {toPart(place->dim), place->outer, place->inner};
  if (!inserts) {
    samples[part] = inPart;
    return success();
  }
  auto found = samples.find(part);
  if (found == samples.end() ? !isUniform(part, inPart.dim)
                             : found->second != inPart)
    return fail(op, "operands with samples at other positions");
  samples[op->getResult(0)] = *place;
  return success();
}

/// The samples are a coordinate that only the data and the output have.
LogicalResult SampleFinder::checkApply(ApplyOp apply) {
  auto found = samples.find(apply.getData());
  if (found == samples.end() || llvm::any_of(apply.getWeights(), [&](Value v) {
        return samples.contains(v);
      }))
    return fail(apply, "weights that differ from sample to sample");
  OperatorOp op = apply.getOperator();
  if (found->second != SamplePosition{0, 1, 1} || !op ||
      // A concrete operator has no size called batch: its coordinates say the
      // same.
      !(op.isConcrete() ? keepsFirstCoordinate(op) : hasBatch(op)))
    return fail(apply, "an operator that uses the number of the sample");
  samples[apply.getResult()] = {0, 1, 1};
  return success();
}

LogicalResult SampleFinder::checkReturn(func::ReturnOp op) {
  for (Value operand : op.getOperands()) {
    auto found = samples.find(operand);
    if (found == samples.end() || found->second != SamplePosition{0, 1, 1})
      return fail(op, "a result without samples first");
  }
  return success();
}

FailureOr<SamplePositions> kas::codegen::findSamples(func::FuncOp function,
                                                     unsigned numData) {
  return SampleFinder(function, numData).run();
}
