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

/// Makes a list point by point.
class ProductListBuilder {
public:
  ProductListBuilder(llvm::ArrayRef<int64_t> dataShape,
                     llvm::ArrayRef<llvm::SmallVector<int64_t>> weightShapes)
      : dataShape(dataShape), weightShapes(weightShapes) {
    list.dataSize = llvm::product_of(dataShape);
    for (llvm::ArrayRef<int64_t> shape : weightShapes)
      list.weightSizes.push_back(llvm::product_of(shape));
    if (weightShapes.empty())
      list.weightSizes.push_back(1);
    list.weights.resize(list.weightSizes.size());
  }

  /// Adds a product; the indices are `getData(dimension)` and
  /// `getWeight(weight, dimension)`.
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

/// The values of some loops, the last one the fastest.
class Odometer {
public:
  explicit Odometer(llvm::ArrayRef<int64_t> extents)
      : extents(extents), values(extents.size()) {}
  llvm::ArrayRef<int64_t> getValues() const { return values; }
  void next() {
    for (size_t loop = values.size(); loop-- > 0;) {
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

static llvm::Error checkSize(llvm::ArrayRef<int64_t> loops,
                             llvm::ArrayRef<int64_t> dataShape) {
  int64_t most = 1;
  for (llvm::ArrayRef<int64_t> extents : {loops, dataShape}) {
    int64_t product = 1;
    for (int64_t extent : extents)
      product = llvm::SaturatingMultiply<uint64_t>(product, extent) > INT32_MAX
                    ? INT32_MAX
                    : product * extent;
    most = std::max(most, product);
  }
  if (most <= maxProducts)
    return llvm::Error::success();
  return createStringError(
      "requires a binding with at most %lld products, got more",
      static_cast<long long>(maxProducts));
}

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
    return llvm::divideFloorSigned(lhs, rhs);
  case mlir::AffineExprKind::CeilDiv:
    return llvm::divideCeilSigned(lhs, rhs);
  default:
    return lhs - llvm::divideFloorSigned(lhs, rhs) * rhs;
  }
}

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
    if ((point + 1) % numReduced == 0)
      builder.finishPoint();
  }
  return builder.take();
}

/// The value of `coord` where those before it have `values`; nothing where it
/// does not exist.
static std::optional<int64_t> evaluateCoord(const GraphCoord &coord,
                                            int64_t size, int64_t parameter,
                                            llvm::ArrayRef<int64_t> sizes,
                                            llvm::ArrayRef<int64_t> values) {
  int64_t first = values[coord.first], second = values[coord.second];
  switch (coord.kind) {
  case CoordKind::MergeQuotient:
    return first / parameter;
  case CoordKind::MergeRemainder:
    return first % parameter;
  case CoordKind::Split:
    return first * sizes[coord.second] + second;
  case CoordKind::Shift:
    return ((first + coord.amount) % size + size) % size;
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

Expected<ProductList> kas::search::getProducts(const SearchProblem &problem,
                                               const OperatorGraph &graph,
                                               const Binding &binding) {
  llvm::SmallVector<int64_t, 16> sizes, parameters, loops;
  llvm::SmallVector<unsigned, 16> loopCoords;
  int64_t numReduced = 1;
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
    for (size_t index = loopCoords.size();
         exists && index < graph.coords.size(); ++index) {
      std::optional<int64_t> value = evaluateCoord(
          graph.coords[index], sizes[index], parameters[index], sizes, values);
      exists = value.has_value();
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

/// The product of a term's factors but for one weight.
static double getFactor(const ProductList &products, size_t product,
                        const float *data, const Weights &weights,
                        size_t except) {
  double factor = data[products.data[product]];
  for (size_t weight = 0; weight < weights.size(); ++weight)
    if (weight != except)
      factor *= weights[weight][products.weights[weight][product]];
  return factor;
}

static double getOutput(const ProductList &products, size_t point,
                        const float *data, const Weights &weights) {
  double sum = 0;
  for (size_t product = products.begins[point];
       product < products.begins[point + 1]; ++product)
    sum += getFactor(products, product, data, weights, weights.size());
  return sum;
}

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
/// Cholesky's decomposition, in place.
static void solve(std::vector<double> &matrix, std::vector<double> &rhs) {
  size_t n = rhs.size();
  for (size_t j = 0; j < n; ++j) {
    double *rowJ = &matrix[j * n];
    for (size_t k = 0; k < j; ++k)
      rowJ[j] -= rowJ[k] * rowJ[k];
    rowJ[j] = std::sqrt(std::max(rowJ[j], 1e-12));
    for (size_t i = j + 1; i < n; ++i) {
      double *rowI = &matrix[i * n];
      double sum = rowI[j];
      for (size_t k = 0; k < j; ++k)
        sum -= rowI[k] * rowJ[k];
      rowI[j] = sum / rowJ[j];
    }
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < i; ++k)
      rhs[i] -= matrix[i * n + k] * rhs[k];
    rhs[i] /= matrix[i * n + i];
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k)
      rhs[i] -= matrix[k * n + i] * rhs[k];
    rhs[i] /= matrix[i * n + i];
  }
}

/// Fits one weight to the outputs with the others fixed.
static void fitWeight(const ProductList &products,
                      const ImitationSamples &samples, size_t which,
                      double ridge, Weights &weights) {
  size_t n = products.weightSizes[which];
  std::vector<double> matrix(n * n), rhs(n), row(n);
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
      double output = samples.outputs[sample * numPoints + point];
      for (uint32_t i : used) {
        rhs[i] += row[i] * output;
        for (uint32_t j : used)
          if (j <= i)
            matrix[i * n + j] += row[i] * row[j];
      }
      for (uint32_t i : used) {
        row[i] = 0;
        isUsed[i] = false;
      }
      used.clear();
    }
  double trace = 0;
  for (size_t i = 0; i < n; ++i)
    trace += matrix[i * n + i];
  for (size_t i = 0; i < n; ++i)
    matrix[i * n + i] += ridge * trace / static_cast<double>(n) + 1e-9;
  solve(matrix, rhs);
  weights[which] = std::move(rhs);
}

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
  // less than none.
  return variance > 0 ? std::min(error / variance, 1.0) : 1.0;
}

double kas::search::getImitationError(const ProductList &products,
                                      const ImitationSamples &fitted,
                                      const ImitationSamples &held,
                                      const ImitationOptions &options) {
  bool isLinear = products.weights.size() == 1;
  unsigned sweeps = isLinear ? 1 : options.sweeps;
  unsigned restarts = isLinear ? 1 : options.restarts;
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
