//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Zero-cost proxies as evaluators of the operator search: `fisher` and
// `proxy=NAME` for the names of `getProxyNames`.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_EVALUATORS_PROXYEVALUATOR_H
#define KAS_SEARCH_EVALUATORS_PROXYEVALUATOR_H

#include "kas/Search/Evaluators/Evaluators.h"

namespace kas::search {

/// Lets `makeEvaluator` know them. They take the network `@forward` of the
/// module of the settings, whose layers of the space `kas-extract` has marked,
/// run it once on random labels and weights, and score a candidate in the place
/// of each of these layers by itself (`LayerScorer`): the sum over the layers;
/// of `ensemble` and `naswot` the mean. More is meant to be better.
void registerProxyEvaluators();

} // namespace kas::search

#endif // KAS_SEARCH_EVALUATORS_PROXYEVALUATOR_H
