//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LongList.h"
#include "Fingerprint.h"
#include "Sameness.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include <ctime>
#include <tuple>

using namespace kas;
using namespace kas::search;
using namespace kas::test;

//===----------------------------------------------------------------------===//
// The list
//===----------------------------------------------------------------------===//

LongList::LongList(std::shared_ptr<const SearchProblem> problem,
                   const LongListOptions &options)
    : options(options), root(makeGraphState(std::move(problem))) {}

void LongList::enumerate(
    llvm::function_ref<bool(size_t, const OperatorGraph &)> visitor) {
  visit = visitor;
  states.push_back(root->clone());
  descend(0, nullptr);
}

void LongList::add(const State &state, Counts *counts) {
  uint8_t &isKnown = keys[state.key()];
  if (isKnown)
    return;
  isKnown = true;
  if (!visit(size(), *std::static_pointer_cast<const OperatorGraph>(
                         state.getSolution()))) {
    ++numLeftOut;
    return;
  }
  numReductionSets += counts->operators++ == 0;
  llvm::append_range(moves, path);
  ends.push_back(moves.size());
}

void LongList::descend(size_t depth, Counts *counts) {
  const State &state = *states[depth];
  if (state.isTerminal())
    return add(state, counts);
  if (counts)
    ++counts->states;
  if (states.size() == depth + 1)
    states.push_back(root->clone());
  llvm::SmallVector<Move> next;
  state.getMoves(next);
  // Reductions come first: what follows is one multiset of them.
  Counts own;
  for (Move move : next) {
    bool isReduction = state.getKindName(move.kind) == "reduce";
    Counts *below = isReduction ? nullptr : counts ? counts : &own;
    if (size() >= options.maxOperators ||
        (below && (below->operators >= options.maxPerReductions ||
                   below->states >= options.maxStatesPerReductions))) {
      isCutShort = true;
      continue;
    }
    states[depth + 1]->assign(state);
    states[depth + 1]->apply(move);
    path.push_back(move);
    descend(depth + 1, below);
    path.pop_back();
  }
}

std::shared_ptr<const OperatorGraph> LongList::getGraph(size_t number) const {
  std::unique_ptr<State> state = root->clone();
  for (size_t i = number ? ends[number - 1] : 0; i < ends[number]; ++i)
    state->apply(moves[i]);
  return std::static_pointer_cast<const OperatorGraph>(state->getSolution());
}

//===----------------------------------------------------------------------===//
// Duplicates
//===----------------------------------------------------------------------===//

/// None when a size is no integer there.
static std::optional<ConcreteOperator> makeAt(const SearchProblem &problem,
                                              const OperatorGraph &graph,
                                              const Binding &binding) {
  for (const GraphCoord &coord : graph.coords)
    for (const Size &size : {coord.size, coord.parameter})
      if (!size.evaluate(binding))
        return std::nullopt;
  return makeConcrete(problem, graph, binding);
}

namespace {
using Bucket = std::vector<size_t>;

/// Buckets of operators that nothing has distinguished yet.
class Sieve {
public:
  Sieve(const SearchProblem &problem, const LongList &list,
        llvm::raw_ostream &log)
      : problem(problem), list(list), log(log) {}

  /// Leaves operators of equal hashes together; one alone is done with.
  static std::vector<Bucket>
  part(std::vector<std::pair<uint64_t, size_t>> hashes) {
    std::vector<Bucket> parts;
    llvm::sort(hashes);
    for (size_t begin = 0, end; begin < hashes.size(); begin = end) {
      for (end = begin + 1;
           end < hashes.size() && hashes[end].first == hashes[begin].first;)
        ++end;
      if (end == begin + 1)
        continue;
      Bucket &bucket = parts.emplace_back();
      for (size_t i = begin; i < end; ++i)
        bucket.push_back(hashes[i].second);
    }
    return parts;
  }

  /// Takes `bucket` apart.
  std::vector<Bucket> refine(const Bucket &bucket, const Binding &binding,
                             Fingerprinter &fingerprinter) const {
    std::vector<std::pair<uint64_t, size_t>> hashes;
    for (size_t number : bucket) {
      auto op = makeAt(problem, *list.getGraph(number), binding);
      // Operators that are not all defined here cannot be distinguished here.
      if (!op)
        return {bucket};
      hashes.emplace_back(fingerprinter.compute(*op), number);
    }
    return part(std::move(hashes));
  }

