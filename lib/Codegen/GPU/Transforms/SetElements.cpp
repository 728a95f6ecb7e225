//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels that keep their tensors in fewer bits than they compute in: tensors
// of f32 become f16 or bf16, while bodies widen what they read, compute in f32,
// and round once what they store (docs/internals/gpu.md, "Fewer bits"). The
// pass goes through a function in order, so that operands are narrow before
// their users.
//
//===----------------------------------------------------------------------===//

#include "../Strategy/Epilogue.h"
#include "../Strategy/TensorAccess.h"
#include "kas/Codegen/GPU/GPU.h"
#include "kas/Codegen/GPU/Passes.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASGPUSETELEMENTSPASS
#include "kas/Codegen/GPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {

/// Goes through a function from its arguments to its results.
class ElementNarrower {
public:
  ElementNarrower(func::FuncOp function, FloatType element)
      : function(function), element(element), builder(function.getContext()) {}

  LogicalResult narrow();

private:
  /// A tensor of f32, which is to be narrowed. Integers and f64 stay.
  bool isWide(Value value) const {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.getElementType().isF32();
  }
  /// A tensor of the narrow type already.
  bool isNarrow(Value value) const {
    return isa<RankedTensorType>(value.getType()) &&
           getElementTypeOrSelf(value.getType()) == element;
  }
  /// Changes the type in place: all users are visited later and adapt.
  void setNarrow(Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    value.setType(RankedTensorType::get(type.getShape(), element));
  }
  /// The constant `value` in fewer bits, to nearest even; null if it is not of
  /// f32.
  TypedAttr round(TypedAttr value) const;

  /// Adapts one operation to operands that may be narrow.
  LogicalResult narrow(Operation *op);
  void narrowConstant(arith::ConstantOp constant);
  /// Changes a view to narrow elements. Its fill or padding must be a constant,
  /// as nothing on the host can round it.
  LogicalResult narrowView(Operation *view);
  /// Widens what the body reads, and rounds what it yields unless it reduces.
  void narrow(linalg::GenericOp op);
  /// Lets an operator read a narrow tensor, through a kernel that rounds it
  /// where it is not.
  void setOperandNarrow(OpOperand &operand);
  /// What sums begin with is as wide as they are.
  void setInitWide(linalg::GenericOp op, OpOperand &init);
  /// Rounds the result of a reduction, unless an elementwise kernel does.
  void roundResult(linalg::GenericOp op);
  /// A kernel that rounds `value` or widens it.
  Value createConversion(Location loc, Value value, FloatType type);

  func::FuncOp function;
  FloatType element;
  OpBuilder builder;
};

} // namespace

