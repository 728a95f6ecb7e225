//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Weights as tensor cores multiply them. Kernels for these round factors of f32
// where they copy or read them, in each block that reads a weight and in each
// call. A kernel that runs once for all calls does it before: weights of 16
// bits then take half of the memory, and are copied without registers.
//
//===----------------------------------------------------------------------===//

#include "../Strategy/ContractionProblem.h"
#include "../Strategy/PrepackedValues.h"
#include "kas/Codegen/GPU/Passes.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASGPUROUNDWEIGHTSPASS
#include "kas/Codegen/GPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {

/// Rounds what the kernels of a module read, each tensor once.
class WeightRounder {
public:
  /// Lets a kernel for tensor cores read rounded weights.
  void round(linalg::GenericOp op);

private:
  /// `value` in the type of `precision`, computed before all that reads it.
  Value getRounded(Value value, GPUPrecision precision);
  /// The same of a view, as one of what is rounded.
  Value roundSource(Operation *view, GPUPrecision precision);
  /// What `copy` computes for itself alone, rounded there.
  Value roundInPlace(linalg::GenericOp copy, GPUPrecision precision);
  Value createKernel(Value value, GPUPrecision precision);

  PrepackedValues prepacked;
  llvm::DenseMap<std::pair<Value, unsigned>, Value> rounded;
};

} // namespace

/// What factors are kept in.
static FloatType getFactorType(MLIRContext *context, GPUPrecision precision) {
  switch (precision) {
  case GPUPrecision::F16:
    return Float16Type::get(context);
  case GPUPrecision::BF16:
    return BFloat16Type::get(context);
  default:
    return Float32Type::get(context);
  }
}

/// `cvt.rna.tf32`: 10 bits after the point, to nearest, ties away from zero.
static Value emitTF32(ImplicitLocOpBuilder &b, Value value) {
  Type i32 = b.getI32Type();
  auto constant = [&](uint32_t bits) -> Value {
    return arith::ConstantOp::create(b, b.getIntegerAttr(i32, APInt(32, bits)));
  };
  Value bits = arith::BitcastOp::create(b, i32, value);
  // Half of the last place that is kept; the 13 bits below it are cleared.
  Value sum = arith::AddIOp::create(b, bits, constant(0x1000));
  Value kept = arith::AndIOp::create(b, sum, constant(0xffffe000));
  // The bits of a NaN could become those of infinity or zero.
  Value exponent = arith::AndIOp::create(b, bits, constant(0x7f800000));
  Value isFinite = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, exponent,
                                         constant(0x7f800000));
  return arith::SelectOp::create(
      b, isFinite, arith::BitcastOp::create(b, value.getType(), kept), value);
}

static Value emitRounding(OpBuilder &builder, Location loc, Value value,
                          GPUPrecision precision) {
  ImplicitLocOpBuilder b(loc, builder);
  if (precision == GPUPrecision::TF32)
    return emitTF32(b, value);
  return arith::TruncFOp::create(b, getFactorType(b.getContext(), precision),
                                 value);
}

Value WeightRounder::createKernel(Value value, GPUPrecision precision) {
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  auto type = cast<RankedTensorType>(value.getType());
  Value empty =
      tensor::EmptyOp::create(builder, value.getLoc(), type.getShape(),
                              getFactorType(value.getContext(), precision));
  SmallVector<AffineMap> maps(2,
                              builder.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             builder, value.getLoc(), empty.getType(), value, empty, maps,
             loops,
             [&](OpBuilder &body, Location loc, ValueRange values) {
               linalg::YieldOp::create(
                   body, loc,
                   emitRounding(body, loc, values.front(), precision));
             })
      .getResult(0);
}

Value WeightRounder::roundInPlace(linalg::GenericOp copy,
                                  GPUPrecision precision) {
  OpBuilder builder(copy);
  OpOperand &init = *copy.getDpsInitOperand(0);
  auto type = cast<RankedTensorType>(copy.getResult(0).getType());
  FloatType element = getFactorType(copy.getContext(), precision);
  init.set(tensor::EmptyOp::create(builder, copy.getLoc(), type.getShape(),
                                   element));
  copy.getMatchingBlockArgument(&init).setType(element);
  copy.getResult(0).setType(type.clone(element));
  Operation *yield = copy.getBody()->getTerminator();
  builder.setInsertionPoint(yield);
  yield->setOperand(
      0, emitRounding(builder, copy.getLoc(), yield->getOperand(0), precision));
  // Vectors of the result may be wider now.
  copy->removeAttr(KasGPUDialect::scheduleName);
  return copy.getResult(0);
}

