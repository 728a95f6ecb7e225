//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds the products of matrices in kernels, as a library takes them: strided
// batches of two matrices, with a bias for each column, a residual and a
// rectifier.
// Axes that continue each other in all tensors that have them are one
// dimension: `out[n, o, h, w] = sum_c x[n, c, h, w] * k[o, c]` has the rows o,
// the columns (h, w), and as (n, h, w) is not at one distance in `out`, the
// batches n.
//
//===----------------------------------------------------------------------===//

#include "LibraryMatmul.h"
#include "ContractionProblem.h"
#include "CostModel.h"
#include "MatrixView.h"
#include "kas/Codegen/GPU/Strategy/Device.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

//===----------------------------------------------------------------------===//
// The matrices
//===----------------------------------------------------------------------===//

namespace {

/// Elements from one element to the next along something, in the tensors of a
/// product.
struct Strides {
  int64_t left = 0, right = 0, result = 0;

  bool operator==(const Strides &other) const {
    return left == other.left && right == other.right && result == other.result;
  }
  Strides operator*(int64_t times) const {
    return {left * times, right * times, result * times};
  }
};

/// Axes of the operator that are one dimension of the product.
struct Dimension {
  int64_t size = 1;
  Strides strides;
};

class ProductFinder {
public:
  explicit ProductFinder(const GPUKernelProblem &problem)
      : coordinates(problem.coordinates), problem(problem) {}

  /// False where there is none.
  bool find();

  Dimension batches, rows, columns, steps;
  /// Tensors of the problem: the data is 0.
  unsigned left = 0, right = 0;

private:
  bool setStrides();
  bool isOneDimension(ArrayRef<unsigned> axes, Dimension &dimension) const;
  /// As `isOneDimension` for the innermost of `axes`; the others become
  /// batches.
  Dimension takeInner(SmallVector<unsigned> axes);
  void swapSides();

  const Coordinates &coordinates;
  const GPUKernelProblem &problem;
  MatrixView view;
  /// By axis.
  SmallVector<Strides> strides;
};

} // namespace

bool ProductFinder::setStrides() {
  auto leftStrides = getStrides(problem, left);
  auto rightStrides = getStrides(problem, right);
  if (!leftStrides || !rightStrides)
    return false;
  strides.resize(coordinates.axes.size());
  int64_t resultStride = 1;
  for (unsigned axis = coordinates.axes.size(); axis-- > 0;) {
    strides[axis].left = (*leftStrides)[axis];
    strides[axis].right = (*rightStrides)[axis];
    if (axis >= coordinates.numOutputs)
      continue;
    strides[axis].result = resultStride;
    resultStride *= coordinates.axes[axis].extent;
  }
  return true;
}

// The outermost axis first. Axes of one value are nowhere.
bool ProductFinder::isOneDimension(ArrayRef<unsigned> axes,
                                   Dimension &dimension) const {
  dimension = {};
  for (unsigned axis : llvm::reverse(axes)) {
    int64_t extent = coordinates.axes[axis].extent;
    if (extent == 1)
      continue;
    if (dimension.size == 1)
      dimension.strides = strides[axis];
    else if (!(strides[axis] == dimension.strides * dimension.size))
      return false;
    dimension.size *= extent;
  }
  return true;
}

Dimension ProductFinder::takeInner(SmallVector<unsigned> axes) {
  Dimension dimension;
  size_t outer = 0;
  while (!isOneDimension(ArrayRef(axes).drop_front(outer), dimension))
    ++outer;
  view.batches.append(axes.begin(), axes.begin() + outer);
  return dimension;
}

void ProductFinder::swapSides() {
  std::swap(left, right);
  std::swap(rows, columns);
  for (Dimension *dimension : {&batches, &rows, &columns, &steps})
    std::swap(dimension->strides.left, dimension->strides.right);
}

