//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KasBench.h"
#include "SearchSpaces.h"
#include "SearchTable.h"
#include "kas/Search/Core/Session.h"
#include "kas/Search/Operators/GraphState.h"
#include "llvm/ADT/STLExtras.h"
#include <ctime>

using namespace kas;
using namespace kas::search;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

static double getCpuSeconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

static void print(BenchReport &report, const Twine &name, StringRef metric,
                  double value, StringRef unit,
                  std::optional<bool> ok = std::nullopt) {
  report.print({name.str(), metric.str(), value, unit.str(), std::nullopt,
                std::nullopt, ok});
}

//===----------------------------------------------------------------------===//
// Spaces
//===----------------------------------------------------------------------===//

/// Uniform rollouts for at least `seconds`; all must end in a candidate.
static void measureTreeRollouts(StringRef name, const LivingTree &tree,
                                double seconds, BenchReport &report) {
  if (tree.getRoot() == LivingTree::none)
    return;
  Random random(0);
  uint64_t rollouts = 0, valid = 0;
  double begin = getCpuSeconds(), elapsed = 0;
  do {
    for (unsigned rollout = 0; rollout < 100000; ++rollout)
      valid += tree.isSolution(tree.draw(tree.getRoot(), random));
    rollouts += 100000;
    elapsed = getCpuSeconds() - begin;
  } while (elapsed < seconds);
  print(report, name, "rollouts_per_cpu_second",
        static_cast<double>(rollouts) / elapsed, "1/s");
  print(report, name, "valid_rollout_share",
        static_cast<double>(valid) / static_cast<double>(rollouts), "");
}

/// Rollouts that step back at dead ends and remember them: the share that ends
/// in a new candidate, after as long a time in which dead ends were learned.
static void measureRollouts(StringRef name, std::unique_ptr<State> root,
                            double seconds, BenchReport &report) {
  SearcherSettings settings;
  auto searcher =
      llvm::cantFail(makeSearcher("random", std::move(root), settings));
  // The second half is measured, unless the first one knows all.
  SearchStatistics before, after;
  for (unsigned half = 0; half < 2 && !searcher->isExhausted(); ++half) {
    before = after;
    double begin = getCpuSeconds();
    do {
      if (searcher->ask(16).empty())
        break;
    } while (getCpuSeconds() - begin < seconds);
    after = searcher->getStatistics();
  }
  if (after.rollouts > before.rollouts)
    print(report, name, "valid_rollout_share_without_tree",
          static_cast<double>(after.asked - before.asked) /
              static_cast<double>(after.rollouts - before.rollouts),
          "");
}

