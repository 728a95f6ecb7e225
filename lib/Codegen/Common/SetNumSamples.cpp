//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Changes the number of samples of a function that is known to compute them
// independently (PerSample.cpp).
// Types of tensors with samples get the new size; tensors that are the same for
// all samples are cut along that dimension, by making them again smaller where
// that is free (fills, broadcasts), else by a slice. Operators whose first size
// is the batch are cloned.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/Common/PerSample.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace kas;
using namespace kas::codegen;

namespace {

/// Visits operations in order; when it comes to one, its operands have the new
/// size already.
class SampleResizer {
public:
  SampleResizer(func::FuncOp function, const SamplePositions &samples,
                int64_t size)
      : samples(samples), size(size), symbolTable(getModule(function)) {}

  void resizeArgument(BlockArgument argument) { resizeType(argument); }
  void resizeOp(Operation *op);

private:
  static Operation *getModule(func::FuncOp function) {
    return SymbolTable::getNearestSymbolTable(function->getParentOp());
  }

  /// The new size of the dimension that has the samples.
  int64_t getSize(const SamplePosition &place) const {
    return place.outer * size * place.inner;
  }
  /// Gives a tensor with samples the number of them that is wanted.
  void resizeType(Value value);
  /// Linalg operations take their loops from operands, so only operands without
  /// samples and types of results change.
  void resizeLinalg(linalg::LinalgOp op);
  /// Static sizes are an attribute: the one of the samples is replaced.
  void resizeSlice(OffsetSizeAndStrideOpInterface slice, Value whole,
                   Value part, const llvm::SmallBitVector &dropped);
  /// Lets `apply` call a clone of its operator for the new number.
  void resizeApply(ApplyOp apply);

  /// Cuts an operand that is the same for each sample.
  void cutOperand(OpOperand &operand, int64_t dim, int64_t extent);
  /// `tensor` with the size `extent` along `dim`, along which it is uniform.
  Value cutUniform(Value tensor, int64_t dim, int64_t extent);
  Value cutLinalg(OpBuilder &builder, linalg::LinalgOp op, unsigned result,
                  int64_t dim, int64_t extent);
  Value cutReshape(OpBuilder &builder, Operation *op, int64_t dim,
                   int64_t extent);

  const SamplePositions &samples;
  int64_t size;
  SymbolTable symbolTable;
  /// The operator with the new batch for each one; iterated nowhere, so its
  /// order does not matter.
  DenseMap<Operation *, OperatorOp> resized;
};

} // namespace

/// `type` with another size of dimension `dim`.
static RankedTensorType withSize(Type type, int64_t dim, int64_t extent) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  shape[dim] = extent;
  return tensor.clone(shape);
}

void SampleResizer::resizeType(Value value) {
  SamplePosition place = samples.places.at(value);
  value.setType(withSize(value.getType(), place.dim, getSize(place)));
}

//===----------------------------------------------------------------------===//
// Values that are the same for each sample
//===----------------------------------------------------------------------===//

void SampleResizer::cutOperand(OpOperand &operand, int64_t dim,
                               int64_t extent) {
  operand.set(cutUniform(operand.get(), dim, extent));
}

