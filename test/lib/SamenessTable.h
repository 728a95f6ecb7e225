//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The table of the products that an operator sums up, free of redundancy: what
// sameness of operators is defined by.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_LIB_SAMENESSTABLE_H
#define KAS_TEST_LIB_SAMENESSTABLE_H

#include "SamenessOperator.h"
#include <array>

namespace kas::test {

/// One product: a data point times one element of each weight, added to an
/// output point.
struct ProductRow {
  /// More unordered axes and weights than this are a fatal error.
  static constexpr unsigned maxNodes = 8;

  /// The places along all ordered axes of output and data, as one number.
  uint64_t place = 0;
  /// The points on the unordered axes, then the elements of the weights. The
  /// numbers are names: any bijection of one column gives the same table.
  std::array<uint32_t, maxNodes> nodes = {};
  /// How often it occurs.
  int64_t count = 0;

  auto operator<=>(const ProductRow &) const = default;
};

/// A value for each output; those on unordered axes do not count.
using OutputPosition = llvm::SmallVector<int64_t, 4>;

/// See "Sameness of operators" in docs/internals/rationale/sameness.md.
struct ProductTable {
  /// Every product of `op`, with nothing taken out; of `places`, if there are
  /// any, only those that are added there.
  static ProductTable tabulate(const ConcreteOperator &op,
                               llvm::ArrayRef<OutputPosition> places = {});

  /// Takes out redundancy until there is none: elements of a weight in the same
  /// places up to a factor are one; a weight with one element, or whose element
  /// follows from that of another weight, is none; two weights whose sums of
  /// products take all values are one; then factors of counts that belong to
  /// weight elements. Sets `hasUnknownRank` when it is requested.
  void reduce(bool findsUnknownRanks = true);

  /// Sorts, and adds up the counts of equal products.
  void combineEqual();

  /// Gives the nodes of each column the numbers from 0 on, in the order of the
  /// first row that has them. `reduce` does so in the end.
  void number();

  unsigned getNumNodes() const { return numAxes + numWeights; }

  /// Sorted, no two with equal place and nodes.
  std::vector<ProductRow> rows;
  unsigned numAxes = 0, numWeights = 0;
  /// The counts are divided by it. 1 when there is a weight.
  int64_t divisor = 1;
  /// There are two weights or more, and no factors of their elements make all
  /// counts 1: counts are then to be compared up to such factors. Set by
  /// `reduce`, which makes all counts 1 otherwise if it can.
  bool hasFreeCounts = false;

  /// Sums of products of some weights may take all values or not: such a table
  /// may be the same as others that differ. Set by `reduce`.
  bool hasUnknownRank = false;

private:
  bool mergeElements(unsigned weight);
  bool dropWeight();
  bool joinWeights(bool findsUnknownRanks);
  void removeWeight(unsigned weight);
  void removeFactors(unsigned weight);
};

/// Of nodes with their colours, those of the smallest class of one colour that
/// has two or more, the first such colour; none if all colours differ.
std::vector<uint32_t>
getSmallestClass(std::vector<std::pair<uint64_t, uint32_t>> nodes);

/// Whether numbers `f` exist, one for each element of each weight of `table`,
/// such that `numerators[i] / denominators[i]` is the product of the numbers of
/// the elements in row i.
bool isProductOfElementFactors(const ProductTable &table,
                               llvm::ArrayRef<int64_t> numerators,
                               llvm::ArrayRef<int64_t> denominators);

} // namespace kas::test

#endif // KAS_TEST_LIB_SAMENESSTABLE_H
