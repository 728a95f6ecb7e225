//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PointTable.h"
#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace kas;
using namespace kas::test;
using namespace mlir;

namespace {

using Point = SmallVector<int64_t>;

/// The iteration space of an operator with numbers.
struct Space {
  SmallVector<Value> coordinates;
  SmallVector<int64_t> extents;
  SmallVector<ReduceKind> kinds;

  Space(OperatorOp op, llvm::function_ref<int64_t(SizeAttr)> valueOf) {
    for (Value coordinate : op.getOutputs())
      coordinates.push_back(coordinate);
    for (ReduceOp reduce : getReductions(op)) {
      coordinates.push_back(reduce.getResult());
      kinds.push_back(reduce.getKind());
    }
    for (Value coordinate : coordinates)
      extents.push_back(valueOf(getSize(coordinate)));
  }
};

/// The element at `index`, which must lie inside.
double at(ArrayRef<float> values, ArrayRef<int64_t> shape,
          ArrayRef<int64_t> index) {
  int64_t offset = 0;
  for (auto [extent, i] : llvm::zip_equal(shape, index)) {
    if (i < 0 || i >= extent)
      llvm::report_fatal_error("an access outside of a tensor");
    offset = offset * extent + i;
  }
  return values[offset];
}

/// The product at one point; `indexOf` gives the index of a coordinate.
double multiply(YieldOp yield, const Inputs &inputs,
                llvm::function_ref<int64_t(Value)> indexOf) {
  double product = at(inputs.data, inputs.shapes.data,
                      llvm::map_to_vector(yield.getData(), indexOf));
  for (auto [weight, shape, values] : llvm::zip_equal(
           yield.getWeights(), inputs.shapes.weights, inputs.weights))
    product *= at(values, shape, llvm::map_to_vector(weight, indexOf));
  return product;
}

using Table = std::vector<std::optional<double>>;

/// The table without its last axis, of `extent` entries.
Table reduceLastAxis(const Table &table, int64_t extent, ReduceKind kind) {
  Table result(table.size() / extent);
  for (size_t i = 0; i < result.size(); ++i) {
    std::vector<double> values;
    for (int64_t j = 0; j < extent; ++j)
      if (const std::optional<double> &entry = table[i * extent + j])
        values.push_back(*entry);
    if (values.empty())
      continue;
    double sum = 0;
    for (double value : values)
      sum += value;
    result[i] = kind == ReduceKind::Max
                    ? *std::max_element(values.begin(), values.end())
                    : sum / (kind == ReduceKind::Mean ? extent : 1);
  }
  return result;
}

std::vector<float>
evaluateSpace(const Space &space,
              llvm::function_ref<std::optional<double>(const Point &)> body) {
  Table table;
  Point point(space.extents.size(), 0);
  for (size_t axis = 1; axis > 0;) {
    table.push_back(body(point));
    axis = point.size();
    while (axis > 0 && ++point[axis - 1] == space.extents[axis - 1])
      point[--axis] = 0;
  }
  ArrayRef<int64_t> extents = space.extents;
  for (ReduceKind kind : llvm::reverse(space.kinds)) {
    table = reduceLastAxis(table, extents.back(), kind);
    extents = extents.drop_back();
  }
  std::vector<float> output;
  for (const std::optional<double> &entry : table)
    output.push_back(float(entry.value_or(0)));
  return output;
}

/// The top coordinates of one primitive; false where it clips.
bool step(Operation *op, llvm::function_ref<int64_t(SizeAttr)> valueOf,
          llvm::DenseMap<Value, int64_t> &index) {
  SmallVector<int64_t> bottom;
  for (Value operand : op->getOperands())
    bottom.push_back(index.lookup(operand));
  auto sizeOf = [&](Value coordinate) { return valueOf(getSize(coordinate)); };
  if (auto split = dyn_cast<SplitOp>(op)) {
    index[split.getResult()] = bottom[0] * sizeOf(split.getInner()) + bottom[1];
  } else if (auto merge = dyn_cast<MergeOp>(op)) {
    int64_t block = valueOf(merge.getBlock());
    index[merge.getQuotient()] = bottom[0] / block;
    index[merge.getRemainder()] = bottom[0] - bottom[0] / block * block;
  } else if (auto shift = dyn_cast<ShiftOp>(op)) {
    int64_t size = sizeOf(shift.getCoord());
    index[shift.getResult()] =
        llvm::mod(bottom[0] + int64_t(shift.getAmount()), size);
  } else if (auto unfold = dyn_cast<UnfoldOp>(op)) {
    int64_t top = bottom[0] + bottom[1] - unfold.getLowValue(valueOf);
    index[unfold.getResult()] = top;
    return top >= 0 && top < sizeOf(unfold.getCoord());
  } else if (auto stride = dyn_cast<StrideOp>(op)) {
    index[stride.getResult()] = bottom[0] * valueOf(stride.getFactor());
  } else if (auto share = dyn_cast<ShareOp>(op)) {
    index[share.getData()] = index[share.getWeight()] = bottom[0];
  }
  return true;
}

/// The value of `expr` with `dims` for its dimensions.
int64_t evaluateExpr(AffineExpr expr, ArrayRef<int64_t> dims) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dims[dim.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  int64_t left = evaluateExpr(binary.getLHS(), dims);
  int64_t right = evaluateExpr(binary.getRHS(), dims);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return left + right;
  case AffineExprKind::Mul:
    return left * right;
  case AffineExprKind::Mod:
    return llvm::mod(left, right);
  case AffineExprKind::FloorDiv:
    return llvm::divideFloorSigned(left, right);
  default:
    llvm::report_fatal_error("no such expression is made");
  }
}

} // namespace

