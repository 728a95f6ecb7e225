//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Linear operators as lists of products, and the least error with which one can
// imitate another on random data, by least squares.
//
// With all weights but one fixed, a linear operator is a linear function of
// that weight, and the best weight is the solution of a linear least-squares
// problem. With several weights these problems are solved alternately
// (alternating least squares), from several random starts, because the joint
// problem has local minima. An error of 0 means that the operator can compute
// everything that the other one does.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Evaluators/Imitation.h"
#include "kas/Dialect/Kas/Analysis/Coordinates.h"
#include "kas/Support/Random.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace kas;
using namespace kas::search;
using llvm::createStringError;
using llvm::Expected;

//===----------------------------------------------------------------------===//
// An operator as a list of products
//===----------------------------------------------------------------------===//

namespace {

/// Makes a list point by point. `add` is called for each product of an output
/// point, then `finishPoint`. Points come in row-major order.
class ProductListBuilder {
public:
  ProductListBuilder(llvm::ArrayRef<int64_t> dataShape,
                     llvm::ArrayRef<llvm::SmallVector<int64_t>> weightShapes)
      : dataShape(dataShape), weightShapes(weightShapes) {
    // Sizes are products over the dimensions; a scalar has one element.
    list.dataSize = llvm::product_of(dataShape);
    for (llvm::ArrayRef<int64_t> shape : weightShapes)
      list.weightSizes.push_back(llvm::product_of(shape));
    // A factor of one element, so that an operator without weights can still be
    // scaled to fit.
    if (weightShapes.empty())
      list.weightSizes.push_back(1);
    // All offsets below are within the sizes that `checkSize` allows.
    list.weights.resize(list.weightSizes.size());
  }

  /// Adds a product; the indices are `getData(dimension)` and
  /// `getWeight(weight, dimension)`. `getData(dimension)` gives the position
  /// along a dimension of the data.
  template <typename Data, typename Weight>
  void add(Data getData, Weight getWeight) {
    list.data.push_back(getOffset(dataShape, getData));
    for (auto [weight, shape] : llvm::enumerate(weightShapes))
      list.weights[weight].push_back(getOffset(
          shape, [&](size_t index) { return getWeight(weight, index); }));
    if (weightShapes.empty())
      list.weights.front().push_back(0);
  }
  void finishPoint() { list.begins.push_back(list.data.size()); }
  ProductList take() { return std::move(list); }

private:
  /// Row-major: the last dimension has stride 1.
  template <typename Index>
  static uint32_t getOffset(llvm::ArrayRef<int64_t> shape, Index getIndex) {
    int64_t offset = 0;
    for (auto [dimension, extent] : llvm::enumerate(shape))
      offset = offset * extent + getIndex(dimension);
    return static_cast<uint32_t>(offset);
  }

  llvm::ArrayRef<int64_t> dataShape;
  llvm::ArrayRef<llvm::SmallVector<int64_t>> weightShapes;
  ProductList list;
};

/// The values of some loops, the last one the fastest. Counting up costs no
/// divisions, unlike decoding each number.
class Odometer {
public:
  explicit Odometer(llvm::ArrayRef<int64_t> extents)
      : extents(extents), values(extents.size()) {}
  llvm::ArrayRef<int64_t> getValues() const { return values; }
  void next() {
    for (size_t loop = values.size(); loop-- > 0;) {
      // A carry goes to the loop before; the last carry wraps to all zeros.
      if (++values[loop] < extents[loop])
        return;
      values[loop] = 0;
    }
  }

private:
  llvm::ArrayRef<int64_t> extents;
  llvm::SmallVector<int64_t, 16> values;
};

} // namespace

/// Loops are those of outputs and reductions; their product is the number of
/// products. Saturates, as products of extents may exceed 64 bits.
static llvm::Error checkSize(llvm::ArrayRef<int64_t> loops,
                             llvm::ArrayRef<int64_t> dataShape) {
  int64_t most = 1;
  for (llvm::ArrayRef<int64_t> extents : {loops, dataShape}) {
    int64_t product = 1;
    for (int64_t extent : extents)
      product = llvm::SaturatingMultiply<uint64_t>(product, extent) > INT32_MAX
                    ? INT32_MAX
                    : product * extent;
    // Either may be the largest: a strided operator reads few of its data.
    most = std::max(most, product);
  }
  if (most <= maxProducts)
    return llvm::Error::success();
  return createStringError(
      "requires a binding with at most %lld products, got more",
      static_cast<long long>(maxProducts));
}