TypedAttr ElementNarrower::round(TypedAttr value) const {
  auto number = dyn_cast_if_present<FloatAttr>(value);
  if (!number || !number.getType().isF32())
    return nullptr;
  // In the compiler as on the device: to nearest, ties to even.
  llvm::APFloat rounded = number.getValue();
  bool losesInfo;
  rounded.convert(element.getFloatSemantics(),
                  llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return FloatAttr::get(element, rounded);
}

Value ElementNarrower::createConversion(Location loc, Value value,
                                        FloatType type) {
  auto from = cast<RankedTensorType>(value.getType());
  Value empty = tensor::EmptyOp::create(builder, loc, from.getShape(), type);
  SmallVector<AffineMap> maps(2,
                              builder.getMultiDimIdentityMap(from.getRank()));
  SmallVector<utils::IteratorType> loops(from.getRank(),
                                         utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             builder, loc, TypeRange(empty.getType()), ValueRange(value),
             ValueRange(empty), maps, loops,
             [&](OpBuilder &body, Location bodyLoc, ValueRange arguments) {
               Value result = type.getWidth() < 32
                                  ? Value(arith::TruncFOp::create(
                                        body, bodyLoc, type, arguments[0]))
                                  : Value(arith::ExtFOp::create(
                                        body, bodyLoc, type, arguments[0]));
               linalg::YieldOp::create(body, bodyLoc, result);
             })
      .getResult(0);
}

void ElementNarrower::narrowConstant(arith::ConstantOp constant) {
  auto values = dyn_cast<DenseFPElementsAttr>(constant.getValue());
  if (!values)
    return;
  auto toBits = [&](const llvm::APFloat &value) {
    llvm::APFloat rounded = value;
    bool losesInfo;
    rounded.convert(element.getFloatSemantics(),
                    llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    return rounded.bitcastToAPInt();
  };
  constant.setValueAttr(cast<TypedAttr>(values.mapValues(element, toBits)));
  setNarrow(constant);
}

/// A view of a narrow tensor becomes one itself, and so does one that fills or
/// leaves undefined.
LogicalResult ElementNarrower::narrowView(Operation *view) {
  builder.setInsertionPoint(view);
  auto toConstant = [&](Value value) -> Value {
    TypedAttr attribute;
    if (!matchPattern(value, m_Constant(&attribute)))
      return Value();
    TypedAttr rounded = round(attribute);
    if (!rounded)
      return Value();
    return arith::ConstantOp::create(builder, view->getLoc(), rounded);
  };
  if (auto fill = dyn_cast<linalg::FillOp>(view)) {
    Value value = toConstant(fill.value());
    if (!value)
      return fill.emitError() << "expected a linalg.fill with a constant for "
                                 "elements of "
                              << element << ", got another";
    auto type = cast<RankedTensorType>(fill.getType(0));
    Value empty = tensor::EmptyOp::create(builder, fill.getLoc(),
                                          type.getShape(), element);
    auto narrowed =
        linalg::FillOp::create(builder, fill.getLoc(), value, empty);
    fill.getResult(0).replaceAllUsesWith(narrowed.getResult(0));
    fill.erase();
    return success();
  }
  // Nothing to round: the first writer decides.
  if (isa<tensor::EmptyOp>(view)) {
    setNarrow(view->getResult(0));
    return success();
  }
  auto setInit = [&](DestinationStyleOpInterface op, Type type) {
    auto shaped = cast<RankedTensorType>(view->getResultTypes()[0]);
    op.setDpsInitOperand(0, tensor::EmptyOp::create(builder, view->getLoc(),
                                                    shaped.getShape(), type));
  };
  // A view of integers or f64 stays, and one of sums that are still in f32,
  // whose init is narrow by now.
  if (!isNarrow(view->getOperand(0))) {
    if (auto op = dyn_cast<DestinationStyleOpInterface>(view);
        op && isWide(view->getOperand(0)))
      setInit(op, getElementTypeOrSelf(view->getResultTypes()[0]));
    return success();
  }
  if (auto pad = dyn_cast<tensor::PadOp>(view)) {
    Value value = pad.getConstantPaddingValue();
    value = value ? toConstant(value) : Value();
    if (!value)
      return pad.emitError() << "expected a tensor.pad with a constant for "
                                "elements of "
                             << element << ", got another";
    auto yield = cast<tensor::YieldOp>(pad.getRegion().front().getTerminator());
    yield->setOperand(0, value);
  } else if (auto destination = dyn_cast<DestinationStyleOpInterface>(view)) {
    setInit(destination, element);
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(view))
      for (BlockArgument argument : linalgOp.getBlock()->getArguments())
        argument.setType(element);
  }
  setNarrow(view->getResult(0));
  return success();
}

/// The body gets what is narrow widened.
static void widenArgument(OpBuilder &builder, BlockArgument argument,
                          FloatType element) {
  argument.setType(element);
  if (argument.use_empty())
    return;
  builder.setInsertionPointToStart(argument.getOwner());
  auto wide = arith::ExtFOp::create(builder, argument.getLoc(),
                                    builder.getF32Type(), argument);
  argument.replaceAllUsesExcept(wide, wide);
}

void ElementNarrower::setInitWide(linalg::GenericOp op, OpOperand &init) {
  if (!isNarrow(init.get()))
    return;
  builder.setInsertionPoint(op);
  Location loc = op.getLoc();
  TensorAccess access = TensorAccess::get(init);
  auto type = cast<RankedTensorType>(init.get().getType());
  // A tensor: a kernel widens it. Otherwise a fill of the same value in f32.
  if (access.source) {
    init.set(createConversion(loc, init.get(), builder.getF32Type()));
    return;
  }
  llvm::APFloat value(0.0f);
  if (auto number = dyn_cast_if_present<FloatAttr>(access.fill)) {
    value = number.getValue();
    bool losesInfo;
    value.convert(llvm::APFloat::IEEEsingle(),
                  llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  }
  Value wide = arith::ConstantOp::create(
      builder, loc, FloatAttr::get(builder.getF32Type(), value));
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                        builder.getF32Type());
  init.set(linalg::FillOp::create(builder, loc, wide, empty).getResult(0));
}

/// Whether a function gives a view of `value`.
static bool isReturnedByView(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return isTensorView(user) &&
           (llvm::any_of(
                user->getUsers(),
                [](Operation *next) { return isa<func::ReturnOp>(next); }) ||
            isReturnedByView(user->getResult(0)));
  });
}

