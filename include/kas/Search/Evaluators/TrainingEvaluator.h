//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Trains the network with each candidate.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_EVALUATORS_TRAININGEVALUATOR_H
#define KAS_SEARCH_EVALUATORS_TRAININGEVALUATOR_H

#include "kas/Search/Evaluators/Evaluators.h"

namespace kas::search {

/// The metrics `accuracy`, on the examples for validation, `loss` there,
/// `epochs` after which that was, and `accuracy_R` for each rung R that was
/// reached: of the network around the space, with the operator in the layers of
/// the space that it fits, trained by `kas-train --worker` with the options
/// `settings.training`. `settings.rungs` decide who is trained to the end (see
/// Halving.h). The network is the module that has `settings.space`; `kas-train`
/// is the one beside the running executable, else on the path. The same
/// candidate after the same others has the same metrics on the same machine.
llvm::Expected<std::unique_ptr<Evaluator>>
makeTrainingEvaluator(const EvaluatorSettings &settings);

} // namespace kas::search

#endif // KAS_SEARCH_EVALUATORS_TRAININGEVALUATOR_H
