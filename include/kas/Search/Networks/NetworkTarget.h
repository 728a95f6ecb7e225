//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `-kas-search=network=@f`: transformations of a network.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_NETWORKS_NETWORKTARGET_H
#define KAS_SEARCH_NETWORKS_NETWORKTARGET_H

namespace kas::search {

/// Lets `makeNetworkTarget` make one. Evaluators are `flops`, `params`,
/// `fisher`, which gives the Fisher Potential summed over the layers that are
/// transformed and `fisher_ratio`, that over the same sum of the network as it
/// was, `latency` and `external`.
void registerNetworkSearch();

} // namespace kas::search

#endif // KAS_SEARCH_NETWORKS_NETWORKTARGET_H
