//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Imitation.h"
#include "kas/Dialect/Kas/Analysis/Coordinates.h"
#include "kas/Support/Random.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <array>
#include <cmath>

using namespace kas;

//===----------------------------------------------------------------------===//
// The layer
//===----------------------------------------------------------------------===//

static constexpr int64_t taps = 3;

ImitatedLayer::ImitatedLayer(int64_t channels, int64_t extent, unsigned samples,
                             uint64_t seed)
    : channels(channels), extent(extent), numSamples(samples) {
  // Output channels are mixtures of few filters, the first the strongest.
  RandomStream mix(seed, "mix"), filters(seed, "filters");
  kernel.resize(channels * channels * taps * taps);
  for (int64_t rank = 0; rank < channels; ++rank) {
    double strength = std::pow(0.75, rank);
    for (int64_t co = 0; co < channels; ++co) {
      double factor = strength * mix.normal(rank * channels + co);
      for (int64_t index = 0; index < channels * taps * taps; ++index) {
        int64_t tap = index % (taps * taps);
        int64_t off = std::abs(tap / taps - 1) + std::abs(tap % taps - 1);
        double value = std::pow(0.7, off) *
                       filters.normal(rank * channels * taps * taps + index);
        kernel[co * channels * taps * taps + index] +=
            static_cast<float>(factor * value);
      }
    }
  }
  fitted = makeSamples(mixBits(seed + 1));
  held = makeSamples(mixBits(seed + 2));
}

ImitatedLayer::Samples ImitatedLayer::makeSamples(uint64_t seed) const {
  RandomStream noise(seed, "noise");
  int64_t points = extent * extent, size = channels * points;
  auto sumAround = [&](auto value, int64_t y, int64_t x) {
    double sum = 0;
    for (int64_t dy = -1; dy <= 1; ++dy)
      for (int64_t dx = -1; dx <= 1; ++dx)
        if (y + dy >= 0 && y + dy < extent && x + dx >= 0 && x + dx < extent)
          sum += value(dy, dx);
    return sum;
  };
  Samples samples;
  samples.data.resize(numSamples * size);
  samples.outputs.resize(numSamples * size);
  for (unsigned sample = 0; sample < numSamples; ++sample) {
    float *data = &samples.data[sample * size];
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t y = 0; y < extent; ++y)
        for (int64_t x = 0; x < extent; ++x) {
          auto at = [&](int64_t channel, int64_t dy, int64_t dx) {
            int64_t index = (channel * extent + y + dy) * extent + x + dx;
            return noise.normal(sample * size + index);
          };
          int64_t next = (c + 1) % channels;
          double blurred = sumAround(
              [&](int64_t dy, int64_t dx) {
                return at(c, dy, dx) + 0.5 * at(next, dy, dx);
              },
              y, x);
          double value = blurred / 3 + at(c, 0, 0);
          data[(c * extent + y) * extent + x] =
              static_cast<float>(std::max(value, 0.0));
        }
    float *outputs = &samples.outputs[sample * size];
    for (int64_t co = 0; co < channels; ++co)
      for (int64_t y = 0; y < extent; ++y)
        for (int64_t x = 0; x < extent; ++x)
          for (int64_t ci = 0; ci < channels; ++ci)
            outputs[(co * extent + y) * extent + x] +=
                static_cast<float>(sumAround(
                    [&](int64_t dy, int64_t dx) {
                      int64_t tap = (dy + 1) * taps + dx + 1;
                      return kernel[(co * channels + ci) * taps * taps + tap] *
                             data[(ci * extent + y + dy) * extent + x + dx];
                    },
                    y, x));
  }
  return samples;
}

//===----------------------------------------------------------------------===//
// An operator as a list of products
//===----------------------------------------------------------------------===//

namespace {

/// One product of an output point: offsets into the data and each weight.
struct Term {
  uint32_t data = 0;
  std::array<uint32_t, 3> weights = {};
};

struct Terms {
  /// By output point.
  std::vector<std::vector<Term>> points;
  llvm::SmallVector<uint32_t, 3> weightSizes;
};

} // namespace

