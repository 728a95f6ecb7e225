//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The oracle of sameness: decides whether two operators are the same, at sizes
// so small that their products can be listed.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_LIB_SAMENESS_H
#define KAS_TEST_LIB_SAMENESS_H

#include "SamenessTable.h"
#include <unordered_map>

namespace kas::test {

/// A hash of a reduced table that is equal for equal ones, whatever the names
/// of the points on unordered axes and of weight elements, and the order of
/// weights. Tables that differ may share it: by accident, or because colour
/// refinement cannot tell them apart.
uint64_t hashTable(const ProductTable &table);

/// Whether two reduced tables are equal up to a bijection of the elements of
/// each weight, the order of weights, and a permutation of each unordered axis.
/// Exact: a bijection is found and checked row by row, or all are ruled out.
/// When that takes more than some ten thousand refinements, a fatal error.
bool areEqual(const ProductTable &a, const ProductTable &b);

/// An operator at each of a few bindings.
using ConcreteOperators = std::vector<ConcreteOperator>;

/// Whether two operators are the same at every one of their bindings.
bool areSame(const ConcreteOperators &a, const ConcreteOperators &b);

/// Sorts operators into classes of the same ones.
class SamenessClasses {
public:
  /// The number of the class of `op`, and whether it is a new one. All
  /// operators must have the same axes.
  std::pair<unsigned, bool> insert(ConcreteOperators op);
  /// The number of the class of `op`, if there is one.
  std::optional<unsigned> find(const ConcreteOperators &op) const;

  size_t size() const { return members.size(); }
  /// Whether it is not known that the operators of a class differ from those of
  /// others (`ProductTable::hasUnknownRank`).
  bool isUnknown(unsigned index) const { return areUnknown[index]; }
  /// How many weights are left of the operators of a class when redundancy is
  /// taken out.
  unsigned getNumWeights(unsigned index) const { return numWeights[index]; }

private:
  using Tables = std::vector<ProductTable>;
  std::optional<unsigned> find(const Tables &tables, uint64_t hash) const;

  /// The first operator of each class. Its tables are kept while there is room,
  /// else made again when they are compared.
  std::vector<std::pair<ConcreteOperators, Tables>> members;
  std::vector<unsigned> numWeights;
  std::vector<bool> areUnknown;
  size_t numRows = 0;
  std::unordered_map<uint64_t, llvm::SmallVector<unsigned, 1>> buckets;
};

} // namespace kas::test

#endif // KAS_TEST_LIB_SAMENESS_H
