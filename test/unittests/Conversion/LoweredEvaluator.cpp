//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoweredEvaluator.h"
#include "AffineValue.h"
#include "kas/Reference/Evaluator.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IntegerSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>
#include <memory>

using namespace kas;
using namespace kas::test;
using namespace mlir;

namespace {
using Point = SmallVector<int64_t>;

/// A tensor or a buffer, row-major.
struct Array {
  Point shape;
  std::vector<double> values;

  explicit Array(ArrayRef<int64_t> shape) : shape(shape) {
    int64_t count = 1;
    for (int64_t extent : shape)
      count *= extent;
    values.assign(count, std::numeric_limits<double>::quiet_NaN());
  }

  double *at(ArrayRef<int64_t> indices) {
    int64_t offset = 0;
    for (auto [index, extent] : llvm::zip_equal(indices, shape)) {
      if (index < 0 || index >= extent)
        return nullptr;
      offset = offset * extent + index;
    }
    return &values[offset];
  }
};

/// Calls `visit` with all points of a box, the last dimension fastest.
void forEachPoint(ArrayRef<int64_t> shape,
                  llvm::function_ref<void(ArrayRef<int64_t>)> visit) {
  if (llvm::is_contained(shape, 0))
    return;
  Point point(shape.size(), 0);
  while (true) {
    visit(point);
    size_t dim = shape.size();
    while (dim > 0 && ++point[dim - 1] == shape[dim - 1])
      point[--dim] = 0;
    if (dim == 0)
      return;
  }
}

/// Evaluates functions; indices and flags are numbers, too.
class Evaluator {
public:
  bool failed = false;

  void set(Value value, std::shared_ptr<Array> array) {
    arrays[value] = std::move(array);
  }
  Array &getArray(Value value) { return *arrays.at(value); }

  void run(Block &block) {
    for (Operation &op : block.without_terminator())
      if (!failed)
        run(&op);
  }

private:
  Point getIndices(AffineMap map, ValueRange operands) {
    Point values;
    for (Value operand : operands)
      values.push_back(int64_t(scalars.at(operand)));
    return evaluateMap(map, values);
  }