static int64_t evaluate(mlir::AffineExpr expr,
                        llvm::ArrayRef<int64_t> dimensions) {
  if (auto dim = mlir::dyn_cast<mlir::AffineDimExpr>(expr))
    return dimensions[dim.getPosition()];
  if (auto constant = mlir::dyn_cast<mlir::AffineConstantExpr>(expr))
    return constant.getValue();
  auto binary = mlir::cast<mlir::AffineBinaryOpExpr>(expr);
  int64_t lhs = evaluate(binary.getLHS(), dimensions);
  int64_t rhs = evaluate(binary.getRHS(), dimensions);
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

static Terms getTerms(OperatorOp op) {
  Coordinates coordinates = getCoordinates(op);
  auto toShape = [](llvm::ArrayRef<SizeAttr> sizes) {
    return llvm::map_to_vector(
        sizes, [](SizeAttr size) { return *size.getConstantValue(); });
  };
  auto getOffset = [](llvm::ArrayRef<mlir::AffineExpr> exprs,
                      llvm::ArrayRef<int64_t> shape,
                      llvm::ArrayRef<int64_t> values) {
    int64_t offset = 0;
    for (auto [expr, extent] : llvm::zip_equal(exprs, shape))
      offset = offset * extent + evaluate(expr, values);
    return static_cast<uint32_t>(offset);
  };
  llvm::SmallVector<int64_t> dataShape = toShape(op.getDataSizes());
  llvm::SmallVector<llvm::SmallVector<int64_t>> weightShapes;
  Terms terms;
  for (llvm::ArrayRef<SizeAttr> sizes : op.getWeightSizes()) {
    weightShapes.push_back(toShape(sizes));
    int64_t size = 1;
    for (int64_t extent : weightShapes.back())
      size *= extent;
    terms.weightSizes.push_back(size);
  }
  assert(weightShapes.size() <= 3 && "more weights than a term has room for");

  int64_t numPoints = 1, numReduced = 1;
  for (auto [index, axis] : llvm::enumerate(coordinates.axes))
    (index < coordinates.numOutputs ? numPoints : numReduced) *= axis.extent;
  llvm::SmallVector<int64_t> values(coordinates.axes.size());
  terms.points.resize(numPoints);
  for (int64_t point = 0; point < numPoints * numReduced; ++point) {
    int64_t rest = point;
    for (size_t axis = values.size(); axis-- > 0;) {
      values[axis] = rest % coordinates.axes[axis].extent;
      rest /= coordinates.axes[axis].extent;
    }
    bool exists = llvm::all_of(coordinates.guards, [&](const Guard &guard) {
      int64_t value = evaluate(guard.expr, values);
      return value >= 0 && value < guard.extent;
    });
    if (!exists)
      continue;
    Term term;
    term.data = getOffset(coordinates.data, dataShape, values);
    for (size_t weight = 0; weight < weightShapes.size(); ++weight)
      term.weights[weight] =
          getOffset(coordinates.weights[weight], weightShapes[weight], values);
    terms.points[point / numReduced].push_back(term);
  }
  return terms;
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

/// The product of a term's factors but for one weight.
static double getFactor(const Term &term, const float *data,
                        llvm::ArrayRef<std::vector<double>> weights,
                        size_t except) {
  double factor = data[term.data];
  for (size_t weight = 0; weight < weights.size(); ++weight)
    if (weight != except)
      factor *= weights[weight][term.weights[weight]];
  return factor;
}

/// Fits one weight to `outputs` with the others fixed; a slight ridge keeps
/// elements that nothing depends on at zero.
static void fitWeight(const Terms &terms, llvm::ArrayRef<float> data,
                      llvm::ArrayRef<float> outputs, unsigned samples,
                      size_t which,
                      llvm::MutableArrayRef<std::vector<double>> weights) {
  size_t n = terms.weightSizes[which];
  size_t dataSize = data.size() / samples;
  std::vector<double> matrix(n * n), rhs(n), row(n);
  std::vector<uint32_t> used;
  std::vector<bool> isUsed(n);
  for (unsigned sample = 0; sample < samples; ++sample)
    for (auto [point, list] : llvm::enumerate(terms.points)) {
      for (const Term &term : list) {
        uint32_t element = term.weights[which];
        if (!isUsed[element])
          used.push_back(element);
        isUsed[element] = true;
        row[element] +=
            getFactor(term, &data[sample * dataSize], weights, which);
      }
      double output = outputs[sample * terms.points.size() + point];
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
    matrix[i * n + i] += 1e-4 * trace / static_cast<double>(n) + 1e-9;
  solve(matrix, rhs);
  weights[which] = std::move(rhs);
}

static double getShare(const Terms &terms, llvm::ArrayRef<float> data,
                       llvm::ArrayRef<float> outputs, unsigned samples,
                       llvm::ArrayRef<std::vector<double>> weights) {
  size_t dataSize = data.size() / samples;
  double error = 0, sum = 0, squares = 0;
  for (unsigned sample = 0; sample < samples; ++sample)
    for (auto [point, list] : llvm::enumerate(terms.points)) {
      double value = 0;
      for (const Term &term : list)
        value +=
            getFactor(term, &data[sample * dataSize], weights, weights.size());
      double output = outputs[sample * terms.points.size() + point];
      error += (value - output) * (value - output);
      sum += output;
      squares += output * output;
    }
  double variance = squares - sum * sum / static_cast<double>(outputs.size());
  return std::max(0.0, 1 - error / variance);
}

double ImitatedLayer::getExplainedShare(OperatorOp op, unsigned sweeps,
                                        unsigned restarts) const {
  Terms terms = getTerms(op);
  size_t numWeights = terms.weightSizes.size();
  double bestFit = -1, best = 0;
  for (unsigned restart = 0; restart < (numWeights > 1 ? restarts : 1);
       ++restart) {
    std::vector<std::vector<double>> weights(numWeights);
    RandomStream random(restart);
    uint64_t draw = 0;
    for (auto [weight, size] : llvm::zip_equal(weights, terms.weightSizes))
      for (uint32_t index = 0; index < size; ++index)
        weight.push_back(random.normal(draw++));
    for (unsigned sweep = 0; sweep < (numWeights > 1 ? sweeps : 1); ++sweep)
      for (size_t which = 0; which < numWeights; ++which)
        fitWeight(terms, fitted.data, fitted.outputs, numSamples, which,
                  weights);
    double fit =
        getShare(terms, fitted.data, fitted.outputs, numSamples, weights);
    if (fit <= bestFit)
      continue;
    bestFit = fit;
    best = getShare(terms, held.data, held.outputs, numSamples, weights);
  }
  return best;
}
