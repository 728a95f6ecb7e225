//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is known of the symbols that the sizes of a tensor-level kernel are made
// of: which are free variables, which divide which, and their values at the
// layers. Decides whether a size can occur in a kernel, and lists its factors.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SOLVER_SIZERULES_H
#define KAS_SOLVER_SIZERULES_H

#include "kas/Support/Size.h"
#include "llvm/Support/Error.h"

namespace kas::solver {

/// A value for a free variable.
struct Substitution {
  unsigned variable = 0;
  /// Does not contain a variable that is substituted as well.
  Size value;

  bool operator==(const Substitution &other) const = default;
};

/// `size` with every substitution made at once, or nothing when the result does
/// not fit.
std::optional<Size> substitute(const Size &size,
                               llvm::ArrayRef<Substitution> substitutions);

struct SizeRules {
  /// The value of symbol `multiple` is a whole multiple of that of `divisor`
  /// (an integer constant and non-negative exponents).
  struct Divides {
    Size divisor;
    unsigned multiple = 0;
  };

  /// Sizes hold symbols 0 to `numSymbols` - 1.
  unsigned numSymbols = 0;
  /// The symbols that are free: each may become any integer of at least 1 that
  /// keeps all sizes integers.
  llvm::SmallVector<unsigned, 4> variables;
  llvm::SmallVector<Divides, 2> facts;
  /// One value per symbol and layer; those of variables do not count. May be
  /// empty: what the facts prove then decides.
  llvm::SmallVector<Binding, 0> bindings;

  /// Reports positions out of range, facts that go in circles, that hold a
  /// variable or that a binding contradicts, and bindings that are too short.
  llvm::Error check() const;

  bool isVariable(unsigned symbol) const {
    return llvm::is_contained(variables, symbol);
  }
  bool hasVariable(const Size &size) const;

  /// Some values of the variables make `size` an integer at every layer, as far
  /// as this size alone goes. Without variables: it is an integer at every
  /// binding or, where there are none, the facts prove it.
  bool isLegal(const Size &size) const;

  /// The factors of the numerator of `size`: products of its symbols, of the
  /// divisors of its constant, and, for each copy of a symbol, of the divisor
  /// and the quotient of a fact about it. With G dividing C, those of C are 1,
  /// G, C/G and C. Sorted, without duplicates; factors that do not fit are left
  /// out.
  llvm::SmallVector<Size> factors(const Size &size) const;

private:
  bool isProvenInteger(const Size &size) const;
  llvm::SmallVector<Size> factorsOfSymbol(unsigned symbol) const;
};

/// The shape of a tensor: channel dimensions before spatial ones.
struct TensorShape {
  llvm::SmallVector<Size, 6> dims;
  unsigned numChannelDims = 0;
};

/// The clauses of Theorem 1 of the Canvas paper (section 6.2), in its order.
enum class TheoremClause : uint8_t {
  /// 1: no variable in a spatial dimension.
  SpatialVariable = 1,
  /// 2: no variable in the denominator of a channel dimension.
  VariableInDenominator,
  /// 3: at most one variable, to the first power, in a channel dimension.
  SeveralInDim,
  /// 4: at most one variable across all dimensions.
  SeveralInTensor
};

struct TheoremViolation {
  TheoremClause clause;
  /// The dimension at which it shows.
  unsigned dim = 0;
};

/// The first clause of Theorem 1 that `shape` breaks: the clauses in order, and
/// for each the dimensions in order.
std::optional<TheoremViolation> findTheoremViolation(const TensorShape &shape,
                                                     const SizeRules &rules);

/// The numbers of groups that all layers with these channel numbers (at least
/// one; each at least 1) can share: the factors from 2 on of their greatest
/// common divisor, ascending, or 1 alone when that is 1 (Canvas, section 6.3).
llvm::SmallVector<int64_t> groupCandidates(llvm::ArrayRef<int64_t> channels);

} // namespace kas::solver

#endif // KAS_SOLVER_SIZERULES_H