/// A view in which each element of a tensor is once.
static bool isPermutation(Operation *op) {
  return isReshape(op) || isa_and_present<linalg::TransposeOp>(op);
}

Value WeightRounder::roundSource(Operation *view, GPUPrecision precision) {
  Value source = getRounded(view->getOperand(0), precision);
  OpBuilder builder(view);
  auto type = cast<RankedTensorType>(view->getResultTypes()[0])
                  .clone(getElementTypeOrSelf(source));
  if (auto transpose = dyn_cast<linalg::TransposeOp>(view)) {
    Value empty = tensor::EmptyOp::create(
        builder, view->getLoc(), type.getShape(), type.getElementType());
    return linalg::TransposeOp::create(builder, view->getLoc(), source, empty,
                                       transpose.getPermutation())
        ->getResult(0);
  }
  Operation *copy = builder.clone(*view);
  copy->setOperand(0, source);
  copy->getResult(0).setType(type);
  return copy->getResult(0);
}

Value WeightRounder::getRounded(Value value, GPUPrecision precision) {
  std::pair<Value, unsigned> key(value, static_cast<unsigned>(precision));
  if (Value known = rounded.lookup(key))
    return known;
  Value result;
  auto generic = value.getDefiningOp<linalg::GenericOp>();
  // Such as a copy in another order: one kernel does both.
  if (generic && value.hasOneUse() && generic->getNumResults() == 1 &&
      generic.getNumReductionLoops() == 0 &&
      !generic.payloadUsesValueFromOperand(generic.getDpsInitOperand(0)))
    result = roundInPlace(generic, precision);
  else if (isPermutation(value.getDefiningOp()))
    result = roundSource(value.getDefiningOp(), precision);
  else
    result = createKernel(value, precision);
  rounded[key] = result;
  return result;
}

/// The body gets what has fewer bits widened.
static void widenArgument(BlockArgument argument, Type type) {
  if (argument.getType() == type)
    return;
  OpBuilder builder = OpBuilder::atBlockBegin(argument.getOwner());
  Type wide = argument.getType();
  argument.setType(type);
  if (argument.use_empty())
    return;
  auto widened =
      arith::ExtFOp::create(builder, argument.getLoc(), wide, argument);
  argument.replaceAllUsesExcept(widened, widened);
}

void WeightRounder::round(linalg::GenericOp op) {
  auto schedule =
      op->getAttrOfType<GPUScheduleAttr>(KasGPUDialect::scheduleName);
  // A library reads factors as they are, and rounds them itself.
  if (!schedule || schedule.getStrategy() != GPUStrategy::TensorCore ||
      op->hasAttr(KasGPUDialect::libraryName))
    return;
  auto contraction = ContractionProblem::get(op);
  if (!contraction)
    return;
  SmallVector<int64_t> positions;
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get(), source = value;
    while (isPermutation(source.getDefiningOp()))
      source = source.getDefiningOp()->getOperand(0);
    // What other views change is read where it is.
    if (!op.isDpsInput(&operand) ||
        !llvm::is_contained(contraction->inputs, source) ||
        !getElementTypeOrSelf(value).isF32() || !prepacked.contains(value))
      continue;
    value = getRounded(value, schedule.getPrecision());
    operand.set(value);
    widenArgument(op.getMatchingBlockArgument(&operand),
                  getElementTypeOrSelf(value));
    if (schedule.getPrecision() == GPUPrecision::TF32)
      positions.push_back(operand.getOperandNumber());
  }
  if (!positions.empty())
    op->setAttr(KasGPUDialect::roundedName,
                OpBuilder(op).getDenseI64ArrayAttr(positions));
}

namespace {
struct GPURoundWeights
    : kas::codegen::impl::KasGPURoundWeightsPassBase<GPURoundWeights> {
  void runOnOperation() override {
    WeightRounder rounder;
    SmallVector<linalg::GenericOp> kernels;
    getOperation()->walk([&](linalg::GenericOp op) { kernels.push_back(op); });
    for (linalg::GenericOp op : kernels)
      rounder.round(op);
  }
};
} // namespace