/// What broadcasts or fills is made smaller, all else is a slice.
Value SampleResizer::cutUniform(Value tensor, int64_t dim, int64_t extent) {
  auto type = cast<RankedTensorType>(tensor.getType());
  // A dimension of size 1 is broadcast by its reader.
  if (type.getDimSize(dim) == extent || type.getDimSize(dim) == 1)
    return tensor;
  OpBuilder builder(tensor.getContext());
  builder.setInsertionPointAfterValue(tensor);
  Location loc = tensor.getLoc();
  RankedTensorType smaller = withSize(type, dim, extent);
  DenseElementsAttr constant;
  if (matchPattern(tensor, m_Constant(&constant)) && constant.isSplat())
    return arith::ConstantOp::create(builder, loc, smaller,
                                     constant.resizeSplat(smaller));
  Operation *op = tensor.getDefiningOp();
  if (isa_and_present<tensor::EmptyOp>(op))
    return tensor::EmptyOp::create(builder, loc, smaller.getShape(),
                                   smaller.getElementType(),
                                   smaller.getEncoding());
  if (auto splat = dyn_cast_or_null<tensor::SplatOp>(op))
    return tensor::SplatOp::create(builder, loc, smaller, splat.getInput());
  if (auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(op))
    if (Value cut =
            cutLinalg(builder, linalgOp,
                      cast<OpResult>(tensor).getResultNumber(), dim, extent))
      return cut;
  if (Value cut = cutReshape(builder, op, dim, extent))
    return cut;
  // The first `extent` elements; all are equal, so any would do.
  SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0)),
      sizes = getAsIndexOpFoldResult(tensor.getContext(), smaller.getShape()),
      strides(type.getRank(), builder.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(builder, loc, smaller, tensor, offsets,
                                        sizes, strides);
}

/// A reshape, whose source is the same along its own dimension; null where it
/// is along several, and for other operations.
Value SampleResizer::cutReshape(OpBuilder &builder, Operation *op, int64_t dim,
                                int64_t extent) {
  if (!isa_and_present<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
    return {};
  bool expands = isa<tensor::ExpandShapeOp>(op);
  auto groups =
      expands ? cast<tensor::ExpandShapeOp>(op).getReassociationIndices()
              : cast<tensor::CollapseShapeOp>(op).getReassociationIndices();
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  auto smaller = withSize(type, dim, extent);
  for (auto [number, group] : llvm::enumerate(groups)) {
    if (!expands) {
      // A group of several dimensions would have to be cut along one of them.
      if (static_cast<int64_t>(number) != dim || group.size() != 1)
        continue;
      Value source = cutUniform(op->getOperand(0), group.front(), extent);
      return tensor::CollapseShapeOp::create(builder, op->getLoc(), smaller,
                                             source, groups);
    }
    if (!llvm::is_contained(group, dim))
      continue;
    // The dimension that is expanded: `extent` times the rest of its group.
    int64_t size = extent;
    for (int64_t other : group)
      size *= other == dim ? 1 : type.getDimSize(other);
    Value source =
        cutUniform(op->getOperand(0), static_cast<int64_t>(number), size);
    return tensor::ExpandShapeOp::create(builder, op->getLoc(), smaller, source,
                                         groups);
  }
  return {};
}

/// A fill or a broadcast of one result; null for others.
Value SampleResizer::cutLinalg(OpBuilder &builder, linalg::LinalgOp op,
                               unsigned result, int64_t dim, int64_t extent) {
  auto loop = dyn_cast<AffineDimExpr>(
      op.getMatchingIndexingMap(op.getDpsInitOperand(result)).getResult(dim));
  if (op->getNumResults() != 1 || !loop || op.hasIndexSemantics())
    return {};
  // By operand: one value may be read by several maps.
  SmallVector<Value> operands(op->getOperands());
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<RankedTensorType>(operand.get().getType()))
      continue;
    for (auto [position, index] :
         llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults()))
      if (index == loop)
        operands[operand.getOperandNumber()] =
            cutUniform(operand.get(), position, extent);
  }
  Operation *clone = builder.clone(*op);
  clone->setOperands(operands);
  clone->getResult(0).setType(
      withSize(op->getResult(0).getType(), dim, extent));
  return clone->getResult(0);
}

//===----------------------------------------------------------------------===//
// What depends on samples
//===----------------------------------------------------------------------===//