  static Point evaluateMap(AffineMap map, ArrayRef<int64_t> values) {
    return llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) {
      return getAffineValue(expr, values.take_front(map.getNumDims()),
                            values.drop_front(map.getNumDims()));
    });
  }

  double access(Array &array, ArrayRef<int64_t> indices) {
    if (double *element = array.at(indices))
      return *element;
    failed = true;
    return 0;
  }

  Array &create(Value value) {
    auto shape = cast<ShapedType>(value.getType()).getShape();
    return *(arrays[value] = std::make_shared<Array>(shape));
  }

  void copyScalars(ValueRange from, ValueRange to) {
    SmallVector<double> values;
    for (Value value : from)
      values.push_back(scalars.at(value));
    for (auto [value, target] : llvm::zip_equal(values, to))
      scalars[target] = value;
  }

  void run(Operation *op) {
    TypeSwitch<Operation *>(op)
        .Case([&](arith::ConstantOp constant) { runConstant(constant); })
        .Case<arith::AddFOp, arith::MulFOp, arith::DivFOp, arith::MaximumFOp,
              arith::OrIOp>([&](auto binary) {
          scalars[binary.getResult()] = combine(op, scalars.at(binary.getLhs()),
                                                scalars.at(binary.getRhs()));
        })
        .Case<arith::ExtFOp, arith::TruncFOp>([&](Operation *cast) {
          copyScalars(cast->getOperands(), cast->getResults());
        })
        .Case([&](arith::SelectOp select) {
          scalars[select.getResult()] = scalars.at(
              scalars.at(select.getCondition()) != 0 ? select.getTrueValue()
                                                     : select.getFalseValue());
        })
        .Case([&](affine::AffineForOp loop) { runLoop(loop); })
        .Case([&](affine::AffineIfOp branch) { runBranch(branch); })
        .Case([&](affine::AffineLoadOp load) {
          scalars[load.getResult()] =
              access(getArray(load.getMemRef()),
                     getIndices(load.getAffineMap(), load.getMapOperands()));
        })
        .Case([&](affine::AffineStoreOp store) {
          double *element =
              getArray(store.getMemRef())
                  .at(getIndices(store.getAffineMap(), store.getMapOperands()));
          failed |= !element;
          if (element)
            *element = scalars.at(store.getValueToStore());
        })
        .Case<bufferization::ToBufferOp, bufferization::ToTensorOp>(
            [&](Operation *view) {
              arrays[view->getResult(0)] = arrays.at(view->getOperand(0));
            })
        .Case<memref::AllocOp, tensor::EmptyOp>(
            [&](Operation *empty) { create(empty->getResult(0)); })
        .Case([&](tensor::PadOp pad) { runPad(pad); })
        .Case<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(
            [&](auto reshape) {
              create(reshape.getResult()).values =
                  getArray(reshape.getSrc()).values;
            })
        .Case([&](tensor::ExtractSliceOp slice) {
          Array &result = create(slice.getResult());
          copySlice(slice.getStaticOffsets(), slice.getStaticStrides(), result,
                    getArray(slice.getSource()), /*insert=*/false);
        })
        .Case([&](tensor::InsertSliceOp insert) {
          create(insert.getResult()).values = getArray(insert.getDest()).values;
          copySlice(insert.getStaticOffsets(), insert.getStaticStrides(),
                    getArray(insert.getSource()), getArray(insert.getResult()),
                    /*insert=*/true);
        })
        .Case([&](linalg::LinalgOp structured) { runStructured(structured); })
        .Case([&](ApplyOp apply) { runApply(apply); })
        .Default([&](Operation *unknown) {
          llvm::report_fatal_error("the test cannot evaluate " +
                                   unknown->getName().getStringRef());
        });
  }

  void runConstant(arith::ConstantOp constant) {
    Value result = constant.getResult();
    TypeSwitch<Attribute>(constant.getValue())
        .Case([&](FloatAttr number) {
          scalars[result] = number.getValueAsDouble();
        })
        .Case([&](IntegerAttr number) {
          scalars[result] = double(number.getValue().getZExtValue());
        })
        .Case([&](DenseFPElementsAttr numbers) {
          std::vector<double> &values = create(result).values;
          for (auto [value, number] :
               llvm::zip_equal(values, numbers.getValues<FloatAttr>()))
            value = number.getValueAsDouble();
        });
  }

  static double combine(Operation *op, double left, double right) {
    if (isa<arith::AddFOp>(op))
      return left + right;
    if (isa<arith::MulFOp>(op))
      return left * right;
    if (isa<arith::DivFOp>(op))
      return left / right;
    if (isa<arith::OrIOp>(op))
      return left != 0 || right != 0;
    return std::isnan(left) || std::isnan(right) ? left + right
                                                 : std::max(left, right);
  }

  void runLoop(affine::AffineForOp loop) {
    copyScalars(loop.getInits(), loop.getRegionIterArgs());
    for (int64_t i = loop.getConstantLowerBound(),
                 end = loop.getConstantUpperBound();
         i < end && !failed; i += loop.getStepAsInt()) {
      scalars[loop.getInductionVar()] = double(i);
      run(*loop.getBody());
      if (!failed)
        copyScalars(loop.getBody()->getTerminator()->getOperands(),
                    loop.getRegionIterArgs());
    }
    copyScalars(loop.getRegionIterArgs(), loop.getResults());
  }

  void runBranch(affine::AffineIfOp branch) {
    IntegerSet set = branch.getIntegerSet();
    Point values;
    for (Value operand : branch.getOperands())
      values.push_back(int64_t(scalars.at(operand)));
    bool holds = true;
    for (auto [expr, isEquality] :
         llvm::zip_equal(set.getConstraints(), set.getEqFlags())) {
      int64_t value =
          getAffineValue(expr, ArrayRef(values).take_front(set.getNumDims()),
                         ArrayRef(values).drop_front(set.getNumDims()));
      holds &= isEquality ? value == 0 : value >= 0;
    }
    Block *block = holds ? branch.getThenBlock() : branch.getElseBlock();
    run(*block);
    if (!failed)
      copyScalars(block->getTerminator()->getOperands(), branch.getResults());
  }

  void runPad(tensor::PadOp pad) {
    Array &source = getArray(pad.getSource());
    double fill = scalars.at(pad.getConstantPaddingValue());
    Array &result = create(pad.getResult());
    forEachPoint(result.shape, [&](ArrayRef<int64_t> point) {
      Point from;
      for (auto [index, low] : llvm::zip_equal(point, pad.getStaticLow()))
        from.push_back(index - low);
      double *element = source.at(from);
      *result.at(point) = element ? *element : fill;
    });
  }

  void copySlice(ArrayRef<int64_t> offsets, ArrayRef<int64_t> strides,
                 Array &slice, Array &whole, bool insert) {
    forEachPoint(slice.shape, [&](ArrayRef<int64_t> point) {
      Point place;
      for (auto [index, offset, stride] :
           llvm::zip_equal(point, offsets, strides))
        place.push_back(offset + index * stride);
      double *element = whole.at(place);
      failed |= !element;
      if (element)
        (insert ? *element : *slice.at(point)) =
            insert ? *slice.at(point) : *element;
    });
  }

  void runStructured(linalg::LinalgOp op) {
    OpOperand *init = op.getDpsInitOperand(0);
    Array &result = create(op->getResult(0));
    result.values = getArray(init->get()).values;
    forEachPoint(op.getStaticLoopRanges(), [&](ArrayRef<int64_t> point) {
      if (failed)
        return;
      double *target = nullptr;
      for (OpOperand &operand : op->getOpOperands()) {
        BlockArgument argument = op.getMatchingBlockArgument(&operand);
        if (!isa<TensorType>(operand.get().getType())) {
          scalars[argument] = scalars.at(operand.get());
          continue;
        }
        Point indices = evaluateMap(op.getMatchingIndexingMap(&operand), point);
        Array &array = &operand == init ? result : getArray(operand.get());
        scalars[argument] = access(array, indices);
        if (&operand == init)
          target = array.at(indices);
      }
      if (failed)
        return;
      run(*op.getBlock());
      *target = scalars.at(op.getBlock()->getTerminator()->getOperand(0));
    });
  }

  void runApply(ApplyOp apply) {
    std::vector<std::vector<float>> values;
    std::vector<reference::ReferenceTensor> tensors;
    for (Value operand : apply->getOperands())
      values.emplace_back(getArray(operand).values.begin(),
                          getArray(operand).values.end());
    for (auto [operand, value] : llvm::zip_equal(apply->getOperands(), values))
      tensors.push_back({getArray(operand).shape, value});
    Array &result = create(apply.getResult());
    std::vector<float> output(result.values.size());
    failed |= mlir::failed(reference::evaluateOperator(
        apply.getOperator(), tensors[0], ArrayRef(tensors).drop_front(), output,
        [&] { return apply.emitError(); }));
    result.values.assign(output.begin(), output.end());
  }

  llvm::DenseMap<Value, double> scalars;
  llvm::DenseMap<Value, std::shared_ptr<Array>> arrays;
};
} // namespace

std::optional<std::vector<double>>
kas::test::evaluateLowered(func::FuncOp function,
                           ArrayRef<std::vector<float>> inputs) {
  Evaluator evaluator;
  for (auto [argument, input] :
       llvm::zip_equal(function.getArguments(), inputs)) {
    auto array = std::make_shared<Array>(
        cast<ShapedType>(argument.getType()).getShape());
    array->values.assign(input.begin(), input.end());
    evaluator.set(argument, array);
  }
  Block &body = function.getBody().front();
  evaluator.run(body);
  if (evaluator.failed)
    return std::nullopt;
  return evaluator.getArray(body.getTerminator()->getOperand(0)).values;
}