static Error measureSpace(mlir::MLIRContext &context, StringRef name,
                          StringRef text, const BenchSettings &settings,
                          BenchReport &report) {
  auto problem = parseSearchProblem(context, text);
  if (!problem)
    return problem.takeError();
  Enumerator enumerator(makeGraphState(*problem), {});
  Enumerator::Limits limits;
  // A space that is not exhausted is left after this time.
  limits.seconds = std::max(settings.seconds, 1.0);
  double begin = getCpuSeconds();
  auto status = enumerator.run(limits);
  double seconds = getCpuSeconds() - begin;
  bool isComplete = status == Enumerator::Status::Complete;
  const Enumerator::Statistics &counts = enumerator.getStatistics();
  auto solutions = static_cast<double>(counts.solutions);
  if (isComplete) {
    print(report, name, "operators_total", solutions, "");
    print(report, name, "cpu_seconds", seconds, "s");
  }
  print(report, name, "distinct_operators_per_cpu_second", solutions / seconds,
        "1/s");
  print(report, name, "expansions_per_cpu_second",
        static_cast<double>(counts.expansions) / seconds, "1/s");
  print(report, name, "memory_bytes",
        static_cast<double>(enumerator.getNumBytes()), "bytes");
  // What one could have known to lead to no new operator.
  DistanceStatistics distance = getDistanceStatistics(enumerator.getRoot());
  auto tree = std::make_shared<LivingTree>(enumerator.takeTree());
  auto living = static_cast<double>(tree->getNumNodes()) - solutions;
  print(report, name, "dead_state_share",
        1 - living / static_cast<double>(counts.expansions), "");
  print(report, name, "distance_ns_per_query", distance.nanosecondsPerQuery,
        "ns");
  print(report, name, "distance_queries", static_cast<double>(distance.queries),
        "");
  print(report, name, "distance_computed_share",
        static_cast<double>(distance.computed) /
            std::max(static_cast<double>(distance.queries), 1.0),
        "");
  print(report, name, "distance_memory_bytes",
        static_cast<double>(distance.numBytes), "bytes");
  // What the algorithms keep for each node: the node, and what is left of it.
  print(report, name, "bytes_per_node",
        sizeof(LivingTree::Node) + sizeof(uint32_t), "bytes");
  print(report, name, "nodes", static_cast<double>(tree->getNumNodes()), "");
  measureTreeRollouts(name, *tree, std::min(settings.seconds, 1.0), report);
  measureRollouts(name, makeGraphState(*problem), settings.seconds, report);
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Algorithms
//===----------------------------------------------------------------------===//

namespace {

/// Evaluations at which the best reward so far is printed.
constexpr unsigned checkpoints[] = {1,   2,    3,    5,    7,    10,  15,  20,
                                    30,  50,   70,   100,  150,  200, 300, 500,
                                    700, 1000, 1500, 2000, 3000, 5000};

/// What came of one seed.
struct Run {
  /// Until 99 % of the best reward was reached.
  unsigned evaluations = 0;
  /// The best reward at each checkpoint.
  std::vector<double> best;
};

struct Tabulated {
  std::shared_ptr<const SearchTable> table;
  std::shared_ptr<const LivingTree> tree;
  double best = 0;
};

} // namespace

static llvm::Expected<Tabulated> loadTable() {
  auto table = SearchTable::parse(SearchTable::getText());
  if (!table)
    return table.takeError();
  Tabulated result;
  for (const SearchTable::Row &row : table->rows)
    result.best = std::max(result.best, row.reward);
  result.table = std::make_shared<const SearchTable>(std::move(*table));
  Enumerator enumerator(makeTabulatedState(result.table), {});
  (void)enumerator.run();
  result.tree = std::make_shared<const LivingTree>(enumerator.takeTree());
  return result;
}

namespace {
/// Looks a candidate up.
class TableEvaluator final : public Evaluator {
public:
  explicit TableEvaluator(std::shared_ptr<const SearchTable> table)
      : table(std::move(table)) {}

  StringRef getName() const override { return "reward"; }
  bool isDeterministic() const override { return true; }
  llvm::Expected<Metrics> evaluate(const Solution &solution) override {
    return Metrics{{"reward", table->rows[solution.key()].reward}};
  }

private:
  std::shared_ptr<const SearchTable> table;
};
} // namespace

static Run runSeed(const Tabulated &space, StringRef algorithm, uint64_t seed) {
  SessionOptions options;
  options.algorithm = algorithm;
  options.seed = seed;
  auto session = llvm::cantFail(Session::create(
      {.root = makeTabulatedState(space.table), .tree = space.tree}, options));
  llvm::cantFail(session->makeEvaluators({"reward"}, [&](StringRef) {
    return std::make_unique<TableEvaluator>(space.table);
  }));
  Run run;
  double best = 0;
  unsigned count = 0;
  while (best < 0.99 * space.best) {
    std::optional<SearchResult> result = llvm::cantFail(session->step());
    if (!result)
      break;
    best = std::max(best, std::get<Metrics>(result->outcome).at("reward"));
    ++count;
    if (run.best.size() < std::size(checkpoints) &&
        count == checkpoints[run.best.size()])
      run.best.push_back(best);
  }
  run.evaluations = count;
  // Later ones are at least as good: the run ends at its aim.
  run.best.resize(std::size(checkpoints), best);
  return run;
}

static double getQuantile(std::vector<double> values, double share) {
  llvm::sort(values);
  return values[static_cast<size_t>(share *
                                    static_cast<double>(values.size() - 1))];
}

static Error measureAlgorithm(const Tabulated &space, StringRef algorithm,
                              const BenchSettings &settings,
                              BenchReport &report) {
  std::string name = ("tabulated/" + algorithm).str();
  if (!isSelected(settings, name))
    return Error::success();
  // Few seeds show only that it works.
  unsigned seeds = settings.seconds > 0 ? 50 : 3;
  std::vector<double> evaluations;
  std::vector<Run> runs;
  double begin = getCpuSeconds();
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    runs.push_back(runSeed(space, algorithm, seed));
    evaluations.push_back(runs.back().evaluations);
  }
  double seconds = getCpuSeconds() - begin;
  for (auto [quantile, metric] :
       {std::pair(0.5, "evaluations_to_99_percent"),
        std::pair(0.25, "evaluations_to_99_percent_q25"),
        std::pair(0.75, "evaluations_to_99_percent_q75")})
    print(report, name, metric, getQuantile(evaluations, quantile), "");
  double sum = 0;
  for (double value : evaluations)
    sum += value;
  print(report, name, "cpu_ms_per_evaluation", 1e3 * seconds / sum, "ms");
  for (auto [index, checkpoint] : llvm::enumerate(checkpoints)) {
    std::vector<double> best;
    for (const Run &run : runs)
      best.push_back(run.best[index]);
    for (auto [quantile, metric] :
         {std::pair(0.25, "best_reward_q25"), std::pair(0.5, "best_reward"),
          std::pair(0.75, "best_reward_q75")})
      print(report, name + "/" + Twine(checkpoint), metric,
            getQuantile(best, quantile), "");
  }
  return Error::success();
}

/// The space, with the properties that `kas-extract` asks for.
static std::string addProperties(StringRef text) {
  auto [before, after] = text.split("limits {");
  return (Twine(before) + "limits {sees = [\"k1\", \"k1\"], reaches = 2, " +
          after)
      .str();
}

Error kas::runSearchSuite(mlir::MLIRContext &context,
                          const BenchSettings &settings, BenchReport &report) {
  for (auto [name, text] : benchSpaces)
    if (isSelected(settings, name))
      if (Error error = measureSpace(context, name, text, settings, report))
        return error;
  for (auto [name, text] : benchSpaces) {
    std::string ownName = (Twine(name) + "-properties").str();
    if ((name == "syno-resnet18" || name == "large") &&
        isSelected(settings, ownName))
      if (Error error = measureSpace(context, ownName, addProperties(text),
                                     settings, report))
        return error;
  }
  auto space = loadTable();
  if (!space)
    return space.takeError();
  constexpr StringRef algorithms[] = {"uniform", "random", "evolution", "mcts",
                                      "surrogate"};
  if (llvm::any_of(algorithms, [&](StringRef algorithm) {
        return isSelected(settings, ("tabulated/" + algorithm).str());
      })) {
    print(report, "tabulated", "operators_total",
          static_cast<double>(space->table->rows.size()), "");
    print(report, "tabulated", "best_reward", space->best, "");
  }
  for (StringRef algorithm : algorithms)
    if (Error error = measureAlgorithm(*space, algorithm, settings, report))
      return error;
  return Error::success();
}
