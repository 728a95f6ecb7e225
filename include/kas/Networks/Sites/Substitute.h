//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Other operators in models: replaces marked layers by `kas.apply`, or by a
// sequence of operators.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_NETWORKS_SITES_SUBSTITUTE_H
#define KAS_NETWORKS_SITES_SUBSTITUTE_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/IR/BuiltinOps.h"

namespace kas::networks {

struct SubstituteOptions {
  /// `x` or `@x`: a `kas.operator` or a `kas.sequence` of the module; `kas.x`:
  /// an operator of the library. Empty: for each layer the one that its space
  /// names as `kas.named_operator`; where it names none, one that computes what
  /// the layer computes and that is written for it.
  std::string operatorName;
  /// Values for symbols of the operator, before those of the layer's binding;
  /// null for none.
  BindingAttr binding;
  /// `s` or `@s`: the layers of this space only. Empty: all.
  std::string space;
  /// Only the layers of these names, as `kas-extract` has marked them. None:
  /// all.
  llvm::SmallVector<std::string> layers;
  /// Keep the weights of the layers, where the operator has the same ones but
  /// for the order of dimensions.
  bool sameWeights = false;
};

struct SubstituteResult {
  unsigned numReplaced = 0;
  /// Layers the operator does not fit; each gets a remark with the reason.
  unsigned numLeft = 0;
};

/// Replaces the layers of `module` that `extractSpaces` has marked and that the
/// operator fits. Fails, with diagnostics, when the options name nothing that
/// is there or a mark is malformed; the module is unchanged then.
mlir::FailureOr<SubstituteResult> substitute(mlir::ModuleOp module,
                                             const SubstituteOptions &options);

/// Moves the ops of `operators`, whose last one is a `kas.operator` or a
/// `kas.sequence`, to the end of `module`, under names that it does not have
/// yet: an operator may be called as a function or a space of a network is. The
/// name of the last one there. Fails where an op is no symbol, or there is
/// none.
mlir::FailureOr<llvm::StringRef> takeOperators(mlir::ModuleOp module,
                                               mlir::ModuleOp operators);

} // namespace kas::networks

#endif // KAS_NETWORKS_SITES_SUBSTITUTE_H
