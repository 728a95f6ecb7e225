//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random operators for tests: valid by construction, small at their binding,
// and full of the combinations in which lowerings and rewrites go wrong.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_LIB_RANDOMOPERATOR_H
#define KAS_TEST_LIB_RANDOMOPERATOR_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/IR/Builders.h"

namespace kas::test {

struct RandomOperatorOptions {
  unsigned maxPrimitives = 14;
  unsigned maxWeights = 3;
  /// Largest number of points of the iteration space, and of elements of any
  /// tensor.
  int64_t maxPoints = 3000;
  /// Largest size of an output coordinate; two thirds of it for a reduction.
  /// At least 12; the values of the primary symbols grow with it.
  int64_t maxExtent = 12;
  /// How many of 100 steps make several primitives that a rule of
  /// kas-canonicalize may simplify, where single ones rarely come to it.
  unsigned redexPercent = 0;
  /// How many of 100 windows look back (`causal`); the others have any lower
  /// padding.
  unsigned causalPercent = 0;
};

/// An operator and a binding of its symbols at which it is legal.
struct RandomOperator {
  OperatorOp op;
  Binding binding;
};

/// Makes the operator number `seed`, called `name`, at the builder's insertion
/// point. It has symbolic sizes (also coefficients in denominators), any of the
/// primitives and reductions, windows with every kind of lower padding, shifts
/// of both signs, weights that share coordinates or take them directly, and may
/// have no output coordinates at all. The same seed gives the same operator on
/// every machine.
RandomOperator makeRandomOperator(mlir::OpBuilder &builder,
                                  llvm::StringRef name, uint64_t seed,
                                  const RandomOperatorOptions &options = {});

} // namespace kas::test

#endif // KAS_TEST_LIB_RANDOMOPERATOR_H
