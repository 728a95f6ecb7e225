//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SpaceProof.h"
#include "kas/Search/Operators/GraphState.h"
#include "llvm/ADT/STLExtras.h"
#include <functional>
#include <unordered_set>

using namespace kas;
using namespace kas::search;
using namespace kas::test;

OperatorGraphs
kas::test::enumerateBySearch(std::shared_ptr<const SearchProblem> problem) {
  OperatorGraphs solutions;
  std::unordered_set<uint64_t> states, keys;
  std::function<void(const State &)> visit = [&](const State &state) {
    if (state.isTerminal()) {
      if (keys.insert(state.key()).second)
        solutions.push_back(
            std::static_pointer_cast<const OperatorGraph>(state.getSolution()));
      return;
    }
    if (!states.insert(state.key()).second)
      return;
    llvm::SmallVector<Move> moves;
    state.getMoves(moves);
    for (Move move : moves) {
      std::unique_ptr<State> next = state.clone();
      next->apply(move);
      visit(*next);
    }
  };
  visit(*makeGraphState(std::move(problem)));
  return solutions;
}

size_t SpaceProof::count(
    llvm::function_ref<bool(const OperatorClass &)> predicate) const {
  return llvm::count_if(classes, predicate);
}

namespace {
/// Sorts operators into classes.
class Prover {
public:
  Prover(const SearchProblem &problem, SpaceProof &proof)
      : problem(problem), proof(proof) {}

  void addListed(unsigned index) {
    proof.classes[getClass(*proof.listed[index])].listed.push_back(index);
  }
  void addFound(const OperatorGraph &graph, unsigned steps);

private:
  unsigned getClass(const OperatorGraph &graph) {
    ConcreteOperators op;
    for (const Binding &binding : problem.bindings)
      op.push_back(makeConcrete(problem, graph, binding));
    auto [index, isNew] = classes.insert(std::move(op));
    if (isNew)
      proof.classes.emplace_back().isUnknown = classes.isUnknown(index);
    return index;
  }

  const SearchProblem &problem;
  SpaceProof &proof;
  SamenessClasses classes;
};
} // namespace

static uint64_t countParams(const SearchProblem &problem,
                            const OperatorGraph &graph) {
  uint64_t params = 0;
  for (const Binding &binding : problem.bindings)
    for (llvm::ArrayRef<unsigned> weight : graph.weights) {
      uint64_t elements = 1;
      for (unsigned index : weight)
        elements *= *graph.coords[index].size.evaluate(binding);
      params += elements;
    }
  return params;
}

void Prover::addFound(const OperatorGraph &graph, unsigned steps) {
  unsigned index = getClass(graph);
  OperatorClass &known = proof.classes[index];
  ++known.numFound;
  uint64_t params = countParams(problem, graph);
  LimitSet violated =
      getViolatedLimits(problem, graph, classes.getNumWeights(index));
  if (std::tuple(steps, params, violated.count()) <
      std::tuple(known.steps, known.params, known.violated.count())) {
    known.smallest = graph;
    known.steps = steps;
    known.params = params;
    known.violated = violated;
  }
}

SpaceProof
kas::test::proveSpace(std::shared_ptr<const SearchProblem> problem,
                      const std::optional<BruteForceOptions> &options) {
  SpaceProof proof;
  proof.listed = enumerateBySearch(problem);
  Prover prover(*problem, proof);
  for (unsigned index = 0; index < proof.listed.size(); ++index)
    prover.addListed(index);
  if (options)
    proof.statistics = enumerateByBruteForce(
        *problem, *options, [&](const OperatorGraph &graph, unsigned steps) {
          prover.addFound(graph, steps);
        });
  return proof;
}
