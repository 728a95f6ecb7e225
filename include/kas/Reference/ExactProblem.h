//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sums of products as polynomials in the elements of their tensors: degrees,
// numbers of terms, and values by the reference evaluator.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_REFERENCE_EXACTPROBLEM_H
#define KAS_REFERENCE_EXACTPROBLEM_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <string>
#include <vector>

namespace kas::reference {

/// The elements of one tensor, row-major.
using TensorValues = std::vector<float>;

/// A function of tensors each of whose results is, for integers as elements, a
/// sum of products of them divided by an integer, or a maximum of such sums.
struct ExactProblem {
  struct Input {
    std::string name;
    llvm::SmallVector<int64_t> shape;
    /// The largest degree of the results in the elements of this tensor.
    unsigned degree = 0;
  };
  struct Result {
    llvm::SmallVector<int64_t> shape;
    /// The product of the sizes of all means: times this, results are integers
    /// for integers as elements.
    double divisor = 1;
  };

  llvm::SmallVector<Input> inputs;
  llvm::SmallVector<Result> results;
  /// How many products one element of a result sums up at most.
  double numTerms = 1;
  /// How often a compiled program may divide or multiply by a factor on the way
  /// from an input to a result.
  unsigned numScalings = 0;
  /// Of how many values maxima are taken; more than 1: results are no
  /// polynomials.
  double maximumSize = 1;
  /// Whether a compiled program may keep sums or products between loop nests:
  /// the results of stages, products of weights.
  bool hasIntermediates = false;
  /// Evaluates all results, of whose sizes the vectors are, by the reference.
  std::function<llvm::Error(llvm::ArrayRef<TensorValues> inputs,
                            llvm::MutableArrayRef<TensorValues> results)>
      evaluate;

  /// The sum over all inputs: results of these degrees in each have no higher
  /// one.
  unsigned getDegree() const;
  /// The largest divisor of a result.
  double getDivisor() const;
};

/// The concrete operator `op`, which must live as long as the result: inputs
/// are the data and the weights.
ExactProblem getExactProblem(OperatorOp op);

/// The function `name` of `module`, on static tensors of f32, of which the
/// result has a copy. Error: it computes with something else than `kas.apply`,
/// or takes or returns something else.
llvm::Expected<ExactProblem> getExactProblem(mlir::ModuleOp module,
                                             llvm::StringRef name);

} // namespace kas::reference

#endif // KAS_REFERENCE_EXACTPROBLEM_H