void SampleResizer::resizeOp(Operation *op) {
  if (llvm::none_of(op->getResults(), [&](Value result) {
        return samples.places.contains(result);
      }))
    return;
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return resizeLinalg(linalgOp);
  if (auto apply = dyn_cast<ApplyOp>(op))
    return resizeApply(apply);
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return resizeSlice(slice, slice.getSource(), slice.getResult(),
                       slice.getDroppedDims());
  if (auto slice = dyn_cast<tensor::InsertSliceOp>(op)) {
    SamplePosition place = samples.places.at(slice.getResult());
    if (!samples.places.contains(slice.getDest()))
      cutOperand(slice.getDestMutable(), place.dim, getSize(place));
    return resizeSlice(slice, slice.getResult(), slice.getSource(),
                       slice.getDroppedDims());
  }
  for (Value result : op->getResults())
    resizeType(result);
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return expand.setStaticOutputShape(expand.getResultType().getShape());
  // Their types say all.
  if (isa<tensor::CollapseShapeOp, tensor::PadOp, tensor::CastOp>(op))
    return;
  // Elementwise operations and concatenations.
  SamplePosition place = samples.places.at(op->getResult(0));
  for (OpOperand &operand : op->getOpOperands())
    if (isa<RankedTensorType>(operand.get().getType()) &&
        !samples.places.contains(operand.get()))
      cutOperand(operand, place.dim, getSize(place));
}

void SampleResizer::resizeLinalg(linalg::LinalgOp op) {
  AffineExpr loop = getAffineDimExpr(samples.loops.at(op), op->getContext());
  int64_t extent = getSize(samples.places.at(op->getResult(0)));
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<RankedTensorType>(operand.get().getType()) ||
        samples.places.contains(operand.get()))
      continue;
    for (auto [position, index] :
         llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults()))
      if (index == loop)
        cutOperand(operand, position, extent);
  }
  for (Value result : op->getResults())
    resizeType(result);
}

/// `part` is read of `whole` or written to it.
void SampleResizer::resizeSlice(OffsetSizeAndStrideOpInterface slice,
                                Value whole, Value part,
                                const llvm::SmallBitVector &dropped) {
  SamplePosition place = samples.places.at(whole);
  SmallVector<int64_t> sizes(slice.getStaticSizes());
  sizes[place.dim] = getSize(place);
  slice->setAttr("static_sizes",
                 DenseI64ArrayAttr::get(slice->getContext(), sizes));
  resizeType(slice->getResult(0));
  if (samples.places.contains(part))
    return;
  int64_t dim = 0;
  for (int64_t outer = 0; outer < place.dim; ++outer)
    dim += !dropped.test(outer);
  for (OpOperand &operand : slice->getOpOperands())
    if (operand.get() == part)
      cutOperand(operand, dim, getSize(place));
}

/// A concrete operator has the number of samples as its first size.
void SampleResizer::resizeApply(ApplyOp apply) {
  resizeType(apply.getResult());
  OperatorOp op = apply.getOperator();
  if (!op.isConcrete())
    return;
  OperatorOp &smaller = resized[op];
  if (!smaller) {
    // Cloned next to the operator, under a new name: other functions may still
    // call it with the old batch.
    smaller = op.clone();
    auto batch = SizeAttr::getConstant(op.getContext(), size);
    smaller.getOutputs().front().setType(
        CoordType::get(op.getContext(), batch));
    SmallVector<Attribute> sizes(op.getInputSizes().getValue());
    sizes.front() = batch;
    smaller.setInputSizesAttr(ArrayAttr::get(op.getContext(), sizes));
    smaller.setPrivate();
    symbolTable.insert(smaller, std::next(op->getIterator()));
  }
  apply.setCallee(smaller.getSymName());
}

void kas::codegen::setNumSamples(func::FuncOp function,
                                 const SamplePositions &samples, int64_t size) {
  SampleResizer resizer(function, samples, size);
  Block &body = function.getBody().front();
  for (BlockArgument argument : body.getArguments())
    if (samples.places.contains(argument))
      resizer.resizeArgument(argument);
  // What is made smaller comes before what reads it.
  for (Operation &op : llvm::make_early_inc_range(body))
    resizer.resizeOp(&op);
  function.setFunctionType(
      FunctionType::get(function.getContext(), body.getArgumentTypes(),
                        body.getTerminator()->getOperandTypes()));
}
