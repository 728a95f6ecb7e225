//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The shapes and costs of tensor-level ops, for the types of the dialect and
// for the plain states of the search.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SOLVER_TENSORRULES_H
#define KAS_SOLVER_TENSORRULES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace kas::solver {

/// Dimensions from the first number to the second, which is left out.
using DimRange = std::pair<unsigned, unsigned>;

/// `Domain` has the types
/// - `Size`, with `one()`, `multiply` and `divide`, of sizes that do not fit,
///   too;
/// - `Shape`, with `rank`, `numChannels`, `dims`, and `append`, of a size or of
///   a dimension of another shape;
/// - `Product`, 1 at first, and `add` to one, of a size, a range of a shape or
///   some of its dimensions, which `contains` looks up.
template <typename Domain>
class TensorRules {
public:
  using Size = typename Domain::Size;
  using Shape = typename Domain::Shape;
  using Product = typename Domain::Product;

  /// What an op makes of its operands, and its costs for one sample.
  struct Step {
    Shape shape;
    /// Sizes that are no dimension of a tensor but must be integers as well.
    llvm::SmallVector<Size, 2> implied{};
    /// Floating-point operations are `flopsFactor` times `flops`, parameters
    /// `numWeights` times `weight`.
    unsigned flopsFactor = 0, numWeights = 0;
    Product flops{}, weight{};
  };

  explicit TensorRules(Domain domain) : domain(domain) {}

  Size getProduct(const Shape &x, DimRange range) {
    Size product = domain.one();
    for (unsigned dim = range.first; dim < range.second; ++dim)
      product = domain.multiply(product, x.dims[dim]);
    return product;
  }

  /// The first `kept` channel dimensions, then `channels` in place of the rest.
  Step replaceChannels(const Shape &x, unsigned kept,
                       llvm::ArrayRef<Size> channels) {
    Step step;
    append(step.shape, x, {0, kept});
    for (Size size : channels)
      step.shape.append(size);
    step.shape.numChannels = step.shape.rank;
    append(step.shape, x, {x.numChannels, x.rank});
    return step;
  }

  /// A convolution where there are windows. Products count twice.
  Step fc(const Shape &x, unsigned groups, Size outputs,
          llvm::ArrayRef<Size> windows = {}) {
    Step step = replaceChannels(x, 0, outputs);
    step.implied = {domain.divide(outputs, getProduct(x, {0, groups}))};
    step.numWeights = 1;
    domain.add(step.weight, outputs);
    domain.add(step.weight, x, DimRange(groups, x.numChannels));
    for (Size window : windows)
      domain.add(step.weight, window);
    step.flops = step.weight;
    step.flopsFactor = 2;
    domain.add(step.flops, x, DimRange(x.numChannels, x.rank));
    return step;
  }

  Step group(const Shape &x, unsigned dim, Size factor) {
    Step step;
    append(step.shape, x, {0, dim});
    step.shape.append(factor);
    step.shape.append(domain.divide(x.dims[dim], factor));
    append(step.shape, x, {dim + 1, x.rank});
    step.shape.numChannels = x.numChannels + 1;
    return step;
  }

  Step groupAll(const Shape &x) {
    return replaceChannels(x, 0,
                           {getProduct(x, {0, x.numChannels}), domain.one()});
  }

  Step unfold(const Shape &x, llvm::ArrayRef<Size> windows) {
    return replaceChannels(x, x.numChannels, windows);
  }

  Step shuffle(const Shape &x, unsigned dim, Size factor) {
    return {x, {factor, domain.divide(x.dims[dim], factor)}};
  }

  /// Keeps the shape, with so many operations for each element.
  Step unary(const Shape &x, unsigned factor) {
    Step step{x, {}, factor};
    domain.add(step.flops, x, DimRange(0, x.rank));
    return step;
  }

  template <typename Dims>
  Step scale(const Shape &x, Dims dims) {
    Step step = unary(x, 1);
    step.numWeights = 1;
    domain.add(step.weight, x, dims);
    return step;
  }

  Step norm(const Shape &x) {
    Step step = unary(x, 2);
    // Factor, offset, mean, variance.
    step.numWeights = 4;
    domain.add(step.weight, x, DimRange(0, x.numChannels));
    return step;
  }

  Step softmax(const Shape &x) { return unary(x, 3); }

  /// `result` has new sizes at `dims`.
  template <typename Dims>
  Step mix(const Shape &x, const Shape &result, Dims dims) {
    Step step = unary(result, 2);
    domain.add(step.flops, x, dims);
    step.numWeights = 1;
    domain.add(step.weight, result, dims);
    domain.add(step.weight, x, dims);
    return step;
  }

  template <typename Dims>
  Step fold(const Shape &x, Dims dims) {
    Step step = unary(x, 1);
    step.shape = Shape();
    for (unsigned dim = 0; dim < x.rank; ++dim)
      if (!domain.contains(dims, dim)) {
        step.shape.append(x, dim);
        step.shape.numChannels += dim < x.numChannels;
      }
    return step;
  }

  /// Implies the block of the left tensor, and how often it is repeated.
  Step broadcast(const Shape &left, const Shape &right, unsigned prefix,
                 unsigned suffix) {
    Step step = unary(right, 1);
    Size block = getProduct(left, {prefix, left.rank - suffix});
    Size other = getProduct(right, {prefix, right.rank - suffix});
    step.implied = {block, domain.divide(other, block)};
    return step;
  }

  /// The rows and columns of a tensor as a matrix, its batch left out.
  static std::pair<DimRange, DimRange> getMatrix(const Shape &x, unsigned batch,
                                                 bool isTransposed) {
    DimRange rows(batch, x.numChannels), columns(x.numChannels, x.rank);
    return isTransposed ? std::pair(columns, rows) : std::pair(rows, columns);
  }

  Step matMul(const Shape &left, const Shape &right, unsigned batch,
              bool transposesLeft, bool transposesRight) {
    auto [rows, inner] = getMatrix(left, batch, transposesLeft);
    DimRange columns = getMatrix(right, batch, transposesRight).second;
    Shape shape;
    append(shape, left, {0, batch});
    append(shape, left, rows);
    shape.numChannels = shape.rank;
    append(shape, right, columns);
    Step step = unary(shape, 2);
    domain.add(step.flops, left, inner);
    return step;
  }

private:
  static void append(Shape &result, const Shape &x, DimRange range) {
    for (unsigned dim = range.first; dim < range.second; ++dim)
      result.append(x, dim);
  }

  Domain domain;
};

} // namespace kas::solver

#endif // KAS_SOLVER_TENSORRULES_H
