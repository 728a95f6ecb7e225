//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// kas-bench predict: predicted against measured times of operators.
//
//===----------------------------------------------------------------------===//

#include "KasBench.h"
#include "OperatorRace.h"
#include "OperatorTimes.h"
#include "Peak.h"
#include "SearchSpaces.h"
#include "kas/Search/Evaluators/PredictedTimeEvaluator.h"
#include "kas/Support/Random.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include <cmath>
#include <ctime>

using namespace kas;
using namespace kas::search;
using llvm::Error;
using llvm::StringRef;

namespace {
/// One operator: milliseconds over all bindings.
struct Pair {
  std::shared_ptr<const OperatorGraph> graph;
  double predicted = 0, measured = 0;
  /// Floating-point operations over all bindings with no zero of a padding.
  double existingFlops = 0;
  /// The most of one binding.
  double gflops = 0;
};

/// The operators of one space.
class Comparison {
public:
  Comparison(mlir::MLIRContext &context,
             std::shared_ptr<const SearchProblem> problem, const Target &target,
             schedule::MachineModel model, BenchReport &report,
             std::string name)
      : context(context), problem(problem),
        predictor(std::move(problem), target, std::move(model)), report(report),
        name(std::move(name)) {}

  /// `peak`: of one core, GFLOP/s.
  void run(const BenchSettings &settings, double peak);

private:
  void predictAll(llvm::ArrayRef<std::shared_ptr<const OperatorGraph>> graphs,
                  std::vector<Pair> &pairs);
  /// Prints each; leaves out what does not compile.
  void measure(std::vector<Pair> &pairs, StringRef kind);
  void print(const llvm::Twine &metric, double value, StringRef unit) {
    report.print({name, metric.str(), value, unit.str()});
  }
  void printQuality(llvm::ArrayRef<Pair> pairs, double peak);
  double getLeast(llvm::ArrayRef<Pair> pairs, StringRef metric);
  std::vector<Pair> listByPrediction();
  llvm::SmallVector<unsigned> orderBindings(const OperatorGraph &graph);
  void findFastest(const BenchSettings &settings, double peak);

  mlir::MLIRContext &context;
  std::shared_ptr<const SearchProblem> problem;
  TimePredictor predictor;
  BenchReport &report;
  std::string name;
};
} // namespace

