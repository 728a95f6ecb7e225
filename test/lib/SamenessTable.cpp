//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SamenessTable.h"
#include "kas/Support/PrimeField.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/ErrorHandling.h"
#include <map>
#include <numeric>
#include <unordered_map>

using namespace kas;
using namespace kas::test;

//===----------------------------------------------------------------------===//
// The products
//===----------------------------------------------------------------------===//

/// Sets the values of all coordinates at one point of the loops; false where
/// the point does not exist.
static bool setValues(llvm::ArrayRef<ConcreteCoord> coords,
                      llvm::MutableArrayRef<int64_t> values) {
  for (unsigned index : llvm::seq<unsigned>(coords.size()))
    if (!setValue(coords, index, values))
      return false;
  return true;
}

namespace {
/// Makes the row of a point from the values of the coordinates.
class RowBuilder {
public:
  explicit RowBuilder(const ConcreteOperator &op) : op(op) {
    auto countAxes = [&](llvm::ArrayRef<ConcreteAxis> axes) {
      numAxes += llvm::count_if(
          axes, [](const ConcreteAxis &axis) { return axis.isUnordered; });
    };
    countAxes(op.outputs);
    countAxes(op.inputs);
    if (numAxes + op.weights.size() > ProductRow::maxNodes)
      llvm::report_fatal_error("too many unordered axes and weights",
                               /*gen_crash_diag=*/false);
  }

  ProductRow make(llvm::ArrayRef<int64_t> values) const {
    ProductRow row;
    row.count = 1;
    unsigned node = 0;
    auto addPoint = [&](const ConcreteAxis &axis, int64_t value) {
      if (axis.isUnordered)
        row.nodes[node++] = value;
      else
        row.place = row.place * axis.size + value;
    };
    for (auto [index, axis] : llvm::enumerate(op.outputs))
      addPoint(axis, values[index]);
    for (auto [axis, coord] : llvm::zip_equal(op.inputs, op.data))
      addPoint(axis, values[coord]);
    for (llvm::ArrayRef<unsigned> weight : op.weights) {
      uint64_t element = 0;
      for (unsigned coord : weight)
        element = element * op.coords[coord].size + values[coord];
      if (element > UINT32_MAX)
        llvm::report_fatal_error("a weight has too many elements",
                                 /*gen_crash_diag=*/false);
      row.nodes[node++] = element;
    }
    return row;
  }

  unsigned numAxes = 0;

private:
  const ConcreteOperator &op;
};
} // namespace

void ProductTable::combineEqual() {
  llvm::sort(rows);
  size_t last = 0;
  for (size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].place == rows[last].place && rows[i].nodes == rows[last].nodes)
      rows[last].count += rows[i].count;
    else
      rows[++last] = rows[i];
  }
  if (!rows.empty())
    rows.resize(last + 1);
}

/// Adds the rows of all points of `loops`, the other loops being as they are.
static void addRows(const ConcreteOperator &op, const RowBuilder &builder,
                    llvm::ArrayRef<unsigned> loops, std::vector<int64_t> values,
                    std::vector<ProductRow> &rows) {
  for (size_t level = loops.size() + 1; level > 0;) {
    if (setValues(op.coords, values))
      rows.push_back(builder.make(values));
    // The next point, the last loop the fastest.
    for (level = loops.size(); level > 0; --level) {
      unsigned loop = loops[level - 1];
      if (++values[loop] < op.coords[loop].size)
        break;
      values[loop] = 0;
    }
  }
}

ProductTable ProductTable::tabulate(const ConcreteOperator &op,
                                    llvm::ArrayRef<OutputPosition> places) {
  RowBuilder builder(op);
  ProductTable table;
  table.numAxes = builder.numAxes;
  table.numWeights = op.weights.size();
  table.divisor = op.divisor;
  auto isPlaced = [&](unsigned index) {
    return !places.empty() && index < op.outputs.size() &&
           !op.outputs[index].isUnordered;
  };
  llvm::SmallVector<unsigned, 12> loops;
  for (auto [index, coord] : llvm::enumerate(op.coords))
    if (coord.kind == ConcreteCoord::Loop && !isPlaced(index))
      loops.push_back(index);
  std::vector<int64_t> values(op.coords.size(), 0);
  if (places.empty())
    addRows(op, builder, loops, values, table.rows);
  for (const OutputPosition &place : places) {
    for (unsigned index = 0; index < op.outputs.size(); ++index)
      if (isPlaced(index))
        values[index] = place[index];
    addRows(op, builder, loops, values, table.rows);
  }
  table.combineEqual();
  return table;
}

//===----------------------------------------------------------------------===//
// Redundancy
//===----------------------------------------------------------------------===//

namespace {
/// The rows that hold an element.
struct Places {
  int64_t factor = 0;
  uint64_t hash = 0;
  std::vector<unsigned> rows;
};
} // namespace

