//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Mistakes that code generation makes, put into its result: to see which checks
// find them.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_LIB_KERNELMUTATOR_H
#define KAS_TEST_LIB_KERNELMUTATOR_H

#include "kas/Support/Random.h"
#include "mlir/IR/BuiltinOps.h"
#include <optional>
#include <string>

namespace kas::test {

enum class MutationKind {
  /// An address or a sum in one is off by one.
  Index,
  /// A loop, a comparison or a mask takes one value more or less.
  Border,
  /// A factor of an address or of a value is another one.
  Coefficient,
  /// The variables of two nested loops change places.
  LoopOrder,
  /// A term is not added, or what was added before is forgotten.
  Accumulation
};
constexpr unsigned numMutationKinds = 5;
llvm::StringRef toString(MutationKind kind);

/// Makes one mistake of this kind in `code`, which has loops, buffers and
/// vectors, at a place that `random` chooses. Returns what was done to which
/// op; nothing if there is no place for it.
std::optional<std::string> mutateKernel(mlir::Operation *code,
                                        MutationKind kind, Random &random);

} // namespace kas::test

#endif // KAS_TEST_LIB_KERNELMUTATOR_H