/// Values of an affine expression over the loops. Symbols do not occur: the
/// operator is concrete.
static int64_t evaluateExpr(mlir::AffineExpr expr,
                            llvm::ArrayRef<int64_t> dimensions) {
  if (auto dim = mlir::dyn_cast<mlir::AffineDimExpr>(expr))
    return dimensions[dim.getPosition()];
  if (auto constant = mlir::dyn_cast<mlir::AffineConstantExpr>(expr))
    return constant.getValue();
  auto binary = mlir::cast<mlir::AffineBinaryOpExpr>(expr);
  int64_t lhs = evaluateExpr(binary.getLHS(), dimensions);
  int64_t rhs = evaluateExpr(binary.getRHS(), dimensions);
  switch (expr.getKind()) {
  case mlir::AffineExprKind::Add:
    return lhs + rhs;
  case mlir::AffineExprKind::Mul:
    return lhs * rhs;
  case mlir::AffineExprKind::FloorDiv:
    // Floor, not truncation: shifted positions may be negative.
    return llvm::divideFloorSigned(lhs, rhs);
  case mlir::AffineExprKind::CeilDiv:
    return llvm::divideCeilSigned(lhs, rhs);
  // Mod, the last kind there is; never negative for a positive divisor.
  default:
    return lhs - llvm::divideFloorSigned(lhs, rhs) * rhs;
  }
}

/// By the closed forms of coordinates (`getCoordinates`): each weight and data
/// index is an affine expression of the loops.
Expected<ProductList> kas::search::getProducts(OperatorOp op) {
  Coordinates coordinates = getCoordinates(op);
  if (coordinates.hasMax())
    return createStringError("requires an operator without max, got @" +
                             op.getSymName());
  auto toShape = [](llvm::ArrayRef<SizeAttr> sizes) {
    return llvm::map_to_vector(
        sizes, [](SizeAttr size) { return *size.getConstantValue(); });
  };
  llvm::SmallVector<int64_t> dataShape = toShape(op.getDataSizes()), loops;
  llvm::SmallVector<llvm::SmallVector<int64_t>> weightShapes =
      llvm::map_to_vector(op.getWeightSizes(), toShape);
  // Outputs are the outer loops, reductions the inner ones: each point is a run
  // of `numReduced` iterations.
  int64_t numReduced = 1;
  for (auto [index, axis] : llvm::enumerate(coordinates.axes)) {
    loops.push_back(axis.extent);
    if (index >= coordinates.numOutputs)
      numReduced *= axis.extent;
  }
  if (llvm::Error error = checkSize(loops, dataShape))
    return error;

  ProductListBuilder builder(dataShape, weightShapes);
  Odometer odometer(loops);
  int64_t numPoints = llvm::product_of(loops);
  for (int64_t point = 0; point < numPoints; ++point, odometer.next()) {
    llvm::ArrayRef<int64_t> values = odometer.getValues();
    // A guard fails where a window reaches beyond the data: such a product is
    // zero and is left out.
    bool exists = llvm::all_of(coordinates.guards, [&](const Guard &guard) {
      int64_t value = evaluateExpr(guard.expr, values);
      return value >= 0 && value < guard.extent;
    });
    if (exists)
      builder.add(
          [&](size_t index) {
            return evaluateExpr(coordinates.data[index], values);
          },
          [&](size_t weight, size_t index) {
            return evaluateExpr(coordinates.weights[weight][index], values);
          });
    // The run of an output point is complete.
    if ((point + 1) % numReduced == 0)
      builder.finishPoint();
  }
  return builder.take();
}