// Before it is stored: what reads it, such as a library, has factors of one
// type. An epilogue rounds what it makes of it, and what rounds for a return
// makes a tensor of a view.
void ElementNarrower::roundResult(linalg::GenericOp op) {
  if (op->getNumResults() != 1 || !isWide(op.getResult(0)) ||
      Epilogue::get(op) || isReturnedByView(op.getResult(0)))
    return;
  builder.setInsertionPointAfter(op);
  Value result = op.getResult(0);
  Value rounded = createConversion(op.getLoc(), result, element);
  result.replaceAllUsesExcept(rounded, rounded.getDefiningOp());
}

void ElementNarrower::narrow(linalg::GenericOp op) {
  for (OpOperand *input : op.getDpsInputOperands())
    if (isNarrow(input->get()))
      widenArgument(builder, op.getMatchingBlockArgument(input), element);
  Operation *yield = op.getBody()->getTerminator();
  for (OpOperand &init : op.getDpsInitsMutable()) {
    OpResult result = op.getTiedOpResult(&init);
    if (!isWide(result))
      continue;
    // Sums stay in f32 until the reduction ends: rounding each partial sum
    // would lose most of them.
    if (op.getNumReductionLoops() != 0) {
      setInitWide(op, init);
      roundResult(op);
      continue;
    }
    // A generic that reads its output without reducing, such as an accumulation
    // in place, gets a narrow one.
    if (!isNarrow(init.get())) {
      builder.setInsertionPoint(op);
      init.set(createConversion(op.getLoc(), init.get(), element));
    }
    widenArgument(builder, op.getMatchingBlockArgument(&init), element);
    OpOperand &value = yield->getOpOperand(result.getResultNumber());
    builder.setInsertionPoint(yield);
    value.set(
        arith::TruncFOp::create(builder, op.getLoc(), element, value.get()));
    setNarrow(result);
  }
}

void ElementNarrower::setOperandNarrow(OpOperand &operand) {
  if (!isWide(operand.get()))
    return;
  builder.setInsertionPoint(operand.getOwner());
  operand.set(
      createConversion(operand.getOwner()->getLoc(), operand.get(), element));
}

LogicalResult ElementNarrower::narrow(Operation *op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (isWide(constant))
      narrowConstant(constant);
    return success();
  }
  if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
    narrow(generic);
    return success();
  }
  if (isTensorView(op))
    return isWide(op->getResult(0)) ? narrowView(op) : success();
  // Operators: kernels read and write in the type of their buffers.
  if (!isa<ApplyOp, func::ReturnOp>(op))
    return success();
  for (OpOperand &operand : op->getOpOperands())
    setOperandNarrow(operand);
  for (Value result : op->getResults())
    if (isWide(result))
      setNarrow(result);
  return success();
}

LogicalResult ElementNarrower::narrow() {
  Block &block = function.getBody().front();
  for (BlockArgument argument : block.getArguments())
    if (isWide(argument))
      setNarrow(argument);
  for (Operation &op : llvm::make_early_inc_range(block))
    if (failed(narrow(&op)))
      return failure();
  function.setType(FunctionType::get(function.getContext(),
                                     block.getArgumentTypes(),
                                     block.getTerminator()->getOperandTypes()));
  return success();
}

namespace {
struct GPUSetElements
    : kas::codegen::impl::KasGPUSetElementsPassBase<GPUSetElements> {
  using KasGPUSetElementsPassBase::KasGPUSetElementsPassBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (elements == GPUElements::F32 || function.isExternal())
      return;
    if (!function.getBody().hasOneBlock()) {
      function.emitError() << "expected a function of one block for elements "
                              "of another type, got several";
      return signalPassFailure();
    }
    FloatType type;
    if (elements == GPUElements::F16)
      type = Float16Type::get(&getContext());
    else
      type = BFloat16Type::get(&getContext());
    if (failed(ElementNarrower(function, type).narrow()))
      signalPassFailure();
  }
};
} // namespace
