//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every kernel of a small space of the tensor level: in any order every step on
// every tensor in every way. Independent of the sampler, whose enumeration is
// compared with it: it has neither its sizes, nor its order, nor its limits on
// what can still be completed; shapes are matched by `matchShapes`.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_LIB_KERNELBRUTEFORCE_H
#define KAS_TEST_LIB_KERNELBRUTEFORCE_H

#include "kas/Search/Kernels/KernelGraph.h"

namespace kas::test {

/// Calls `visit` for every complete kernel of `problem`, once for each order in
/// which it can be made. Takes `fc group group_all shift unfold scale norm
/// mix`, the functions, folds, `softmax` and merges, with one spatial dimension
/// and one window. Dilations are 1 and shifts by 1, budgets and limits on
/// elements are absent. What docs/internals/tensor-level.md leaves out of the
/// space is left out here, too.
///
/// A visited kernel has steps, operands, parameters and shapes; its costs and
/// its hash are not set.
void enumerateKernelsByBruteForce(
    std::shared_ptr<const search::KernelProblem> problem,
    llvm::function_ref<void(const search::KernelGraph &)> visit);

} // namespace kas::test

#endif // KAS_TEST_LIB_KERNELBRUTEFORCE_H
