//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Operators of a search, compiled and timed in this process.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TOOLS_OPERATORTIMES_H
#define KAS_TOOLS_OPERATORTIMES_H

#include "TimedFunction.h"
#include "kas/Search/Operators/OperatorGraph.h"

namespace kas {

/// An operator at one binding, ready to run on one thread, its weights
/// prepacked as a network's are.
llvm::Expected<TimedFunction>
compileOperator(mlir::MLIRContext &context,
                const search::SearchProblem &problem,
                const search::OperatorGraph &graph, const Binding &binding);

/// An operator, and the number of a binding of its problem.
struct OperatorAtBinding {
  std::shared_ptr<const search::OperatorGraph> graph;
  unsigned binding = 0;
};

/// The least milliseconds that each took. They are compiled on all cores, then
/// run in turn on one, so that what slows the machine down for a while slows
/// all of them. 0 for one that does not compile.
std::vector<double> timeOperators(mlir::MLIRContext &context,
                                  const search::SearchProblem &problem,
                                  llvm::ArrayRef<OperatorAtBinding> all);

/// The floating-point operations of each with no zero of a padding; 0 for one
/// that has no concrete form.
std::vector<int64_t> countExistingFlops(mlir::MLIRContext &context,
                                        const search::SearchProblem &problem,
                                        llvm::ArrayRef<OperatorAtBinding> all);

/// `count` operators of a problem at random, each as likely where the space can
/// be listed in `expansions` states; fewer where there are fewer.
std::vector<std::shared_ptr<const search::OperatorGraph>>
sampleOperators(std::shared_ptr<const search::SearchProblem> problem,
                unsigned count, uint64_t seed, uint64_t expansions = 2000000);

} // namespace kas

#endif // KAS_TOOLS_OPERATORTIMES_H
