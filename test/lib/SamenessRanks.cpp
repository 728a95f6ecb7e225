//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Weights whose products take all values that one weight takes.
//
//===----------------------------------------------------------------------===//

#include "SamenessTable.h"
#include "kas/Support/PrimeField.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/bit.h"
#include <map>
#include <numeric>
#include <tuple>

using namespace kas;
using namespace kas::test;

namespace {

/// An element of each of some weights, and how often their product is added.
struct ProductCount {
  llvm::SmallVector<uint32_t, 3> elements;
  int64_t count = 0;

  bool operator<(const ProductCount &other) const {
    return std::tie(elements, count) < std::tie(other.elements, other.count);
  }
};

/// A row without the elements of these weights, and their products there.
struct JoinedRow {
  ProductRow row;
  std::vector<ProductCount> products;
};

/// The sums of products of some weights that the rest of the rows see: each, up
/// to a factor, is an element of the weight that they would be together.
class WeightGroup {
public:
  WeightGroup(const ProductTable &table, llvm::ArrayRef<unsigned> weights) {
    for (unsigned weight : weights)
      columns.push_back(table.numAxes + weight);
    collect(table.rows);
  }

  /// Whether several products are added somewhere.
  bool hasSums() const { return !joined.empty(); }
  /// Whether these sums take all values, and so are a weight: then they do so
  /// when all weights but one are fixed.
  bool isWeight() const;
  /// Whether nothing rules out that these sums take all values: their
  /// derivatives are independent at a point that has no relations.
  bool isDominant() const;

  /// The rows with the number of the sum in the place of the first weight.
  std::vector<ProductRow> getRows() const;

private:
  void collect(llvm::ArrayRef<ProductRow> rows);
  void countElements();
  ProductRow getRest(ProductRow row) const {
    for (unsigned column : columns)
      row.nodes[column] = 0;
    row.count = 0;
    return row;
  }
  bool hasFullRank(unsigned free) const;
  uint64_t getFactor(const ProductCount &product, unsigned left) const;

  llvm::SmallVector<unsigned, 3> columns;
  std::vector<JoinedRow> joined;
  /// Each sum without its factor, with its number.
  std::map<std::vector<ProductCount>, uint32_t> sums;
  /// By weight.
  llvm::SmallVector<size_t, 3> numElements;
};

} // namespace

void WeightGroup::collect(llvm::ArrayRef<ProductRow> rows) {
  // By all but the elements of these weights; rows that agree in it stay in
  // order.
  llvm::SmallVector<unsigned, ProductRow::maxNodes> others;
  for (unsigned column = 0; column < ProductRow::maxNodes; ++column)
    if (!llvm::is_contained(columns, column))
      others.push_back(column);
  auto compare = [&](uint32_t x, uint32_t y) {
    const ProductRow &a = rows[x], &b = rows[y];
    if (a.place != b.place)
      return a.place <=> b.place;
    for (unsigned column : others)
      if (a.nodes[column] != b.nodes[column])
        return a.nodes[column] <=> b.nodes[column];
    return std::strong_ordering::equal;
  };
  std::vector<uint32_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](uint32_t x, uint32_t y) {
    auto ordering = compare(x, y);
    return ordering != 0 ? ordering < 0 : x < y;
  });
  // Sums of more products than one are what reductions of weights make; others
  // are left to the simpler steps.
  if (std::adjacent_find(order.begin(), order.end(),
                         [&](uint32_t x, uint32_t y) {
                           return compare(x, y) == 0;
                         }) == order.end())
    return;
  for (size_t i = 0; i < order.size(); ++i) {
    const ProductRow &row = rows[order[i]];
    if (i == 0 || compare(order[i - 1], order[i]) != 0)
      joined.push_back({getRest(row), {}});
    ProductCount &product = joined.back().products.emplace_back();
    product.count = row.count;
    for (unsigned column : columns)
      product.elements.push_back(row.nodes[column]);
  }
  countElements();
  for (JoinedRow &row : joined) {
    for (const ProductCount &product : row.products)
      row.row.count = std::gcd(row.row.count, product.count);
    for (ProductCount &product : row.products)
      product.count /= row.row.count;
    llvm::sort(row.products);
    sums.try_emplace(row.products, sums.size());
  }
}

