//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How a contraction is cut: the tiles that take the least time by the cost
// model.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_CPU_STRATEGY_CONTRACTIONCHOICE_H
#define LIB_CODEGEN_CPU_STRATEGY_CONTRACTIONCHOICE_H

#include "ContractionTarget.h"
#include "StridedContraction.h"

namespace kas::codegen {

struct ContractionChoice {
  schedule::TileChoice tiles;
  /// 1: no parallel loop, 0: unknown.
  int64_t threads = 0;
  /// Whether the tiles compute the epilogue of the options with the sums.
  bool takesEpilogue = false;
};

/// The tiles that take the least time, unless the options name them; or why
/// none suit. The scalar inputs have been combined.
mlir::FailureOr<ContractionChoice>
chooseContraction(const StridedContraction &contraction,
                  const ContractionTarget &target,
                  const ContractionOptions &options,
                  llvm::function_ref<void(const llvm::Twine &)> emitReason);

/// The time that the choice goes by before it is known how many threads share
/// it, in halves of a cycle; nothing where there is none.
std::optional<int64_t> getContractionTime(const StridedContraction &contraction,
                                          const ContractionOptions &options);

} // namespace kas::codegen

#endif // LIB_CODEGEN_CPU_STRATEGY_CONTRACTIONCHOICE_H
