//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which of some operators is the fastest.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TOOLS_OPERATORRACE_H
#define KAS_TOOLS_OPERATORRACE_H

#include "OperatorTimes.h"
#include <optional>

namespace kas {

/// Measures operators of one problem at one binding after the other, and no
/// further than until they cannot be the fastest any more: what was measured,
/// and their FLOPs at the peak of the machine at the other bindings, is more
/// than the fastest so far takes.
class OperatorRace {
public:
  using Graph = std::shared_ptr<const search::OperatorGraph>;

  /// `peak`: of one core, GFLOP/s. `order`: the numbers of all bindings, those
  /// that take the longest first.
  OperatorRace(mlir::MLIRContext &context,
               std::shared_ptr<const search::SearchProblem> problem,
               double peak, llvm::ArrayRef<unsigned> order);

  /// Some more of them. Those that do not compile are left out.
  void run(llvm::ArrayRef<Graph> graphs);

  struct Winner {
    Graph graph;
    /// Over all bindings, times their multiplicities.
    double milliseconds = 0;
  };
  /// Nothing when none compiles.
  const std::optional<Winner> &getWinner() const { return winner; }
  /// How many were measured at all bindings, and at how many all together.
  size_t getNumFinished() const { return numFinished; }
  size_t getNumMeasured() const { return numMeasured; }

private:
  /// One that is still in, with the time so far, and the least that is to come.
  struct Runner {
    Graph graph;
    double milliseconds = 0, rest = 0;
    /// By binding, all layers of it.
    llvm::SmallVector<double, 8> leasts;
  };
  std::vector<Runner> makeRunners(llvm::ArrayRef<Graph> graphs);
  void measure(std::vector<Runner> &runners, unsigned binding);

  mlir::MLIRContext &context;
  std::shared_ptr<const search::SearchProblem> problem;
  double peak;
  llvm::SmallVector<unsigned, 8> order;
  std::optional<Winner> winner;
  size_t numFinished = 0, numMeasured = 0;
};

} // namespace kas

#endif // KAS_TOOLS_OPERATORRACE_H