/// Spearman's: the correlation of the ranks, equal values at their mean rank.
static double getRankCorrelation(llvm::ArrayRef<double> a,
                                 llvm::ArrayRef<double> b) {
  auto getRanks = [](llvm::ArrayRef<double> values) {
    std::vector<size_t> order(values.size());
    for (size_t index = 0; index < order.size(); ++index)
      order[index] = index;
    llvm::sort(order, [&](size_t x, size_t y) {
      return std::pair(values[x], x) < std::pair(values[y], y);
    });
    std::vector<double> ranks(values.size());
    for (size_t first = 0, next; first < order.size(); first = next) {
      for (next = first;
           next < order.size() && values[order[next]] == values[order[first]];
           ++next)
        ;
      for (size_t place = first; place < next; ++place)
        ranks[order[place]] = static_cast<double>(first + next - 1) / 2;
    }
    return ranks;
  };
  std::vector<double> x = getRanks(a), y = getRanks(b);
  double mean = static_cast<double>(x.size() - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (size_t index = 0; index < x.size(); ++index) {
    xy += (x[index] - mean) * (y[index] - mean);
    xx += (x[index] - mean) * (x[index] - mean);
    yy += (y[index] - mean) * (y[index] - mean);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

void Comparison::predictAll(
    llvm::ArrayRef<std::shared_ptr<const OperatorGraph>> graphs,
    std::vector<Pair> &pairs) {
  std::clock_t begin = std::clock();
  for (const auto &graph : graphs)
    pairs.push_back({graph, predictor.predict(*graph), 0});
  double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  if (!graphs.empty())
    print("prediction_us", 1e6 * seconds / static_cast<double>(graphs.size()),
          "us");
}

void Comparison::measure(std::vector<Pair> &pairs, StringRef kind) {
  constexpr size_t batch = 6;
  unsigned numBindings = problem->bindings.size();
  for (size_t first = 0; first < pairs.size(); first += batch) {
    auto some = llvm::MutableArrayRef(pairs).slice(
        first, std::min(batch, pairs.size() - first));
    std::vector<OperatorAtBinding> all;
    for (const Pair &pair : some)
      for (unsigned binding = 0; binding < numBindings; ++binding)
        all.push_back({pair.graph, binding});
    std::vector<double> times = timeOperators(context, *problem, all);
    std::vector<int64_t> flops = countExistingFlops(context, *problem, all);
    for (auto [index, pair] : llvm::enumerate(some)) {
      llvm::json::Array list;
      for (unsigned binding = 0; binding < numBindings; ++binding) {
        double time = times[index * numBindings + binding];
        if (time == 0)
          pair.measured = std::numeric_limits<double>::quiet_NaN();
        auto count = static_cast<double>(flops[index * numBindings + binding]);
        pair.existingFlops +=
            count * static_cast<double>(problem->multiplicities[binding]);
        pair.gflops = std::max(pair.gflops, 1e-6 * count / time);
        pair.measured +=
            time * static_cast<double>(problem->multiplicities[binding]);
        list.push_back(time);
      }
      llvm::outs()
          << llvm::json::Value(llvm::json::Object{
                 {"space", name},
                 {"kind", kind},
                 {"key", llvm::utohexstr(pair.graph->hash)},
                 {"flops", static_cast<int64_t>(pair.graph->cost.flops)},
                 {"existing_flops", static_cast<int64_t>(pair.existingFlops)},
                 {"predicted_ms", pair.predicted},
                 {"times_ms", std::move(list)}})
          << "\n";
    }
    llvm::outs().flush();
  }
  llvm::erase_if(pairs,
                 [](const Pair &pair) { return std::isnan(pair.measured); });
}

void Comparison::printQuality(llvm::ArrayRef<Pair> pairs, double peak) {
  std::vector<double> predicted, measured, errors;
  double fastest = 0;
  for (const Pair &pair : pairs) {
    predicted.push_back(pair.predicted);
    measured.push_back(pair.measured);
    errors.push_back(std::abs(pair.predicted / pair.measured - 1));
    fastest = std::max(fastest, pair.gflops);
  }
  if (pairs.empty())
    return;
  llvm::sort(errors);
  print("operators", static_cast<double>(pairs.size()), "");
  print("rank_correlation", getRankCorrelation(predicted, measured), "");
  print("median_error", errors[errors.size() / 2], "");
  // Nothing is faster than the machine, but for noise: else FLOPs are counted
  // that are not made.
  constexpr double noise = 1.05;
  report.print({.name = name,
                .metric = "largest_gflops",
                .value = fastest,
                .unit = "GFLOP/s",
                .ok = fastest <= noise * peak});
}

double Comparison::getLeast(llvm::ArrayRef<Pair> pairs, StringRef metric) {
  double least = std::numeric_limits<double>::infinity();
  for (const Pair &pair : pairs)
    least = std::min(least, pair.measured);
  print(metric, least, "ms");
  return least;
}

/// The whole list, the best predicted first.
std::vector<Pair> Comparison::listByPrediction() {
  std::vector<Pair> all;
  predictAll(sampleOperators(problem, ~0u, /*seed=*/1), all);
  print("listed", static_cast<double>(all.size()), "");
  llvm::sort(all, [](const Pair &a, const Pair &b) {
    return std::pair(a.predicted, a.graph->hash) <
           std::pair(b.predicted, b.graph->hash);
  });
  return all;
}

/// Those of the largest share of the predicted time first.
llvm::SmallVector<unsigned>
Comparison::orderBindings(const OperatorGraph &graph) {
  llvm::SmallVector<std::pair<double, unsigned>> shares;
  for (auto [work, multiplicity] :
       llvm::zip_equal(predictor.getWork(graph), problem->multiplicities))
    shares.emplace_back(-predictor.getModel().predict(work) *
                            static_cast<double>(multiplicity),
                        shares.size());
  llvm::sort(shares);
  return llvm::to_vector(llvm::make_second_range(shares));
}

/// The best predicted and others at random; of them none is measured further
/// than until it is slower than the fastest so far.
void Comparison::findFastest(const BenchSettings &settings, double peak) {
  double begin = execution::monotonicSeconds();
  auto getSeconds = [&] { return execution::monotonicSeconds() - begin; };
  std::vector<Pair> all = listByPrediction();
  if (all.empty())
    return;
  print("list_seconds", getSeconds(), "s");
  std::vector<std::shared_ptr<const OperatorGraph>> graphs;
  for (const Pair &pair : all)
    graphs.push_back(pair.graph);
  size_t numBest = std::min<size_t>(settings.best, graphs.size());
  // The best of what is left change places with random ones.
  Random random(0);
  size_t end = std::min(numBest + settings.count, graphs.size());
  for (size_t index = numBest; index < end; ++index)
    std::swap(graphs[index],
              graphs[index + random.below(graphs.size() - index)]);
  OperatorRace race(context, problem, peak, orderBindings(*all.front().graph));
  auto report = [&](llvm::StringRef after) {
    std::optional<OperatorRace::Winner> winner = race.getWinner();
    if (!winner)
      return;
    auto place = llvm::find_if(all, [&](const Pair &pair) {
      return pair.graph->hash == winner->graph->hash;
    });
    print(after + "_fastest_ms", winner->milliseconds, "ms");
    print(after + "_fastest_predicted_place",
          static_cast<double>(place - all.begin() + 1), "");
    print(after + "_measured_in_full",
          static_cast<double>(race.getNumFinished()), "");
    print(after + "_measured", static_cast<double>(race.getNumMeasured()), "");
    print(after + "_seconds", getSeconds(), "s");
  };
  race.run(llvm::ArrayRef(graphs).take_front(numBest));
  report("best");
  race.run(llvm::ArrayRef(graphs).slice(numBest, end - numBest));
  report("random");
}

void Comparison::run(const BenchSettings &settings, double peak) {
  if (settings.findsFastest)
    return findFastest(settings, peak);
  std::vector<Pair> random;
  predictAll(sampleOperators(problem, settings.count, /*seed=*/0), random);
  if (settings.best) {
    double begin = execution::monotonicSeconds();
    std::vector<Pair> all = listByPrediction();
    all.resize(std::min<size_t>(all.size(), settings.best));
    print("list_seconds", execution::monotonicSeconds() - begin, "s");
    measure(all, "best");
    getLeast(all, "least_of_best");
  }
  measure(random, "random");
  printQuality(random, peak);
  if (!random.empty())
    getLeast(random, "least_of_random");
}

/// GFLOP/s of one core, the most of some runs.
static llvm::Expected<double> measurePeak(mlir::MLIRContext &context) {
  auto kernel = compilePeak(context);
  if (!kernel)
    return kernel.takeError();
  execution::Timing timing = execution::measure([&] { kernel->run(); });
  return peakFlops / timing.min * 1e-6;
}

Error kas::runPredictSuite(mlir::MLIRContext &context,
                           const BenchSettings &settings, BenchReport &report) {
  llvm::Expected<Target> target = getTarget();
  if (!target)
    return target.takeError();
  auto model = loadMachineModel(target->cpu, [](const std::string &message) {
    llvm::errs() << "kas-bench: " << message << "\n";
  });
  if (!model)
    return model.takeError();
  std::optional<double> peak;
  for (StringRef text :
       {StringRef(predictedSpaces), getBenchSpace("syno-resnet18")}) {
    auto spaces = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    if (!spaces)
      return llvm::createStringError("the spaces do not parse");
    for (SpaceOp space : spaces->getOps<SpaceOp>()) {
      if (!isSelected(settings, space.getSymName()))
        continue;
      if (!peak) {
        auto measured = measurePeak(context);
        if (!measured)
          return measured.takeError();
        peak = *measured;
        report.print({"machine", "peak_gflops", *peak, "GFLOP/s"});
      }
      Comparison comparison(
          context,
          std::make_shared<const SearchProblem>(SearchProblem::get(space)),
          *target, *model, report, space.getSymName().str());
      comparison.run(settings, *peak);
    }
  }
  return Error::success();
}
