//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random sequences of operators for tests: one after the other and parallel,
// with what fields need (windows with gaps and cyclic ones, mixing along an
// axis by position, at low rank, by distance or by cyclic distance) in their
// stages.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_LIB_RANDOMSEQUENCE_H
#define KAS_TEST_LIB_RANDOMSEQUENCE_H

#include "kas/Dialect/Kas/IR/KasSequenceOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace kas::test {

/// What an operator of a random sequence does along an axis.
enum class AxisPart {
  Nothing,
  Window,
  CausalWindow,
  WindowWithGaps,
  CyclicWindow,
  ByDistance,
  ByCyclicDistance,
  ByPosition,
  AtLowRank,
  Shift
};
inline constexpr unsigned numAxisParts = unsigned(AxisPart::Shift) + 1;

struct RandomSequenceOptions {
  /// Groups of parallel operators one after the other, and operators of one.
  unsigned maxGroups = 3, maxParallel = 3;
  /// Normalizations among the steps.
  bool normalizes = false;
};

/// A sequence in a module of its own, and a binding of all symbols.
struct RandomSequence {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  SequenceOp op;
  BindingAttr binding;
  /// Of all operators along both axes.
  std::vector<AxisPart> parts;
};

/// The sequence number `seed`: the same one on every machine. Its data has the
/// sizes [N, C, H, W].
RandomSequence makeRandomSequence(mlir::MLIRContext *context, uint64_t seed,
                                  const RandomSequenceOptions &options = {});

} // namespace kas::test

#endif // KAS_TEST_LIB_RANDOMSEQUENCE_H
