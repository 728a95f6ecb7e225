//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which integers are so small that nothing rounds.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_REFERENCE_EXACTDESIGN_H
#define LIB_REFERENCE_EXACTDESIGN_H

#include "kas/Reference/ExactCheck.h"

namespace kas::reference {

/// Whether results are divided by more than a power of two.
bool roundsQuotients(const ExactProblem &problem);

/// What may be tried, the one with the best bound first. Those with a density
/// of 1 have sums that fit whatever is drawn, but for results that are rounded
/// to less than sums.
std::vector<ExactDesign> getDesigns(const ExactProblem &problem,
                                    const ExactFormat &format);

/// The bound for one draw, if there is one below 1.
std::optional<double> getMissBound(const ExactProblem &problem,
                                   const ExactDesign &design);

/// Values for all inputs, from stream number `stream` of `seed`.
std::vector<TensorValues> drawInputs(const ExactProblem &problem,
                                     const ExactDesign &design, uint64_t seed,
                                     uint64_t stream);

/// What would have to hold for `draw`, evaluated by the reference, so that no
/// result rounds; empty: nothing does.
llvm::Expected<std::string> findRounding(const ExactProblem &problem,
                                         const ExactDesign &design,
                                         const ExactFormat &format,
                                         const ExactCheck::Draw &draw);

} // namespace kas::reference

#endif // LIB_REFERENCE_EXACTDESIGN_H