/// The value of `coord` where those before it have `values`; nothing where it
/// does not exist. Coordinates are in topological order: operands come before
/// what is made of them. Sizes and `parameter`, the block of a merge or the
/// factor of a stride, are numbers here.
static std::optional<int64_t> evaluateCoord(const GraphCoord &coord,
                                            int64_t size, int64_t parameter,
                                            llvm::ArrayRef<int64_t> sizes,
                                            llvm::ArrayRef<int64_t> values) {
  // Kinds with one operand ignore `second`.
  int64_t first = values[coord.first], second = values[coord.second];
  switch (coord.kind) {
  case CoordKind::MergeQuotient:
    return first / parameter;
  case CoordKind::MergeRemainder:
    return first % parameter;
  case CoordKind::Split:
    // The outer operand times the size of the inner one.
    return first * sizes[coord.second] + second;
  case CoordKind::Shift:
    // Shifts go around; the sum before the last % may be negative.
    return ((first + coord.amount) % size + size) % size;
  // The window is placed by `getLow`: around the base, or ending at it. Outside
  // of the data there is no element.
  case CoordKind::Unfold: {
    int64_t value = first + second - coord.getLow(sizes[coord.second]);
    return value >= 0 && value < size ? std::optional(value) : std::nullopt;
  }
  case CoordKind::Stride:
    return first * parameter;
  case CoordKind::Output:
  case CoordKind::Reduce:
    break;
  }
  llvm_unreachable("loops have their values already");
}

/// The same list without building IR: the graph is evaluated coordinate by
/// coordinate. Must agree with the other overload.
Expected<ProductList> kas::search::getProducts(const SearchProblem &problem,
                                               const OperatorGraph &graph,
                                               const Binding &binding) {
  llvm::SmallVector<int64_t, 16> sizes, parameters, loops;
  llvm::SmallVector<unsigned, 16> loopCoords;
  int64_t numReduced = 1;
  // The size of each coordinate, its parameter, and which of them are loops.
  // Outputs and reductions come first in a graph.
  for (auto [index, coord] : llvm::enumerate(graph.coords)) {
    sizes.push_back(coord.size.evaluate(binding).value_or(0));
    parameters.push_back(coord.parameter.evaluate(binding).value_or(0));
    if (coord.kind != CoordKind::Output && coord.kind != CoordKind::Reduce)
      continue;
    loopCoords.push_back(index);
    loops.push_back(sizes.back());
    if (coord.kind == CoordKind::Reduce)
      numReduced *= sizes.back();
  }
  // `evaluate` has given nothing for a size, or the size is a zero.
  if (llvm::is_contained(sizes, 0))
    return createStringError("a size is no integer");
  auto toShape = [&](llvm::ArrayRef<unsigned> coords) {
    return llvm::map_to_vector(coords,
                               [&](unsigned index) { return sizes[index]; });
  };
  llvm::SmallVector<int64_t> dataShape(toShape(graph.data));
  llvm::SmallVector<llvm::SmallVector<int64_t>> weightShapes;
  for (llvm::ArrayRef<unsigned> weight : graph.weights)
    weightShapes.emplace_back(toShape(weight));
  if (llvm::Error error = checkSize(loops, dataShape))
    return error;

  ProductListBuilder builder(dataShape, weightShapes);
  Odometer odometer(loops);
  llvm::SmallVector<int64_t, 16> values(graph.coords.size());
  int64_t numPoints = llvm::product_of(loops);
  for (int64_t point = 0; point < numPoints; ++point, odometer.next()) {
    for (auto [coord, value] :
         llvm::zip_equal(loopCoords, odometer.getValues()))
      values[coord] = value;
    bool exists = true;
    // Loops have their values; the rest follows in order. A coordinate that
    // does not exist ends the product.
    for (size_t index = loopCoords.size();
         exists && index < graph.coords.size(); ++index) {
      std::optional<int64_t> value = evaluateCoord(
          graph.coords[index], sizes[index], parameters[index], sizes, values);
      exists = value.has_value();
      // A value for those after it, which are not looked at.
      values[index] = value.value_or(0);
    }
    if (exists)
      builder.add([&](size_t index) { return values[graph.data[index]]; },
                  [&](size_t weight, size_t index) {
                    return values[graph.weights[weight][index]];
                  });
    if ((point + 1) % numReduced == 0)
      builder.finishPoint();
  }
  return builder.take();
}

//===----------------------------------------------------------------------===//
// Samples
//===----------------------------------------------------------------------===//