std::vector<float> kas::test::tabulate(OperatorOp op, const Binding &binding,
                                       const Inputs &inputs) {
  SymbolSet symbols = op.getSymbolSet();
  auto valueOf = [&](SizeAttr size) {
    return *kas::evaluate(size, symbols, binding);
  };
  Space space(op, valueOf);
  llvm::DenseMap<Value, int64_t> index;
  return evaluateSpace(space, [&](const Point &point) -> std::optional<double> {
    for (auto [coordinate, value] : llvm::zip_equal(space.coordinates, point))
      index[coordinate] = value;
    for (Operation &primitive : op.getBody().front().without_terminator())
      if (!step(&primitive, valueOf, index))
        return std::nullopt;
    return multiply(op.getYield(), inputs,
                    [&](Value coordinate) { return index.lookup(coordinate); });
  });
}

std::vector<float> kas::test::tabulateAffine(OperatorOp concrete,
                                             const Inputs &inputs) {
  Space space(concrete, [](SizeAttr size) { return *size.getConstantValue(); });
  llvm::DenseMap<Value, AffineExpr> expressions;
  for (auto [position, coordinate] : llvm::enumerate(space.coordinates))
    expressions[coordinate] = getAffineDimExpr(position, concrete.getContext());
  SmallVector<std::pair<AffineExpr, int64_t>> guards;
  for (auto primitive : concrete.getBody().getOps<PrimitiveOpInterface>()) {
    if (isa<ReduceOp>(primitive))
      continue;
    SmallVector<AffineExpr> bottoms, tops;
    for (Value operand : primitive->getOperands())
      bottoms.push_back(expressions.lookup(operand));
    AffineExpr guard;
    int64_t extent = 0;
    primitive.getTopExpressions(bottoms, tops, guard, extent);
    if (guard)
      guards.emplace_back(guard, extent);
    for (auto [result, top] : llvm::zip_equal(primitive->getResults(), tops))
      expressions[result] = top;
  }
  return evaluateSpace(space, [&](const Point &point) -> std::optional<double> {
    for (auto [guard, extent] : guards)
      if (int64_t value = evaluateExpr(guard, point);
          value < 0 || value >= extent)
        return std::nullopt;
    return multiply(concrete.getYield(), inputs, [&](Value coordinate) {
      return evaluateExpr(expressions.lookup(coordinate), point);
    });
  });
}
