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
#include "CostModel.h"
#include "MatrixView.h"

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
// The product
//===----------------------------------------------------------------------===//

/// Of the dimensions (batch, row, column): where the epilogue finds an element
/// of the result.
static std::optional<LibraryEpilogue>
getEpilogue(const LibraryProblem &problem, const ProductFinder &product) {
  MLIRContext *context = problem.type.getContext();
  AffineExpr batch = getAffineDimExpr(0, context),
             row = getAffineDimExpr(1, context),
             column = getAffineDimExpr(2, context);
  SmallVector<Interval> ranges;
  for (const Dimension *dimension :
       {&product.batches, &product.rows, &product.columns})
    ranges.push_back({0, dimension->size - 1});
  return problem.getEpilogue(batch * product.batches.strides.result +
                                 row * product.rows.strides.result + column,
                             product.columns.size == 1 ? AffineExpr() : column,
                             ranges);
}

GPUMatmulAttr kas::codegen::getLibraryMatmul(const LibraryProblem &problem,
                                             GPUPrecision precision) {
  ProductFinder product(problem.problem);
  if (!product.find())
    return nullptr;
  std::optional<LibraryEpilogue> added = getEpilogue(problem, product);
  if (!added)
    return nullptr;
  auto left = getMatrix(product.left, product.batches.strides.left,
                        product.rows.size, product.rows.strides.left,
                        product.steps.size, product.steps.strides.left);
  auto right = getMatrix(product.right, product.batches.strides.right,
                         product.columns.size, product.columns.strides.right,
                         product.steps.size, product.steps.strides.right);
  auto result = getMatrix(problem.getResultArgument(),
                          product.batches.strides.result, product.rows.size,
                          product.rows.strides.result, product.columns.size, 1);
  if (!left || !right || !result)
    return nullptr;
  MLIRContext *context = problem.type.getContext();
  auto getArray = [&](ArrayRef<int64_t> entries) {
    return DenseI64ArrayAttr::get(context, entries);
  };
  int64_t sizes[] = {product.batches.size, product.rows.size,
                     product.columns.size, product.steps.size};
  if (llvm::any_of(sizes, [](int64_t size) { return size > INT32_MAX; }))
    return nullptr;
  return GPUMatmulAttr::get(context, getArray(sizes), getArray(*left),
                            getArray(*right), getArray(*result), added->bias,
                            added->residual, added->isRectified,
                            problem.getPrecision(precision));
}

//===----------------------------------------------------------------------===//
// Cycles
//===----------------------------------------------------------------------===//

// Fitted to the times of cuBLAS for six products in three precisions on an H200
// (research/reports/gpu.md), in a CUDA graph: 0.82 to 1.31 of them, but 0.61
// for 64x64x64 in tf32. Both sides are taken to need the same launch.
double kas::codegen::getLibraryCycles(GPUMatmulAttr product,
                                      GPUDeviceAttr device,
                                      LibraryBytes bytes) {
  auto getSize = [&](unsigned i) {
    return static_cast<double>(product.getSizes()[i]);
  };
  double batches = getSize(0), rows = getSize(1), columns = getSize(2),
         steps = getSize(3);
  auto processors = static_cast<double>(device.getProcessors());
  double products =
      batches * rows * columns * steps /
      getProductsPerCycle(product.getPrecision(), device, bytes.factor);
  double traffic =
      batches * ((rows + columns) * steps * static_cast<double>(bytes.factor) +
                 rows * columns * static_cast<double>(bytes.result));
  // 0.85 of the products of the data sheet.
  return CostModel::launchCycles +
         (products / 0.85 + traffic / bytesPerCycle) / processors;
}