namespace {
using Weights = std::vector<std::vector<double>>;
} // namespace

/// By the position in a stream with random access, so weights do not depend on
/// the order in which they are drawn.
static Weights getRandomWeights(const ProductList &products, uint64_t seed) {
  RandomStream random(seed, "weights");
  Weights weights;
  uint64_t draw = 0;
  for (uint32_t size : products.weightSizes)
    for (std::vector<double> &weight = weights.emplace_back();
         weight.size() < size;)
      weight.push_back(random.normal(draw++));
  return weights;
}

/// The product of a term's factors but for one weight. With `except` = the
/// number of weights it is the product itself. This is the innermost function:
/// it runs once for each product, sample and sweep.
static double getFactor(const ProductList &products, size_t product,
                        const float *data, const Weights &weights,
                        size_t except) {
  double factor = data[products.data[product]];
  for (size_t weight = 0; weight < weights.size(); ++weight)
    if (weight != except)
      factor *= weights[weight][products.weights[weight][product]];
  return factor;
}

/// The sum over the products of an output point.
static double getOutput(const ProductList &products, size_t point,
                        const float *data, const Weights &weights) {
  double sum = 0;
  for (size_t product = products.begins[point];
       product < products.begins[point + 1]; ++product)
    sum += getFactor(products, product, data, weights, weights.size());
  return sum;
}

/// The data and the weights have seeds of their own: samples to fit and samples
/// to hold differ in the data but are of the same function.
ImitationSamples ImitationSamples::getRandom(const ProductList &products,
                                             unsigned count, uint64_t seed,
                                             uint64_t weightSeed) {
  RandomStream random(seed, "data");
  Weights weights = getRandomWeights(products, weightSeed);
  ImitationSamples samples;
  samples.count = count;
  samples.data.resize(size_t(count) * products.dataSize);
  for (auto [index, value] : llvm::enumerate(samples.data))
    value = random.normal(index);
  for (unsigned sample = 0; sample < count; ++sample)
    // Stored as f32 to halve the memory; the sums are in f64.
    for (size_t point = 0; point < products.getNumPoints(); ++point)
      samples.outputs.push_back(static_cast<float>(getOutput(
          products, point, &samples.data[size_t(sample) * products.dataSize],
          weights)));
  return samples;
}

//===----------------------------------------------------------------------===//
// Least squares
//===----------------------------------------------------------------------===//

/// Solves the symmetric positive definite `matrix` (row-major, lower half) by
/// Cholesky's decomposition, in place. O(n^3 / 6) multiplications. The factor L
/// overwrites the lower half; then two triangular solutions overwrite `rhs`.
static void solve(std::vector<double> &matrix, std::vector<double> &rhs) {
  size_t n = rhs.size();
  for (size_t j = 0; j < n; ++j) {
    double *rowJ = &matrix[j * n];
    for (size_t k = 0; k < j; ++k)
      rowJ[j] -= rowJ[k] * rowJ[k];
    // Rounding may make a pivot slightly negative; a tiny one stands for a
    // direction that the equations do not determine.
    rowJ[j] = std::sqrt(std::max(rowJ[j], 1e-12));
    for (size_t i = j + 1; i < n; ++i) {
      double *rowI = &matrix[i * n];
      double sum = rowI[j];
      for (size_t k = 0; k < j; ++k)
        sum -= rowI[k] * rowJ[k];
      rowI[j] = sum / rowJ[j];
    }
  }
  // L y = rhs, from the first row on.
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < i; ++k)
      rhs[i] -= matrix[i * n + k] * rhs[k];
    rhs[i] /= matrix[i * n + i];
  }
  // The transpose of L times x = y, from the last row on.
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k)
      rhs[i] -= matrix[k * n + i] * rhs[k];
    rhs[i] /= matrix[i * n + i];
  }
}