/// A hash of the row without the node at `column`.
static uint64_t hashRow(ProductRow row, unsigned column, int64_t factor) {
  row.nodes[column] = 0;
  uint64_t hash = row.place * 0x9e3779b97f4a7c15ull + row.count / factor;
  for (uint32_t node : row.nodes) {
    hash = (hash ^ node) * 0xbf58476d1ce4e5b9ull;
    hash ^= hash >> 29;
  }
  return hash;
}

/// Both elements are in the same places, up to a factor of the counts.
static bool areProportional(llvm::ArrayRef<ProductRow> rows, unsigned column,
                            const Places &a, const Places &b) {
  auto take = [&](const Places &places) {
    std::vector<ProductRow> taken;
    for (unsigned index : places.rows) {
      taken.push_back(rows[index]);
      taken.back().nodes[column] = 0;
      taken.back().count /= places.factor;
    }
    llvm::sort(taken);
    return taken;
  };
  return a.rows.size() == b.rows.size() && take(a) == take(b);
}

/// Elements in the same places up to a factor become one.
bool ProductTable::mergeElements(unsigned weight) {
  unsigned column = numAxes + weight;
  llvm::DenseMap<uint32_t, unsigned> indices;
  std::vector<Places> elements;
  for (auto [index, row] : llvm::enumerate(rows)) {
    auto [entry, isNew] =
        indices.try_emplace(row.nodes[column], elements.size());
    if (isNew)
      elements.emplace_back();
    Places &places = elements[entry->second];
    places.rows.push_back(index);
    places.factor = std::gcd(places.factor, row.count);
  }
  // Equal hashes are only a hint.
  std::unordered_map<uint64_t, llvm::SmallVector<unsigned, 1>> kept;
  std::vector<ProductRow> merged;
  bool hasFactors = false;
  for (unsigned element = 0; element < elements.size(); ++element) {
    Places &places = elements[element];
    for (unsigned index : places.rows)
      places.hash += hashRow(rows[index], column, places.factor);
    llvm::SmallVector<unsigned, 1> &like = kept[places.hash];
    if (llvm::any_of(like, [&](unsigned other) {
          return areProportional(rows, column, elements[other], places);
        }))
      continue;
    like.push_back(element);
    hasFactors |= places.factor != 1;
    for (unsigned index : places.rows) {
      merged.push_back(rows[index]);
      merged.back().count /= places.factor;
    }
  }
  bool isChanged = merged.size() != rows.size();
  // Else they are the same rows, in another order.
  if (isChanged || hasFactors) {
    rows = std::move(merged);
    llvm::sort(rows);
  }
  return isChanged;
}

void ProductTable::removeWeight(unsigned weight) {
  for (ProductRow &row : rows) {
    for (unsigned column = numAxes + weight; column + 1 < getNumNodes();
         ++column)
      row.nodes[column] = row.nodes[column + 1];
    row.nodes[getNumNodes() - 1] = 0;
  }
  --numWeights;
  // The element followed from the rest of the row, so rows stay different.
  llvm::sort(rows);
}

/// Each element of `a` occurs together with one element of `b` only.
static bool determines(llvm::ArrayRef<ProductRow> rows, unsigned a,
                       unsigned b) {
  llvm::DenseMap<uint32_t, uint32_t> partner;
  return llvm::all_of(rows, [&](const ProductRow &row) {
    return partner.try_emplace(row.nodes[a], row.nodes[b]).first->second ==
           row.nodes[b];
  });
}

/// Takes out one weight that is none, if there is one.
bool ProductTable::dropWeight() {
  for (unsigned weight = 0; weight < numWeights; ++weight) {
    unsigned column = numAxes + weight;
    bool hasOneElement = llvm::all_of(rows, [&](const ProductRow &row) {
      return row.nodes[column] == rows.front().nodes[column];
    });
    bool isNone = hasOneElement;
    for (unsigned other = numAxes; other < getNumNodes() && !isNone; ++other)
      isNone = other != column && determines(rows, other, column);
    if (isNone) {
      // Its factor goes where it went.
      removeFactors(weight);
      divisor = 1;
      removeWeight(weight);
      return true;
    }
  }
  return false;
}

/// Divides the counts of each element of `weight` by their common factor.
void ProductTable::removeFactors(unsigned weight) {
  llvm::DenseMap<uint32_t, int64_t> factors;
  for (const ProductRow &row : rows) {
    int64_t &factor = factors[row.nodes[numAxes + weight]];
    factor = std::gcd(factor, row.count);
  }
  for (ProductRow &row : rows)
    row.count /= factors[row.nodes[numAxes + weight]];
}

void ProductTable::number() {
  for (unsigned column = 0; column < getNumNodes(); ++column) {
    llvm::DenseMap<uint32_t, uint32_t> names;
    for (ProductRow &row : rows)
      row.nodes[column] =
          names.try_emplace(row.nodes[column], names.size()).first->second;
    llvm::sort(rows);
  }
}