bool ProductFinder::find() {
  std::optional<MatrixView> found = MatrixView::get(coordinates);
  // Nothing is read where a guard fails.
  if (!found || !coordinates.guards.empty() || found->left.size() != 1 ||
      found->right.size() != 1)
    return false;
  view = std::move(*found);
  left = view.left.front();
  right = view.right.front();
  if (!setStrides())
    return false;
  rows = takeInner(view.rows);
  columns = takeInner(view.columns);
  // The order of the terms of a sum is free, that of batches is none.
  llvm::sort(view.batches, [&](unsigned a, unsigned b) {
    return std::pair(strides[b].result, a) < std::pair(strides[a].result, b);
  });
  llvm::sort(view.steps, [&](unsigned a, unsigned b) {
    return std::pair(strides[b].left, a) < std::pair(strides[a].left, b);
  });
  if (!isOneDimension(view.batches, batches) ||
      !isOneDimension(view.steps, steps))
    return false;
  // Neighbours in the result are columns.
  if (columns.size == 1 || (columns.strides.result != 1 && rows.size > 1))
    swapSides();
  return columns.size == 1 || columns.strides.result == 1;
}

/// A matrix in argument `argument` with neighbours along its lines or along its
/// steps; nothing where there are none, or where lines overlap.
static std::optional<SmallVector<int64_t>>
getMatrix(int64_t argument, int64_t batchStride, int64_t lines,
          int64_t lineStride, int64_t steps, int64_t stepStride) {
  if (steps == 1 || stepStride == 1) {
    int64_t distance = lines == 1 ? steps : lineStride;
    if (distance < steps)
      return std::nullopt;
    return SmallVector<int64_t>{argument, batchStride, distance, 1};
  }
  int64_t distance = stepStride;
  if ((lines != 1 && lineStride != 1) || distance < lines)
    return std::nullopt;
  return SmallVector<int64_t>{argument, batchStride, 1, distance};
}

//===----------------------------------------------------------------------===//
// The epilogue
//===----------------------------------------------------------------------===//

namespace {

/// What the library adds to a product and makes of the sum.
struct LibraryEpilogue {
  /// Positions among the inputs of the epilogue; -1: none.
  int64_t bias = -1, residual = -1;
  bool isRectified = false;
};

class EpilogueFinder {
public:
  EpilogueFinder(const Epilogue &epilogue, const ProductFinder &product)
      : epilogue(epilogue), product(product) {}

  /// False where the library has none like this.
  bool find();

  LibraryEpilogue result;

private:
  /// Takes all terms of `value`, a sum.
  bool addTerms(Value value);
  bool addArgument(BlockArgument argument);
  bool isBias(const TensorAccess &access) const;

  const Epilogue &epilogue;
  const ProductFinder &product;
  bool hasSum = false;
};

} // namespace

/// `value` before it was made wider.
static Value skipExtensions(Value value) {
  while (auto extension = value.getDefiningOp<arith::ExtFOp>())
    value = extension.getIn();
  return value;
}

/// What a rectifier of the result takes, or null.
static Value getRectified(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return nullptr;
  if (isa<arith::MaximumFOp, arith::MaxNumFOp>(op)) {
    for (unsigned i : {0, 1})
      if (matchPattern(op->getOperand(i), m_AnyZeroFloat()))
        return op->getOperand(1 - i);
    return nullptr;
  }
  auto select = dyn_cast<arith::SelectOp>(op);
  auto compare =
      select ? select.getCondition().getDefiningOp<arith::CmpFOp>() : nullptr;
  using Predicate = arith::CmpFPredicate;
  if (compare &&
      llvm::is_contained(
          {Predicate::OGT, Predicate::OGE, Predicate::UGT, Predicate::UGE},
          compare.getPredicate()) &&
      compare.getLhs() == select.getTrueValue() &&
      matchPattern(compare.getRhs(), m_AnyZeroFloat()) &&
      matchPattern(select.getFalseValue(), m_AnyZeroFloat()))
    return compare.getLhs();
  return nullptr;
}