/// Fits one weight to the outputs with the others fixed. Accumulates the normal
/// equations A^T A x = A^T b over all points of all samples: a row of A has,
/// for each element of the weight, the sum of the products that it is
/// multiplied with. Rows are sparse, so only the elements in use are visited.
static void fitWeight(const ProductList &products,
                      const ImitationSamples &samples, size_t which,
                      double ridge, Weights &weights) {
  size_t n = products.weightSizes[which];
  // n * n doubles: `maxFittedElements` keeps this to 128 MiB.
  std::vector<double> matrix(n * n), rhs(n), row(n);
  // The elements with a nonzero entry in this row, and marks of them.
  std::vector<uint32_t> used;
  std::vector<bool> isUsed(n);
  size_t numPoints = products.getNumPoints();
  for (unsigned sample = 0; sample < samples.count; ++sample)
    for (size_t point = 0; point < numPoints; ++point) {
      const float *data = &samples.data[size_t(sample) * products.dataSize];
      for (size_t product = products.begins[point];
           product < products.begins[point + 1]; ++product) {
        uint32_t element = products.weights[which][product];
        if (!isUsed[element])
          used.push_back(element);
        isUsed[element] = true;
        row[element] += getFactor(products, product, data, weights, which);
      }
      // One equation of the system.
      double output = samples.outputs[sample * numPoints + point];
      for (uint32_t i : used) {
        rhs[i] += row[i] * output;
        for (uint32_t j : used)
          // The lower half is enough.
          if (j <= i)
            matrix[i * n + j] += row[i] * row[j];
      }
      // Clears the row by what was used, not all of it.
      for (uint32_t i : used) {
        row[i] = 0;
        isUsed[i] = false;
      }
      used.clear();
    }
  // The ridge is relative to the mean of the diagonal, so it does not depend on
  // the scale of the data; the absolute part is for a weight that nothing
  // depends on.
  double trace = 0;
  for (size_t i = 0; i < n; ++i)
    trace += matrix[i * n + i];
  for (size_t i = 0; i < n; ++i)
    matrix[i * n + i] += ridge * trace / static_cast<double>(n) + 1e-9;
  solve(matrix, rhs);
  weights[which] = std::move(rhs);
}

/// 1 - R^2: the squared error over the variance around the mean.
static double getError(const ProductList &products,
                       const ImitationSamples &samples,
                       const Weights &weights) {
  double error = 0, sum = 0, squares = 0;
  size_t numPoints = products.getNumPoints();
  for (unsigned sample = 0; sample < samples.count; ++sample)
    for (size_t point = 0; point < numPoints; ++point) {
      double value =
          getOutput(products, point,
                    &samples.data[size_t(sample) * products.dataSize], weights);
      double output = samples.outputs[sample * numPoints + point];
      error += (value - output) * (value - output);
      sum += output;
      squares += output * output;
    }
  double variance =
      squares - sum * sum / static_cast<double>(samples.outputs.size());
  // Not more than the error of the mean: a fit that fails elsewhere says no
  // less than none. A constant output has nothing to explain: an error of 1, as
  // for no fit.
  return variance > 0 ? std::min(error / variance, 1.0) : 1.0;
}

/// The weights are chosen by the fitted samples and evaluated by the held ones,
/// so noise that is fitted does not count as success.
double kas::search::getImitationError(const ProductList &products,
                                      const ImitationSamples &fitted,
                                      const ImitationSamples &held,
                                      const ImitationOptions &options) {
  // One weight: the problem is convex, and one solution is the optimum.
  bool isLinear = products.weights.size() == 1;
  unsigned sweeps = isLinear ? 1 : options.sweeps;
  unsigned restarts = isLinear ? 1 : options.restarts;
  // Above any error, so the first start is taken.
  double best = 2;
  Weights bestWeights;
  for (unsigned restart = 0; restart < restarts && best > options.tolerance;
       ++restart) {
    Weights weights = getRandomWeights(products, restart);
    double error = 2;
    for (unsigned sweep = 0; sweep < sweeps; ++sweep) {
      for (size_t which = 0; which < weights.size(); ++which)
        fitWeight(products, fitted, which, options.ridge, weights);
      double last = error;
      error = getError(products, fitted, weights);
      // Converged: exact, or the last sweep gained less than the share
      // `progress`. The first sweep always compares with 2.
      if (error <= options.tolerance || error > (1 - options.progress) * last)
        break;
    }
    if (error < best) {
      best = error;
      bestWeights = std::move(weights);
    }
  }
  return getError(products, held, bestWeights);
}
