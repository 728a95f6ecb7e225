//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operators that people wrote, in the form in which a search makes its own: so
// evaluators take both.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_OPERATORS_READOPERATOR_H
#define KAS_SEARCH_OPERATORS_READOPERATOR_H

#include "kas/Search/Operators/SequenceProblem.h"

namespace kas::search {

struct GivenOperator {
  /// That of the layers with the signature of the operator.
  std::shared_ptr<const SearchProblem> problem;
  std::shared_ptr<const OperatorGraph> graph;
};

/// Reads `op`, which must be valid, as an operator for `layers`; limits and
/// budget do not matter. Errors: a symbol that the layers do not have, other
/// shapes than theirs at a binding, and what no graph has: reductions other
/// than sums, windows that are not centred, and more than 64 coordinates or 14
/// reductions and weights.
llvm::Expected<GivenOperator> readOperator(OperatorOp op,
                                           const SearchProblem &layers);

/// The same at one legal binding of its own symbols, without layers.
llvm::Expected<GivenOperator> readOperator(OperatorOp op,
                                           const Binding &binding);

struct GivenSequence {
  /// With the operators of the sequence as its stages, and its steps.
  std::shared_ptr<const SequenceProblem> problem;
  std::shared_ptr<const Solution> solution;
};

/// The same for a sequence of such operators, of which none are joined.
llvm::Expected<GivenSequence> readSequence(SequenceOp op,
                                           const SearchProblem &layers);

} // namespace kas::search

#endif // KAS_SEARCH_OPERATORS_READOPERATOR_H
