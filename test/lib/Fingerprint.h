//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A number that the same operators share, made fast enough for millions of
// them: operators whose fingerprints differ are proven different.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_LIB_FINGERPRINT_H
#define KAS_TEST_LIB_FINGERPRINT_H

#include "SamenessTable.h"
#include "llvm/ADT/STLExtras.h"

namespace kas::test {

/// `count` positions of the output, the same for all operators of one space:
/// one in the middle, a corner, the neighbors of the first, others. None, which
/// stands for all, when it is 0.
std::vector<OutputPosition> choosePositions(const ConcreteOperator &op,
                                            unsigned count);

/// How much of an operator a fingerprint looks at.
struct FingerprintOptions {
  /// Positions of the output (`choosePositions`); all of them when 0.
  unsigned numPositions = 0;
  /// Of the positions of the data that occur beside each of these, the middle
  /// one, the first and the last: up to 3; all of them when 0.
  unsigned numSlices = 0;
  /// Rounds of colour refinement; as many as make more colours when 0.
  unsigned numRounds = 3;
  /// In each column whose smallest class of one colour has no more nodes than
  /// this, these are distinguished, one at a time.
  unsigned maxClassSize = 0;
};

/// Computes fingerprints; keeps its buffers from one operator to the next.
///
/// A fingerprint is a hash of a part of the reduced table of products: of its
/// rows after some rounds of colour refinement, which names neither points on
/// unordered axes nor weights nor their elements; also of what becomes of the
/// colours when one node of a class that is still together is distinguished. So
/// two operators that are the same have the same one. Those that differ may
/// share it: because of what is left out, because refinement cannot tell them
/// apart, or by accident.
///
/// Reducing a part of a table gives the same whether or not the whole was
/// reduced before (docs/internals/rationale/sameness.md, "Fingerprints"), so
/// rows elsewhere are never made.
class Fingerprinter {
public:
  explicit Fingerprinter(const FingerprintOptions &options)
      : options(options) {}

  uint64_t compute(const ConcreteOperator &op);
  /// How many products it would look at.
  size_t countRows(const ConcreteOperator &op);

  /// How many operators had products that occur more than once, or no weight.
  size_t getNumCounted() const { return numCounted; }

private:
  struct Column {
    /// The number of its first node.
    uint32_t begin = 0;
    bool isWeight = false;
  };

  void tabulate(const ConcreteOperator &op,
                llvm::ArrayRef<OutputPosition> places);
  template <typename Walk>
  void chooseSlices(const Walk &walk);
  ProductTable makeTable(const ConcreteOperator &op) const;
  void assign(const ProductTable &table);
  void addColumn(size_t size, bool isWeight);
  /// The weights' columns come after those of the unordered axes.
  size_t getNumAxes() const {
    return llvm::count_if(columns,
                          [](auto &column) { return !column.isWeight; });
  }
  bool reduce();
  bool hasEqualRows();
  bool hasSums();
  void hashRows();
  void findLikeElements(size_t column);
  bool mergeElements(size_t column);
  bool isDetermined(size_t column);
  bool dropWeight();
  void resize(size_t rows);
  llvm::SmallVector<uint64_t, ProductRow::maxNodes>
  getRest(size_t row, size_t column) const;
  uint64_t refine();
  size_t countColors();
  std::vector<uint32_t> getSmallestClass(size_t column) const;
  uint64_t individualize();
  uint64_t colorRows(bool isLast);
  void colorNodes();

  const FingerprintOptions options;
  size_t numCounted = 0;

  llvm::SmallVector<Column, ProductRow::maxNodes> columns;
  uint32_t numNodes = 0;
  size_t numRows = 0;
  /// The places of output and data that are looked at, and a hash of those that
  /// occur.
  llvm::SmallVector<uint64_t, 8> slices;
  uint64_t support = 0;
  /// Positions of the data on its ordered axes.
  uint64_t numInputs = 1;
  /// By row: a hash of what has a name (place and count); its nodes.
  std::vector<uint64_t> names;
  /// By row: the sum of its name and of hashes of its nodes.
  std::vector<uint64_t> totals;
  std::vector<uint32_t> nodes;
  /// By node: its colour, what its rows add to it, the rows that have it.
  std::vector<uint64_t> colors, sums;
  std::vector<uint32_t> uses;
  /// Hashes, and room for a set of them.
  std::vector<uint64_t> hashes, set;
  std::vector<std::pair<uint64_t, uint32_t>> likeElements;
};

} // namespace kas::test

#endif // KAS_TEST_LIB_FINGERPRINT_H