// Read at the number of its column, whatever the row and the batch.
bool EpilogueFinder::isBias(const TensorAccess &access) const {
  auto type = cast<ShapedType>(access.source.getType());
  if (!access.guards.empty() || product.columns.size == 1)
    return false;
  MLIRContext *context = type.getContext();
  AffineExpr batch = getAffineDimExpr(0, context),
             row = getAffineDimExpr(1, context),
             column = getAffineDimExpr(2, context);
  SmallVector<Interval> ranges;
  for (const Dimension *dimension :
       {&product.batches, &product.rows, &product.columns})
    ranges.push_back({0, dimension->size - 1});
  SmallVector<AffineExpr> coordinates =
      delinearize(batch * product.batches.strides.result +
                      row * product.rows.strides.result + column,
                  epilogue.getShape());
  AffineExpr address = linearize(access.indices, type.getShape(), context)
                           .replaceDims(coordinates);
  return simplifyInRanges(address - column, ranges) == 0;
}

bool EpilogueFinder::addArgument(BlockArgument argument) {
  unsigned number = argument.getArgNumber();
  const TensorAccess &access = epilogue.accesses[number];
  if (epilogue.isSum[number])
    return !std::exchange(hasSum, true);
  // Both are added in the type of the result.
  if (!access.source || getElementTypeOrSelf(access.source.getType()) !=
                            getElementTypeOrSelf(epilogue.op->getResult(0)))
    return false;
  int64_t position = std::distance(epilogue.inputs.begin(),
                                   llvm::find(epilogue.inputs, access.source));
  // Of one row both are the same.
  bool isFirstBias = result.bias == -1 && isBias(access);
  if (!isFirstBias && (result.residual != -1 || !epilogue.isWhole[number]))
    return false;
  (isFirstBias ? result.bias : result.residual) = position;
  return true;
}

bool EpilogueFinder::addTerms(Value value) {
  value = skipExtensions(value);
  if (auto argument = dyn_cast<BlockArgument>(value))
    return addArgument(argument);
  auto sum = value.getDefiningOp<arith::AddFOp>();
  return sum && addTerms(sum.getLhs()) && addTerms(sum.getRhs());
}

bool EpilogueFinder::find() {
  linalg::GenericOp op = epilogue.op;
  Operation *yield = op.getBody()->getTerminator();
  Value value = yield->getOperand(0);
  // The library rounds its results, too, after all else.
  if (auto rounding = value.getDefiningOp<arith::TruncFOp>())
    value = rounding.getIn();
  if (Value rectified = getRectified(value)) {
    result.isRectified = true;
    value = rectified;
  }
  return addTerms(value) && hasSum;
}

//===----------------------------------------------------------------------===//
// The product
//===----------------------------------------------------------------------===//

/// What the kernel of `op` computes without its epilogue, and from what.
static std::optional<GPUKernelProblem> getProblem(Operation *op,
                                                  SmallVector<Value> &inputs) {
  if (auto apply = dyn_cast<ApplyOp>(op)) {
    inputs = apply->getOperands();
    return GPUKernelProblem::get(apply.getOperator());
  }
  auto contraction = ContractionProblem::get(cast<linalg::GenericOp>(op));
  if (!contraction)
    return std::nullopt;
  inputs = contraction->inputs;
  return std::move(contraction->problem);
}

static bool isFloat(Type type) {
  return isa<Float32Type, Float16Type, BFloat16Type>(type);
}

/// Of the result of the kernel of `op`.
static Type getResultType(Operation *op,
                          const std::optional<Epilogue> &epilogue) {
  linalg::GenericOp last = epilogue ? epilogue->op : linalg::GenericOp();
  return getElementTypeOrSelf((last ? last.getOperation() : op)->getResult(0));
}

