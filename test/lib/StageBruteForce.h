//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The cheapest stages of an operator, by trying all.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_LIB_STAGEBRUTEFORCE_H
#define KAS_TEST_LIB_STAGEBRUTEFORCE_H

#include "kas/Schedule/StagePlan.h"
#include <tuple>

namespace kas::test {

/// The least (multiply-adds and what counts as such, traffic, stages) over
/// every tree of the data and the weights, every set of reductions at each of
/// its nodes and every place to cut. For graphs without `hasNestedWeights`.
std::tuple<uint64_t, uint64_t, unsigned>
findLeastStages(const schedule::StageGraph &graph, schedule::StageCost cost,
                uint64_t elementTraffic = 0);

/// Whether a coordinate of a weight is an operand of a primitive from which
/// only weights are reached: not every weight can take the place of the data
/// in a stage then, and only the smallest results are tried.
bool hasNestedWeights(const schedule::StageGraph &graph);

} // namespace kas::test

#endif // KAS_TEST_LIB_STAGEBRUTEFORCE_H
