//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The sampler of kernels as a problem of the search library.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_KERNELS_KERNELSTATE_H
#define KAS_SEARCH_KERNELS_KERNELSTATE_H

#include "kas/Search/Kernels/KernelGraph.h"

namespace kas::search {

/// The empty kernel of `problem`. The first move chooses the number of
/// primitives, the last one the number of groups where it is open; the others
/// add one primitive each (Canvas, section 6.1). Whatever Canvas checks of a
/// complete kernel and throws it away for is a condition of the moves: steps
/// that are left for merges, for neighbours along every spatial dimension and
/// for weights, sizes that are integers, budgets of FLOPs and parameters at the
/// least values. docs/internals/tensor-level.md has the rules. Solutions are
/// `KernelGraph`s.
std::unique_ptr<State>
makeKernelState(std::shared_ptr<const KernelProblem> problem);

} // namespace kas::search

#endif // KAS_SEARCH_KERNELS_KERNELSTATE_H
