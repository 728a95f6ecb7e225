//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a search for operators compares its candidates with.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_PASS_BASELINES_H
#define KAS_SEARCH_PASS_BASELINES_H

#include "kas/Search/Evaluators/Evaluators.h"

namespace kas::search {

/// The network that `layers` were extracted from, by the operator that the
/// space names, then those of `names`: `x` or `@x`, an operator or a sequence
/// of the module, or `kas.x`, an operator of the library. `settings` are those
/// of the candidates' evaluators; what they point to must outlive the
/// baselines. Reports names of nothing, and what does not fit the layers.
mlir::FailureOr<std::vector<Baseline>>
makeBaselines(SpaceOp layers, llvm::ArrayRef<std::string> names,
              const EvaluatorSettings &settings);

} // namespace kas::search

#endif // KAS_SEARCH_PASS_BASELINES_H