  void refine(const Binding &binding, const FingerprintOptions &options) {
    Fingerprinter fingerprinter(options);
    std::vector<Bucket> next;
    for (const Bucket &bucket : buckets)
      llvm::append_range(next, refine(bucket, binding, fingerprinter));
    buckets = std::move(next);
  }

  /// Whether it takes apart one in eight buckets, by a sample. Where few are
  /// left, so that all of them are no more work, always.
  bool isWorthwhile(const Binding &binding,
                    const FingerprintOptions &options) const {
    constexpr size_t sampleSize = 48;
    size_t stride = buckets.size() / sampleSize;
    if (stride < 2)
      return true;
    Fingerprinter fingerprinter(options);
    size_t taken = 0;
    for (size_t i = 0; i < sampleSize; ++i) {
      const Bucket &bucket = buckets[i * stride];
      std::vector<Bucket> parts = refine(bucket, binding, fingerprinter);
      taken += parts.size() != 1 || parts.front().size() != bucket.size();
    }
    return 8 * taken >= sampleSize;
  }

  /// About how much work a fingerprint is, by a sample of the operators that
  /// are left: rows, and more where nodes are distinguished.
  size_t estimateWork(const Binding &binding,
                      const FingerprintOptions &options) const {
    constexpr size_t sampleSize = 12;
    Fingerprinter fingerprinter(options);
    size_t rows = 0, stride = buckets.size() / sampleSize + 1;
    for (size_t bucket = 0; bucket < buckets.size(); bucket += stride)
      if (auto op =
              makeAt(problem, *list.getGraph(buckets[bucket].front()), binding))
        rows += fingerprinter.countRows(*op);
    return rows * (16 + options.maxClassSize);
  }

  void report(size_t binding, const FingerprintOptions &options) const {
    size_t count = 0;
    for (const Bucket &bucket : buckets)
      count += bucket.size();
    log << "left by binding " << binding + 1 << ", " << options.numPositions
        << " places";
    if (options.numSlices)
      log << " with " << options.numSlices << " of the data each";
    if (options.maxClassSize)
      log << ", one node distinguished";
    log << ": " << count << " operators ("
        << llvm::format("%.1f", double(std::clock()) / CLOCKS_PER_SEC)
        << " CPU seconds)\n";
    log.flush();
  }

  const SearchProblem &problem;
  const LongList &list;
  llvm::raw_ostream &log;
  std::vector<Bucket> buckets;
};
} // namespace

namespace {
/// An operator that exact comparison looks at, with its tables so far.
class Candidate {
public:
  Candidate(const SearchProblem &problem, const LongList &list, size_t number,
            llvm::ArrayRef<Binding> bindings)
      : number(number) {
    std::shared_ptr<const OperatorGraph> graph = list.getGraph(number);
    for (const Binding &binding : bindings)
      operators.push_back(makeAt(problem, *graph, binding));
  }

  /// Whether they agree at all places at all bindings that both have. Few
  /// places come first: they are enough to tell most apart.
  bool isSame(const Candidate &other) const {
    for (unsigned numPositions : {2u, 8u, 0u})
      for (size_t binding = 0; binding < operators.size(); ++binding)
        if (operators[binding] && other.operators[binding] &&
            !areEqual(makeTable(binding, numPositions),
                      other.makeTable(binding, numPositions)))
          return false;
    return true;
  }

  const size_t number;

private:
  ProductTable makeTable(size_t binding, unsigned numPositions) const {
    const ConcreteOperator &op = *operators[binding];
    ProductTable table =
        ProductTable::tabulate(op, choosePositions(op, numPositions));
    table.reduce();
    return table;
  }

  /// By binding.
  std::vector<std::optional<ConcreteOperator>> operators;
};
} // namespace

