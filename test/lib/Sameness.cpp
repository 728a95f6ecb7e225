//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sameness.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"

using namespace kas;
using namespace kas::test;

static uint64_t mix(uint64_t hash, uint64_t value) {
  value += 0x9e3779b97f4a7c15ull + (hash << 6) + (hash >> 2);
  value = (value ^ hash ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
  return value ^ (value >> 31);
}

namespace {

/// A table as a structure of nodes: the points on unordered axes and the weight
/// elements, all numbered through; rows tie them together.
class Structure {
public:
  explicit Structure(const ProductTable &table);

  /// By node: equal colours where nothing tells two nodes apart yet.
  using Colors = std::vector<uint64_t>;

  Colors getFirstColors() const;
  /// Colours nodes by the rows they are in, again and again until no class
  /// falls apart. Returns a hash that is equal for structures between which
  /// there is a bijection that preserves the colours given.
  uint64_t refine(Colors &colors) const;
  /// The same, and more: tells nodes apart also by what the colours become when
  /// one of them is unique. Costs a refinement per node.
  uint64_t refineStrongly(Colors &colors) const;

  /// The nodes with the colour of the smallest class of two or more; empty when
  /// every node has a colour of its own.
  std::vector<unsigned> getSmallestClass(const Colors &colors) const;

  unsigned getNode(unsigned row, unsigned column) const {
    return begins[column] + table.rows[row].nodes[column];
  }

  const ProductTable &table;
  unsigned numNodes = 0;

private:
  bool isWeight(unsigned column) const { return column >= table.numAxes; }

  /// By column, the number of its first node.
  std::vector<unsigned> begins;
};

/// Looks for bijections.
class Matcher {
public:
  Matcher(const Structure &a, const Structure &b) : a(a), b(b) {}

  /// Whether there is one; nothing when that takes too many refinements.
  std::optional<bool> match(bool isStrong, unsigned maxRefinements) {
    this->isStrong = isStrong;
    refinementsLeft = maxRefinements;
    bool isMatch = match(a, a.getFirstColors(), b, b.getFirstColors());
    return refinementsLeft ? std::optional(isMatch) : std::nullopt;
  }

private:
  bool match(const Structure &a, Structure::Colors aColors, const Structure &b,
             Structure::Colors bColors);

  const Structure &a, &b;
  bool isStrong = false;
  unsigned refinementsLeft = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// Colour refinement
//===----------------------------------------------------------------------===//

Structure::Structure(const ProductTable &table) : table(table) {
  for (unsigned column = 0; column < table.getNumNodes(); ++column) {
    begins.push_back(numNodes);
    uint32_t size = 0;
    for (const ProductRow &row : table.rows)
      size = std::max(size, row.nodes[column] + 1);
    numNodes += size;
  }
  begins.push_back(numNodes);
}

/// Axes keep their places; weights have none.
Structure::Colors Structure::getFirstColors() const {
  Colors colors(numNodes);
  for (unsigned column = 0; column < table.getNumNodes(); ++column)
    std::fill(colors.begin() + begins[column],
              colors.begin() + begins[column + 1],
              mix(1, isWeight(column) ? table.numAxes : column));
  return colors;
}

static size_t countDifferent(Structure::Colors colors) {
  llvm::sort(colors);
  return std::unique(colors.begin(), colors.end()) - colors.begin();
}

uint64_t Structure::refine(Colors &colors) const {
  unsigned numColumns = table.getNumNodes();
  for (size_t numColors = countDifferent(colors);;) {
    Colors sums(numNodes, 0);
    uint64_t hash = mix(table.rows.size(), numNodes);
    for (unsigned row = 0; row < table.rows.size(); ++row) {
      // Free counts are compared in the end.
      uint64_t color = mix(table.rows[row].place,
                           table.hasFreeCounts ? 0 : table.rows[row].count);
      uint64_t weights = 0;
      for (unsigned column = 0; column < numColumns; ++column) {
        uint64_t node = colors[getNode(row, column)];
        if (isWeight(column))
          weights += mix(2, node);
        else
          color = mix(color, node);
      }
      color = mix(color, weights);
      hash += color;
      for (unsigned column = 0; column < numColumns; ++column)
        sums[getNode(row, column)] += mix(3, color);
    }
    for (unsigned node = 0; node < numNodes; ++node)
      colors[node] = mix(colors[node], sums[node]);
    // The elements of one weight belong together.
    for (unsigned column = table.numAxes; column < numColumns; ++column) {
      uint64_t weight = 0;
      for (unsigned node = begins[column]; node < begins[column + 1]; ++node)
        weight += mix(4, colors[node]);
      for (unsigned node = begins[column]; node < begins[column + 1]; ++node)
        colors[node] = mix(colors[node], weight);
    }
    size_t numNewColors = countDifferent(colors);
    if (numNewColors == numColors || numNewColors == numNodes) {
      for (uint64_t color : colors)
        hash += mix(5, color);
      return hash;
    }
    numColors = numNewColors;
  }
}

static Structure::Colors makeUnique(Structure::Colors colors, unsigned node) {
  colors[node] = mix(6, colors[node]);
  return colors;
}

uint64_t Structure::refineStrongly(Colors &colors) const {
  uint64_t hash = refine(colors);
  if (countDifferent(colors) == numNodes)
    return hash;
  Colors stronger(numNodes);
  for (unsigned node = 0; node < numNodes; ++node) {
    Colors others = makeUnique(colors, node);
    stronger[node] = mix(colors[node], refine(others));
  }
  colors = std::move(stronger);
  return mix(hash, refine(colors));
}

std::vector<uint32_t>
kas::test::getSmallestClass(std::vector<std::pair<uint64_t, uint32_t>> nodes) {
  llvm::sort(nodes);
  std::vector<uint32_t> smallest;
  for (size_t begin = 0, end; begin < nodes.size(); begin = end) {
    for (end = begin;
         end < nodes.size() && nodes[end].first == nodes[begin].first;)
      ++end;
    if (end - begin < 2 ||
        (!smallest.empty() && end - begin >= smallest.size()))
      continue;
    smallest.clear();
    for (size_t i = begin; i < end; ++i)
      smallest.push_back(nodes[i].second);
  }
  return smallest;
}

std::vector<unsigned> Structure::getSmallestClass(const Colors &colors) const {
  std::vector<std::pair<uint64_t, uint32_t>> nodes;
  for (unsigned node = 0; node < numNodes; ++node)
    nodes.emplace_back(colors[node], node);
  return kas::test::getSmallestClass(std::move(nodes));
}

uint64_t kas::test::hashTable(const ProductTable &table) {
  Structure structure(table);
  Structure::Colors colors = structure.getFirstColors();
  return mix(structure.refine(colors), table.divisor + table.hasFreeCounts);
}

//===----------------------------------------------------------------------===//
// Matching
//===----------------------------------------------------------------------===//

/// The order of the columns of `b` in which they have the colours of those of
/// `a`, when every node has a colour of its own; empty when there is none.
static std::vector<unsigned> matchColumns(const Structure &a,
                                          const Structure::Colors &aColors,
                                          const Structure &b,
                                          const Structure::Colors &bColors) {
  auto getColors = [](const Structure &structure,
                      const Structure::Colors &colors, unsigned column) {
    Structure::Colors result;
    for (unsigned row = 0; row < structure.table.rows.size(); ++row)
      result.push_back(colors[structure.getNode(row, column)]);
    llvm::sort(result);
    return result;
  };
  std::vector<unsigned> columns;
  unsigned numColumns = a.table.getNumNodes();
  for (unsigned column = 0; column < numColumns; ++column) {
    Structure::Colors wanted = getColors(a, aColors, column);
    bool isAxis = column < a.table.numAxes;
    unsigned begin = isAxis ? column : a.table.numAxes;
    unsigned end = isAxis ? column + 1 : numColumns;
    for (unsigned other = begin; other < end; ++other)
      if (!llvm::is_contained(columns, other) &&
          getColors(b, bColors, other) == wanted) {
        columns.push_back(other);
        break;
      }
    if (columns.size() != column + 1)
      return {};
  }
  return columns;
}

/// Whether the bijection between nodes of one colour maps rows onto rows.
static bool isBijection(const Structure &a, const Structure::Colors &aColors,
                        const Structure &b, const Structure::Colors &bColors) {
  std::vector<unsigned> columns = matchColumns(a, aColors, b, bColors);
  if (columns.empty() && a.table.getNumNodes() > 0)
    return false;
  using Key = std::pair<uint64_t, Structure::Colors>;
  auto getRows = [](const Structure &structure, const Structure::Colors &colors,
                    auto getColumn) {
    std::vector<std::pair<Key, unsigned>> rows;
    for (unsigned row = 0; row < structure.table.rows.size(); ++row) {
      Structure::Colors key;
      for (unsigned i = 0; i < structure.table.getNumNodes(); ++i)
        key.push_back(colors[structure.getNode(row, getColumn(i))]);
      rows.push_back({{structure.table.rows[row].place, std::move(key)}, row});
    }
    llvm::sort(rows);
    return rows;
  };
  auto aRows = getRows(a, aColors, [](unsigned i) { return i; });
  auto bRows = getRows(b, bColors, [&](unsigned i) { return columns[i]; });
  // By row of `a`.
  std::vector<int64_t> aCounts(aRows.size()), bCounts(aRows.size());
  for (const auto &[x, y] : llvm::zip_equal(aRows, bRows)) {
    if (x.first != y.first)
      return false;
    aCounts[x.second] = a.table.rows[x.second].count;
    bCounts[x.second] = b.table.rows[y.second].count;
  }
  return aCounts == bCounts ||
         (a.table.hasFreeCounts &&
          isProductOfElementFactors(a.table, aCounts, bCounts));
}

/// Two structures with some nodes made to correspond by their colours. Takes a
/// node of the first and tries all it may correspond to. A node of the second
/// that an automorphism takes to one tried in vain is in vain as well.
bool Matcher::match(const Structure &a, Structure::Colors aColors,
                    const Structure &b, Structure::Colors bColors) {
  if (refinementsLeft == 0 || --refinementsLeft == 0)
    return false;
  bool mayMatch = isStrong
                      ? a.refineStrongly(aColors) == b.refineStrongly(bColors)
                      : a.refine(aColors) == b.refine(bColors);
  if (!mayMatch)
    return false;
  std::vector<unsigned> nodes = a.getSmallestClass(aColors);
  if (nodes.empty())
    return isBijection(a, aColors, b, bColors);
  unsigned node = nodes.front();
  std::vector<unsigned> tried;
  for (unsigned other = 0; other < b.numNodes; ++other) {
    if (bColors[other] != aColors[node] ||
        llvm::any_of(tried, [&](unsigned earlier) {
          return match(b, makeUnique(bColors, earlier), b,
                       makeUnique(bColors, other));
        }))
      continue;
    if (match(a, makeUnique(aColors, node), b, makeUnique(bColors, other)))
      return true;
    tried.push_back(other);
  }
  return false;
}

bool kas::test::areEqual(const ProductTable &a, const ProductTable &b) {
  if (a.numAxes != b.numAxes || a.numWeights != b.numWeights ||
      a.divisor != b.divisor || a.hasFreeCounts != b.hasFreeCounts ||
      a.rows.size() != b.rows.size())
    return false;
  if (a.rows == b.rows)
    return true;
  Structure aNodes(a), bNodes(b);
  if (aNodes.numNodes != bNodes.numNodes)
    return false;
  Matcher matcher(aNodes, bNodes);
  // Most pairs match at once; few need the better means.
  std::optional<bool> result = matcher.match(/*isStrong=*/false, 200);
  if (!result)
    result = matcher.match(/*isStrong=*/true, 20000);
  if (!result)
    llvm::report_fatal_error("sameness of two operators takes too long",
                             /*gen_crash_diag=*/false);
  return *result;
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

static std::vector<ProductTable> makeTables(const ConcreteOperators &op) {
  std::vector<ProductTable> tables;
  for (const ConcreteOperator &concrete : op) {
    tables.push_back(ProductTable::tabulate(concrete));
    tables.back().reduce();
  }
  return tables;
}

static bool areEqual(llvm::ArrayRef<ProductTable> a,
                     llvm::ArrayRef<ProductTable> b) {
  return llvm::all_of(llvm::zip_equal(a, b), [](const auto &tables) {
    return areEqual(std::get<0>(tables), std::get<1>(tables));
  });
}

static uint64_t hashTables(llvm::ArrayRef<ProductTable> tables) {
  uint64_t hash = tables.size();
  for (const ProductTable &table : tables)
    hash = mix(hash, hashTable(table));
  return hash;
}

bool kas::test::areSame(const ConcreteOperators &a,
                        const ConcreteOperators &b) {
  return ::areEqual(makeTables(a), makeTables(b));
}

std::optional<unsigned> SamenessClasses::find(const Tables &tables,
                                              uint64_t hash) const {
  auto bucket = buckets.find(hash);
  if (bucket != buckets.end())
    for (unsigned index : bucket->second) {
      const auto &[op, known] = members[index];
      if (::areEqual(known.empty() ? makeTables(op) : known, tables))
        return index;
    }
  return std::nullopt;
}

std::optional<unsigned>
SamenessClasses::find(const ConcreteOperators &op) const {
  Tables tables = makeTables(op);
  return find(tables, hashTables(tables));
}

std::pair<unsigned, bool> SamenessClasses::insert(ConcreteOperators op) {
  constexpr size_t maxRows = 10'000'000;
  Tables tables = makeTables(op);
  uint64_t hash = hashTables(tables);
  if (std::optional<unsigned> known = find(tables, hash))
    return {*known, false};
  buckets[hash].push_back(members.size());
  numWeights.push_back(tables.empty() ? 0 : tables.front().numWeights);
  areUnknown.push_back(llvm::any_of(
      tables, [](const ProductTable &table) { return table.hasUnknownRank; }));
  for (const ProductTable &table : tables)
    numRows += table.rows.size();
  if (numRows > maxRows)
    tables.clear();
  members.emplace_back(std::move(op), std::move(tables));
  return {members.size() - 1, true};
}