void ProductTable::reduce(bool findsUnknownRanks) {
  bool isChanged;
  do {
    isChanged = false;
    for (unsigned weight = 0; weight < numWeights; ++weight)
      isChanged |= mergeElements(weight);
    isChanged |= dropWeight() || joinWeights(findsUnknownRanks);
  } while (isChanged);

  auto isOne = [](const ProductRow &row) { return row.count == 1; };
  if (numWeights == 0) {
    int64_t factor = divisor;
    for (const ProductRow &row : rows)
      factor = std::gcd(factor, row.count);
    divisor /= factor;
    for (ProductRow &row : rows)
      row.count /= factor;
  } else {
    divisor = 1;
    for (unsigned weight = 0; weight < numWeights; ++weight)
      removeFactors(weight);
    if (numWeights > 1 && !llvm::all_of(rows, isOne)) {
      auto counts = llvm::map_to_vector(
          rows, [](const ProductRow &row) { return row.count; });
      llvm::SmallVector<int64_t> ones(rows.size(), 1);
      hasFreeCounts = !isProductOfElementFactors(*this, counts, ones);
      if (!hasFreeCounts)
        for (ProductRow &row : rows)
          row.count = 1;
    }
  }
  number();
}

//===----------------------------------------------------------------------===//
// Factors of counts
//===----------------------------------------------------------------------===//

namespace {
/// Linear equations modulo the prime 2^61 - 1, to see whether they have a
/// solution. Coefficients are 0 or 1 and right sides small: a system that is
/// solvable over the rationals and not here, or the other way round, would need
/// a determinant that is a multiple of the prime. With two weights the matrix
/// is totally unimodular (bipartite incidence), so there is none.
class LinearSystem {
public:
  explicit LinearSystem(size_t numUnknowns) : numUnknowns(numUnknowns) {}

  /// Adds an equation (the last entry is the right side); false when it
  /// contradicts the others.
  bool add(std::vector<uint64_t> equation);

private:
  size_t numUnknowns;
  /// By leading unknown; the leading coefficient is 1.
  std::map<size_t, std::vector<uint64_t>> rows;
};
} // namespace

bool LinearSystem::add(std::vector<uint64_t> equation) {
  for (size_t lead = 0; lead < numUnknowns; ++lead) {
    if (equation[lead] == 0)
      continue;
    auto row = rows.find(lead);
    uint64_t factor = equation[lead];
    if (row == rows.end()) {
      factor = PrimeField::invert(factor);
      for (uint64_t &value : equation)
        value = PrimeField::multiply(value, factor);
      rows.emplace(lead, std::move(equation));
      return true;
    }
    for (size_t i = lead; i <= numUnknowns; ++i)
      equation[i] = (equation[i] + PrimeField::prime -
                     PrimeField::multiply(factor, row->second[i])) %
                    PrimeField::prime;
  }
  return equation[numUnknowns] == 0;
}

/// The exponent of `prime` in `value`, which is divided by it.
static int64_t takePowers(int64_t &value, int64_t prime) {
  int64_t exponent = 0;
  for (; value % prime == 0; value /= prime)
    ++exponent;
  return exponent;
}

/// Logarithms of different primes are independent over the rationals, so each
/// prime makes a system of its own, linear in the exponents.
bool kas::test::isProductOfElementFactors(
    const ProductTable &table, llvm::ArrayRef<int64_t> numerators,
    llvm::ArrayRef<int64_t> denominators) {
  std::vector<int64_t> rest(numerators.begin(), numerators.end());
  llvm::append_range(rest, denominators);
  std::map<std::pair<unsigned, uint32_t>, size_t> unknowns;
  for (const ProductRow &row : table.rows)
    for (unsigned column = table.numAxes; column < table.getNumNodes();
         ++column)
      unknowns.try_emplace({column, row.nodes[column]}, unknowns.size());
  size_t numRows = table.rows.size();
  for (int64_t prime = 2;; ++prime) {
    int64_t largest = *std::max_element(rest.begin(), rest.end());
    if (largest == 1)
      return true;
    LinearSystem system(unknowns.size());
    bool isFree = true;
    std::vector<int64_t> powers(numRows);
    for (size_t i = 0; i < numRows; ++i) {
      powers[i] =
          takePowers(rest[i], prime) - takePowers(rest[numRows + i], prime);
      isFree &= powers[i] == 0;
    }
    for (size_t i = 0; i < numRows && !isFree; ++i) {
      std::vector<uint64_t> equation(unknowns.size() + 1, 0);
      for (unsigned column = table.numAxes; column < table.getNumNodes();
           ++column)
        equation[unknowns[{column, table.rows[i].nodes[column]}]] = 1;
      constexpr int64_t modulus = (int64_t(1) << 61) - 1;
      equation.back() = (powers[i] + modulus) % modulus;
      if (!system.add(std::move(equation)))
        return false;
    }
  }
}