void WeightGroup::countElements() {
  llvm::SmallVector<llvm::DenseSet<uint32_t>, 3> elements(columns.size());
  for (const JoinedRow &row : joined)
    for (const ProductCount &product : row.products)
      for (auto [seen, element] : llvm::zip_equal(elements, product.elements))
        seen.insert(element);
  for (const auto &seen : elements)
    numElements.push_back(seen.size());
}

std::vector<ProductRow> WeightGroup::getRows() const {
  std::vector<ProductRow> rows;
  for (const JoinedRow &joinedRow : joined) {
    rows.push_back(joinedRow.row);
    rows.back().nodes[columns.front()] = sums.at(joinedRow.products);
  }
  return rows;
}

/// Any values will do that have no relation to one another.
static uint64_t getValue(unsigned weight, uint32_t element) {
  uint64_t value =
      (element + (uint64_t(weight + 1) << 32)) * 0x9e3779b97f4a7c15ull;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
  return (value ^ (value >> 27)) % PrimeField::prime;
}

/// What is multiplied with the element of the weight `left`.
uint64_t WeightGroup::getFactor(const ProductCount &product,
                                unsigned left) const {
  uint64_t factor = product.count % PrimeField::prime;
  for (auto [weight, element] : llvm::enumerate(product.elements))
    if (weight != left)
      factor = PrimeField::multiply(factor, getValue(weight, element));
  return factor;
}

/// Whether the sums are independent functions of the elements of one weight
/// when those of the others have such values. Then they take all values: a
/// determinant that is not 0 modulo the prime is not 0.
bool WeightGroup::hasFullRank(unsigned free) const {
  if (sums.size() > numElements[free])
    return false;
  PrimeField::Echelon echelon;
  for (const auto &[products, number] : sums) {
    PrimeField::SparseRow row;
    for (const ProductCount &product : products)
      PrimeField::addTo(row[product.elements[free]], getFactor(product, free));
    if (!echelon.add(std::move(row)))
      return false;
  }
  return true;
}

bool WeightGroup::isDominant() const {
  // An element of each weight but one may be 1.
  size_t most = std::accumulate(numElements.begin(), numElements.end(),
                                1 - numElements.size());
  if (sums.size() > most)
    return false;
  PrimeField::Echelon echelon;
  for (const auto &[products, number] : sums) {
    PrimeField::SparseRow row;
    for (const ProductCount &product : products)
      for (auto [weight, element] : llvm::enumerate(product.elements))
        PrimeField::addTo(row[element + (uint64_t(weight) << 32)],
                          getFactor(product, weight));
    if (!echelon.add(std::move(row)))
      return false;
  }
  return true;
}

bool WeightGroup::isWeight() const {
  return llvm::any_of(llvm::seq<unsigned>(0, columns.size()),
                      [&](unsigned free) { return hasFullRank(free); });
}

bool ProductTable::joinWeights(bool findsUnknownRanks) {
  // Pairs come before larger sets.
  for (unsigned size = 2; size <= numWeights; ++size)
    for (uint32_t set = 0; set < uint32_t(1) << numWeights; ++set) {
      if (unsigned(llvm::popcount(set)) != size)
        continue;
      llvm::SmallVector<unsigned, 3> weights;
      for (unsigned weight = 0; weight < numWeights; ++weight)
        if (set >> weight & 1)
          weights.push_back(weight);
      WeightGroup group(*this, weights);
      if (!group.hasSums())
        continue;
      if (!group.isWeight()) {
        hasUnknownRank |= findsUnknownRanks && group.isDominant();
        continue;
      }
      rows = group.getRows();
      divisor = 1;
      for (unsigned weight : llvm::reverse(llvm::drop_begin(weights)))
        removeWeight(weight);
      return true;
    }
  return false;
}
