//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An operator with numbers for all sizes, as plain data: what the oracle of
// sameness looks at. It shares nothing with the search but the problem.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_LIB_SAMENESSOPERATOR_H
#define KAS_TEST_LIB_SAMENESSOPERATOR_H

#include "kas/Search/Operators/OperatorGraph.h"
#include "llvm/Support/MathExtras.h"

namespace kas::test {

/// A coordinate: a function of the loops. Operands come before their users.
struct ConcreteCoord {
  enum Kind : uint8_t {
    Loop,
    /// `first / parameter`.
    Quotient,
    /// `first mod parameter`.
    Remainder,
    /// `first * size of second + second`.
    Split,
    /// `(first + parameter) mod size`.
    Shift,
    /// `first + second - parameter`; points where it leaves [0, size) do not
    /// exist.
    Unfold,
    /// `(first + second - parameter) mod size`.
    CyclicUnfold,
    /// `first * parameter`.
    Stride
  };
  Kind kind = Loop;
  int64_t size = 1;
  unsigned first = 0, second = 0;
  int64_t parameter = 0;
};

/// Sets the value of `coords[index]`, which is no loop or has its value
/// already, from those of its operands; false where the point does not exist.
inline bool setValue(llvm::ArrayRef<ConcreteCoord> coords, unsigned index,
                     llvm::MutableArrayRef<int64_t> values) {
  const ConcreteCoord &coord = coords[index];
  int64_t first = values[coord.first];
  int64_t &value = values[index];
  switch (coord.kind) {
  case ConcreteCoord::Loop:
    break;
  case ConcreteCoord::Quotient:
    value = first / coord.parameter;
    break;
  case ConcreteCoord::Remainder:
    value = first % coord.parameter;
    break;
  case ConcreteCoord::Split:
    value = first * coords[coord.second].size + values[coord.second];
    break;
  case ConcreteCoord::Shift:
    value = llvm::mod(first + coord.parameter, coord.size);
    break;
  case ConcreteCoord::Unfold:
    value = first + values[coord.second] - coord.parameter;
    return value >= 0 && value < coord.size;
  case ConcreteCoord::CyclicUnfold:
    value =
        llvm::mod(first + values[coord.second] - coord.parameter, coord.size);
    break;
  case ConcreteCoord::Stride:
    value = first * coord.parameter;
    break;
  }
  return true;
}

/// A dimension of the output or the input.
struct ConcreteAxis {
  int64_t size = 1;
  bool isUnordered = false;
};

/// An operator that is linear in the data and in each weight, at one binding.
struct ConcreteOperator {
  /// The outputs come first; every other `Loop` is a reduction.
  std::vector<ConcreteCoord> coords;
  llvm::SmallVector<ConcreteAxis, 4> outputs, inputs;
  /// Indices into `coords`.
  llvm::SmallVector<unsigned, 4> data;
  std::vector<llvm::SmallVector<unsigned, 6>> weights;
  /// The result is divided by it: the points of the means.
  int64_t divisor = 1;
};

/// `op` at `binding`, which must be legal for it. An operator with `max` has no
/// table of products: nothing.
std::optional<ConcreteOperator> makeConcrete(OperatorOp op,
                                             const Binding &binding);

/// A solution of `problem` at `binding`.
ConcreteOperator makeConcrete(const search::SearchProblem &problem,
                              const search::OperatorGraph &graph,
                              const Binding &binding);

} // namespace kas::test

#endif // KAS_TEST_LIB_SAMENESSOPERATOR_H
