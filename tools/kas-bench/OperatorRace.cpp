//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OperatorRace.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace kas;
using namespace kas::search;

OperatorRace::OperatorRace(mlir::MLIRContext &context,
                           std::shared_ptr<const SearchProblem> problem,
                           double peak, llvm::ArrayRef<unsigned> order)
    : context(context), problem(std::move(problem)), peak(peak), order(order) {}

/// Noise only makes runs longer; what is slower by less stays in.
static constexpr double margin = 1.05;

std::vector<OperatorRace::Runner>
OperatorRace::makeRunners(llvm::ArrayRef<Graph> graphs) {
  std::vector<OperatorAtBinding> all;
  for (const Graph &graph : graphs)
    for (unsigned binding : llvm::seq<unsigned>(0, order.size()))
      all.push_back({graph, binding});
  std::vector<int64_t> flops = countExistingFlops(context, *problem, all);
  std::vector<Runner> runners;
  for (auto [index, graph] : llvm::enumerate(graphs)) {
    Runner &runner = runners.emplace_back();
    runner.graph = graph;
    for (unsigned binding : llvm::seq<unsigned>(0, order.size())) {
      auto total = static_cast<double>(flops[index * order.size() + binding]) *
                   static_cast<double>(problem->multiplicities[binding]);
      runner.leasts.push_back(total / peak * 1e-6);
      runner.rest += runner.leasts.back();
    }
  }
  return runners;
}

void OperatorRace::measure(std::vector<Runner> &runners, unsigned binding) {
  std::vector<OperatorAtBinding> all;
  for (const Runner &runner : runners)
    all.push_back({runner.graph, binding});
  numMeasured += all.size();
  std::vector<double> times = timeOperators(context, *problem, all);
  auto multiplicity = static_cast<double>(problem->multiplicities[binding]);
  std::vector<Runner> left;
  for (auto [runner, time] : llvm::zip_equal(runners, times)) {
    runner.milliseconds += time * multiplicity;
    runner.rest -= runner.leasts[binding];
    bool isSlower = winner && runner.milliseconds + runner.rest >
                                  margin * winner->milliseconds;
    if (time != 0 && !isSlower)
      left.push_back(std::move(runner));
  }
  runners = std::move(left);
}

void OperatorRace::run(llvm::ArrayRef<Graph> graphs) {
  // Enough to run in turn, few enough that the first ones bound the others.
  constexpr size_t batch = 16;
  while (!graphs.empty()) {
    size_t count = std::min(batch, graphs.size());
    std::vector<Runner> runners = makeRunners(graphs.take_front(count));
    graphs = graphs.drop_front(count);
    for (unsigned binding : order)
      if (!runners.empty())
        measure(runners, binding);
    numFinished += runners.size();
    for (const Runner &runner : runners)
      if (!winner || runner.milliseconds < winner->milliseconds)
        winner = {runner.graph, runner.milliseconds};
  }
}