/// The pairs in `bucket` that are the same at all bindings.
static void compareExactly(const SearchProblem &problem, const LongList &list,
                           llvm::ArrayRef<Binding> bindings,
                           const Bucket &bucket,
                           std::vector<std::pair<size_t, size_t>> &pairs) {
  std::vector<Candidate> others;
  for (size_t number : bucket) {
    Candidate candidate(problem, list, number, bindings);
    auto match = llvm::find_if(others, [&](const Candidate &other) {
      return candidate.isSame(other);
    });
    if (match != others.end())
      pairs.emplace_back(match->number, number);
    else
      others.push_back(std::move(candidate));
  }
}

/// What is looked at of the operators that share the first fingerprint.
static llvm::ArrayRef<FingerprintOptions> getSteps() {
  // Rings of channels show their lengths only when colours are stable; where
  // two weights have each of them, only beside more than one place of the data.
  // A rank is seen only among more places than it has points.
  static const FingerprintOptions steps[] = {
      {1, 1, 3},      {2, 3, 2},     {4, 3, 3, 16}, {2, 0, 2},
      {12, 3, 3, 16}, {4, 0, 3, 24}, {7, 1, 3, 16}, {1, 1, 0, 128},
      {2, 0, 4, 128}, {2, 3, 0, 128}};
  return steps;
}

std::vector<std::vector<size_t>>
kas::test::findUndecided(const SearchProblem &problem, LongList &list,
                         llvm::ArrayRef<Binding> bindings,
                         llvm::raw_ostream &log) {
  Sieve sieve(problem, list, log);
  const FingerprintOptions few = {2, 3, 2};
  Fingerprinter first(few);
  std::vector<std::pair<uint64_t, size_t>> hashes;
  list.enumerate([&](size_t number, const OperatorGraph &graph) {
    auto op = makeAt(problem, graph, bindings.front());
    if (!op)
      return false;
    hashes.emplace_back(first.compute(*op), number);
    if (hashes.size() % 20000 == 0) {
      log << "listed: " << hashes.size() << " operators of "
          << list.getNumReductionSets() << " sets of reductions\n";
      log.flush();
    }
    return true;
  });
  log << "listed: " << list.size() << " operators of "
      << list.getNumReductionSets() << " sets of reductions, "
      << (list.isCut() ? "cut short" : "complete") << "; "
      << first.getNumCounted() << " with products that occur twice, "
      << list.getNumLeftOut() << " left out\n";
  sieve.buckets = Sieve::part(std::move(hashes));
  sieve.report(0, few);
  // The cheapest first, whatever the binding: what is expensive is for few.
  struct Step {
    size_t work, number, binding;
    FingerprintOptions options;
  };
  std::vector<Step> steps;
  for (size_t binding = 0; binding < bindings.size(); ++binding)
    for (const FingerprintOptions &options : getSteps())
      steps.push_back({sieve.estimateWork(bindings[binding], options),
                       steps.size(), binding, options});
  llvm::sort(steps, [](const Step &a, const Step &b) {
    return std::tie(a.work, a.number) < std::tie(b.work, b.number);
  });
  auto take = [&](const Step &step) {
    sieve.refine(bindings[step.binding], step.options);
    sieve.report(step.binding, step.options);
  };
  // What distinguishes few waits until fewer are left.
  std::vector<Step> later;
  for (const Step &step : steps) {
    // The first binding has had this already, and less.
    bool isKnown = step.binding == 0 && !step.options.maxClassSize &&
                   step.options.numSlices;
    if (isKnown || sieve.buckets.empty())
      continue;
    if (sieve.isWorthwhile(bindings[step.binding], step.options))
      take(step);
    else
      later.push_back(step);
  }
  for (const Step &step : later)
    if (!sieve.buckets.empty())
      take(step);
  return std::move(sieve.buckets);
}

std::vector<std::pair<size_t, size_t>>
kas::test::findDuplicates(const SearchProblem &problem, LongList &list,
                          llvm::ArrayRef<Binding> bindings,
                          llvm::raw_ostream &log) {
  std::vector<std::pair<size_t, size_t>> pairs;
  for (const Bucket &bucket : findUndecided(problem, list, bindings, log))
    compareExactly(problem, list, bindings, bucket, pairs);
  llvm::sort(pairs);
  return pairs;
}
