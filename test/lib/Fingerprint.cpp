//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fingerprint.h"
#include "llvm/ADT/STLExtras.h"
#include <utility>

using namespace kas;
using namespace kas::test;

static uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 32)) * 0xd6e8feb86659fd93ull;
  return value ^ (value >> 32);
}
static uint64_t mix(uint64_t hash, uint64_t value) {
  return mix(hash * 0x9e3779b97f4a7c15ull + value + 0x7f4a7c15f39cc060ull);
}

/// A row by all that has a name: another one for each place, and for each
/// count other than 1.
static uint64_t getName(uint64_t place) { return mix(1, place); }
static uint64_t getName(uint64_t name, uint64_t count) {
  return count == 1 ? name : mix(name, count);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// One in the middle, a corner, neighbors of the first along each axis: what
/// depends on a position at all differs there. Then other borders, those of one
/// axis beside the middle of the others, which share a block of these, and more
/// in between.
std::vector<OutputPosition>
kas::test::choosePositions(const ConcreteOperator &op, unsigned count) {
  llvm::SmallVector<unsigned> axes;
  for (auto [index, axis] : llvm::enumerate(op.outputs))
    if (!axis.isUnordered && axis.size > 1)
      axes.push_back(index);
  unsigned numNeighbors = axes.size(),
           numMixed = axes.size() > 1 ? axes.size() : 0;
  std::vector<OutputPosition> places;
  for (unsigned number = 0; number < count; ++number) {
    OutputPosition &place = places.emplace_back();
    for (auto [index, axis] : llvm::enumerate(op.outputs)) {
      bool isOdd = index % 2;
      int64_t middle = axis.size / 2 + isOdd;
      int64_t corner = isOdd ? axis.size - 1 : 0;
      if (number == 1)
        place.push_back(corner);
      else if (number < 2 + numNeighbors)
        place.push_back(
            middle + (number >= 2 && axes[numNeighbors + 1 - number] == index));
      else if (number == 2 + numNeighbors)
        place.push_back(axis.size - 1 - corner);
      else if (number < 3 + numNeighbors + numMixed)
        place.push_back(axes[number - 3 - numNeighbors] == index ? corner
                                                                 : middle);
      else
        place.push_back(5 * number + (3 + number) * index);
      place.back() %= axis.size;
    }
  }
  llvm::sort(places);
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

namespace {
/// Steps through the points of an operator's loops and makes a row of each:
/// its place and its nodes. Only what depends on a loop that moved is computed
/// again.
class RowWalker {
public:
  /// Without `runsOrderedOutputs` these stay at the place that is set. The
  /// loops that the place in the data depends on are outermost.
  RowWalker(const ConcreteOperator &op, bool runsOrderedOutputs)
      : op(op), values(op.coords.size(), 0), levels(op.coords.size(), 0) {
    std::vector<uint8_t> isOfPlace(op.coords.size(), 0);
    for (auto [axis, coord] : llvm::zip_equal(op.inputs, op.data))
      isOfPlace[coord] |= !axis.isUnordered;
    for (size_t index = op.coords.size(); index-- > 0;) {
      const ConcreteCoord &coord = op.coords[index];
      if (!isOfPlace[index] || coord.kind == ConcreteCoord::Loop)
        continue;
      isOfPlace[coord.first] = 1;
      if (isBinary(coord))
        isOfPlace[coord.second] = 1;
    }
    for (bool isOuter : {true, false}) {
      for (auto [index, coord] : llvm::enumerate(op.coords)) {
        bool isFixed = !runsOrderedOutputs && index < op.outputs.size() &&
                       !op.outputs[index].isUnordered;
        if (coord.kind == ConcreteCoord::Loop && !isFixed &&
            isOfPlace[index] == isOuter) {
          loops.push_back(index);
          levels[index] = loops.size();
        }
      }
      if (isOuter)
        placeLevel = loops.size();
    }
    views.resize(loops.size() + 1);
    terms.resize(loops.size() + 1);
    rows.resize(loops.size() + 1);
    for (auto [index, coord] : llvm::enumerate(op.coords)) {
      if (coord.kind == ConcreteCoord::Loop)
        continue;
      levels[index] = levels[coord.first];
      if (isBinary(coord))
        levels[index] = std::max(levels[index], levels[coord.second]);
      views[levels[index]].push_back(index);
    }
  }

  void setOutput(unsigned index, int64_t value) { values[index] = value; }

  /// A column is the sum of coordinates times factors; the place is number 0.
  using Row = std::array<uint64_t, ProductRow::maxNodes + 1>;
  void addTerm(unsigned column, unsigned coord, uint64_t factor) {
    terms[levels[coord]].push_back({column, coord, factor});
  }
  /// What is added to every row.
  Row start = {};

  /// Calls `visit` with each row whose place `isWanted`. When it returns true,
  /// goes on with what may be another place.
  template <typename Visitor, typename Filter>
  bool walk(const Filter &isWanted, const Visitor &visit) {
    return walk(0, start, isWanted, visit);
  }

private:
  static bool isBinary(const ConcreteCoord &coord) {
    return coord.kind == ConcreteCoord::Split ||
           coord.kind == ConcreteCoord::Unfold ||
           coord.kind == ConcreteCoord::CyclicUnfold;
  }

  template <typename Visitor, typename Filter>
  bool walk(size_t level, const Row &outer, const Filter &isWanted,
            const Visitor &visit) {
    for (unsigned view : views[level])
      if (!setValue(op.coords, view, values))
        return false;
    Row &row = rows[level];
    row = outer;
    for (const Term &term : terms[level])
      row[term.column] += values[term.coord] * term.factor;
    if (level == placeLevel && !isWanted(row[0]))
      return false;
    if (level == loops.size())
      return visit(row);
    int64_t &value = values[loops[level]];
    int64_t end = op.coords[loops[level]].size;
    for (value = 0; value < end; ++value)
      if (walk(level + 1, row, isWanted, visit) && level >= placeLevel)
        return true;
    return false;
  }

  struct Term {
    unsigned column, coord;
    uint64_t factor;
  };
  const ConcreteOperator &op;
  std::vector<int64_t> values;
  /// By coordinate: the loop that it changes with, from 1 on; 0 for none.
  std::vector<unsigned> levels;
  llvm::SmallVector<unsigned, 12> loops;
  /// From this level on the place is known.
  size_t placeLevel = 0;
  /// By level.
  std::vector<llvm::SmallVector<unsigned, 8>> views;
  std::vector<llvm::SmallVector<Term, 8>> terms;
  std::vector<Row> rows;
};
} // namespace

void Fingerprinter::addColumn(size_t size, bool isWeight) {
  columns.push_back({numNodes, isWeight});
  numNodes += size;
}

void Fingerprinter::tabulate(const ConcreteOperator &op,
                             llvm::ArrayRef<OutputPosition> places) {
  columns.clear();
  names.clear();
  nodes.clear();
  numNodes = 0;
  RowWalker walker(op, places.empty());
  llvm::SmallVector<std::pair<unsigned, uint64_t>, 8> ordered;
  auto addAxis = [&](const ConcreteAxis &axis, unsigned coord) {
    if (axis.isUnordered) {
      addColumn(axis.size, /*isWeight=*/false);
      walker.addTerm(columns.size(), coord, 1);
      walker.start[columns.size()] = columns.back().begin;
    } else {
      ordered.emplace_back(coord, axis.size);
    }
  };
  for (auto [index, axis] : llvm::enumerate(op.outputs))
    addAxis(axis, index);
  for (auto [axis, coord] : llvm::zip_equal(op.inputs, op.data))
    addAxis(axis, coord);
  uint64_t numPoints = 1;
  numInputs = 1;
  for (const ConcreteAxis &axis : op.inputs)
    numInputs *= axis.isUnordered ? 1 : axis.size;
  for (auto [coord, size] : llvm::reverse(ordered)) {
    walker.addTerm(0, coord, numPoints);
    numPoints *= size;
  }
  for (llvm::ArrayRef<unsigned> weight : op.weights) {
    size_t elements = 1;
    for (unsigned coord : weight) {
      walker.addTerm(columns.size() + 1, coord, elements);
      elements *= op.coords[coord].size;
    }
    addColumn(elements, /*isWeight=*/true);
    walker.start[columns.size()] = columns.back().begin;
  }
  size_t width = columns.size();
  auto addRow = [&](const RowWalker::Row &row) {
    names.push_back(getName(row[0]));
    for (size_t column = 1; column <= width; ++column)
      nodes.push_back(row[column]);
    return false;
  };
  auto walk = [&] {
    if (options.numSlices)
      chooseSlices([&](auto isWanted, auto visit) {
        walker.walk(isWanted, [&](auto &row) { return visit(row[0]); });
      });
    walker.walk(
        [&](uint64_t place) {
          return !options.numSlices || llvm::is_contained(slices, place);
        },
        addRow);
  };
  slices.clear();
  support = 0;
  if (places.empty())
    walk();
  for (const OutputPosition &place : places) {
    for (auto [index, value] : llvm::enumerate(place))
      if (!op.outputs[index].isUnordered)
        walker.setOutput(index, value);
    walk();
  }
  numRows = names.size();
}

/// Of the places that occur at each position of the output, the middle one, the
/// first and so on. Which ones occur does not change when redundancy is taken
/// out.
template <typename Walk>
void Fingerprinter::chooseSlices(const Walk &walk) {
  std::vector<uint64_t> found;
  walk([&](uint64_t place) { return !llvm::is_contained(found, place); },
       [&](uint64_t place) {
         found.push_back(place);
         return true;
       });
  llvm::sort(found);
  for (uint64_t place : found)
    support = mix(support, place);
  for (size_t begin = 0, end; begin < found.size(); begin = end) {
    for (end = begin + 1; end < found.size() &&
                          found[end] / numInputs == found[begin] / numInputs;)
      ++end;
    size_t chosen[] = {(begin + end) / 2, begin, end - 1};
    for (size_t index = 0; index < std::min<size_t>(options.numSlices, 3);
         ++index)
      if (!llvm::is_contained(slices, found[chosen[index]]))
        slices.push_back(found[chosen[index]]);
  }
}

/// The rows as a table, in which names stand for places.
ProductTable Fingerprinter::makeTable(const ConcreteOperator &op) const {
  ProductTable table;
  table.numAxes = getNumAxes();
  table.numWeights = columns.size() - table.numAxes;
  if (table.numWeights == op.weights.size())
    table.divisor = op.divisor;
  table.rows.resize(numRows);
  const uint32_t *node = nodes.data();
  for (auto [row, name] : llvm::zip_equal(table.rows, names)) {
    row.place = name;
    row.count = 1;
    for (size_t column = 0; column < columns.size(); ++column)
      row.nodes[column] = *node++;
  }
  table.combineEqual();
  return table;
}

void Fingerprinter::assign(const ProductTable &table) {
  columns.clear();
  names.clear();
  nodes.clear();
  numNodes = 0;
  for (unsigned column = 0; column < table.getNumNodes(); ++column) {
    uint32_t size = 0;
    for (const ProductRow &row : table.rows)
      size = std::max(size, row.nodes[column] + 1);
    addColumn(size, column >= table.numAxes);
  }
  for (const ProductRow &row : table.rows) {
    // Free counts are no property of a row
    // (docs/internals/rationale/sameness.md).
    names.push_back(getName(row.place, table.hasFreeCounts ? 0 : row.count));
    for (auto [index, column] : llvm::enumerate(columns))
      nodes.push_back(column.begin + row.nodes[index]);
  }
  numRows = names.size();
}

//===----------------------------------------------------------------------===//
// Redundancy
//===----------------------------------------------------------------------===//

/// Whether two of `values` are equal. `set` is room for a hash set.
static bool hasEqual(llvm::ArrayRef<uint64_t> values,
                     std::vector<uint64_t> &set) {
  size_t mask = llvm::PowerOf2Ceil(2 * values.size() + 2) - 1;
  set.assign(mask + 1, 0);
  for (uint64_t value : values) {
    value += value == 0;
    size_t index = value & mask;
    for (; set[index]; index = (index + 1) & mask)
      if (set[index] == value)
        return true;
    set[index] = value;
  }
  return false;
}

/// Products that occur twice, or so it seems.
bool Fingerprinter::hasEqualRows() {
  hashRows();
  return hasEqual(totals, set);
}

/// Whether several products of weights are added at one place.
bool Fingerprinter::hasSums() {
  size_t width = columns.size();
  hashes.assign(names.begin(), names.begin() + numRows);
  for (size_t row = 0; row < numRows; ++row)
    for (size_t column = 0; column < getNumAxes(); ++column)
      hashes[row] += mix(nodes[row * width + column]);
  return hasEqual(hashes, set);
}

void Fingerprinter::hashRows() {
  size_t width = columns.size();
  totals.resize(numRows);
  const uint32_t *row = nodes.data();
  for (size_t index = 0; index < numRows; ++index, row += width) {
    uint64_t hash = names[index];
    for (size_t column = 0; column < width; ++column)
      hash += mix(row[column]);
    totals[index] = hash;
  }
}

/// The elements of a weight that may be in the same places as another one:
/// pairs of a sum over the rows of an element and the element.
void Fingerprinter::findLikeElements(size_t column) {
  size_t width = columns.size();
  uint32_t begin = columns[column].begin;
  uint32_t end = column + 1 < width ? columns[column + 1].begin : numNodes;
  sums.assign(end - begin, 0);
  for (size_t row = 0; row < numRows; ++row) {
    uint32_t node = nodes[row * width + column];
    sums[node - begin] += mix(totals[row] - mix(node));
  }
  likeElements.clear();
  hashes.clear();
  // Elements without rows are none.
  std::copy_if(sums.begin(), sums.end(), std::back_inserter(hashes),
               [](uint64_t sum) { return sum != 0; });
  if (!hasEqual(hashes, set))
    return;
  for (uint32_t element = 0; element < end - begin; ++element)
    if (sums[element])
      likeElements.emplace_back(sums[element], element + begin);
  llvm::sort(likeElements);
}

/// What a row is without one of its nodes.
llvm::SmallVector<uint64_t, ProductRow::maxNodes>
Fingerprinter::getRest(size_t row, size_t column) const {
  size_t width = columns.size();
  llvm::SmallVector<uint64_t, ProductRow::maxNodes> rest = {names[row]};
  for (size_t other = 0; other < width; ++other)
    if (other != column)
      rest.push_back(nodes[row * width + other]);
  return rest;
}

/// Elements of a weight in the same places become one. Equal hashes are only a
/// hint.
bool Fingerprinter::mergeElements(size_t column) {
  findLikeElements(column);
  if (likeElements.empty())
    return false;
  size_t width = columns.size();
  std::vector<std::vector<size_t>> rowsOf(numNodes);
  for (size_t row = 0; row < numRows; ++row)
    rowsOf[nodes[row * width + column]].push_back(row);
  auto getPlaces = [&](uint32_t element) {
    auto places = llvm::map_to_vector(
        rowsOf[element], [&](size_t row) { return getRest(row, column); });
    llvm::sort(places);
    return places;
  };
  std::vector<uint8_t> isGone(numRows, 0);
  bool isChanged = false;
  llvm::SmallVector<uint32_t> keptElements;
  for (size_t i = 0; i < likeElements.size(); ++i) {
    auto [hash, element] = likeElements[i];
    if (i == 0 || hash != likeElements[i - 1].first)
      keptElements.clear();
    if (llvm::none_of(keptElements, [&](uint32_t other) {
          return getPlaces(other) == getPlaces(element);
        })) {
      keptElements.push_back(element);
      continue;
    }
    isChanged = true;
    for (size_t row : rowsOf[element])
      isGone[row] = 1;
  }
  size_t kept = 0;
  for (size_t row = 0; row < numRows; ++row) {
    if (isGone[row])
      continue;
    names[kept] = names[row];
    totals[kept] = totals[row];
    std::copy_n(nodes.begin() + row * width, width,
                nodes.begin() + kept * width);
    ++kept;
  }
  resize(kept);
  return isChanged;
}

void Fingerprinter::resize(size_t rows) {
  numRows = rows;
  names.resize(rows);
  totals.resize(rows);
  nodes.resize(rows * columns.size());
}

/// A weight with one element, or whose element follows from that of another.
bool Fingerprinter::isDetermined(size_t column) {
  size_t width = columns.size();
  bool hasOneElement = true;
  for (size_t row = 1; row < numRows && hasOneElement; ++row)
    hasOneElement = nodes[row * width + column] == nodes[column];
  auto determines = [&](size_t other) {
    uses.assign(numNodes, ~0u);
    for (size_t row = 0; row < numRows; ++row) {
      uint32_t &partner = uses[nodes[row * width + other]];
      uint32_t node = nodes[row * width + column];
      if (partner != ~0u && partner != node)
        return false;
      partner = node;
    }
    return true;
  };
  for (size_t other = getNumAxes(); other < width && !hasOneElement; ++other)
    if (other != column && determines(other))
      return true;
  return hasOneElement;
}

bool Fingerprinter::dropWeight() {
  size_t width = columns.size();
  for (size_t column = getNumAxes(); column < width; ++column) {
    if (!isDetermined(column))
      continue;
    size_t kept = 0;
    for (size_t i = 0; i < nodes.size(); ++i)
      if (i % width != column)
        nodes[kept++] = nodes[i];
    columns.erase(columns.begin() + column);
    resize(numRows);
    hashRows();
    return true;
  }
  return false;
}

/// Takes out redundancy as `ProductTable::reduce` does, as long as each product
/// occurs once; false when that may not be so, or nothing is left to count by.
bool Fingerprinter::reduce() {
  if (numRows == 0 || getNumAxes() == columns.size() || hasEqualRows())
    return false;
  bool isChanged;
  do {
    isChanged = false;
    for (size_t column = getNumAxes(); column < columns.size(); ++column)
      isChanged |= mergeElements(column);
    isChanged |= dropWeight();
  } while (isChanged);
  // Weights whose products are summed may be one.
  size_t numWeights = columns.size() - getNumAxes();
  return numWeights == 1 || (numWeights > 1 && !hasSums());
}

//===----------------------------------------------------------------------===//
// Colours
//===----------------------------------------------------------------------===//

/// Colours rows by their nodes, and adds up what the nodes learn from it.
/// Returns the sum over the rows.
uint64_t Fingerprinter::colorRows(bool isLast) {
  size_t width = columns.size();
  sums.assign(numNodes, 0);
  uint64_t total = 0;
  const uint32_t *row = nodes.data();
  for (size_t index = 0; index < numRows; ++index, row += width) {
    // Weights have no order; axes start with colours of their own.
    uint64_t color = names[index];
    for (size_t column = 0; column < width; ++column)
      color += colors[row[column]];
    color = mix(color);
    total += color;
    if (!isLast)
      for (size_t column = 0; column < width; ++column)
        sums[row[column]] += color;
  }
  return total;
}

void Fingerprinter::colorNodes() {
  for (auto [index, column] : llvm::enumerate(columns)) {
    uint32_t end =
        index + 1 < columns.size() ? columns[index + 1].begin : numNodes;
    // The elements of one weight belong together.
    uint64_t weight = 0;
    for (uint32_t node = column.begin; node < end; ++node) {
      colors[node] = mix(colors[node], sums[node]);
      if (sums[node])
        weight += mix(colors[node]);
    }
    for (uint32_t node = column.begin; column.isWeight && node < end; ++node)
      colors[node] = mix(colors[node], weight);
  }
}

/// The different colours of nodes that the last round came upon.
size_t Fingerprinter::countColors() {
  hashes.clear();
  for (uint32_t node = 0; node < numNodes; ++node)
    if (sums[node])
      hashes.push_back(colors[node]);
  llvm::sort(hashes);
  return std::unique(hashes.begin(), hashes.end()) - hashes.begin();
}

/// Rounds of refinement from the colours as they are.
uint64_t Fingerprinter::refine() {
  size_t numColors = 0;
  for (unsigned round = 0; !options.numRounds || round < options.numRounds;
       ++round) {
    colorRows(/*isLast=*/false);
    colorNodes();
    if (options.numRounds)
      continue;
    size_t before = std::exchange(numColors, countColors());
    if (numColors == before)
      break;
  }
  return mix(mix(numRows, columns.size()), colorRows(/*isLast=*/true));
}

/// The nodes of one colour in a column, of the smallest such class of two or
/// more.
std::vector<uint32_t> Fingerprinter::getSmallestClass(size_t column) const {
  std::vector<uint8_t> isUsed(numNodes, 0);
  for (size_t i = column; i < nodes.size(); i += columns.size())
    isUsed[nodes[i]] = 1;
  std::vector<std::pair<uint64_t, uint32_t>> sorted;
  for (uint32_t node = 0; node < numNodes; ++node)
    if (isUsed[node])
      sorted.emplace_back(colors[node], node);
  return test::getSmallestClass(std::move(sorted));
}

/// What becomes of the colours when one node of a class is unique, for each; by
/// columns.
uint64_t Fingerprinter::individualize() {
  uint64_t total = 0;
  const std::vector<uint64_t> before = colors;
  for (size_t column = 0; column < columns.size(); ++column) {
    uint64_t sum = 0;
    colors = before;
    std::vector<uint32_t> smallest = getSmallestClass(column);
    if (smallest.size() > options.maxClassSize)
      continue;
    for (uint32_t node : smallest) {
      colors = before;
      colors[node] = mix(3, colors[node]);
      sum += mix(refine());
    }
    total += mix(sum);
  }
  return total;
}

size_t Fingerprinter::countRows(const ConcreteOperator &op) {
  tabulate(op, choosePositions(op, options.numPositions));
  return numRows;
}

uint64_t Fingerprinter::compute(const ConcreteOperator &op) {
  std::vector<OutputPosition> places =
      choosePositions(op, options.numPositions);
  tabulate(op, places);
  uint64_t kind = 1;
  if (!reduce()) {
    ++numCounted;
    ProductTable table = makeTable(op);
    table.reduce(/*findsUnknownRanks=*/false);
    assign(table);
    kind = 2 * table.divisor - !table.hasFreeCounts;
  }
  colors.resize(numNodes);
  for (auto [index, column] : llvm::enumerate(columns))
    std::fill(colors.begin() + column.begin, colors.end(),
              mix(2, column.isWeight ? ~0ull : index));
  uint64_t hash = mix(mix(refine(), kind), support);
  return options.maxClassSize ? mix(hash, individualize()) : hash;
}