GPUMatmulAttr kas::codegen::getLibraryMatmul(Operation *op,
                                             GPUPrecision precision) {
  SmallVector<Value> inputs;
  std::optional<GPUKernelProblem> problem = getProblem(op, inputs);
  std::optional<Epilogue> epilogue = Epilogue::get(op);
  if (!problem || inputs.size() != 2)
    return nullptr;
  Type type = getElementTypeOrSelf(inputs[0]);
  Type resultType = getResultType(op, epilogue);
  if (!isFloat(type) || getElementTypeOrSelf(inputs[1]) != type ||
      (!resultType.isF32() && resultType != type))
    return nullptr;
  ProductFinder product(*problem);
  if (!product.find())
    return nullptr;
  LibraryEpilogue added;
  if (epilogue) {
    EpilogueFinder finder(*epilogue, product);
    if (!finder.find())
      return nullptr;
    added = finder.result;
  }
  auto left = getMatrix(product.left, product.batches.strides.left,
                        product.rows.size, product.rows.strides.left,
                        product.steps.size, product.steps.strides.left);
  auto right = getMatrix(product.right, product.batches.strides.right,
                         product.columns.size, product.columns.strides.right,
                         product.steps.size, product.steps.strides.right);
  int64_t numInputs = 2;
  auto result = getMatrix(numInputs + (epilogue ? epilogue->inputs.size() : 0),
                          product.batches.strides.result, product.rows.size,
                          product.rows.strides.result, product.columns.size, 1);
  if (!left || !right || !result)
    return nullptr;
  MLIRContext *context = op->getContext();
  auto getArray = [&](ArrayRef<int64_t> entries) {
    return DenseI64ArrayAttr::get(context, entries);
  };
  auto getArgument = [&](int64_t input) {
    return input < 0 ? -1 : numInputs + input;
  };
  int64_t sizes[] = {product.batches.size, product.rows.size,
                     product.columns.size, product.steps.size};
  if (llvm::any_of(sizes, [](int64_t size) { return size > INT32_MAX; }))
    return nullptr;
  return GPUMatmulAttr::get(context, getArray(sizes), getArray(*left),
                            getArray(*right), getArray(*result),
                            getArgument(added.bias),
                            getArgument(added.residual), added.isRectified,
                            // Products of 16-bit numbers are exact.
                            type.isF32() ? precision : GPUPrecision::F32);
}

//===----------------------------------------------------------------------===//
// Cycles
//===----------------------------------------------------------------------===//

/// Products that a processor begins per cycle. Sources: NVIDIA, "A100 Tensor
/// Core GPU Architecture", 2020, and "H100 Tensor Core GPU Architecture", 2022.
static double getProductsPerCycle(GPUMatmulAttr product, GPUDeviceAttr device,
                                  int64_t factorBytes) {
  bool isFull = factorBytes == 4 && product.getPrecision() == GPUPrecision::F32;
  if (isFull || !hasMatrixInstructions(device))
    return 128;
  double halves = hasMatrixStores(device) ? 2048 : 1024;
  bool isTF32 =
      factorBytes == 4 && product.getPrecision() == GPUPrecision::TF32;
  return isTF32 ? halves / 2 : halves;
}

// Fitted to the times of cuBLAS for six products in three precisions on an H200
// (research/reports/gpu.md), in a CUDA graph: 0.82 to 1.31 of them, but 0.61
// for 64x64x64 in tf32. Both sides are taken to need the same launch.
double kas::codegen::getLibraryCycles(GPUMatmulAttr product,
                                      GPUDeviceAttr device, int64_t factorBytes,
                                      int64_t resultBytes) {
  auto getSize = [&](unsigned i) {
    return static_cast<double>(product.getSizes()[i]);
  };
  double batches = getSize(0), rows = getSize(1), columns = getSize(2),
         steps = getSize(3);
  auto processors = static_cast<double>(device.getProcessors());
  double products = batches * rows * columns * steps /
                    getProductsPerCycle(product, device, factorBytes);
  double bytes =
      batches * ((rows + columns) * steps * static_cast<double>(factorBytes) +
                 rows * columns * static_cast<double>(resultBytes));
  // 4.3 TB/s at 1.755 GHz; 0.85 of the products of the data sheet.
  return CostModel::launchCycles +
         (products / 0.85 + bytes / 18.6) / processors;
}

bool kas::codegen::isLibraryFaster(GPUMatmulAttr product, Operation *op,
                                   GPUDeviceAttr device, double cycles) {
  auto getBytes = [](Type type) -> int64_t {
    return type.getIntOrFloatBitWidth() / 8;
  };
  return getLibraryCycles(
             product, device, getBytes(getElementTypeOrSelf(op->getOperand(0))),
             getBytes(getResultType(op, Epilogue::get(op)))) < cycles;
}
